/* build.html of a kept build tree: make_report BUILD.json BUILD_DIR WHEEL OUT.html
 * [SAMPLES]. For tests of the page, and to look at a build that was made before. With
 * SAMPLES the memory curve is made up: so many points, a saw. */
#include <stdio.h>

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/watch/watch.h"

static void make_up(struct watch_result *w, size_t count, struct arena *a)
{
	w->samples = arena_array(a, count + 1, sizeof(*w->samples));
	w->steps = arena_array(a, 1, sizeof(*w->steps));
	for (size_t i = 0; i < count; i++)
		w->samples[w->samples_count++] =
			(struct watch_sample){.at = (double)i + 1,
					      .processors = (double)(i % 4),
					      .memory_bytes = (i % 100 + 1) << 25,
					      .compilers = 2};
	w->steps[w->steps_count++] =
		(struct watch_step){.name = "build", .begin = 0, .end = (double)count};
}

int main(int argc, char **argv)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *record = NULL;
	struct log log;
	struct err e = {0};
	struct report_units units;
	struct watch_result watched = {0};
	const struct run run = {.log = &log, .cancel_fd = -1};

	if (argc != 5 && argc != 6)
		return 2;
	log_init(&log, 2, LOG_NORMAL);
	if (json_read(TRUSTED, argv[1], &record, &e) != 0)
		goto fail;
	report_units_collect(argv[2], &watched, 0, NULL, &run, &a, &units);
	if (argc == 6) {
		watched.started = units.count ? units.units[0].start : 1;
		make_up(&watched, strtoul(argv[5], NULL, 10), &a);
	}

	const struct report_request q = {
		.record = record, .units = &units, .watched = &watched, .wheel = argv[3]};
	if (report_write(&q, argv[4], &e) != 0)
		goto fail;
	printf("%zu units in %u slots of %zu logs\n", units.count, units.slots, units.logs);
	return 0;
fail:
	fprintf(stderr, "%s\n", e.msg);
	return (int)e.kind;
}
