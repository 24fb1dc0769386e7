#include "base/sys/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/os.h"

/* Slurm tells a job what it was given also where it holds it to that by no cpuset. */
unsigned machine_processors(void)
{
	const char *given = getenv("SLURM_CPUS_PER_TASK");
	unsigned n = os_processors();
	uint64_t quota = machine_quota_at("");
	unsigned long task = given && *given >= '0' && *given <= '9' ? strtoul(given, NULL, 10) : 0;
	n = quota < n ? (unsigned)quota : n;
	return task && task < n ? (unsigned)task : n;
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
