#include "step/watch/watch.h"

#include <math.h>
#include <time.h>

#include "base/os.h"
#include "base/sys/fs.h"
#include "core/root/sandbox.h"

/* A unit, and what its processes hold in the look that is under way. */
struct watch_held {
	struct watch_unit unit;
	uint64_t bytes;
};

/* A process as the last look saw it. */
struct watch_process {
	struct proctree_item item;
	struct watch_held *unit; /* NULL: of none */
};

/* The units that were seen so far, and the processes of the last look. */
struct watch_units {
	const char *build_dir;
	struct arena arena;
	struct watch_held **units; /* sorted by path */
	size_t count, cap;
	struct watch_process *last;
	size_t last_count;
	double looked; /* when the last look was */
};

char *watch_unit_name(const char *build_dir, const char *dir, const char *output, struct arena *a)
{
	if (output[0] != '/' && !dir)
		return arena_strdup(a, output);
	const char *path =
		output[0] == '/' ? path_absolute(a, "/", output) : path_absolute(a, dir, output);
	const char *inside = path_below(path, SANDBOX_SRC "/build");
	if (!inside)
		inside = path_below(path, path_join(a, build_dir, "src/build"));
	return arena_strdup(a, inside ? inside : path);
}

/* "x86_64-linux-gnu-g++-14" ends in "g++", and so does "g++". */
static bool is_compiler(const char *path)
{
	static const char *const names[] = {"gcc",    "g++",     "cc",   "c++",
					    "clang",  "clang++", "nvcc", "gfortran",
					    "ccache", "sccache", "ld"};
	const char *base = path_base(path);
	size_t n = strlen(base), digits = n;

	while (digits > 0 && strchr("0123456789.", base[digits - 1]))
		digits--;
	if (digits < n && digits > 0 && base[digits - 1] == '-')
		n = digits - 1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);
		if (n >= len && strncmp(base + n - len, names[i], len) == 0 &&
		    (n == len || base[n - len - 1] == '-'))
			return true;
	}

	return false;
}

const char *watch_output(const char *command, size_t len)
{
	const char *end = command + len, *found = NULL;

	if (len == 0 || end[-1] != '\0' || !is_compiler(command))
		return NULL;
	for (const char *p = command + strlen(command) + 1; p < end; p += strlen(p) + 1) {
		if (strcmp(p, "-o") == 0 && p + 3 < end)
			found = p + 3; /* the last one counts, as it does for the compiler */
	}

	return found && *found ? found : NULL;
}

/* Below this the resident set counts as the peak, which saves reading a file. */
#define SMALL_BYTES (UINT64_C(32) << 20)

/* The unit of this process, by its own command line. That is empty for a moment when it becomes
 * another program, so it is read again at the next look: no process has the empty name. */
static struct watch_held *read_unit(struct watch_units *u, struct proctree_item *it, double at)
{
	AUTO_BUF struct buf command = {0};
	AUTO_ARENA struct arena a = {0};

	if (!proctree_command(it->pid, &command) || !command.len) {
		it->name[0] = '\0';
		return NULL;
	}

	const char *output = watch_output(command.data, command.len);
	if (!output)
		return NULL;
	const char *dir = output[0] == '/' ? NULL : proctree_cwd(it->pid, &a);
	const char *path = watch_unit_name(u->build_dir, dir, output, &a);
	size_t low = 0, high = u->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = strcmp(u->units[mid]->unit.path, path);
		if (c == 0)
			return u->units[mid];
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}

	if (u->count == WATCH_MAX_UNITS)
		return NULL;
	struct watch_held *new = arena_alloc(&u->arena, sizeof(*new));
	new->unit =
		(struct watch_unit){.path = arena_strdup(&u->arena, path), .first = at, .last = at};
	u->units = arena_room(&u->arena, u->units, u->count, &u->cap, 256, sizeof(void *));
	memmove(u->units + low + 1, u->units + low, (u->count++ - low) * sizeof(void *));
	return u->units[low] = new;
}

