#include "step/pipeline/pipeline_preflight.h"

#include "step/preflight/preflight.h"

int pipeline_preflight(const struct pipeline_preflight *f, const struct run *run, struct arena *a, struct err *e)
{
	const struct pipeline_request *q = f->q;
	struct preflight *d = arena_alloc(a, sizeof(*d));
	struct preflight_request r = {.tables = q->tables,
				      .release = f->plan->release_row,
				      .plan = f->plan,
				      .root = q->root,
				      .kind = q->kind,
				      .toolchain = f->toolchain,
				      .toolkits = f->toolkits,
				      .cuda_home = q->cuda_home,
				      .store_dir = store_dir(q->store),
				      .out_dir = q->out_dir,
				      .jobs = q->jobs};
	if (store_build_dir(q->store, f->plan->compile_key, a, &r.build_dir, e) < 0 ||
	    preflight_run(d, &r, run, a, e) < 0)
		return -1;
	return preflight_verdict(d, e);
}
