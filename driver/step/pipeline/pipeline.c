#include "step/pipeline/pipeline.h"

#include "base/sys/json.h"
#include "cache/store.h"
#include "core/plan/torch_fits.h"
#include "core/root/sandbox.h"
#include "step/compile/build.h"
#include "step/pack/pack.h"
#include "step/pipeline/make.h"

enum { ASK_ROUNDS = 3 }; /* what a back end asks for may make it ask for more */

struct pipeline {
	const struct pipeline_request *q;
	const struct run *run;
	struct arena *arena;
	const struct tables *tables; /* with the locks of extensions */
	const struct toolchain *toolchain;
	const struct toolkits *toolkits; /* NULL where neither a build nor its torch is for CUDA */
	/* what the one wheel is made of, instead of being built; NULL */
	const struct captured *captured;
	const struct hardware_facts *facts;
	struct hardware machine; /* this one */
	struct sign_key *key;    /* NULL: nothing is signed */
	bool sandbox_works;      /* it was tried */
	bool elsewhere;          /* without a sandbox, and not where its paths are */
	struct strlist ready;    /* "variant release" of what has passed its preflight */
	struct strlist asks;     /* of the back end of the extension that was built last */
	/* the torches that nobody asked for by name and
	 * that could not be had: each is tried once */
	struct pipeline_failures torches;
	struct pipeline_results *r;
	size_t first, first_failed; /* those of this request */
};

/* A wheel to build: what is asked, the torch that it
 * is built against (NULL: none), and its revision. */
struct target {
	const struct selection *t;
	struct torch_source *torch;
	unsigned rev;
};

static int resolve(struct pipeline *l, const struct target *of, const struct plan **ret,
		   struct err *e)
{
	const struct selection *t = of->t;
	const struct torch_source *torch = of->torch;
	struct plan_request r = {.variant = &t->variant,
				 .release = t->release->name,
				 .options = l->q->plan,
				 .toolchain = l->toolchain,
				 .toolkits = l->toolkits,
				 .torch = torch ? torch->identity : "",
				 .torch_version = torch ? torch->version : "",
				 .sandbox = l->q->kind,
				 .elsewhere = l->elsewhere,
				 .without_protections = l->run->without_protections,
				 .drift = l->q->drift.count > 0,
				 .patches_dir = l->q->patches_dir,
				 .note = t->note,
				 .torch_cuda = t->torch_cuda};

	r.options.metadata_rev = of->rev;
	return plan_resolve(l->tables, &r, l->arena, ret, e);
}

/* The whole world, before anything of it is run: the command looked at its directories alone. */
static int check_world(const struct pipeline *l, struct err *e)
{
	const char *key = l->q->root->world, *dir = NULL;

	if (!key)
		return 0;
	struct store *store = l->q->world_store ? l->q->world_store : l->q->store;
	const char *other = pipeline_other_store(store, l->q->root, l->arena);
	if (other) {
		err_set(e, ERR_POLICY,
			"the world '%s' is of another store, and is checked by its own",
			l->q->root->dir);
		return err_hint(e, "add --lower-store %s, or name the world as --root world:NAME",
				shell_quoted(other, l->arena));
	}

	if (store_world_find(store, key, STORE_LOOK_WHOLE, l->arena, &dir, e) < 0)
		return -1;
	if (dir)
		return 0;
	err_set(e, ERR_INTEGRITY, "the world '%s' was changed", l->q->root->dir);
	return err_hint(e, "run the same command again: it recreates the world");
}

static int try_sandbox(struct pipeline *l, struct err *e)
{
	if (l->q->kind != SANDBOX_BWRAP || l->sandbox_works)
		return 0;
	if (check_world(l, e) < 0 || sandbox_probe(l->q->root, l->run, e) < 0)
		return -1;
	if (l->run->without_protections)
		log_warn(l->run->log, "%s, because of --without-protection",
			 sandbox_text(l->q->kind, l->run->without_protections, l->arena));
	l->sandbox_works = true;
	return 0;
}

