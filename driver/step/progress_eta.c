#include "step/progress_eta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_S 300.0 /* how long the pace remembers */
#define PRIOR_S 60.0   /* for how many seconds' worth the first guess counts */
#define FIRST_S 10.0   /* nothing is said earlier, unless earlier builds say it */
#define SURE 0.95      /* what is being made is not done before it is */
#define GAP_S 10.0     /* nobody looked for longer: the machine, or the build, was stopped, which says nothing of the pace */
#define MAX_KINDS 16

enum state { LEFT, MADE, NOT_HERE };

/* Commands of one rule of the build ("CUDA_COMPILER"), since what one such took says more of the next than the mean of all does. */
struct kind {
	const char *rule;
	size_t rule_len;
	double seconds; /* of those that are known, or were seen in this run */
	unsigned count;
	size_t left; /* those no earlier build knows */
};

/* A command that no earlier build knows. */
struct newcomer {
	const char *path;
	struct kind *kind;
	bool made;
	double age; /* when last seen */
};

struct eta {
	const struct history *known;
	struct arena *arena;
	unsigned char *states; /* of each known unit */
	double mean;           /* of the known units; 1 when there are none */
	double left_known;     /* work of the known units that are left */
	size_t left_count;
	struct newcomer *newcomers; /* sorted by path */
	size_t newcomer_count;
	struct kind kinds[MAX_KINDS];
	size_t kind_count;
	unsigned done, all;
	double made;       /* work done in this run */
	double now_making; /* work done of what is being made */
	double best;       /* the most that made + now_making has been */
	double pace_work, pace_time, updated, started;
};

static double weight(const struct eta *x, size_t i)
{
	return x->known->units[i].seconds > 0 ? x->known->units[i].seconds : x->mean;
}

/* The figures that depend on the states. */
static void add_up(struct eta *x)
{
	x->left_known = 0;
	x->left_count = 0;
	for (size_t i = 0; i < x->known->count; i++) {
		if (x->states[i] == LEFT) {
			x->left_known += weight(x, i);
			x->left_count++;
		}
	}
}

struct eta *eta_new(const struct history *known, struct arena *a)
{
	struct eta *x = arena_alloc(a, sizeof(*x));
	double sum = 0;
	size_t n = 0;
	x->known = known;
	x->arena = a;
	x->states = arena_array(a, known->count + 1, 1);
	for (size_t i = 0; i < known->count; i++) {
		sum += known->units[i].seconds;
		n += known->units[i].seconds > 0;
	}
	x->mean = n ? sum / (double)n : 1;
	add_up(x);
	return x;
}

static size_t index_of(const struct eta *x, const char *path)
{
	const struct history_unit *u = history_find(x->known, path);
	return u ? (size_t)(u - x->known->units) : (size_t)-1;
}

static double kind_weight(const struct eta *x, const struct kind *k)
{
	return k->count ? k->seconds / k->count : x->mean;
}

static void learn(struct kind *k, double seconds)
{
	k->seconds += seconds;
	k->count++;
}

/* CMake's rules are named KIND__TARGET. What is more than a few kinds goes with the last. */
static struct kind *kind_of(struct eta *x, const char *rule)
{
	const char *end = strstr(rule, "__");
	size_t len = end ? (size_t)(end - rule) : strlen(rule);
	for (size_t i = 0; i < x->kind_count; i++) {
		if (x->kinds[i].rule_len == len && strncmp(x->kinds[i].rule, rule, len) == 0)
			return &x->kinds[i];
	}
	if (x->kind_count == MAX_KINDS)
		return &x->kinds[MAX_KINDS - 1];
	x->kinds[x->kind_count] = (struct kind){.rule = arena_strdup(x->arena, rule), .rule_len = len};
	return &x->kinds[x->kind_count++];
}

static int order_newcomers(const void *a, const void *b)
{
	return strcmp(((const struct newcomer *)a)->path, ((const struct newcomer *)b)->path);
}

static struct newcomer *newcomer_find(const struct eta *x, const char *path)
{
	const struct newcomer key = {.path = path};
	return x->newcomer_count ? bsearch(&key, x->newcomers, x->newcomer_count, sizeof(key), order_newcomers) : NULL;
}

static void newcomer_made(struct newcomer *n)
{
	n->kind->left -= !n->made;
	n->made = true;
}

