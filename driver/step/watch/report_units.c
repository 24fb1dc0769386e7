#include "step/watch/report_units.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/ninja/ninja_log.h"

#define MAX_LOG ((uint64_t)256 << 20)
#define SLACK_S 2.0 /* clocks of file systems are coarse */

struct collector {
	const char *build_dir;
	const char *top;     /* src/build */
	struct arena *arena; /* gone when all is collected: a build.ninja is large */
	struct strlist logs; /* directories, relative to top */
	struct ninja_unit *units;
	const char **sources; /* of each unit */
	size_t count, cap;
};

static int find_log(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct collector *c = user;
	(void)e;
	if (S_ISREG(st->st_mode) && strcmp(path_base(rel), ".ninja_log") == 0)
		strlist_add(&c->logs, c->arena, strchr(rel, '/') ? path_dir(c->arena, rel) : "");
	return 0;
}

static void add_unit(struct collector *c, const struct ninja_unit *u, const char *source)
{
	if (c->count == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 512;
		struct ninja_unit *units = arena_array(c->arena, cap, sizeof(*units));
		const char **sources = arena_array(c->arena, cap, sizeof(*sources));
		if (c->count) {
			memcpy(units, c->units, c->count * sizeof(*units));
			memcpy(sources, c->sources, c->count * sizeof(*sources));
		}
		c->units = units;
		c->sources = sources;
		c->cap = cap;
	}
	c->units[c->count] = *u;
	c->sources[c->count++] = source;
}

/* One log and the build.ninja beside it. */
static int read_log(struct collector *c, const char *rel, struct err *e)
{
	AUTO_BUF struct buf text = {0}, build = {0};
	struct ninja_log log;
	struct ninja_unit *units;
	struct ninja_edge *edges;
	size_t count, edges_count;
	const char *dir = *rel ? path_join(c->arena, c->top, rel) : c->top,
		   *path = path_join(c->arena, dir, ".ninja_log"),
		   *build_path = path_join(c->arena, dir, "build.ninja");
	if (fs_read(path, MAX_LOG, &text, e) < 0 ||
	    ninja_log_parse(buf_cstr(&text), text.len, path, c->arena, &log, e) < 0)
		return -1;
	if (fs_exists(build_path) && fs_read(build_path, MAX_LOG, &build, e) < 0)
		return -1;
	ninja_build_parse(buf_cstr(&build), build.len, c->arena, &edges, &edges_count);
	ninja_log_units(&log, c->arena, &units, &count);
	for (size_t i = 0; i < count; i++) {
		const struct ninja_edge *edge = ninja_build_find(edges, edges_count, units[i].path);
		struct ninja_unit u = units[i];
		u.path = watch_unit_name(c->build_dir, dir, u.path, c->arena);
		add_unit(c, &u, edge ? edge->input : "");
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct report_unit *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->path, y->path);
}

static const struct watch_unit *seen_unit(const struct watch_result *w, const char *path)
{
	size_t low = 0, high = w->units_count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = strcmp(w->units[mid].path, path);
		if (c == 0)
			return &w->units[mid];
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* A CUDA unit is always a heavy one: it is a compilation for each GPU target. */
static enum history_kind kind_of(const char *path, const char *source, const struct memory_row *heavy)
{
	static const char *const objects[] = {".o", ".gch", ".pch"};
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		if (path_has_suffix(path, objects[i]))
			return path_has_suffix(source, ".cu") || jobs_heavy_row(heavy, path) ? HISTORY_HEAVY
											     : HISTORY_COMPILE;
	}
	return HISTORY_LINK;
}

/* Objects, libraries and programs; not the headers that a script writes, nor the targets that only stand for others. */
static bool is_unit(const char *path)
{
	static const char *const made[] = {".o", ".gch", ".pch", ".a"};
	const char *base = path_base(path);
	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		if (path_has_suffix(path, made[i]))
			return true;
	}
	return strstr(base, ".so") != NULL || strncmp(path, "bin/", 4) == 0;
}

