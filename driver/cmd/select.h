/* Which variants a command is about, for all commands that take a profile or variants. */
#pragma once
#include "cmd/cmd.h"
#include "core/ci/ci.h"
#include "core/plan/plan.h"
#include "core/world/world.h"
#include "step/pipeline/make.h"

struct cmd_select {
	const char *profile;
	struct strlist extensions;
	bool follow_torch; /* release, Python and CUDA are that of --torch, as with an extension */
	const char *matrix;
	struct strlist only;
	struct strlist units;
	const char *release;
	const char *python;
	const char *cuda;
	const char *cuda_home;
	struct strlist packages;
	struct strlist sources;   /* --source, as it was written */
	const char *version;      /* of --source or --extension; NULL: it says it itself */
	const char *requirements; /* a lock, for what extensions need of Python; NULL: theirs */
	struct plan_options plan; /* without `sources`: cmd_plan_asked */
};

/* The options struct of a command that selects begins with these two; cmd_select_options and
 * cmd_plan_options are its tables. */
struct cmd_select_base {
	struct cmd_globals global;
	struct cmd_select select;
};
extern const struct arg_def cmd_select_options[], cmd_plan_options[];
/* cmd_selected: of the options of such a command. */
const struct cmd_select *cmd_selected(const struct cmd_context *c);
/* cmd_own_sources: what --source names: digests for sources of a release, for cmd_plan_asked, and
 * sources of the user's own, which become those of their package in the tables of the context.
 * ERR_USAGE for what is neither, or is of no package that is asked for. cmd_plan_asked: the options
 * of the plan with them. */
int cmd_own_sources(struct cmd_context *c, const struct strlist *words, struct err *e) MUST_CHECK;
struct plan_options cmd_plan_asked(const struct cmd_context *c);
/* cmd_source: a row for a folder or an archive of the user's, with its digest. */
int cmd_source(struct cmd_context *c, const char *path, const char *name, const char *version,
	       struct source_row *ret, struct err *e) MUST_CHECK;
/* For commands that report what the variants of a matrix share. */
extern const struct arg_def cmd_units_options[];
/* The help of such a command's VARIANT... */
#define CMD_SELECT_VARIANTS                                                                        \
	"exact variant names, for example pytorch-python313-cpu-avx2, instead of --profile and "   \
	"--package"

struct selections {
	struct selection *items;
	size_t count;
};

/* cmd_select: returns the selected variants, each with its release, pytorch before the packages
 * built against it. They come from the arguments (variant names), from --profile and --package, or
 * from --matrix and --only, in the matrix's order; ERR_USAGE for more than one of these, or none.
 * Defaults: Python is the root's if the release allows it, else the newest allowed; the release is
 * the matrix's, else the newest that fits; CUDA stays NULL, and the plan uses the release's
 * first. */
int cmd_select(struct cmd_context *c, const struct strlist *words, struct selections *ret,
	       struct err *e) MUST_CHECK;
/* cmd_select_plan: plans one of the selected variants. With a toolchain (NULL: not probed) it also
 * looks for the root's toolkits. torch (NULL: --torch), torch_version: as in plan_request. */
int cmd_select_plan(struct cmd_context *c, const struct selection *s,
		    const struct toolchain *toolchain, const char *torch, const char *torch_version,
		    const struct plan **ret, struct err *e) MUST_CHECK;
/* cmd_plan: like cmd_select_plan against the torch of --torch, as far as it is known before a
 * build; `probed`: by the tools of the root. ERR_POLICY for a torch that does not fit. */
int cmd_plan(struct cmd_context *c, const struct selection *s, bool probed, const struct plan **ret,
	     struct err *e) MUST_CHECK;
/* cmd_select_cuda_home: --cuda-home, else $CUDA_HOME without --root; may be NULL. */
const char *cmd_select_cuda_home(const struct cmd_context *c);
/* What the torch that is named says of its build; NULL: nothing. */
struct cmd_extension {
	struct strlist packages;
	const char *release, *python, *cuda;
};

/* cmd_extension: reads the extensions that `o` names (folders, sdists, NAME==VERSION of
 * torch_extensions.yaml) and adds their rows to the tables of the context. ERR_USAGE for anything
 * else and for two of one name, ERR_CONFIG for a name that is not pinned. */
int cmd_extension(struct cmd_context *c, const struct cmd_select *o, const struct profile *p,
		  struct cmd_extension *ret, struct err *e) MUST_CHECK;
/* cmd_requirements: what the build of an extension needs from Python besides the locked list, and
 * where that is pinned or will be; NULL for nothing. `root` NULL: it is not there yet. */
int cmd_requirements(struct cmd_context *c, const struct plan *p, const struct root *root,
		     const char **ret, struct err *e) MUST_CHECK;
/* cmd_extension_cuda: sets torch_cuda of an extension for the CPU whose --torch is for CUDA.
 * Planning reports errors in reading that torch. */
int cmd_extension_cuda(struct cmd_context *c, const struct cmd_select *o, struct selection *s,
		       struct err *e) MUST_CHECK;

