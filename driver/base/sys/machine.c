#include "base/sys/machine.h"

#include <sys/utsname.h>

#include "base/os.h"

/* Slurm tells a job what it was given also where it holds it to that by no cpuset. */
unsigned machine_processors(void)
{
	const char *given = getenv("SLURM_CPUS_PER_TASK");
	unsigned n = os_processors();
	uint64_t quota = machine_quota("");
	unsigned long task = given && *given >= '0' && *given <= '9' ? strtoul(given, NULL, 10) : 0;
	n = quota < n ? (unsigned)quota : n;
	return task && task < n ? (unsigned)task : n;
}

/* The lowest number of the threads of its core, by which a core is known; its own where nothing says. */
static unsigned core_of(const char *root, unsigned number)
{
	char path[4096];
	unsigned first;
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", root, number);
	AUTO_FILE FILE *f = fopen(path, "re");
	return f && fscanf(f, "%9u", &first) == 1 ? first : number;
}

void machine_cores_first(const char *root, unsigned *numbers, unsigned count)
{
	AUTO_ARENA struct arena a = {0};
	unsigned *cores = arena_array(&a, count, sizeof(*cores)), *later = arena_array(&a, count, sizeof(*later));
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
