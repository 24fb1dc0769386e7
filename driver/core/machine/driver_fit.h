/* Which CUDA versions an NVIDIA driver runs. */
#pragma once
#include "base/base.h"

struct gpu_row;  /* core/tables/rows.h */
struct hardware; /* core/machine/hardware.h */
struct tables;   /* core/tables/tables.h */

enum driver_fit {
	DRIVER_OWN,        /* the driver is as new as the toolkit, or newer */
	DRIVER_COMPATIBLE, /* by minor-version compatibility: no PTX at run time */
	DRIVER_UNKNOWN,    /* the driver's version is not known */
	DRIVER_TOO_OLD,    /* the toolkit needs a newer driver */
};

/* driver_fit: `cuda` ("13.2") on the machine's driver, by its version or, where only libcuda
 * responds, by the CUDA version that it supports. A toolkit without a row has the driver
 * requirements of the nearest one of its major version. Source: CUDA compatibility guide, in
 * cuda.yaml. */
enum driver_fit driver_fit(const struct tables *t, const struct hardware *h, const char *cuda);
/* driver_tegra: the Jetson of the machine for which the toolkit for Arm servers of that CUDA makes
 * no code: JetPack before 7 has its own. NULL: none. driver_fit says DRIVER_TOO_OLD there. */
const struct gpu_row *driver_tegra(const struct tables *t, const struct hardware *h, const char *cuda);

/* capability_runs: whether machine code for one compute capability ("8.0") runs on a GPU of
 * another ("8.6"): a later minor number of the same major; a system on a chip runs its own alone.
 * Source: CUDA C++ Programming Guide, binary compatibility. */
bool capability_runs(const struct tables *t, const char *code, const char *gpu);
