/* The sandbox: what a build sees, as a list of operations (data), turned into a bubblewrap command line. */
#pragma once
#include "base/proc.h"
#include "core/root.h"

/* Fixed paths inside, whatever the host's are: compiled bytes and compiler-cache keys depend on them. */
#define SANDBOX_TOP "/ptbuild"
#define SANDBOX_SRC "/ptbuild/src"       /* the source tree, writable; the build tree is below it */
#define SANDBOX_OUT "/ptbuild/out"       /* the raw wheel, writable */
#define SANDBOX_CFG "/ptbuild/cfg"       /* generated files, read-only */
#define SANDBOX_VENV "/ptbuild/venv"     /* the build's Python environment, read-only (when there is one) */
#define SANDBOX_TORCH "/ptbuild/torch"   /* site-packages with the torch to build against, read-only (when it is a wheel) */
#define SANDBOX_CCACHE "/ptbuild/ccache" /* the compiler cache, writable */
#define SANDBOX_HOME "/ptbuild/home"     /* empty */
#define SANDBOX_TMP "/ptbuild/tmp"

enum sandbox_kind { SANDBOX_BWRAP, SANDBOX_NONE };
enum sandbox_op_type { SANDBOX_RO, SANDBOX_RW, SANDBOX_TMPFS, SANDBOX_DIR, SANDBOX_LINK, SANDBOX_PROC, SANDBOX_DEV };

struct sandbox_op {
	enum sandbox_op_type type;
	const char *source; /* host path, or the link's target; NULL where it does not apply */
	const char *dest;   /* path inside */
};

struct sandbox {
	enum sandbox_kind kind;
	struct arena *arena;
	const struct root *root;
	struct sandbox_op *ops;
	size_t count;
	size_t cap;
	struct kvlist env; /* exactly what the program sees */
	const char *cwd;   /* path inside */
	bool network;      /* false: a network name space of its own with nothing but loopback */
};

/* sandbox_init: shows the root read-only (its usr, bin, lib*, etc; of the host's /etc only what the loader, alternatives and user names need), /proc, a minimal /dev, an empty /tmp, SANDBOX_TMP and
 * SANDBOX_HOME. No /home, /root, /run, /var of the host. The environment starts empty. */
int sandbox_init(struct sandbox *s, enum sandbox_kind kind, const struct root *root, struct arena *a, struct err *e) MUST_CHECK;
/* sandbox_add: one more operation, after those there are. The strings are copied. */
void sandbox_add(struct sandbox *s, enum sandbox_op_type type, const char *source, const char *dest);
/* sandbox_argv: the full command line (pure). SANDBOX_NONE: the command itself with inside paths replaced by the host paths they are bound to. */
int sandbox_argv(const struct sandbox *s, const char *const *argv, struct strlist *ret, struct err *e) MUST_CHECK;
/* sandbox_run: runs argv inside. The fields argv, envp and cwd of `spec` are set here; its others are the caller's. */
int sandbox_run(const struct sandbox *s, const char *const *argv, struct proc_spec *spec, const struct run *run, struct proc_result *ret,
		struct err *e) MUST_CHECK;
/* sandbox_capture: runs argv inside, standard output in `out`; a non-zero exit is ERR_BUILD with the end of its standard error. */
int sandbox_capture(const struct sandbox *s, const char *const *argv, const struct run *run, struct buf *out, struct err *e) MUST_CHECK;
/* sandbox_probe: really runs `true` in one. Where that fails: ERR_POLICY with bubblewrap's own words and the way out (user name spaces, --sandbox none). */
int sandbox_probe(const struct root *root, const struct run *run, struct err *e) MUST_CHECK;
