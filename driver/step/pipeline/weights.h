/* Weights: what each command of a build takes, by the table that ships with the release
 * (profiles/weights/README.md). They advise estimates, the order of the units and shards; no key
 * and no byte of a wheel depends on them. */
#pragma once
#include "cache/store.h"

struct weight {
	const char *path; /* as ninja names it: "caffe2/CMakeFiles/torch_cpu.dir/a.cpp.o" */
	double seconds;
};

/* What a command takes that no line lists: by the name of its rule up to "__". */
struct weights_class {
	const char *rule;
	double seconds; /* for the whole GPU list of the variant */
	unsigned units; /* that such a build has and no line lists; 0: not known */
};

struct weights {
	const struct weight *units; /* sorted by path */
	size_t count;
	double after; /* seconds of the steps that follow the build */
	const struct weights_class *classes;
	size_t classes_count;
	const char *release; /* whose table it is: the nearest's; "": none */
	/* what this machine takes for a second of the table, by an earlier build; 0: not known */
	double factor;
};

/* weights_parse: the text of a table. ERR_CONFIG names `name` and the line. */
int weights_parse(const char *text, size_t len, const char *name, unsigned gpus, struct arena *a, struct weights *ret,
		  struct err *e) MUST_CHECK;
/* weights_load: the table of the release, or else of the nearest release of the package, below
 * `profiles`; `gpus`: how many targets a CUDA unit is compiled for. With a store all seconds are
 * this machine's, as far as weights_learn knew it. A table that cannot be read is a warning. */
const struct weights *weights_load(const char *profiles, const char *package, const char *release, unsigned gpus,
				   const struct store *s, const struct run *run, struct arena *a)
	__attribute__((returns_nonnull));
/* weights_find: the seconds of a unit; of its copy for another instruction set
 * ("Sort.cpp.AVX2.cpp.o") where its own are not known; 0: unknown. */
double weights_find(const struct weights *w, const char *path);
/* weights_learn: how fast this machine is, kept in the store: its units took `seconds` where `w`
 * says `expected`. */
void weights_learn(const struct store *s, const char *package, const struct weights *w, double seconds,
		   double expected);
