/* What is left of a build: replays builds through the estimate and measures its errors, those of
 * the tables in profiles/weights on machines with other speeds and numbers of processors. With
 * arguments it prints the same of any log: test_step_pipeline_estimate WEIGHTS.tsv [NINJA_LOG] */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/pipeline/cost.h"

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

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct weight *)a)->path, ((const struct weight *)b)->path);
}

static int by_output(const void *a, const void *b)
{
	return strcmp(((const struct ninja_edge *)a)->output,
		      ((const struct ninja_edge *)b)->output);
}

static const char *rule_of(const char *path)
{
	return path_has_suffix(path, ".c.o")                        ? "C_COMPILER__x"
	       : path_has_suffix(path, ".o")                        ? "CXX_COMPILER__x"
	       : strstr(path, ".so") || path_has_suffix(path, ".a") ? "CXX_SHARED_LIBRARY_LINKER__x"
								    : "CUSTOM_COMMAND";
}

static void plan(struct estimate *x, const struct build *b, struct arena *a)
{
	struct ninja_edge *edges = arena_array(a, b->count, sizeof(*edges));

	for (size_t i = 0; i < b->count; i++)
		edges[i] = (struct ninja_edge){.output = b->units[i].path,
					       .rule = rule_of(b->units[i].path)};
	qsort(edges, b->count, sizeof(*edges), by_output);
	estimate_add(x, edges, b->count, true);
}

/* A look at what runs and what has ended. Scripts are not seen running. */
static struct estimate_view look(struct estimate *x, const struct build *b,
				 struct ninja_unit **ends, struct estimate_made *made,
				 size_t *ended, double now, double *ret_work)
{
	struct watch_running running[MAX_RUNNING];
	size_t n = 0;

	*ret_work = 0;
	for (; *ended < b->count && ends[*ended]->end <= now; (*ended)++)
		made[*ended] = (struct estimate_made){ends[*ended]->path,
						      ends[*ended]->end - ends[*ended]->start};
	for (size_t i = 0; i < b->count && b->units[i].start <= now; i++) {
		const struct ninja_unit *u = &b->units[i];
		*ret_work += fmin(u->end, now) - u->start;
		if (u->end > now && n < MAX_RUNNING &&
		    strcmp(rule_of(u->path), "CUSTOM_COMMAND") != 0)
			running[n++] = (struct watch_running){u->path, now - ceil(u->start)};
	}

	const struct estimate_look q = {
		made, *ended, running, n, (unsigned)*ended, (unsigned)b->count, now};
	return estimate_look(x, &q);
}

static struct errors replay(const struct build *b, const struct weights *w, bool trace)
{
	AUTO_ARENA struct arena a = {0};
	struct estimate *x = estimate_new(w, b->jobs, &a);
	struct ninja_unit **ends = arena_array(&a, b->count, sizeof(struct ninja_unit *));
	struct estimate_made *made = arena_array(&a, b->count, sizeof(*made));
	struct errors e = {0};
	double all = 0, next_trace = 0, work;
	size_t ended = 0, at = 0;

	for (size_t i = 0; i < b->count; i++) {
		ends[i] = &b->units[i];
		all += b->units[i].end - b->units[i].start;
	}

	qsort(ends, b->count, sizeof(*ends), by_end);
	plan(x, b, &a);
	/* In a build of hours a look at each second is far more than is needed to see the worst. */
	for (double now = 1; now < b->end; now += fmax(1, b->end / 2000)) {
		const struct estimate_view v = look(x, b, ends, made, &ended, now, &work);
		const double share = work / all, truth = b->end - now + w->after;
		const double error =
			v.seconds_left < 0 ? INFINITY : (v.seconds_left - truth) / truth;
		if (share >= looks[0] && share <= looks[LOOKS - 1] && fabs(error) > fabs(e.worst))
			e.worst = error;
		for (; at < LOOKS && share >= looks[at]; at++)
			e.at[at] = error;
		if (trace && now >= next_trace) {
			printf("%6.0f s %5.1f %% of the work, shown %5.1f %%, left %6.0f s, "
			       "%s%6.0f s %+4.0f %%\n",
			       now, 100 * share, v.percent, truth, v.about ? "about " : "",
			       v.seconds_left, 100 * error);
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
	double factor, sigma; /* of each unit's time: as the table has it, times factor, times
				 exp(normal * sigma) */
	bool shuffled;        /* else the heaviest first, then by path; libraries always last */
	bool measured;        /* each unit's time is known from an earlier build there */
	uint64_t seed;
};

struct rank {
	const struct weight *unit;
	double rank;
};

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
				  : strcmp(x->unit->path, y->unit->path);
}

static int heavier(const void *a, const void *b)
{
	const double x = ((const struct rank *)a)->unit->seconds,
		     y = ((const struct rank *)b)->unit->seconds;
	return (x < y) - (x > y);
}

/* The order in which a first build starts its commands. */
static struct rank *order(const struct weights *h, const struct machine *m, uint64_t *seed,
			  struct arena *a)
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
			    : path_has_suffix(r[i].unit->path, ".c.o") ||
					    strncmp(r[i].unit->path, "c10/", 4) == 0
				    ? -1.5
			    : i < HEAVY ? -1
					: 0;
	}

	qsort(r, h->count, sizeof(*r), by_rank);
	return r;
}

