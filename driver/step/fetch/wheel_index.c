#include <strings.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/proc.h"
#include "step/fetch/fetch_place.h"

static const char pip_hint[] = "name an index with PIP_INDEX_URL, or install pip (python3-pip)";

char *wheel_page_url(const char *index, const char *name, struct arena *a)
{
	return arena_printf(a, "%s/", path_join(a, index, wheel_index_name(name, a)));
}

static bool is_secure(const char *url)
{
	return strncasecmp(url, "https:", 6) == 0;
}

/* Returns the link as an absolute URL whose last part is `name`; NULL for any other link. */
static const char *resolve(const char *page, const char *link, const char *name, struct arena *a)
{
	CURLU *u = curl_url();
	char *url = NULL, *path = NULL;
	const char *out = NULL;
	CURLUcode rc = curl_url_set(u, CURLUPART_URL, page, 0); /* an error where u is NULL */

	if (rc == CURLUE_OK)
		rc = curl_url_set(u, CURLUPART_URL, link, 0);
	if (rc == CURLUE_OK)
		rc = curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
	if (rc == CURLUE_OK)
		rc = curl_url_get(u, CURLUPART_URL, &url, 0);
	if (rc == CURLUE_OK)
		rc = curl_url_get(u, CURLUPART_PATH, &path, CURLU_URLDECODE);
	if (rc == CURLUE_OK) {
		bool web =
			is_secure(url) || (strncasecmp(url, "http:", 5) == 0 && !is_secure(page));
		if (web && strcmp(path_base(path), name) == 0)
			out = arena_strdup(a, url);
	}

	curl_free(url);
	curl_free(path);
	curl_url_cleanup(u);
	return out;
}

static bool read_file(const json_t *entry, const char *page, struct arena *a,
		      struct wheel_listed *ret)
{
	AUTO_ARENA struct arena scratch = {0};
	struct wheel_name parts;
	const char *name = json_member(entry, "filename");
	const char *link = json_member(entry, "url");
	const char *sha256 = json_member(json_object_get(entry, "hashes"), "sha256");
	json_int_t size = json_integer_value(json_object_get(entry, "size"));

	if (!name || !link || strchr(name, '/'))
		return false;
	const bool sdist = path_has_suffix(name, WHEEL_SDIST);
	if (!sdist && wheel_name_parse(name, &scratch, &parts, ERR_IGNORED) < 0)
		return false;
	const char *url = resolve(page, link, name, a);
	if (!url)
		return false;
	*ret = (struct wheel_listed){
		.name = arena_strdup(a, name),
		.url = url,
		.sha256 = sha256 && digest_valid_hex(sha256) ? arena_strdup(a, sha256) : "",
		.size = size > 0 ? (uint64_t)size : 0};
	return true;
}

static int bad(const char *page, const char *what, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	err_set(e, ERR_NETWORK, "'%s' is not a page of the index in JSON: %s",
		transfer_shown_url(&a, page), what);
	return err_hint(e, "the index must have the Simple API in JSON (PEP 691)");
}

int wheel_page_parse(const struct file_bytes *in, struct arena *a, struct wheel_page *ret,
		     struct err *e)
{
	json_error_t why;
	AUTO_JSON json_t *page = json_loadb(in->data, in->size, JSON_REJECT_DUPLICATES, &why);

