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
int ninja_log_parse(const struct file_bytes *in, struct arena *a, struct ninja_log *ret,
		    struct err *e) MUST_CHECK;

/* ninja_log_read: like ninja_log_parse, for a file below `top`. */
int ninja_log_read(const char *top, const char *rel, struct arena *a, struct ninja_log *ret,
		   struct err *e) MUST_CHECK;
/* ninja_log_dirs: adds the directories at or below top/rel that hold a .ninja_log, as paths below
 * `top`. None where there is no such directory. */
int ninja_log_dirs(const char *top, const char *rel, struct arena *a, struct strlist *ret,
		   struct err *e) MUST_CHECK;

/* One command that was run: its outputs are one unit, named by the first of them. */
struct ninja_unit {
	const char *path;
	double start, end; /* seconds since the epoch */
	unsigned run;      /* 0, 1, ...: which run of ninja it was, in the order of time */
	unsigned outputs;
	const char *input; /* "": for the caller to fill, from its edge */
};

/* ninja_log_units: returns the commands of a log, each output's last, sorted by start. The log
 * holds times since the start of a run only: time stamps of the object files show which run an
 * entry is of and when that began. Without time stamps all are of one run that began at 0. */
void ninja_log_units(const struct ninja_log *log, struct arena *a, struct ninja_unit **ret,
		     size_t *ret_count);

/* ninja_units_sort: by start, then path. */
void ninja_units_sort(struct ninja_unit *units, size_t count);

/* ninja_slots: for units sorted by start, the processor slot of each: the lowest that was free.
 * `slots` gets `count` numbers; returns how many slots there are. */
unsigned ninja_slots(const struct ninja_unit *units, size_t count, unsigned *slots);

/* One statement of a build.ninja. */
struct ninja_edge {
	const char *output; /* the first one */
	const char *rule;
	const char *input; /* the first one, "" without inputs */
};

/* ninja_build_parse: the build statements but phony ones, sorted by output. Variables are not
 * expanded: a path with one is skipped, as is all that is not a statement, so any bytes have a
 * result. */
void ninja_build_parse(const char *text, size_t len, struct arena *a, struct ninja_edge **ret,
		       size_t *ret_count);
/* ninja_build_read: like ninja_build_parse, for a file; a missing one has no statements. */
int ninja_build_read(const char *top, const char *rel, struct arena *a, struct ninja_edge **ret,
		     size_t *ret_count, struct err *e) MUST_CHECK;

/* Rewrites a build.ninja of CMake's: job pools for compilers, heavy units and links, and the
 * heaviest units first. */

/* NINJA_FILE_MAX: larger files are refused. */
#define NINJA_FILE_MAX (UINT64_C(256) << 20)

/* What is known of one compiled output. */
struct ninja_weight {
	bool heavy;
	double cost; /* those of higher cost are started first; equal ones stay in their order */
};
typedef struct ninja_weight (*ninja_weigh_fn)(const char *output, void *user);

struct ninja_options {
	unsigned compile, heavy, link; /* depths, at least 1 */
	ninja_weigh_fn weigh;
	void *user;
};

struct ninja_counts {
	unsigned compile, heavy, link; /* edges of each kind */
	struct strlist heavy_outputs;  /* in the order they are started */
	bool changed;                  /* the text is not what it was */
};

/* ninja_text: appends `text` to `out` with its commands in ptbuild's pools (pure). The name of
 * CMake's rule says which pool; static libraries, custom commands and what has a pool already stay
 * as they are. Statements move only between other build statements, never past a variable, rule or
 * include, so that each keeps its meaning. What an earlier run added is replaced: the same options
 * give the same text again. Links with heavy units wait for these through commands of ours (below
 * NINJA_WAIT_DIR), so that ninja begins with them; no command of CMake's changes, so no output
 * becomes dirty. ERR_INTEGRITY names the line of a text that cannot be read; `name` is for the
 * message. */
int ninja_text(const char *text, size_t len, const char *name, const struct ninja_options *o,
	       struct arena *a, struct buf *out, struct ninja_counts *ret,
	       struct err *e) MUST_CHECK;
/* ninja_file_rewrite: like ninja_text, for a file below `top`, by rename. Keeps its times, by which
 * ninja decides whether to run CMake again. */
int ninja_file_rewrite(const char *top, const char *rel, const struct ninja_options *o,
		       struct arena *a, struct ninja_counts *ret, struct err *e) MUST_CHECK;

/* Divides the compilations of a CMake build.ninja among several builds of the same tree. */

struct ninja_share_options {
	unsigned index, count; /* this share (from 1) of so many */
	/* seconds of a compiled output; 0: not known. Every share must get the same answers. */
	double (*seconds)(const char *output, void *user);
	void *user;
};

struct ninja_share {
	struct strlist outputs; /* of this share, the longest first */
	double seconds;         /* of these */
	size_t units;           /* that are divided */
	/* that every share compiles, because other units cannot be compiled without them:
	 * precompiled headers, generators of sources */
	size_t common;
};

/* ninja_share: what "all" compiles (without such a target: every compilation), divided by time. The
 * shares of one text are disjoint, and together they are all. The order of the statements does not
 * count. Errors as ninja_text's. */
int ninja_share(const char *text, size_t len, const char *name, const struct ninja_share_options *o,
		struct arena *a, struct ninja_share *ret, struct err *e) MUST_CHECK;

/* ninja_share_text: appends a ninja file with all of `manifest` and a target NINJA_SHARE for these
 * outputs, which may be more than a command line holds. */
#define NINJA_SHARE "ptbuild_share"
void ninja_share_text(const char *manifest, const struct strlist *outputs, struct buf *out);

/* ccache's log of one build (CCACHE_STATSLOG): for each call the source file, and the names of the
 * counters that it raised. */

struct ccache_counter {
	/* as ccache calls it: "direct_cache_hit", "cache_miss", "called_for_link" */
	const char *name;
	unsigned count;
};

struct ccache_source {
	const char *path;
	unsigned hits, misses; /* of its compilations; both 0: ccache only passed it on */
};

struct ccache_stats {
	struct ccache_counter *counters; /* sorted by name */
	size_t counters_count;
	struct ccache_source *sources; /* sorted by path */
	size_t sources_count;
	unsigned direct_hits, preprocessed_hits, misses; /* of compilations */
	/* how many of the hits came from the remote storage */
	unsigned remote_hits;
};

/* ccache_stats_parse: any bytes have a result; other lines are skipped. */
void ccache_stats_parse(const char *text, size_t len, struct arena *a, struct ccache_stats *ret);
