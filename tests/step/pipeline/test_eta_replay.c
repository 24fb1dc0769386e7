/* Replays builds through the estimate of the time left and measures its errors: the recorded ones of tests/data/eta,
 * and those of the tables in profiles/weights on machines with other speeds and numbers of processors. With arguments
 * it prints the same of any log: test_step_pipeline_eta_replay WEIGHTS.tsv [NINJA_LOG] */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/pipeline/progress_eta.h"

#define MAX_RUNNING 256
#define HEAVY 30 /* so many units a first build begins with, since they need much memory */
#define BOUND 0.30

static const double looks[] = {0.05, 0.20, 0.50, 0.80};
#define LOOKS ARRAY_LEN(looks)

struct build {
	struct ninja_unit *units; /* sorted by start */
	size_t count;
	double end;
	unsigned jobs;
};

struct errors {
	double at[LOOKS]; /* (estimate - truth) / truth; infinite: nothing was shown */
	double worst;     /* of all seconds from the first look to the last */
};

static int by_end(const void *a, const void *b)
{
	double x = (*(struct ninja_unit *const *)a)->end, y = (*(struct ninja_unit *const *)b)->end;
	return (x > y) - (x < y);
}

static int by_output(const void *a, const void *b)
{
	return strcmp(((const struct ninja_edge *)a)->output, ((const struct ninja_edge *)b)->output);
}

static const char *rule_of(const char *path)
{
	return path_has_suffix(path, ".c.o")                        ? "C_COMPILER__x"
	       : path_has_suffix(path, ".o")                        ? "CXX_COMPILER__x"
	       : strstr(path, ".so") || path_has_suffix(path, ".a") ? "CXX_SHARED_LIBRARY_LINKER__x"
								    : "CUSTOM_COMMAND";
}

static void plan(struct eta *x, const struct build *b, struct arena *a)
{
	struct ninja_edge *edges = arena_array(a, b->count, sizeof(*edges));
	for (size_t i = 0; i < b->count; i++)
		edges[i] = (struct ninja_edge){.output = b->units[i].path, .rule = rule_of(b->units[i].path)};
	qsort(edges, b->count, sizeof(*edges), by_output);
	eta_plan(x, edges, b->count, NULL, true);
}

/* What has ended between two looks, as ninja's lines tell it: those of scripts name no output. */
static void tell_ended(struct eta *x, const struct build *b, struct ninja_unit **ends, size_t *ended, double now)
{
	for (; *ended < b->count && ends[*ended]->end <= now; (*ended)++) {
		const struct ninja_unit *u = ends[*ended];
		const char *line = strcmp(rule_of(u->path), "CUSTOM_COMMAND") == 0 ? "python3 -m gen" : u->path;
		eta_count(x, (unsigned)*ended + 1, (unsigned)b->count, line, u->end, b->jobs);
	}
}

/* A look a second at what runs. Returns how much work is done. */
static double look(struct eta *x, const struct build *b, double now)
{
	struct watch_running running[MAX_RUNNING];
	double done = 0;
	size_t n = 0;
	for (size_t i = 0; i < b->count && b->units[i].start <= now; i++) {
		const struct ninja_unit *u = &b->units[i];
		done += fmin(u->end, now) - u->start;
		if (u->end > now && n < MAX_RUNNING && strcmp(rule_of(u->path), "CUSTOM_COMMAND") != 0)
			running[n++] = (struct watch_running){u->path, now - ceil(u->start)};
	}
	eta_update(x, running, n, now);
	return done;
}

