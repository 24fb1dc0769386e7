/* What packing and repacking share. */
#pragma once
#include "step/pack/pack.h"

#define PACK_MARKER ".metadata-rev"

/* pack_marker: the text of the marker. */
char *pack_marker(unsigned rev, const char *generator, const char *input_key, struct arena *a);
/* pack_build: returns the build tag of a revision, "" for the first: other bytes get another file
 * name, and installers prefer the later one. pack_set_build: sets it in the WHEEL file. */
char *pack_build(unsigned rev, struct arena *a);
void pack_set_build(struct wheel_headers *wheel, struct arena *a, const char *build);

/* A wheel that is being written: what goes into the archive goes into RECORD, too. */
struct pack_out {
	struct arena *a;
	struct zip_writer *zip;
	struct buf record;
	const char *temp; /* the name that it is written to */
	int held;         /* keeps it locked until it has its own, so that no sweep removes it */
	struct pack_result result;
};

/* pack_open: a file in `temp_dir`, as of fs_neighbour, that becomes `out_dir`/NAME; the rest is
 * zip_create's. */
int pack_open(struct pack_out *o, const struct wheel_name *name, const char *out_dir,
	      const char *temp_dir, uint64_t epoch, unsigned threads, int level,
	      struct err *e) MUST_CHECK;
/* pack_row: the line of an entry that is written otherwise. pack_text: an entry of mode 0644.
 * pack_file: zip_add_parts. */
void pack_row(struct pack_out *o, const char *name, const char *digest, uint64_t size);
int pack_text(struct pack_out *o, const char *name, const char *text, struct err *e) MUST_CHECK;
int pack_file(struct pack_out *o, const char *name, const char *path, const struct zip_mark *marks,
	      size_t count, struct err *e) MUST_CHECK;
/* pack_close: RECORD as the last entry, and in `tree` (NULL: nowhere); the file is complete. It is
 * gone on a failure, also if there was one before (`rc`). pack_finish: gives it its name;
 * ERR_POLICY when other bytes have that. */
int pack_close(struct pack_out *o, int rc, const char *dist_info, const char *tree,
	       struct err *e) MUST_CHECK;
int pack_finish(struct pack_out *o, const struct run *run, struct err *e) MUST_CHECK;
