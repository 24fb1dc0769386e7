#include "base/sys/machine.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/utsname.h>

#include "base/os.h"
#include "base/sys/fs.h"

/* Slurm gives a job its share also where no cpuset limits it to that. */
unsigned machine_processors(void)
{
	const char *given = getenv("SLURM_CPUS_PER_TASK");
	unsigned n = os_processors();
	uint64_t quota = machine_quota("");
	unsigned long task = given && *given >= '0' && *given <= '9' ? strtoul(given, NULL, 10) : 0;

	n = quota < n ? (unsigned)quota : n;
	return task && task < n ? (unsigned)task : n;
}

/* The lowest number of the threads of its core, by
 * which a core is known; its own where nothing says. */
static unsigned core_of(const char *root, unsigned number)
{
	char path[4096];
	unsigned first;

	snprintf(path, sizeof(path),
		 "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", root, number);
	AUTO_FILE FILE *f = fopen(path, "re");
	return f && fscanf(f, "%9u", &first) == 1 ? first : number;
}

void machine_cores_first(const char *root, unsigned *numbers, unsigned count)
{
	AUTO_ARENA struct arena a = {0};
	unsigned *cores = arena_array(&a, count, sizeof(*cores)),
		 *later = arena_array(&a, count, sizeof(*later));
	unsigned first = 0, rest = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned core = core_of(root, numbers[i]), k = 0;
		while (k < first && cores[k] != core)
			k++;
		if (k < first) {
			later[rest++] = numbers[i];
			continue;
		}

		cores[first] = core;
		numbers[first++] = numbers[i];
	}

	for (unsigned i = 0; i < rest; i++)
		numbers[first + i] = later[i];
}

unsigned machine_list_processors(unsigned *ret, unsigned max)
{
	enum { MOST = 1024 };
	unsigned all[MOST], count = os_list_processors(all, MOST);

	machine_cores_first("", all, count);
	count = count < max ? count : max;
	for (unsigned i = 0; i < count; i++)
		ret[i] = all[i];
	return count;
}

char *machine_platform(struct arena *a)
{
	struct utsname u;

	if (uname(&u) < 0)
		abort();
	return arena_printf(a, "%s-%s", strcmp(u.machine, "arm64") == 0 ? "aarch64" : u.machine,
			    strcmp(u.sysname, "Darwin") == 0 ? "darwin" : "linux");
}

bool machine_is_arm(const char *platform)
{
	return strncmp(platform, "aarch64", strlen("aarch64")) == 0;
}

bool machine_has_feature(const char *name)
{
	AUTO_FILE FILE *f = fopen("/proc/cpuinfo", "re");
	AUTO_FREE char *line = NULL;
	size_t cap = 0;

	while (f && getline(&line, &cap, f) > 0) {
		if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0)
			continue;
		char *save = NULL;
		char *words = strchr(line, ':');
		for (char *w = words ? strtok_r(words + 1, " \t\n", &save) : NULL; w;
		     w = strtok_r(NULL, " \t\n", &save))
			if (strcmp(w, name) == 0)
				return true;
		return false;
	}

	return false;
}

/* A larger limit means none: v1 writes a number near 2^63 where v2 writes "max". */
#define NO_LIMIT (UINT64_C(1) << 60)

/* A cgroup of this process, or one above it. */
struct group {
	bool v2;
	const char *dir;
};

struct groups {
	struct group *items;
	size_t count, cap;
};

/* The number behind `key` and a blank, or the first one of
 * the file (key NULL). -1: not there, or the word "max". */
static int read_number(const char *dir, const char *name, const char *key, uint64_t *ret)
{
	char path[16384], line[512];
	size_t n = key ? strlen(key) : 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	AUTO_FILE FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (key && (strncmp(line, key, n) != 0 || line[n] != ' '))
			continue;
		char *at = line + n, *end;
		unsigned long long v = strtoull(at, &end, 10);
		if (end == at)
			return -1;
		*ret = v;
		return 0;
	}

	return -1;
}