/* Logs the estimated cost of the build, for a shard that of its part. */
static void announce_cost(const struct pipeline *l, const struct plan *p)
{
	const struct pipeline_request *q = l->q;
	struct cost_downloads d = {0};
	const struct emulation *m = q->root->emulation;
	const struct cost_request r = {.profiles = q->profiles_dir,
				       .package = p->package,
				       .release = p->release,
				       .row = p->package_row,
				       .gpus = p->cuda ? (unsigned)p->gpu.count : 0,
				       .store = q->store,
				       .percent = m ? m->percent : 0,
				       .seconds = m ? m->seconds : 0};
	struct cost c = cost_of(&r, l->run, l->arena);

	if (q->shard.count)
		c.units /= q->shard.count;
	cost_sources(q->store, p->package_row, l->arena, &d);
	log_info(l->run->log, "%s: downloads: %s", p->package, cost_downloads_text(&d, l->arena));
	/* What --shard last finds compiled is not known. */
	if (!q->shard.last)
		log_info(l->run->log, "%s: time: %s", p->package,
			 cost_text(&c, cost_jobs(&c, q->jobs), l->arena));
}

/* From the object in the store to out_dir, with what its record says. */
static int export_item(struct pipeline *l, struct pipeline_item *it, struct err *e)
{
	if (store_check_wheel(it->object, it->plan->output_key, e) < 0 ||
	    json_read(TRUSTED, path_join(l->arena, it->object, STORE_RECORD), &it->record, e) < 0)
		return -1;
	const char *wheel = json_member(it->record, "wheel");
	const char *sha256 = json_member(it->record, "sha256");
	const struct earlier_request earlier = {l->q->out_dir, it->plan->variant,
						it->plan->release};
	if (earlier_keep(&earlier, l->run, l->arena, e) < 0 ||
	    publish_export(it->object, wheel, sha256, it->plan->metadata_rev, it->plan->variant,
			   l->q->out_dir, l->run, l->arena, &it->wheel, e) != 0)
		return -1;
	/* The same of the finished wheel, by its name and the plan that it was compared with. */
	const struct plan *p = it->plan;
	const struct strlist none = {0};
	struct wheel_name name;
	struct promise promise;
	promise_of_plan(p, l->arena, &promise);
	if (wheel_name_parse(it->wheel, l->arena, &name, e) < 0)
		return -1;
	const char *torch =
		*p->torch_version ? arena_printf(l->arena, "torch==%s", p->torch_version) : "";
	runs_on_of_wheel(l->q->tables, &name, name.platform, &promise, &none, torch, l->arena,
			 &it->runs_on);
	it->runs_on.torch_of_root = p->runs_on.torch_of_root;
	fit_of(&it->runs_on, l->q->root, l->facts, &l->machine, l->arena, &it->fit);
	return provenance_write(it->record, it->wheel, l->key, l->arena, e);
}

/* The steps, with watch and progress. */
static int make_watched(struct make *m, struct err *e)
{
	const struct plan *p = m->plan;
	const struct watch_request q = {.build_dir = m->build_dir};
	/* The shard that the request is for, NULL for none; in the arena of `m`. */
	struct build_shard *s = arena_alloc(m->arena, sizeof(*s));

	*s = (struct build_shard){m->q->shard.index, m->q->shard.count};
	m->shard = m->q->shard.count ? s : NULL;
	/* Shards are divided the same way on every machine, however fast. */
	m->weights =
		weights_load(m->q->profiles_dir, p->package, p->release, (unsigned)p->gpu.count,
			     m->shard ? NULL : m->q->store, m->run, m->arena);
	const struct cost c = {.memory = jobs_from_table(p->package_row->memory)};
	struct progress_request shown = {.package = p->package,
					 .build_dir = m->build_dir,
					 .weights = m->weights,
					 .jobs = cost_jobs(&c, m->q->jobs)};
	AUTO_WATCH struct watch *watch = NULL;
	if (watch_start(&q, &watch, e) < 0)
		return -1;
	m->watch = shown.watch = watch;
	m->progress = progress_new(&shown, m->run, m->arena);
	int rc = make_run(m, e);
	log_status_end(m->run->log);
	watch_stop(watch, m->arena, &m->watched);
	m->watch = watch = NULL;
	collect_units(m);
	return rc;
}

