/* Asked = got: PyTorch turns features off with no more than a warning, so the configuration is read
 * back and compared with the plan. */
#pragma once
#include "core/plan/plan.h"

struct config_report {
	size_t entries;  /* cache entries compared */
	size_t commands; /* compile commands looked at */
	size_t host_units, device_units;
	size_t overridden; /* host units that take a CPU flag of the plan back */
	char first_overridden[400];
};

/* All files lie below `top`; `log` is the build's, NULL for none. */
/* check_config_cache: every setting of plan->cmake against a CMakeCache.txt (booleans by meaning:
 * ON = 1 = TRUE), then against the summary that the configuration printed into the log, if any: it
 * shows what CMake variables became behind the cache's back. ERR_POLICY lists the differences, each
 * with the log line that explains it; ERR_INTEGRITY names the line of a damaged cache. */
int check_config_cache(const struct plan *p, const char *top, const char *cache, const char *log,
		       struct config_report *r, struct err *e) MUST_CHECK;
/* check_config_commands: in a compile_commands.json every C and C++ command has all the plan's CPU
 * flags, none has -march=native or -mtune=native, and no CUDA command has a CPU flag. ERR_POLICY
 * names the first unit and the count. A flag that a later word takes back (-mno-avx2, another
 * -mcpu=) is counted, and refused when most units have one. */
int check_config_commands(const struct plan *p, const char *top, const char *commands, struct config_report *r,
			  struct err *e) MUST_CHECK;
/* check_config_tree: finds CMakeCache.txt and compile_commands.json below `build` and checks
 * them; of extensions built without CMake the commands that the log has, and the build.ninja that
 * the last of them left. ERR_POLICY when there is none, or with `cmake` when one of CMake's two is
 * missing. ERR_BUILD when CMake's own log says that a program was killed. */
int check_config_tree(const struct plan *p, const char *top, const char *build, const char *log, bool cmake,
		      struct config_report *r, struct err *e) MUST_CHECK;
