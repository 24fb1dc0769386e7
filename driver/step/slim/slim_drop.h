/* What slim removes from an installed environment besides GPU code, by the rows of slim.yaml. */
#pragma once
#include "core/elf/elf_strip.h"
#include "core/fatbin/fatbin.h"
#include "core/tables/tables.h"
#include "core/wheel/wheel.h"

struct slim_kind {
	const char *name;
	bool chosen, by_default;
	struct strlist lost; /* of the rows that found something */
	uint64_t bytes;      /* on disk */
	size_t files;
};

struct slim_drops {
	const struct drop_row *rows;
	size_t rows_count;
	struct slim_kind *kinds; /* in the table's order */
	size_t count;
	unsigned strip; /* ELF_STRIP_ flags of the chosen kinds */
	bool same;      /* equal files become one */
};

/* slim_drops_choose: the default kinds and those of `drop`, without those of `keep`; "all" is every
 * kind. ERR_USAGE for an unknown one. */
int slim_drops_choose(const struct tables *t, const struct strlist *drop,
		      const struct strlist *keep, struct arena *a, struct slim_drops *ret,
		      struct err *e) MUST_CHECK;
/* slim_drops_kind: the kind of a row. */
struct slim_kind *slim_drops_kind(const struct slim_drops *d, const struct drop_row *row);
/* slim_drops_row: the row that removes file `i` of a distribution: of a chosen kind if there is
 * one. `info`: "torch-2.15.0.dist-info". NULL: it stays. */
const struct drop_row *slim_drops_row(const struct slim_drops *d, const struct fatbin_wanted *w,
				      const char *info, const struct wheel_record_row *rows,
				      size_t count, size_t i);
/* slim_drops_by_gpu: whether what the row removes depends on the GPUs. */
bool slim_drops_by_gpu(const struct drop_row *row);
/* slim_drops_strip: the row of a kind that removes sections; NULL without one. */
const struct drop_row *slim_drops_strip(const struct slim_drops *d, const char *what);
const struct drop_row *slim_drops_same(const struct slim_drops *d);
/* slim_drops_add: counts a file, or a part of it, to the row's kind. */
void slim_drops_add(const struct slim_drops *d, const struct drop_row *row, uint64_t bytes,
		    struct arena *a);