/* In use, less the file cache that can be dropped. */
static uint64_t in_use(const struct group *g)
{
	static const char *const keys[2][3] = {
		{"total_inactive_file", "total_active_file", NULL},
		{"inactive_file", "active_file", "slab_reclaimable"}};
	uint64_t used, cache = 0, n;

	if (read_number(g->dir, g->v2 ? "memory.current" : "memory.usage_in_bytes", NULL, &used) <
	    0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(keys[0]); i++)
		if (keys[g->v2][i] && read_number(g->dir, "memory.stat", keys[g->v2][i], &n) == 0)
			cache += n;
	return cache < used ? used - cache : 0;
}

static uint64_t room_of(const struct group *g)
{
	static const char *const limits[2][2] = {{"memory.limit_in_bytes", NULL},
						 {"memory.max", "memory.high"}};
	uint64_t least = UINT64_MAX, n;

	for (size_t i = 0; i < ARRAY_LEN(limits[0]); i++)
		if (limits[g->v2][i] && read_number(g->dir, limits[g->v2][i], NULL, &n) == 0 &&
		    n < NO_LIMIT && n < least)
			least = n;
	if (least == UINT64_MAX)
		return least;
	uint64_t used = in_use(g);
	return used < least ? least - used : 0;
}

static struct strlist lines_of(const char *root, const char *file, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	struct strlist lines = {0};

	if (fs_read(TRUSTED, arena_printf(a, "%s%s", root, file), UINT64_MAX, &text, ERR_IGNORED) ==
	    0)
		strlist_split(&lines, a, buf_cstr(&text), "\n");
	return lines;
}

/* A group of /proc/self/cgroup, "" for the top: that of v2, whose line
 * has no controllers, or in a hierarchy of v1 with these options. */
static const char *own_group(const struct strlist *lines, bool v2, const char *options,
			     struct arena *a)
{
	static const char *const wanted[] = {"memory", "cpu"};

	for (size_t i = 0; i < lines->count; i++) {
		struct strlist has = {0}, mounted = {0};
		const char *from = strchr(lines->items[i], ':'),
			   *group = from ? strchr(from + 1, ':') : NULL;
		bool fits = group && v2 && group == from + 1;
		strlist_split(&has, a,
			      group ? arena_strndup(a, from + 1, (size_t)(group - from - 1)) : "",
			      ",");
		strlist_split(&mounted, a, options, ",");
		for (size_t k = 0; k < ARRAY_LEN(wanted) && !v2; k++)
			fits = fits || (strlist_contains(&has, wanted[k]) &&
					strlist_contains(&mounted, wanted[k]));
		if (fits)
			return strcmp(group, ":/") == 0 ? "" : group + 1;
	}

	return NULL;
}

/* Those that are visible, the nearest first in each hierarchy, by lines of mountinfo (proc(5)): "36
 * 35 98:0 /root /mount/point options ... - type source super-options". In a container the mount may
 * show a part of the hierarchy only: its root is what the group's path begins with. */
static const struct groups *look(const char *root, struct arena *a)
{
	const struct strlist mounts = lines_of(root, "/proc/self/mountinfo", a);
	const struct strlist own = lines_of(root, "/proc/self/cgroup", a);
	struct groups *g = arena_alloc(a, sizeof(*g));

	for (size_t i = 0; i < mounts.count; i++) {
		struct strlist w = {0};
		size_t dash = 5;
		strlist_split(&w, a, mounts.items[i], " ");
		while (dash < w.count && strcmp(w.items[dash], "-") != 0)
			dash++;
		if (dash + 3 >= w.count || strncmp(w.items[dash + 1], "cgroup", 6) != 0)
			continue;
		bool v2 = strcmp(w.items[dash + 1], "cgroup2") == 0;
		const char *group = own_group(&own, v2, w.items[dash + 3], a);
		if (!group)
			continue;
		size_t shown = strcmp(w.items[3], "/") == 0 ? 0 : strlen(w.items[3]);
		bool below = strncmp(group, w.items[3], shown) == 0 &&
			     (group[shown] == '/' || group[shown] == '\0');
		size_t top = strlen(root) + strlen(w.items[4]);
		char *dir = arena_printf(a, "%s%s%s", root, w.items[4], below ? group + shown : "");
		for (char *slash;; *slash = '\0') {
			g->items = arena_room(a, g->items, g->count, &g->cap, 8, sizeof(*g->items));
			g->items[g->count++] = (struct group){v2, arena_strdup(a, dir)};
			if (!(slash = strrchr(dir + top, '/')))
				break;
		}
	}

	return g;
}

