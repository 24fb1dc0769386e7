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

/* detect_cpu: fills isas and isa, with the reasons. */
void detect_cpu(struct detecting *c);
/* detect_gpus: fills targets. */
void detect_gpus(struct detecting *c);
/* detect_toolkits: what the driver can run. detect_release: fills release and cuda, and drops GPUs
 * that share no toolkit with the others. */
void detect_toolkits(struct detecting *c);
void detect_release(struct detecting *c);
/* detect_gpu_name: "sm80+sm90", "cpu". */
const char *detect_gpu_name(const struct detecting *c);