void eta_plan(struct eta *x, const struct ninja_edge *edges, size_t count, const struct ninja_log *made)
{
	for (size_t i = 0; i < x->known->count; i++)
		x->states[i] = NOT_HERE;
	x->newcomers = arena_array(x->arena, count + 1, sizeof(*x->newcomers));
	for (size_t i = 0; i < count; i++) {
		struct kind *kind = kind_of(x, edges[i].rule);
		size_t at = index_of(x, edges[i].output);
		if (at == (size_t)-1) {
			const char *path = arena_strdup(x->arena, edges[i].output);
			x->newcomers[x->newcomer_count++] = (struct newcomer){.path = path, .kind = kind};
			kind->left++;
		} else {
			x->states[at] = LEFT;
			if (x->known->units[at].seconds > 0)
				learn(kind, x->known->units[at].seconds);
		}
	}
	for (size_t i = 0; made && i < made->count; i++) {
		const char *output = made->entries[i].output;
		size_t at = index_of(x, output);
		struct newcomer *n = at == (size_t)-1 ? newcomer_find(x, output) : NULL;
		if (at != (size_t)-1)
			x->states[at] = MADE;
		else if (n)
			newcomer_made(n);
	}
	add_up(x);
}

static void begin_run(struct eta *x, unsigned all, double now, unsigned jobs)
{
	x->all = all;
	x->done = 0;
	x->made = x->now_making = x->best = 0;
	x->started = x->updated = now;
	/* Without earlier builds nothing is known of the pace. */
	x->pace_time = x->left_count ? PRIOR_S : 0;
	x->pace_work = x->pace_time * (jobs ? jobs : 1);
}

/* Notes that a unit is made; its work. */
static double known_made(struct eta *x, size_t at)
{
	if (x->states[at] != LEFT)
		return x->mean;
	x->states[at] = MADE;
	x->left_known = fmax(0, x->left_known - weight(x, at));
	x->left_count--;
	return weight(x, at);
}

static double new_made(const struct eta *x, struct newcomer *n)
{
	if (n->made)
		return x->mean;
	newcomer_made(n);
	if (n->age <= 0)
		return kind_weight(x, n->kind);
	learn(n->kind, n->age);
	return n->age;
}

/* The work of the unit that a line tells of. The line ends in the unit's name, whatever stands before it. */
static double told(struct eta *x, const char *line)
{
	for (const char *p = line; p; p = strchr(p, ' ')) {
		p += *p == ' ';
		size_t at = index_of(x, p);
		if (at != (size_t)-1)
			return known_made(x, at);
		struct newcomer *n = newcomer_find(x, p);
		if (n)
			return new_made(x, n);
	}
	return x->mean;
}

void eta_count(struct eta *x, unsigned done, unsigned all, const char *line, double now, unsigned jobs)
{
	if (all != x->all || done < x->done)
		begin_run(x, all, now, jobs);
	if (done <= x->done)
		return;
	x->made += told(x, line) + x->mean * (done - x->done - 1); /* of those between nothing was said */
	x->done = done;
}

/* What has been done of a unit that is being made. */
static double work_of(struct eta *x, const struct eta_making *making)
{
	size_t at = index_of(x, making->path);
	if (at != (size_t)-1)
		return x->states[at] == LEFT ? fmin(making->age, SURE * weight(x, at)) : 0;
	struct newcomer *n = newcomer_find(x, making->path);
	if (!n || n->made)
		return 0;
	n->age = fmax(0, making->age);
	return fmin(n->age, SURE * kind_weight(x, n->kind));
}

void eta_update(struct eta *x, const struct eta_making *making, size_t count, double now)
{
	if (!x->all)
		return;
	x->now_making = 0;
	for (size_t i = 0; i < count; i++)
		x->now_making += work_of(x, &making[i]);
	double work = x->made + x->now_making, passed = fmin(fmax(0, now - x->updated), GAP_S), fade = exp(-passed / MEMORY_S);
	x->pace_work = x->pace_work * fade + fmax(0, work - x->best);
	x->pace_time = x->pace_time * fade + passed;
	x->best = fmax(x->best, work);
	x->updated = now;
}

/* What `count` commands take that no earlier build knows. */
static double newcomers_left(const struct eta *x, double count)
{
	double work = 0, number = 0;
	for (size_t i = 0; i < x->kind_count; i++) {
		work += (double)x->kinds[i].left * kind_weight(x, &x->kinds[i]);
		number += (double)x->kinds[i].left;
	}
	return number > 0 ? work * count / number : count * x->mean;
}

/* Work that is left, by the units that are known and, for the others, by what their kind takes. */
static double left(const struct eta *x)
{
	double commands = x->all > x->done ? x->all - x->done : 0, known = (double)x->left_count;
	double work = known > commands ? x->left_known * commands / known : x->left_known + newcomers_left(x, commands - known);
	return fmax(0, work - x->now_making);
}

struct eta_view eta_look(const struct eta *x)
{
	double todo = left(x), work = x->made + x->now_making, elapsed = x->updated - x->started;
	struct eta_view v = {.seconds_left = -1, .about = x->left_count * 2 < x->all - x->done};
	if (x->known->count == 0)
		v.about = true;
	v.percent = work + todo > 0 ? 100 * work / (work + todo) : 0;
	if (x->all && x->pace_work > 0 && x->pace_time > 0 && (x->known->count || elapsed >= FIRST_S))
		v.seconds_left = todo / (x->pace_work / x->pace_time);
	return v;
}
