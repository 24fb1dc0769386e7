/* Cost of a build, estimated before it begins: processor time by the weights of its units, how many
 * of them this machine compiles at once, and downloads. The one estimate of plan, doctor, build and
 * matrix. */
#pragma once
#include "cache/store.h"
#include "core/ninja/ninja.h"
#include "core/root/jobs.h"
#include "step/compile/build.h"
#include "step/watch/watch.h"

struct cost_request {
	const char *profiles; /* the tables' directory */
	const char *package, *release;
	const struct package_row *row; /* NULL: nothing is known of its memory */
	unsigned gpus;                 /* for how many targets nvcc compiles; 0: no GPU code */
	const struct store *store;     /* that knows how fast this machine is; NULL: none */
	/* What emulation takes (core/root/emulation.h): compiling in percent of a native build,
	 * and seconds more for a package; 0: native. */
	unsigned percent, seconds;
};

/* Where the figure for GPU code comes from. */
enum cost_gpu {
	COST_GPU_NONE,     /* no GPU code */
	COST_GPU_MEASURED, /* unit by unit, in the table */
	COST_GPU_GUESSED,  /* the table's number of units, each as a few that were measured */
	COST_GPU_UNKNOWN,  /* it is not in the figure */
};

struct cost {
	double units; /* seconds of one processor for all units; 0: nothing is known */
	double after; /* seconds of the steps behind the build */
	/* bytes of the wheel, packed and unpacked, without GPU code; 0: not known */
	double wheel, unpacked;
	enum cost_gpu gpu;
	bool here;         /* scaled by an earlier build on this machine */
	const char *table; /* release whose table was taken; "": none */
	const char *release, *package;
	struct jobs_memory memory; /* of one compiler, by the release's table */
	unsigned processors;       /* of this machine: more are no faster; 0: not known */
	unsigned percent, seconds; /* as asked; they are in `units` and `after` */
};

/* What is to be downloaded, as far as the store and its fallbacks lack it. */
struct cost_downloads {
	uint64_t world;      /* bytes of the world's files of known size */
	uint64_t sources;    /* bytes of sources of known size */
	uint64_t torch;      /* bytes of the official wheel that is built against */
	unsigned of_unknown; /* how many files more, whose size no table has */
	/* Debian archives without which some of it cannot be had */
	struct strlist archives;
};

/* cost_of: the estimate, from an empty compiler cache. A table that cannot be read is a warning. */
struct cost cost_of(const struct cost_request *q, const struct run *run, struct arena *a);
/* cost_jobs: how many compilers this machine runs at once; `asked` as --jobs, 0: as many as fit. */
unsigned cost_jobs(const struct cost *c, unsigned asked);
/* cost_seconds: returns the time with so many jobs; 0: not known. */
double cost_seconds(const struct cost *c, unsigned jobs);
/* cost_text: returns "about 1 h 50 min with 2 jobs (3 h 39 min of CPU time)" and the origin of the
 * estimate; "not known: ..." and when it will be, if nothing is known, as for an extension. */
char *cost_text(const struct cost *c, unsigned jobs, struct arena *a);
/* cost_guessed: whether the time may be off by more than a machine's speed: it is of another
 * release, or the figure for GPU code was not measured. */
bool cost_guessed(const struct cost *c) __attribute__((pure));
/* cost_size_text: returns "about 95 MB, 324 MB unpacked", and its origin; `official`: bytes of the
 * index's wheel, 0: unknown. NULL: nothing is known. */
char *cost_size_text(const struct cost *c, uint64_t official, struct arena *a);
/* cost_sources: adds what of a package's sources a store (NULL: none) lacks. A damaged one counts
 * as lacking. */
void cost_sources(struct store *s, const struct package_row *row, struct arena *a,
		  struct cost_downloads *d);
/* cost_downloads_text: "390.8 MB for the world, 27.6 MB of sources"; "nothing" if all is there. */
char *cost_downloads_text(const struct cost_downloads *d, struct arena *a);
/* cost_json: both, a new reference: download_bytes, downloads_of_unknown_size, jobs, seconds,
 * processor_seconds, gpu_code, by, wheel_bytes without GPU code, and emulated: percent and seconds,
 * null for a native build. What is not known is null. */
json_t *cost_json(const struct cost *c, const struct cost_downloads *d, unsigned jobs);

