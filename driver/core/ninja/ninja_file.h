/* Rewrites a build.ninja of CMake's: job pools for compilers, heavy units and links, and the
 * heaviest units first. */
#pragma once
#include "base/base.h"

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
int ninja_text(const char *text, size_t len, const char *name, const struct ninja_options *o, struct arena *a,
	       struct buf *out, struct ninja_counts *ret, struct err *e) MUST_CHECK;
/* ninja_file_rewrite: the same of a file below `top`, by rename. It keeps its times, by which ninja
 * decides whether to run CMake again. */
int ninja_file_rewrite(const char *top, const char *rel, const struct ninja_options *o, struct arena *a,
		       struct ninja_counts *ret, struct err *e) MUST_CHECK;
