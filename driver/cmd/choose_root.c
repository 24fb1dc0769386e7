#include "cmd/select.h"

#include "base/sys/machine.h"
#include "cache/store.h"
#include "core/world/cross.h"
#include "step/pipeline/make_world.h"
#include "step/python/pyenv.h"

#define WORLD_ROOT "world:"

/* Returns the variant's toolkit, or if it names none, that of its plan: a GPU can need another than
 * the release's first. Planning reports what cannot be planned. */
static const char *toolkit_of(const struct tables *t, const struct release_row *r,
			      const struct variant *v, struct arena *a)
{
	const struct plan_request q = {.variant = v, .release = r->name};
	const char *cuda = NULL;

	if (v->profile.gpu != GPU_CUDA || v->cuda || plan_cuda(t, &q, a, &cuda, ERR_IGNORED) == 0)
		return v->profile.gpu != GPU_CUDA ? NULL : v->cuda ? v->cuda : cuda;
	return r->toolkits_count ? r->toolkits[0] : NULL;
}

static const char *named_world(const struct cmd_context *c)
{
	const char *root = c->global->root;

	return root && strncmp(root, WORLD_ROOT, strlen(WORLD_ROOT)) == 0
		       ? root + strlen(WORLD_ROOT)
		       : NULL;
}

/* Before the world is fetched for nothing. */
static int check_named(const struct cmd_context *c, struct err *e)
{
	return named_world(c) ? sandbox_check_root(cmd_sandbox(c), c->global->root, e) : 0;
}

static int load_world(struct cmd_context *c, const char *name, const char *platform,
		      const struct world **ret, struct err *e)
{
	return world_load(c->profiles_dir, name, platform, c->arena, ret, e);
}

/* The world that --root names becomes the one of the context. */
static int load_named(struct cmd_context *c, struct err *e)
{
	if (c->world || !named_world(c))
		return 0;
	const char *platform = c->root_platform ? c->root_platform : machine_platform(c->arena);
	return load_world(c, named_world(c), platform, &c->world, e);
}

int cmd_root_default(struct cmd_context *c, const struct release_row *r, struct err *e)
{
	struct world_wanted want = {.platform = machine_platform(c->arena)};
	struct world_choice w = {0};
	struct cmd_python q = {.release = r, .platform = want.platform};

	if (c->global->root || cmd_sandbox(c) == SANDBOX_NONE)
		return 0;
	strlist_refs(&q.pythons, c->arena, r->pythons, r->pythons_count);
	if (cmd_python(c, &q, &want.python, e) < 0)
		return -1;
	if (world_choose(&(struct world_question){c->tables, r, &want, c->arena}, &w, e) < 0)
		return -1;
	return w.name ? load_world(c, w.name, want.platform, &c->world, e) : 0;
}

int cmd_root_named(struct cmd_context *c, const struct world **ret, struct err *e)
{
	if (load_named(c, e) < 0)
		return -1;
	*ret = named_world(c) ? c->world : NULL;
	return 0;
}

struct root_groups {
	struct cmd_context *c;
	const struct tables *tables;
	const char *platform;      /* of this machine */
	bool foreign;              /* also those for other platforms: nothing is made */
	const struct world *named; /* by --root; NULL: by the releases' tables */
	struct cmd_root_group *items;
	size_t count;
	size_t left;                /* variants that are to be grouped yet */
	struct cmd_root_group **of; /* of each variant */
};

static const struct world *loaded(const struct root_groups *s, const char *name,
				  const char *platform)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].world && strcmp(s->items[i].world->name, name) == 0 &&
		    strcmp(s->items[i].world->platform, platform) == 0)
			return s->items[i].world;
	return NULL;
}

/* A Python that is a part of its own brings no packages:
 * its build takes them from the package's locked list. */
static int check_packages(const struct root_groups *s, const struct selection *one,
			  const struct world *w, struct err *e)
{
	const struct world_part *part = world_python_part(w);

	if (!part)
		return 0;
	const struct covers_request q = {.tables = s->tables,
					 .release = one->release,
					 .package = one->variant.package,
					 .part = part->part,
					 .python = part->python,
					 .own = w->pieces[0].part->python};
	return covers_check(&q, s->c->arena, e);
}

