#include "step/pipeline/cost.h"

#include <math.h>

/* how long the number of jobs asked for counts; and an earlier build's speed */
#define PRIOR_S 60.0
/* how many seconds the speed of all commands counts for in that of a kind */
#define SHARED_S 2.0
#define FIRST_S 10.0    /* no estimate before, unless an earlier build's speed is known */
#define SURE_PERCENT 5  /* "about" before */
#define SHOWN_PERCENT 3 /* shown from here on at the latest */
/* so much slower than before, a machine is busy with other things: nothing is shown at first */
#define STALLED 0.1
#define LEAST_ENDED 0.2 /* not before so many percent of the work have ended */
#define SURE 0.95       /* a running command counts for at most this share of its usual time */
#define MEMORY 0.08     /* the speed is that of so much of a kind's work */
#define MEMORY_UNITS 8
#define LEAST_S 0.01
#define MAX_SLOTS 256

/* One kind may come from the compiler cache while
 * another is compiled, so each has its own speed. */
enum kind { HOST, DEVICE, OTHER, KINDS };

struct command {
	const char *path;
	enum kind kind;
	bool known;
	double seconds; /* by the table, its class, or 0: as the mean of its kind */
	bool before, ended;
	double age; /* running for so long; 0: not */
};

/* Work that was done in some time of one processor. */
struct pace {
	double work, time;
};

struct estimate {
	const struct weights *weights;
	struct arena *arena;
	struct command *commands; /* sorted by path */
	size_t count, cap;
	bool parts; /* several runs of ninja, one after the other */
	unsigned jobs;
	double mean[KINDS], total[KINDS];
	struct pace paces[KINDS];
	double ended, busy; /* in this run: work, and time of processors */
};

struct estimate *estimate_new(const struct weights *w, unsigned jobs, struct arena *a)
{
	struct estimate *x = arena_alloc(a, sizeof(*x));

	x->weights = w;
	x->arena = a;
	x->jobs = jobs;
	return x;
}

static struct command *find(const struct estimate *x, size_t count, const char *path)
{
	return text_find(path, x->commands, count, sizeof(*x->commands));
}

static double weight(const struct estimate *x, const struct command *c)
{
	return c->seconds > 0 ? c->seconds : x->mean[c->kind];
}

/* CMake's rules are named KIND__TARGET. */
static double class_of(const struct weights *w, const char *rule)
{
	for (size_t i = 0; i < w->classes_count; i++) {
		const size_t len = strlen(w->classes[i].rule);
		if (strncmp(rule, w->classes[i].rule, len) == 0 &&
		    (!rule[len] || strncmp(rule + len, "__", 2) == 0))
			return w->classes[i].seconds;
	}

	return 0;
}

static enum kind kind_of(const char *path, const char *rule)
{
	if (strstr(rule, "CUDA") || strstr(path, ".cu."))
		return DEVICE;
	return path_has_suffix(path, ".o") ? HOST : OTHER;
}

static void add(struct estimate *x, const char *path, const char *rule)
{
	x->commands =
		arena_room(x->arena, x->commands, x->count, &x->cap, 1024, sizeof(*x->commands));
	const double seconds = weights_find(x->weights, path);
	x->commands[x->count++] =
		(struct command){.path = arena_strdup(x->arena, path),
				 .kind = kind_of(path, rule),
				 .known = seconds > 0,
				 .seconds = seconds > 0 ? seconds : class_of(x->weights, rule)};
}

void estimate_add(struct estimate *x, const struct ninja_edge *edges, size_t count, bool whole)
{
	const struct weights *w = x->weights;

	if (!x->count && !whole)
		for (size_t i = 0; i < w->count; i++)
			add(x, w->units[i].path, "");
	const size_t had = x->count;
	for (size_t i = 0; i < count; i++)
		if (!find(x, had, edges[i].output))
			add(x, edges[i].output, edges[i].rule);
	x->parts = !whole;
	if (x->count > had)
		qsort(x->commands, x->count, sizeof(*x->commands), text_cmp);
	/* What is in no table counts as the mean of its
	 * kind, or of the units of the host's compiler. */
	double seconds[KINDS] = {0};
	size_t known[KINDS] = {0};
	memset(x->total, 0, sizeof(x->total));
	for (size_t i = 0; i < x->count; i++) {
		seconds[x->commands[i].kind] += x->commands[i].seconds;
		known[x->commands[i].kind] += x->commands[i].seconds > 0;
	}

	for (int k = 0; k < KINDS; k++)
		x->mean[k] = known[k] ? seconds[k] / (double)known[k] : k ? x->mean[HOST] : 1;
	for (size_t i = 0; i < x->count; i++)
		x->total[x->commands[i].kind] += weight(x, &x->commands[i]);
}

void estimate_before(struct estimate *x, const struct estimate_made *made, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct command *c = find(x, x->count, made[i].path);
		if (c)
			c->before = c->ended = true;
	}
}

