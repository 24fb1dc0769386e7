#include "step/pipeline/pipeline_preflight.h"

#include "base/path.h"
#include "step/pipeline/trial.h"
#include "step/python/pyenv.h"

int pipeline_installs(void *user, struct preflight *d, struct strlist *ret, struct err *e)
{
	const struct pipeline_request *q = user;
	const struct pyenv_request r = {
		.plan = d->q->plan, .profiles_dir = q->profiles_dir, .root = d->q->root, .kind = d->q->kind};
	return r.plan ? pyenv_installs(&r, d->run, d->arena, ret, e) : 0;
}

int pipeline_trial(void *user, struct preflight *d, struct err *e)
{
	const struct trial_request t = {user, d->q->plan, d->toolchain};
	const bool whole = d->q->whole;
	struct err why = {0};
	double start = log_seconds();
	if (!whole)
		log_stage(d->run->log, "%s: preflight", d->q->plan->package);
	int rc = trial_run(&t, d->run, d->arena, &why);
	log_status_end(d->run->log);
	if (rc == 0)
		preflight_ok(d, "trial", "a small extension went the whole way in %.1f s", log_seconds() - start);
	else if (!whole || why.kind != ERR_NETWORK)
		return preflight_err(d, "trial", &why, e);
	else
		preflight_warn(d, "trial", why.hint, "not made: %s",
			       d->q->offline ? why.msg
					     : "what it needs is not in the store, and doctor fetches nothing");
	log_verbose(d->run->log, "%s: %s", d->q->plan->package, rc < 0 ? why.msg : d->lines[d->count - 1].text);
	return 0;
}

int pipeline_preflight(const struct pipeline_request *q, const struct plan *p, const struct toolchain *toolchain,
		       const struct toolkits *toolkits, const struct run *run, struct arena *a, struct err *e)
{
	const struct trial_request t = {q, p, toolchain};
	struct preflight *d = arena_alloc(a, sizeof(*d));
	const char *store = store_dir(q->store);
	const struct preflight_request r = {.stages = PREFLIGHT_TABLES | PREFLIGHT_MACHINE | PREFLIGHT_ROOT,
					    .tables = q->tables,
					    .release = p->release_row,
					    .plan = p,
					    .root = q->root,
					    .world = q->world,
					    .kind = q->kind,
					    .toolchain = toolchain,
					    .toolkits = toolkits,
					    .cuda_home = q->cuda_home,
					    .store_dir = store,
					    .out_dir = q->out_dir,
					    .build_dir = path_join(a, path_join(a, store, "build"), p->compile_key),
					    .jobs = q->jobs,
					    .offline = q->offline,
					    .tried = p->taken || trial_passed(&t, a),
					    .installs = pipeline_installs,
					    .trial = pipeline_trial,
					    .user = (void *)q};
	return preflight_run(d, &r, run, a, e) < 0 ? -1 : preflight_verdict(d, e);
}
