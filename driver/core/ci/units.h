/* What a configured tree compiles, and what each command depends on. A matrix is cheap only as long
 * as a CUDA unit depends on the GPU list alone and a C++ unit on the instruction set alone. */
#pragma once
#include "core/variant/variant.h"

struct compile_unit {
	const char *key;  /* source and object: one source may be compiled more than once */
	const char *file; /* source, relative to the tree's src where it is below that */
	bool cuda;
	char command[65]; /* digest */
};

struct configured_tree { /* a configured tree */
	const char *name;
	struct profile profile;     /* what it was configured for */
	struct compile_unit *units; /* sorted by key */
	size_t count;
};

/* units_read: `path` is a compile_commands.json, or a directory that has one (itself, or in its
 * build or src/build). The file's stem or the directory's name is the profile ("sm90-avx512.json"),
 * else ERR_CONFIG. ERR_INTEGRITY for a file that is not a list of compile commands. */
int units_read(const struct tables *t, const char *path, struct arena *a,
	       struct configured_tree *ret, struct err *e) MUST_CHECK;

enum unit_depends { UNIT_NOTHING = 0, UNIT_GPU = 1, UNIT_ISA = 2, UNIT_BOTH = 3 };

struct unit_dependence { /* of one unit over all trees */
	const struct compile_unit *unit;
	enum unit_depends depends;
};

struct unit_model {
	struct unit_dependence *facts; /* sorted by key; only units that every tree has */
	size_t count;
	size_t by[2][4];        /* how many C++ [0] and CUDA [1] units depend on what */
	size_t elsewhere;       /* units that not every tree has */
	size_t total, distinct; /* commands of all trees, and how many differ */
	/* a text for each CUDA unit that depends on the instruction set, and each C++ unit that
	 * depends on the GPU list without being known to */
	struct strlist unexpected;
	bool gpu_compared, isa_compared; /* two trees differ in that alone */
};

/* units_model: compares trees that differ in one thing only. ERR_USAGE when no two do. */
int units_model(const struct tables *t, const struct configured_tree *trees, size_t count,
		struct arena *a, struct unit_model *ret, struct err *e) MUST_CHECK;

struct unit_cost {
	size_t variants, gpus, isas; /* for CUDA; distinct GPU lists and instruction sets */
	/* variants outside the model: without CUDA, or of another package */
	size_t others;
	size_t total, distinct; /* units */
};

/* units_cost: how many units PyTorch variants compile, by the model of some of them. */
void units_cost(const struct unit_model *m, const struct variant *const *variants, size_t count,
		struct arena *a, struct unit_cost *ret);