/* In m->build_dir. */
static int make_in(struct pipeline *l, struct pipeline_item *it, struct make *m, struct err *e)
{
	struct store *store = l->q->store;

	m->plan = it->plan = plan_of_tree(it->plan, m->build_dir, l->run, l->arena);
	if (store_stage(store, l->arena, &m->stage, e) < 0)
		return -1;
	log_info(l->run->log, "%s: %s %s (tree %s)", it->plan->package,
		 l->captured ? "taking" : "building",
		 l->captured ? it->plan->release : it->plan->variant, m->build_dir);
	/* Before the build: where its wheel will run. */
	struct fit fit;
	fit_of(&it->plan->runs_on, l->q->root, l->facts, &l->machine, l->arena, &fit);
	log_info(l->run->log, "%s: the wheel will run on %s", it->plan->package,
		 runs_on_text(&it->plan->runs_on, l->arena));
	log_info(l->run->log, "%s: this machine: %s", it->plan->package, fit_text(&fit, l->arena));
	if (!l->captured)
		announce_cost(l, it->plan);
	log_changed_inputs(store, it->plan, m->build_dir, l->run);
	log_packed_otherwise(store, it->plan, l->run);
	int rc = compiled_start(m, e);
	if (rc == 0) {
		rc = make_watched(m, e);
		compiled_stop(m);
	}

	if (rc == 0 && m->shard) {
		it->shard = shard_record(m);
		store_drop_stage(store, m->stage);
		if (compiled_keep(m, e) < 0)
			return err_wrap(e, "what this shard compiled is not kept");
		return 0;
	}

	if (rc < 0 || write_record(m, e) < 0 ||
	    fs_copy(m->build_dir, "log/build.log", path_join(l->arena, m->stage, "build.log"), e) <
		    0 ||
	    store_publish(store, STORE_WHEEL, it->plan->output_key, m->stage, l->arena, &it->object,
			  e) < 0) {
		log_status_end(l->run->log);
		store_drop_stage(store, m->stage);
		return -1;
	}

	if (!l->captured)
		compiled_publish(m);
	return 0;
}

/* The key of the tree that a build of the request is made in: the compile key,
 * or of a shard another one, so that shards can run on one machine at once. */
static const char *shard_tree_key(const struct pipeline_request *q, const struct plan *p,
				  struct arena *a)
{
	char key[DIGEST_HEX_LEN + 1];

	/* The compiler sees where the tree is: elsewhere than
	 * in the sandbox all shards must be in the same. */
	if (!q->shard.count || p->elsewhere)
		return p->compile_key;
	const char *text = arena_printf(a, "%s shard %u of %u", p->compile_key, q->shard.index,
					q->shard.count);
	digest_data(text, strlen(text), key);
	return arena_strdup(a, key);
}

/* In the tree of its key, which without a sandbox is worked in where the sandbox's paths are. */
static int make(struct pipeline *l, struct pipeline_item *it, struct make *m, struct err *e)
{
	AUTO_LOCK struct lock lock = LOCK_NONE;
	AUTO_WORK_TREE struct work_tree tree = WORK_TREE_NONE;
	const char *key = shard_tree_key(l->q, it->plan, l->arena), *home;
	const char *top =
		l->q->kind == SANDBOX_NONE && !l->elsewhere && !l->captured ? SANDBOX_TOP : NULL;
	struct err why = {0};

	if (store_lock(l->q->store, STORE_BUILD, key, l->run, &lock, e) < 0 ||
	    store_build_dir(l->q->store, key, l->arena, &home, e) < 0 ||
	    work_tree_take(top, home, l->run, l->arena, &tree, e) < 0)
		return -1;
	m->build_dir = tree.dir;
	m->rest_dir = tree.rest;
	if (make_in(l, it, m, e) == 0)
		return l->q->options.keep_tree ? work_tree_give_back(&tree, e)
					       : work_tree_remove(&tree, e);
	l->asks = m->asks;
	if (m->asks.count && work_tree_remove(&tree, ERR_IGNORED) == 0)
		return -1; /* it is planned again, in another tree */
	if (work_tree_give_back(&tree, &why) < 0)
		log_warn(l->run->log, "%s: the build tree stays in '%s' until the next build there",
			 why.msg, SANDBOX_TOP);
	return -1;
}

