#include "step/pipeline/progress_eta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_S 300.0 /* how long a pace remembers */
#define PRIOR_S 60.0   /* how many seconds the first guess counts for */
#define FIRST_S 10.0   /* no estimate before, unless earlier builds are known */
#define SURE 0.95      /* a running command counts for no more than this part of what it usually takes */
#define GAP_S 10.0     /* a longer pause between two looks: the machine slept, which says nothing of the pace */
#define LEAST_S 0.01   /* processor time of a command at least */
#define MAX_KINDS 16

/* Commands of one rule of the build ("CUDA_COMPILER"): what one such took says more of the next than the mean of all
 * does, and one kind may come from the compiler cache while another is compiled, so each has its own pace. */
struct kind {
	const char *rule;
	size_t rule_len;
	double seconds; /* of those that are known, or were seen in this run */
	unsigned count;
	double made;                 /* work done in this run */
	double now_running;          /* work done of what is running */
	double best;                 /* the most that made + now_running has been */
	unsigned running;            /* when last looked */
	double unseen;               /* commands ended since then that nobody saw running */
	double pace_work, pace_time; /* work, and seconds of one processor */
};

struct command {
	const char *path;
	struct kind *kind;
	bool known;     /* by an earlier build */
	double seconds; /* there; 0: not known */
	bool made;
	bool seen;  /* running */
	double age; /* when last seen */
};

struct eta {
	const struct history *known;
	struct arena *arena;
	struct command *commands; /* sorted by path */
	size_t count;
	double mean;                  /* seconds of the known ones; 1 when there are none */
	struct kind kinds[MAX_KINDS]; /* the first is that of commands of which nothing is known */
	size_t kind_count;
	unsigned done, all, jobs;
	double idle; /* processor time not yet attributed to any command */
	double updated, started;
};

/* What is left of each kind. */
struct left {
	double known[MAX_KINDS]; /* work of the known commands */
	size_t new[MAX_KINDS];   /* the others */
	size_t known_count, new_count;
};

static double weight(const struct eta *x, const struct command *c)
{
	if (c->seconds > 0)
		return c->seconds;
	return c->known || !c->kind->count ? x->mean : c->kind->seconds / c->kind->count;
}

static struct left add_up(const struct eta *x)
{
	struct left l = {0};
	for (size_t i = 0; i < x->count; i++) {
		const struct command *c = &x->commands[i];
		const size_t kind = (size_t)(c->kind - x->kinds);
		if (c->made)
			continue;
		l.known[kind] += c->known ? weight(x, c) : 0;
		l.known_count += c->known;
		l.new[kind] += !c->known;
		l.new_count += !c->known;
	}
	return l;
}

static struct command command_of(const struct history_unit *u, struct kind *kind)
{
	return (struct command){.path = u->path, .kind = kind, .known = true, .seconds = u->seconds};
}

struct eta *eta_new(const struct history *known, struct arena *a)
{
	struct eta *x = arena_alloc(a, sizeof(*x));
	double sum = 0;
	size_t n = 0;
	x->known = known;
	x->arena = a;
	x->commands = arena_array(a, known->count + 1, sizeof(*x->commands));
	x->kind_count = 1;
	x->kinds[0].rule = "";
	for (size_t i = 0; i < known->count; i++) {
		x->commands[x->count++] = command_of(&known->units[i], &x->kinds[0]);
		sum += known->units[i].seconds;
		n += known->units[i].seconds > 0;
	}
	x->mean = n ? sum / (double)n : 1;
	return x;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct command *)a)->path, ((const struct command *)b)->path);
}

static struct command *find(const struct eta *x, const char *path)
{
	const struct command key = {.path = path};
	return x->count ? bsearch(&key, x->commands, x->count, sizeof(key), by_path) : NULL;
}

static void learn(struct kind *k, double seconds)
{
	k->seconds += seconds;
	k->count++;
}

/* CMake's rules are named KIND__TARGET. Beyond MAX_KINDS all go with the last. */
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

void eta_plan(struct eta *x, const struct ninja_edge *edges, size_t count, const struct ninja_log *made)
{
	x->commands = arena_array(x->arena, count + 1, sizeof(*x->commands));
	x->count = count;
	for (size_t i = 0; i < count; i++) {
		struct kind *kind = kind_of(x, edges[i].rule);
		const struct history_unit *known = history_find(x->known, edges[i].output);
		x->commands[i] =
			known ? command_of(known, kind)
			      : (struct command){.path = arena_strdup(x->arena, edges[i].output), .kind = kind};
		if (x->commands[i].seconds > 0)
			learn(kind, x->commands[i].seconds);
	}
	for (size_t i = 0; made && i < made->count; i++) {
		struct command *c = find(x, made->entries[i].output);
		if (c)
			c->made = true;
	}
}

static void begin_run(struct eta *x, unsigned all, double now, unsigned jobs)
{
	const bool known = add_up(x).known_count > 0; /* without earlier builds nothing is known of the pace */
	x->all = all;
	x->done = 0;
	x->jobs = jobs ? jobs : 1;
	x->idle = 0;
	x->started = x->updated = now;
	for (size_t i = 0; i < x->kind_count; i++) {
		struct kind *k = &x->kinds[i];
		k->made = k->now_running = k->best = k->unseen = 0;
		k->running = 0;
		k->pace_work = k->pace_time = known ? PRIOR_S * x->jobs : 0;
	}
}

