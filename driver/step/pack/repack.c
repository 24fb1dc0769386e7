#include "step/pack/repack.h"

#include <string.h>

#include "base/path.h"
#include "step/pack/pack_parts.h"

enum { RECORD_MAX = 256 << 20, HEADERS_MAX = 1 << 20, MARKER_MAX = 4096 };

struct repacking {
	const struct repack_request *q;
	struct arena *a;
	struct zip_reader *zip;
	struct zip_writer *out;
	struct wheel_name name;
	const char *dist_info;
	size_t wheel_at, marker_at; /* entries */
	struct wheel_record_row *rows;
	size_t rows_count;
	const char *input_key;
	const char *wheel, *marker; /* their new texts */
	uint64_t unpacked;
};

static int refuse(struct repacking *p, struct err *e, const char *what)
{
	err_set(e, ERR_INTEGRITY, "'%s' cannot be repacked: %s", p->q->wheel, what);
	return err_hint(e, "only wheels that ptbuild packed can be repacked; build it with --metadata-rev %u",
			p->q->metadata_rev);
}

static int read_member(struct repacking *p, size_t at, uint64_t max, struct buf *out, struct err *e)
{
	return zip_read(p->zip, zip_at(p->zip, at), max, out, e);
}

/* Where the three files that change lie. */
static int find_parts(struct repacking *p, struct err *e)
{
	size_t count = zip_count(p->zip);
	const char *wheel = path_join(p->a, p->dist_info, "WHEEL"),
		   *marker = path_join(p->a, p->dist_info, PACK_MARKER);
	const char *record = path_join(p->a, p->dist_info, "RECORD");
	const struct zip_entry *en = zip_find(p->zip, wheel);
	p->wheel_at = en ? (size_t)(en - zip_at(p->zip, 0)) : count;
	if (count < 3 || p->wheel_at + 2 >= count || strcmp(zip_at(p->zip, count - 2)->name, marker) != 0 ||
	    strcmp(zip_at(p->zip, count - 1)->name, record) != 0)
		return refuse(p, e, "it does not end with WHEEL, the marker and RECORD");
	p->marker_at = count - 2;
	return 0;
}

static int read_record(struct repacking *p, struct err *e)
{
	struct buf AUTO_BUF text = {0};
	size_t count = zip_count(p->zip);
	const char *record = zip_at(p->zip, count - 1)->name;
	if (read_member(p, count - 1, RECORD_MAX, &text, e) < 0 ||
	    wheel_record_parse(buf_cstr(&text), text.len, record, p->a, &p->rows, &p->rows_count, e) < 0)
		return -1;
	if (p->rows_count != count)
		return refuse(p, e, "RECORD does not list its entries");
	for (size_t i = 0; i < count; i++) {
		const struct zip_entry *en = zip_at(p->zip, i);
		bool last = i + 1 == count;
		if (strcmp(p->rows[i].path, en->name) != 0 || (!last && p->rows[i].size != (int64_t)en->size))
			return refuse(p, e, "RECORD does not list its entries in order and with their sizes");
	}
	return 0;
}

/* The key out of "rev=1 tool=ptbuild 0.1.0 input=<key>". */
static int read_marker(struct repacking *p, struct err *e)
{
	static const char label[] = " input=";
	struct buf AUTO_BUF text = {0};
	unsigned rev;
	if (read_member(p, p->marker_at, MARKER_MAX, &text, e) < 0)
		return -1;
	const char *key = strstr(buf_cstr(&text), label), *end = key ? strchr(key, '\n') : NULL;
	if (strlen(buf_cstr(&text)) != text.len || sscanf(buf_cstr(&text), "rev=%9u tool=", &rev) != 1 || !end ||
	    end[1] || end == key + strlen(label))
		return refuse(p, e, "its marker is not one of ptbuild's");
	key += strlen(label);
	p->input_key = arena_strndup(p->a, key, (size_t)(end - key));
	return 0;
}

