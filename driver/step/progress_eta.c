#include "step/progress_eta.h"

#include <math.h>
#include <string.h>

#define MEMORY_S 300.0 /* how long the pace remembers */
#define PRIOR_S 60.0   /* for how many seconds' worth the first guess counts */
#define FIRST_S 10.0   /* nothing is said earlier, unless earlier builds say it */
#define SURE 0.95      /* what is being made is not done before it is */
#define GAP_S 10.0     /* nobody looked for longer: the machine, or the build, was stopped, which says nothing of the pace */

enum state { LEFT, MADE, NOT_HERE };

struct eta {
	const struct history *known;
	unsigned char *states; /* of each known unit */
	double mean;           /* of the known units; 1 when there are none */
	double left_known;     /* work of the known units that are left */
	size_t left_count;
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

void eta_plan(struct eta *x, const struct ninja_edge *edges, size_t count, const struct ninja_log *made)
{
	for (size_t i = 0; i < x->known->count; i++)
		x->states[i] = ninja_build_find(edges, count, x->known->units[i].path) ? LEFT : NOT_HERE;
	for (size_t i = 0; made && i < made->count; i++) {
		size_t at = index_of(x, made->entries[i].output);
		if (at != (size_t)-1)
			x->states[at] = MADE;
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

/* A line ends in the unit's name, whatever stands before it. */
static size_t named_unit(const struct eta *x, const char *line)
{
	for (const char *p = line; p; p = strchr(p, ' ')) {
		p += *p == ' ';
		size_t at = index_of(x, p);
		if (at != (size_t)-1)
			return at;
	}
	return (size_t)-1;
}

void eta_count(struct eta *x, unsigned done, unsigned all, const char *line, double now, unsigned jobs)
{
	if (all != x->all || done < x->done)
		begin_run(x, all, now, jobs);
	if (done <= x->done)
		return;
	size_t at = named_unit(x, line);
	if (at != (size_t)-1 && x->states[at] == LEFT) {
		x->states[at] = MADE;
		x->made += weight(x, at);
		x->left_known = fmax(0, x->left_known - weight(x, at));
		x->left_count--;
	} else {
		x->made += x->mean;
	}
	x->made += x->mean * (done - x->done - 1); /* of those nothing was said */
	x->done = done;
}

void eta_update(struct eta *x, const struct eta_making *making, size_t count, double now)
{
	if (!x->all)
		return;
	x->now_making = 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = index_of(x, making[i].path);
		if (at != (size_t)-1 && x->states[at] == LEFT)
			x->now_making += fmin(making[i].age, SURE * weight(x, at));
	}
	double work = x->made + x->now_making, passed = fmin(fmax(0, now - x->updated), GAP_S), fade = exp(-passed / MEMORY_S);
	x->pace_work = x->pace_work * fade + fmax(0, work - x->best);
	x->pace_time = x->pace_time * fade + passed;
	x->best = fmax(x->best, work);
	x->updated = now;
}

/* Work that is left, by the units that are known and the mean of them for the others. */
static double left(const struct eta *x)
{
	double commands = x->all > x->done ? x->all - x->done : 0, known = (double)x->left_count;
	double work = known > commands ? x->left_known * commands / known : x->left_known + (commands - known) * x->mean;
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
