/* The pieces of detect_choose. */
#pragma once
#include "core/machine/detect.h"
#include "core/plan/plan.h"

struct detecting {
	const struct tables *t;
	const struct hardware_facts *f;
	const struct hardware *h;
	const char *workload;
	const char *release; /* asked for; NULL: any */
	struct arena *a;
	struct detected *d;
	struct gpu_target *targets; /* of the GPUs, ascending, each once */
	unsigned target_count;
};

/* Each fills its part and gives the reasons: detect_cpu isas and isa, detect_gpus targets,
 * detect_toolkits toolkits, detect_release release and cuda (it drops GPUs that share no toolkit
 * with the others). */
void detect_cpu(struct detecting *c);
void detect_gpus(struct detecting *c);
void detect_toolkits(struct detecting *c);
void detect_release(struct detecting *c);
/* detect_gpu_name: "sm80+sm90", "cpu". */
const char *detect_gpu_name(const struct detecting *c);
