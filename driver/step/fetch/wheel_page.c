#include "step/fetch/wheel_page.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "core/wheel/wheel.h"
#include "step/fetch/fetch_transfer.h"

char *wheel_page_url(const char *index, const char *name, struct arena *a)
{
	size_t len = strlen(index);
	while (len && index[len - 1] == '/')
		len--;
	char *page = wheel_normalize(name, a);
	for (char *p = page; *p; p++) /* PEP 503: dashes, where file names have underscores */
		*p = *p == '_' ? '-' : *p;
	return arena_printf(a, "%.*s/%s/", (int)len, index, page);
}

static bool is_secure(const char *url)
{
	return strncasecmp(url, "https:", 6) == 0;
}

/* The link as an absolute URL whose last part is `name`; NULL if it is none to follow. */
static const char *resolve(const char *page, const char *link, const char *name, struct arena *a)
{
	CURLU *u = curl_url();
	char *url = NULL, *path = NULL;
	const char *out = NULL;
	if (u && curl_url_set(u, CURLUPART_URL, page, 0) == CURLUE_OK &&
	    curl_url_set(u, CURLUPART_URL, link, 0) == CURLUE_OK &&
	    curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_URL, &url, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_PATH, &path, CURLU_URLDECODE) == CURLUE_OK) {
		bool web = is_secure(url) || (strncasecmp(url, "http:", 5) == 0 && !is_secure(page));
		if (web && strcmp(path_base(path), name) == 0)
			out = arena_strdup(a, url);
	}
	curl_free(url);
	curl_free(path);
	curl_url_cleanup(u);
	return out;
}

static bool read_file(const json_t *entry, const char *page, struct arena *a, struct wheel_listed *ret)
{
	AUTO_ARENA struct arena scratch = {0};
	struct wheel_name parts;
	const char *name = json_member(entry, "filename");
	const char *link = json_member(entry, "url");
	const char *sha256 = json_member(json_object_get(entry, "hashes"), "sha256");
	json_int_t size = json_integer_value(json_object_get(entry, "size"));
	if (!name || !link || strchr(name, '/') ||
	    (!path_has_suffix(name, WHEEL_SDIST) && wheel_name_parse(name, &scratch, &parts, ERR_IGNORED) < 0))
		return false;
	const char *url = resolve(page, link, name, a);
	if (!url)
		return false;
	*ret = (struct wheel_listed){.name = arena_strdup(a, name),
				     .url = url,
				     .sha256 = sha256 && digest_valid_hex(sha256) ? arena_strdup(a, sha256) : "",
				     .size = size > 0 ? (uint64_t)size : 0};
	return true;
}

static int bad(const char *page, const char *what, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	err_set(e, ERR_NETWORK, "'%s' is not a page of the index in JSON: %s", transfer_shown_url(&a, page), what);
	return err_hint(e, "the index must have the Simple API in JSON (PEP 691)");
}

int wheel_page_parse(const char *text, size_t len, const char *url, struct arena *a, struct wheel_page *ret,
		     struct err *e)
{
	json_error_t why;
	AUTO_JSON json_t *page = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!page)
		return bad(url, why.text, e);
	const char *version = json_member(json_object_get(page, "meta"), "api-version");
	const json_t *files = json_object_get(page, "files");
	if (!version || strncmp(version, "1.", 2) != 0)
		return bad(url, "its api-version is not 1", e);
	if (!json_is_array(files))
		return bad(url, "it has no list of files", e);
	struct wheel_page p = {.files = arena_array(a, json_array_size(files), sizeof(*p.files)),
			       .sdists = arena_array(a, json_array_size(files), sizeof(*p.files))};
	for (size_t i = 0; i < json_array_size(files); i++) {
		struct wheel_listed one;
		if (!read_file(json_array_get(files, i), url, a, &one))
			continue;
		if (path_has_suffix(one.name, WHEEL_SDIST))
			p.sdists[p.sdists_count++] = one;
		else
			p.files[p.count++] = one;
	}
	*ret = p;
	return 0;
}

const struct wheel_listed *wheel_page_find(const struct wheel_page *p, const char *name)
{
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->files[i].name, name) == 0)
			return &p->files[i];
	for (size_t i = 0; i < p->sdists_count; i++)
		if (strcmp(p->sdists[i].name, name) == 0)
			return &p->sdists[i];
	return NULL;
}
