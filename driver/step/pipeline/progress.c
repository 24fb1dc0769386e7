#include "step/pipeline/cost.h"

#include "base/sys/fs.h"

#define FEW_COMMANDS 5 /* fewer are CMake's own checks, not worth an estimate */
#define MAX_RUNNING 256

struct progress {
	struct progress_request q;
	const struct run *run;
	struct build_observer observer;
	const char *step; /* what runs now */
	bool building;
	unsigned done, all; /* 0: no command has ended yet */
	double began;       /* when the first line with a number came; 0: not yet */
	struct estimate *estimate;
	struct estimate_view view;
	struct strlist dirs;  /* of the build.ninja that were found, below the tree */
	struct strlist share; /* of a shard what it compiles */
	struct arena *arena;
};

void progress_bytes(char *to, size_t size, uint64_t bytes)
{
	const double mib = (double)bytes / (1 << 20);

	if (mib < 1000)
		snprintf(to, size, "%.0f MiB", mib);
	else
		snprintf(to, size, "%.1f GiB", mib / 1024);
}

static void show(const struct progress *p)
{
	AUTO_BUF struct buf text = {0};

	buf_printf(&text, "%s: %s", p->q.package, p->step);
	if (p->all)
		buf_printf(&text, " %u/%u", p->done, p->all);
	if (p->view.percent > 0) {
		buf_printf(&text, ", %.0f%%", p->view.percent);
		if (p->view.seconds_left >= 0 && (!p->all || p->all >= FEW_COMMANDS)) {
			char left[32];
			size_time(left, sizeof(left), p->view.seconds_left);
			buf_printf(&text, ", %s%s left", p->view.about ? "about " : "", left);
		}
	}

	/* ", 2 jobs, 3.1 GiB" */
	struct watch_now now;
	char memory[32];
	if (p->q.watch) {
		watch_now(p->q.watch, &now);
		progress_bytes(memory, sizeof(memory), now.memory_bytes);
		if (now.compilers)
			buf_printf(&text, ", %u job%s", now.compilers,
				   now.compilers == 1 ? "" : "s");
		buf_printf(&text, ", %s", memory);
	}

	log_status(p->run->log, "%s", buf_cstr(&text));
}

/* A shard expects only its own units; other units that ninja makes for them are counted. */
static size_t keep_share(const struct progress *p, struct ninja_edge *edges, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (strlist_contains(&p->share, edges[i].output))
			edges[n++] = edges[i];
	return n;
}

/* What ninja's logs say has ended. */
static size_t list_made(const struct progress *p, struct arena *a, struct estimate_made **ret)
{
	size_t count = 0, cap = 0;

	*ret = NULL;
	for (size_t i = 0; i < p->dirs.count; i++) {
		struct ninja_log log;
		const char *rel = path_join(a, p->dirs.items[i], ".ninja_log"),
			   *top = p->q.build_dir;
		if (ninja_log_read(top, rel, a, &log, ERR_IGNORED) < 0)
			continue;
		for (size_t k = 0; k < log.count; k++) {
			const struct ninja_entry *n = &log.entries[k];
			*ret = arena_room(a, *ret, count, &cap, 1024, sizeof(**ret));
			(*ret)[count++] = (struct estimate_made){
				watch_unit_name(top, path_join(a, top, p->dirs.items[i]), n->output,
						a),
				(double)(n->end_ms - n->start_ms) / 1000};
		}
	}

	return count;
}

/* What this tree will make. Extensions of torch.utils.cpp_extension have a build.ninja
 * below that of the tree, of one extension after the other, which is found by its log. */
static void plan(struct progress *p)
{
	AUTO_ARENA struct arena a = {0};
	const char *top = p->q.build_dir;
	const bool whole = fs_exists(top, "src/build/build.ninja"), first = !p->dirs.count;

	p->dirs = (struct strlist){0};
	if (whole)
		strlist_ref(&p->dirs, p->arena, "src/build");
	else if (ninja_log_dirs(top, "src/build", p->arena, &p->dirs, ERR_IGNORED) < 0)
		return;
	for (size_t k = 0; k < p->dirs.count; k++) {
		const char *dir = path_join(&a, top, p->dirs.items[k]);
		struct ninja_edge *edges;
		size_t count;
		if (ninja_build_read(top, path_join(&a, p->dirs.items[k], "build.ninja"), &a,
				     &edges, &count, ERR_IGNORED) < 0)
			continue;
		if (p->share.count)
			count = keep_share(p, edges, count);
		for (size_t i = 0; i < count; i++)
			edges[i].output = watch_unit_name(top, dir, edges[i].output, &a);
		estimate_add(p->estimate, edges, count, whole);
	}

	if (first && p->dirs.count) {
		struct estimate_made *made;
		const size_t count = list_made(p, &a, &made);
		estimate_before(p->estimate, made, count);
	}
}

static void begin_anew(struct progress *p)
{
	p->began = 0;
	p->dirs = (struct strlist){0};
	p->view = (struct estimate_view){0};
	p->estimate = estimate_new(p->q.weights, p->q.jobs, p->arena);
}

static void on_begin(const char *command, void *user)
{
	struct progress *p = user;

	p->step = arena_strdup(p->arena, command);
	p->building = strcmp(command, "build") == 0;
	p->done = p->all = 0;
	begin_anew(p);
	if (!p->building) /* progress_step has shown that one */
		log_stage(p->run->log, "%s: %s", p->q.package, command);
}

static void on_tick(void *user)
{
	AUTO_ARENA struct arena a = {0};
	struct progress *p = user;
	struct watch_running running[MAX_RUNNING];
	struct estimate_made *made;
	const double now = log_seconds();
	struct estimate_look look = {.running = running, .done = p->done, .all = p->all};

	if (p->all || p->building)
		look.running_count =
			p->q.watch ? watch_running(p->q.watch, running, MAX_RUNNING) : 0;
	/* Before the first command has ended, what runs says how far the build is, by the table. */
	if (!p->all && look.running_count) {
		p->began = p->began > 0 ? p->began : now;
		if (!p->dirs.count)
			plan(p);
		if (!p->dirs.count)
			estimate_add(p->estimate, NULL, 0, false);
	}

	if (p->all || look.running_count) {
		look.made_count = list_made(p, &a, &made);
		look.made = made;
		look.seconds = now - p->began;
		p->view = estimate_look(p->estimate, &look);
	}

	show(p);
}

static void on_line(const char *text, size_t len, void *user)
{
	struct progress *p = user;
	unsigned done, all;

	(void)len;
	if (sscanf(text, " [%u/%u]", &done, &all) != 2 || all == 0 || done > all)
		return;
	const bool next = all != p->all || done < p->done; /* another run of ninja */
	if (!p->all)
		begin_anew(p);
	p->done = done;
	p->all = all;
	p->began = p->began > 0 ? p->began : log_seconds();
	if (next && all >= FEW_COMMANDS)
		plan(p);
	if (next)
		on_tick(p);
	else
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

struct progress *progress_new(const struct progress_request *q, const struct run *run,
			      struct arena *a)
{
	struct progress *p = arena_alloc(a, sizeof(*p));

	*p = (struct progress){
		.q = *q,
		.run = run,
		.observer = {.begin = on_begin,
			     .line = on_line,
			     .tick = on_tick,
			     .end = on_end,
			     .share = on_share,
			     .user = p},
		.step = "",
		.estimate = estimate_new(q->weights, q->jobs, a),
		.arena = a,
	};
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
