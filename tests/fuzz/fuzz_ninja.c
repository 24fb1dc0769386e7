/* Any bytes as a log of ninja, as its record of dependencies
 * and as a build.ninja: what is read obeys the contracts. */
#include <string.h>

#include "core/ninja/ninja.h"
#include "fuzz.h"

static void check_log(const struct ninja_log *log, struct arena *a)
{
	struct ninja_unit *units;
	size_t count, outputs = 0;

	ninja_log_units(log, a, &units, &count);
	unsigned *slots = arena_array(a, count + 1, sizeof(*slots));
	unsigned used = ninja_slots(units, count, slots);
	fail_unless(count <= log->count && used <= count);
	for (size_t i = 0; i < count; i++) {
		fail_unless(units[i].path[0] && units[i].end >= units[i].start &&
			    units[i].outputs > 0 && slots[i] < used);
		fail_unless(i == 0 || units[i].start >= units[i - 1].start);
		outputs += units[i].outputs;
	}

	fail_unless(outputs <= log->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct ninja_log log = {0};
	struct ninja_edge *edges;
	struct err e = {0};
	size_t count;

	if (ninja_log_parse(&(struct file_bytes){(const char *)data, size, "fuzz"}, &a, &log, &e) ==
	    0)
		check_log(&log, &a);
	else
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && !log.entries);
	ninja_build_parse((const char *)data, size, &a, &edges, &count);
	for (size_t i = 0; i < count; i++) {
		fail_unless(edges[i].output[0] && edges[i].rule[0]);
		fail_unless(text_find(edges[i].output, edges, count, sizeof(*edges)) != NULL);
	}

	return 0;
}
