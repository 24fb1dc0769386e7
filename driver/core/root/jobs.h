/* Jobs: how many compilers and linkers may run at once, from memory and processors. Pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "core/tables/rows_release.h"

/* Memory that a job of a kind needs where the table does not say: a large C++ unit of
 * PyTorch, one of the heaviest, a link. */
#define JOBS_COMPILE_BYTES (UINT64_C(1536) << 20)
#define JOBS_HEAVY_BYTES (UINT64_C(3072) << 20)
#define JOBS_LINK_BYTES (UINT64_C(2048) << 20)

struct jobs_memory {
	uint64_t compile, heavy, link;
};

struct jobs_pools {
	/* jobs of any kind at once, for the build system */
	unsigned total;
	unsigned compile, heavy, link; /* of each kind; 1 to total */
	/* heavy units do not fit beside ordinary ones, so they are compiled first, `heavy` at
	 * once */
	bool heavy_first;
};

/* jobs_from_table: the figures of a package's row (NULL: none), with defaults for what is
 * missing. */
struct jobs_memory jobs_from_table(const struct memory_row *row);
/* jobs_heavy_row: the row that makes this output a heavy unit; NULL if none does. */
const struct heavy_row *jobs_heavy_row(const struct memory_row *row, const char *output);
/* jobs_usable: returns how much of the free memory compilers may use; the rest is for the build
 * system. */
uint64_t jobs_usable(uint64_t available);
/* jobs_plan: pools for that much usable memory. `asked` (0: not) replaces the processors; memory
 * does not lower it, but does lower heavy units and links. */
struct jobs_pools jobs_plan(uint64_t usable, unsigned processors, unsigned asked,
			    const struct jobs_memory *need);
/* jobs_spare: whether each compiler may take `more` bytes than it needs, with all jobs running. */
bool jobs_spare(uint64_t usable, const struct jobs_pools *p, const struct jobs_memory *need,
		uint64_t more);
/* jobs_lower: halves everything, to at least 1; false if it was one job at a time already. */
bool jobs_lower(struct jobs_pools *p);
/* jobs_cap: lowers everything to at most `total`. */
void jobs_cap(struct jobs_pools *p, unsigned total);

/* How long memory has been short, by the kernel's pressure figures. Zero-initialise. */
struct jobs_pressure {
	double since; /* time of the first of the bad samples in a row; 0: the last was good */
};
/* Percent of time in which all tasks waited for memory (PSI "full", avg10), and for how many
 * seconds in a row that is too much. */
#define JOBS_PRESSURE_BOUND 50.0
#define JOBS_PRESSURE_S 20.0
/* jobs_pressed: records a sample at `now` (> 0); returns true once memory pressure is too high. */
bool jobs_pressed(struct jobs_pressure *p, double full, double now);
