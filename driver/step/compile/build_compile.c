#include <time.h>

#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "core/ninja/ninja.h"
#include "step/compile/build_parts.h"

/* What a unit's weight is judged by. */
struct judge {
	const struct build_request *q;
	uint64_t largest; /* peak of the heavy units seen */
};

/* Heavy ones go first, the heaviest of all at the front; then the longest. */
static struct ninja_weight judge_unit(const char *output, void *user)
{
	struct judge *j = user;
	const struct heavy_row *row = jobs_heavy_row(j->q->plan->package_row->memory, output);
	const uint64_t bytes = row ? size_bytes(row->bytes) : 0;

	j->largest = bytes > j->largest ? bytes : j->largest;
	return (struct ninja_weight){.heavy = row != NULL,
				     .cost = row             ? 1e6 + (double)bytes / 1e9
					     : j->q->seconds ? j->q->seconds(output, j->q->user)
							     : 0};
}

static struct ninja_options options(const struct build_pools *p, struct judge *j)
{
	return (struct ninja_options){.compile = p->now.compile,
				      .heavy = p->now.heavy,
				      .link = p->now.link,
				      .weigh = judge_unit,
				      .user = j};
}

/* Plans again for the heavy units that the build.ninja
 * really has: a variant has not all of its release's. */
static int build_pools_fit(const struct build_request *q, struct build_pools *p, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf ignored = {0};
	struct judge judge = {.q = q};
	const struct ninja_options o = options(p, &judge);
	struct ninja_counts counts;

	if (fs_read(q->build_dir, BUILD_NINJA, NINJA_FILE_MAX, &text, e) < 0 ||
	    ninja_text(buf_cstr(&text), text.len, BUILD_NINJA, &o, &a, &ignored, &counts, e) < 0)
		return -1;
	p->need.heavy = judge.largest > p->need.compile ? judge.largest : p->need.compile;
	p->now = jobs_plan(jobs_usable(p->memory), machine_processors(), q->jobs, &p->need);
	return 0;
}

/* Puts the pools into the build.ninja, heaviest units first; *ret_heavy: the heavy outputs. */
static int build_pools_write(struct building *b, struct strlist *ret_heavy, struct err *e)
{
	struct judge judge = {.q = b->q};
	const struct ninja_options o = options(&b->pools, &judge);
	struct ninja_counts counts;

	if (ninja_file_rewrite(b->q->build_dir, BUILD_NINJA, &o, b->arena, &counts, e) < 0)
		return -1;
	*ret_heavy = counts.heavy_outputs;
	return 0;
}

/* What this shard compiles into b->result.share, and as a target of the
 * file BUILD_SHARE beside build.ninja; *ret: the command that compiles it.
 * Of `heavy` only what belongs to the shard remains. */
static int building_share(struct building *b, struct strlist *heavy, const char *const **ret,
			  struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf file = {0};
	struct arena *a = b->arena;
	const struct build_shard *own = b->q->shard;
	const struct ninja_share_options o = {.index = own->index,
					      .count = own->count,
					      .seconds = b->q->seconds,
					      .user = b->q->user};
	struct ninja_share *s = &b->result.share;
	struct strlist argv = {0};

	if (fs_read(b->q->build_dir, BUILD_NINJA, NINJA_FILE_MAX, &text, e) < 0 ||
	    ninja_share(buf_cstr(&text), text.len, BUILD_NINJA, &o, a, s, e) < 0)
		return -1;
	ninja_share_text("build.ninja", &s->outputs, &file);
	if (fs_write(b->q->build_dir, BUILD_SHARE, file.data, file.len, 0644, e) < 0)
		return -1;
	size_t n = 0;
	for (size_t i = 0; i < heavy->count; i++)
		if (strlist_contains(&s->outputs, heavy->items[i]))
			heavy->items[n++] = heavy->items[i];
	heavy->count = n;
	log_info(
		b->run->log, "%s: shard %u of %u: %zu of %zu units, and %zu that every shard needs",
		b->q->plan->package, own->index, own->count, s->outputs.count, s->units, s->common);
	if (b->q->observer && b->q->observer->share)
		b->q->observer->share(&s->outputs, b->q->observer->user);
	strlist_split(&argv, a,
		      arena_printf(a, "ninja -C build -j%u -f %s.ninja %s", b->pools.now.total,
				   NINJA_SHARE, NINJA_SHARE),
		      " ");
	*ret = strlist_argv(&argv, a);
	return 0;
}