/* The speed is remembered by work and not by time: on a slow machine a minute holds no command. */
static void end(struct estimate *x, struct command *c, double seconds)
{
	struct pace *p = &x->paces[c->kind];
	const double work = weight(x, c),
		     memory = fmax(MEMORY * x->total[c->kind], MEMORY_UNITS * x->mean[c->kind]);
	const double keep = exp(-work / memory);

	c->ended = true;
	p->work = p->work * keep + work;
	p->time = p->time * keep + fmax(seconds, LEAST_S);
	x->ended += work;
	x->busy += seconds;
}

/* Work done per second of a processor, with what runs
 * for longer than it should, as if it ended now. */
static void look_at_speed(const struct estimate *x, double speed[KINDS], double *ret_all)
{
	const double prior = x->weights->factor > 0 ? PRIOR_S : 1;
	struct pace all, late[KINDS];

	memcpy(late, x->paces, sizeof(late));
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; pass && i < x->count; i++) {
			const struct command *c = &x->commands[i];
			if (c->age <= weight(x, c) / speed[c->kind])
				continue;
			late[c->kind].work += SURE * weight(x, c);
			late[c->kind].time += c->age;
		}

		all = (struct pace){prior, prior};
		for (int k = 0; k < KINDS; k++) {
			all.work += late[k].work;
			all.time += late[k].time;
		}

		*ret_all = all.work / all.time;
		for (int k = 0; k < KINDS; k++)
			speed[k] = (late[k].work + SHARED_S * *ret_all) / (late[k].time + SHARED_S);
	}
}

/* How many processors are used: as many as were so far, at first as many as may. */
static unsigned processors(const struct estimate *x, double seconds)
{
	double busy = x->busy;

	for (size_t i = 0; i < x->count; i++)
		busy += x->commands[i].age;
	busy = (busy + PRIOR_S * x->jobs) / (fmax(seconds, 0) + PRIOR_S);
	return (unsigned)fmax(1, fmin(round(busy), fmin(x->jobs, MAX_SLOTS)));
}

struct left {
	double work, time; /* time: until the last command ends, on all processors */
	double running;    /* work of what is running that is done */
	size_t count, known;
};

/* A list schedule: what is running has begun first, the others follow in the
 * order of their paths, which is any. The last commands leave processors idle. */
static struct left schedule(const struct estimate *x, const double speed[KINDS], unsigned count)
{
	double slots[MAX_SLOTS] = {0};
	struct left l = {0};

	for (int running = 1; running >= 0; running--)
		for (size_t i = 0; i < x->count; i++) {
			const struct command *c = &x->commands[i];
			if (c->ended || (c->age > 0) != running)
				continue;
			const double all = weight(x, c),
				     done = fmin(c->age * speed[c->kind], SURE * all);
			unsigned slot = 0;
			for (unsigned k = 1; k < count && slots[slot] > 0; k++)
				slot = slots[k] < slots[slot] ? k : slot;
			slots[slot] += (all - done) / speed[c->kind];
			l.time = fmax(l.time, slots[slot]);
			l.work += all - done;
			l.running += done;
			l.count++;
			l.known += c->known;
		}
	return l;
}

struct estimate_view estimate_look(struct estimate *x, const struct estimate_look *q)
{
	const double commands = q->all > q->done ? q->all - q->done : 0;
	double speed[KINDS], speed_of_all;
	struct estimate_view v = {.seconds_left = -1, .about = true};

	for (size_t i = 0; i < q->made_count; i++) {
		struct command *c = find(x, x->count, q->made[i].path);
		if (c && !c->ended)
			end(x, c, q->made[i].seconds);
	}

	for (size_t i = 0; i < x->count; i++)
		x->commands[i].age = 0;
	for (size_t i = 0; i < q->running_count; i++) {
		struct command *c = find(x, x->count, q->running[i].path);
		if (c && !c->ended)
			c->age = fmax(q->running[i].age, LEAST_S);
	}

	x->jobs = q->running_count > x->jobs ? (unsigned)q->running_count : x->jobs;
	if (!x->count) {
		v.percent = q->all ? 100.0 * q->done / q->all : 0;
		if (q->done && q->seconds >= FIRST_S)
			v.seconds_left = q->seconds * commands / q->done;
		return v;
	}

	if (x->parts && !x->weights->count) /* how many follow is not known */
		return v;
	look_at_speed(x, speed, &speed_of_all);
	const struct left l = schedule(x, speed, processors(x, q->seconds));
	/* A plan has more than this run makes. */
	const double share =
		q->all && !x->parts && (double)l.count > commands ? commands / (double)l.count : 1;
	const double done = x->ended + l.running, todo = l.work * share,
		     all = fmax(done + todo, LEAST_S);
	v.percent = todo > 0 ? 100 * done / all : 100;
	v.about = l.known * 2 < l.count || v.percent < SURE_PERCENT;
	/* Is there enough to go by? Nearly all is done,
	 * earlier builds gave a factor, or enough ended. */
	const bool stalled = speed_of_all < STALLED;
	const bool mostly_known = !q->all && l.known * 2 >= l.count;
	const bool enough_ended = 100 * x->ended / all >= LEAST_ENDED || mostly_known;
	const bool has_basis = x->weights->factor > 0 || (q->seconds >= FIRST_S && enough_ended);
	if (v.percent >= SHOWN_PERCENT || (!stalled && has_basis))
		v.seconds_left = l.time * share + x->weights->after / speed_of_all;
	return v;
}