static int torch_agrees(struct pipeline *l, const struct plan *p, const struct torch_source *torch,
			struct err *e)
{
	const char *gpus = plan_is_extension(p) ? arena_printf(l->arena, "%s %s", torch->wheel,
							       strlist_join(&p->gpu, l->arena, " "))
						: NULL;

	const struct torch_asked q = {
		.plan = p, .wheel = torch->wheel, .glibc = l->toolchain->glibc};
	if (torch_fits(&q, TORCH_WHEEL, l->arena, e) < 0)
		return -1;
	if (gpus && !strlist_contains(&l->ready, gpus)) { /* once for all extensions */
		if (torch_fits(&q, TORCH_GPUS, l->arena, e) < 0)
			return -1;
		strlist_ref(&l->ready, l->arena, gpus);
	}

	return 0;
}

/* An official torch is fetched last: only a build that passed all other checks needs its hundreds
 * of megabytes. */
static int fetch_torch(struct pipeline *l, struct torch_source *torch, struct err *e)
{
	struct fetch_source s = fetch_source_official(torch->official, l->arena);

	if (fetch_all(&(struct fetcher){l->q->store, &l->q->fetch, l->run, l->arena}, &s, 1, NULL,
		      e) < 0)
		return -1;
	torch->wheel = s.path;
	return 0;
}

static struct make new_make(const struct pipeline *l, const struct plan *p,
			    const struct torch_source *torch)
{
	return (struct make){.q = l->q,
			     .run = l->run,
			     .arena = l->arena,
			     .plan = p,
			     .toolchain = l->toolchain,
			     .torch = torch,
			     .captured = l->captured};
}

/* The preflight of a variant, once in a run. */
static int be_ready(struct pipeline *l, const struct make *m, struct torch_source *torch,
		    struct err *e)
{
	const struct plan *p = m->plan;
	const char *name = arena_printf(l->arena, "%s %s", p->variant, p->release);
	const bool ready = strlist_contains(&l->ready, name);
	const bool to_fetch = torch && torch->official && !torch->wheel;

	if (!ready && torch && torch->wheel && torch_agrees(l, p, torch, e) < 0)
		return -1;
	if (!ready && l->q->shard.count && shard_check(p, l->toolchain, e) < 0)
		return -1;
	if (!ready && (try_sandbox(l, e) < 0 || pipeline_preflight(m, l->toolkits, e) < 0))
		return -1;
	if (to_fetch && (fetch_torch(l, torch, e) < 0 || torch_agrees(l, p, torch, e) < 0))
		return -1;
	if (!ready)
		strlist_ref(&l->ready, l->arena, name);
	return 0;
}

/* Gets the wheel of a plan from the store, or builds it. Holds the lock of its key meanwhile, so
 * that of two processes one builds and the other uses the result. */
static int obtain_plan(struct pipeline *l, const struct plan *plan, struct torch_source *torch,
		       struct pipeline_item **ret, struct err *e)
{
	struct pipeline_results *r = l->r;

	r->items = arena_room(l->arena, r->items, r->count, &r->cap, 16, sizeof(*r->items));
	struct pipeline_item *it = &r->items[r->count];
	AUTO_LOCK struct lock key = LOCK_NONE;
	struct make m = new_make(l, plan, torch);
	*it = (struct pipeline_item){.plan = plan};
	for (size_t i = 0; i < it->plan->notes.count; i++)
		log_verbose(l->run->log, "%s: note: %s", it->plan->package,
			    it->plan->notes.items[i]);
	struct wheel_lookup x = {
		.store = l->q->store, .run = l->run, .arena = l->arena, .plan = it->plan};
	if (wheel_look_up(&x, &key, e) < 0)
		return -1;
	it->object = x.found;
	it->hit = it->object != NULL;
	const char *kept = path_join(l->arena, path_join(l->arena, store_dir(l->q->store), "build"),
				     plan->compile_key);
	if (it->hit && fs_exists(kept, BUILD_TREE_CHANGED))
		log_warn(l->run->log,
			 "%s: using the wheel from the store, without your changes in '%s'",
			 plan->package, kept);
	if (!it->hit && pipeline_repack(&m, &it->object, e) < 0)
		return -1;
	if (!it->object && l->q->repack_only)
		return pipeline_no_repack(it->plan->variant, l->q->build_line, e);
	if (!it->object && (be_ready(l, &m, torch, e) < 0 || make(l, it, &m, e) < 0))
		return -1;
	if (!it->shard && export_item(l, it, e) < 0) {
		json_decref(it->record);
		return -1;
	}

