#include "step/pipeline/progress_eta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_S 300.0 /* how long a pace remembers */
#define PRIOR_S 60.0   /* for how many seconds' worth the first guess counts */
#define FIRST_S 10.0   /* nothing is said earlier, unless earlier builds say it */
#define SURE 0.95      /* what is being made is not done before it is */
#define GAP_S                                                                                                          \
	10.0 /* nobody looked for longer: the machine, or the build, was stopped, which says nothing of the pace */
#define LEAST_S 0.01 /* what a command takes of a processor at least */
#define MAX_KINDS 16

enum state { LEFT, MADE, NOT_HERE };

/* Commands of one rule of the build ("CUDA_COMPILER"): what one such took says more of the next than the mean of all
 * does, and one kind may come from the compiler cache while another is compiled, so each has its own pace. */
struct kind {
	const char *rule;
	size_t rule_len;
	double seconds; /* of those that are known, or were seen in this run */
	unsigned count;
	size_t new_left;             /* those no earlier build knows */
	double known_left;           /* work of the others */
	double made;                 /* work done in this run */
	double now_making;           /* work done of what is being made */
	double best;                 /* the most that made + now_making has been */
	unsigned making;             /* being made when last looked */
	double unseen;               /* commands ended since then that nobody saw being made */
	double pace_work, pace_time; /* work, and seconds of one processor */
};

struct unit {
	enum state state;
	bool seen; /* being made */
	struct kind *kind;
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
	struct unit *units; /* the known ones */
	double mean;        /* of them; 1 when there are none */
	size_t left_count;
	struct newcomer *newcomers; /* sorted by path */
	size_t newcomer_count;
	struct kind kinds[MAX_KINDS]; /* the first is that of commands of which nothing is known */
	size_t kind_count;
	unsigned done, all, jobs;
	double idle; /* time of processors that nothing has answered for yet */
	double updated, started;
};

static double weight(const struct eta *x, size_t i)
{
	return x->known->units[i].seconds > 0 ? x->known->units[i].seconds : x->mean;
}

/* The figures that depend on the states. */
static void add_up(struct eta *x)
{
	x->left_count = 0;
	for (size_t i = 0; i < x->kind_count; i++)
		x->kinds[i].known_left = 0;
	for (size_t i = 0; i < x->known->count; i++) {
		if (x->units[i].state != LEFT)
			continue;
		x->units[i].kind->known_left += weight(x, i);
		x->left_count++;
	}
}

