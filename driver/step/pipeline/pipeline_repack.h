/* A new metadata revision of a wheel in the store is made from that wheel, not built. */
#pragma once
#include "step/pipeline/pipeline.h"

/* pipeline_can_repack: whether the store has a wheel with the plan's pack key, whatever its
 * metadata revision; `by_name`: whether it may, as it has one of the variant, which is known before
 * the root is. pipeline_no_repack: the error where it has none. */
int pipeline_can_repack(struct store *store, const struct plan *p, bool by_name, struct arena *a, bool *ret,
			struct err *e) MUST_CHECK;
int pipeline_no_repack(const char *variant, const char *build_line, struct err *e) MUST_CHECK;
/* pipeline_repack: finds a wheel with the plan's pack key and publishes it, repacked, under the
 * plan's output key; *ret is the object, NULL where there is none. The contents were verified when
 * they were packed; they are copied only if the wheel still has the digest in its record. The
 * caller holds the lock of the output key. */
int pipeline_repack(struct store *store, const struct plan *p, const struct run *run, struct arena *a, const char **ret,
		    struct err *e) MUST_CHECK;