/* The root that a command works in: a directory of --root, this machine's own, or that of a world:
 * the one that --root world:NAME names, else the one that the release's table has. */

/* What is known of a root that a command only looks at. */
struct cmd_root_state {
	const struct world *world; /* NULL: it is not a world's */
	bool made;                 /* cmd_root gives it as it is; true without a world */
	const char *dir;           /* of a world that is made; else NULL */
	uint64_t missing;          /* bytes of its files that the store lacks, to make it */
	unsigned unknown;          /* of how many more the size is not known */
	struct strlist archives;   /* Debian archives that those files come from */
};

/* Variants that share a root. */
struct cmd_root_group {
	struct selections chosen;
	struct strlist alike;               /* what decides the root, in words, of each kind */
	const struct world *world;          /* NULL: it is not a world's */
	struct err why;                     /* why no root serves them; empty: one does */
	struct strlist drift;               /* once it is made: of the world, as world_result */
	struct root *root;                  /* NULL: not made yet */
	const struct cmd_root_state *state; /* NULL: nobody looked yet */
};

/* cmd_root_groups: groups variants by their root, in the order of their first: one group with a
 * directory as --root or without a sandbox, else one for each world. Variants that no root serves,
 * or not the world that --root names, are groups of their own, with the reason (ERR_POLICY).
 * Creates nothing. */
int cmd_root_groups(struct cmd_context *c, const struct selections *s, struct cmd_root_group **ret,
		    size_t *ret_count, struct err *e) MUST_CHECK;
/* cmd_root_each: for plans. *ret has a group for each of `s`, in its order, in the context's arena;
 * its world may be that of another platform than this machine's. */
int cmd_root_each(struct cmd_context *c, const struct selections *s,
		  struct cmd_root_group *const **ret, struct err *e) MUST_CHECK;
/* cmd_root_enter: cmd_root, and all that is asked of it, is that of this group from here on; it is
 * made when it is first asked for. */
void cmd_root_enter(struct cmd_context *c, const struct cmd_root_group *g);
/* cmd_root_make: enters it and has its root made, which it keeps. The error of a group that has
 * none is its reason. */
int cmd_root_make(struct cmd_context *c, struct cmd_root_group *g, struct err *e) MUST_CHECK;
/* cmd_root_look: whether there is a root yet; makes nothing. */
int cmd_root_look(struct cmd_context *c, struct cmd_root_state *ret, struct err *e) MUST_CHECK;
/* cmd_root_torch: the version of the root's torch. Until the root exists, a distribution's label is
 * the end of its release's name: 2.6.0-debian has 2.6.0+debian. */
int cmd_root_torch(struct cmd_context *c, const struct release_row *r, const char **ret,
		   struct err *e) MUST_CHECK;
/* cmd_root_default: without --root and with a sandbox, the release's world for builds without CUDA
 * becomes that of the command; if it has none, this machine's root stays. */
int cmd_root_default(struct cmd_context *c, const struct release_row *r, struct err *e) MUST_CHECK;
/* cmd_root_named: the world that --root names, loaded; NULL: it names none. Makes nothing. */
int cmd_root_named(struct cmd_context *c, const struct world **ret, struct err *e) MUST_CHECK;

/* Chooses the Python by one rule in all commands: that of the active virtual environment, else this
 * machine's, if the release and a world (or the official wheels) have it; else the release's newest
 * in a world. */
struct cmd_python {
	const struct release_row *release; /* NULL: no table has it */
	struct strlist pythons;            /* those that there are, the newest last */
	const char *platform;
	bool wheels;                   /* official ones, and nothing is built */
	const struct profile *profile; /* of a build; NULL: any of the CPU */
	struct strlist packages;       /* likewise */
	const char *cuda;
};

/* cmd_python: chooses one of q->pythons, and says in a line which and why; ERR_CONFIG without any.
 * A root that is not a world's decides itself. */
int cmd_python(struct cmd_context *c, const struct cmd_python *q, const char **ret,
	       struct err *e) MUST_CHECK;
/* cmd_root_serves: whether a world has this Python, with all that the builds need of it; or builds
 * work in a root that is named or this machine's. cmd_root_python: the Python of that root, NULL
 * where only running it would show. */
enum cmd_root_answer { CMD_ROOT_LACKS, CMD_ROOT_HAS, CMD_ROOT_OWN };
enum cmd_root_answer cmd_root_serves(struct cmd_context *c, const struct cmd_python *q,
				     const char *python);
const char *cmd_root_python(struct cmd_context *c);

/* cmd_world_text: "debian13, 391.1 MB to download", "debian13, made". cmd_world_json: a new
 * reference; null without a world. */
char *cmd_world_text(const struct cmd_root_state *r, struct arena *a);

/* Time, downloads and disk of a planned build on this machine, for commands that print them. */

struct cmd_cost {
	struct cost cost;
	struct cost_downloads downloads;
	unsigned jobs;
	bool torch; /* one that is built first is not in it */
	/* of disk: of the build, and of a world that is still to be made */
	double build_bytes, world_bytes;
};

