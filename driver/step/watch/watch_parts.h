/* The parts of the watch that only watch*.c share. */
#pragma once
#include "base/sys/proc.h"
#include "step/watch/watch.h"

/* A unit, and what its processes hold in the look that is under way. */
struct watch_held {
	struct watch_unit unit;
	uint64_t bytes;
};

/* A process as the last look saw it. */
struct watch_process {
	struct proctree_item item;
	struct watch_held *unit; /* NULL: of none */
};

/* The units that were seen so far, and the processes of the last look. */
struct watch_units {
	const char *build_dir;
	struct arena arena;
	struct watch_held **units; /* sorted by path */
	size_t count, cap;
	struct watch_process *last;
	size_t last_count;
	double looked; /* when the last look was */
};

/* watch_units_look: notes the units of these processes (parents first), `at` seconds since the
 * start. Returns how many units are running. */
unsigned watch_units_look(struct watch_units *u, const struct proctree_item *items, size_t count, double at);
void watch_units_release(struct watch_units *u);