/* The world that is named, for the platform, if it has what is asked for. */
static int find_named(const struct root_groups *s, const struct selection *one,
		      struct world_wanted want, const struct world **ret, struct err *e)
{
	struct cmd_context *c = s->c;
	const char *platform = want.platform;

	*ret = strcmp(s->named->platform, platform) == 0 ? s->named
							 : loaded(s, s->named->name, platform);
	if (!*ret && load_world(c, s->named->name, platform, ret, e) < 0)
		return -1;
	if (cmd_select_cuda_home(c)) /* a toolkit of one's own */
		want.cuda = NULL;
	if (world_check_parts(&(struct world_question){s->tables, one->release, &want, c->arena},
			      *ret, e) < 0 ||
	    world_check_tools(*ret, one->release, c->arena, e) < 0)
		return -1;
	return check_packages(s, one, *ret, e);
}

/* The release nearest to the variant's own that has a world for it, of upstream's; NULL: none. */
static const char *nearest_with_world(const struct cmd_context *c, const struct tables *t,
				      const struct selection *one, struct world_wanted want)
{
	const size_t own = (size_t)(one->release - t->releases), count = t->releases_count;

	for (size_t i = 1; i < 2 * count; i++) { /* one older, one newer, two older */
		const size_t at = i % 2 ? own - (i + 1) / 2 : own + i / 2;
		if (at >= count || !tables_offered(&t->releases[at]))
			continue;
		const struct release_row *r = &t->releases[at];
		const struct plan_request q = {.variant = &one->variant, .release = r->name};
		struct world_choice w = {0};
		if (plan_cuda(t, &q, c->arena, &want.cuda, ERR_IGNORED) == 0 &&
		    world_choose(&(struct world_question){t, r, &want, c->arena}, &w,
				 ERR_IGNORED) == 0 &&
		    w.name)
			return r->name;
	}

	return NULL;
}

static int find_world(const struct root_groups *s, const struct selection *one,
		      const struct world **ret, struct err *e)
{
	struct cmd_context *c = s->c;
	const struct variant *v = &one->variant;
	const struct release_row *r = one->release;
	const struct plan_request q = {
		.variant = v, .release = r->name, .options.blas = cmd_selected(c)->plan.blas};
	const struct blas_row *blas = plan_blas(s->tables, &q);
	struct world_choice w = {0};
	const char *platform = s->platform;

	if (s->foreign || cmd_can_run(c, v->profile.platform))
		platform = v->profile.platform;

	/* what is made is for this machine, and no world is for some platforms */
	if (strcmp(v->profile.platform, platform) != 0 || !world_debian_arch(platform)) {
		*ret = s->named;
		return 0;
	}

	const char *cuda =
		one->torch_cuda ? one->torch_cuda : toolkit_of(s->tables, r, v, c->arena);
	const struct world_wanted want = {platform, cuda, v->python, blas ? blas->world : NULL};
	if (s->named)
		return find_named(s, one, want, ret, e);
	if (world_choose(&(struct world_question){s->tables, r, &want, c->arena}, &w, e) < 0) {
		const char *near =
			e->kind == ERR_POLICY ? nearest_with_world(c, s->tables, one, want) : NULL;
		return near ? err_hint(e, "release %s has one: --release %s; or, %s", near, near,
				       arena_strdup(c->arena, e->hint))
			    : -1;
	}

	if (!w.name)
		return 0;
	*ret = loaded(s, w.name, platform);
	if ((!*ret && load_world(c, w.name, platform, ret, e) < 0) ||
	    world_check_tools(*ret, r, c->arena, e) < 0)
		return -1;
	return check_packages(s, one, *ret, e);
}

static const char *alike(const struct selection *one, struct arena *a)
{
	const struct variant *v = &one->variant;
	const struct profile *p = &v->profile;
	struct strlist gpus = {0};

	for (unsigned i = 0; i < p->targets_count; i++)
		strlist_addf(&gpus, a, "%s%s", p->targets[i].row->sm, p->targets[i].suffix);
	const char *cuda = v->cuda ? v->cuda : "", *python = v->python ? v->python : "";
	const char *blas = p->blas ? p->blas->name : "";
	const char *targets = v->cuda ? "" : strlist_join(&gpus, a, "+");
	const char *torch_cuda = one->torch_cuda ? one->torch_cuda : "";
	return arena_printf(a, "%s %s %s %d %s %s %s %s %s", v->package, one->release->name,
			    p->platform, (int)p->gpu, cuda, python, blas, targets, torch_cuda);
}

