/* Which variants a command is about, for all commands that take a profile or variants. */
#pragma once
#include "cmd/cmd.h"
#include "core/plan/plan.h"

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
	struct plan_options plan;
};

/* The options struct of a command that selects begins with these two; cmd_select_options and
 * cmd_plan_options are its tables. */
struct cmd_select_base {
	struct cmd_globals global;
	struct cmd_select select;
};
extern const struct arg_def cmd_select_options[], cmd_plan_options[];
/* For commands that tell what the variants of a matrix share. */
extern const struct arg_def cmd_units_options[];
/* The help of such a command's VARIANT... */
#define CMD_SELECT_VARIANTS                                                                                            \
	"exact variant names, for example pytorch-python313-cpu-avx2, instead of --profile and --package"

struct selection {
	struct variant variant;
	const struct release_row *release;
	const char *note; /* what became of a native profile; NULL */
};

struct selections {
	struct selection *items;
	size_t count;
};

/* cmd_select: the variants that are meant, each with its release, pytorch before the packages
 * built against it. They come from the words (variant names), from --profile and --package, or
 * from --matrix and --only, in the matrix's order; ERR_USAGE for more than one of these, or
 * none. Defaults: Python is the root's if the release allows it, else the newest allowed; the
 * release is the matrix's, else the newest that fits; CUDA stays NULL, and the plan takes the
 * release's first. */
int cmd_select(struct cmd_context *c, const struct strlist *words, struct selections *ret, struct err *e) MUST_CHECK;
/* cmd_select_plan: the plan of one of them. With a toolchain (NULL: not probed) the root's toolkits
 * are looked for as well. torch (NULL: --torch), torch_version: as in plan_request. */
int cmd_select_plan(struct cmd_context *c, const struct selection *s, const struct toolchain *toolchain,
		    const char *torch, const char *torch_version, const struct plan **ret, struct err *e) MUST_CHECK;
/* cmd_plan: the same against the torch that --torch names, as far as that can be told without a
 * build; `probed`: by the tools of the root. ERR_POLICY for a torch that does not fit. */
int cmd_plan(struct cmd_context *c, const struct selection *s, bool probed, const struct plan **ret,
	     struct err *e) MUST_CHECK;
/* cmd_select_blas: --blas; may be NULL. */
const char *cmd_select_blas(const struct cmd_context *c);
/* cmd_select_cuda_home: --cuda-home, else $CUDA_HOME without --root; may be NULL. */
const char *cmd_select_cuda_home(const struct cmd_context *c);
struct official_wheel; /* core/wheel/wheel.h */
/* cmd_official_fetch: pinned wheels, into the store. */
int cmd_official_fetch(struct cmd_context *c, const struct official_wheel *const *wheels, size_t count,
		       struct strlist *ret, struct err *e) MUST_CHECK;
/* cmd_slim: a wheel cut to the GPUs of a profile, in `dir`; *ret NULL: it has no GPU code. */
int cmd_slim(struct cmd_context *c, const char *wheel, const struct profile *p, const char *dir, const char **ret,
	     struct err *e) MUST_CHECK;
/* What the torch that is named says of its build; NULL: nothing. */
struct cmd_extension {
	struct strlist packages;
	const char *release, *python, *cuda;
};

/* cmd_extension: reads what `o` names (folders, sdists, NAME==VERSION of torch_extensions.yaml) and
 * puts their rows into the tables of the context. ERR_USAGE for what is none of them and for two of
 * one name, ERR_CONFIG for a name that is not pinned. */
int cmd_extension(struct cmd_context *c, const struct cmd_select *o, const struct profile *p, struct cmd_extension *ret,
		  struct err *e) MUST_CHECK;
