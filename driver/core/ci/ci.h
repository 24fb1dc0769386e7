/* Jobs for a CI service: which variants go into one job, which caches jobs share, on which runners
 * they run, and the files that GitHub and GitLab read. Pure, but for reading tables. */
#pragma once
#include <jansson.h>

#include "core/variant/variant.h"

struct ci_format_row {
	const char *name;
	const char *jobs; /* at most that many in one matrix */
};

struct ci_runner_row {
	const char *match;    /* glob on the variant's name; "" = any */
	const char *platform; /* "" = any */
	const char *format;   /* "" = any */
	const char **labels;
	unsigned labels_count;
};

struct ci_tables {
	struct ci_format_row *formats;
	unsigned formats_count;
	struct ci_runner_row *runners;
	unsigned runners_count;
};

/* ci_tables_load: ci.yaml of the profiles directory. ci_runners_load: a user's map, which has
 * runners alone. ERR_CONFIG with file and line. */
int ci_tables_load(const char *profiles_dir, struct arena *a, const struct ci_tables **ret, struct err *e) MUST_CHECK;
int ci_runners_load(const char *path, struct arena *a, const struct ci_tables **ret, struct err *e) MUST_CHECK;
/* ci_limit: how many jobs a matrix of that format may have; 0: no known limit. */
size_t ci_limit(const struct ci_tables *t, const char *format);
/* ci_runner: the first row that matches; NULL if none does. */
const struct ci_runner_row *ci_runner(const struct ci_tables *t, const char *format, const char *platform,
				      const char *variant);

struct ci_choice { /* one variant that is to be built */
	struct variant variant;
	const struct release_row *release;
};

/* One job: PyTorch with what is built against it, or a companion alone, all for one profile,
 * Python, toolkit and release. */
struct ci_job {
	struct strlist variants; /* in the order they are built */
	const char *release;
	const char *python;
	const char *cuda; /* "" without */
	const char *gpu;  /* "sm90", "sm80+sm90", "cpu", "mps" */
	const char *isa;  /* "" for a Mac */
	const char *platform;
	/* names the C++ units that the job compiles: jobs of one name compile the same */
	const char *cpu_cache;
	const char *gpu_cache; /* the same for GPU code; "" without */
	/* 1: compiles units for the first time; 2: every unit was compiled in wave 1 */
	unsigned wave;
	const struct ci_runner_row *runner;
	const char *command;
};

struct ci_plan {
	const char *name; /* of the matrix */
	/* of every build, each with a blank in front: " --blas mkl"; "" */
	const char *options;
	struct ci_job *jobs;
	size_t count;
};

/* ci_plan_make: the jobs of these variants, by wave and then by what they share; the caller sets
 * name and options of `ret`. `own` is the user's map, NULL without one. ERR_CONFIG when no row of
 * the map matches. */
int ci_plan_make(const char *format, const struct ci_tables *t, const struct ci_tables *own,
		 const struct ci_choice *choices, size_t count, struct arena *a, struct ci_plan *ret,
		 struct err *e) MUST_CHECK;

/* Where a job keeps the compiler caches, below its working directory. */
#define CI_CACHE_DIR ".ptbuild-cache"
/* ci_script: the command of a job, for a shell in which VARIANTS and RELEASE are set. ci_labels: of
 * a runner, as an array (new reference). */
char *ci_script(const struct ci_plan *p, struct arena *a);
json_t *ci_labels(const struct ci_runner_row *r);

/* The whole document for the service (new references); `limit` as ci_limit gives it, `image` a
 * container image or NULL. ci_json is ptbuild's own form. */
json_t *ci_github(const struct ci_plan *p, size_t limit, const char *image);
json_t *ci_gitlab(const struct ci_plan *p, size_t limit, const char *image);
json_t *ci_json(const struct ci_plan *p);