/* Its root is looked up once for all that are alike; a matrix has hundreds. */
static int find_group(struct root_groups *s, const struct selection *one,
		      struct cmd_root_group **ret, struct err *e)
{
	struct arena *a = s->c->arena;
	const char *words = alike(one, a);
	const struct world *world = NULL;
	struct err why = {0};
	size_t i = 0;

	while (i < s->count && !strlist_contains(&s->items[i].alike, words))
		i++;
	*ret = &s->items[i];
	if (i < s->count)
		return 0;
	if (find_world(s, one, &world, &why) < 0 && why.kind != ERR_POLICY)
		return err_take(e, &why);
	world = *why.msg ? NULL : world;
	for (i = 0; i < s->count &&
		    (s->items[i].world != world || strcmp(s->items[i].why.msg, why.msg) != 0);)
		i++;
	*ret = &s->items[i];
	if (i == s->count)
		s->items[s->count++] = (struct cmd_root_group){
			.chosen.items = arena_array(a, s->left, sizeof(struct selection)),
			.world = world,
			.why = why};
	strlist_ref(&(*ret)->alike, a, words);
	return 0;
}

/* Fills what begins with the context and `foreign` alone. */
static int group(struct root_groups *all, const struct selections *s, struct err *e)
{
	struct cmd_context *c = all->c;
	struct cmd_root_group *groups =
		arena_array(c->arena, s->count + 1, sizeof(struct cmd_root_group));

	all->items = groups;
	all->of = arena_array(c->arena, s->count, sizeof(struct cmd_root_group *));
	if (check_named(c, e) < 0 || load_named(c, e) < 0)
		return -1;
	if ((c->global->root && !named_world(c)) || cmd_sandbox(c) == SANDBOX_NONE || !s->count) {
		groups[0] = (struct cmd_root_group){*s, .world = c->world, .drift = c->drift,
						    .root = c->root};
		for (size_t i = 0; i < s->count; i++)
			all->of[i] = &groups[0];
		all->count = 1;
		return 0;
	}

	all->tables = c->tables;
	all->platform = machine_platform(c->arena);
	all->named = named_world(c) ? c->world : NULL;
	for (size_t i = 0; i < s->count; i++) {
		all->left = s->count - i;
		if (find_group(all, &s->items[i], &all->of[i], e) < 0)
			return -1;
		struct selections *chosen = &all->of[i]->chosen;
		chosen->items[chosen->count++] = s->items[i];
	}

	/* one that is made already stays so */
	for (size_t i = 0; i < all->count; i++)
		if (all->named && groups[i].world == all->named) {
			groups[i].drift = c->drift;
			groups[i].root = c->root;
		}
	return 0;
}

int cmd_root_groups(struct cmd_context *c, const struct selections *s, struct cmd_root_group **ret,
		    size_t *ret_count, struct err *e)
{
	struct root_groups all = {.c = c};

	if (group(&all, s, e) < 0)
		return -1;
	*ret = all.items;
	*ret_count = all.count;
	return 0;
}

int cmd_root_each(struct cmd_context *c, const struct selections *s,
		  struct cmd_root_group *const **ret, struct err *e)
{
	struct root_groups all = {.c = c, .foreign = true};

	if (group(&all, s, e) < 0)
		return -1;
	*ret = all.of;
	return 0;
}

void cmd_root_enter(struct cmd_context *c, const struct cmd_root_group *g)
{
	if (c->world == g->world && (!g->root || c->root == g->root))
		return;
	c->world = g->world;
	c->drift = g->drift;
	c->root = g->root;
	c->toolchain = NULL;
	c->toolkits = NULL;
}

