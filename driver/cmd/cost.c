#include "cmd/select.h"

#include "core/plan/torch_fits.h"
#include "step/pipeline/make_world.h"

/* What is unpacked from a byte of packages, at most: debian13's 384 MB become 1,641 MB. */
#define WORLD_UNPACKED 5
/* Testing a finished torch needs more than the compilers of a small package. */
#define LEAST_BYTES (UINT64_C(4) << 30)
/* Another machine, a disk that is busy, sources that come slowly; and what is the same for all. */
#define TIME_FACTOR 3
#define TIME_MORE 3600

/* An estimate, which plans of one package and release have in common. */
struct cmd_costs {
	struct cost cost;
	unsigned gpus, percent, jobs;
	struct cmd_costs *next;
};

static bool same_cost(const struct cmd_costs *k, const struct cost_request *q)
{
	if (strcmp(k->cost.package, q->package) != 0 || strcmp(k->cost.release, q->release) != 0)
		return false;
	return k->gpus == q->gpus && k->percent == q->percent;
}

/* The store and the tables' directory are the command's. */
static const struct cmd_costs *count_cost(struct cmd_context *c, const struct cost_request *asked)
{
	struct cost_request q = *asked;
	struct cmd_costs *k = c->costs;
	struct store *store;

	while (k && !same_cost(k, &q))
		k = k->next;
	if (k)
		return k;
	q.store = cmd_store_look(c, &store, ERR_IGNORED) < 0 ? NULL : store;
	q.profiles = c->tables->dir;
	q.package = arena_strdup(c->arena, q.package);
	q.release = arena_strdup(c->arena, q.release);
	k = arena_alloc(c->arena, sizeof(*k));
	*k = (struct cmd_costs){.cost = cost_of(&q, c->run, c->arena),
				.gpus = q.gpus,
				.percent = q.percent,
				.next = c->costs};
	k->jobs = cost_jobs(&k->cost, c->global->jobs);
	c->costs = k;
	return k;
}

static struct cost_request request_of(struct cmd_context *c, const struct plan *p,
				      const struct world *world)
{
	const struct world_slower *s = cmd_slower(c, p->platform, world);

	return (struct cost_request){.package = p->package,
				     .release = p->release,
				     .row = p->package_row,
				     .gpus = p->cuda ? (unsigned)p->gpu.count : 0,
				     .percent = s ? s->percent : 0,
				     .seconds = s ? s->seconds : 0};
}

int cmd_cost(struct cmd_context *c, const struct plan *p, const struct cmd_root_state *root,
	     const char *torch, struct arena *a, struct cmd_cost *ret, struct err *e)
{
	struct store *s;

	*ret = (struct cmd_cost){.torch = !torch && !package_is_torch(p->package)};
	if (cmd_store_look(c, &s, e) < 0)
		return -1;
	const struct cost_request q = request_of(c, p, root->world);
	const struct cmd_costs *k = count_cost(c, &q);
	ret->cost = k->cost;
	ret->jobs = k->jobs;
	ret->build_bytes = preflight_build_bytes(p->release_row, p->package);
	if (!root->made && root->world)
		ret->world_bytes = (double)(root->missing + root->world->download * WORLD_UNPACKED);
	ret->downloads = (struct cost_downloads){
		.world = root->missing, .of_unknown = root->unknown, .archives = root->archives};
	cost_sources(s, p->package_row, a, &ret->downloads);
	struct torch_source official;
	const int rc = torch_official_of(torch, c->tables, p, a, &official, e);
	if (rc > 0 && !fetch_has(s, official.official->sha256))
		ret->downloads.torch = official.official->size;
	return rc < 0 ? -1 : 0;
}

char *cmd_cost_time(const struct cmd_cost *k, struct arena *a)
{
	return arena_printf(a, "%s%s", cost_text(&k->cost, k->jobs, a),
			    k->torch ? "; without its torch" : "");
}

#define GIB (1024.0 * 1024 * 1024)

char *cmd_cost_disk(const struct cmd_context *c, const struct cmd_cost *k, struct arena *a)
{
	const double need = k->build_bytes + k->world_bytes;
	uint64_t have;
	const char *dir, *parts = "", *lack = "";

	if (k->world_bytes > 0)
		parts = arena_printf(a, ", %.1f of it for the world", k->world_bytes / GIB);
	if (cmd_cache_dir(c, &dir, ERR_IGNORED) == 0 &&
	    fs_free_bytes(dir, &have, ERR_IGNORED) == 0 && (double)have < need)
		lack = arena_printf(a, "; too little is free in '%s': %.1f GiB", dir,
				    (double)have / GIB);
	return arena_printf(a, "%.1f GiB%s%s%s", need / GIB, parts,
			    k->torch ? "; without its torch" : "", lack);
}