static struct errors replay(const struct build *b, const struct weights *w, bool trace)
{
	AUTO_ARENA struct arena a = {0};
	struct eta *x = eta_new(w, &a);
	struct ninja_unit **ends = arena_array(&a, b->count, sizeof(struct ninja_unit *));
	struct errors e = {0};
	double work = 0, next_trace = 0;
	size_t ended = 0, at = 0;
	for (size_t i = 0; i < b->count; i++) {
		ends[i] = &b->units[i];
		work += b->units[i].end - b->units[i].start;
	}
	qsort(ends, b->count, sizeof(*ends), by_end);
	plan(x, b, &a);
	for (double now = 1; now < b->end; now++) {
		tell_ended(x, b, ends, &ended, now);
		const double share = look(x, b, now) / work, truth = b->end - now + w->after;
		const struct eta_view v = eta_look(x);
		const double error = v.seconds_left < 0 ? INFINITY : (v.seconds_left - truth) / truth;
		if (share >= looks[0] && share <= looks[LOOKS - 1] && fabs(error) > fabs(e.worst))
			e.worst = error;
		for (; at < LOOKS && share >= looks[at]; at++)
			e.at[at] = error;
		if (trace && now >= next_trace) {
			printf("%6.0f s %5.1f %% of the work, shown %5.1f %%, left %6.0f s, %s%6.0f s %+4.0f %%\n", now,
			       100 * share, v.percent, truth, v.about ? "about " : "", v.seconds_left, 100 * error);
			next_trace = now + b->end / 40;
		}
	}
	return e;
}

static double random_of(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(*seed >> 33) + 0.5) / (double)(UINT64_C(1) << 31);
}

static double normal_of(uint64_t *seed)
{
	double u = random_of(seed), v = random_of(seed);
	return sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
}

struct machine {
	unsigned jobs;
	double factor, sigma; /* of each unit's time: as the table has it, times factor, times exp(normal * sigma) */
	bool shuffled;        /* else the heaviest first, then by path; libraries always last */
	uint64_t seed;
};

struct rank {
	const struct history_unit *unit;
	double rank;
};

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : strcmp(x->unit->path, y->unit->path);
}

static int heavier(const void *a, const void *b)
{
	const double x = ((const struct rank *)a)->unit->seconds, y = ((const struct rank *)b)->unit->seconds;
	return (x < y) - (x > y);
}

/* The order in which a first build starts its commands. */
static struct rank *order(const struct history *h, const struct machine *m, uint64_t *seed, struct arena *a)
{
	struct rank *r = arena_array(a, h->count, sizeof(*r));
	for (size_t i = 0; i < h->count; i++)
		r[i].unit = &h->units[i];
	qsort(r, h->count, sizeof(*r), heavier);
	for (size_t i = 0; i < h->count; i++) {
		const char *rule = rule_of(r[i].unit->path);
		r[i].rank = strcmp(rule, "CUSTOM_COMMAND") == 0 ? -2
			    : strstr(rule, "LINKER")            ? 2
			    : m->shuffled                       ? random_of(seed)
			    : path_has_suffix(r[i].unit->path, ".c.o") || strncmp(r[i].unit->path, "c10/", 4) == 0
				    ? -1.5
			    : i < HEAVY ? -1
					: 0;
	}
	qsort(r, h->count, sizeof(*r), by_rank);
	return r;
}

static struct build simulate(const struct history *h, const struct machine *m, struct arena *a)
{
	struct build b = {.units = arena_array(a, h->count, sizeof(*b.units)), .jobs = m->jobs};
	double *slots = arena_array(a, m->jobs, sizeof(*slots));
	uint64_t seed = m->seed * 7919 + 17;
	const struct rank *r = order(h, m, &seed, a);
	memset(slots, 0, m->jobs * sizeof(*slots));
	for (; b.count < h->count; b.count++) {
		unsigned slot = 0;
		const double took = r[b.count].unit->seconds * m->factor * exp(normal_of(&seed) * m->sigma);
		for (unsigned i = 1; i < m->jobs; i++)
			slot = slots[i] < slots[slot] ? i : slot;
		const double start = r[b.count].rank == 2 ? fmax(slots[slot], b.end) : slots[slot];
		slots[slot] = start + fmax(took, 0.001);
		b.units[b.count] =
			(struct ninja_unit){.path = r[b.count].unit->path, .start = start, .end = slots[slot]};
		b.end = fmax(b.end, slots[slot]);
	}
	ninja_units_sort(b.units, b.count);
	return b;
}