/* cmd_cost: estimates by the tables and the store's contents; `root` is the root of the build,
 * `torch` the value of --torch (NULL: none). */
int cmd_cost(struct cmd_context *c, const struct plan *p, const struct cmd_root_state *root,
	     const char *torch, struct arena *a, struct cmd_cost *ret, struct err *e) MUST_CHECK;
/* cmd_cost_time, cmd_cost_disk, cmd_cost_size: the lines for people; the second names the store's
 * disk where it has too little, the last is NULL where nothing is known. */
char *cmd_cost_time(const struct cmd_cost *k, struct arena *a);
char *cmd_cost_disk(const struct cmd_context *c, const struct cmd_cost *k, struct arena *a);
char *cmd_cost_size(const struct cmd_context *c, const struct plan *p, const struct cmd_cost *k,
		    struct arena *a);

/* What builds take one after the other; what several compile, download or make counts once. */
struct cmd_total {
	struct strlist counted; /* in the arena of the run */
	struct cmd_cost sum;    /* of disk: that of the largest build, and of all worlds */
	bool unknown;           /* the time of one of them is not known, or not whole */
};

void cmd_total_add(struct cmd_context *c, const struct plan *p, const struct cmd_cost *k,
		   const struct cmd_root_state *root, struct cmd_total *t);

/* cmd_can_run: whether this machine runs programs of a platform: its own, or one that a cross part
 * emulates. "What is this machine" is machine_platform. */
bool cmd_can_run(struct cmd_context *c, const char *platform);
/* cmd_slower: what emulated programs of a platform take more than native ones; `world` as for
 * cmd_emulation. NULL: programs of the platform are not emulated, or nothing is known. */
const struct world_slower *cmd_slower(struct cmd_context *c, const char *platform,
				      const struct world *world);
/* cmd_emulation: how this machine runs programs of a platform, its files in the store; `world`:
 * whose programs they are; NULL: some root's, whose compilers are emulated too. *ret NULL: as they
 * are, or not at all. ERR_POLICY: the kernel cannot, or the part does not fit the world. */
int cmd_emulation(struct cmd_context *c, const char *platform, const struct world *world,
		  const struct emulation **ret, struct err *e) MUST_CHECK;
/* cmd_needs_request: fills a request for the root of the command (cmd_root_enter). For a world that
 * is not created yet that is this machine's root, with the sizes of the world. `plan` NULL: for the
 * release. */
int cmd_needs_request(struct cmd_context *c, const struct release_row *release,
		      const struct plan *plan, struct preflight_request *ret,
		      struct err *e) MUST_CHECK;
/* cmd_needs_reach: the network's row: asks the places of what the store lacks. */
int cmd_needs_reach(struct cmd_context *c, struct preflight *d, struct err *e) MUST_CHECK;
/* cmd_has_others: whether a wheel may come from another store, and nothing is built. */
bool cmd_has_others(const struct cmd_context *c);
/* cmd_needs_before: refuses variants of one root by what can be known before it is made: tables,
 * machine, network. `matrix`: a variant that the tables refuse is left to its build. */
int cmd_needs_before(struct cmd_context *c, const struct cmd_root_group *g, bool matrix,
		     struct err *e) MUST_CHECK;
/* cmd_needs_network: refuses (ERR_NETWORK) a plan whose sources or world's files no place has. */
int cmd_needs_network(struct cmd_context *c, const struct plan *p, struct err *e) MUST_CHECK;
/* cmd_needs_space: refuses a world that is to be made where the store's disk has no room for it. */
int cmd_needs_space(struct cmd_context *c, const struct world *w, struct err *e) MUST_CHECK;
/* cmd_needs_plan: refuses a plan that its world cannot serve, by the world's locks. */
int cmd_needs_plan(struct cmd_context *c, const struct plan *p, const struct world *w,
		   struct err *e) MUST_CHECK;

/* What the files about matrices share. */
/* matrix_cost: sets what each job may use: processors by --jobs or the format's row,
 * memory and time by the tables and what is known of this machine's speed. */
int matrix_cost(struct cmd_context *c, const struct ci_plan *p, const char *format,
		bool torch_named, struct err *e) MUST_CHECK;

/* matrix_world_bytes: returns the disk space of a world of which no part exists yet; NULL: 0.
 * matrix_warn: warns about jobs of a service that need more time or disk than their runners
 * have. */
uint64_t matrix_world_bytes(const struct world *w) __attribute__((pure));
void matrix_warn(struct cmd_context *c, const struct ci_plan *p, const char *format);

/* matrix_status: shows how far the run in a directory is: "table", "json" or "html". */
int matrix_status(struct cmd_context *c, const char *dir, const char *format,
		  struct err *e) MUST_CHECK;

/* cmd_units_cost: a line on how many units the variants compile, and how many of them are distinct,
 * by the compile commands of configured trees; without trees, what is known without. */
int cmd_units_cost(struct cmd_context *c, const struct strlist *trees,
		   const struct selections *chosen, const char **ret, struct err *e) MUST_CHECK;
