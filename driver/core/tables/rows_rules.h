/* The rows of the tables by which a wheel's machine code and libraries are judged: extensions.yaml,
 * dispatch.yaml, manylinux.yaml, threads.yaml. As in rows.h, optional strings are "" never NULL. */
#pragma once
#include <stdbool.h>

struct extension_row { /* extensions.yaml: an instruction-set extension */
	const char *name;
	const char *machine; /* "x86_64", "aarch64" */
	const char **implies, **sets;
	unsigned implies_count, sets_count;
	unsigned line;
};

struct combined_row { /* sets of the decoder that need several extensions at once */
	const char **needs, **sets;
	unsigned needs_count, sets_count;
	unsigned line;
};

struct instruction_row { /* an x86-64 instruction that its set says too much of */
	const char *mnemonic, *why;
	const char **needs;
	unsigned needs_count;
	unsigned line;
};

struct encoding_row { /* AArch64: words that are `value` under `mask` */
	const char *mask, *value, *what;
	const char **needs;
	unsigned needs_count;
	unsigned line;
};

struct extension_file {
	struct extension_row *extensions;
	struct combined_row *combined;
	struct instruction_row *instructions;
	struct encoding_row *encodings;
	unsigned extensions_count, combined_count, instructions_count, encodings_count;
};

struct family_row {          /* dispatch.yaml */
	const char *library; /* glob of the file's base name */
	const char *symbol;  /* glob of the mangled name; "": any, also none */
	const char *unit;    /* glob of the source file; "": any, also none */
	const char *why;
	const char **extensions; /* names of extensions.yaml, "any" */
	unsigned extensions_count;
	/* the name itself says the instruction set, so a copy that the linker chose is one of its
	 * own kind */
	bool carries;
	unsigned line;
};

struct dispatch_file {
	struct family_row *families;
	unsigned families_count;
};

struct system_library_row { /* manylinux.yaml: a library that may stay outside the wheel */
	const char *name;
	const char *since; /* the first policy that has it: "2_28"; "" = every policy */
	bool versioned;    /* all its symbols have versions */
	unsigned line;
};

struct pool_row { /* threads.yaml: a thread pool that a library brings */
	const char *name;
	bool openmp;            /* an OpenMP runtime; else a BLAS that excludes it */
	const char **libraries; /* globs of NEEDED names and SONAMEs */
	/* globs of dynamic symbols: all are defined, one is undefined, none is either */
	const char **defines, **wants, **without;
	unsigned libraries_count, defines_count, wants_count, without_count;
	const char *why;
	const char *instead; /* the way out, printed */
	unsigned line;
};

struct pool_file {
	struct pool_row *pools;
	unsigned pools_count;
};

struct drop_row {                      /* slim.yaml: what slim removes besides GPU code */
	const char *name;              /* of the kind; several rows may have it */
	const char *strip;             /* "debug", "symbols": sections of libraries; "" */
	const char *package;           /* glob of a distribution as its dist-info has it; "": any */
	const char *versions;          /* range; "": any */
	const char **files, **targets; /* globs; targets: '*' is a number of a GPU */
	unsigned files_count, targets_count;
	const char *gpus_below, *gpus_from; /* "90"; "": any */
	bool same;                          /* equal files of a directory become one */
	bool by_default;
	const char *lost; /* what no longer works */
	unsigned megabytes;
	unsigned line;
};

enum { MANYLINUX_PREFIXES = 6 }; /* GLIBC, GLIBCXX, CXXABI, GCC, LIBATOMIC, ZLIB */

struct policy_row {
	const char *policy;                       /* "2_28" */
	const char *machine;                      /* "x86_64", "aarch64" */
	const char *ceilings[MANYLINUX_PREFIXES]; /* "" = no version of that prefix */
	const char **also;                        /* whole version names that are not numbers */
	unsigned also_count;
	unsigned line;
};

struct manylinux_policy {
	struct system_library_row *libraries;
	unsigned libraries_count;
	struct policy_row *policies; /* of each machine, ascending */
	unsigned policies_count;
	const char **musl; /* globs: musl's C library, outside of a musllinux wheel */
	unsigned musl_count;
};