	r->count++;
	*ret = it;
	return 0;
}

static int obtain(struct pipeline *l, const struct target *of, struct pipeline_item **ret,
		  struct err *e)
{
	const struct plan *plan;

	for (unsigned round = 0;; round++) {
		l->asks = (struct strlist){0};
		if (resolve(l, of, &plan, e) < 0)
			return -1;
		if (obtain_plan(l, plan, of->torch, ret, e) == 0)
			break;
		if (!l->asks.count || round == ASK_ROUNDS ||
		    pipeline_lock_more(l->q, plan, &l->asks, l->run, l->arena, &l->tables, e) < 0)
			return -1;
	}

	(*ret)->asked = variant_name(&of->t->variant, l->arena);
	return 0;
}

static const struct pipeline_failure *failed_among(const struct pipeline_failures *f, size_t first,
						   const char *name, const char *release)
{
	for (size_t i = first; i < f->count; i++)
		if (strcmp(f->items[i].variant, name) == 0 &&
		    strcmp(f->items[i].release, release) == 0)
			return &f->items[i];
	return NULL;
}

static const struct pipeline_failure *failed_already(const struct pipeline *l,
						     const struct selection *t)
{
	const char *name = variant_name(&t->variant, l->arena);
	const struct pipeline_failure *asked =
		failed_among(&l->r->failed, l->first_failed, name, t->release->name);

	return asked ? asked : failed_among(&l->torches, 0, name, t->release->name);
}

static const struct pipeline_item *find_made(const struct pipeline *l, const struct selection *t,
					     unsigned rev)
{
	const size_t count = l->r->count - l->first;
	return count ? pipeline_find(&l->r->items[l->first], count, t, rev) : NULL;
}

static int find_root_torch(struct pipeline *l, struct torch_source *ret, struct err *e)
{
	const struct pipeline_request *q = l->q;
	const char *answers = path_join(l->arena, store_dir(q->store), "stamps");

	if (torch_recall(q->root, q->kind, answers, l->arena, ret))
		return 0;
	return try_sandbox(l, e) < 0
		       ? -1
		       : torch_from_root(q->root, q->kind, answers, l->run, l->arena, ret, e);
}

/* The torch that others are built against is always the first revision: a later one has other bytes
 * but the same contents, and all of them would be built again. */
static int find_torch(struct pipeline *l, const struct selection *t, struct torch_source *ret,
		      struct err *e)
{
	if (l->q->plan.torch && strcmp(l->q->plan.torch, "root") == 0)
		return find_root_torch(l, ret, e);
	if (l->q->plan.torch) {
		const struct torch_official q = {.profiles = l->q->profiles_dir,
						 .base = t->release->base,
						 .python = t->variant.python,
						 .platform = t->variant.profile.platform,
						 .cuda = t->variant.cuda};
		const int rc = torch_find_official(l->q->plan.torch, &q, l->arena, ret, e);
		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}

	if (l->q->plan.torch)
		return torch_from_wheel(l->q->plan.torch, t->variant.python, l->arena, ret, e);
	struct selection own = *t;
	own.variant.package = PACKAGE_TORCH;
	const struct pipeline_item *have = find_made(l, &own, 1);
	const struct pipeline_failure *failed = have ? NULL : failed_already(l, &own);
	if (failed) {
		*e = failed->why;
		return err_wrap(e, "the torch that %s is built against", t->variant.package);
	}

	if (!have) {
		struct pipeline_item *made;
		log_verbose(l->run->log, "%s needs the torch of its variant", t->variant.package);
		if (obtain(l, &(struct target){.t = &own, .rev = 1}, &made, e) < 0) {
			pipeline_failed(&l->torches, &own, e, l->arena);
			return err_wrap(e, "the torch that %s is built against",
					t->variant.package);
		}

		have = made;
	}

