/* build.html of a kept build tree: make_report BUILD.json BUILD_DIR WHEEL OUT.html. For tests of the page, and to look at a build that was made before. */
#include <stdio.h>

#include "base/json.h"
#include "step/report.h"

int main(int argc, char **argv)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *record = NULL;
	struct log log;
	struct err e = {0};
	struct report_units units;
	const struct watch_result none = {0};
	const struct run run = {.log = &log, .cancel_fd = -1};
	if (argc != 5)
		return 2;
	log_init(&log, 2, LOG_NORMAL);
	if (json_read(argv[1], &record, &e) != 0)
		goto fail;
	report_units_collect(argv[2], &none, 0, NULL, &run, &a, &units);
	const struct report_request q = {.record = record, .units = &units, .watched = &none, .wheel = argv[3]};
	if (report_write(&q, argv[4], &e) != 0)
		goto fail;
	printf("%zu units in %u slots of %zu logs\n", units.count, units.slots, units.logs);
	return 0;
fail:
	fprintf(stderr, "%s\n", e.msg);
	return (int)e.kind;
}
