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
/* driver_fit_any: like driver_fit, also for toolkits of other makers: JetPack's own runs on a
 * Jetson. */
enum driver_fit driver_fit_any(const struct tables *t, const struct hardware *h, const char *cuda);
/* driver_text: "570.86.15", or "for CUDA 12.4" where only libcuda responds. */
const char *driver_text(const struct hardware *h, struct arena *a);
/* driver_tegra: the Jetson of the machine for which the toolkit for Arm servers of that CUDA makes
 * no code: JetPack before 7 has its own. NULL: none. driver_fit says DRIVER_TOO_OLD there. */
const struct gpu_row *driver_tegra(const struct tables *t, const struct hardware *h,
				   const char *cuda);
/* driver_lacks: a GPU of the machine whose first driver is newer than the machine's; NULL. */
const struct gpu_row *driver_lacks(const struct tables *t, const struct hardware *h);
