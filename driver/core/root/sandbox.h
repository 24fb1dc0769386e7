/* The sandbox: what a build sees, as a list of operations (data), turned into a bubblewrap command
 * line. */
#pragma once
#include "base/sys/proc.h"
#include "core/root/root.h"

/* Fixed paths inside, whatever the host's are: compiled bytes and compiler-cache keys depend on
 * them. */
#define SANDBOX_TOP "/ptbuild"
#define SANDBOX_SRC "/ptbuild/src"       /* the source tree, writable; the build tree is below it */
#define SANDBOX_OUT "/ptbuild/out"       /* the raw wheel, writable */
#define SANDBOX_CFG "/ptbuild/cfg"       /* generated files, read-only */
#define SANDBOX_VENV "/ptbuild/venv"     /* the build's Python environment, read-only */
#define SANDBOX_TORCH "/ptbuild/torch"   /* site-packages with the torch to build against, read-only */
#define SANDBOX_CCACHE "/ptbuild/ccache" /* the compiler cache, writable */
#define SANDBOX_CUDA "/ptbuild/cuda"     /* a CUDA toolkit from outside the root, read-only */
#define SANDBOX_HOME "/ptbuild/home"     /* empty */
#define SANDBOX_TMP "/ptbuild/tmp"

enum sandbox_kind { SANDBOX_BWRAP, SANDBOX_NONE };
/* sandbox_kind_name: "bubblewrap" or "none". sandbox_kind_parse: whether `name` is one of them. */
const char *sandbox_kind_name(enum sandbox_kind kind);
bool sandbox_kind_parse(const char *name, enum sandbox_kind *ret) MUST_CHECK;

enum sandbox_op_type {
	SANDBOX_RO,
	SANDBOX_RW,
	SANDBOX_TMPFS,
	SANDBOX_DIR,
	SANDBOX_LINK,
	SANDBOX_PROC,
	SANDBOX_DEV,
	SANDBOX_DATA
};

struct sandbox_op {
	enum sandbox_op_type type;
	/* host path, the link's target, or a read-only file's text (SANDBOX_DATA); NULL where it
	 * does not apply */
	const char *source;
	const char *dest; /* path inside */
};

struct sandbox {
	enum sandbox_kind kind;
	struct arena *arena;
	const struct root *root;
	struct sandbox_op *ops;
	size_t count;
	size_t cap;
	struct kvlist env; /* exactly what the program sees, beside PWD, which is always the cwd */
	const char *cwd;   /* path inside; NULL: "/" */
	bool terminal;     /* what runs inside has the caller's terminal, with job control */
	bool network;      /* false: a network name space of its own with nothing but loopback */
};

/* sandbox_init: shows the root read-only (its usr, bin, lib*, and of an unpacked root also etc and
 * opt; of the host's /etc only what the loader and the alternatives need), made-up passwd and group
 * files that know root, nobody and the build user (1000), /proc, a minimal /dev, and empty writable
 * /tmp, SANDBOX_HOME and SANDBOX_TMP in memory. No /home, /root, /run, /var of the host. The
 * environment starts empty. SANDBOX_NONE with an unpacked root is ERR_POLICY: without a sandbox
 * only the host's own tools can run. `s` keeps pointers to root and arena. */
int sandbox_init(struct sandbox *s, enum sandbox_kind kind, const struct root *root, struct arena *a,
		 struct err *e) MUST_CHECK;
/* sandbox_add: one more operation, after those there are; of two with the same dest the later one
 * is seen. The strings are copied. */
void sandbox_add(struct sandbox *s, enum sandbox_op_type type, const char *source, const char *dest);
/* sandbox_options: bubblewrap's options for it, without the program (pure); SANDBOX_DATA texts are
 * read from descriptors 3, 4... in their order. */
void sandbox_options(const struct sandbox *s, struct strlist *ret);
/* sandbox_argv: the full command line (pure): bwrap, its options, "--", argv. SANDBOX_NONE: the
 * command itself with inside paths replaced by the host paths they are bound to (as
 * sandbox_host_text does). ERR_USAGE for an empty command. */
int sandbox_argv(const struct sandbox *s, const char *const *argv, struct strlist *ret, struct err *e) MUST_CHECK;
/* sandbox_host_text: `text` with each inside path that begins a word, or follows an option
 * ("-I/ptbuild/src/x", "a=/ptbuild/src:/ptbuild/out"), replaced by the host path that the
 * longest bound directory above it stands for. SANDBOX_TMP without a directory bound to it
 * stands for /tmp. */
char *sandbox_host_text(const struct sandbox *s, const char *text, struct arena *a);
/* sandbox_run: runs argv inside, as user 1000 with umask 022, a process space and host name of its
 * own, no capabilities and no way to get any; it dies with the caller. The fields argv, envp, cwd,
 * fds and umask of `spec` are set here; its others are the caller's. A program that exits non-zero
 * is not an error. ERR_SYSTEM: bubblewrap is missing, the program or a shown path does not exist.
 * ERR_POLICY: bubblewrap cannot make the sandbox (its own words in the message). SANDBOX_NONE
 * isolates nothing. */
int sandbox_run(const struct sandbox *s, const char *const *argv, struct proc_spec *spec, const struct run *run,
		struct proc_result *ret, struct err *e) MUST_CHECK;
/* sandbox_capture: runs argv inside, standard output in `out`; a non-zero exit is ERR_BUILD with
 * the end of its standard error. */
int sandbox_capture(const struct sandbox *s, const char *const *argv, const struct run *run, struct buf *out,
		    struct err *e) MUST_CHECK;
/* sandbox_probe: really runs `true` in one. Where that fails: ERR_POLICY with bubblewrap's own
 * words and the way out (user name spaces, --sandbox none). */
int sandbox_probe(const struct root *root, const struct run *run, struct err *e) MUST_CHECK;
