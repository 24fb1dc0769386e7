/* Asked = got: PyTorch turns features off with only a warning, so what the configuration made of
 * the plan is read back and compared. */
#pragma once
#include "base/run.h"
#include "core/plan/plan.h"

struct config_report {
	size_t entries;  /* cache entries compared */
	size_t commands; /* compile commands looked at */
	size_t host_units, device_units;
};

/* check_config_cache: every setting of plan->cmake against a CMakeCache.txt (booleans by meaning: ON = 1 =
 * TRUE), then against the summary that the configuration printed, when `log_path` holds one: the
 * summary shows what CMake variables became behind the cache's back. ERR_POLICY lists every
 * difference, each with the log line that explains it. A cache that cannot be parsed is
 * ERR_INTEGRITY with the line. */
int check_config_cache(const struct plan *p, const char *cache_path, const char *log_path, struct config_report *r,
		       struct err *e) MUST_CHECK;
/* check_config_commands: every C and C++ command of a compile_commands.json has all the plan's CPU flags;
 * none has -march=native or -mtune=native; no CUDA command has a CPU flag. ERR_POLICY names the
 * first unit and the count. */
int check_config_commands(const struct plan *p, const char *commands_path, struct config_report *r,
			  struct err *e) MUST_CHECK;
/* check_config_tree: finds the CMakeCache.txt and the compile_commands.json (or, for an extension built by
 * ninja without CMake, the commands of its build.ninja) below <tree>/build and checks them all.
 * Where the back end configures with CMake, finding none is ERR_POLICY. */
int check_config_tree(const struct plan *p, const char *tree, const char *log_path, bool cmake, struct config_report *r,
		      struct err *e) MUST_CHECK;