static const struct watch_process *find_process(const struct watch_process *all, size_t count,
						pid_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (all[i].item.pid == pid)
			return &all[i];
	}

	return NULL;
}

/* A process that was there at the last look, and has not become another program since, is what
 * it was; a child of a unit's process is of that unit; only of others the command line is read. */
static struct watch_held *unit_of(struct watch_units *u, struct proctree_item *it,
				  const struct watch_process *now, size_t seen, double at)
{
	const struct watch_process *old = find_process(u->last, u->last_count, it->pid);

	if (old && old->item.started == it->started && strcmp(old->item.name, it->name) == 0)
		return old->unit;
	const struct watch_process *parent = find_process(now, seen, it->parent);
	return parent && parent->unit ? parent->unit : read_unit(u, it, at);
}

/* Notes the units of these processes (parents first), `at`
 * seconds since the start. Returns how many units are running. */
static unsigned watch_units_look(struct watch_units *u, const struct proctree_item *items,
				 size_t count, double at)
{
	struct watch_process *now = calloc(count + 1, sizeof(*now));
	unsigned running = 0;

	if (!now)
		abort();
	for (size_t i = 0; i < count; i++) {
		now[i].item = items[i];
		struct watch_held *unit = now[i].unit = unit_of(u, &now[i].item, now, i, at);
		if (!unit)
			continue;
		uint64_t bytes = items[i].rss_bytes < SMALL_BYTES ? 0 : proctree_peak(items[i].pid);
		if (bytes < items[i].rss_bytes)
			bytes = items[i].rss_bytes;
		running += unit->bytes == 0;
		unit->unit.last = at;
		unit->bytes += bytes ? bytes : 1;
	}

	for (size_t i = 0; i < count; i++) {
		struct watch_held *unit = now[i].unit;
		if (!unit)
			continue;
		if (unit->bytes > unit->unit.peak_bytes)
			unit->unit.peak_bytes = unit->bytes;
		unit->bytes = 0;
	}

	free(u->last);
	u->last = now;
	u->last_count = count;
	u->looked = at;
	return running;
}

#define MAX_STEPS 64

struct watch {
	const char *build_dir;
	double interval, started, started_epoch;
	pthread_t thread;
	pthread_mutex_t mutex; /* of all that follows */
	pthread_cond_t wake;
	bool stop;
	struct watch_sample samples[WATCH_MAX_SAMPLES];
	size_t samples_count;
	struct watch_sample open; /* the point not finished yet */
	double open_cpu;
	double open_since;
	double every; /* seconds between two points */
	struct watch_step steps[MAX_STEPS];
	size_t steps_count;
	bool in_step;
	double cpu_total, cpu_tree; /* used so far; the last sum of the tree's counters */
	struct watch_now now;
	struct watch_units units;
	double own_cpu;     /* of the thread, when it has ended */
	struct arena arena; /* of the steps' names */
};

static double at_now(const struct watch *w)
{
	return log_seconds() - w->started;
}

/* "some avg10=0.12 avg60=..." */
static double memory_pressure(void)
{
	double share = 0;
	AUTO_FILE FILE *f = fopen("/proc/pressure/memory", "re");

	if (!f || fscanf(f, "some avg10=%lf", &share) != 1)
		return 0;
	return share;
}

static void join_points(struct watch_sample *into, const struct watch_sample *b)
{
	into->at = b->at;
	into->processors = (into->processors + b->processors) / 2;
	into->memory_bytes =
		b->memory_bytes > into->memory_bytes ? b->memory_bytes : into->memory_bytes;
	into->compilers = b->compilers > into->compilers ? b->compilers : into->compilers;
	into->pressure = fmax(into->pressure, b->pressure);
}

