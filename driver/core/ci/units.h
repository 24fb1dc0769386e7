/* Units: what a configured tree compiles, and what each command depends on. A matrix costs little
 * only as long as a CUDA unit depends on the GPU list alone and a C++ unit on the instruction set
 * alone. */
#pragma once
#include "core/variant/variant.h"

struct unit {
	const char *key;  /* source and object: one source may be compiled more than once */
	const char *file; /* source, below the tree where it lies there */
	bool cuda;
	char command[65]; /* digest */
};

struct unit_tree { /* a configured tree */
	const char *name;
	struct profile profile; /* what it was configured for */
	struct unit *units;     /* sorted by key */
	size_t count;
};

/* units_read: `path` is a compile_commands.json, or a directory with one (or with
 * build/compile_commands.json). Its profile is the file's stem or the directory's name
 * ("sm90-avx512.json"). ERR_CONFIG when that is no profile, ERR_INTEGRITY for a file that is no
 * list of compile commands. */
int units_read(const struct tables *t, const char *path, struct arena *a, struct unit_tree *ret,
	       struct err *e) MUST_CHECK;

enum unit_depends { UNIT_NOTHING = 0, UNIT_GPU = 1, UNIT_ISA = 2, UNIT_BOTH = 3 };

struct unit_facts { /* of one unit over all trees */
	const struct unit *unit;
	enum unit_depends depends;
};

struct unit_model {
	struct unit_facts *facts; /* sorted by key; only units that every tree has */
	size_t count;
	size_t by[2][4];        /* how many C++ [0] and CUDA [1] units depend on what */
	size_t elsewhere;       /* units that not every tree has */
	size_t total, distinct; /* commands of all trees, and how many differ */
	struct strlist
		/* CUDA units that depend on the instruction set, C++ units that depend on the GPU
		 * list and are not known to: one text each */
		unexpected;
	bool gpu_compared, isa_compared; /* two trees differ in nothing else */
};

/* units_output: what a command makes, which follows its last "-o", the one that counts for a
 * compiler; "" without one. */
char *units_output(const char *command, struct arena *a) __attribute__((returns_nonnull));

/* units_model: compares trees that differ in one thing only. ERR_USAGE when no two are of that
 * sort. */
int units_model(const struct tables *t, const struct unit_tree *trees, size_t count, struct arena *a,
		struct unit_model *ret, struct err *e) MUST_CHECK;

struct unit_cost {
	/* for CUDA, distinct GPU lists and instruction sets among them */
	size_t variants, gpus, isas;
	/* variants that the model says nothing of: without CUDA, of another package */
	size_t others;
	size_t total, distinct; /* units */
};

/* units_cost: of PyTorch variants, from the model of some of them. */
void units_cost(const struct unit_model *m, const struct variant *const *variants, size_t count, struct arena *a,
		struct unit_cost *ret);
