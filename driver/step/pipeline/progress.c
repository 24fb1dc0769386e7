#include "step/pipeline/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/ci/units.h"

#define FEW_COMMANDS 5 /* fewer are CMake's own checks, not worth an estimate */
#define MAX_RUNNING 256

struct progress {
	struct progress_request q;
	const struct run *run;
	struct build_observer observer;
	const char *step; /* what runs now */
	unsigned done, all;
	bool planned;    /* the tree's build.ninja was looked at */
	const char *dir; /* of that build.ninja, where it is below the tree's build directory; else NULL */
	struct eta *eta;
	struct strlist share; /* of a shard what it compiles */
	struct arena *arena;
};

void progress_duration(char *to, size_t size, double seconds)
{
	const long minutes = (long)(seconds / 60);
	if (seconds < 90)
		snprintf(to, size, "%.0f s", seconds < 1 ? 1 : seconds);
	else if (seconds < 90.0 * 60)
		snprintf(to, size, "%.0f min", seconds / 60);
	else
		snprintf(to, size, "%ld h %ld min", minutes / 60, minutes % 60);
}

void progress_bytes(char *to, size_t size, uint64_t bytes)
{
	const double mib = (double)bytes / (1 << 20);
	if (mib < 1000)
		snprintf(to, size, "%.0f MiB", mib);
	else
		snprintf(to, size, "%.1f GiB", mib / 1024);
}

/* ", 2 jobs, 3.1 GiB" */
static void add_machine(const struct progress *p, struct buf *out)
{
	struct watch_now now;
	char memory[32];
	if (!p->q.watch)
		return;
	watch_now(p->q.watch, &now);
	progress_bytes(memory, sizeof(memory), now.memory_bytes);
	if (now.compilers)
		buf_printf(out, ", %u job%s", now.compilers, now.compilers == 1 ? "" : "s");
	buf_printf(out, ", %s", memory);
}

static void show(const struct progress *p)
{
	AUTO_BUF struct buf text = {0};
	buf_printf(&text, "%s: %s", p->q.package, p->step);
	if (p->all) {
		struct eta_view v = eta_look(p->eta);
		buf_printf(&text, " %u/%u, %.0f%%", p->done, p->all, v.percent);
		if (v.seconds_left >= 0 && p->all >= FEW_COMMANDS) {
			char left[32];
			progress_duration(left, sizeof(left), v.seconds_left);
			buf_printf(&text, ", %s%s left", v.about ? "about " : "", left);
		}
	}
	add_machine(p, &text);
	log_status(p->run->log, "%s", buf_cstr(&text));
}

/* Of a shard only its own units are expected; what else ninja makes for them is counted. */
static size_t keep_share(const struct progress *p, struct ninja_edge *edges, size_t count)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		if (strlist_contains(&p->share, edges[i].output))
			edges[n++] = edges[i];
	return n;
}

/* What this tree will make, and what an earlier run of it has made. Extensions of torch.utils.cpp_extension have a
 * build.ninja below that of the tree, of one extension after the other, which is found by its log. */
static void plan(struct progress *p)
{
	AUTO_ARENA struct arena a = {0};
	struct err ignored = {0};
	struct ninja_edge *edges;
	struct ninja_log made;
	struct strlist dirs = {0};
	size_t count;
	const char *top = p->q.build_dir, *rel = "src/build";
	const bool whole = fs_exists(top, "src/build/build.ninja");
	p->planned = whole || p->done >= FEW_COMMANDS;
	if (!whole && (ninja_log_dirs(top, rel, &a, &dirs, &ignored) < 0 || !dirs.count))
		return;
	if (!whole)
		rel = dirs.items[0];
	const char *dir = path_join(&a, top, rel);
	if (ninja_build_read(top, path_join(&a, rel, "build.ninja"), &a, &edges, &count, &ignored) < 0 || !count)
		return;
	if (ninja_log_read(top, path_join(&a, rel, ".ninja_log"), &a, &made, &ignored) < 0)
		made = (struct ninja_log){0};
	if (p->share.count)
		count = keep_share(p, edges, count);
	for (size_t i = 0; i < count; i++)
		edges[i].output = watch_unit_name(top, dir, edges[i].output, &a);
	for (size_t i = 0; i < made.count; i++)
		made.entries[i].output = watch_unit_name(top, dir, made.entries[i].output, &a);
	eta_plan(p->eta, edges, count, &made, whole);
	p->dir = whole ? NULL : arena_strdup(p->arena, dir);
	p->planned = true;
}

static void on_begin(const char *command, void *user)
{
	struct progress *p = user;
	p->step = arena_strdup(p->arena, command);
	p->done = p->all = 0;
	p->planned = false;
	p->dir = NULL;
	p->eta = eta_new(p->q.weights, p->arena);
	if (strcmp(command, "build") != 0) /* progress_step has shown that one */
		log_stage(p->run->log, "%s: %s", p->q.package, command);
}

static unsigned jobs_now(const struct progress *p)
{
	struct watch_now now = {0};
	if (p->q.watch)
		watch_now(p->q.watch, &now);
	return now.compilers;
}

/* What a line says was made. A whole command, as `ninja -v` prints it, is named by its output, as the history has
 * it. */
static const char *name_in(const struct progress *p, const char *line, struct arena *a)
{
	const char *output = units_output(line, a), *last = strrchr(line, ' ');
	if (!*output && p->dir && last)
		output = last + 1;
	return *output ? watch_unit_name(p->q.build_dir, p->dir, output, a) : line;
}

static void on_line(const char *text, size_t len, void *user)
{
	AUTO_ARENA struct arena a = {0};
	struct progress *p = user;
	unsigned done, all;
	int head = 0;
	(void)len;
	if (text[0] != '[' || sscanf(text, "[%u/%u] %n", &done, &all, &head) != 2 || !head || all == 0 || done > all)
		return;
	p->done = done;
	p->all = all;
	if (!p->planned && all >= FEW_COMMANDS)
		plan(p);
	eta_count(p->eta, done, all, name_in(p, text + head, &a), log_seconds(), jobs_now(p));
	show(p);
}

static void on_tick(void *user)
{
	struct progress *p = user;
	struct watch_running running[MAX_RUNNING];
	size_t count = p->q.watch ? watch_running(p->q.watch, running, MAX_RUNNING) : 0;
	eta_update(p->eta, running, count, log_seconds());
	show(p);
}

static void on_share(const struct strlist *outputs, void *user)
{
	struct progress *p = user;
	p->share = (struct strlist){0};
	strlist_append(&p->share, p->arena, outputs);
}

static void on_end(void *user)
{
	const struct progress *p = user;
	log_status_end(p->run->log);
}

struct progress *progress_new(const struct progress_request *q, const struct run *run, struct arena *a)
{
	struct progress *p = arena_alloc(a, sizeof(*p));
	const struct progress init = {
		.q = *q,
		.run = run,
		.observer = {.begin = on_begin,
			     .line = on_line,
			     .tick = on_tick,
			     .end = on_end,
			     .share = on_share,
			     .user = p},
		.step = "",
		.eta = eta_new(q->weights, a),
		.arena = a,
	};
	*p = init;
	return p;
}

const struct build_observer *progress_observer(const struct progress *p)
{
	return &p->observer;
}

void progress_step(struct progress *p, const char *step)
{
	p->step = step;
	p->done = p->all = 0;
	log_stage(p->run->log, "%s: %s", p->q.package, step);
}
