#include "step/watch/watch.h"

#include "base/sys/fs.h"
#include "core/ninja/ninja.h"

#define CCACHE_STATS "out/ccache.stats"
#define MAX_LOG ((uint64_t)256 << 20)
#define SLACK_S 2.0 /* clocks of file systems are coarse */

/* Objects, libraries, programs, and what a script
 * writes; not the targets that only stand for others. */
static bool is_unit(const char *path, const struct ninja_edge *edge)
{
	static const char *const made[] = {".o", ".gch", ".pch", ".a"};
	const char *base = path_base(path);

	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		if (path_has_suffix(path, made[i]))
			return true;
	}

	if (strstr(base, ".so") || strncmp(path, "bin/", 4) == 0)
		return true;
	return edge && strcmp(edge->rule, "CUSTOM_COMMAND") == 0 && !path_has_suffix(path, ".util");
}

struct collector {
	const char *build_dir;
	struct arena *arena; /* gone when all is collected: a build.ninja is large */
	struct ninja_unit *units;
	size_t count, cap;
};

/* One log and the build.ninja beside it; `dir` is below the build directory. */
static int read_log(struct collector *c, const char *dir, struct err *e)
{
	struct ninja_log log;
	struct ninja_unit *units;
	struct ninja_edge *edges;
	size_t count, edges_count;
	const char *top = c->build_dir;

	if (ninja_log_read(top, path_join(c->arena, dir, ".ninja_log"), c->arena, &log, e) < 0 ||
	    ninja_build_read(top, path_join(c->arena, dir, "build.ninja"), c->arena, &edges,
			     &edges_count, e) < 0)
		return -1;
	ninja_log_units(&log, c->arena, &units, &count);
	for (size_t i = 0; i < count; i++) {
		const struct ninja_edge *edge =
			text_find(units[i].path, edges, edges_count, sizeof(*edges));
		units[i].path = watch_unit_name(top, path_join(c->arena, top, dir), units[i].path,
						c->arena);
		if (edge)
			units[i].input = edge->input;
		if (!is_unit(units[i].path, edge))
			continue;
		c->units =
			arena_room(c->arena, c->units, c->count, &c->cap, 512, sizeof(*c->units));
		c->units[c->count++] = units[i];
	}

	return 0;
}

/* A CUDA unit is always heavy: it is compiled for each GPU target. */
static enum report_kind kind_of(const char *path, const char *source,
				const struct memory_row *heavy)
{
	static const char *const objects[] = {".o", ".gch", ".pch"};

	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		if (path_has_suffix(path, objects[i]))
			return path_has_suffix(source, ".cu") || jobs_heavy_row(heavy, path)
				       ? REPORT_HEAVY
				       : REPORT_COMPILE;
	}

	return REPORT_LINK;
}

void report_units_collect(const char *build_dir, const struct watch_result *watched, double since,
			  const struct memory_row *heavy, const struct run *run, struct arena *a,
			  struct report_units *ret)
{
	struct report_units r = {0};
	AUTO_ARENA struct arena scratch = {0};
	struct collector c = {.build_dir = build_dir, .arena = &scratch};
	AUTO_BUF struct buf stats = {0};
	struct strlist logs = {0};
	struct err e = {0};

	if (ninja_log_dirs(build_dir, "src/build", &scratch, &logs, &e) < 0)
		log_warn(run->log, "the report lacks units: %s", e.msg);
	for (size_t i = 0; i < logs.count; i++) {
		if (read_log(&c, logs.items[i], &e) < 0)
			log_warn(run->log, "the report lacks units: %s", e.msg);
		else
			r.logs++;
	}

	if (fs_exists(build_dir, CCACHE_STATS) &&
	    fs_read(build_dir, CCACHE_STATS, MAX_LOG, &stats, &e) < 0)
		log_warn(run->log, "the report lacks the compiler cache's figures: %s", e.msg);
	ccache_stats_parse(buf_cstr(&stats), stats.len, a, &r.ccache);
	ninja_units_sort(c.units, c.count);
	unsigned *slots = arena_array(&scratch, c.count + 1, sizeof(*slots));
	r.slots = ninja_slots(c.units, c.count, slots);
	r.units = arena_array(a, c.count + 1, sizeof(*r.units));
	for (; r.count < c.count; r.count++) {
		const struct ninja_unit *unit = &c.units[r.count];
		const struct watch_unit *seen =
			text_find(unit->path, watched->units, watched->units_count, sizeof(*seen));
		struct report_unit *u = &r.units[r.count];
		*u = (struct report_unit){.path = arena_strdup(a, unit->path),
					  .source = arena_strdup(a, unit->input),
					  .start = unit->start,
					  .end = unit->end,
					  .slot = slots[r.count],
					  .peak_bytes = seen ? seen->peak_bytes : 0,
					  .kind = kind_of(unit->path, unit->input, heavy)};
		const struct ccache_source *s =
			text_find(u->source, r.ccache.sources, r.ccache.sources_count, sizeof(*s));
		if (u->start < since - SLACK_S)
			u->state = REPORT_BEFORE;
		else if (s && s->hits &&
			 /* where several targets compile a source:
			  * not the one that a compiler was seen with */
			 !(s->misses && u->peak_bytes))
			u->state = REPORT_HIT;
		else
			u->state = REPORT_MADE;
	}

	*ret = r;
}