	if (!page)
		return bad(in->name, why.text, e);
	const char *version = json_member(json_object_get(page, "meta"), "api-version");
	const json_t *files = json_object_get(page, "files");
	if (!version || strncmp(version, "1.", 2) != 0)
		return bad(in->name, "its api-version is not 1", e);
	if (!json_is_array(files))
		return bad(in->name, "it has no list of files", e);
	struct wheel_page p = {.files = arena_array(a, json_array_size(files), sizeof(*p.files)),
			       .sdists = arena_array(a, json_array_size(files), sizeof(*p.files))};
	for (size_t i = 0; i < json_array_size(files); i++) {
		struct wheel_listed one;
		if (!read_file(json_array_get(files, i), in->name, a, &one))
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
	const struct wheel_listed *found = text_search(name, p->files, p->count, sizeof(*p->files));
	return found ? found : text_search(name, p->sdists, p->sdists_count, sizeof(*p->sdists));
}

/* Some 30 times the largest wheel: a pip that runs wild must not fill the disk. */
#define PIP_FILE_LIMIT (16UL << 30)
#define PIP_TICK_S 0.5

/* "torch_scatter-2.1.2.tar.gz" */
static bool is_sdist_of(const struct wheel_place *p, struct arena *a)
{
	const char *dash = strrchr(p->file, '-');

	return dash && strcmp(dash + 1, arena_printf(a, "%s" WHEEL_SDIST, p->version)) == 0 &&
	       strcmp(wheel_normalize(arena_strndup(a, p->file, (size_t)(dash - p->file)), a),
		      wheel_normalize(p->name, a)) == 0;
}

int wheel_place_parse(const char *place, struct arena *a, struct wheel_place *ret, struct err *e)
{
	const char *equals = strstr(place, "=="), *slash = equals ? strchr(equals, '/') : NULL;
	struct wheel_name parts;
	struct err why = {0};

	if (!slash || equals == place || strchr(slash + 1, '/')) {
		err_set(e, ERR_CONFIG, "not a location of a wheel: '%s'", place);
		return err_hint(e, "write it as wheel:NAME==VERSION/FILE.whl");
	}

	struct wheel_place p = {.name = arena_strndup(a, place, (size_t)(equals - place)),
				.version =
					arena_strndup(a, equals + 2, (size_t)(slash - equals - 2)),
				.file = arena_strdup(a, slash + 1)};
	const bool sdist = path_has_suffix(p.file, WHEEL_SDIST);
	if (!sdist && wheel_name_parse(p.file, a, &parts, &why) < 0)
		return err_set(e, ERR_CONFIG, "%s", why.msg);
	if (sdist ? !is_sdist_of(&p, a)
		  : strcmp(wheel_normalize(p.name, a), wheel_normalize(parts.dist, a)) != 0 ||
			    strcmp(p.version, parts.version) != 0)
		return err_set(e, ERR_CONFIG, "'%s' is not %s of %s %s", p.file,
			       sdist ? "an sdist" : "a wheel", p.name, p.version);
	*ret = p;
	return 0;
}

/* A value of "pip config list": KEY='VALUE', as Python prints a string; NULL if it has escapes. */
static const char *config_value(const char *line, const char *key, struct arena *a)
{
	size_t n = strlen(key);

	if (strncmp(line, key, n) != 0 || line[n] != '=' || strchr(line, '\\'))
		return NULL;
	const char *value = line + n + 1;
	size_t len = strlen(value);
	if (len < 3 || (*value != '\'' && *value != '"') || value[len - 1] != *value)
		return NULL;
	return arena_strndup(a, value + 1, len - 2);
}

/* What pip's files say, read by pip itself; a pip that cannot say it has none. */
static int index_of_pip(const struct run *run, struct arena *a, const char **ret, struct err *e)
{
	static const char *const keys[] = {"download.index-url", "global.index-url"};
	AUTO_BUF struct buf out = {0}, AUTO_BUF errors = {0};
	struct strlist argv = {0}, lines = {0};
	struct proc_result result;

	if (pip_find(a, &argv, "", ERR_IGNORED) < 0)
		return 0;
	strlist_split(&argv, a, "config list", " ");
	struct proc_spec spec = {.argv = strlist_argv(&argv, a),
				 .out = &out,
				 .err = &errors,
				 .max_output = 1 << 20,
				 .answer = true};
	if (proc_run(&spec, run, &result, e) < 0)
		return -1;
	if (result.status != 0)
		return 0;
	strlist_split(&lines, a, buf_cstr(&out), "\n");
	for (size_t k = 0; k < ARRAY_LEN(keys); k++)
		for (size_t i = 0; i < lines.count; i++) {
			const char *value = config_value(lines.items[i], keys[k], a);
			if (value) {
				*ret = value;
				return 0;
			}
		}
	return 0;
}

int wheel_index(const struct run *run, struct arena *a, const char **ret, struct err *e)
{
	static const char *const variables[] = {"PIP_INDEX_URL", "UV_DEFAULT_INDEX",
						"UV_INDEX_URL"};
	const char *no_index = getenv("PIP_NO_INDEX"), *found = NULL;

	for (size_t i = 0; i < ARRAY_LEN(variables) && !found && !(no_index && *no_index); i++) {
		const char *value = getenv(variables[i]);
		found = value && *value ? arena_strdup(a, value) : NULL;
	}

	if (!found && !(no_index && *no_index) && index_of_pip(run, a, &found, e) < 0)
		return -1;
	*ret = found;
	return 0;
}

int wheel_index_default(const struct run *run, struct arena *a, const char **ret, struct err *e)
{
	static const char before[] = "(default http";
	AUTO_BUF struct buf out = {0}, AUTO_BUF errors = {0};
	struct strlist argv = {0};
	struct proc_result result;

	/* pip breaks its lines for the terminal's width, in the middle of an address too. */
	strlist_split(&argv, a, "env COLUMNS=1000", " ");
	if (pip_find(a, &argv, pip_hint, e) < 0)
		return -1;
	strlist_split(&argv, a, "download --help", " ");
	struct proc_spec spec = {.argv = strlist_argv(&argv, a),
				 .out = &out,
				 .err = &errors,
				 .max_output = 1 << 20,
				 .answer = true};
	if (proc_run(&spec, run, &result, e) < 0)
		return -1;
	const char *at = result.status == 0 ? strstr(buf_cstr(&out), before) : NULL;
	const char *url = at ? at + sizeof(before) - sizeof("http") : NULL,
		   *end = url ? strchr(url, ')') : NULL;
	if (result.status && pip_missing(&errors, pip_hint, e))
		return -1;
	if (!end || strcspn(url, " \n") < (size_t)(end - url)) {
		err_set(e, ERR_NETWORK, "pip does not say which index it uses%s%s",
			result.status ? ": " : "", result.status ? pip_reason(a, &errors) : "");
		return err_hint(e, "name one with PIP_INDEX_URL, or install pip (python3-pip)");
	}

	*ret = arena_strndup(a, url, (size_t)(end - url));
	return 0;
}

/* What pip has written so far is what its directory holds. */
struct pip_watch {
	const char *dir;
	uint64_t size, counted; /* the file's, 0: not known; what `progress` has of it */
	struct transfer_progress *progress;
};

static int on_pip_tick(pid_t pid, void *user, struct err *e)
{
	struct pip_watch *w = user;
	uint64_t now = 0;

	(void)pid;
	(void)e;
	if (fs_tree_size_most(w->dir, &now, ERR_IGNORED) < 0)
		return 0;
	/* its copy is made before the original goes */
	now = w->size && now > w->size ? w->size : now;
	atomic_fetch_add(&w->progress->received, now - w->counted);
	w->counted = now;
	transfer_show(w->progress);
	return 0;
}

int wheel_pip_download(const struct wheel_place *p, const char *dir, uint64_t size,
		       const struct run *run, struct transfer_progress *progress, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf output = {0};
	struct strlist argv = {0};
	struct proc_result result;
	struct stat st;
	static const char fixed[] =
		"download --quiet --disable-pip-version-check --no-input --no-deps --no-cache-dir "
		"--only-binary :all: --ignore-requires-python";

	/* pip's own temporary files are as large as the wheel: they belong on the store's disk. */
	strlist_ref(&argv, &a, "env");
	strlist_addf(&argv, &a, "TMPDIR=%s", dir);
	if (pip_find(&a, &argv, pip_hint, e) < 0)
		return -1;
	strlist_split(&argv, &a, fixed, " ");
	strlist_addf(&argv, &a, "--dest=%s", dir);
	/* pip chooses by tags: it is asked for those of this very file. */
	struct wheel_name n;
	struct strlist platforms = {0};
	if (wheel_name_parse(p->file, &a, &n, ERR_IGNORED) >= 0 && strcmp(n.platform, "any") != 0) {
		strlist_split(&platforms, &a, n.platform, ".");
		for (size_t i = 0; i < platforms.count; i++)
			strlist_addf(&argv, &a, "--platform=%s", platforms.items[i]);
		if (strncmp(n.python, "cp3", 3) == 0 && isdigit((unsigned char)n.python[3])) {
			strlist_addf(&argv, &a, "--python-version=3.%s", n.python + 3);
			strlist_ref(&argv, &a, "--implementation=cp");
			strlist_addf(&argv, &a, "--abi=%s", n.abi);
		}
	}

	strlist_addf(&argv, &a, "%s==%s", p->name, p->version);
	struct pip_watch watch = {.dir = dir, .size = size, .progress = progress};
	struct proc_spec spec = {.argv = strlist_argv(&argv, &a),
				 .out = &output,
				 .err = &output,
				 .cwd = dir,
				 .file_limit = PIP_FILE_LIMIT,
				 .on_tick = on_pip_tick,
				 .tick_user = &watch,
				 .tick_s = PIP_TICK_S,
				 .answer = true};
	int rc = proc_run(&spec, run, &result, e);
	/* the caller counts the finished file */
	atomic_fetch_sub(&progress->received, watch.counted);
	if (rc < 0 && e->kind == ERR_INTERRUPTED)
		return err_hint(e, "pip keeps no part of a file, so the same command downloads it "
				   "from its start; where PIP_INDEX_URL names the index, it "
				   "continues");
	if (rc < 0)
		return -1;
	if (result.status && proc_no_space("pip", dir, buf_cstr(&output), e))
		return -1;
	if (result.status && pip_missing(&output, pip_hint, e))
		return -1;
	/* One that failed may have left half of the file. */
	const bool there = lstat(path_join(&a, dir, p->file), &st) == 0 && S_ISREG(st.st_mode);
	if (!result.status && there)
		return 0;
	err_set(e, ERR_NETWORK, "pip did not download '%s': %s", p->file,
		result.status ? pip_reason(&a, &output) : "it took another file");
	return err_hint(e, "check pip's network settings (PIP_INDEX_URL, proxy variables), or give "
			   "the directory that "
			   "holds the file with --mirror DIR");
}

int wheel_list(const struct fetcher *by, const char *asked, struct wheel_page *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *index = NULL, *file;

	if (wheel_index(by->run, by->arena, &index, e) < 0 ||
	    (!index && wheel_index_default(by->run, by->arena, &index, e) < 0))
		return -1;
	const char *url = wheel_page_url(
		index, arena_strndup(by->arena, asked, strcspn(asked, "=")), by->arena);
	if (fetch_latest(by, &(struct fetch_page){url, WHEEL_PAGE_ACCEPT, WHEEL_PAGE_MAX}, &file,
			 e) < 0 ||
	    fs_read(TRUSTED, file, WHEEL_PAGE_MAX, &text, e) < 0)
		return -1;
	return wheel_page_parse(&(struct file_bytes){text.data, text.len, url}, by->arena, ret, e);
}