struct build_command building_command(struct building *b, const char *const *argv, const char *step)
{
	return (struct build_command){.q = b->q,
				      .sandbox = &b->sandbox,
				      .argv = argv,
				      .step = step,
				      .log = b->result.log,
				      .ret_unit = &b->unit};
}

/* Adds a line of ptbuild's own to the log. */
static void note(const struct building *b, const char *text)
{
	AUTO_FD int fd = fs_append(b->q->build_dir, BUILD_LOG, ERR_IGNORED);
	if (fd >= 0)
		(void)!fs_write_all(fd, text, strlen(text), b->result.log, ERR_IGNORED);
}

static void add_reduction(struct building *b, unsigned from, unsigned to, const char *why)
{
	struct build_result *r = &b->result;
	struct arena *a = b->arena;
	size_t cap = r->reductions_count;

	r->reductions = arena_grow(a, r->reductions, &cap, 1, sizeof(*r->reductions));
	struct build_reduction *new = &r->reductions[r->reductions_count++];
	*new = (struct build_reduction){.at = size_utc(time(NULL), a),
					.after = log_seconds() - b->began,
					.from = from,
					.to = to,
					.why = arena_strdup(a, why)};
	b->state.lowered = b->tight = true;
	const char *text = arena_printf(
		a, "%s: memory ran short at %s after %.0f s: from %u job%s at once to %u: %s",
		b->q->plan->package, new->at, new->after, from, from == 1 ? "" : "s", to, new->why);
	log_warn(b->run->log, "%s", text);
	note(b, arena_printf(a, "ptbuild: %s\n", text));
}

int building_save(struct building *b, bool running, struct err *e)
{
	b->state.jobs = b->pools.now.total;
	b->state.running = running;
	return build_state_write(b->q->build_dir, &b->state, e);
}

/* Fewer jobs where the last run in this tree ran out of memory: this one would, too. */
static void learn_from_last_run(struct building *b)
{
	unsigned from = b->pools.now.total, cap;

	if (!b->has_last)
		return;
	enum build_state_verdict verdict = build_state_judge(&b->last, &b->state, &cap);
	b->tight = verdict != BUILD_STATE_FINE;
	switch (verdict) {
	case BUILD_STATE_KILLED:
		jobs_cap(&b->pools.now, cap);
		if (cap < from)
			add_reduction(b, from, cap,
				      "the last run was killed while the kernel was out of memory");
		return;
	case BUILD_STATE_LOWERED:
		jobs_cap(&b->pools.now, cap);
		b->state.lowered = true;
		b->state.memory = b->last.memory;
		if (cap < from)
			log_info(b->run->log,
				 "%s: at most %u jobs at once, because memory ran short with more",
				 b->q->plan->package, cap);
		return;
	case BUILD_STATE_FINE:
		return;
	}
}

/* Whether the configuration has written a build.ninja. */
static bool has_ninja(const struct building *b)
{
	return b->backend->configure && fs_exists(b->q->build_dir, BUILD_NINJA);
}

/* Puts the pools into build.ninja. Without them the
 * build is slower or needs more memory, but is right. */
static void write_pools(struct building *b, struct strlist *heavy)
{
	struct err e = {0};

	if (has_ninja(b) && build_pools_write(b, heavy, &e) < 0)
		log_warn(b->run->log, "%s: no job pools in build.ninja: %s", b->q->plan->package,
			 e.msg);
}

