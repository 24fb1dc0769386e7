/* Jobs: how many compilers and linkers may run at once, from memory and processors. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/tables/rows_release.h"

/* What one job of a kind needs, in bytes, where neither table nor history knows: a large C++ unit
 * of PyTorch, one of the heaviest, a link. */
#define JOBS_COMPILE_BYTES (UINT64_C(1536) << 20)
#define JOBS_HEAVY_BYTES (UINT64_C(3072) << 20)
#define JOBS_LINK_BYTES (UINT64_C(2048) << 20)

struct jobs_memory {
	uint64_t compile, heavy, link;
};

struct jobs_pools {
	/* what the build system is told: no more at once, of whatever kind */
	unsigned total;
	unsigned compile, heavy, link; /* of each kind; 1 to total */
	/* heavy units do not fit beside ordinary ones: they are compiled before all others, `heavy`
	 * at once */
	bool heavy_first;
};

/* jobs_from_table: the figures of a package's row; the defaults for what it does not say (NULL: for
 * all). */
struct jobs_memory jobs_from_table(const struct memory_row *row);
/* jobs_heavy_row: the row that says that this output is a heavy unit, NULL if none does. */
const struct heavy_row *jobs_heavy_row(const struct memory_row *row, const char *output);
/* jobs_usable: what of the free memory the compilers may have: less what the build system itself
 * takes. */
uint64_t jobs_usable(uint64_t available);
/* jobs_plan: pools for that much usable memory. `asked` (0: not) stands in place of the processors
 * and is not lowered by memory, but heavy units and links are. */
struct jobs_pools jobs_plan(uint64_t usable, unsigned processors, unsigned asked, const struct jobs_memory *need);
/* jobs_lower: half of everything, at least 1, in place; false (nothing changed) if one job at a
 * time is what there was. */
bool jobs_lower(struct jobs_pools *p);
/* jobs_cap: no more than `total` at once. */
void jobs_cap(struct jobs_pools *p, unsigned total);

/* Corrects the figures by what earlier builds measured. Peaks of compiled units in bytes (any
 * order, zeros are passed over; sorted in place) and the largest of the links. With fewer than
 * JOBS_ENOUGH units measured, or fewer than half, nothing changes. */
enum { JOBS_ENOUGH = 50 };
void jobs_learn(struct jobs_memory *m, uint64_t *peaks, size_t count, uint64_t largest_link);

/* How long memory has been too short, from the kernel's pressure figures. Begins zeroed. */
struct jobs_pressure {
	double since; /* seconds of the first of the bad samples in a row; 0: the last was good */
};
/* Percent of the time in which everything stood still for memory (PSI "full", avg10), and for how
 * many seconds on end. */
#define JOBS_PRESSURE_BOUND 50.0
#define JOBS_PRESSURE_S 20.0
/* jobs_pressed: takes a sample at `now` (> 0); true once the bound has held for so long. */
bool jobs_pressed(struct jobs_pressure *p, double full, double now);
