/* ninja's log of the commands that it ran (.ninja_log, versions 5, 6 and 7), and the statements
 * that it was given (build.ninja). */
#pragma once
#include "base/base.h"

/* ptbuild's own commands in a build.ninja, which only order others, have their outputs here.
 * Readers of statements and logs skip them. */
#define NINJA_WAIT_DIR ".ptbuild-heavy/"
bool ninja_is_wait(const char *output);

/* One line of the log: an output that a command made. */
struct ninja_entry {
	const char *output;
	uint64_t start_ms, end_ms; /* since the ninja that ran it began */
	/* ns since the epoch; from version 6 on when the command began, before that the output's;
	 * 0: none */
	int64_t mtime;
	uint64_t hash; /* of the command */
};

struct ninja_log {
	unsigned version;
	/* in the order of the file; a later entry of an output replaces an earlier one */
	struct ninja_entry *entries;
	size_t count;
	/* damaged lines, as a kill leaves them; ninja skips them, too */
	size_t skipped;
};

/* ninja_log_parse: ERR_INTEGRITY names `name` when the first line is not that of a supported
 * version. Strings live in the arena. */
int ninja_log_parse(const char *text, size_t len, const char *name, struct arena *a, struct ninja_log *ret,
		    struct err *e) MUST_CHECK;

/* ninja_log_read: the same of a file below `top`. */
int ninja_log_read(const char *top, const char *rel, struct arena *a, struct ninja_log *ret, struct err *e) MUST_CHECK;
/* ninja_log_dirs: adds the directories at or below top/rel that hold a .ninja_log, as paths below
 * `top`. None where there is no such directory. */
int ninja_log_dirs(const char *top, const char *rel, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;

/* One command that was run: its outputs are one unit, named by the first of them. */
struct ninja_unit {
	const char *path;
	double start, end; /* seconds since the epoch */
	unsigned run;      /* 0, 1, ...: which run of ninja it was, in the order of time */
	unsigned outputs;
	const char *input; /* "": for the caller to fill, from its edge */
};

/* ninja_log_units: the commands of a log, each output's last, sorted by start. The log holds times
 * since the start of a run only: time stamps of the object files tell which run an entry is of and
 * when that began. Without time stamps all are of one run that began at 0. */
void ninja_log_units(const struct ninja_log *log, struct arena *a, struct ninja_unit **ret, size_t *ret_count);

/* ninja_units_sort: by start, then path. */
void ninja_units_sort(struct ninja_unit *units, size_t count);

/* ninja_slots: for units sorted by start, the processor slot of each: the lowest that was free.
 * `slots` gets `count` numbers; returns how many slots there are. */
unsigned ninja_slots(const struct ninja_unit *units, size_t count, unsigned *slots);

/* One statement of a build.ninja. */
struct ninja_edge {
	const char *output; /* the first one */
	const char *rule;
	const char *input; /* the first one, "" if there is none */
};

/* ninja_build_parse: the build statements but phony ones, sorted by output. Variables are not
 * expanded: a path with one is skipped, as is all that is not a statement, so any bytes have a
 * result. */
void ninja_build_parse(const char *text, size_t len, struct arena *a, struct ninja_edge **ret, size_t *ret_count);
/* ninja_build_read: the same of a file; one that is missing has no statements. */
int ninja_build_read(const char *top, const char *rel, struct arena *a, struct ninja_edge **ret, size_t *ret_count,
		     struct err *e) MUST_CHECK;
/* ninja_build_find: NULL if none. */
const struct ninja_edge *ninja_build_find(const struct ninja_edge *edges, size_t count, const char *output);
