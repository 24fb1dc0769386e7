/* Compiled objects across builds. A build writes into a compiler cache of its own, in its build
 * directory, and reads the store's through a socket; what it made enters the store's when it is
 * finished and verified. */
#pragma once
#include "core/root/toolkit.h"
#include "step/ccache/ccache_remote.h"
#include "step/pipeline/pipeline.h"

#define COMPILED_FRONT "ccache" /* in the build directory */

struct compiled {
	struct ccache_remote *remote; /* NULL: the build reads nothing */
	/* a stage of the store, to be shown to the build; NULL likewise */
	const char *dir;
	/* once it was stopped: what came from elsewhere, and whether the server failed */
	uint64_t remote_hits;
	bool server_failed;
};

/* compiled_start: serves the domains that the request reads, if the root's ccache can read them. */
int compiled_start(const struct pipeline_request *q, const struct plan *p, const struct toolchain *t,
		   const struct run *run, struct arena *a, struct compiled *ret, struct err *e) MUST_CHECK;
/* compiled_stop: ends that and logs what it did. */
void compiled_stop(struct compiled *c, const struct pipeline_request *q, const struct run *run);
/* compiled_keep: what the build of `p` in `build_dir` compiled into a domain of the store (NULL:
 * the request's), and to the server if there is one that may be written. The build must be over;
 * nothing asks whether it was verified, so a domain for builds that are not must be one that is
 * read by name alone ("default:NAME" in the options of the build that goes on from it). Entries
 * that the domain has stay as they are. The size limit holds afterwards. */
int compiled_keep(const struct pipeline_request *q, const struct plan *p, const char *build_dir, const char *domain,
		  const struct run *run, struct arena *a, struct err *e) MUST_CHECK;
/* compiled_publish: the same of a verified build into the request's domain, once compiled_stop was
 * called; what its shards had kept is removed. A failure is a warning. A server that failed is left
 * alone. */
void compiled_publish(const struct compiled *c, const struct pipeline_request *q, const struct plan *p,
		      const char *build_dir, const struct run *run, struct arena *a);
