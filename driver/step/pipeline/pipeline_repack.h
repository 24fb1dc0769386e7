/* A wheel that differs from one in the store in its metadata revision only is made from that one,
 * not built. */
#pragma once
#include "step/pipeline/pipeline.h"

/* pipeline_repack: looks for a wheel with the plan's pack key, and publishes it repacked under the
 * plan's output key; *ret is the object, NULL where there is none. The contents were verified when
 * they were packed, and are copied only if the wheel still has the digest that its record names.
 * The caller holds the lock of the output key. */
int pipeline_repack(struct store *store, const struct plan *p, const struct run *run, struct arena *a, const char **ret,
		    struct err *e) MUST_CHECK;