static void command_ended(const struct eta *x, struct command *c)
{
	const bool first = !c->made, measured = first && !c->known && c->seen;
	c->kind->unseen += !c->seen;
	c->kind->made += measured ? c->age : first ? weight(x, c) : x->mean;
	if (measured)
		learn(c->kind, c->age);
	c->made = true;
}

static void unknown_ended(struct eta *x, unsigned count)
{
	x->kinds[0].made += x->mean * count;
	x->kinds[0].unseen += count;
}

/* Finds the command of a line, which ends in its output, whatever stands before it. */
static struct command *find_in(const struct eta *x, const char *line)
{
	for (const char *p = line; p; p = strchr(p, ' ')) {
		p += *p == ' ';
		struct command *c = find(x, p);
		if (c)
			return c;
	}
	return NULL;
}

void eta_count(struct eta *x, unsigned done, unsigned all, const char *line, double now, unsigned jobs)
{
	if (all != x->all || done < x->done)
		begin_run(x, all, now, jobs);
	/* The first commands end before as many run as may. */
	if (jobs > x->jobs)
		x->jobs = jobs;
	if (done <= x->done)
		return;
	struct command *c = find_in(x, line);
	if (c)
		command_ended(x, c);
	unknown_ended(x, done - x->done - (c ? 1 : 0)); /* no line named those between */
	x->done = done;
}

/* Adds a running command to its kind; false for one that was made before. */
static bool add_running(struct eta *x, const struct watch_running *r)
{
	struct command *c = find(x, r->path);
	struct kind *kind = c ? c->kind : &x->kinds[0];
	const double age = fmax(0, r->age);
	if (c && c->made && !c->known)
		return false;
	if (c) {
		c->seen = c->known || age > 0; /* what was new at the last look may take any time */
		c->age = age;
	}
	kind->now_running += c && c->made ? 0 : fmin(age, SURE * (c ? weight(x, c) : x->mean));
	kind->running++;
	return true;
}

/* The pace of a kind that had `time` seconds of a processor. */
static void keep_pace(struct kind *k, double time, double passed)
{
	double work = k->made + k->now_running, fade = exp(-passed / MEMORY_S);
	if (time > 0 || work > k->best) {
		k->pace_work = k->pace_work * fade + fmax(0, work - k->best);
		k->pace_time = k->pace_time * fade + time;
	}
	k->best = fmax(k->best, work);
	k->unseen = 0;
}

void eta_update(struct eta *x, const struct watch_running *running, size_t count, double now)
{
	unsigned busy = 0;
	double unseen = 0, passed = fmin(fmax(0, now - x->updated), GAP_S);
	if (!x->all)
		return;
	for (size_t i = 0; i < x->kind_count; i++) {
		x->kinds[i].now_running = 0;
		x->kinds[i].running = 0;
		unseen += x->kinds[i].unseen;
	}
	for (size_t i = 0; i < count; i++)
		busy += add_running(x, &running[i]);
	if (busy > x->jobs)
		x->jobs = busy;
	/* Processors were busy with what was seen, and with what came and went between two looks. */
	x->idle += busy < x->jobs ? passed * (x->jobs - busy) : 0;
	for (size_t i = 0; i < x->kind_count; i++) {
		struct kind *k = &x->kinds[i];
		double came_and_went = unseen > 0 ? fmax(x->idle * k->unseen / unseen, LEAST_S * k->unseen) : 0;
		keep_pace(k, passed * k->running + came_and_went, passed);
	}
	if (unseen > 0)
		x->idle = 0;
	x->updated = now;
}

struct eta_view eta_look(const struct eta *x)
{
	const struct left left = add_up(x);
	double commands = x->all > x->done ? x->all - x->done : 0, known = (double)left.known_count;
	double todo = 0, time = 0, made = 0, pace_work = 0, pace_time = 0, elapsed = x->updated - x->started;
	struct eta_view v = {.seconds_left = -1,
			     .about = x->known->count == 0 || left.known_count * 2 < x->all - x->done};
	for (size_t i = 0; i < x->kind_count; i++) {
		pace_work += x->kinds[i].pace_work;
		pace_time += x->kinds[i].pace_time;
	}
	/* More are known than this run makes, or fewer: then the others are of the kinds that the plan names, or of
	 * none. */
	double share = known > commands ? commands / known : 1, rest = fmax(0, commands - known),
	       of_rest = left.new_count ? rest / (double)left.new_count : 0;
	for (size_t i = 0; i < x->kind_count; i++) {
		const struct kind *k = &x->kinds[i];
		double each = k->count ? k->seconds / k->count : x->mean;
		double work = fmax(0, left.known[i] * share + (double)left.new[i] * each *of_rest - k->now_running);
		work += i == 0 && !left.new_count ? rest * x->mean : 0;
		/* A kind of which nothing was made yet goes at the pace of all. */
		double pace = k->pace_work > 0 && k->pace_time > 0 ? k->pace_work / k->pace_time
			      : pace_time > 0                      ? pace_work / pace_time
								   : 0;
		todo += work;
		made += k->made + k->now_running;
		time += pace > 0 ? work / pace : 0;
	}
	v.percent = made + todo > 0 ? 100 * made / (made + todo) : 0;
	if (x->all && pace_work > 0 && pace_time > 0 && (x->known->count || elapsed >= FIRST_S))
		v.seconds_left = time / x->jobs;
	return v;
}