struct weight {
	const char *path; /* as ninja names it: "caffe2/CMakeFiles/torch_cpu.dir/a.cpp.o" */
	double seconds;
};

/* Time of commands that no line lists, by the name of their rule up to "__". */
struct weights_class {
	const char *rule;
	double seconds; /* for the whole GPU list of the variant */
	unsigned units; /* that such a build has and no line lists; 0: not known */
};

struct weights {
	struct weight *units; /* sorted by path */
	size_t count;
	double after;           /* seconds of the steps that follow the build */
	double wheel, unpacked; /* bytes of the wheel that it made; 0: not known */
	struct weights_class *classes;
	size_t classes_count;
	const char *release; /* whose table it is: the nearest's; "": none */
	/* seconds on this machine for one of the table, by an earlier build; 0: not known */
	double factor;
};

/* weights_parse: the text of a table. ERR_CONFIG names `name` and the line. */
int weights_parse(const char *text, size_t len, const char *name, unsigned gpus, struct arena *a,
		  struct weights *ret, struct err *e) MUST_CHECK;
/* weights_load: the table of the release, or else of the nearest release of the package, below
 * `profiles`; `gpus`: how many targets a CUDA unit is compiled for. With a store all seconds are
 * this machine's, as far as weights_learn knew it. A table that cannot be read is a warning. */
const struct weights *weights_load(const char *profiles, const char *package, const char *release,
				   unsigned gpus, const struct store *s, const struct run *run,
				   struct arena *a) __attribute__((returns_nonnull));
/* weights_find: the seconds of a unit; of its copy for another instruction set
 * ("Sort.cpp.AVX2.cpp.o") where its own are not known; 0: unknown. */
double weights_find(const struct weights *w, const char *path);
/* weights_learn: how fast this machine is, kept in the store: its units took `seconds` where `w`
 * says `expected`. `cpu_share`: how much of the time of all units a processor worked for them; on a
 * busy machine a unit waits for one as well, which is no work of its own. 0: not known. */
void weights_learn(const struct store *s, const char *package, const struct weights *w,
		   double seconds, double expected, double cpu_share);

/* Estimate: how much of a build is left, by the weights of its commands and this build's own
 * speed. */

struct estimate;

/* A command that has ended. */
struct estimate_made {
	const char *path;
	double seconds;
};

struct estimate_look {
	const struct estimate_made *made; /* all that ninja's logs name */
	size_t made_count;
	const struct watch_running *running;
	size_t running_count;
	unsigned done, all; /* commands of this run of ninja; 0: none has ended yet */
	double seconds;     /* since the build began */
};

struct estimate_view {
	double percent;      /* of the work, 0..100 */
	double seconds_left; /* negative: not known yet */
	/* most commands are in no table, or too little was made to say how fast this machine is */
	bool about;
};

/* estimate_new: `w` must live as long as the result, which lives in the arena; `jobs`: how many
 * commands may run at once (0: not known). */
struct estimate *estimate_new(const struct weights *w, unsigned jobs, struct arena *a);
/* estimate_add: the tree makes the outputs of these edges, and if they are not the `whole` plan
 * what else the table has, in later runs of ninja. What is known already is not added again. */
void estimate_add(struct estimate *x, const struct ninja_edge *edges, size_t count, bool whole);
/* estimate_before: an earlier run made these: they are not left and say nothing of the speed. */
void estimate_before(struct estimate *x, const struct estimate_made *made, size_t count);
/* estimate_look: what is left now. Without a plan it is by number. */
struct estimate_view estimate_look(struct estimate *x, const struct estimate_look *q);

/* Progress: on a terminal one line that is rewritten, elsewhere a line a minute and one for each
 * step, with -q nothing. */

struct progress_request {
	const char *package;
	const char *build_dir;         /* of the compile key */
	struct watch *watch;           /* NULL: jobs and memory are not shown */
	const struct weights *weights; /* what the commands take */
	unsigned jobs;                 /* how many may run at once; 0: not known */
};

struct progress;

/* progress_new: lives in the arena; the strings of `q` are not copied. */
struct progress *progress_new(const struct progress_request *q, const struct run *run,
			      struct arena *a);
/* progress_observer: for the build step. */
const struct build_observer *progress_observer(const struct progress *p);
/* progress_step: a step begins. */
void progress_step(struct progress *p, const char *step);

/* progress_bytes: "812 MiB", "3.1 GiB". */
void progress_bytes(char *to, size_t size, uint64_t bytes);