/* Adds this look to the open point, and the point to the series when its time is over. */
static void add_point(struct watch *w, double at, bool close)
{
	struct watch_sample look = {.at = at,
				    .memory_bytes = w->now.memory_bytes,
				    .compilers = w->now.compilers,
				    .pressure = w->now.pressure};

	if (w->open.at > 0)
		join_points(&w->open, &look);
	else
		w->open = look;
	double span = at - w->open_since;
	/* Threads wake up a little late or early. */
	if (span < w->every - 0.1 * w->interval && !(close && span > 0))
		return;
	w->open.processors = span > 0 ? (w->cpu_total - w->open_cpu) / span : 0;
	if (w->samples_count == WATCH_MAX_SAMPLES) {
		for (size_t i = 0; i + 1 < w->samples_count; i += 2) {
			join_points(&w->samples[i], &w->samples[i + 1]);
			w->samples[i / 2] = w->samples[i];
		}

		w->samples_count /= 2;
		w->every *= 2;
	}

	w->samples[w->samples_count++] = w->open;
	w->open = (struct watch_sample){0};
	w->open_cpu = w->cpu_total;
	w->open_since = at;
}

static void note_step(struct watch *w, double used)
{
	if (!w->in_step)
		return;
	struct watch_step *s = &w->steps[w->steps_count - 1];
	s->cpu_seconds += used;
	if (w->now.memory_bytes > s->peak_memory)
		s->peak_memory = w->now.memory_bytes;
	if (w->now.processes > s->peak_processes)
		s->peak_processes = w->now.processes;
	if (w->now.disk_free < s->least_disk_free)
		s->least_disk_free = w->now.disk_free;
	s->peak_pressure = fmax(s->peak_pressure, w->now.pressure);
}

/* One look at everything; the mutex is held. */
static void look(struct watch *w, bool close)
{
	AUTO_ARENA struct arena a = {0};
	struct proctree_item *items;
	size_t count;
	double at = at_now(w), tree = 0;

	proctree_read(getpid(), &a, &items, &count);
	struct watch_now now = {.processes = (unsigned)count, .pressure = memory_pressure()};
	for (size_t i = 0; i < count; i++) {
		now.memory_bytes += items[i].rss_bytes;
		tree += items[i].cpu_seconds;
	}

	if (fs_free_bytes(w->build_dir, &now.disk_free, ERR_IGNORED) < 0)
		now.disk_free = w->now.disk_free;
	now.compilers = watch_units_look(&w->units, items, count, at);
	w->now = now;
	/* The sum falls when a process ends that nobody waited for (the
	 * sandbox's first one); what it used was counted while it lived. */
	double used = tree > w->cpu_tree ? tree - w->cpu_tree : 0;
	w->cpu_tree = tree;
	w->cpu_total += used;
	note_step(w, used);
	add_point(w, at, close);
}

/* Seconds from look to look: fewer while a step is
 * young, since many a step ends within the interval. */
static double patience(const struct watch *w)
{
	double age = w->in_step ? at_now(w) - w->steps[w->steps_count - 1].begin : w->interval;
	return fmin(w->interval, fmax(age, w->interval / 10));
}

static void *thread_main(void *user)
{
	struct watch *w = user;

	pthread_mutex_lock(&w->mutex);
	while (!w->stop) {
		look(w, false);
		double looked = log_seconds();
		for (double left; !w->stop && (left = looked + patience(w) - log_seconds()) > 0;)
			os_cond_wait(&w->wake, &w->mutex, left);
	}

	struct timespec own = {0};
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
	w->own_cpu = (double)own.tv_sec + (double)own.tv_nsec / 1e9;
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

static void destroy(struct watch *w)
{
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->mutex);
	free(w->units.last);
	arena_release(&w->units.arena);
	arena_release(&w->arena);
	free(w);
}

