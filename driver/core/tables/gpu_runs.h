/* Which GPU code runs on which GPU: one rule for all that ask. Source: CUDA C++ Programming Guide,
 * binary compatibility; for systems on a chip gpu.yaml. */
#pragma once
#include "base/base.h"

struct tables;  /* core/tables/tables.h */
struct gpu_row; /* core/tables/rows.h */

enum gpu_runs {
	GPU_RUNS_NO,
	GPU_RUNS_PERHAPS, /* other GPUs' code on a system on a chip: not guaranteed */
	GPU_RUNS_YES,
};

struct gpu_code {
	unsigned number; /* 90; 0: the text is not a target */
	char suffix;     /* 'a': this chip alone, 'f': its family, '\0' */
	bool ptx;        /* PTX is there as well */
};

/* gpu_code_parse: "9.0a+PTX", "90a", "120+ptx". */
struct gpu_code gpu_code_parse(const char *text);
/* gpu_binary_runs: its machine code: on the same and on later minor numbers of the same major, "a"
 * on that chip alone. Code for a system on a chip runs on that alone. */
enum gpu_runs gpu_binary_runs(struct gpu_code code, unsigned gpu, bool code_is_chip,
			      bool gpu_is_chip);
/* gpu_ptx_runs: PTX, which the driver compiles: on all that is newer, "a" on that chip alone, "f"
 * in its family. */
bool gpu_ptx_runs(struct gpu_code code, unsigned gpu);
/* gpu_renamed: the row of a chip whose number a toolkit ("13.2"; "", "-" or NULL: not known) no
 * longer has, while it has the chip under another one, with a note that says so; NULL: no such
 * chip. What is built with that toolkit is for the other number. */
const struct gpu_row *gpu_renamed(const struct tables *t, unsigned gpu, const char *cuda);
/* gpu_target_runs: a target's code, with its PTX where the text has it, on a GPU ("8.7"), by the
 * tables. `cuda`: the toolkit that it was built with, from which gpu.yaml knows of more; "" not
 * known. */
enum gpu_runs gpu_target_runs(const struct tables *t, const char *target, const char *gpu,
			      const char *cuda);
