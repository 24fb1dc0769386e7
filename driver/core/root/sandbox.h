/* The sandbox: what a build sees, as a list of operations that becomes a bubblewrap command
 * line. */
#pragma once
#include <jansson.h>

#include "base/sys/proc.h"
#include "core/root/emulation.h"
#include "core/root/root.h"

/* Fixed paths inside, whatever the host's are: compiled bytes and compiler-cache keys depend on
 * them. */
#define SANDBOX_TOP "/ptbuild"
#define SANDBOX_SRC "/ptbuild/src"       /* the source tree, writable; the build tree is below it */
#define SANDBOX_OUT "/ptbuild/out"       /* the raw wheel, writable */
#define SANDBOX_CFG "/ptbuild/cfg"       /* generated files, read-only */
#define SANDBOX_VENV "/ptbuild/venv"     /* the build's Python environment, read-only */
#define SANDBOX_TORCH "/ptbuild/torch"   /* site-packages with the torch of the build, read-only */
#define SANDBOX_CCACHE "/ptbuild/ccache" /* the compiler cache, writable */
#define SANDBOX_CUDA "/ptbuild/cuda"     /* a CUDA toolkit from outside the root, read-only */
#define SANDBOX_HOME "/ptbuild/home"     /* empty */
#define SANDBOX_TMP "/ptbuild/tmp"

enum sandbox_kind { SANDBOX_BWRAP, SANDBOX_NONE };
/* sandbox_kind_name: "bubblewrap" or "none". sandbox_kind_parse: whether `name` is one of them. */
const char *sandbox_kind_name(enum sandbox_kind kind);
bool sandbox_kind_parse(const char *name, enum sandbox_kind *ret) MUST_CHECK;

/* sandbox_check_root: whether a root that is not the host's can be shown, before it is made; `root`
 * is for the message. ERR_POLICY for SANDBOX_NONE. */
int sandbox_check_root(enum sandbox_kind kind, const char *root, struct err *e) MUST_CHECK;

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
	/* host path, a link's target, or the text of a read-only file (SANDBOX_DATA); else NULL */
	const char *source;
	const char *dest; /* path inside */
};

/* How bubblewrap creates its namespaces. */
enum sandbox_way {
	SANDBOX_WAY_USER,       /* as any user, in a user namespace */
	SANDBOX_WAY_PRIVILEGED, /* by root or a setuid bubblewrap, in a user namespace */
	SANDBOX_WAY_NO_USER,    /* like PRIVILEGED, on a kernel without user namespaces */
};

struct sandbox {
	enum sandbox_kind kind;
	struct arena *arena;
	const struct root *root;
	/* the root's; `emulated` is then its directory */
	const struct emulation *emulation;
	const char *emulated;
	struct sandbox_op *ops;
	size_t count;
	size_t cap;
	struct kvlist env; /* all that the program sees, beside PWD, which is always the cwd */
	const char *cwd;   /* path inside; NULL: "/" */
	/* a directory of ptbuild's, where sandbox_capture keeps the output of programs in a world
	 * of the store, which does not change; NULL: nothing is kept */
	const char *answers;
	bool terminal; /* what runs inside has the caller's terminal, with job control */
	bool network;  /* false: a network namespace with nothing but loopback */
	/* set by sandbox_run */
	enum sandbox_way way;
	bool proc_open;   /* /proc and /dev are left writable */
	bool proc_shared; /* /proc is that of the machine or container, read-only */
	bool keys_open;   /* /proc/keys can be read */
	uint64_t memory;  /* that files in memory are limited by; 0: the kernel's own limits */
};

/* sandbox_init: shows the root read-only (usr, bin, sbin and lib*; of an unpacked root also etc and
 * opt, of the host's /etc only certificates, debian_version and what the loader and the
 * alternatives need), generated passwd and group files with root, nobody and the build user (1000),
 * a read-only /proc, a minimal /dev, and empty writable /tmp, SANDBOX_HOME and SANDBOX_TMP in
 * memory. The environment is empty, but has QEMU_CPU for an emulated root. ERR_POLICY as
 * sandbox_check_root. `s` keeps pointers to root and arena. */
int sandbox_init(struct sandbox *s, enum sandbox_kind kind, const struct root *root,
		 struct arena *a, struct err *e) MUST_CHECK;
/* sandbox_add: appends an operation; of two with the same dest the later one is seen. The strings
 * are copied. */
void sandbox_add(struct sandbox *s, enum sandbox_op_type type, const char *source,
		 const char *dest);
/* sandbox_emulate_as: the processor that an emulated root's programs see (QEMU_CPU), that of a
 * profile. Nothing for "" and without emulation. */
void sandbox_emulate_as(struct sandbox *s, const char *cpu);
/* sandbox_copy: one that can be changed by itself, in another arena, which it uses from then on;
 * the strings of operations are shared. */
void sandbox_copy(const struct sandbox *s, struct arena *a, struct sandbox *ret);
/* sandbox_options: bubblewrap's options, without the program; SANDBOX_DATA texts are read from
 * descriptors 3, 4... in their order. */
void sandbox_options(const struct sandbox *s, struct strlist *ret);
/* sandbox_argv: the full command line: bwrap, its options, "--", argv. SANDBOX_NONE: the command
 * itself, as sandbox_host_text gives it. ERR_USAGE for an empty command. */
int sandbox_argv(const struct sandbox *s, const char *const *argv, struct strlist *ret,
		 struct err *e) MUST_CHECK;
/* sandbox_host_text: returns `text` with each inside path that begins a word, or follows an option
 * ("-I/ptbuild/src/x", "a=/ptbuild/src:/ptbuild/out"), replaced by the host path of the longest
 * bound directory above it. SANDBOX_TMP replaces /tmp unless bound. */
