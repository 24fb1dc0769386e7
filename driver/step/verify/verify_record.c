#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "step/verify/verify_parts.h"

enum { RECORD_MAX = 256 << 20 };

static int by_path(const void *a, const void *b)
{
	const struct wheel_record_row *x = a, *y = b;
	return strcmp(x->path, y->path);
}

/* RECORD cannot hold its own digest, and signatures come after it. */
static bool is_exempt(const struct verifying *v, const char *path)
{
	const char *name = path_below(path, v->dist_info);
	return name &&
	       (strcmp(name, "RECORD") == 0 || strcmp(name, "RECORD.jws") == 0 || strcmp(name, "RECORD.p7s") == 0);
}

static void check_member(struct verifying *v, const struct verify_member *m, const struct wheel_record_row *row)
{
	const char *name = m->entry->name;
	char digest[44];
	if (!row) {
		if (!is_exempt(v, name) || path_has_suffix(name, "/RECORD"))
			verify_add(v, FINDING_ERROR, "record", name, "is not listed in RECORD");
		return;
	}
	if (is_exempt(v, name) || m->broken)
		return;
	digest_base64url(m->sha256, digest);
	if (!*row->sha256)
		verify_add(v, FINDING_ERROR, "record", name, "has no digest in RECORD");
	else if (strcmp(row->sha256, digest) != 0)
		verify_add(v, FINDING_ERROR, "record", name, "has the sha256 %s, RECORD says %s", digest, row->sha256);
	if (row->size < 0)
		verify_add(v, FINDING_WARNING, "record", name, "has no size in RECORD");
	else if ((uint64_t)row->size != m->entry->size)
		verify_add(v, FINDING_ERROR, "record", name, "has %" PRIu64 " bytes, RECORD says %" PRId64,
			   m->entry->size, row->size);
}

static void check_rows(struct verifying *v, const struct wheel_record_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *path = rows[i].path;
		if (i > 0 && strcmp(path, rows[i - 1].path) == 0)
			verify_add(v, FINDING_ERROR, "record", path, "is listed twice in RECORD");
		else if (!path_is_safe_relative(path))
			verify_add(v, FINDING_ERROR, "record", path, "is not a path of a file in the wheel");
		else if (!zip_find(v->zip, path))
			verify_add(v, FINDING_ERROR, "record", path, "is listed in RECORD but not in the wheel");
	}
}

void verify_record(struct verifying *v)
{
	const char *path = path_join(v->a, v->dist_info, "RECORD");
	const struct zip_entry *en = zip_find(v->zip, path);
	struct buf AUTO_BUF text = {0};
	struct err why = {0};
	struct wheel_record_row *rows;
	size_t count;
	if (!en) {
		verify_add(v, FINDING_ERROR, "record", path, "is missing");
		return;
	}
	if (zip_read(v->zip, en, RECORD_MAX, &text, &why) < 0 ||
	    wheel_record_parse(buf_cstr(&text), text.len, path, v->a, &rows, &count, &why) < 0) {
		verify_add_error(v, "record", path, &why);
		return;
	}
	if (count)
		qsort(rows, count, sizeof(*rows), by_path);
	check_rows(v, rows, count);
	for (size_t i = 0; i < v->count; i++) {
		const struct wheel_record_row key = {.path = v->members[i].entry->name};
		check_member(v, &v->members[i], count ? bsearch(&key, rows, count, sizeof(key), by_path) : NULL);
	}
}
