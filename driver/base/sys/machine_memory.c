#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/os.h"
#include "base/sys/machine.h"

/* A larger limit means none: v1 writes a number near 2^63 where v2 writes "max". */
#define NO_LIMIT (UINT64_C(1) << 60)
#define PATH_SIZE 8192

/* One hierarchy that limits memory, where it is mounted, and the group of this process in it. */
struct hierarchy {
	bool v2;
	char top[PATH_SIZE];   /* the mount point */
	char group[PATH_SIZE]; /* below it, "" for the top itself */
};

/* The number behind `key` and a blank, or the first one of the file (key NULL). -1: not there, or the word "max". */
static int read_number(const char *dir, const char *name, const char *key, uint64_t *ret)
{
	char path[2 * PATH_SIZE], line[512];
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
static uint64_t in_use(const struct hierarchy *h, const char *dir)
{
	static const char *const keys[2][3] = {{"total_inactive_file", "total_active_file", NULL},
					       {"inactive_file", "active_file", "slab_reclaimable"}};
	uint64_t used, cache = 0, n;
	if (read_number(dir, h->v2 ? "memory.current" : "memory.usage_in_bytes", NULL, &used) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(keys[0]); i++)
		if (keys[h->v2][i] && read_number(dir, "memory.stat", keys[h->v2][i], &n) == 0)
			cache += n;
	return cache < used ? used - cache : 0;
}

static uint64_t room_of(const struct hierarchy *h, const char *dir)
{
	static const char *const limits[2][2] = {{"memory.limit_in_bytes", NULL}, {"memory.max", "memory.high"}};
	uint64_t least = UINT64_MAX, n;
	for (size_t i = 0; i < ARRAY_LEN(limits[0]); i++)
		if (limits[h->v2][i] && read_number(dir, limits[h->v2][i], NULL, &n) == 0 && n < NO_LIMIT && n < least)
			least = n;
	if (least == UINT64_MAX)
		return least;
	uint64_t used = in_use(h, dir);
	return used < least ? least - used : 0;
}

typedef void (*group_fn)(const struct hierarchy *h, const char *dir, void *user);

/* Calls `fn` for the group and all above it that are visible, the top included. */
static void each_group(const struct hierarchy *h, group_fn fn, void *user)
{
	char dir[2 * PATH_SIZE];
	size_t top = strlen(h->top);
	snprintf(dir, sizeof(dir), "%s%s", h->top, h->group);
	for (;;) {
		fn(h, dir, user);
		char *slash = strrchr(dir + top, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (at[n] == '\0' || at[n] == ','))
			return true;
	return false;
}

/* The group of /proc/self/cgroup for the memory controller; `v2`: the one line without controllers. */
static int read_group(const char *root, bool v2, char *ret)
{
	char path[PATH_SIZE], line[PATH_SIZE];
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	AUTO_FILE FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		controllers++;
		if (v2 ? !*controllers : has_word(controllers, "memory")) {
			snprintf(ret, PATH_SIZE, "%s", strcmp(group, "/") == 0 ? "" : group);
			return 0;
		}
	}
	return -1;
}

/* One line of mountinfo (proc(5)): "36 35 98:0 /root /mount/point options - type source super-options". In a container
 * the mount may show a part of the hierarchy only: its root is what the group's path begins with. */
static bool parse_mount(char *line, const char *root, struct hierarchy *h)
{
	char *save = NULL, *words[6] = {0};
	size_t n = 0;
	char *tail = strstr(line, " - ");
	if (!tail)
		return false;
	*tail = '\0';
	for (char *w = strtok_r(line, " ", &save); w && n < ARRAY_LEN(words); w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	char *type = strtok_r(tail + 3, " \n", &save);
	(void)strtok_r(NULL, " \n", &save);
	char *super = strtok_r(NULL, " \n", &save);
	if (n < 5 || !type)
		return false;
	h->v2 = strcmp(type, "cgroup2") == 0;
	if (!h->v2 && (strcmp(type, "cgroup") != 0 || !super || !has_word(super, "memory")))
		return false;
	char group[PATH_SIZE];
	if (read_group(root, h->v2, group) < 0)
		return false;
	size_t shown = strcmp(words[3], "/") == 0 ? 0 : strlen(words[3]);
	bool below = strncmp(group, words[3], shown) == 0 && (group[shown] == '/' || group[shown] == '\0');
	snprintf(h->top, sizeof(h->top), "%s%s", root, words[4]);
	snprintf(h->group, sizeof(h->group), "%s", below ? group + shown : "");
	return true;
}

static void each_hierarchy(const char *root, group_fn fn, void *user)
{
	char path[PATH_SIZE];
	AUTO_FREE char *line = NULL;
	size_t cap = 0;
	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	AUTO_FILE FILE *f = fopen(path, "re");
	while (f && getline(&line, &cap, f) > 0) {
		struct hierarchy h;
		if (parse_mount(line, root, &h))
			each_group(&h, fn, user);
	}
}

static void take_room(const struct hierarchy *h, const char *dir, void *user)
{
	uint64_t *least = user, room = room_of(h, dir);
	if (room < *least)
		*least = room;
}

uint64_t machine_memory_at(const char *root)
{
	uint64_t least = UINT64_MAX, kib;
	char dir[PATH_SIZE];
	snprintf(dir, sizeof(dir), "%s/proc", root);
	if (read_number(dir, "meminfo", "MemAvailable:", &kib) == 0 && kib < UINT64_MAX / 1024)
		least = kib * 1024;
	each_hierarchy(root, take_room, &least);
	return least;
}

static void take_kills(const struct hierarchy *h, const char *dir, void *user)
{
	uint64_t *sum = user, n;
	if (read_number(dir, h->v2 ? "memory.events" : "memory.oom_control", "oom_kill", &n) == 0)
		*sum += n;
}

uint64_t machine_oom_kills_at(const char *root)
{
	uint64_t sum = 0, n;
	char dir[PATH_SIZE];
	snprintf(dir, sizeof(dir), "%s/proc", root);
	if (read_number(dir, "vmstat", "oom_kill", &n) == 0)
		sum = n;
	each_hierarchy(root, take_kills, &sum);
	return sum;
}

/* "full avg10=12.34 avg60=..." */
static bool read_pressure(const char *path, double *ret)
{
	char line[256];
	AUTO_FILE FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		double full;
		if (sscanf(line, "full avg10=%lf", &full) == 1) {
			*ret = full;
			return true;
		}
	}
	return false;
}

struct pressure {
	bool known;
	double full;
};

/* The nearest group that says it, which is asked first, counts: those above it hold other programs as well. */
static void take_pressure(const struct hierarchy *h, const char *dir, void *user)
{
	struct pressure *p = user;
	char path[2 * PATH_SIZE + 32];
	snprintf(path, sizeof(path), "%s/memory.pressure", dir);
	if (h->v2 && !p->known)
		p->known = read_pressure(path, &p->full);
}

double machine_pressure_at(const char *root)
{
	struct pressure p = {0};
	char path[PATH_SIZE];
	each_hierarchy(root, take_pressure, &p);
	snprintf(path, sizeof(path), "%s/proc/pressure/memory", root);
	if (!p.known && !read_pressure(path, &p.full))
		p.full = 0;
	return p.full;
}

uint64_t machine_memory(void)
{
	uint64_t bytes = machine_memory_at("");
	return bytes != UINT64_MAX ? bytes : os_memory();
}

uint64_t machine_oom_kills(void)
{
	return machine_oom_kills_at("");
}

double machine_pressure(void)
{
	return machine_pressure_at("");
}
