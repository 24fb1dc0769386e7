#include "step/pipeline/remote.h"

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/version.h"

/* The oldest ccache with CCACHE_REMOTE_STORAGE. */
#define CCACHE_OLDEST "4.7"

int pipeline_remote_start(const struct pipeline_request *q, const struct toolchain *t, const struct run *run,
			  struct arena *a, struct pipeline_remote *ret, struct err *e)
{
	const struct tool *ccache = toolchain_get(t, "ccache");
	const char *const *lowers;
	size_t count = store_fallbacks(q->store, &lowers);
	struct ccache_remote_request r = {.url = q->offline ? NULL : q->options.ccache_remote};
	*ret = (struct pipeline_remote){0};
	for (size_t i = 0; i < count; i++) {
		const char *dir = path_join(a, lowers[i], "ccache");
		if (fs_is_dir(dir))
			strlist_ref(&r.lower, a, dir);
	}
	if (!r.url && r.lower.count == 0)
		return 0;
	if (!ccache->path || version_cmp(ccache->version, CCACHE_OLDEST) < 0) {
		log_warn(run->log,
			 "the compiler cache's remote storage is not used: the root has %s%s, it needs "
			 "ccache " CCACHE_OLDEST,
			 ccache->path ? "ccache " : "no ccache", ccache->path ? ccache->version : "");
		return 0;
	}
	if (store_stage(q->store, a, &r.dir, e) < 0)
		return -1;
	struct pipeline_remote p = {.dir = r.dir};
	if (ccache_remote_start(&r, run, &p.remote, e) < 0) {
		store_drop_stage(q->store, r.dir);
		return -1;
	}
	*ret = p;
	return 0;
}

void pipeline_remote_stop(struct pipeline_remote *p, const struct pipeline_request *q, const struct run *run)
{
	struct ccache_remote_stats s = {0};
	if (!p->remote)
		return;
	ccache_remote_stop(p->remote, &s);
	store_drop_stage(q->store, p->dir);
	*p = (struct pipeline_remote){0};
	if (s.asked || s.stored)
		log_info(run->log,
			 "compiler cache, remote storage: %llu requests, %llu found in fallback stores, %llu on the "
			 "server; %llu objects sent to it%s",
			 (unsigned long long)s.asked, (unsigned long long)s.lower, (unsigned long long)s.hits,
			 (unsigned long long)s.stored, s.failures ? "; some requests failed" : "");
}