static struct build simulate(const struct weights *h, const struct machine *m, struct arena *a)
{
	struct build b = {.units = arena_array(a, h->count, sizeof(*b.units)), .jobs = m->jobs};
	double *slots = arena_array(a, m->jobs, sizeof(*slots));
	uint64_t seed = m->seed * 7919 + 17;
	const struct rank *r = order(h, m, &seed, a);

	memset(slots, 0, m->jobs * sizeof(*slots));
	for (; b.count < h->count; b.count++) {
		unsigned slot = 0;
		const double took =
			r[b.count].unit->seconds * m->factor * exp(normal_of(&seed) * m->sigma);
		for (unsigned i = 1; i < m->jobs; i++)
			slot = slots[i] < slots[slot] ? i : slot;
		const double start = r[b.count].rank == 2 ? fmax(slots[slot], b.end) : slots[slot];
		slots[slot] = start + fmax(took, 0.001);
		b.units[b.count] = (struct ninja_unit){
			.path = r[b.count].unit->path, .start = start, .end = slots[slot]};
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

/* What a list of this machine's own times would say:
 * those of the build itself, but for a tenth of noise. */
static struct weights measure(const struct build *b, const struct weights *w, struct arena *a)
{
	struct weights own = *w;
	struct weight *units = arena_array(a, b->count, sizeof(*units));
	uint64_t seed = 99;

	for (size_t i = 0; i < b->count; i++)
		units[i] = (struct weight){b->units[i].path, (b->units[i].end - b->units[i].start) *
								     exp(normal_of(&seed) * 0.1)};
	qsort(units, b->count, sizeof(*units), by_name);
	own.units = units;
	own.factor = 1;
	return own;
}

/* The worst of several seeds at each look. */
static struct errors on_machine(const struct weights *w, struct machine m, unsigned seeds)
{
	struct errors worst = {0};
	char what[64];

	for (m.seed = 1; m.seed <= seeds; m.seed++) {
		AUTO_ARENA struct arena a = {0};
		const struct build b = simulate(w, &m, &a);
		struct weights other = m.measured ? measure(&b, w, &a) : *w;
		other.after = 0;
		const struct errors e = replay(&b, &other, false);
		keep_worst(&worst, &e);
	}

	snprintf(what, sizeof(what), "%2u jobs, time x %.2f, sigma %.1f%s%s", m.jobs, m.factor,
		 m.sigma, m.shuffled ? ", shuffled" : "", m.measured ? ", measured" : "");
	print_errors(what, &worst);
	return worst;
}

static struct errors on_all_machines(const struct weights *w, unsigned seeds, bool measured)
{
	static const unsigned jobs[] = {1, 2, 4, 16, 32};
	static const double factors[] = {0.4, 1, 5};
	struct errors worst = {0};

	for (size_t j = 0; j < ARRAY_LEN(jobs); j++)
		for (size_t f = 0; f < ARRAY_LEN(factors); f++)
			for (int shuffled = 0; shuffled < 2; shuffled++) {
				const struct machine m = {jobs[j],  factors[f], 0.3,
							  shuffled, measured,   0};
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
			fail_msg("at %.0f %% of the work the time left is wrong by %+.0f %%",
				 100 * looks[i], 100 * e->at[i]);
}

/* The table of one machine on others: slower and faster, with few processors and many. With
 * 32 the longest unit, 143 s, is half of a build, and how long it takes here is the error. */
static void shipped_weights_hold_on_other_machines(void **state)
{
	static const struct machine machines[] = {{1, 5, 0.3, true, false, 0},
						  {2, 0.65, 0.3, false, false, 0},
						  {4, 5, 0.3, false, false, 0},
						  {24, 0.4, 0.3, true, false, 0}};
	AUTO_ARENA struct arena a = {0};
	struct weights w;

	(void)state;
	read_weights(PROFILES_DIR "/weights/pytorch-2.6.0-debian.tsv", &w, &a);
	assert_true(w.count > 750);
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		const struct errors e = on_machine(&w, machines[i], 2);
		assert_within(&e);
	}
}

/* ---- single cases ---- */

struct fixture {
	struct arena arena;
	struct weights weights;
	struct estimate *x;
	struct estimate_made made[1000];
	size_t count; /* of these */
	unsigned all;
	double now;
};

static struct fixture *fixture_new(void **state, unsigned count, double seconds, double first)
{
	static struct fixture f;
	struct ninja_edge edges[1000];

	(void)state;
	f = (struct fixture){.all = count};
	struct weight *units = arena_array(&f.arena, count + 1, sizeof(*units));
	for (unsigned i = 0; i < count; i++) {
		units[i] =
			(struct weight){arena_printf(&f.arena, "%03u.o", i), i ? seconds : first};
		edges[i] = (struct ninja_edge){.output = units[i].path,
					       .rule = i < 900 ? "CXX_COMPILER__a"
							       : "CUDA_COMPILER__b"};
	}

	f.weights = (struct weights){.units = units, .count = count, .factor = 1};
	f.x = estimate_new(&f.weights, 2, &f.arena);
	estimate_add(f.x, edges, count, true);
	return &f;
}

static void ended(struct fixture *f, unsigned unit, double seconds)
{
	f->made[f->count++] =
		(struct estimate_made){arena_printf(&f->arena, "%03u.o", unit), seconds};
}

static struct estimate_view view(struct fixture *f, const struct watch_running *running,
				 size_t count)
{
	const struct estimate_look q = {f->made, f->count, running, count, (unsigned)f->count,
					f->all,  f->now};
	return estimate_look(f->x, &q);
}

#define assert_near(x, want, by)                                                                   \
	do {                                                                                       \
		double x_ = (x);                                                                   \
		if (!(x_ > (want) - (by) && x_ < (want) + (by)))                                   \
			fail_msg("%s is %g, not %g +- %g", #x, x_, (double)(want), (double)(by));  \
	} while (0)

static void weight_counts_not_number(void **state)
{
	struct fixture *f = fixture_new(state, 100, 1, 901); /* one unit is nine tenths of all */

	assert_near(view(f, NULL, 0).seconds_left, 901, 10);
	for (unsigned i = 1; i < 100; i++)
		ended(f, i, 1);
	f->now = 50;
	struct estimate_view v = view(f, NULL, 0);
	assert_near(v.percent, 9.9, 0.5);
	assert_true(v.seconds_left > 800 && !v.about);
	ended(f, 0, 901);
	v = view(f, NULL, 0);
	assert_near(v.percent, 100, 0.01);
	assert_near(v.seconds_left, 0, 0.01);
	arena_release(&f->arena);
}

/* Ten minutes without a line, while one long unit
 * is made: the estimate goes down with the clock. */
static void one_long_unit_does_not_spoil_the_estimate(void **state)
{
	struct fixture *f = fixture_new(state, 11, 10, 700);
	double before = 1e9;

	for (unsigned i = 1; i < 11; i++)
		ended(f, i, 10);
	for (unsigned age = 100; age < 600; age++) {
		const struct watch_running making = {.path = "000.o", .age = age};
		f->now = age;
		const double left = view(f, &making, 1).seconds_left;
		assert_true(left <= before && left >= 0);
		before = left;
	}

	assert_near(before, 100, 30);
	arena_release(&f->arena);
}

/* Another GPU on the same processor: everything in C++ comes
 * from the compiler cache at once, the kernels do not. */
static void a_warm_cache_of_one_kind_says_nothing_of_the_others(void **state)
{
	struct fixture *f = fixture_new(state, 1000, 10, 10);

	for (unsigned i = 0; i < 800; i++)
		ended(f, i, 0.05);
	for (unsigned i = 900; i < 910; i++)
		ended(f, i, 10);
	f->now = 70;
	/* 90 of 10 s on two processors, and 100 of no time. */
	assert_near(view(f, NULL, 0).seconds_left, 450 + 5, 100);
	arena_release(&f->arena);
}

/* What came from the cache was fast; a unit that runs longer than
 * that says that the rest does not, and more so each that ends. */
static void a_cache_that_turns_cold_is_noticed(void **state)
{
	struct fixture *f = fixture_new(state, 800, 10, 10);

	for (unsigned i = 0; i < 400; i++)
		ended(f, i, 0.05);
	f->now = 20;
	const double warm = view(f, NULL, 0).seconds_left;
	const struct watch_running making[] = {{.path = "500.o", .age = 9},
					       {.path = "501.o", .age = 9}};
	assert_true(warm < 200);
	f->now = 30;
	assert_true(view(f, making, 2).seconds_left > 2 * warm);
	for (unsigned i = 400; i < 500; i++)
		ended(f, i, 10);
	f->now = 520;
	assert_near(view(f, NULL, 0).seconds_left, 1500, 450);
	arena_release(&f->arena);
}

static void what_an_earlier_run_made_is_not_left(void **state)
{
	struct fixture *f = fixture_new(state, 3, 10, 10);

	ended(f, 0, 10);
	estimate_before(f->x, f->made, 1);
	ended(f, 1, 10);
	assert_near(view(f, NULL, 0).percent, 50, 0.01);
	/* one command does not go on two processors */
	assert_near(view(f, NULL, 0).seconds_left, 10, 2);
	arena_release(&f->arena);
}

/* Two extensions, each with a ninja of its own: the second's commands are left from the start. */
static void what_later_runs_make_is_left(void **state)
{
	struct fixture *f = fixture_new(state, 20, 10, 10);
	struct ninja_edge edges[20];

	for (unsigned i = 0; i < 20; i++)
		edges[i] =
			(struct ninja_edge){.output = f->weights.units[i].path, .rule = "compile"};
	f->x = estimate_new(&f->weights, 2, &f->arena);
	estimate_add(f->x, edges, 10, false);
	f->all = 10;
	ended(f, 0, 10);
	f->now = 5;
	assert_near(view(f, NULL, 0).percent, 5, 0.1);
	assert_near(view(f, NULL, 0).seconds_left, 100, 10);
	for (unsigned i = 1; i < 10; i++)
		ended(f, i, 10);
	estimate_add(f->x, edges + 10, 10, false);
	ended(f, 10, 10);
	f->now = 55;
	assert_near(view(f, NULL, 0).percent, 55, 0.1);
	assert_near(view(f, NULL, 0).seconds_left, 50, 10);
	arena_release(&f->arena);
}

static void without_a_plan_it_is_by_number_and_about(void **state)
{
	struct fixture *f = fixture_new(state, 0, 0, 0);
	struct estimate_look q = {.done = 1, .all = 100, .seconds = 1};

	assert_true(estimate_look(f->x, &q).seconds_left < 0); /* too early to say */
	q = (struct estimate_look){.done = 50, .all = 100, .seconds = 100};
	const struct estimate_view v = estimate_look(f->x, &q);
	assert_true(v.about);
	assert_near(v.percent, 50, 0.01);
	assert_near(v.seconds_left, 100, 1);
	arena_release(&f->arena);
}

/* On a machine that nothing is known of, by the table and what runs. */
static void before_the_first_has_ended_the_table_says(void **state)
{
	struct fixture *f = fixture_new(state, 40, 60, 60);
	struct watch_running running[] = {{"000.o", 4}, {"001.o", 4}};

	f->weights.factor = 0;
	f->x = estimate_new(&f->weights, 2, &f->arena);
	estimate_add(f->x, NULL, 0, false);
	f->all = 0;
	f->now = 4;
	assert_true(view(f, running, 2).seconds_left < 0); /* too early to say */
	running[0].age = running[1].age = f->now = 30;
	const struct estimate_view v = view(f, running, 2);
	assert_true(v.about);
	assert_near(v.percent, 100.0 * 60 / 2400, 0.1);
	assert_near(v.seconds_left, 1170, 30);
	arena_release(&f->arena);
}

/* The first units take minutes where the table has seconds:
 * other things run there, and days left would be nonsense. */
static void a_machine_that_is_busy_says_nothing_at_first(void **state)
{
	struct fixture *f = fixture_new(state, 100, 5, 5);
	struct watch_running running[] = {{"000.o", 2}, {"001.o", 2}};

	f->now = 2;
	assert_near(view(f, running, 2).seconds_left, 250, 30);
	/* not the 24 hours of a machine that never ends one */
	running[0].age = running[1].age = f->now = 100;
	assert_near(view(f, running, 2).seconds_left, 4000, 2000);
	running[0].age = running[1].age = f->now = 900;
	assert_true(view(f, running, 2).seconds_left < 0);
	ended(f, 0, 900);
	ended(f, 1, 900);
	ended(f, 2, 900);
	assert_true(view(f, NULL, 0).seconds_left > 3600); /* it is as slow as that */
	arena_release(&f->arena);
}

/* Nothing is in any table: the commands are alike until this build says how long they take. */
static void what_nobody_knows_takes_what_it_takes(void **state)
{
	struct fixture *f = fixture_new(state, 17, 0, 0);

	f->weights = (struct weights){0};
	f->now = 40;
	for (unsigned i = 0; i < 4; i++)
		ended(f, i, 20);
	const struct estimate_view v = view(f, NULL, 0);
	assert_near(v.seconds_left, 13 * 20 / 2.0, 40);
	assert_true(v.about);
	arena_release(&f->arena);
}

/* The table has units that this variant does not make. */
static void a_plan_of_more_than_is_made_counts_in_part(void **state)
{
	struct fixture *f = fixture_new(state, 1000, 10, 10);

	f->all = 10;
	ended(f, 0, 10);
	f->now = 5;
	assert_near(view(f, NULL, 0).seconds_left, 45, 10);
	arena_release(&f->arena);
}

static void it_never_is_nonsense(void **state)
{
	struct fixture *f = fixture_new(state, 200, 0, 3000);
	unsigned seed = 7;

	for (unsigned i = 1; i <= 200; i++) {
		seed = seed * 1103515245 + 12345;
		const struct watch_running making[] = {{.path = "000.o", .age = i},
						       {.path = "unknown.o", .age = 1e9},
						       {.path = "199.o", .age = -5}};
		ended(f, seed % 250, seed % 3);
		f->now = i == 100 ? 0 : f->now + seed % 7; /* a clock that jumps */
		const struct estimate_view v = view(f, making, 3);
		assert_true(v.percent >= 0 && v.percent <= 100);
		assert_true(v.seconds_left <= 1e6);
		assert_true(v.seconds_left >= 0 || v.seconds_left == -1);
	}

	arena_release(&f->arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weight_counts_not_number),
		cmocka_unit_test(one_long_unit_does_not_spoil_the_estimate),
		cmocka_unit_test(a_warm_cache_of_one_kind_says_nothing_of_the_others),
		cmocka_unit_test(a_cache_that_turns_cold_is_noticed),
		cmocka_unit_test(what_an_earlier_run_made_is_not_left),
		cmocka_unit_test(what_later_runs_make_is_left),
		cmocka_unit_test(without_a_plan_it_is_by_number_and_about),
		cmocka_unit_test(before_the_first_has_ended_the_table_says),
		cmocka_unit_test(a_machine_that_is_busy_says_nothing_at_first),
		cmocka_unit_test(what_nobody_knows_takes_what_it_takes),
		cmocka_unit_test(a_plan_of_more_than_is_made_counts_in_part),
		cmocka_unit_test(it_never_is_nonsense),
		cmocka_unit_test(shipped_weights_hold_on_other_machines),
	};
	AUTO_ARENA struct arena a = {0};
	struct weights w;

	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	read_weights(argv[1], &w, &a);
	if (argc < 3) {
		on_all_machines(&w, 3, false);
		on_all_machines(&w, 3, true);
		return 0;
	}

	const struct build b = read_log(argv[2], &a);
	w.after = 0;
	const struct errors e = replay(&b, &w, true);
	print_errors(argv[2], &e);
	return 0;
}
