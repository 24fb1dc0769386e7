/* Whether a machine is one of those that a wheel runs on. */
#pragma once
#include "core/machine/hardware.h"
#include "core/plan/runs_on.h"
#include "core/root/root.h"

enum fit_verdict { FIT_YES, FIT_PERHAPS, FIT_NO };

struct fit {
	enum fit_verdict verdict;
	struct strlist lacks; /* phrases: "its Python is 3.11, not 3.13" */
	/* processor, GPU and driver do: inside this root it runs here; NULL */
	const char *root;
};

/* fit_of: compares each point. Perhaps: the finished wheel may need less. `root`: the one in which
 * it is built; NULL: none is known. */
void fit_of(const struct runs_on *r, const struct root *root, const struct hardware_facts *f, const struct hardware *h,
	    struct arena *a, struct fit *ret);
/* fit_gpu: the GPUs and their driver alone, whatever else the machine lacks. */
void fit_gpu(const struct runs_on *r, const struct hardware *h, struct arena *a, struct fit *ret);
/* fit_text: "no: its Python is 3.11, not 3.13". */
char *fit_text(const struct fit *f, struct arena *a);
/* fit_json: a new reference. */
json_t *fit_json(const struct fit *f);
