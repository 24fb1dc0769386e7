/* CUDA toolkits of a root: where they are, what nvcc supports, which compilers it accepts, and
 * which other libraries are installed beside it. */
#pragma once
#include "core/root/sandbox.h"
#include "core/tables/tables.h"

/* The tools of a root and their versions, found by running them in the sandbox. */

struct tool {
	const char *name;    /* as in the list of known tools, toolchain.c */
	const char *path;    /* inside the root; NULL: absent */
	const char *version; /* "14.2.0"; "" if absent, or if it prints none */
	const char *id;      /* the line it prints with the version; "" likewise */
};

struct toolchain {
	const struct root *root; /* that it is of; NULL: none, as in tests */
	struct tool *tools;
	size_t count;
	/* for the compile key: "gcc: gcc (Debian 14.2.0-19) 14.2.0\n..." sorted, of the tools that
	 * change compiled bytes; nvcc is in the toolkit's text */
	const char *text;
	const char *fingerprint; /* of the root */
	const char *glibc;       /* of the root, in no key; "" unknown */
};

/* toolchain_probe: runs each known tool once, all in one sandbox. An absent tool is in the list
 * with path NULL. */
int toolchain_probe(const struct root *root, enum sandbox_kind kind, const struct run *run,
		    struct arena *a, const struct toolchain **ret, struct err *e) MUST_CHECK;
/* toolchain_recall: what toolchain_remember wrote to the file `memo`, if root, sandbox and every
 * tool's file (place, inode, size, times) are as they were then; else NULL. */
const struct toolchain *toolchain_recall(const struct root *root, enum sandbox_kind kind,
					 const char *memo, struct arena *a);
/* toolchain_remember: for the next toolchain_recall, unless a tool printed no version. Failing to
 * write is not an error. */
void toolchain_remember(const struct toolchain *t, const struct root *root, enum sandbox_kind kind,
			const char *memo);
/* toolchain_get: never NULL for a known tool name. */
const struct tool *toolchain_get(const struct toolchain *t, const char *name);
/* toolchain_parse: finds the version in a tool's output and its line, both "" if it has none. */
void toolchain_parse(const char *output, struct arena *a, const char **ret_version,
		     const char **ret_id);

/* Begins each answer of a script; no tool prints a record separator. */
#define TOOLCHAIN_MARK "\036"
/* toolchain_ask: runs a shell script inside, which prints marked answers; adds them to `ret`. Its
 * function "ask PROGRAM WORD..." sets text and status, tries twice what fails, and ends with
 * ERR_SYSTEM for what is killed. */
int toolchain_ask(struct sandbox *s, const char *script, const struct strlist *args,
		  const struct run *run, struct strlist *ret, struct err *e) MUST_CHECK;

enum toolkit_layout {
	TOOLKIT_NVIDIA,       /* one directory that holds all: /usr/local/cuda-X.Y, CUDA_HOME */
	TOOLKIT_DISTRIBUTION, /* /usr/bin/nvcc, headers and libraries among the system's */
	TOOLKIT_PYTHON,       /* nvidia-* packages: site-packages/nvidia/cu13 */
	TOOLKIT_CONDA,        /* a conda prefix with targets/<machine>-linux */
};

struct toolkit_part { /* a library beside nvcc, found by its header */
	const struct part_row *row;
	const char *header;  /* path inside the root; NULL: absent */
	const char *version; /* "9.1.0"; "" when absent, or when the header does not say */
};