struct eta *eta_new(const struct history *known, struct arena *a)
{
	struct eta *x = arena_alloc(a, sizeof(*x));
	double sum = 0;
	size_t n = 0;
	x->known = known;
	x->arena = a;
	x->units = arena_array(a, known->count + 1, sizeof(*x->units));
	x->kind_count = 1;
	x->kinds[0].rule = "";
	for (size_t i = 0; i < known->count; i++) {
		x->units[i].kind = &x->kinds[0];
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
	n->kind->new_left -= !n->made;
	n->made = true;
}

void eta_plan(struct eta *x, const struct ninja_edge *edges, size_t count, const struct ninja_log *made)
{
	for (size_t i = 0; i < x->known->count; i++)
		x->units[i].state = NOT_HERE;
	x->newcomers = arena_array(x->arena, count + 1, sizeof(*x->newcomers));
	for (size_t i = 0; i < count; i++) {
		struct kind *kind = kind_of(x, edges[i].rule);
		size_t at = index_of(x, edges[i].output);
		if (at == (size_t)-1) {
			const char *path = arena_strdup(x->arena, edges[i].output);
			x->newcomers[x->newcomer_count++] = (struct newcomer){.path = path, .kind = kind};
			kind->new_left++;
		} else {
			x->units[at] = (struct unit){.state = LEFT, .kind = kind};
			if (x->known->units[at].seconds > 0)
				learn(kind, x->known->units[at].seconds);
		}
	}
	for (size_t i = 0; made && i < made->count; i++) {
		const char *output = made->entries[i].output;
		size_t at = index_of(x, output);
		struct newcomer *n = at == (size_t)-1 ? newcomer_find(x, output) : NULL;
		if (at != (size_t)-1)
			x->units[at].state = MADE;
		else if (n)
			newcomer_made(n);
	}
	add_up(x);
}

static void begin_run(struct eta *x, unsigned all, double now, unsigned jobs)
{
	x->all = all;
	x->done = 0;
	x->jobs = jobs ? jobs : 1;
	x->idle = 0;
	x->started = x->updated = now;
	for (size_t i = 0; i < x->kind_count; i++) {
		struct kind *k = &x->kinds[i];
		k->made = k->now_making = k->best = k->unseen = 0;
		k->making = 0;
		/* Without earlier builds nothing is known of the pace. */
		k->pace_work = k->pace_time = x->left_count ? PRIOR_S * x->jobs : 0;
	}
}

/* Notes that a unit is made. */
static void known_made(struct eta *x, size_t at)
{
	struct unit *u = &x->units[at];
	u->kind->unseen += !u->seen;
	u->kind->made += u->state == LEFT ? weight(x, at) : x->mean;
	if (u->state == LEFT) {
		u->kind->known_left = fmax(0, u->kind->known_left - weight(x, at));
		x->left_count--;
		u->state = MADE;
	}
}

static void new_made(const struct eta *x, struct newcomer *n)
{
	n->kind->unseen += n->age <= 0;
	if (n->made) {
		n->kind->made += x->mean;
	} else if (n->age <= 0) {
		n->kind->made += kind_weight(x, n->kind);
	} else {
		n->kind->made += n->age;
		learn(n->kind, n->age);
	}
	newcomer_made(n);
}

static void nameless_made(struct eta *x, unsigned count)
{
	x->kinds[0].made += x->mean * count;
	x->kinds[0].unseen += count;
}

/* False for a name of nothing that is built. */
static bool named(struct eta *x, const char *path)
{
	size_t at = index_of(x, path);
	struct newcomer *n = at == (size_t)-1 ? newcomer_find(x, path) : NULL;
	if (at != (size_t)-1)
		known_made(x, at);
	else if (n)
		new_made(x, n);
	return at != (size_t)-1 || n;
}

/* Finds the unit that a line tells of. The line ends in the unit's name, whatever stands before it. */
static void told(struct eta *x, const char *line)
{
	for (const char *p = line; p; p = strchr(p, ' ')) {
		p += *p == ' ';
		if (named(x, p))
			return;
	}
	nameless_made(x, 1);
}

void eta_count(struct eta *x, unsigned done, unsigned all, const char *line, double now, unsigned jobs)
{
	if (all != x->all || done < x->done)
		begin_run(x, all, now, jobs);
	/* The first commands are told of before as many run as may. */
	if (jobs > x->jobs)
		x->jobs = jobs;
	if (done <= x->done)
		return;
	told(x, line);
	nameless_made(x, done - x->done - 1); /* of those between nothing was said */
	x->done = done;
}

/* What has been done of a unit that is being made; whose kind it is. */
static struct kind *look_at(struct eta *x, const struct eta_making *making, double *work)
{
	size_t at = index_of(x, making->path);
	if (at != (size_t)-1) {
		x->units[at].seen = true;
		*work = x->units[at].state == LEFT ? fmax(0, fmin(making->age, SURE * weight(x, at))) : 0;
		return x->units[at].kind;
	}
	struct newcomer *n = newcomer_find(x, making->path);
	if (!n) {
		*work = fmax(0, fmin(making->age, SURE * x->mean));
		return &x->kinds[0];
	}
	if (n->made)
		return NULL;
	n->age = fmax(0, making->age);
	*work = fmin(n->age, SURE * kind_weight(x, n->kind));
	return n->kind;
}

/* The pace of a kind that had `time` seconds of a processor. */
static void keep_pace(struct kind *k, double time, double passed)
{
	double work = k->made + k->now_making, fade = exp(-passed / MEMORY_S);
	if (time > 0 || work > k->best) {
		k->pace_work = k->pace_work * fade + fmax(0, work - k->best);
		k->pace_time = k->pace_time * fade + time;
	}
	k->best = fmax(k->best, work);
	k->unseen = 0;
}

void eta_update(struct eta *x, const struct eta_making *making, size_t count, double now)
{
	unsigned busy = 0;
	double unseen = 0, passed = fmin(fmax(0, now - x->updated), GAP_S);
	if (!x->all)
		return;
	for (size_t i = 0; i < x->kind_count; i++) {
		x->kinds[i].now_making = 0;
		x->kinds[i].making = 0;
		unseen += x->kinds[i].unseen;
	}
	for (size_t i = 0; i < count; i++) {
		double work = 0;
		struct kind *k = look_at(x, &making[i], &work);
		if (!k)
			continue;
		k->now_making += work;
		k->making++;
		busy++;
	}
	if (busy > x->jobs)
		x->jobs = busy;
	/* The processors' time is that of what was seen, and of what came and went between two looks. */
	x->idle += busy < x->jobs ? passed * (x->jobs - busy) : 0;
	for (size_t i = 0; i < x->kind_count; i++) {
		struct kind *k = &x->kinds[i];
		double came_and_went = unseen > 0 ? fmax(x->idle * k->unseen / unseen, LEAST_S * k->unseen) : 0;
		keep_pace(k, passed * k->making + came_and_went, passed);
	}
	if (unseen > 0)
		x->idle = 0;
	x->updated = now;
}

/* What is left of a kind: of the known units a share of `known`, of the others one of `unknown`. */
static double left_of(const struct eta *x, const struct kind *k, double known, double unknown)
{
	double work = k->known_left * known + (double)k->new_left * kind_weight(x, k) * unknown;
	return fmax(0, work - k->now_making);
}

struct eta_view eta_look(const struct eta *x)
{
	double commands = x->all > x->done ? x->all - x->done : 0, known = (double)x->left_count, unknown = 0;
	double todo = 0, time = 0, made = 0, pace_work = 0, pace_time = 0, elapsed = x->updated - x->started;
	struct eta_view v = {.seconds_left = -1, .about = x->left_count * 2 < x->all - x->done};
	if (x->known->count == 0)
		v.about = true;
	for (size_t i = 0; i < x->kind_count; i++) {
		unknown += (double)x->kinds[i].new_left;
		pace_work += x->kinds[i].pace_work;
		pace_time += x->kinds[i].pace_time;
	}
	/* More are known than this run makes, or fewer: then the others are of the kinds that the plan names, or of
	 * none. */
	double share = known > commands ? commands / known : 1, rest = fmax(0, commands - known),
	       of_rest = unknown > 0 ? rest / unknown : 0;
	for (size_t i = 0; i < x->kind_count; i++) {
		const struct kind *k = &x->kinds[i];
		double work = left_of(x, k, share, of_rest) + (i == 0 && unknown <= 0 ? rest * x->mean : 0);
		/* A kind of which nothing was made yet goes at the pace of all. */
		double pace = k->pace_work > 0 && k->pace_time > 0 ? k->pace_work / k->pace_time
			      : pace_time > 0                      ? pace_work / pace_time
								   : 0;
		todo += work;
		made += k->made + k->now_making;
		time += pace > 0 ? work / pace : 0;
	}
	v.percent = made + todo > 0 ? 100 * made / (made + todo) : 0;
	if (x->all && pace_work > 0 && pace_time > 0 && (x->known->count || elapsed >= FIRST_S))
		v.seconds_left = time / x->jobs;
	return v;
}
