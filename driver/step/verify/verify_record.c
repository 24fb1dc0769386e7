#include <inttypes.h>

#include "step/verify/verify_parts.h"

enum { RECORD_MAX = 256 << 20 };

/* RECORD cannot hold its own digest, and signatures come after it. */
static bool is_exempt(const struct verifying *v, const char *path)
{
	const char *name = path_below(path, v->dist_info);
	return name &&
	       (strcmp(name, "RECORD") == 0 || strcmp(name, "RECORD.jws") == 0 || strcmp(name, "RECORD.p7s") == 0);
}

struct without_digest {
	size_t count;
	const char *first;
};

static void check_member(struct verifying *v, const struct verify_member *m, struct without_digest *without)
{
	const char *name = m->entry->name;
	const struct wheel_record_row *row = m->row;
	if (!row) {
		if (!is_exempt(v, name) || path_has_suffix(name, "/RECORD"))
			verify_add(v, FINDING_ERROR, "record", name, "is not listed in RECORD");
		return;
	}
	if (is_exempt(v, name) || m->broken)
		return;
	if (!*row->digest && without->count++ == 0)
		without->first = name;
	if (*row->digest && strcmp(row->digest, m->digest) != 0)
		verify_add(v, FINDING_ERROR, "record", name, "has the digest %s, RECORD says %s", m->digest,
			   row->digest);
	if (row->size < 0 && *row->digest)
		verify_add(v, FINDING_WARNING, "record", name, "has no size in RECORD");
	else if (row->size >= 0 && (uint64_t)row->size != m->entry->size)
		verify_add(v, FINDING_ERROR, "record", name, "has %" PRIu64 " bytes, RECORD says %" PRId64,
			   m->entry->size, row->size);
}

void verify_record_read(struct verifying *v)
{
	const char *path = path_join(v->a, v->dist_info, "RECORD");
	const struct zip_entry *en = *v->dist_info ? zip_find(v->zip, path) : NULL;
	struct buf AUTO_BUF text = {0};
	struct err why = {0};
	if (!*v->dist_info)
		return;
	if (!en) {
		verify_add(v, FINDING_ERROR, "record", path, "is missing");
		return;
	}
	if (zip_read(v->zip, en, RECORD_MAX, &text, &why) < 0 ||
	    wheel_record_parse(buf_cstr(&text), text.len, path, v->a, &v->rows, &v->rows_count, &why) < 0) {
		verify_add_error(v, "record", path, &why);
		return;
	}
	v->rows_read = true;
	array_sort(v->rows, v->rows_count, sizeof(*v->rows), text_cmp);
	for (size_t i = 0; i < v->count; i++)
		v->members[i].row = text_find(v->members[i].entry->name, v->rows, v->rows_count, sizeof(*v->rows));
}

void verify_record(struct verifying *v)
{
	if (!v->rows_read)
		return;
	struct without_digest without = {0};
	for (size_t i = 0; i < v->rows_count; i++) {
		const char *path = v->rows[i].path;
		if (i > 0 && strcmp(path, v->rows[i - 1].path) == 0)
			verify_add(v, FINDING_ERROR, "record", path, "is listed twice in RECORD");
		else if (!path_is_safe_relative(path))
			verify_add(v, FINDING_ERROR, "record", path, "is not a path of a file in the wheel");
		else if (!zip_find(v->zip, path))
			verify_add(v, FINDING_ERROR, "record", path, "is listed in RECORD but not in the wheel");
	}
	for (size_t i = 0; i < v->count; i++)
		check_member(v, &v->members[i], &without);
	if (without.count)
		verify_add(v, FINDING_ERROR, "record", without.first, "has no digest in RECORD%s",
			   without.count > 1 ? arena_printf(v->a, "; it is the first of %zu such files", without.count)
					     : "");
}