struct toolkit {
	enum toolkit_layout layout;
	bool tegra;        /* of JetPack before CUDA 13, not that for Arm servers */
	const char *where; /* its directory inside the root, for messages */
	const char *file;  /* its nvcc inside the root, links resolved */
	const char *home;  /* as the build sees it, for CUDA_HOME: "/usr/local/cuda-13.0", "/usr" */
	const char *nvcc;  /* as the build sees it */
	/* a directory of the host that a sandbox must show beside the root, and where; or NULL */
	const char *mount_from, *mount_to;
	const char *version;         /* "12.4" */
	const char *release;         /* "12.4.131" */
	const char *build;           /* nvcc's own: "cuda_12.4.r12.4/compiler.34097967_0" */
	struct strlist targets;      /* of its nvcc: "75", "90", "90a", "100f" */
	struct strlist options;      /* which of the known options its nvcc has */
	struct strlist include_dirs; /* inside the root */
	struct strlist library_dirs; /* as the build sees them; none for a distribution */
	/* newest major versions that crt/host_config.h accepts; 0: unknown */
	unsigned gcc_max, clang_max;
	/* compilers of the root that nvcc accepts: "gcc" and "g++", else "gcc-13" and "g++-13";
	 * NULL: none */
	const char *cc, *cxx;
	const char *cxx_path; /* of cxx, inside the root */
	const char *cc_id;    /* the line of cxx --version */
	/* version of the root's own gcc, "" without one: for messages */
	const char *gcc;
	struct toolkit_part *parts; /* one for each row of cuda.yaml's parts */
	size_t parts_count;
	const char *text; /* for the compile key: a line per fact that can change compiled bytes */
};

struct toolkits {
	const struct toolkit *items;
	size_t count;
};

/* toolkit_probe: finds the toolkits of a root, by running every nvcc in one sandbox; an nvcc that
 * fails is left out. `home` (inside the root; NULL: none) comes first, and ERR_POLICY says that it
 * has no toolkit. */
int toolkit_probe(const struct tables *t, const struct root *root, enum sandbox_kind kind,
		  const char *home, const struct run *run, struct arena *a,
		  const struct toolkits **ret, struct err *e) MUST_CHECK;
/* toolkit_find: returns the first of a version ("12.4"); NULL if the list has no such version. */
const struct toolkit *toolkit_find(const struct toolkits *l, const char *version);
/* toolkit_part_of: a part by its name ("cudnn"); NULL if the tables do not have it. */
const struct toolkit_part *toolkit_part_of(const struct toolkit *k, const char *name);
/* toolkit_mount: shows it in a sandbox, where the root does not. toolkit_run: also lets programs
 * find its libraries. */
void toolkit_mount(const struct toolkit *k, struct sandbox *s);
void toolkit_run(const struct toolkit *k, struct sandbox *s);
/* toolkit_list: for messages: "13.0 (/usr/local/cuda-13.0), 12.4 (/usr)", or "none". */
char *toolkit_list(const struct toolkits *l, struct arena *a);
/* toolkit_json: an object (new reference). */
json_t *toolkit_json(const struct toolkit *k);
/* toolkit_layout_name: "nvidia", "distribution", "python", "conda". */
const char *toolkit_layout_name(enum toolkit_layout layout);
/* toolkit_parse: reads what `nvcc --version` and `nvcc --help` print; false without a version. */
bool toolkit_parse(const char *version_text, const char *help_text, struct arena *a,
		   struct toolkit *k);
/* toolkit_header_number: the value of `#define NAME <number>` in a header; -1 without one. */
long toolkit_header_number(const char *text, const char *name);
/* toolkit_header_limits: the newest GCC and Clang that crt/host_config.h accepts; 0: unknown. */
void toolkit_header_limits(const char *text, unsigned *gcc_max, unsigned *clang_max);

/* The pieces of toolkit_probe. */
#define TOOLKIT_PLACES 16

struct toolkit_places {
	const struct root *root;
	struct arena *arena;
	struct toolkit items[TOOLKIT_PLACES]; /* layout to mount_to are set */
	size_t count;
};

/* toolkit_places: adds where an nvcc is in ret->root, the preferred first, each nvcc once; `home`
 * (NULL: none) comes before all. */
void toolkit_places(struct toolkit_places *ret, const char *home);
/* toolkit_include_dirs: directories of headers that exist, of the toolkit and of libraries
 * installed beside it, each once. Returns how many, at the start, are the toolkit's own. */
size_t toolkit_include_dirs(const struct root *r, const struct toolkit *k, struct arena *a,
			    struct strlist *ret);
/* toolkit_library_dirs: where its shared libraries are, as the build sees them. */
void toolkit_library_dirs(const struct root *r, const struct toolkit *k, struct arena *a,
			  struct strlist *ret);
