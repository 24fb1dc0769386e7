/* Which variants a command is about: named outright, or by profile, package and release. Shared by
 * build, plan, fetch and doctor. */
#pragma once
#include "cmd/cmd.h"
#include "core/plan/plan.h"

struct cmd_select {
	const char *profile;
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

/* cmd_select: the variants that are meant, pytorch before the packages built against it, each with
 * its release. Words are variant names; without any, --profile and --package (default pytorch) make
 * them: --python default is the root's python3 if the release allows it, else the newest allowed;
 * --cuda stays open (NULL), the plan takes the first toolkit of the release that has the targets;
 * --release the newest that has the package. --matrix gives all variants of a matrix in its order,
 * or those that match --only; its release may be overridden by --release. More than one of words,
 * --profile and --matrix is ERR_USAGE, as is none. */
int cmd_select(struct cmd_context *c, const struct strlist *words, struct selections *ret, struct err *e) MUST_CHECK;
/* cmd_select_plan: the plan of one of them with the options' BLAS, toggles and the rest.
 * `toolchain` may be NULL (not probed); with one, a variant for CUDA has the root's toolkits looked
 * for as well. torch, torch_version: as in plan_request; NULL torch takes --torch. */
int cmd_select_plan(struct cmd_context *c, const struct selection *s, const struct toolchain *toolchain,
		    const char *torch, const char *torch_version, const struct plan **ret, struct err *e) MUST_CHECK;
/* cmd_select_cuda_home: --cuda-home, else CUDA_HOME of the environment when the host is the root;
 * NULL without. */
const char *cmd_select_cuda_home(const struct cmd_context *c);
