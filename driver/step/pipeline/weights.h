/* Weights: what each command of a build takes, from this store's history and, where that knows
 * nothing yet, from the table that ships with the release (profiles/weights/README.md). */
#pragma once
#include "cache/history.h"

/* What a command takes that no table lists: by the name of its rule up to "__". */
struct weights_class {
	const char *rule;
	double seconds; /* for the whole GPU list of the variant */
	unsigned units; /* that such a build has and no line lists; 0: not known */
};

struct weights {
	const struct history *units;
	const struct history *table; /* those that the release's table lists; NULL: no table */
	const char *release;         /* whose table that is: the nearest's; "": none */
	bool elsewhere;              /* measured on another machine: their ratios count */
	double after;                /* seconds of the steps that follow the build */
	const struct weights_class *classes;
	size_t classes_count;
};

/* weights_parse: the text of a table. ERR_CONFIG names `name` and the line. */
int weights_parse(const char *text, size_t len, const char *name, unsigned gpus, struct arena *a, struct weights *ret,
		  struct err *e) MUST_CHECK;
/* weights_load: the table of the release, or else of the nearest release of the package, below
 * `profiles`; `gpus`: how many targets a CUDA unit is compiled for. Units that `history` knows are
 * taken from it, and set the scale of the others. A table that cannot be read is a warning. */
const struct weights *weights_load(const char *profiles, const char *package, const char *release, unsigned gpus,
				   const struct history *history, const struct run *run, struct arena *a)
	__attribute__((returns_nonnull));
/* weights_find: the seconds of a unit; of its copy for another instruction set
 * ("Sort.cpp.AVX2.cpp.o") where its own are not known; 0: unknown. */
double weights_find(const struct weights *w, const char *path);