static int make_texts(struct repacking *p, struct err *e)
{
	struct buf AUTO_BUF text = {0}, AUTO_BUF wheel = {0};
	struct wheel_headers h;
	if (read_member(p, p->wheel_at, HEADERS_MAX, &text, e) < 0 ||
	    wheel_headers_parse(buf_cstr(&text), text.len, zip_at(p->zip, p->wheel_at)->name, p->a, &h, e) < 0)
		return -1;
	wheel_headers_set(&h, p->a, "Generator", p->q->generator);
	pack_set_build(&h, p->a, p->name.build);
	wheel_headers_write(&h, &wheel);
	p->wheel = arena_strdup(p->a, buf_cstr(&wheel));
	p->marker = pack_marker(p->q->metadata_rev, p->q->generator, p->input_key, p->a);
	return 0;
}

static void change_row(struct wheel_record_row *row, const char *text, struct arena *a)
{
	char digest[DIGEST_RECORD_MAX];
	digest_record("sha256", text, strlen(text), digest);
	row->digest = arena_strdup(a, digest);
	row->size = (int64_t)strlen(text);
}

static int write_archive(struct repacking *p, struct err *e)
{
	struct buf AUTO_BUF record = {0};
	size_t count = zip_count(p->zip), behind = p->wheel_at + 1;
	change_row(&p->rows[p->wheel_at], p->wheel, p->a);
	change_row(&p->rows[p->marker_at], p->marker, p->a);
	for (size_t i = 0; i < count; i++) {
		wheel_record_line(&record, p->rows[i].path, p->rows[i].digest, p->rows[i].size);
		p->unpacked += p->rows[i].size > 0 ? (uint64_t)p->rows[i].size : 0;
	}
	p->unpacked += record.len;
	if (zip_copy(p->out, p->zip, 0, p->wheel_at, e) < 0 ||
	    zip_add_data(p->out, p->rows[p->wheel_at].path, p->wheel, strlen(p->wheel), e) < 0 ||
	    zip_copy(p->out, p->zip, behind, p->marker_at - behind, e) < 0 ||
	    zip_add_data(p->out, p->rows[p->marker_at].path, p->marker, strlen(p->marker), e) < 0)
		return -1;
	return zip_add_data(p->out, p->rows[count - 1].path, record.data, record.len, e);
}

static int prepare(struct repacking *p, struct err *e)
{
	char have[DIGEST_HEX_LEN + 1];
	const struct repack_request *q = p->q;
	if (q->metadata_rev < 1)
		return err_set(e, ERR_CONFIG, "the metadata revision must be 1 or more");
	if (wheel_name_parse(q->wheel, p->a, &p->name, e) < 0)
		return -1;
	if (q->expect_sha256) {
		if (digest_file(q->wheel, have, e) < 0)
			return -1;
		if (strcmp(have, q->expect_sha256) != 0)
			return err_set(e, ERR_INTEGRITY, "'%s' has the sha256 %s, not %s", q->wheel, have,
				       q->expect_sha256);
	}
	p->dist_info = wheel_dist_info(&p->name, p->a);
	p->name.build = pack_build(q->metadata_rev, p->a);
	if (zip_open(q->wheel, p->a, &p->zip, e) < 0)
		return -1;
	return find_parts(p, e) < 0 || read_record(p, e) < 0 || read_marker(p, e) < 0 ? -1 : make_texts(p, e);
}

static int write_wheel(struct repacking *p, const char *temp, uint8_t sha256[DIGEST_LEN], struct err *e)
{
	uint64_t epoch = zip_epoch(zip_at(p->zip, 0));
	if (zip_create(temp, epoch, 1, p->q->level, &p->out, e) < 0)
		return -1;
	if (write_archive(p, e) < 0) {
		zip_abort(p->out);
		return err_wrap(e, "cannot repack '%s'", p->q->wheel);
	}
	return zip_finish(p->out, sha256, e);
}

int repack_wheel(const struct repack_request *q, const struct run *run, struct arena *a, struct pack_result *ret,
		 struct err *e)
{
	struct repacking p = {.q = q, .a = a};
	struct pack_result r = {0};
	uint8_t sha256[DIGEST_LEN];
	int rc = prepare(&p, e);
	const char *temp = rc == 0 ? pack_begin(&p.name, q->out_dir, a, &r) : NULL;
	if (rc == 0)
		rc = write_wheel(&p, temp, sha256, e);
	zip_close(p.zip);
	if (rc < 0 || pack_finish(temp, sha256, run, &r, e) < 0)
		return -1;
	r.files = zip_count(p.zip);
	r.unpacked_bytes = p.unpacked;
	*ret = r;
	return 0;
}
