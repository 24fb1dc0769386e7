/* The compiler cache's remote storage during one build. */
#pragma once
#include "core/root/toolchain.h"
#include "step/ccache/ccache_remote.h"
#include "step/pipeline/pipeline.h"

struct pipeline_remote {
	struct ccache_remote *remote; /* NULL: the build has none */
	const char *dir;              /* a stage of the store, to be shown to the build */
};

/* pipeline_remote_start: starts it if there is an address, or a fallback store with a compiler
 * cache, and a ccache that can use it. */
int pipeline_remote_start(const struct pipeline_request *q, const struct toolchain *t, const struct run *run,
			  struct arena *a, struct pipeline_remote *ret, struct err *e) MUST_CHECK;
/* pipeline_remote_stop: stops it and logs what it did. */
void pipeline_remote_stop(struct pipeline_remote *p, const struct pipeline_request *q, const struct run *run);