	return torch_from_wheel(have->wheel, t->variant.python, l->arena, ret, e);
}

static int obtain_one(struct pipeline *l, const struct selection *t, bool needs_torch,
		      struct err *e)
{
	struct target of = {.t = t, .rev = l->q->plan.metadata_rev};
	struct pipeline_item *it;

	if (needs_torch) {
		of.torch = arena_alloc(l->arena, sizeof(*of.torch));
		if (find_torch(l, t, of.torch, e) < 0)
			return -1;
	}

	return run_check(l->run, e) < 0 ? -1 : obtain(l, &of, &it, e);
}

static int obtain_all(struct pipeline *l, struct err *e)
{
	for (int pass = 0; pass < 2; pass++) { /* torch first: the others are built against it */
		for (size_t i = 0; i < l->q->count; i++) {
			const struct selection *t = &l->q->targets[i];
			if (package_is_torch(t->variant.package) != (pass == 0) ||
			    find_made(l, t, l->q->plan.metadata_rev))
				continue;
			/* Notes a failure so that the next variant is
			 * tried; -1 where the first one ends the build. */
			if (obtain_one(l, t, pass == 1, e) < 0) {
				if (!l->r->goes_on || e->kind == ERR_INTERRUPTED)
					return -1;
				log_status_end(l->run->log);
				pipeline_failed(&l->r->failed, t, e, l->arena);
				log_warn(l->run->log, "%s: %s", variant_name(&t->variant, l->arena),
					 e->msg);
				err_clear(e);
			}
		}
	}

	return 0;
}

/* Whether the wheel must be built, and then its preflight, and its sources
 * if there are several. Without a torch it is not known before it is built. */
static int look_at(struct pipeline *l, const struct target *of, bool *missing, struct err *e)
{
	struct torch_source *torch = of->torch;
	AUTO_LOCK struct lock key = LOCK_NONE;
	const struct plan *p;
	struct wheel_lookup x = {.store = l->q->store, .run = l->run, .arena = l->arena};
	const bool is_torch = package_is_torch(of->t->variant.package);
	const bool known = torch || is_torch;

	if (resolve(l, of, &p, e) < 0)
		return -1;
	x.plan = p;
	if (known && wheel_look_up(&x, &key, e) < 0)
		return -1;
	bool have = x.found != NULL;
	if (known && !have && pipeline_can_repack(l->q->store, p, false, l->arena, &have, e) < 0)
		return -1;
	*missing = !have;
	if (have)
		return 0;
	struct make m = new_make(l, p, torch);
	struct fetch_source *sources;
	if (be_ready(l, &m, torch, e) < 0)
		return -1;
	return l->q->count == 1 && known ? 0 : make_fetch(&m, &sources, e);
}

/* Checks everything that will be built before the first of several wheels begins: an error in the
 * last one must not appear hours later. In a matrix one failure stops no other variant. */
static int look_ahead(struct pipeline *l, struct err *e)
{
	if (l->r->goes_on || l->q->repack_only)
		return 0;
	for (size_t i = 0; i < l->q->count; i++) {
		const struct selection *t = &l->q->targets[i];
		struct selection own = *t;
		struct torch_source torch;
		struct target of = {.t = &own, .rev = 1};
		const bool is_torch = package_is_torch(t->variant.package);
		bool missing = false, known = l->q->plan.torch != NULL;
		own.variant.package = PACKAGE_TORCH;
		if ((is_torch || !known) && look_at(l, &of, &missing, e) < 0)
			return is_torch ? -1
					: err_wrap(e, "the torch that %s is built against",
						   t->variant.package);
		if (is_torch)
			continue;
		if (!missing && find_torch(l, t, &torch, e) < 0)
			return -1;
		of = (struct target){t, missing ? NULL : &torch, l->q->plan.metadata_rev};
		if (look_at(l, &of, &missing, e) < 0)
			return -1;
	}

	return 0;
}

/* What the build of an extension needs and no list has is pinned before its plan is made. */
static int lock_requirements(struct pipeline *l, struct err *e)
{
	const struct plan *p;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->q->count; i++) {
		const struct target of = {.t = &l->q->targets[i], .rev = 1};
		if (tables_package_rank(of.t->variant.package) == TABLES_PACKAGES)
			rc = resolve(l, &of, &p, e) < 0
				     ? -1
				     : pipeline_lock(l->q, p, l->run, l->arena, &l->tables, e);
	}

	return rc;
}

