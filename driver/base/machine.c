#include "base/machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

unsigned machine_processors(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (unsigned)n : 1;
}

static uint64_t mem_available(void)
{
	AUTO_FILE FILE *f = fopen("/proc/meminfo", "re");
	char line[256];
	unsigned long long kib;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			return (uint64_t)kib * 1024;
	}
	return UINT64_MAX;
}

static int read_number(const char *dir, const char *name, uint64_t *ret)
{
	char path[4352];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	AUTO_FILE FILE *f = fopen(path, "re");
	unsigned long long v;
	if (!f || fscanf(f, "%llu", &v) != 1)
		return -1; /* absent, or the word "max" */
	*ret = v;
	return 0;
}

/* What a limit file of one control group and of all above it leaves. */
static uint64_t cgroup_room(const char *mount, const char *group, const char *limit_file, const char *usage_file)
{
	char dir[4096];
	uint64_t room = UINT64_MAX;
	snprintf(dir, sizeof(dir), "%s%s", mount, group);
	while (strlen(dir) >= strlen(mount)) {
		uint64_t limit, used = 0;
		if (read_number(dir, limit_file, &limit) == 0 && limit < (UINT64_C(1) << 60)) {
			if (read_number(dir, usage_file, &used) != 0 || used > limit)
				used = 0;
			if (limit - used < room)
				room = limit - used;
		}
		char *slash = strrchr(dir, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return room;
}

uint64_t machine_memory(void)
{
	uint64_t best = mem_available();
	AUTO_FILE FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4096];
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		controllers++;
		if (strcmp(group, "/") == 0)
			*group = '\0';
		uint64_t room = UINT64_MAX;
		if (!*controllers)
			room = cgroup_room("/sys/fs/cgroup", group, "memory.max", "memory.current");
		else if (strstr(controllers, "memory"))
			room = cgroup_room("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes");
		if (room < best)
			best = room;
	}
	return best;
}

int machine_has_feature(const char *name)
{
	AUTO_FILE FILE *f = fopen("/proc/cpuinfo", "re");
	AUTO_FREE char *line = NULL;
	size_t cap = 0;
	while (f && getline(&line, &cap, f) > 0) {
		if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0)
			continue;
		char *save = NULL;
		char *words = strchr(line, ':');
		for (char *w = words ? strtok_r(words + 1, " \t\n", &save) : NULL; w; w = strtok_r(NULL, " \t\n", &save)) {
			if (strcmp(w, name) == 0)
				return 1;
		}
		return 0;
	}
	return 0;
}
