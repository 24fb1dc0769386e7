/* What to build for a machine, decided from its description and the tables alone: nothing is read
 * or run. */
#pragma once
#include "core/machine/driver_fit.h"
#include "core/machine/hardware.h"
#include "core/plan/runs_on.h"
#include "core/root/root.h"
#include "core/tables/tables.h"

/* What the machine is to do: general, training, or a workload that a row of isa.yaml names. */
#define DETECT_WORKLOADS "general training int8 bf16"

struct detect_isa {
	const struct isa_row *row;
	const char *missing; /* NULL: it runs */
};

struct detect_toolkit {
	const struct toolkit_row *row;
	enum driver_fit fit;
};

struct detected {
	const char *profile; /* "sm90-avx512"; NULL: none fits, and the last reason says why */
	const char *gpu;     /* the profile's first part, "darwin" for a Mac */
	const char *isa;     /* NULL for a Mac */
	const char *release; /* the newest that has the profile; NULL: none */
	const char *cuda;    /* NULL without a GPU */
	const char *command; /* a line for a shell; NULL without a profile */
	struct strlist reasons;
	struct strlist warnings;
	struct kvlist also; /* other profiles that run, each with a remark */
	struct detect_isa *isas;
	size_t isa_count;
	struct detect_toolkit *toolkits; /* none without an NVIDIA driver and GPU */
	size_t toolkit_count;
};

/* detect_choose: `workload` (one of DETECT_WORKLOADS) NULL is general, `release` NULL is any. */
int detect_choose(const struct tables *t, const struct hardware_facts *f, const struct hardware *h,
		  const char *workload, const char *release, struct arena *a, struct detected *ret,
		  struct err *e) MUST_CHECK;
/* detect_gpus_only: like detect_choose for the GPUs alone: their targets, ascending ("sm80+sm90";
 * for a GPU newer than the tables the newest target with its PTX), and the toolkits that the
 * driver runs. gpu is NULL if there is no target; reasons and warnings say why. */
void detect_gpus_only(const struct tables *t, const struct hardware *h, struct arena *a,
		      struct detected *ret);
/* detect_fill_native: replaces "native" in a profile's name ("native", "native-avx2",
 * "sm90-native") by this machine's part; any other name is given back. ERR_POLICY when the machine
 * has no such part. */
int detect_fill_native(const struct detected *d, const char *name, struct arena *a,
		       const char **ret, struct err *e) MUST_CHECK;
/* detect_is_native: whether detect_fill_native would change it. */
bool detect_is_native(const char *name);

/* Whether a machine is one of those that a wheel runs on. */

enum fit_verdict { FIT_YES, FIT_PERHAPS, FIT_NO };

struct fit {
	enum fit_verdict verdict;
	struct strlist lacks; /* phrases: "its Python is 3.11, not 3.13" */
	/* processor, GPU and driver do: inside this root it runs here; NULL */
	const char *root;
};

/* fit_of: compares each point. Perhaps: the finished wheel may need less. `root`: the one in which
 * it is built; NULL: none is known. */
void fit_of(const struct runs_on *r, const struct root *root, const struct hardware_facts *f,
	    const struct hardware *h, struct arena *a, struct fit *ret);
/* fit_gpu: the GPUs and their driver alone, whatever else the machine lacks. */
void fit_gpu(const struct runs_on *r, const struct hardware *h, struct arena *a, struct fit *ret);
/* fit_text: "no: its Python is 3.11, not 3.13". */
char *fit_text(const struct fit *f, struct arena *a);
/* fit_json: a new reference. */
json_t *fit_json(const struct fit *f);