int cmd_root_make(struct cmd_context *c, struct cmd_root_group *g, struct err *e)
{
	const struct root *root;

	if (g->why.kind != ERR_NONE)
		return err_take(e, &g->why);
	cmd_root_enter(c, g);
	if (cmd_root(c, &root, e) < 0)
		return -1;
	g->world = c->world;
	g->drift = c->drift;
	g->root = c->root;
	return 0;
}

int cmd_root_look(struct cmd_context *c, struct cmd_root_state *ret, struct err *e)
{
	struct store *store;
	const char *dir = NULL;

	if (!c->root && load_named(c, e) < 0)
		return -1;
	*ret = (struct cmd_root_state){.world = c->world, .made = true};
	if (!c->world || c->root)
		return 0;
	ret->made = false;
	if (cmd_store_look(c, &store, e) < 0 ||
	    (store &&
	     store_world_find(store, c->world->key, STORE_LOOK_FACTS, c->arena, &dir, e) < 0))
		return -1;
	ret->dir = dir;
	ret->made = dir != NULL;
	if (!ret->made)
		ret->missing =
			world_missing(store, c->world, c->arena, &ret->archives, &ret->unknown);
	return 0;
}

/* What making a world takes: the store, which must be writable, and the network. */
static int request_world(struct cmd_context *c, const struct world *w, struct world_request *ret,
			 struct err *e)
{
	*ret = (struct world_request){.run = c->run,
				      .world = w,
				      .no_drift = c->global->no_drift,
				      .look = c->look,
				      .jobs = c->global->jobs ? c->global->jobs
							      : machine_processors()};
	if (cmd_store(c, &ret->store, e) < 0 || cmd_open(c, OPEN_NETWORK, e) < 0)
		return -1;
	ret->profiles = c->profiles_dir;
	ret->fetch = *c->fetch;
	return 0;
}

/* Its lock is held until the process ends. */
static int ensure_world(struct cmd_context *c, const struct world_request *q,
			struct world_result *ret, struct err *e)
{
	if (world_ensure(q, c->arena, ret, e) < 0)
		return -1;
	if (!ret->hit)
		log_info(c->run->log, "created world %s in %.0f s", q->world->name, ret->seconds);
	return 0;
}

static int make_world(struct cmd_context *c, const char **ret, struct err *e)
{
	struct world_request q;
	struct world_result r = {0};
	struct cmd_root_state state;

	if (cmd_root_look(c, &state, e) < 0 || (!state.made && check_named(c, e) < 0))
		return -1;
	/* Only doctor needs this case: a build asks for a writable store. */
	if (state.made && store_is_read_only(c->store)) {
		*ret = state.dir;
		return 0;
	}

	if (request_world(c, c->world, &q, e) < 0)
		return -1;
	if (!state.made && !c->global->offline && cmd_needs_space(c, c->world, e) < 0)
		return -1;
	if (!state.made)
		log_info(c->run->log, "world %s", cmd_world_text(&state, c->arena));
	if (!state.made && cmd_emulation(c, c->world->platform, c->world, &q.emulation, e) < 0)
		return -1;
	if (ensure_world(c, &q, &r, e) < 0)
		return -1;
	for (size_t i = 0; i < r.drift.count; i++)
		log_warn(c->run->log, "drift: not the pinned package: %s", r.drift.items[i]);
	c->drift = r.drift;
	c->world = r.world;
	*ret = r.dir;
	return 0;
}

/* What this machine can run beside its own platform's programs, and what that takes. */

/* What runs programs for another platform than this machine's. */
struct cross {
	const char *platform;
	const struct world *base; /* that the programs are in; NULL: any */
	const struct world
		*world; /* with the emulator; NULL: they run as they are, or not at all */
	bool layer;     /* its compilers are laid over `base` */
};

static int find_cross(struct cmd_context *c, struct cross *x, const char *suite, struct err *e)
{
	if (!c->cross) {
		struct strlist *names = arena_alloc(c->arena, sizeof(*names));
		if (world_cross_names(c->profiles_dir, c->arena, names, e) < 0)
			return -1;
		c->cross = names;
	}
	const struct cross_query q = {.profiles = c->profiles_dir,
				      .names = c->cross,
				      .target = x->platform,
				      .host = machine_platform(c->arena),
				      .suite = suite};
	return world_cross_find(&q, c->arena, &x->world, e);
}

