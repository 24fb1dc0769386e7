#include <strings.h>

#include "step/pack/pack_parts.h"

enum { RECORD_MAX = 256 << 20, HEADERS_MAX = 16 << 20, MARKER_MAX = 4096, CHANGED_MAX = 4 };

struct changed {
	size_t at; /* the entry that it replaces; the marker's for the one that comes before it */
	const char *path, *text;
};

struct repacking {
	const struct repack_request *q;
	struct arena *a;
	struct zip_reader *zip;
	struct zip_writer *out;
	struct wheel_name name;
	const char *dist_info, *new_dist_info;
	size_t wheel_at, metadata_at, marker_at; /* entries */
	unsigned rev;
	struct wheel_record_row *rows;
	size_t rows_count;
	const char *input_key;
	struct changed changed[CHANGED_MAX]; /* by `at` */
	size_t changed_count;
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

static size_t find(const struct repacking *p, const char *name)
{
	const struct zip_entry *en = zip_find(p->zip, path_join(p->a, p->dist_info, name));
	return en ? (size_t)(en - zip_at(p->zip, 0)) : zip_count(p->zip);
}

/* Where the files that change lie. */
static int find_parts(struct repacking *p, struct err *e)
{
	size_t count = zip_count(p->zip);
	const char *marker = path_join(p->a, p->dist_info, PACK_MARKER),
		   *record = path_join(p->a, p->dist_info, "RECORD");
	p->wheel_at = find(p, "WHEEL");
	p->metadata_at = find(p, "METADATA");
	if (count < 3 || p->metadata_at >= p->wheel_at || p->wheel_at + 2 >= count ||
	    strcmp(zip_at(p->zip, count - 2)->name, marker) != 0 ||
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
	p->rev = p->q->metadata_rev ? p->q->metadata_rev : rev;
	p->name.build = pack_build(p->rev, p->a);
	key += strlen(label);
	p->input_key = arena_strndup(p->a, key, (size_t)(end - key));
	return 0;
}

static int read_headers(struct repacking *p, size_t at, struct wheel_headers *ret, struct err *e)
{
	struct buf AUTO_BUF text = {0};
	return read_member(p, at, HEADERS_MAX, &text, e) < 0
		       ? -1
		       : wheel_headers_parse(buf_cstr(&text), text.len, zip_at(p->zip, at)->name, p->a, ret, e);
}

static void change(struct repacking *p, size_t at, const char *name, const char *text)
{
	p->changed[p->changed_count++] =
		(struct changed){at, path_join(p->a, p->new_dist_info, name), arena_strdup(p->a, text)};
}

static void change_headers(struct repacking *p, size_t at, const char *name, const struct wheel_headers *h)
{
	struct buf AUTO_BUF out = {0};
	wheel_headers_write(h, &out);
	change(p, at, name, buf_cstr(&out));
}

/* "torch==2.6.0+cpu.avx2" and "torch (==2.6.0+cpu.avx2)": the variant of torch is chosen by the same machine. */
static const char *without_label(const char *requirement, struct arena *a)
{
	const char *version = strstr(requirement, "=="), *plus = version ? strchr(version, '+') : NULL;
	if (!plus || memchr(version, ';', (size_t)(plus - version)))
		return requirement;
	return arena_printf(a, "%.*s%s", (int)(plus - requirement), requirement, plus + strcspn(plus, " ;,)"));
}

static int make_texts(struct repacking *p, struct err *e)
{
	const struct repack_variant *v = p->q->variant;
	struct wheel_headers metadata, wheel;
	if (v) {
		p->name.version = arena_strndup(p->a, p->name.version, strcspn(p->name.version, "+"));
		p->name.variant = v->label;
	}
	p->new_dist_info = wheel_dist_info(&p->name, p->a);
	if (read_headers(p, p->wheel_at, &wheel, e) < 0 || (v && read_headers(p, p->metadata_at, &metadata, e) < 0))
		return -1;
	for (size_t i = 0; v && i < metadata.count; i++)
		if (strcasecmp(metadata.items[i].key, "Requires-Dist") == 0) {
			metadata.items[i].value = without_label(metadata.items[i].value, p->a);
			metadata.items[i].raw = NULL;
		}
	if (v) {
		wheel_headers_set(&metadata, p->a, "Version", p->name.version);
		change_headers(p, p->metadata_at, "METADATA", &metadata);
	}
	wheel_headers_set(&wheel, p->a, "Generator", p->q->generator);
	pack_set_build(&wheel, p->a, p->name.build);
	change_headers(p, p->wheel_at, "WHEEL", &wheel);
	if (v)
		change(p, p->marker_at, "variant.json", v->json);
	change(p, p->marker_at, PACK_MARKER, pack_marker(p->rev, p->q->generator, p->input_key, p->a));
	return 0;
}

/* The entries of [from, to), which stay as they are. */
static int copy(struct repacking *p, size_t from, size_t to, struct buf *record, struct err *e)
{
	for (size_t i = from; i < to; i++) {
		const char *below = p->q->variant ? path_below(p->rows[i].path, p->dist_info) : NULL;
		const char *name = below ? path_join(p->a, p->new_dist_info, below) : p->rows[i].path;
		wheel_record_line(record, name, p->rows[i].digest, p->rows[i].size);
		p->unpacked += p->rows[i].size > 0 ? (uint64_t)p->rows[i].size : 0;
		if (p->q->variant && zip_copy_as(p->out, p->zip, zip_at(p->zip, i), name, e) < 0)
			return -1;
	}
	return p->q->variant ? 0 : zip_copy(p->out, p->zip, from, to - from, e);
}

static int write_archive(struct repacking *p, struct err *e)
{
	struct buf AUTO_BUF record = {0};
	size_t next = 0;
	for (size_t i = 0; i < p->changed_count; i++) {
		const struct changed *c = &p->changed[i];
		size_t len = strlen(c->text);
		char digest[DIGEST_RECORD_MAX];
		if (c->at > next && copy(p, next, c->at, &record, e) < 0)
			return -1;
		next = c->at + 1;
		digest_record("sha256", c->text, len, digest);
		wheel_record_line(&record, c->path, digest, (int64_t)len);
		p->unpacked += len;
		if (zip_add_data(p->out, c->path, c->text, len, e) < 0)
			return -1;
	}
	const char *own = path_join(p->a, p->new_dist_info, "RECORD");
	wheel_record_line(&record, own, "", -1);
	p->unpacked += record.len;
	return zip_add_data(p->out, own, record.data, record.len, e);
}

static int prepare(struct repacking *p, struct err *e)
{
	char have[DIGEST_HEX_LEN + 1];
	const struct repack_request *q = p->q;
	if (q->metadata_rev < 1 && !q->variant)
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
	r.files = zip_count(p.zip) + (q->variant != NULL);
	r.unpacked_bytes = p.unpacked;
	*ret = r;
	return 0;
}
