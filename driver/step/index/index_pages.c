#include <limits.h>

#include "base/sys/json.h"
#include "step/index/index_parts.h"

/* The repository version whose rules the pages keep: 1.1 made sizes and versions mandatory, what came later is
 * optional. */
#define API_VERSION "1.4"

static void put_escaped(struct buf *out, const char *s)
{
	static const char *const entities[UCHAR_MAX + 1] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
	for (; *s; s++) {
		const char *entity = entities[(unsigned char)*s];
		if (entity)
			buf_addstr(out, entity);
		else
			buf_addc(out, *s);
	}
}

/* Some servers and caches take a '+' in a path for a space. */
static void put_url(struct buf *out, const char *url, const char *file)
{
	buf_addstr(out, url);
	for (; *file; file++) {
		if (strchr("+!", *file))
			buf_printf(out, "%%%02X", (unsigned)*file);
		else
			buf_addc(out, *file);
	}
}

static void put_head(struct buf *out, const char *title)
{
	buf_printf(out,
		   "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		   "<meta name=\"pypi:repository-version\" content=\"%s\">\n"
		   "<title>%s</title>\n</head>\n<body>\n<h1>%s</h1>\n",
		   API_VERSION, title, title);
}

static void put_attribute(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, " %s=\"", name);
	put_escaped(out, value);
	buf_addc(out, '"');
}

static void put_link(struct buf *out, const struct index_wheel *w, const char *url)
{
	buf_addstr(out, "<a href=\"");
	struct buf AUTO_BUF target = {0};
	put_url(&target, url, w->file);
	put_escaped(out, buf_cstr(&target));
	buf_printf(out, "#sha256=%s\"", w->sha256);
	if (*w->requires_python)
		put_attribute(out, "data-requires-python", w->requires_python);
	buf_printf(out, " data-core-metadata=\"sha256=%s\"", w->metadata_sha256);
	/* The older name of it: pip 23.0, which knows no other, compares names as they are spelt (PEP 714). */
	if (w->spelt_so)
		buf_printf(out, " data-dist-info-metadata=\"sha256=%s\"", w->metadata_sha256);
	if (w->yanked)
		put_attribute(out, "data-yanked", w->reason);
	buf_printf(out, ">%s</a><br>\n", w->file);
}

/* Each file that says what variants are, once. */
static struct strlist variants_of(const struct index_wheel *const *wheels, size_t count, struct arena *a)
{
	struct strlist files = {0};
	for (size_t i = 0; i < count; i++)
		if (wheels[i]->variants)
			strlist_once(&files, a, wheels[i]->variants);
	return files;
}

void index_project_html(const struct index_wheel *const *wheels, size_t count, const char *url, struct buf *out)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist files = variants_of(wheels, count, &a);
	put_head(out, wheels[0]->project);
	for (size_t i = 0; i < count; i++)
		put_link(out, wheels[i], url);
	for (size_t i = 0; i < files.count; i++) {
		buf_addstr(out, "<a href=\"");
		put_url(out, url, files.items[i]);
		buf_printf(out, "\">%s</a><br>\n", files.items[i]);
	}
	buf_addstr(out, "</body>\n</html>\n");
}

void index_root_html(const struct strlist *projects, struct buf *out)
{
	put_head(out, "Simple index");
	for (size_t i = 0; i < projects->count; i++)
		buf_printf(out, "<a href=\"%s/\">%s</a><br>\n", projects->items[i], projects->items[i]);
	buf_addstr(out, "</body>\n</html>\n");
}

static json_t *file_json(const struct index_wheel *w, const char *url)
{
	struct buf AUTO_BUF target = {0};
	put_url(&target, url, w->file);
	json_t *o = json_pack("{s:s, s:s, s:{s:s}, s:I, s:{s:s}}", "filename", w->file, "url", buf_cstr(&target),
			      "hashes", "sha256", w->sha256, "size", (json_int_t)w->size, "core-metadata", "sha256",
			      w->metadata_sha256);
	if (w->spelt_so)
		json_object_set_new(o, "dist-info-metadata", json_pack("{s:s}", "sha256", w->metadata_sha256));
	if (*w->requires_python)
		json_object_set_new(o, "requires-python", json_or_null(w->requires_python));
	json_object_set_new(o, "yanked", w->yanked && *w->reason ? json_or_null(w->reason) : json_boolean(w->yanked));
	return o;
}

static char *dump(json_t *j, struct arena *a)
{
	AUTO_FREE char *text = json_dumps(j, JSON_INDENT(1));
	json_decref(j);
	if (!text)
		abort();
	return arena_printf(a, "%s\n", text);
}

char *index_project_json(const struct index_wheel *const *wheels, size_t count, const char *url, struct arena *a)
{
	struct strlist versions = {0};
	json_t *files = json_array();
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(files, file_json(wheels[i], url));
		strlist_once(&versions, a, wheels[i]->version);
	}
	strlist_sort(&versions);
	struct strlist variants = variants_of(wheels, count, a);
	for (size_t i = 0; i < variants.count; i++) {
		struct buf AUTO_BUF target = {0};
		put_url(&target, url, variants.items[i]);
		json_array_append_new(files, json_pack("{s:s, s:s, s:{}}", "filename", variants.items[i], "url",
						       buf_cstr(&target), "hashes"));
	}
	return dump(json_pack("{s:{s:s}, s:s, s:o, s:o}", "meta", "api-version", API_VERSION, "name",
			      wheels[0]->project, "versions", json_from_strlist(&versions), "files", files),
		    a);
}

char *index_root_json(const struct strlist *projects, struct arena *a)
{
	json_t *list = json_array();
	for (size_t i = 0; i < projects->count; i++)
		json_array_append_new(list, json_pack("{s:s}", "name", projects->items[i]));
	return dump(json_pack("{s:{s:s}, s:o}", "meta", "api-version", API_VERSION, "projects", list), a);
}

char *index_listing_json(const struct index_sub *subs, size_t count, struct arena *a)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", subs[i].name, "label",
						      subs[i].label, "install", json_from_strlist(&subs[i].install),
						      "wheels", json_from_strlist(&subs[i].wheels), "missing",
						      json_from_strlist(&subs[i].missing)));
	return dump(json_pack("{s:i, s:o}", "schema", 1, "directories", list), a);
}
