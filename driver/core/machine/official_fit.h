/* Which official wheels of torch a machine runs: by its driver, its GPUs, its glibc and its
 * Pythons. */
#pragma once
#include "core/machine/driver_fit.h"
#include "core/machine/hardware.h"

struct official; /* core/wheel/wheel.h */
struct variant;  /* core/variant/variant.h */

struct official_choice {
	const char *release; /* NULL: none runs */
	const char *python;  /* of the machine: "3.13"; "" if none is known */
};

/* official_serves: whether torch of a release has code that runs on a GPU ("9.0"), by its list of
 * targets; PTX counts. Always true where the list is unknown. */
bool official_serves(const struct tables *t, const struct official *o, const char *platform, const char *gpu);
/* official_for: the newest release (`wanted`: that one; NULL: any) of profiles/official whose wheel
 * of torch has CUDA and runs there, on every GPU. An unknown driver runs none. ERR_CONFIG for a
 * damaged file of a release. */
int official_for(const struct tables *t, const struct hardware *h, const char *wanted, struct arena *a,
		 struct official_choice *ret, struct err *e) MUST_CHECK;
/* official_for_variant: like official_for, for the machine of a variant: its GPU targets and
 * Python, and a driver for its CUDA. */
int official_for_variant(const struct tables *t, const struct variant *v, struct arena *a, struct official_choice *ret,
			 struct err *e) MUST_CHECK;
/* official_command: the command line that makes that wheel for GPU targets ("sm80+sm90"). */
const char *official_command(const struct official_choice *choice, const char *gpu, const char *platform,
			     struct arena *a);
