/* The parts of the watch that only watch*.c share. */
#pragma once
#include "base/sys/proctree.h"
#include "step/watch/watch.h"

#define WATCH_NO_UNIT ((size_t)-1)

/* A process as the last look saw it. */
struct watch_process {
	struct proctree_item item;
	size_t unit; /* index into the units, WATCH_NO_UNIT: of none */
};

/* The units that were seen so far, and the processes of the last look. */
struct watch_units {
	const char *build_dir;
	struct arena arena; /* of the paths */
	struct watch_unit *units;
	uint64_t *held; /* of each unit, in this look */
	size_t count, cap;
	size_t *table; /* hash table of indices + 1, by path; its size is a power of two */
	size_t table_size;
	struct watch_process *last;
	size_t last_count;
	double looked; /* when the last look was */
};

/* watch_units_look: takes note of the units that these processes (parents first) are of, `at`
 * seconds since the start; returns how many units are in the making. */
unsigned watch_units_look(struct watch_units *u, const struct proctree_item *items, size_t count, double at);
void watch_units_release(struct watch_units *u);
