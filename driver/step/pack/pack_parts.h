/* What packing and repacking share. */
#pragma once
#include "step/pack/pack.h"

#define PACK_MARKER ".metadata-rev"

/* pack_marker: the text of the marker. */
char *pack_marker(unsigned rev, const char *generator, const char *input_key, struct arena *a);
/* pack_build: the build tag of a revision, "" for the first: other bytes get another file name, and
 * installers prefer the later one. pack_set_build: the same in the WHEEL file. */
char *pack_build(unsigned rev, struct arena *a);
void pack_set_build(struct wheel_headers *wheel, struct arena *a, const char *build);
/* pack_begin: sets `file` and `path`; gives the temporary name to write to. pack_finish: renames it
 * to `path` and sets `sha256` and `bytes`; ERR_POLICY when other bytes have that name. */
const char *pack_begin(const struct wheel_name *name, const char *out_dir, struct arena *a, struct pack_result *r);
int pack_finish(const char *temp, const uint8_t sha256[DIGEST_LEN], const struct run *run, struct pack_result *r,
		struct err *e) MUST_CHECK;
