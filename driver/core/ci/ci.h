/* Jobs for a CI service or a cluster: which variants go into one job, which caches jobs share, on
 * which runners they run, and the files that say so. Pure, but for reading tables. */
#pragma once
#include <jansson.h>

#include "core/variant/variant.h"

struct ci_format_row {
	const char *name;
	const char *jobs;    /* at most that many in one matrix */
	const char *minutes; /* at most for a job */
	const char *cache;   /* a size: the compiler cache of a job */
	const char *cpus;    /* of a job, or of the service's runners */
	const char *own;     /* label of runners that a user brings; "" where there are no others */
	const char *caches;  /* a size: all caches of a repository; "" = no limit is known */
	const char *files;   /* a size: files of one world that are kept at most; "" = none is */
	const char *attests; /* files that one attestation may have; "" = it makes none */
};

struct ci_machine_row { /* a runner that a service offers by a fixed label */
	const char *label;
	const char *format;
	const char *platform;
	const char *cpus;
	const char *disk;    /* a size */
	const char *minutes; /* after which a job is ended */
};

struct ci_action_row { /* of GitHub */
	const char *name;
	const char *uses;
	const char *commit;
	const char *version;
};

struct ci_runner_row {
	const char *match;    /* glob on the variant's name; "" = any */
	const char *platform; /* "" = any */
	const char *format;   /* "" = any */
	const char *minutes;  /* that a job may take there; "" = as the service's own */
	const char *cpus;     /* "" = as the machine of its label */
	const char *disk;     /* a size; "" = the same */
	const char *mem;      /* a size: of a job on a cluster; "" = what it needs */
	const char **labels;
	unsigned labels_count;
};

struct ci_tables {
	struct ci_format_row *formats;
	unsigned formats_count;
	const char *image;           /* that jobs run in which name none */
	const char **wheel_packages; /* of its system, for the wheel of a release of ptbuild */
	unsigned wheel_packages_count;
	struct ci_machine_row *machines;
	unsigned machines_count;
	struct ci_action_row *actions;
	unsigned actions_count;
	struct ci_runner_row *runners;
	unsigned runners_count;
};

/* ci_tables_load: ci.yaml of the profiles directory. ci_runners_load: a user's map, which has
 * runners alone. ERR_CONFIG with file and line. */
int ci_tables_load(const char *profiles_dir, struct arena *a, const struct ci_tables **ret,
		   struct err *e) MUST_CHECK;
int ci_runners_load(const char *path, struct arena *a, const struct ci_tables **ret,
		    struct err *e) MUST_CHECK;
/* ci_format: NULL for a format without limits. ci_action: "NAME@COMMIT"; NULL without a row. */
const struct ci_format_row *ci_format(const struct ci_tables *t, const char *format);
const char *ci_action(const struct ci_tables *t, const char *name, struct arena *a);
struct ci_limits {
	unsigned minutes, cpus;
	uint64_t disk;   /* bytes; 0: not known */
	uint64_t memory; /* bytes that the runner's row sets for a job; 0: none */
	bool timed;      /* the runner's row sets the minutes */
};

/* ci_limits: of a job on its runner: by the runner's row, else by the machine of one of its labels,
 * else by the format's row, which exists. */
struct ci_limits ci_limits(const struct ci_tables *t, const char *format,
			   const struct ci_runner_row *r);
/* ci_larger: the label of the smallest machine of the service with so much disk, else of a runner
 * that the user brings. */
const char *ci_larger(const struct ci_tables *t, const char *format, const char *platform,
		      uint64_t disk);
/* ci_runner: the first row that matches; NULL if none does. */
const struct ci_runner_row *ci_runner(const struct ci_tables *t, const char *format,
				      const char *platform, const char *variant);

struct ci_files {          /* what a job downloads for the world of its build */
	const char *world; /* its name; NULL: it has none, or nothing is downloaded */
	const char *key;   /* of the world: another lock has another */
	uint64_t bytes;
};

struct ci_choice { /* one variant that is to be built */
	struct variant variant;
	const struct release_row *release;
	bool shares;    /* a PyTorch whose build can be divided */
	uint64_t world; /* bytes of disk for the world of its build; 0: unknown */
	struct ci_files files;
};

struct ci_wheel; /* ci_install.h */

/* One job: PyTorch with what is built against it, or a companion alone, all for one profile,
 * Python, toolkit and release. */
