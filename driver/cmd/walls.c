/* --without-wall and the limits. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cmd/cmd.h"
#include "core/root/sandbox_walls.h"

/* "90", "90s", "30m", "4h" or "3d" in seconds. */
static int parse_time(const char *text, uint64_t *ret)
{
	static const char units[] = "smhd";
	static const unsigned seconds[] = {1, 60, 3600, 86400};
	char *end;
	if (*text < '0' || *text > '9' || strlen(text) > 9)
		return -1;
	unsigned long long n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : units;
	if (n == 0 || !unit || (*end && end[1]))
		return -1;
	*ret = n * seconds[unit - units];
	return 0;
}

int cmd_walls(const struct cmd_globals *g, struct run *run, struct err *e)
{
	struct run_limits *l = &run->limits;
	const struct {
		const char *name, *text;
		uint64_t *to;
		bool size;
	} options[] = {{"max-memory", g->max_memory, &l->memory, true},
		       {"max-disk", g->max_disk, &l->disk, true},
		       {"max-log", g->max_log, &l->log, true},
		       {"max-silence", g->max_silence, &l->silence, false},
		       {"max-time", g->max_time, &l->time, false}};
	l->processes = g->max_processes;
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		struct err why = {0};
		if (!options[i].text)
			continue;
		int rc = options[i].size ? size_parse(options[i].text, options[i].to, &why)
					 : parse_time(options[i].text, options[i].to);
		if (rc == 0 && *options[i].to > 0)
			continue;
		err_set(e, ERR_USAGE, "--%s: not a %s: '%s'", options[i].name, options[i].size ? "size" : "time",
			options[i].text);
		return err_hint(e, options[i].size ? "write it like 512M or 24G" : "write it like 90s, 30m or 4h");
	}
	return sandbox_walls_parse(&g->without_walls, &run->without_walls, e);
}