static void read_weights(const char *path, struct weights *ret, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	struct err e = {0};
	if (fs_read(TRUSTED, path, UINT64_C(1) << 24, &text, &e) < 0 ||
	    weights_parse(buf_cstr(&text), text.len, path, 0, a, ret, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
}

static struct build read_log(const char *path, struct arena *a)
{
	struct build b = {0};
	struct ninja_log log;
	struct err e = {0};
	if (ninja_log_read(path_dir(a, path), path_base(path), a, &log, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	for (size_t i = 0; i < log.count; i++)
		log.entries[i].mtime = 0; /* all of one run */
	ninja_log_units(&log, a, &b.units, &b.count);
	double work = 0;
	const double start = b.units[0].start;
	for (size_t i = 0; i < b.count; i++) {
		b.units[i].start -= start;
		b.units[i].end -= start;
		b.end = fmax(b.end, b.units[i].end);
		work += b.units[i].end - b.units[i].start;
	}
	b.jobs = (unsigned)fmax(1, round(work / b.end));
	return b;
}

static void print_errors(const char *what, const struct errors *e)
{
	printf("%-40s", what);
	for (size_t i = 0; i < LOOKS; i++)
		printf(" %2.0f%%: %+4.0f%%", 100 * looks[i], 100 * e->at[i]);
	printf("  worst between: %+.0f%%\n", 100 * e->worst);
}

static void keep_worst(struct errors *worst, const struct errors *e)
{
	for (size_t i = 0; i < LOOKS; i++)
		worst->at[i] = fabs(e->at[i]) > fabs(worst->at[i]) ? e->at[i] : worst->at[i];
	worst->worst = fabs(e->worst) > fabs(worst->worst) ? e->worst : worst->worst;
}

/* The worst of several seeds at each look. */
static struct errors on_machine(const struct weights *w, struct machine m, unsigned seeds)
{
	struct errors worst = {0};
	char what[64];
	for (m.seed = 1; m.seed <= seeds; m.seed++) {
		AUTO_ARENA struct arena a = {0};
		const struct build b = simulate(w->units, &m, &a);
		struct weights other = *w;
		other.after = 0;
		const struct errors e = replay(&b, &other, false);
		keep_worst(&worst, &e);
	}
	snprintf(what, sizeof(what), "%2u jobs, time x %.2f, sigma %.1f%s", m.jobs, m.factor, m.sigma,
		 m.shuffled ? ", shuffled" : "");
	print_errors(what, &worst);
	return worst;
}

static struct errors on_all_machines(const struct weights *w, unsigned seeds)
{
	static const unsigned jobs[] = {1, 2, 4, 16, 32};
	static const double factors[] = {0.4, 1, 5};
	struct errors worst = {0};
	for (size_t j = 0; j < ARRAY_LEN(jobs); j++)
		for (size_t f = 0; f < ARRAY_LEN(factors); f++)
			for (int shuffled = 0; shuffled < 2; shuffled++) {
				const struct machine m = {jobs[j], factors[f], 0.3, shuffled, 0};
				const struct errors e = on_machine(w, m, seeds);
				keep_worst(&worst, &e);
			}
	print_errors("worst", &worst);
	return worst;
}

static void assert_within(const struct errors *e)
{
	for (size_t i = 0; i < LOOKS; i++)
		if (!(fabs(e->at[i]) <= BOUND))
			fail_msg("at %.0f %% of the work the time left is wrong by %+.0f %%", 100 * looks[i],
				 100 * e->at[i]);
}

/* The table of one machine on others: slower and faster, with few processors and many. */
static void shipped_weights_hold_on_other_machines(void **state)
{
	static const struct machine machines[] = {
		{1, 5, 0.3, true, 0}, {2, 0.65, 0.3, false, 0}, {4, 5, 0.3, false, 0}, {32, 0.4, 0.3, true, 0}};
	AUTO_ARENA struct arena a = {0};
	struct weights w;
	(void)state;
	read_weights(PROFILES_DIR "/weights/pytorch-2.6.0-debian.tsv", &w, &a);
	assert_true(w.units->count > 1500);
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		const struct errors e = on_machine(&w, machines[i], 2);
		assert_within(&e);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_weights_hold_on_other_machines),
	};
	AUTO_ARENA struct arena a = {0};
	struct weights w;
	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	read_weights(argv[1], &w, &a);
	if (argc < 3) {
		on_all_machines(&w, 3);
		return 0;
	}
	const struct build b = read_log(argv[2], &a);
	w.after = 0;
	const struct errors e = replay(&b, &w, true);
	print_errors(argv[2], &e);
	return 0;
}
