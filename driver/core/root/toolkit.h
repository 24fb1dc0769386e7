/* CUDA toolkits of a root: where each one is, what its nvcc knows, which compilers it accepts, and
 * which other libraries lie beside it. */
#pragma once
#include <jansson.h>

#include "core/root/sandbox.h"
#include "core/tables/tables.h"

enum toolkit_layout {
	TOOLKIT_NVIDIA,       /* one directory that holds all: /usr/local/cuda-X.Y, CUDA_HOME */
	TOOLKIT_DISTRIBUTION, /* /usr/bin/nvcc, headers and libraries among the system's */
	TOOLKIT_PYTHON,       /* nvidia-* packages: site-packages/nvidia/cu13 */
	TOOLKIT_CONDA,        /* a conda prefix with targets/<machine>-linux */
};

struct toolkit_part { /* a library beside nvcc, found by its header */
	const struct part_row *row;
	const char *header; /* path inside the root; NULL: absent */
	/* as the header says it: "9.1.0"; "" when absent or when it says none */
	const char *version;
};

struct toolkit {
	enum toolkit_layout layout;
	const char *where; /* its directory inside the root, for messages */
	/* the same as the build sees it, what CUDA_HOME is to be: "/usr/local/cuda-13.0", "/usr" */
	const char *home;
	const char *nvcc; /* as the build sees it */
	/* what a sandbox must show beside the root: a directory of the host, and where; NULL:
	 * nothing */
	const char *mount_from, *mount_to;
	const char *version; /* "12.4" */
	const char *release; /* "12.4.131" */
	/* nvcc's own name of its build: "cuda_12.4.r12.4/compiler.34097967_0" */
	const char *build;
	/* what its nvcc compiles for: "75", "90", "90a", "100f" */
	struct strlist targets;
	struct strlist options;      /* those of toolkit_options that its nvcc has */
	struct strlist include_dirs; /* inside the root */
	/* as the build sees them; none for a distribution, whose loader knows them */
	struct strlist library_dirs;
	/* newest major versions that crt/host_config.h accepts; 0: it does not say */
	unsigned gcc_max, clang_max;
	const char *cc,
		/* names of the root's compilers that nvcc accepts: its own when new enough ("gcc",
		 * "g++"), else "gcc-13", "g++-13"; NULL: none */
		*cxx;
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

/* toolkit_probe: looks at every place of a root where toolkits are kept; `home` (inside the root;
 * NULL: none) is looked at first, and that there is none is then ERR_POLICY. Each nvcc runs twice,
 * in one sandbox for all. Of two places with one nvcc the first counts. A root without any is no
 * error. An nvcc that fails or says nothing is left out. */
int toolkit_probe(const struct tables *t, const struct root *root, enum sandbox_kind kind, const char *home,
		  const struct run *run, struct arena *a, const struct toolkits **ret, struct err *e) MUST_CHECK;
/* toolkit_find: the first of a version ("12.4"), NULL if there is none. */
const struct toolkit *toolkit_find(const struct toolkits *l, const char *version);
/* toolkit_part_of: the part of a name ("cudnn"), NULL if the tables have none such. */
const struct toolkit_part *toolkit_part_of(const struct toolkit *k, const char *name);
/* toolkit_mount: shows it in a sandbox, where the root itself does not. toolkit_run: the same, and
 * lets programs find its libraries. */
void toolkit_mount(const struct toolkit *k, struct sandbox *s);
void toolkit_run(const struct toolkit *k, struct sandbox *s);
/* toolkit_list: "13.0 (/usr/local/cuda-13.0), 12.4 (/usr)", "none", for messages. */
char *toolkit_list(const struct toolkits *l, struct arena *a);
/* toolkit_json: all of it as an object (new reference). */
json_t *toolkit_json(const struct toolkit *k);
/* toolkit_layout_name: "nvidia", "distribution", "python", "conda". */
const char *toolkit_layout_name(enum toolkit_layout layout);
/* toolkit_parse: what `nvcc --version` and `nvcc --help` print; false when there is no version in
 * it. */
bool toolkit_parse(const char *version_text, const char *help_text, struct arena *a, struct toolkit *k);
/* toolkit_header_number: the value of `#define NAME <number>` in a header's text; -1 without
 * one. */
long toolkit_header_number(const char *text, const char *name);
/* toolkit_header_limits: the newest GCC and Clang that crt/host_config.h accepts, from its text; 0
 * for what it does not say. */
void toolkit_header_limits(const char *text, unsigned *gcc_max, unsigned *clang_max);