char *cmd_cost_size(const struct cmd_context *c, const struct plan *p, const struct cmd_cost *k,
		    struct arena *a)
{
	struct official all;
	const struct official_wheel *w;
	uint64_t official = 0;

	/* The index has one kind of wheel for a platform: of another it says nothing. */
	if (official_read(c->tables->dir, p->release_row->base, a, &all, ERR_IGNORED) == 0 &&
	    official_find(&all, p->distribution, p->python, p->platform, p->cuda ? p->cuda : "-", a,
			  &w, ERR_IGNORED) == 0)
		official = w->size;
	return cost_size_text(&k->cost, official, a);
}

/* Whether nothing was shown about it before. */
static bool count_once(struct cmd_context *c, struct cmd_total *t, const char *what)
{
	if (strlist_contains(&t->counted, what))
		return false;
	strlist_add(&t->counted, c->arena, what);
	return true;
}

/* C++ code depends on the instruction set alone, GPU code on the targets: core/ci/ci.c. */
static void add_units(struct cmd_context *c, const struct plan *p, const struct cmd_cost *k,
		      const struct world *world, struct cmd_total *t)
{
	AUTO_ARENA struct arena a = {0};
	struct cost_request q = request_of(c, p, world);

	q.gpus = 0;
	const double host = count_cost(c, &q)->cost.units;
	const char *of = arena_printf(&a, "%s %s %s %s", p->package, p->release, p->platform,
				      p->cuda ? p->cuda : "");
	if (count_once(c, t, arena_printf(&a, "units %s %s", of, p->isa ? p->isa : "")))
		t->sum.cost.units += host;
	if (p->cuda &&
	    count_once(c, t, arena_printf(&a, "units %s %s", of, strlist_join(&p->gpu, &a, "+"))))
		t->sum.cost.units += k->cost.units - host;
}

void cmd_total_add(struct cmd_context *c, const struct plan *p, const struct cmd_cost *k,
		   const struct cmd_root_state *root, struct cmd_total *t)
{
	AUTO_ARENA struct arena a = {0};
	struct cmd_cost *sum = &t->sum;

	if (!sum->cost.package) {
		sum->cost = k->cost;
		sum->cost.units = sum->cost.after = 0;
		sum->cost.seconds = 0;
		sum->cost.gpu = COST_GPU_NONE;
		sum->jobs = k->jobs;
	}

	/* The sum of native and emulated builds has no factor. */
	if (sum->cost.percent != k->cost.percent)
		sum->cost.percent = 0;
	const bool counted = k->cost.gpu != COST_GPU_UNKNOWN;
	sum->cost.gpu = counted && k->cost.gpu > sum->cost.gpu ? k->cost.gpu : sum->cost.gpu;
	sum->cost.after += k->cost.after;
	sum->cost.seconds += k->cost.seconds;
	t->unknown = t->unknown || !counted || k->cost.units <= 0;
	add_units(c, p, k, root->world, t);
	sum->build_bytes = k->build_bytes > sum->build_bytes ? k->build_bytes : sum->build_bytes;
	if (root->world &&
	    count_once(c, t,
		       arena_printf(&a, "world %s %s", root->world->name, root->world->platform))) {
		sum->world_bytes += k->world_bytes;
		sum->downloads.world += k->downloads.world;
		sum->downloads.of_unknown += root->unknown;
	}

	if (count_once(c, t, arena_printf(&a, "sources %s %s", p->package, p->release))) {
		sum->downloads.sources += k->downloads.sources;
		sum->downloads.of_unknown += k->downloads.of_unknown - root->unknown;
	}

	if (k->downloads.torch &&
	    count_once(c, t, arena_printf(&a, "torch %s %s", p->torch, p->torch_version)))
		sum->downloads.torch += k->downloads.torch;
}

/* What a job of a matrix may use on a cluster: processors, the memory that its
 * compilers need at their peak, and a time after which something is wrong. */
struct job_cost {
	const struct ci_job *job;
	uint64_t memory;
	double seconds; /* of one processor, from an empty compiler cache */
	double own;     /* of those what no job of an earlier wave compiles */
	double after;
	double disk;  /* of the builds, without a world */
	bool unknown; /* no time is known of a part */
	bool rough;   /* that of a part is a guess */
};

static unsigned targets_of(const struct ci_job *j)
{
	unsigned n = 1;

	for (const char *p = j->gpu; *p; p++)
		n += *p == '+';
	return n;
}

static int add_package(struct cmd_context *c, const char *package, struct job_cost *sum,
		       struct err *e)
{
	const struct ci_job *j = sum->job;
	const struct release_row *release;

