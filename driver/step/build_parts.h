/* The parts of the build step that only build*.c share. */
#pragma once
#include "base/proc.h"
#include "step/backend.h"
#include "step/build.h"

/* build_start_log: the log's path in the build directory; its directory is made. */
int build_start_log(const struct build_request *q, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* build_sandbox: the sandbox every command of the build runs in, its environment still empty. */
int build_sandbox(const struct build_request *q, struct arena *a, struct sandbox *s, struct err *e) MUST_CHECK;
/* build_set_up: everything that must be there before the package's own build may run: directories, generated files, sandbox, environment. Fills r->log and r->jobs. */
int build_set_up(const struct build_request *q, const struct backend *b, struct arena *a, struct sandbox *s, struct build_result *r,
		 struct err *e) MUST_CHECK;

/* One command of the build: what is run and what it tells about itself, line by line. */
struct build_command {
	const struct build_request *q;
	const struct sandbox *sandbox;
	const char *const *argv;
	const char *step; /* for people: "configure", "build" */
	const char *log;  /* both streams are appended to it */
};

/* build_command_run: runs it to its end. A non-zero exit is ERR_BUILD with the first error of what it said and where the log is; a full disk is ERR_SYSTEM. */
int build_command_run(const struct build_command *c, const struct run *run, struct proc_result *ret, struct err *e) MUST_CHECK;
/* build_failure: sets `e` for a command that ended with a status other than 0; `offset`: where its own output begins in the log. */
int build_failure(const struct build_command *c, uint64_t offset, int status, struct err *e);
