#include <strings.h>

#include "step/pack/pack_parts.h"

enum { MARKER_MAX = 4096 };

struct repacking {
	const struct repack_request *q;
	struct arena *a;
	struct zip_reader *zip;
	struct pack_out out;
	struct wheel_name name;
	const char *dist_info, *new_dist_info;
	size_t wheel_at, metadata_at, marker_at; /* entries */
	unsigned rev;
	struct wheel_record_row *rows;
	const char *input_key;
	const char *metadata, *wheel; /* as they will be; metadata NULL: it stays */
};

static int refuse(struct repacking *p, struct err *e, const char *what)
{
	err_set(e, ERR_INTEGRITY, "'%s' cannot be repacked: %s", p->q->wheel, what);
	return err_hint(
		e,
		"only wheels that ptbuild packed can be repacked; build it with --metadata-rev %u",
		p->q->metadata_rev);
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
	bool in_order = count >= 3 && p->metadata_at < p->wheel_at && p->wheel_at + 2 < count;
	if (!in_order || strcmp(zip_at(p->zip, count - 2)->name, marker) != 0 ||
	    strcmp(zip_at(p->zip, count - 1)->name, record) != 0)
		return refuse(p, e, "it does not end with WHEEL, the marker and RECORD");
	p->marker_at = count - 2;
	return 0;
}

static int read_record(struct repacking *p, struct err *e)
{
	size_t count = zip_count(p->zip), rows;

	if (wheel_zip_record(p->zip, p->dist_info, p->a, &p->rows, &rows, e) < 0)
		return -1;
	if (rows != count)
		return refuse(p, e, "RECORD does not list its entries");
	for (size_t i = 0; i < count; i++) {
		const struct zip_entry *en = zip_at(p->zip, i);
		bool last = i + 1 == count;
		if (strcmp(p->rows[i].path, en->name) != 0 ||
		    (!last && p->rows[i].size != (int64_t)en->size))
			return refuse(
				p, e,
				"RECORD does not list its entries in order and with their sizes");
	}

	return 0;
}

/* The key out of "rev=1 tool=ptbuild 0.1.0 input=<key>". */
static int read_marker(struct repacking *p, struct err *e)
{
	static const char label[] = " input=";
	struct buf AUTO_BUF text = {0};
	unsigned rev;

	if (zip_read(p->zip, zip_at(p->zip, p->marker_at), MARKER_MAX, &text, e) < 0)
		return -1;
	const char *key = strstr(buf_cstr(&text), label), *end = key ? strchr(key, '\n') : NULL;
	bool is_text = strlen(buf_cstr(&text)) == text.len;
	bool has_key = end && !end[1] && end != key + strlen(label);
	if (!is_text || !has_key || sscanf(buf_cstr(&text), "rev=%9u tool=", &rev) != 1)
		return refuse(p, e, "its marker is not one of ptbuild's");
	p->rev = p->q->metadata_rev ? p->q->metadata_rev : rev;
	p->name.build = pack_build(p->rev, p->a);
	key += strlen(label);
	p->input_key = arena_strndup(p->a, key, (size_t)(end - key));
	return 0;
}

/* "torch==2.6.0+cpu.avx2" and "torch (==2.6.0+cpu.avx2)":
 * the variant of torch is chosen by the same machine. */
static const char *without_label(const char *requirement, struct arena *a)
{
	const char *version = strstr(requirement, "=="),
		   *plus = version ? strchr(version, '+') : NULL;

	if (!plus || memchr(version, ';', (size_t)(plus - version)))
		return requirement;
	return arena_printf(a, "%.*s%s", (int)(plus - requirement), requirement,
			    plus + strcspn(plus, " ;,)"));
}

