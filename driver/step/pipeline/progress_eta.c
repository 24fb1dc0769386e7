#include "step/pipeline/progress_eta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_S 300.0  /* how long a pace remembers */
#define MEMORY_AGES 8.0 /* but with another machine's weights no less than so many times the longest command so far */
#define PRIOR_S 60.0    /* how many seconds the first guess counts for */
#define SHARED_S 10.0   /* how many seconds the pace of all counts for in that of a kind */
#define FIRST_S 10.0    /* no estimate before, unless this machine's earlier builds are known */
#define SURE_PERCENT 5  /* with another machine's weights the estimate is "about" before */
#define SHOWN_PERCENT 3 /* and is shown from here on at the latest */
#define LEAST_ENDED 0.2 /* but not before so many percent of the work have ended */
#define SURE 0.95       /* a running command counts for no more than this part of what it usually takes */
#define GAP_S 10.0      /* a longer pause between two looks: the machine slept, which says nothing of the pace */
#define LEAST_S 0.01    /* processor time of a command at least */
#define UNSEEN_S 2.0    /* a compiler that nobody saw ran no longer */
#define SEEN_LATE_S 0.5 /* how long a command runs on average before somebody looks */
#define FEW_MISSED 10
#define MAX_KINDS 16
#define MAX_SLOTS 256

/* Commands of one rule of the build ("CUDA_COMPILER"): what one such took says more of the next than the mean of all
 * does, and one kind may come from the compiler cache while another is compiled, so each has its own pace. */
struct kind {
	const char *rule;
	size_t rule_len;
	bool custom;    /* a script or the like, which no line of ninja's names */
	double seconds; /* of those that are known, or were seen in this run */
	unsigned count;
	double guess;                /* seconds of one while none is known; 0: as the mean of all */
	double made;                 /* work done in this run */
	double now_running;          /* work done of what is running */
	double best;                 /* the most that made + now_running has been */
	double ended_work, ended_s;  /* of those that were seen running until their end */
	unsigned running;            /* when last looked */
	double unseen;               /* commands ended since then that nobody saw running */
	double pace_work, pace_time; /* work, and seconds of one processor */
};

struct command {
	const char *path;
	struct kind *kind;
	bool known;     /* by a list */
	double seconds; /* there; 0: not known */
	bool made;
	bool seen;  /* running */
	double age; /* when last seen */
};

struct eta {
	const struct weights *weights;
	struct arena *arena;
	struct command *commands; /* sorted by path */
	size_t count;
	bool planned, parts;          /* several runs of ninja, one after the other, make what is planned */
	double mean;                  /* seconds of the known ones; 1 when there are none */
	struct kind kinds[MAX_KINDS]; /* the first is that of commands of which nothing is known */
	size_t kind_count;
	unsigned done, all, jobs, missed; /* missed: ended, and no line named them */
	double used, passed;              /* processor time that commands had, and time; of the last minutes */
	double idle;                      /* processor time not yet attributed to any command */
	double oldest;                    /* the longest age of a command */
	double updated, started;
};

/* What is left of each kind. */
struct left {
	double known[MAX_KINDS]; /* work of the known commands */
	size_t new[MAX_KINDS];   /* the others */
	size_t known_count, new_count;
};

static double each(const struct eta *x, const struct kind *k)
{
	return k->count ? k->seconds / k->count : k->guess > 0 ? k->guess : x->mean;
}

static double weight(const struct eta *x, const struct command *c)
{
	return c->seconds > 0 ? c->seconds : c->known ? x->mean : each(x, c->kind);
}

/* Work done per second of a processor, as the commands tell that were seen to their end: of its own kind, and of all
 * while these are few. */
static double speed(const struct eta *x, const struct kind *k)
{
	double work = x->weights->elsewhere ? 1 : PRIOR_S, time = work;
	for (size_t i = 0; i < x->kind_count; i++) {
		work += x->kinds[i].ended_work;
		time += x->kinds[i].ended_s;
	}
	return (k->ended_work + SHARED_S * work / time) / (k->ended_s + SHARED_S);
}