bool cmd_can_run(struct cmd_context *c, const char *platform)
{
	struct cross x = {.platform = platform};

	if (strcmp(platform, machine_platform(c->arena)) == 0)
		return true;
	if (strlist_contains(&c->emulated, platform))
		return true;
	if (cmd_sandbox(c) == SANDBOX_NONE || find_cross(c, &x, NULL, ERR_IGNORED) < 0 || !x.world)
		return false;
	strlist_add(&c->emulated, c->arena, platform);
	return true;
}

/* The tree of a cross part in the store, which is made where it is missing. */
static int ensure_cross(struct cmd_context *c, const struct cross *x, const char **ret,
			struct err *e)
{
	const struct world *cross = x->world;
	struct world_request q;
	struct world_result r = {0};
	struct store *store;
	const char *dir = NULL;

	if (cmd_store_look(c, &store, e) < 0)
		return -1;
	if (store && store_is_read_only(store)) {
		if (store_world_find(store, cross->key, STORE_LOOK_FACTS, c->arena, &dir, e) < 0)
			return -1;
		*ret = dir;
		if (dir)
			return 0;
	}

	if (request_world(c, cross, &q, e) < 0 || ensure_world(c, &q, &r, e) < 0)
		return -1;
	*ret = r.dir;
	return r.world == cross || !x->layer ? 0 : world_cross_fits(r.world, x->base, e);
}

/* For a platform and a base. */
static int choose_cross(struct cmd_context *c, struct cross *x, struct err *e)
{
	if (strcmp(x->platform, machine_platform(c->arena)) == 0)
		return 0;
	if (find_cross(c, x, x->base ? x->base->pieces[0].part->suite : NULL, e) < 0)
		return -1;
	/* with another suite's the compilers are emulated as well */
	x->layer = x->world && x->base;
	if (x->layer)
		return world_cross_with(c->profiles_dir, x->world, x->base, c->arena, &x->world, e);
	return x->base ? find_cross(c, x, NULL, e) : 0;
}

/* What was found for a platform and a world. */
struct cmd_slower {
	const char *platform;
	const struct world *world;
	const struct world_slower *slower; /* NULL: native, or nothing is known */
	struct cmd_slower *next;
};

const struct world_slower *cmd_slower(struct cmd_context *c, const char *platform,
				      const struct world *world)
{
	struct cross x = {.platform = platform, .base = world};
	struct cmd_slower *s = c->slower;

	while (s && (strcmp(s->platform, platform) != 0 || s->world != world))
		s = s->next;
	if (s)
		return s->slower;
	const bool found = cmd_can_run(c, platform) && choose_cross(c, &x, ERR_IGNORED) == 0;
	s = arena_alloc(c->arena, sizeof(*s));
	*s = (struct cmd_slower){.platform = arena_strdup(c->arena, platform),
				 .world = world,
				 .slower = found && x.world ? world_cross_slower(x.world, x.layer)
							    : NULL,
				 .next = c->slower};
	c->slower = s;
	return s->slower;
}

int cmd_emulation(struct cmd_context *c, const char *platform, const struct world *world,
		  const struct emulation **ret, struct err *e)
{
	struct cross x = {.platform = platform, .base = world};
	const char *dir;

	*ret = NULL;
	if (choose_cross(c, &x, e) < 0)
		return -1;
	if (!x.world)
		return 0;
	if (emulation_check(platform, e) < 0)
		return -1;
	if ((x.layer && world_cross_fits(x.world, world, e) < 0) ||
	    ensure_cross(c, &x, &dir, e) < 0)
		return -1;
	const struct world_part *p = x.world->pieces[0].part;
	struct emulation *m = arena_alloc(c->arena, sizeof(*m));
	const struct world_slower *slower = world_cross_slower(x.world, x.layer),
				  *programs = world_cross_slower(x.world, false);
	*m = (struct emulation){
		.percent = slower ? slower->percent : 0,
		.seconds = slower ? slower->seconds : 0,
		.programs = programs ? programs->percent : 0,
		.platform = arena_strdup(c->arena, platform),
		.program = path_join(c->arena, dir, p->emulator),
		.layer = x.layer ? path_join(c->arena, dir, p->prefix) : NULL,
		.cpu = p->cpu,
		.name = arena_printf(c->arena, "qemu %s", world_cross_version(x.world, c->arena))};
	*ret = m;
	return 0;
}