static void set_state(struct report_unit *u, const struct ccache_stats *ccache, double since)
{
	const struct ccache_source *s = ccache_stats_source(ccache, u->source);
	if (u->start < since - SLACK_S)
		u->state = REPORT_BEFORE;
	else if (s && s->hits &&
		 /* of a source that several targets compile: the one that a compiler was seen with */
		 !(s->misses && u->peak_bytes))
		u->state = REPORT_HIT;
	else
		u->state = REPORT_MADE;
}

static void set_slots(struct report_units *r)
{
	AUTO_ARENA struct arena a = {0};
	struct ninja_unit *units = arena_array(&a, r->count + 1, sizeof(*units));
	unsigned *slots = arena_array(&a, r->count + 1, sizeof(*slots));
	for (size_t i = 0; i < r->count; i++)
		units[i] = (struct ninja_unit){
			.path = r->units[i].path, .start = r->units[i].start, .end = r->units[i].end};
	r->slots = ninja_slots(units, r->count, slots);
	for (size_t i = 0; i < r->count; i++)
		r->units[i].slot = slots[i];
}

void report_units_collect(const char *build_dir, const struct watch_result *watched, double since,
			  const struct memory_row *heavy, const struct run *run, struct arena *a,
			  struct report_units *ret)
{
	struct report_units r = {0};
	AUTO_ARENA struct arena scratch = {0};
	struct collector c = {
		.build_dir = build_dir, .top = path_join(&scratch, build_dir, "src/build"), .arena = &scratch};
	AUTO_BUF struct buf stats = {0};
	const char *stats_path = path_join(&scratch, build_dir, "out/ccache.stats");
	struct err e = {0};
	if (fs_is_dir(c.top) && fs_walk(c.top, find_log, &c, &e) < 0)
		log_warn(run->log, "the report lacks units: %s", e.msg);
	for (size_t i = 0; i < c.logs.count; i++) {
		if (read_log(&c, c.logs.items[i], &e) < 0)
			log_warn(run->log, "the report lacks units: %s", e.msg);
		else
			r.logs++;
	}
	if (fs_exists(stats_path) && fs_read(stats_path, MAX_LOG, &stats, &e) < 0)
		log_warn(run->log, "the report lacks the compiler cache's figures: %s", e.msg);
	ccache_stats_parse(buf_cstr(&stats), stats.len, a, &r.ccache);
	r.units = arena_array(a, c.count + 1, sizeof(*r.units));
	for (size_t i = 0; i < c.count; i++) {
		if (!is_unit(c.units[i].path))
			continue;
		const struct watch_unit *seen = seen_unit(watched, c.units[i].path);
		struct report_unit *u = &r.units[r.count++];
		*u = (struct report_unit){.path = arena_strdup(a, c.units[i].path),
					  .source = arena_strdup(a, c.sources[i]),
					  .start = c.units[i].start,
					  .end = c.units[i].end,
					  .peak_bytes = seen ? seen->peak_bytes : 0,
					  .kind = kind_of(c.units[i].path, c.sources[i], heavy)};
		set_state(u, &r.ccache, since);
	}
	qsort(r.units, r.count, sizeof(*r.units), by_start);
	set_slots(&r);
	*ret = r;
}

size_t report_units_history(const struct report_units *u, struct arena *a, struct history_unit **ret)
{
	struct history_unit *units = arena_array(a, u->count + 1, sizeof(*units));
	size_t n = 0;
	for (size_t i = 0; i < u->count; i++) {
		const struct report_unit *from = &u->units[i];
		if (from->state == REPORT_MADE)
			units[n++] = (struct history_unit){.path = from->path,
							   .seconds = from->end - from->start,
							   .peak_bytes = from->peak_bytes,
							   .kind = from->kind};
	}
	*ret = units;
	return n;
}