/* What is done of a running command: a machine that takes twice as long for the others has made half as much. */
static double progress_of(const struct eta *x, const struct command *c)
{
	return fmin(c->age * speed(x, c->kind), SURE * weight(x, c));
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

struct eta *eta_new(const struct weights *w, struct arena *a)
{
	struct eta *x = arena_alloc(a, sizeof(*x));
	const struct history *known = w->units;
	double sum = 0;
	size_t n = 0;
	x->weights = w;
	x->arena = a;
	x->commands = arena_array(a, known->count + 1, sizeof(*x->commands));
	x->kind_count = 1;
	x->kinds[0].rule = "";
	for (size_t i = 0; i < known->count; i++) {
		const struct history_unit *u = &known->units[i];
		x->commands[x->count++] =
			(struct command){.path = u->path, .kind = &x->kinds[0], .known = true, .seconds = u->seconds};
		sum += u->seconds;
		n += u->seconds > 0;
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
	struct kind *k = &x->kinds[x->kind_count++];
	*k = (struct kind){.rule = arena_strndup(x->arena, rule, len), .rule_len = len};
	k->custom = strncmp(k->rule, "CUSTOM_COMMAND", len) == 0;
	for (size_t i = 0; i < x->weights->classes_count; i++)
		if (strcmp(x->weights->classes[i].rule, k->rule) == 0)
			k->guess = x->weights->classes[i].seconds;
	return k;
}

static void add_command(struct eta *x, const char *path, const char *rule)
{
	const double seconds = weights_find(x->weights, path);
	struct command *c = &x->commands[x->count++];
	*c = (struct command){.path = arena_strdup(x->arena, path),
			      .kind = kind_of(x, rule),
			      .known = seconds > 0 || history_find(x->weights->units, path),
			      .seconds = seconds};
	if (seconds > 0)
		learn(c->kind, seconds);
}

void eta_plan(struct eta *x, const struct ninja_edge *edges, size_t count, const struct ninja_log *made, bool whole)
{
	const struct history *table = x->weights->table;
	const size_t more = whole || !table ? 0 : table->count;
	x->commands = arena_array(x->arena, count + more + 1, sizeof(*x->commands));
	x->count = 0;
	x->planned = true;
	x->parts = more > 0;
	for (size_t i = 0; i < count; i++)
		add_command(x, edges[i].output, edges[i].rule);
	qsort(x->commands, x->count, sizeof(*x->commands), by_path);
	const size_t planned = x->count;
	for (size_t i = 0; i < more; i++) {
		const struct command key = {.path = table->units[i].path};
		if (!planned || !bsearch(&key, x->commands, planned, sizeof(key), by_path))
			add_command(x, key.path, edges[0].rule);
	}
	qsort(x->commands, x->count, sizeof(*x->commands), by_path);
	for (size_t i = 0; made && i < made->count; i++) {
		struct command *c = find(x, made->entries[i].output);
		if (c)
			c->made = true;
	}
}

static void begin_run(struct eta *x, unsigned all, double now, unsigned jobs)
{
	/* Without earlier builds of this machine nothing is known of the pace. */
	const bool known = !x->weights->elsewhere && add_up(x).known_count > 0;
	const bool next = x->parts && x->all;
	x->all = all;
	x->done = 0;
	if (next)
		return;
	x->jobs = jobs ? jobs : 1;
	x->idle = x->used = x->passed = 0;
	x->started = x->updated = now;
	for (size_t i = 0; i < x->kind_count; i++) {
		struct kind *k = &x->kinds[i];
		k->made = k->now_running = k->best = k->unseen = k->ended_work = k->ended_s = 0;
		k->running = 0;
		k->pace_work = k->pace_time = known ? PRIOR_S * x->jobs : 0;
	}
}

static void command_ended(const struct eta *x, struct command *c, double now)
{
	struct kind *k = c->kind;
	const bool first = !c->made;
	const double age = c->age + fmin(now - x->updated, GAP_S) + SEEN_LATE_S;
	double work = first ? weight(x, c) : x->mean;
	if (first && c->seen && c->known && c->seconds > 0) {
		k->ended_work += work;
		k->ended_s += age;
	} else if (first && c->seen) {
		work = age * speed(x, k);
		learn(k, work);
	}
	k->unseen += !c->seen;
	k->made += work;
	c->made = true;
}

/* Commands that no line names: a script's line says what it does. With a plan, ptbuild's own that only wait are left,
 * which take no time. */
static void unknown_ended(struct eta *x, unsigned count)
{
	for (size_t i = 0; x->planned && i < x->count && count; i++) {
		struct command *c = &x->commands[i];
		if (c->made || !c->kind->custom || !c->known)
			continue;
		command_ended(x, c, x->updated);
		count--;
	}
	x->missed += count;
	if (x->missed > FEW_MISSED && x->missed * 2 > x->done)
		x->planned = x->parts = false; /* lines name things differently from the plan: by number */
	x->kinds[0].made += x->planned ? 0 : x->mean * count;
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
		command_ended(x, c, now);
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
		x->oldest = fmax(x->oldest, age);
	}
	kind->now_running += !c ? fmin(age, SURE * x->mean) : c->made ? 0 : progress_of(x, c);
	kind->running++;
	return true;
}

/* The pace of a kind that had `time` seconds of a processor. */
static void keep_pace(struct kind *k, double time, double fade)
{
	double work = k->made + k->now_running;
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
	double unseen = 0, passed = fmin(fmax(0, now - x->updated), GAP_S), used = 0;
	double memory = x->weights->elsewhere ? fmax(MEMORY_S, MEMORY_AGES * x->oldest) : MEMORY_S;
	double fade = exp(-passed / memory);
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
		if (x->weights->elsewhere && !k->custom) /* more of it would have been seen */
			came_and_went = fmin(came_and_went, UNSEEN_S * k->unseen);
		double time = passed * k->running + came_and_went;
		keep_pace(k, time, fade);
		used += time;
	}
	x->used = x->used * fade + used;
	x->passed = x->passed * fade + passed;
	if (unseen > 0)
		x->idle = 0;
	x->updated = now;
}