struct ci_job {
	const char *id;          /* one of its own in the plan: its first variant */
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
	/* The jobs of a wave run at the same time, and no two of them compile the same units.
	 * What a job compiles was compiled in no wave before: it keeps that cache. */
	unsigned wave;
	bool makes_cpu, makes_gpu;
	struct ci_files files;
	const char *files_cache; /* the name that they are kept under; "": they are not kept */
	bool keeps_files;        /* it is the first job of that name */
	/* "1/4": a part of PyTorch's units, without a wheel; "last": the job that finds these; ""
	 * else. Shards come in the wave before their last job. */
	const char *shard;
	unsigned shards; /* of how many it is one; 0 else */
	bool shares;     /* it has a PyTorch whose build can be divided */
	const struct ci_runner_row *runner;
	struct strlist argv;      /* the build; its paths are those that the user gave */
	const char *command;      /* the same for a shell */
	unsigned cpus;            /* what it may use: set by the caller */
	uint64_t memory, seconds; /* bytes; seconds after which something is wrong */
	/* seconds it needs once the waves before it are done; 0: not known */
	double estimate;
	bool rough; /* it may be far from that */
	/* bytes of disk: of its world, by the choices; of all, set by the caller */
	uint64_t world, disk;
};

#define CI_COLLECT "collect"

struct ci_plan {
	const char *name; /* of the matrix */
	/* of every build, each with a blank in front: " --blas mkl"; "" */
	const char *options;
	/* a compiler cache on a server, instead of the service's; NULL: none */
	const char *remote;
	const char *image; /* that has ptbuild; NULL: the jobs install it */
	/* of a release, one for each platform; without any it is built from the checkout */
	const struct ci_wheel *wheels;
	size_t wheels_count;
	bool checkout;    /* options name files of the repository */
	bool attest;      /* the wheels get an attestation of their origin */
	bool keeps_files; /* a job keeps the files of its world */
	unsigned shards;  /* that a job which compiles a PyTorch is divided into; below 2: none */
	/* of jobs on a cluster: --cache and --out as the user gave them; NULL without */
	const char *store, *out;
	const struct ci_tables *tables;
	struct ci_job *jobs;
	size_t count;
	unsigned waves;
	bool has_cuda;   /* a job builds for a GPU of NVIDIA */
	bool sandboxed;  /* builds run in a sandbox */
	bool whole_proc; /* which has a /proc of its own */
	/* where Slurm runs the job that collects what the others made: the map's first row for the
	 * name CI_COLLECT, else the row of the last job */
	const struct ci_runner_row *collector;
};

/* How jobs run, of which the form of a plan makes documents. */
enum ci_kind {
	CI_DATA,    /* nothing runs them: for people, or another program */
	CI_SERVICE, /* each on a runner, with a store of its own; caches are the service's */
	CI_SCRIPT,  /* a script submits them, whose labels are options of sbatch */
	CI_VOLUME,  /* containers of an image, on a volume that all share */
};

/* A form in which a plan is written: a row of ci_outputs.c. */
struct ci_output {
	const char *name; /* of --format */
	enum ci_kind kind;
	json_t *(*document)(const struct ci_plan *p); /* new reference; NULL: it is not JSON */
	int (*script)(const struct ci_plan *p, struct buf *out, struct err *e); /* NULL: none */
	/* whether anything there runs the job; others are left out; NULL: all run */
	bool (*runs)(const struct ci_job *j);
};

/* ci_output: NULL for any other word. ci_is_service: whether it is one of a CI service. */
const struct ci_output *ci_output(const char *format);
bool ci_is_service(const char *format);

struct ci_request {
	const char *format; /* of ci_output */
	const struct ci_tables *tables;
	const struct ci_tables *own; /* the user's map; NULL without one */
	const struct ci_choice *choices;
	size_t count;
};

/* ci_plan_make: the jobs of these variants, by wave and then by what they share; the caller sets
 * name and options of `ret`. ERR_CONFIG when no row of the map matches. */
int ci_plan_make(const struct ci_request *q, struct arena *a, struct ci_plan *ret,
		 struct err *e) MUST_CHECK;

/* The store of a job, below its working directory. */
#define CI_STORE "ptbuild-store"
/* ci_build: the arguments of 'ptbuild build' beside variants and release. ci_labels: of a runner,
 * as an array (new reference). */
char *ci_build(const struct ci_plan *p, const char *format, struct arena *a);
json_t *ci_labels(const struct ci_runner_row *r);

/* The whole document for the service (new references). ci_json is ptbuild's own form: all that
 * something which starts programs must know. */
json_t *ci_github(const struct ci_plan *p);
json_t *ci_gitlab(const struct ci_plan *p);
json_t *ci_json(const struct ci_plan *p);
/* ci_kubernetes: a List of Jobs; `image`, `store` and `out` are set. */
json_t *ci_kubernetes(const struct ci_plan *p);
/* ci_kubernetes_runs: whether its nodes have the job's platform. Other jobs are left out. */
bool ci_kubernetes_runs(const struct ci_job *j);
/* ci_slurm: the script that submits the jobs, is each of them, and collects what they made. */
int ci_slurm(const struct ci_plan *p, struct buf *out, struct err *e) MUST_CHECK;

/* What only the files of this room share. */
/* slurm.sh, put into the program when that is built. */
extern const unsigned char slurm_script[];
extern const size_t slurm_script_size;

/* ci_is_sbatch_label: whether a label of a runner is an option of sbatch that a map may give:
 * "partition=gpu". */
bool ci_is_sbatch_label(const char *label);
