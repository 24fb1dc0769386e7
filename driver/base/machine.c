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
