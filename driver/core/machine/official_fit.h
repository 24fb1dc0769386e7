/* Which official wheels of torch a machine runs: by its driver, its GPUs, its glibc and its
 * Pythons. */
#pragma once
#include "core/machine/driver_fit.h"
#include "core/machine/hardware.h"

struct official; /* core/wheel/wheel.h */
struct variant;  /* core/variant/variant.h */

struct official_query {
	const struct hardware *machine; /* its driver, GPUs, glibc and Pythons, as far as known */
	const char *release, *cuda;     /* NULL: any */
	const struct strlist *dists;    /* there must be besides torch; NULL: none */
	bool all;                       /* and those of every other package that the release has */
	bool any_driver;                /* an unknown one runs all; no GPU need be named */
};

struct official_choice {
	const char *release;      /* NULL: none runs */
	const char *python;       /* of the machine: "3.13"; "" if none is known */
	const char *wheel_python; /* that the wheels are for; never "" */
	const char *cuda;         /* of torch's wheel; "-": none */
};

/* official_serves: whether torch of a release has code that runs on a GPU ("9.0"), by its list of
 * targets; PTX counts. Always true where the list is unknown. */
bool official_serves(const struct tables *t, const struct official *o, const char *platform,
		     const char *gpu);
/* official_has_all: whether the release has the wheels that are wanted for a Python ("3.13"). */
bool official_has_all(const struct official *o, const struct official_query *q, const char *python,
		      struct arena *a);
/* official_for: the newest release of profiles/official whose wheel of torch runs there, on every
 * GPU, with the other wheels that are wanted. ERR_CONFIG for a damaged file of a release. */
int official_for(const struct tables *t, const struct official_query *q, struct arena *a,
		 struct official_choice *ret, struct err *e) MUST_CHECK;
/* official_for_variant: the same for a machine that a variant is for: its GPU targets and Python,
 * and a driver for its CUDA. */
int official_for_variant(const struct tables *t, const struct variant *v, struct arena *a,
			 struct official_choice *ret, struct err *e) MUST_CHECK;
/* official_command: the command line that makes that wheel for GPU targets ("sm80+sm90"). */
const char *official_command(const struct official_choice *choice, const char *gpu,
			     const char *platform, struct arena *a);
