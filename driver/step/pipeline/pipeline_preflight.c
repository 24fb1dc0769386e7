#include "step/pipeline/pipeline_preflight.h"

#include <string.h>

#include "base/path.h"
#include "core/world/world.h"
#include "step/fetch/fetch_probe.h"
#include "step/pipeline/pipeline_world.h"
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

/* The newest release whose sources of a package are all in Debian archives; NULL: none. */
static const char *release_of_debian(const struct tables *t, const char *package)
{
	const char *found = NULL;
	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct package_row *p = tables_package(&t->releases[i], package);
		bool all = p && p->sources_count;
		for (unsigned k = 0; all && k < p->sources_count; k++)
			all = p->sources[k].urls_count && strncmp(p->sources[k].urls[0], "deb:", 4) == 0;
		found = all ? t->releases[i].name : found;
	}
	return found;
}

/* The plan's sources that the store lacks. */
static size_t add_sources(struct store *store, const struct plan *p, struct arena *a, struct fetch_source *ret)
{
	size_t n = 0;
	for (unsigned i = 0; !p->taken && i < p->package_row->sources_count; i++) {
		const struct source_row *row = &p->package_row->sources[i];
		if (!fetch_has(store, row->sha256))
			ret[n++] = fetch_source_of(row, a);
	}
	return n;
}

/* Asks for `count` files, and adds a failure for those that fail alike. */
static int ask_for(struct preflight *d, const struct fetch_source *all, size_t count, const struct fetch_options *o,
		   const char *of, const char *fix, enum preflight_level level, struct err *e)
{
	const char **why = arena_array(d->arena, count + 1, sizeof(*why));
	if (fetch_probe(all, count, o, d->run, d->arena, why, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct strlist names = {0};
		for (size_t k = i; why[i] && k < count; k++)
			if (why[k] && strcmp(why[i], why[k]) == 0) {
				strlist_addf(&names, d->arena, "'%s'", all[k].name);
				why[k] = k == i ? why[k] : NULL;
			}
		if (why[i])
			preflight_add(d, PREFLIGHT_LINE(level, ERR_NETWORK, o->offline ? "store" : "network", fix),
				      "%s%s cannot be downloaded: %s", strlist_join(&names, d->arena, " "), of, why[i]);
	}
	return 0;
}

int pipeline_reach(struct preflight *d, struct store *store, const struct fetch_options *o, bool others, struct err *e)
{
	static const char mirror[] =
		"name a mirror (--mirror URL|DIR) or a store that has it (--lower-store DIR, filled "
		"by 'ptbuild fetch' where there is a network)";
	const struct plan *p = d->q->plan;
	struct arena *a = d->arena;
	struct fetch_source *sources = arena_array(a, p ? p->package_row->sources_count + 1 : 1, sizeof(*sources)),
			    *world;
	const size_t count = p ? add_sources(store, p, a, sources) : 0, before = preflight_failures(d);
	const char *debian = p ? release_of_debian(d->q->tables, p->package) : NULL;
	const char *fix =
		debian && strcmp(debian, p->release) != 0
			? arena_printf(a,
				       "%s; --release %s takes its sources from a Debian archive, and 'ptbuild "
				       "take' the torch of its root",
				       mirror, debian)
			: mirror;
	double start = log_seconds();
	if (ask_for(d, sources, count, o, "", fix, others ? PREFLIGHT_WARNING : PREFLIGHT_FAILURE, e) < 0)
		return -1;
	if (preflight_failures(d) > before && !d->q->whole)
		return 0;
	const size_t of_world = d->q->not_made ? world_places(store, d->q->world, a, &world) : 0;
	if (of_world && ask_for(d, world, of_world, o, arena_printf(a, " of the world '%s'", d->q->world->name), mirror,
				PREFLIGHT_FAILURE, e) < 0)
		return -1;
	if (preflight_failures(d) == before && count + of_world)
		preflight_ok(d, "network", "what is to be downloaded can be reached (%.1f s)", log_seconds() - start);
	return 0;
}

static int reach(void *user, struct preflight *d, struct err *e)
{
	const struct pipeline_request *q = user;
	const struct fetch_options o = {.mirrors = q->mirrors};
	return pipeline_reach(d, q->store, &o, false, e);
}

int pipeline_preflight(const struct pipeline_request *q, const struct plan *p, const struct toolchain *toolchain,
		       const struct toolkits *toolkits, const struct run *run, struct arena *a, struct err *e)
{
	const struct trial_request t = {q, p, toolchain};
	struct preflight *d = arena_alloc(a, sizeof(*d));
	const char *store = store_dir(q->store);
	const struct preflight_request r = {.stages = PREFLIGHT_TABLES | PREFLIGHT_MACHINE | PREFLIGHT_NETWORK |
						      PREFLIGHT_ROOT,
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
					    .reach = reach,
					    .trial = pipeline_trial,
					    .user = (void *)q};
	return preflight_run(d, &r, run, a, e) < 0 ? -1 : preflight_verdict(d, e);
}