/* The command that builds the heavy units alone. */
static const char *const *heavy_argv(const struct building *b, const struct strlist *heavy)
{
	const size_t most = (size_t)1 << 20; /* bytes; Linux allocates twice as much */
	struct arena *a = b->arena;
	struct strlist argv = {0};
	size_t bytes = 0;

	strlist_split(&argv, a, arena_printf(a, "ninja -C build -j%u", b->pools.now.heavy), " ");
	for (size_t i = 0; i < heavy->count && (bytes += strlen(heavy->items[i]) + 9) < most; i++)
		strlist_ref(&argv, a, heavy->items[i]);
	return strlist_argv(&argv, a);
}

/* Whether compilers may have the larger heap. */
static bool has_spare(const struct building *b)
{
	return b->q->ccache_dir && !b->tight &&
	       jobs_spare(jobs_usable(b->pools.memory), &b->pools.now, &b->pools.need,
			  BACKEND_HEAP_BYTES);
}

/* Runs the build once with the pools as they are. */
static int attempt(struct building *b, struct build_outcome *ret, struct err *e)
{
	struct strlist heavy = {0};
	const char *jobs = arena_printf(b->arena, "%u", b->pools.now.total);
	struct build_command c = building_command(b, b->backend->build, "build");

	kvlist_set(&b->sandbox.env, b->arena, "MAX_JOBS", jobs);
	kvlist_set(&b->sandbox.env, b->arena, "CMAKE_BUILD_PARALLEL_LEVEL", jobs);
	kvlist_set(&b->sandbox.env, b->arena, "CCACHE_PREFIX", has_spare(b) ? BACKEND_HEAP : "");
	write_pools(b, &heavy);
	if (b->q->shard && building_share(b, &heavy, &c.argv, e) < 0)
		return -1;
	if (b->pools.now.heavy_first && heavy.count) {
		const struct build_command first =
			building_command(b, heavy_argv(b, &heavy), "build, heavy units first");
		if (build_command_run(&first, b->pools.now.heavy > 1, b->run, ret, e) < 0)
			return -1;
		b->result.seconds += ret->seconds;
		if (ret->short_of_memory)
			return 0;
	}

	if (build_command_run(&c, b->pools.now.total > 1, b->run, ret, e) < 0)
		return -1;
	b->result.seconds += ret->seconds;
	return 0;
}

static void plan_jobs(struct building *b)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};

	if (has_ninja(b) && build_pools_fit(b->q, &b->pools, &e) < 0)
		log_warn(b->run->log, "%s: no job pools in build.ninja: %s", b->q->plan->package,
			 e.msg);
	learn_from_last_run(b);
	log_info(b->run->log,
		 "%s: %u job%s at once, heavy units %u, links %u%s; %s of memory free%s",
		 b->q->plan->package, b->pools.now.total, plural(b->pools.now.total),
		 b->pools.now.heavy, b->pools.now.link,
		 b->pools.now.heavy_first ? ", heavy units first" : "",
		 machine_memory_text(b->pools.memory, &a),
		 has_spare(b) ? ", enough for larger heaps" : "");
}

int building_compile(struct building *b, struct err *e)
{
	plan_jobs(b);
	for (;;) {
		struct build_outcome out;
		unsigned from = b->pools.now.total;
		if (attempt(b, &out, e) < 0)
			return -1;
		if (!out.short_of_memory)
			return 0;
		if (jobs_lower(&b->pools.now)) {
			add_reduction(b, from, b->pools.now.total, out.why);
		} else if (has_spare(b)) {
			/* One job at a time ran short of memory: it may fit with the usual heap. */
			const char *text = arena_printf(
				b->arena,
				"%s: memory ran short: once more, without larger heaps: %s",
				b->q->plan->package, out.why);
			b->state.lowered = b->tight = true;
			log_warn(b->run->log, "%s", text);
			note(b, arena_printf(b->arena, "ptbuild: %s\n", text));
		} else {
			const struct build_command c =
				building_command(b, b->backend->build, "build");
			return build_too_large(&c, out.why, b->pools.memory, e);
		}

		if (building_save(b, true, e) < 0)
			return -1;
	}
}