int cmd_root(struct cmd_context *c, const struct root **ret, struct err *e)
{
	const char *dir = c->global->root ? path_from_here(c->arena, c->global->root) : NULL;

	if (!c->root) {
		struct root *root = arena_alloc(c->arena, sizeof(*root));
		if (cmd_declared(c, OPEN_ROOT, e) < 0 || load_named(c, e) < 0)
			return -1;
		if ((c->world && make_world(c, &dir, e) < 0) ||
		    root_open(dir, c->arena, root, e) < 0 ||
		    cmd_emulation(c, root->platform, c->world, &root->emulation, e) < 0)
			return -1;
		c->root = root;
	}

	*ret = c->root;
	return 0;
}

/* The world that a build of `q` with this Python (NULL: any) works in. */
static int choose_for(struct cmd_context *c, const struct cmd_python *q, const char *python,
		      struct world_choice *ret, struct err *e)
{
	const struct tables *t = c->tables;
	const char *newest = q->release->pythons[q->release->pythons_count - 1];
	struct world_wanted want = {.platform = q->platform, .python = python};
	if (q->profile) {
		const struct variant v = {.package = q->packages.count ? q->packages.items[0]
								       : PACKAGE_TORCH,
					  .python = python ? python : newest,
					  .cuda = q->cuda,
					  .profile = *q->profile};
		want.cuda = toolkit_of(t, q->release, &v, c->arena);
	}

	return world_choose(&(struct world_question){t, q->release, &want, c->arena}, ret, e);
}

/* Whether the locked lists have what the builds need of a Python that brings no packages: a part of
 * "debian13+python3_12+cuda13_0", not that of the base. */
static bool is_covered(struct cmd_context *c, const struct cmd_python *q, const char *world)
{
	const struct strlist torch = {.items = (const char *[]){PACKAGE_TORCH}, .count = 1};
	const struct strlist *packages = q->packages.count ? &q->packages : &torch;
	const struct world_part *base = NULL, *part = NULL, *p;
	struct strlist names = {0};

	strlist_split(&names, c->arena, world, "+");
	for (size_t i = 0; i < names.count; i++) {
		if (i && strncmp(names.items[i], "python", 6) != 0)
			continue;
		if (world_part_load(c->tables->dir, names.items[i], c->arena, &p, ERR_IGNORED) < 0)
			return false;
		base = i ? base : p;
		part = i ? p : part;
	}

	for (size_t i = 0; part && i < packages->count; i++) {
		const struct covers_request covers = {.tables = c->tables,
						      .release = q->release,
						      .package = packages->items[i],
						      .part = part->part,
						      .python = part->python,
						      .own = base->python};
		if (covers_check(&covers, c->arena, ERR_IGNORED) < 0)
			return false;
	}

	return true;
}

enum cmd_root_answer cmd_root_serves(struct cmd_context *c, const struct cmd_python *q,
				     const char *python)
{
	struct world_choice w = {0};

	if (c->global->root || cmd_sandbox(c) == SANDBOX_NONE)
		return CMD_ROOT_OWN;
	if (choose_for(c, q, python, &w, ERR_IGNORED) < 0)
		return CMD_ROOT_LACKS;
	if (!w.name)
		return CMD_ROOT_OWN;
	const bool part = strstr(w.name, "+python") != NULL;
	return !part || is_covered(c, q, w.name) ? CMD_ROOT_HAS : CMD_ROOT_LACKS;
}

const char *cmd_root_python(struct cmd_context *c)
{
	const struct root *root;
	return cmd_root(c, &root, ERR_IGNORED) == 0 ? root_python(root, c->arena) : NULL;
}

char *cmd_world_text(const struct cmd_root_state *r, struct arena *a)
{
	if (r->made)
		return arena_printf(a, "%s, made", r->world->name);
	return arena_printf(a, "%s, %.1f MB to download", r->world->name, (double)r->missing / 1e6);
}