	if (tables_need_release(c->tables, j->release, &release, e) < 0)
		return -1;
	/* Runners for another platform are machines of it: nothing is emulated. */
	struct cost_request q = {.package = package,
				 .release = j->release,
				 .row = tables_package(release, package),
				 .gpus = *j->cuda ? targets_of(j) : 0};
	const struct cost k = count_cost(c, &q)->cost;
	q.gpus = 0;
	const struct cost host = count_cost(c, &q)->cost;
	uint64_t most = k.memory.compile * j->cpus;
	most = k.memory.heavy > most ? k.memory.heavy : most;
	most = k.memory.link > most ? k.memory.link : most;
	sum->memory = most > sum->memory ? most : sum->memory;
	sum->seconds += k.units;
	sum->own += (j->makes_cpu ? host.units : 0) + (j->makes_gpu ? k.units - host.units : 0);
	sum->after += k.after;
	sum->disk += preflight_build_bytes(release, package);
	sum->rough = sum->rough || cost_guessed(&k);
	/* A limit ends a job, so no rough estimate sets one: most of the time is nvcc's. */
	sum->unknown = sum->unknown || k.units <= 0 || k.gpu == COST_GPU_GUESSED ||
		       k.gpu == COST_GPU_UNKNOWN;
	return 0;
}

/* A companion alone builds its torch first, unless one is named. */
static int add_packages(struct cmd_context *c, bool torch_named, struct job_cost *sum,
			struct err *e)
{
	const struct ci_job *j = sum->job;
	bool torch = torch_named;

	for (size_t i = 0; i < j->variants.count; i++) {
		const char *name = j->variants.items[i];
		const char *package = arena_strndup(c->arena, name, strcspn(name, "-"));
		torch = torch || package_is_torch(package);
		if (add_package(c, package, sum, e) < 0)
			return -1;
	}

	return torch ? 0 : add_package(c, PACKAGE_TORCH, sum, e);
}

/* The jobs of a matrix, for a service. */
struct matrix_jobs {
	struct cmd_context *c;
	const struct ci_plan *plan;
	const char *format;
	bool torch_named;
};

static int job_cost(const struct matrix_jobs *m, struct ci_job *j, struct err *e)
{
	const uint64_t mib = UINT64_C(1) << 20;
	const struct ci_tables *t = m->plan->tables;
	const struct ci_limits limits = ci_limits(t, m->format, j->runner);
	const uint64_t most = strtoull(ci_format(t, m->format)->minutes, NULL, 10) * 60;
	struct job_cost sum = {.job = j};

	j->cpus = m->c->global->jobs ? m->c->global->jobs : limits.cpus;
	if (add_packages(m->c, m->torch_named, &sum, e) < 0)
		return -1;
	/* jobs_usable reserves at most an eighth for other programs than compilers. */
	j->memory = sum.memory + sum.memory / 7;
	j->memory = j->memory > LEAST_BYTES ? (j->memory + mib - 1) / mib * mib : LEAST_BYTES;
	if (j->shards) {
		sum.seconds /= j->shards;
		sum.own /= j->shards;
	}

	if (*j->shard && !j->shards) /* the last finds what its shards compile */
		sum.own = 0;
	j->estimate = sum.seconds > 0 ? sum.own / j->cpus + sum.after : 0;
	j->rough = sum.rough;
	j->disk = j->world + (uint64_t)sum.disk;
	double seconds = TIME_FACTOR * (sum.seconds / j->cpus + sum.after) + TIME_MORE;
	j->seconds = sum.unknown || seconds > (double)most ? most : (uint64_t)seconds;
	/* A map knows its cluster. For a service it says what its runners have. */
	if (limits.memory)
		j->memory = limits.memory;
	if (limits.timed && !ci_is_service(m->format))
		j->seconds = limits.minutes * UINT64_C(60);
	return 0;
}

int matrix_cost(struct cmd_context *c, const struct ci_plan *p, const char *format,
		bool torch_named, struct err *e)
{
	const struct ci_format_row *f = ci_format(p->tables, format);

	if (!f || !*f->cpus)
		return err_set(e, ERR_CONFIG, "ci.yaml has no row '%s' with processors", format);
	const struct matrix_jobs m = {
		.c = c, .plan = p, .format = format, .torch_named = torch_named};
	for (size_t i = 0; i < p->count; i++)
		if (job_cost(&m, &p->jobs[i], e) < 0)
			return -1;
	return 0;
}

uint64_t matrix_world_bytes(const struct world *w)
{
	return w ? w->download * (1 + WORLD_UNPACKED) : 0;
}

/* ---- what it needs ---- */