/* How many processors are used: those that were in the last minutes, at first as many as ever ran at once. */
static double processors(const struct eta *x)
{
	double used = (x->used + PRIOR_S * x->jobs) / (x->passed + PRIOR_S);
	return fmax(1, fmin(used, x->jobs));
}

static double pace_of(const struct eta *x, const struct kind *k, double of_all)
{
	const double shared = x->weights->elsewhere ? SHARED_S : 0;
	/* A kind of which nothing was made yet goes at the pace of all. */
	return k->pace_work > 0 && k->pace_time > 0 ? (k->pace_work + shared * of_all) / (k->pace_time + shared)
						    : of_all;
}

/* How much longer the commands take that are left than if they could be divided evenly: the last ones leave processors
 * idle. What is running has begun first, the others follow in the order of their paths, which is any. */
static double tail(const struct eta *x, double pace_of_all)
{
	double slots[MAX_SLOTS] = {0}, sum = 0, end = 0;
	const unsigned count = (unsigned)fmin(MAX_SLOTS, round(processors(x)));
	for (int running = 1; running >= 0; running--)
		for (size_t i = 0; i < x->count; i++) {
			const struct command *c = &x->commands[i];
			if (c->made || !c->known || (c->age > 0) != running)
				continue;
			unsigned slot = 0;
			for (unsigned k = 1; k < count && slots[slot] > 0; k++)
				slot = slots[k] < slots[slot] ? k : slot;
			double took = (weight(x, c) - progress_of(x, c)) / pace_of(x, c->kind, pace_of_all);
			slots[slot] += took;
			sum += took;
			end = fmax(end, slots[slot]);
		}
	return sum > 0 ? end * count / sum : 1;
}

/* Whether it can be said how fast this machine is. */
static bool has_pace(const struct eta *x, double pace_work, double pace_time, double percent, double percent_ended)
{
	const struct weights *w = x->weights;
	if (!x->all || pace_work <= 0 || pace_time <= 0)
		return false;
	if (w->units->count && !w->elsewhere)
		return true;
	return (w->elsewhere && percent >= SHOWN_PERCENT) ||
	       (x->updated - x->started >= FIRST_S && (!w->elsewhere || percent_ended >= LEAST_ENDED));
}

struct eta_view eta_look(const struct eta *x)
{
	const struct left left = add_up(x);
	double commands = x->all > x->done ? x->all - x->done : 0, known = (double)left.known_count;
	double todo = 0, time = 0, made = 0, ended = 0, pace_work = 0, pace_time = 0;
	for (size_t i = 0; i < x->kind_count; i++) {
		pace_work += x->kinds[i].pace_work;
		pace_time += x->kinds[i].pace_time;
	}
	const double pace_of_all = pace_time > 0 && pace_work > 0 ? pace_work / pace_time : 1;
	/* More are known than this run makes, or fewer: then the others are of the kinds that the plan names, or of
	 * none. */
	double share = known > commands && !x->parts ? commands / known : 1, rest = fmax(0, commands - known),
	       of_rest = left.new_count ? rest / (double)left.new_count : 0;
	for (size_t i = 0; i < x->kind_count; i++) {
		const struct kind *k = &x->kinds[i];
		double work =
			fmax(0, left.known[i] * share + (double)left.new[i] * each(x, k) * of_rest - k->now_running);
		work += i == 0 && !left.new_count && !x->planned ? rest * x->mean : 0;
		todo += work;
		made += k->made + k->now_running;
		ended += k->made;
		time += work / pace_of(x, k, pace_of_all);
	}
	struct eta_view v = {.percent = made + todo > 0 ? 100 * made / (made + todo) : 0, .seconds_left = -1};
	v.about = x->weights->units->count == 0 || left.known_count * 2 < x->all - x->done ||
		  (x->weights->elsewhere && v.percent < SURE_PERCENT);
	if (has_pace(x, pace_work, pace_time, v.percent, made + todo > 0 ? 100 * ended / (made + todo) : 0))
		v.seconds_left = time / processors(x) * tail(x, pace_of_all) + x->weights->after / pace_of_all;
	return v;
}