static const struct groups *here; /* this process stays in its groups: they are looked for once */

static void look_here(void)
{
	static struct arena a;
	here = look("", &a);
}

static const struct groups *groups_of(const char *root, struct arena *a)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	return *root || pthread_once(&once, look_here) != 0 ? look(root, a) : here;
}

uint64_t machine_memory_at(const char *root)
{
	AUTO_ARENA struct arena a = {0};
	const struct groups *g = groups_of(root, &a);
	uint64_t least = UINT64_MAX, kib;

	if (read_number(root, "proc/meminfo", "MemAvailable:", &kib) == 0 &&
	    kib < UINT64_MAX / 1024)
		least = kib * 1024;
	for (size_t i = 0; i < g->count; i++) {
		uint64_t room = room_of(&g->items[i]);
		least = room < least ? room : least;
	}

	return least;
}

/* "200000 100000" or "max 100000" in v2, a file each in v1, where -1 means none. */
static uint64_t quota_of(const struct group *g, struct arena *a)
{
	uint64_t quota, period = 100000;
	char line[64] = "";

	if (g->v2) {
		AUTO_FILE FILE *f = fopen(arena_printf(a, "%s/cpu.max", g->dir), "re");
		if (!f || !fgets(line, sizeof(line), f) ||
		    sscanf(line, "%" SCNu64 " %" SCNu64, &quota, &period) < 1)
			return UINT64_MAX;
	} else if (read_number(g->dir, "cpu.cfs_quota_us", NULL, &quota) < 0 ||
		   read_number(g->dir, "cpu.cfs_period_us", NULL, &period) < 0) {
		return UINT64_MAX;
	}

	return quota >= NO_LIMIT || period == 0 ? UINT64_MAX : (quota + period - 1) / period;
}

uint64_t machine_quota(const char *root)
{
	AUTO_ARENA struct arena a = {0};
	const struct groups *g = groups_of(root, &a);
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < g->count; i++) {
		uint64_t n = quota_of(&g->items[i], &a);
		least = n < least ? n : least;
	}

	return least ? least : 1;
}

uint64_t machine_oom_kills(const char *root)
{
	AUTO_ARENA struct arena a = {0};
	const struct groups *g = groups_of(root, &a);
	uint64_t n = 0;

	/* The nearest group that counts: a kill elsewhere
	 * on the machine says nothing of this build. */
	for (size_t i = 0; i < g->count; i++)
		if (read_number(g->items[i].dir,
				g->items[i].v2 ? "memory.events" : "memory.oom_control", "oom_kill",
				&n) == 0)
			return n;
	return read_number(root, "proc/vmstat", "oom_kill", &n) == 0 ? n : 0;
}

/* "full avg10=12.34 avg60=..." */
static bool read_pressure(const char *path, double *ret)
{
	char line[256];
	AUTO_FILE FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "full avg10=%lf", ret) == 1)
			return true;
	return false;
}

double machine_pressure(const char *root)
{
	AUTO_ARENA struct arena a = {0};
	const struct groups *g = groups_of(root, &a);
	double full = 0;

	/* The nearest group that has it counts: those above hold other programs as well. */
	for (size_t i = 0; i < g->count; i++)
		if (g->items[i].v2 &&
		    read_pressure(arena_printf(&a, "%s/memory.pressure", g->items[i].dir), &full))
			return full;
	(void)read_pressure(arena_printf(&a, "%s/proc/pressure/memory", root), &full);
	return full;
}

char *machine_memory_text(uint64_t bytes, struct arena *a)
{
	if (bytes == UINT64_MAX)
		return arena_strdup(a, "an unknown amount");
	return arena_printf(a, "%.1f GiB", (double)bytes / (double)(UINT64_C(1) << 30));
}

uint64_t machine_memory(void)
{
	uint64_t bytes = machine_memory_at("");
	return bytes != UINT64_MAX ? bytes : os_memory();
}