int cmd_needs_request(struct cmd_context *c, const struct release_row *release,
		      const struct plan *plan, struct preflight_request *ret, struct err *e)
{
	struct cmd_root_state state;
	struct root *host = arena_alloc(c->arena, sizeof(*host));
	struct preflight_request q = {.release = release,
				      .plan = plan,
				      .root = host,
				      .kind = cmd_sandbox(c),
				      .jobs = c->global->jobs,
				      .offline = c->global->offline,
				      .cuda_home = cmd_select_cuda_home(c),
				      .tables = c->tables};

	if (cmd_cache_dir(c, &q.store_dir, e) < 0 || cmd_open(c, OPEN_OUTPUT, e) < 0 ||
	    cmd_root_look(c, &state, e) < 0)
		return -1;
	q.out_dir = c->out_dir;
	q.world = state.world;
	if (!state.made) {
		q.not_made = cmd_world_text(&state, c->arena);
		q.world_bytes = state.missing + state.world->download * WORLD_UNPACKED;
	}

	if ((state.made ? cmd_root(c, &q.root, e) : root_open(NULL, c->arena, host, e)) < 0)
		return -1;
	*ret = q;
	return 0;
}

bool cmd_has_others(const struct cmd_context *c)
{
	const char *const *dirs;
	return c->store && (store_has_remote(c->store) || store_fallbacks(c->store, &dirs));
}

int cmd_needs_reach(struct cmd_context *c, struct preflight *d, struct err *e)
{
	struct store *s;

	if (cmd_open(c, OPEN_NETWORK, e) < 0 || cmd_store_look(c, &s, e) < 0)
		return -1;
	return pipeline_reach(d, s, c->fetch,
			      ((const struct cmd_select_base *)c->options)->select.plan.torch,
			      cmd_has_others(c), e);
}

static int reach(void *user, struct preflight *d, struct err *e)
{
	return cmd_needs_reach(user, d, e);
}

int cmd_needs_before(struct cmd_context *c, const struct cmd_root_group *g, bool matrix,
		     struct err *e)
{
	struct preflight_request q;
	struct preflight *d = arena_alloc(c->arena, sizeof(*d));

	cmd_root_enter(c, g);
	for (size_t i = 0; i < g->chosen.count; i++) {
		const struct selection *s = &g->chosen.items[i];
		const struct plan *p;
		if (cmd_plan(c, s, false, &p, e) < 0) {
			if (!matrix)
				return -1;
			err_clear(e);
			continue;
		}

		if (cmd_needs_request(c, s->release, p, &q, e) < 0)
			return -1;
		const char *torch = cmd_selected(c)->plan.torch;
		const struct torch_asked asked = {.plan = p, .wheel = torch};
		if (q.not_made && torch && fs_is_file(TRUSTED, torch) &&
		    torch_fits(&asked, TORCH_GPUS, c->arena, e) < 0)
			return -1;
		/* What is there already is looked at by the
		 * build, if the store has not got the wheel. */
		q.stages = PREFLIGHT_TABLES;
		/* offline it is the world that is missing, above all */
		if (q.not_made && !q.offline)
			q.stages |= PREFLIGHT_NETWORK | (cmd_has_others(c) ? 0 : PREFLIGHT_MACHINE);
		q.reach = reach;
		q.user = c;
		if (preflight_run(d, &q, c->run, c->arena, e) < 0 || preflight_verdict(d, e) < 0)
			return -1;
	}

	return 0;
}

int cmd_needs_network(struct cmd_context *c, const struct plan *p, struct err *e)
{
	struct preflight_request q;
	struct preflight *d = arena_alloc(c->arena, sizeof(*d));

	if (cmd_needs_request(c, p->release_row, p, &q, e) < 0)
		return -1;
	q.stages = PREFLIGHT_NETWORK;
	q.reach = reach;
	q.user = c;
	return preflight_run(d, &q, c->run, c->arena, e) < 0 ? -1 : preflight_verdict(d, e);
}

int cmd_needs_space(struct cmd_context *c, const struct world *w, struct err *e)
{
	struct root host;
	struct store *s;
	struct strlist archives = {0};
	unsigned unknown;
	struct preflight *d = arena_alloc(c->arena, sizeof(*d));
	struct preflight_request q = {.world = w, .root = &host};

	if (cmd_store_look(c, &s, e) < 0 || cmd_cache_dir(c, &q.store_dir, e) < 0 ||
	    root_open(NULL, c->arena, &host, e) < 0)
		return -1;
	q.world_bytes =
		world_missing(s, w, c->arena, &archives, &unknown) + w->download * WORLD_UNPACKED;
	*d = (struct preflight){.q = &q, .run = c->run, .arena = c->arena};
	return preflight_check(d, "places", e) < 0 ? -1 : preflight_verdict(d, e);
}

int cmd_needs_plan(struct cmd_context *c, const struct plan *p, const struct world *w,
		   struct err *e)
{
	struct preflight_request q = {.tables = c->tables, .plan = p, .world = w};
	struct preflight *d = arena_alloc(c->arena, sizeof(*d));

	*d = (struct preflight){.q = &q, .run = c->run, .arena = c->arena};
	return preflight_check(d, "world-torch", e) < 0 ? -1 : preflight_verdict(d, e);
}