static int make_texts(struct repacking *p, struct err *e)
{
	const struct repack_variant *v = p->q->variant;
	struct wheel_headers metadata, wheel;

	if (v) {
		p->name.version =
			arena_strndup(p->a, p->name.version, strcspn(p->name.version, "+"));
		p->name.variant = v->label;
	}

	p->new_dist_info = wheel_dist_info(&p->name, p->a);
	if (wheel_zip_headers(p->zip, p->dist_info, "WHEEL", p->a, &wheel, e) < 0 ||
	    (v && wheel_zip_headers(p->zip, p->dist_info, "METADATA", p->a, &metadata, e) < 0))
		return -1;
	for (size_t i = 0; v && i < metadata.count; i++)
		if (strcasecmp(metadata.items[i].key, "Requires-Dist") == 0) {
			metadata.items[i].value = without_label(metadata.items[i].value, p->a);
			metadata.items[i].raw = NULL;
		}
	if (v) {
		wheel_headers_set(&metadata, p->a, "Version", p->name.version);
		p->metadata = wheel_headers_text(&metadata, p->a);
	}

	wheel_headers_set(&wheel, p->a, "Generator", p->q->generator);
	pack_set_build(&wheel, p->a, p->name.build);
	p->wheel = wheel_headers_text(&wheel, p->a);
	return 0;
}

/* The entries of [from, to), which stay as they are. */
static int copy(struct repacking *p, size_t from, size_t to, struct err *e)
{
	for (size_t i = from; i < to; i++) {
		const char *below =
			p->q->variant ? path_below(p->rows[i].path, p->dist_info) : NULL;
		const char *name =
			below ? path_join(p->a, p->new_dist_info, below) : p->rows[i].path;
		pack_row(&p->out, name, p->rows[i].digest, zip_at(p->zip, i)->size);
		if (p->q->variant &&
		    zip_copy_as(p->out.zip, p->zip, zip_at(p->zip, i), name, e) < 0)
			return -1;
	}

	return p->q->variant ? 0 : zip_copy(p->out.zip, p->zip, from, to - from, e);
}

static int add(struct repacking *p, const char *name, const char *text, struct err *e)
{
	return pack_text(&p->out, path_join(p->a, p->new_dist_info, name), text, e);
}

static int write_archive(struct repacking *p, struct err *e)
{
	const struct repack_variant *v = p->q->variant;

	if (p->metadata &&
	    (copy(p, 0, p->metadata_at, e) < 0 || add(p, "METADATA", p->metadata, e) < 0))
		return -1;
	if (copy(p, p->metadata ? p->metadata_at + 1 : 0, p->wheel_at, e) < 0)
		return -1;
	if (add(p, "WHEEL", p->wheel, e) < 0 || copy(p, p->wheel_at + 1, p->marker_at, e) < 0)
		return -1;
	if (v && add(p, "variant.json", v->json, e) < 0)
		return -1;
	return add(p, PACK_MARKER, pack_marker(p->rev, p->q->generator, p->input_key, p->a), e);
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
			return err_set(e, ERR_INTEGRITY, "'%s' has the sha256 %s, not %s", q->wheel,
				       have, q->expect_sha256);
	}

	p->dist_info = wheel_dist_info(&p->name, p->a);
	if (zip_open(q->wheel, p->a, &p->zip, e) < 0)
		return -1;
	return find_parts(p, e) < 0 || read_record(p, e) < 0 || read_marker(p, e) < 0
		       ? -1
		       : make_texts(p, e);
}

int repack_wheel(const struct repack_request *q, struct arena *a, struct pack_result *ret,
		 struct err *e)
{
	struct repacking p = {.q = q, .a = a, .out.a = a};
	int rc = fs_sweep(TRUSTED, q->out_dir, e) < 0 ? -1 : prepare(&p, e);

	if (rc == 0)
		rc = pack_open(&p.out, &p.name, q->out_dir, q->out_dir, zip_epoch(zip_at(p.zip, 0)),
			       1, q->level, e);
	if (rc == 0) {
		rc = write_archive(&p, e);
		if (rc < 0)
			err_wrap(e, "cannot repack '%s'", q->wheel);
		rc = pack_close(&p.out, rc, p.new_dist_info, NULL, e);
	}

	zip_close(p.zip);
	if (rc < 0 || pack_finish(&p.out, q->run, e) < 0)
		return -1;
	*ret = p.out.result;
	return 0;
}