int watch_start(const struct watch_request *q, struct watch **ret, struct err *e)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	struct timespec epoch;
	clock_gettime(CLOCK_REALTIME, &epoch);
	w->build_dir = arena_strdup(&w->arena, q->build_dir);
	w->units.build_dir = w->build_dir;
	w->interval = w->every = q->interval_s > 0 ? q->interval_s : 1;
	w->started = log_seconds();
	w->started_epoch = (double)epoch.tv_sec + (double)epoch.tv_nsec / 1e9;
	os_cond_init(&w->wake);
	pthread_mutex_init(&w->mutex, NULL);
	/* Processor time used before the start does not count. */
	look(w, false);
	w->cpu_total = 0;
	int failed = thread_start(&w->thread, thread_main, w);
	if (failed) {
		destroy(w);
		errno = failed;
		return err_errno(e, ERR_SYSTEM, "cannot start the thread that watches the build");
	}

	*ret = w;
	return 0;
}

static void end_step(struct watch *w, uint64_t tree_bytes)
{
	if (!w->in_step)
		return;
	look(w, true);
	w->steps[w->steps_count - 1].end = at_now(w);
	w->steps[w->steps_count - 1].tree_bytes = tree_bytes;
	w->in_step = false;
}

void watch_begin(struct watch *w, const char *step)
{
	pthread_mutex_lock(&w->mutex);
	end_step(w, 0);
	look(w, true);
	if (w->steps_count < MAX_STEPS) {
		w->steps[w->steps_count++] =
			(struct watch_step){.name = arena_strdup(&w->arena, step),
					    .begin = at_now(w),
					    .least_disk_free = w->now.disk_free};
		w->in_step = true;
		note_step(w, 0);
		pthread_cond_signal(&w->wake);
	}

	pthread_mutex_unlock(&w->mutex);
}

void watch_end(struct watch *w, bool measure_tree)
{
	uint64_t bytes = 0;

	if (measure_tree && fs_tree_size(w->build_dir, &bytes, ERR_IGNORED) < 0)
		bytes = 0;
	pthread_mutex_lock(&w->mutex);
	end_step(w, bytes);
	pthread_mutex_unlock(&w->mutex);
}

void watch_now(struct watch *w, struct watch_now *ret)
{
	pthread_mutex_lock(&w->mutex);
	*ret = w->now;
	pthread_mutex_unlock(&w->mutex);
}

size_t watch_running(struct watch *w, struct watch_running *units, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&w->mutex);
	for (size_t i = 0; i < w->units.count && n < max; i++) {
		const struct watch_unit *u = &w->units.units[i]->unit;
		if (u->last == w->units.looked)
			units[n++] =
				(struct watch_running){.path = u->path, .age = u->last - u->first};
	}

	pthread_mutex_unlock(&w->mutex);
	return n;
}

static void *copy_of(struct arena *a, const void *from, size_t count, size_t size)
{
	void *to = arena_array(a, count + 1, size);

	if (count)
		memcpy(to, from, count * size);
	return to;
}

void watch_stop(struct watch *w, struct arena *a, struct watch_result *ret)
{
	pthread_mutex_lock(&w->mutex);
	end_step(w, 0);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->mutex);
	pthread_join(w->thread, NULL);
	if (ret) {
		*ret = (struct watch_result){
			.started = w->started_epoch,
			.interval_s = w->every,
			.samples = copy_of(a, w->samples, w->samples_count, sizeof(*w->samples)),
			.samples_count = w->samples_count,
			.steps = copy_of(a, w->steps, w->steps_count, sizeof(*w->steps)),
			.steps_count = w->steps_count,
			.units = arena_array(a, w->units.count + 1, sizeof(struct watch_unit)),
			.units_count = w->units.count,
			.own_cpu_seconds = w->own_cpu};
		for (size_t i = 0; i < ret->steps_count; i++)
			ret->steps[i].name = arena_strdup(a, ret->steps[i].name);
		/* in the order of their paths already */
		for (size_t i = 0; i < ret->units_count; i++) {
			ret->units[i] = w->units.units[i]->unit;
			ret->units[i].path = arena_strdup(a, ret->units[i].path);
		}
	}

	destroy(w);
}

void watch_free(struct watch **w)
{
	if (*w)
		watch_stop(*w, NULL, NULL);
	*w = NULL;
}
