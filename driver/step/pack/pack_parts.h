/* What packing and repacking share. */
#pragma once
#include "base/run.h"
#include "step/pack/pack.h"

#define PACK_MARKER ".metadata-rev"

/* pack_marker: the text of the marker. */
char *pack_marker(unsigned rev, const char *generator, const char *input_key, struct arena *a);
/* pack_build: the build tag of a revision: none for the first, then its number, so that other bytes
 * have another file name and installers prefer the later. pack_set_build: the same in the WHEEL
 * file. */
char *pack_build(unsigned rev, struct arena *a);
void pack_set_build(struct wheel_headers *wheel, struct arena *a, const char *build);
/* pack_place: gives the finished file its name, or finds the same bytes there already and removes
 * it; ERR_POLICY for other bytes of that name. */
int pack_place(const char *temp, const char *path, const char *sha256, const struct run *run, struct err *e) MUST_CHECK;
