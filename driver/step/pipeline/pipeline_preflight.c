#include "step/pipeline/pipeline_preflight.h"

#include "base/path.h"
#include "step/pipeline/trial.h"
#include "step/preflight/preflight.h"
#include "step/python/pyenv.h"

struct asking {
	struct pyenv_request q;
	const struct run *run;
	struct arena *a;
};

static int installs(void *user, struct strlist *ret, struct err *e)
{
	const struct asking *k = user;
	return pyenv_installs(&k->q, k->run, k->a, ret, e);
}

int pipeline_preflight(const struct pipeline_preflight *f, const struct run *run, struct arena *a, struct err *e)
{
	const struct pipeline_request *q = f->q;
	const struct trial_request t = {q, f->plan, f->toolchain};
	struct preflight *d = arena_alloc(a, sizeof(*d));
	const char *store = store_dir(q->store);
	struct asking asking = {
		{.plan = f->plan, .profiles_dir = q->profiles_dir, .root = q->root, .kind = q->kind}, run, a};
	const struct preflight_request r = {.tables = q->tables,
					    .release = f->plan->release_row,
					    .plan = f->plan,
					    .root = q->root,
					    .kind = q->kind,
					    .toolchain = f->toolchain,
					    .toolkits = f->toolkits,
					    .cuda_home = q->cuda_home,
					    .store_dir = store,
					    .out_dir = q->out_dir,
					    .build_dir =
						    path_join(a, path_join(a, store, "build"), f->plan->compile_key),
					    .jobs = q->jobs,
					    .offline = q->offline,
					    .installs = installs,
					    .user = &asking,
					    .tried = f->plan->taken || trial_passed(&t, a)};
	if (preflight_run(d, &r, run, a, e) < 0 || preflight_verdict(d, e) < 0)
		return -1;
	if (r.tried)
		return 0;
	double start = log_seconds();
	log_stage(run->log, "%s: preflight", f->plan->package);
	int rc = trial_run(&t, run, a, e);
	log_status_end(run->log);
	log_verbose(run->log, "%s: a small extension went the whole way in %.1f s", f->plan->package,
		    log_seconds() - start);
	return rc;
}