static int build(struct pipeline *l, struct err *e)
{
	const struct pipeline_request *q = l->q;

	l->elsewhere = sandbox_elsewhere(q->kind);
	const bool cuda = pipeline_needs_cuda(q);
	/* What the last run remembered needs no sandbox: taking
	 * a wheel from the store then starts no program. */
	char digest[DIGEST_HEX_LEN + 1];
	digest_data(q->root->dir, strlen(q->root->dir), digest);
	const char *memo =
		arena_printf(l->arena, "%s/stamps/tools-%s", store_dir(q->store), digest);
	l->toolchain = toolchain_recall(q->root, q->kind, memo, l->arena);
	if (!l->toolchain) {
		if (try_sandbox(l, e) < 0 ||
		    toolchain_probe(q->root, q->kind, l->run, l->arena, &l->toolchain, e) < 0)
			return -1;
		toolchain_remember(l->toolchain, q->root, q->kind, memo);
	}

	if (cuda &&
	    (try_sandbox(l, e) < 0 || toolkit_probe(q->tables, q->root, q->kind, q->cuda_home,
						    l->run, l->arena, &l->toolkits, e) < 0))
		return -1;
	return lock_requirements(l, e) < 0 || look_ahead(l, e) < 0 ? -1 : obtain_all(l, e);
}

static int take(struct pipeline *l, struct err *e)
{
	const struct pipeline_request *q = l->q;
	struct pipeline_item *it;
	const struct plan *plan;
	struct captured t;

	log_stage(l->run->log, "pytorch: look at the torch of the root");
	int rc =
		try_sandbox(l, e) < 0 || capture_find(q->root, q->kind, l->run, l->arena, &t, e) < 0
			? -1
			: 0;
	log_status_end(l->run->log);
	if (rc < 0)
		return -1;
	const struct plan_captured_request r = {.root = q->root,
						.package = t.package,
						.version = t.version,
						.python = t.python,
						.platform = t.platform,
						.digest = t.digest,
						.epoch = t.epoch,
						.sandbox = q->kind,
						.without_protections = l->run->without_protections,
						.metadata_rev = q->plan.metadata_rev};
	l->captured = &t;
	if (plan_captured(q->tables, &r, l->arena, &plan, &l->toolchain, e) < 0)
		return -1;
	if (obtain_plan(l, plan, NULL, &it, e) == 0)
		return 0;
	if (e->kind == ERR_POLICY && !*e->hint)
		err_hint(e,
			 "that is what '%s' installed in '%s': install it again there, or another "
			 "version of it",
			 t.package, q->root->dir);
	return -1;
}

/* What making and taking have in common. */
static int run_it(struct pipeline *l, int (*work)(struct pipeline *l, struct err *e), struct err *e)
{
	const struct pipeline_request *q = l->q;

	l->tables = q->tables;
	l->first = l->r->count;
	l->first_failed = l->r->failed.count;
	l->r->asked += q->count;
	if (hardware_facts_load(q->profiles_dir, l->arena, &l->facts, e) < 0 ||
	    hardware_read(l->facts, pipeline_needs_cuda(q), l->run, l->arena, &l->machine, e) < 0)
		return -1;
	/* A bad key is found before an hour of building. */
	if (q->options.sign_key && sign_load(q->options.sign_key, true, &l->key, e) < 0)
		return err_wrap(e, "--sign-key");
	int rc = work(l, e);
	sign_key_free(l->key);
	return rc;
}

int pipeline_build(const struct pipeline_request *q, struct arena *a,
		   struct pipeline_results *results, struct err *e)
{
	struct pipeline l = {.q = q, .run = q->run, .arena = a, .r = results};
	return run_it(&l, build, e);
}

int pipeline_capture(const struct pipeline_request *q, struct arena *a,
		     struct pipeline_results *results, struct err *e)
{
	struct pipeline l = {.q = q, .run = q->run, .arena = a, .r = results};
	return run_it(&l, take, e);
}