char *sandbox_host_text(const struct sandbox *s, const char *text, struct arena *a);
/* sandbox_run: runs argv inside, as user 1000 with umask 022, its own process IDs and host
 * name, no capabilities and no way to get any, with the protections that
 * run->without_protections leaves and with run->limits; it dies with the caller. If the caller
 * is root, user 1000 is BUILD_USER outside, and the directories it may write become that
 * user's. Ignores argv, envp, cwd, fds, umask and enter of `spec`. A non-zero exit is not an
 * error. ERR_SYSTEM: bubblewrap, the program or a shown path is missing. ERR_POLICY: bubblewrap
 * cannot create the sandbox. SANDBOX_NONE isolates nothing. */
int sandbox_run(const struct sandbox *s, const char *const *argv, const struct proc_spec *spec,
		const struct run *run, struct proc_result *ret, struct err *e) MUST_CHECK;
/* sandbox_capture: runs argv inside, standard output in `out`. A non-zero exit is ERR_BUILD with
 * the end of standard error; a program that runs for an hour or is killed ERR_SYSTEM. */
int sandbox_capture(const struct sandbox *s, const char *const *argv, const struct run *run,
		    struct buf *out, struct err *e) MUST_CHECK;
/* sandbox_recall: whether the answer is known, and appends it: no program is started. */
bool sandbox_recall(const struct sandbox *s, const char *const *argv, struct buf *out);
/* sandbox_probe: runs `true` in a sandbox. ERR_POLICY with bubblewrap's message and a hint when
 * that fails. */
int sandbox_probe(const struct root *root, const struct run *run, struct err *e) MUST_CHECK;
/* sandbox_to_json: all but the arena and the root (new reference). */
json_t *sandbox_to_json(const struct sandbox *s);
/* sandbox_from_json: ERR_INTEGRITY, naming `name`, for what sandbox_to_json did not make. The
 * sandbox has no root, since running it needs none; it keeps a pointer to the arena. */
int sandbox_from_json(const json_t *j, const char *name, struct arena *a, struct sandbox *ret,
		      struct err *e) MUST_CHECK;

/* The sandbox protections, each with a name of its own. */

enum sandbox_protection {
	PROTECTION_USER,      /* never user 0 of the machine */
	PROTECTION_SECCOMP,   /* the system calls of seccomp_linux.c */
	PROTECTION_KEYRING,   /* a session keyring of its own */
	PROTECTION_PROC,      /* /proc and /dev read-only */
	PROTECTION_SETUID,    /* no setuid file of a build stays */
	PROTECTION_LIMITS,    /* processes, memory, disk, output, time */
	PROTECTION_LANDLOCK,  /* the kernel's own list of what may be written: landlock_init.h */
	PROTECTION_PACKAGES,  /* libraries in the wheel are from the root's packages */
	PROTECTION_PROCESSES, /* /proc lists the build's own processes alone */
	SANDBOX_PROTECTIONS
};

/* sandbox_protection: whether a protection is wanted: the user did not turn it off. */
bool sandbox_protection(const struct run *run, enum sandbox_protection protection);
/* sandbox_protections_parse: names to bits; ERR_USAGE lists the names. */
int sandbox_protections_parse(const struct strlist *names, unsigned *ret, struct err *e) MUST_CHECK;
/* sandbox_text: what keys and records say: "bubblewrap", "bubblewrap without seccomp", "none". */
const char *sandbox_text(enum sandbox_kind kind, unsigned without, struct arena *a);

struct sandbox_protection_state {
	const char *name;
	bool stands;
	const char *text; /* what it does, or why it is missing */
};

/* sandbox_protections_look: lists each protection on this machine; bubblewrap's own come first. */
size_t sandbox_protections_look(enum sandbox_kind kind, const struct run *run, struct arena *a,
				const struct sandbox_protection_state **ret);
/* sandbox_protections_json: like sandbox_protections_look, as an object of names and states (new
 * reference). */
json_t *sandbox_protections_json(enum sandbox_kind kind, const struct run *run);

/* SANDBOX_TOP as a directory of this machine. A build without a sandbox runs in it, so that its
 * paths are those of a build in the sandbox. */

/* ptbuild's own directory in SANDBOX_TOP: the marker of its owner, the lock of the process that
 * uses it, the name of the tree that is in it, trees that wait. */
#define SANDBOX_PLACE_OWN ".ptbuild"
#define SANDBOX_PLACE_MARKER SANDBOX_PLACE_OWN "/marker"
#define SANDBOX_PLACE_TEXT "a place of ptbuild's for builds without a sandbox\n"
#define SANDBOX_PLACE_TREE SANDBOX_PLACE_OWN "/tree"

struct sandbox_place {
	bool fine;       /* it can be had: it is there and ptbuild's, or empty, or can be made */
	bool there;      /* the directory exists */
	const char *why; /* if not: the reason */
	const char *fix; /* and the way out */
};

/* sandbox_place_look: checks whether builds can use `top` (SANDBOX_TOP). Refuses a link, another
 * user's directory, one that others may write, one that cannot be written or run from, and one with
 * files that ptbuild did not create. Changes nothing; a directory in use is fine. */
void sandbox_place_look(const char *top, struct arena *a, struct sandbox_place *ret);
/* sandbox_elsewhere: whether a build without a sandbox cannot run in SANDBOX_TOP. */
bool sandbox_elsewhere(enum sandbox_kind kind);
/* sandbox_place_names: the names that a build tree has in the place; nothing else is moved or
 * removed there. */
extern const char *const sandbox_place_names[];
extern const size_t sandbox_place_names_count;
