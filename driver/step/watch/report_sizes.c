#include <string.h>

#include "base/path.h"
#include "base/sys/json.h"
#include "core/zip/zip.h"
#include "step/watch/report_parts.h"

#define MAX_DEPTH 24
#define SMALLEST_PART 3000 /* a smaller part of the whole cannot be seen */

struct sizes {
	const struct zip_entry **entries; /* sorted by name */
	uint64_t least_raw, least_packed;
};

struct total {
	uint64_t raw, packed, files;
};

static void add_entry(struct total *t, const struct zip_entry *en)
{
	t->raw += en->size;
	t->packed += en->packed;
	t->files++;
}

static json_t *node(const char *name, size_t len, const struct total *t)
{
	AUTO_ARENA struct arena a = {0};
	return json_pack("{s:o,s:I,s:I,s:I}", "n", json_or_null(arena_strndup(&a, name, len)), "r", (json_int_t)t->raw,
			 "p", (json_int_t)t->packed, "k", (json_int_t)t->files);
}

static bool is_small(const struct sizes *s, const struct total *t)
{
	return t->raw < s->least_raw && t->packed < s->least_packed;
}

/* Files too small to be seen alone are shown together, by kind. */
enum { SMALL_HEADERS, SMALL_PYTHON, SMALL_OTHER, SMALL_KINDS };

static void add_small(struct total small[SMALL_KINDS], const struct sizes *s, size_t from, size_t to)
{
	static const char *const headers[] = {".h", ".hpp", ".cuh", ".inl", ".inc"}, *const python[] = {".py", ".pyi"};
	for (size_t i = from; i < to; i++) {
		unsigned kind = SMALL_OTHER;
		for (size_t k = 0; k < ARRAY_LEN(headers); k++)
			kind = path_has_suffix(s->entries[i]->name, headers[k]) ? SMALL_HEADERS : kind;
		for (size_t k = 0; k < ARRAY_LEN(python); k++)
			kind = path_has_suffix(s->entries[i]->name, python[k]) ? SMALL_PYTHON : kind;
		add_entry(&small[kind], s->entries[i]);
	}
}

static void append_small(json_t *list, const struct total small[SMALL_KINDS])
{
	static const char *const words[SMALL_KINDS] = {" .h", " .py", ""};
	for (unsigned kind = 0; kind < SMALL_KINDS; kind++) {
		char text[64];
		int len = snprintf(text, sizeof(text), "%llu small%s files", (unsigned long long)small[kind].files,
				   words[kind]);
		if (small[kind].files)
			json_array_append_new(list, node(text, (size_t)len, &small[kind]));
	}
}

/* The entries from `from` to `to` share their first `prefix` bytes, which end in '/' (or are none). */
static json_t *children(const struct sizes *s, size_t from, size_t to, size_t prefix, unsigned depth)
{
	json_t *list = json_array();
	struct total small[SMALL_KINDS] = {{0}};
	for (size_t i = from; i < to;) {
		const char *name = s->entries[i]->name + prefix, *slash = strchr(name, '/');
		size_t len = slash ? (size_t)(slash - name) : strlen(name), end = i + 1;
		struct total t = {0};
		add_entry(&t, s->entries[i]);
		for (; slash && end < to && strncmp(s->entries[end]->name + prefix, name, len + 1) == 0; end++)
			add_entry(&t, s->entries[end]);
		if (is_small(s, &t)) {
			add_small(small, s, i, end);
		} else {
			json_t *n = node(name, len, &t);
			if (slash && depth < MAX_DEPTH)
				json_object_set_new(n, "c", children(s, i, end, prefix + len + 1, depth + 1));
			json_array_append_new(list, n);
		}
		i = end;
	}
	append_small(list, small);
	return list;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct zip_entry *const *)a)->name, (*(const struct zip_entry *const *)b)->name);
}

int report_sizes(const char *wheel, json_t **ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct zip_reader *z;
	struct sizes s = {0};
	struct total all = {0};
	if (zip_open(wheel, &a, &z, e) < 0)
		return -1;
	size_t count = zip_count(z);
	s.entries = arena_array(&a, count + 1, sizeof(const struct zip_entry *));
	for (size_t i = 0; i < count; i++) {
		s.entries[i] = zip_at(z, i);
		add_entry(&all, s.entries[i]);
	}
	array_sort(s.entries, count, sizeof(const struct zip_entry *), by_name);
	s.least_raw = all.raw / SMALLEST_PART;
	s.least_packed = all.packed / SMALLEST_PART;
	*ret = node("", 0, &all);
	json_object_set_new(*ret, "c", children(&s, 0, count, 0, 0));
	zip_close(z);
	return 0;
}
