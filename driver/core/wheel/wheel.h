/* Wheels: names, RECORD, METADATA, WHEEL. */
#pragma once
#include "base/strlist.h"
#include "core/zip/zip.h"

struct wheel_name { /* torch-2.6.0+cpu.avx2-1-cp313-cp313-manylinux_2_41_x86_64.whl */
	const char *dist;
	const char *version; /* full, with the label */
	const char *build;   /* "" if none */
	const char *python;
	const char *abi;
	const char *platform;
};

/* wheel_name_parse: of a file name (a directory in front is ignored). ERR_INTEGRITY says which part
 * breaks which rule. */
int wheel_name_parse(const char *file, struct arena *a, struct wheel_name *ret, struct err *e) MUST_CHECK;
char *wheel_name_format(const struct wheel_name *n, struct arena *a);
/* wheel_normalize: distribution name as file names carry it ([-_.]+ -> _, lower case). */
char *wheel_normalize(const char *dist, struct arena *a);
/* wheel_dist_info: "torch-2.6.0+cpu.avx2.dist-info". */
char *wheel_dist_info(const struct wheel_name *n, struct arena *a);
/* wheel_find_dist_info: the name of the one .dist-info directory of an unpacked wheel.
 * ERR_INTEGRITY when there is none, or a second. */
int wheel_find_dist_info(const char *tree, struct arena *a, const char **ret, struct err *e) MUST_CHECK;

struct wheel_record_row {
	const char *path;
	const char *sha256; /* base64url, "" for RECORD itself */
	int64_t size;       /* -1: none */
};

/* wheel_record_parse: strict CSV of three fields; digests other than sha256 are refused;
 * ERR_INTEGRITY names the line. wheel_record_line: one row with its newline, quoted where
 * needed. */
int wheel_record_parse(const char *text, size_t len, const char *what, struct arena *a, struct wheel_record_row **ret,
		       size_t *ret_count, struct err *e) MUST_CHECK;
void wheel_record_line(struct buf *out, const char *path, const char *sha256_base64url, int64_t size);

/* wheel_headers_*: METADATA and WHEEL are header files (RFC 822 like): ordered name-value lines,
 * then a body. */
struct wheel_headers {
	struct kv *items; /* names may repeat */
	size_t count;
	size_t cap;
	const char *body; /* without the separating empty line; "" if none */
	/* per item, the line or lines as they were read; NULL for one that was set since */
	const char **raw;
	const char *separator; /* what stood between the lines and the body; "" if nothing */
	const char *eol;       /* "\n" or "\r\n", as the first line had it */
};
/* wheel_headers_parse: values lose the white space around them, folded lines keep their line ends
 * inside; ERR_INTEGRITY names the line. Whatever is not changed is written back byte by byte. */
int wheel_headers_parse(const char *text, size_t len, const char *what, struct arena *a, struct wheel_headers *ret,
			struct err *e) MUST_CHECK;
/* first, case-insensitive; NULL */
const char *wheel_headers_get(const struct wheel_headers *h, const char *name);
void wheel_headers_set(struct wheel_headers *h, struct arena *a, const char *name,
		       const char *value); /* the first is replaced, others of that name dropped */
/* behind the last of that name */
void wheel_headers_add(struct wheel_headers *h, struct arena *a, const char *name, const char *value);
/* those whose value starts so ("" = all) */
void wheel_headers_remove(struct wheel_headers *h, const char *name, const char *value_prefix);
void wheel_headers_remove_at(struct wheel_headers *h, size_t i);
void wheel_headers_write(const struct wheel_headers *h, struct buf *out);
