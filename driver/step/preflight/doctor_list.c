#include "core/world/world.h"
#include "step/preflight/preflight.h"

/* ---- the rows that need no more than the request ---- */

static int say_world(struct preflight *d, struct err *e)
{
	(void)e;
	if (d->q->not_made)
		preflight_ok(d, "world", "%s; compilers, Python and toolkit are in it",
			     d->q->not_made);
	return 0;
}

static int sources(struct preflight *d, struct err *e)
{
	struct err why = {0};
	const struct plan *p = d->q->plan;

	if (p && d->q->whole && p->advisories.count)
		preflight_warn(d, "advisories",
			       *p->advised ? arena_printf(d->arena, "release %s has none of them",
							  p->advised)
					   : "",
			       "%s %s has known vulnerabilities: %s", p->distribution, p->version,
			       strlist_join(&p->advisories, d->arena, ", "));
	return !d->q->plan || plan_unproven(d->q->plan, &why) == 0
		       ? 0
		       : preflight_err(d, "source", &why, e);
}

static bool world_has(const struct world *w, const char *package)
{
	for (size_t i = 0; i < w->count; i++)
		for (size_t k = 0; k < w->pieces[i].lock.count; k++)
			if (strcmp(w->pieces[i].lock.entries[k].name, package) == 0)
				return true;
	return false;
}

/* The newest release with the package whose world has a torch,
 * such as Debian's; `ret_python`: of that world. NULL: none. */
static const struct release_row *release_with_torch(struct preflight *d, const char **ret_python)
{
	const struct tables *t = d->q->tables;
	const struct plan *p = d->q->plan;

	for (unsigned i = t->releases_count; i-- > 0;) {
		const struct release_row *r = &t->releases[i];
		const struct world_wanted want = {.platform = p->platform};
		const bool builds = plan_is_extension(p) || tables_package(r, p->package);
		struct world_choice choice = {0};
		const struct world *w;
		if (!builds ||
		    world_choose(&(struct world_question){t, r, &want, d->arena}, &choice,
				 ERR_IGNORED) < 0 ||
		    !choice.name ||
		    world_load(t->dir, choice.name, p->platform, d->arena, &w, ERR_IGNORED) < 0)
			continue;
		*ret_python = choice.python;
		if (world_has(w, "python3-torch"))
			return r;
	}

	return NULL;
}

/* The locks of a world say whether it has a torch, and for a GPU. */
static int world_torch(struct preflight *d, struct err *e)
{
	const struct world *w = d->q->world;
	const struct plan *p = d->q->plan;

	(void)e;
	if (!w || !p || strcmp(p->torch, "root") != 0)
		return 0;
	if (world_has(w, "python3-torch") && p->gpu.count && !world_has(w, "python3-torch-cuda"))
		preflight_fail(d, ERR_POLICY, "torch",
			       "name a torch for the GPU with --torch WHEEL or official, or a "
			       "profile of the CPU",
			       "the torch of the world '%s' has no CUDA", w->name);
	if (world_has(w, "python3-torch"))
		return 0;
	const char *python, *other = "leave --torch root out, and its torch is built first; or "
				     "name a finished one with "
				     "--torch WHEEL";
	const struct release_row *r = p->gpu.count ? NULL : release_with_torch(d, &python);
	if (r)
		other = arena_printf(d->arena,
				     "use --release %s, whose world has one, for Python %s; or %s",
				     r->name, python, other);
	preflight_fail(d, ERR_POLICY, "torch", other, "the world '%s' has no torch", w->name);
	return 0;
}

static int reach(struct preflight *d, struct err *e)
{
	/* A build says itself what --offline forbids. */
	return d->q->reach && (d->q->whole || !d->q->offline) ? d->q->reach(d->q->user, d, e) : 0;
}

static int trial(struct preflight *d, struct err *e)
{
	return d->q->trial && !preflight_failures(d) ? d->q->trial(d->q->user, d, e) : 0;
}

/* ---- the table ---- */

enum {
	CAPTURED =
		1,  /* also where the root's torch is captured as it is, and nothing is compiled */
	RUNS = 2,   /* runs compilers: not after a failure, but for doctor, and not without tools */
	TRIES = 4,  /* not where it passed before, on the same of everything */
	UNMADE = 8, /* also of a world that is not made yet */
};

/* What a build needs, in the order in which it is looked for. */
static const struct need {
	const char *name;
	enum preflight_stage stage;
	unsigned when;
	int (*test)(struct preflight *d, struct err *e);
} needs[] = {
	{"platform", PREFLIGHT_TABLES, UNMADE, preflight_platform},
	{"sources", PREFLIGHT_TABLES, UNMADE, sources},
	{"world-torch", PREFLIGHT_TABLES, UNMADE, world_torch},
	{"sandbox", PREFLIGHT_MACHINE, CAPTURED | UNMADE, preflight_sandbox},
	{"emulation", PREFLIGHT_MACHINE, CAPTURED, preflight_emulation},
	{"cpu", PREFLIGHT_MACHINE, UNMADE, preflight_cpu},
	{"torch-fits", PREFLIGHT_MACHINE, UNMADE, preflight_torch_fits},
	{"places", PREFLIGHT_MACHINE, UNMADE, preflight_places},
	{"memory", PREFLIGHT_MACHINE, UNMADE, preflight_memory},
	{"decoder", PREFLIGHT_MACHINE, CAPTURED | UNMADE, preflight_decoder},
	{"world", PREFLIGHT_MACHINE, CAPTURED | UNMADE, say_world},
	{"programs", PREFLIGHT_MACHINE, UNMADE, preflight_programs},
	{"network", PREFLIGHT_NETWORK, CAPTURED | UNMADE, reach},
	{"tools", PREFLIGHT_ROOT, 0, preflight_tools},
	{"files", PREFLIGHT_ROOT, 0, preflight_files},
	{"python", PREFLIGHT_ROOT, CAPTURED, preflight_python},
	{"flags", PREFLIGHT_ROOT, RUNS | TRIES, preflight_flags},
	{"blas", PREFLIGHT_ROOT, RUNS | TRIES, preflight_blas},
	{"torch", PREFLIGHT_ROOT, RUNS, preflight_torch},
	{"cuda", PREFLIGHT_ROOT, RUNS, preflight_cuda},
	{"trial", PREFLIGHT_ROOT, RUNS | TRIES, trial},
};

static bool is_captured(const struct preflight *d)
{
	return d->q->plan && d->q->plan->captured;
}

static bool applies(const struct preflight *d, const struct need *n)
{
	const struct preflight_request *q = d->q;

	if (!(q->stages & n->stage) || (d->no_root && n->stage == PREFLIGHT_ROOT))
		return false;
	if (q->not_made && !(n->when & UNMADE))
		return false;
	if (is_captured(d) && !(n->when & CAPTURED))
		return false;
	if (q->tried && (n->when & TRIES))
		return false;
	return !(n->when & RUNS) || (d->toolchain && (q->whole || !preflight_failures(d)));
}

int preflight_run(struct preflight *d, const struct preflight_request *q, const struct run *run,
		  struct arena *a, struct err *e)
{
	int rc = 0;

	*d = (struct preflight){.q = q, .run = run, .arena = a, .toolchain = q->toolchain};
	for (size_t i = 0; i < ARRAY_LEN(needs) && !d->stop && rc == 0; i++) {
		if (i && needs[i].stage != needs[i - 1].stage && !q->whole && preflight_failures(d))
			break;
		if (!applies(d, &needs[i]))
			continue;
		log_wait(run->log, "looking at: %s", needs[i].name);
		rc = needs[i].test(d, e);
	}

	log_status_end(run->log);
	return rc;
}

int preflight_check(struct preflight *d, const char *row, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(needs); i++)
		if (strcmp(needs[i].name, row) == 0)
			return needs[i].test(d, e);
	return err_set(e, ERR_CONFIG, "no row '%s'", row);
}

/* ---- lines ---- */

void preflight_add(struct preflight *d, struct preflight_line line, const char *fmt, ...)
{
	const char *package = line.package;
	va_list args;

	va_start(args, fmt);
	line.text = arena_vprintf(d->arena, fmt, args);
	va_end(args);
	bool in_root = package && !line.on_host;
	if (!package) {
		line.package = "";
	} else {
		line.on_host = line.on_host || d->q->root->host;
		line.fix = *package
				   ? root_install(d->q->root, line.on_host, package, d->arena)
				   : arena_printf(d->arena, "install it %s",
						  line.on_host ? "on this machine" : "in the root");
	}

	d->lines[d->count < ARRAY_LEN(d->lines) ? d->count++ : ARRAY_LEN(d->lines) - 1] = line;
	if (in_root)
		preflight_fix_world(d);
}

void preflight_fix_world(struct preflight *d)
{
	const char *fix = root_world_fix(d->q->root, d->arena);

	if (fix) {
		d->lines[d->count - 1].package = "";
		d->lines[d->count - 1].fix = fix;
	}
}

int preflight_err(struct preflight *d, const char *name, const struct err *why, struct err *e)
{
	if (why->kind == ERR_INTERRUPTED) {
		*e = *why;
		return -1;
	}

	preflight_fail(d, why->kind, name, arena_strdup(d->arena, why->hint), "%s", why->msg);
	return 0;
}

/* ---- the verdict ---- */

size_t preflight_failures(const struct preflight *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->count; i++)
		n += d->lines[i].level == PREFLIGHT_FAILURE;
	return n;
}

/* As much as an error has room for: a list that is cut without a word looks complete. */
static const char *fitting(const struct preflight *d, const struct strlist *all,
			   const char *between, size_t room)
{
	static const char rest[] = "and %zu more: 'ptbuild doctor' with the same options lists all";
	struct strlist some = {0};
	size_t i = 0, len = sizeof(rest) + 16;

	for (; i < all->count; i++) {
		len += strlen(all->items[i]) + strlen(between);
		if (len > room)
			break;
		strlist_ref(&some, d->arena, all->items[i]);
	}

	if (i < all->count)
		strlist_ref(&some, d->arena, arena_printf(d->arena, rest, all->count - i));
	return strlist_join(&some, d->arena, between);
}

/* All packages by one command for each place, then what else is to be done. */
static const char *what_to_do(const struct preflight *d, size_t room)
{
	struct strlist all = {0}, packages[2] = {0};

	for (size_t i = 0; i < d->count; i++) {
		const struct preflight_line *l = &d->lines[i];
		if (l->level == PREFLIGHT_FAILURE && *l->package)
			strlist_once(&packages[l->on_host], d->arena, l->package);
	}

	for (int host = 1; host >= 0; host--)
		if (packages[host].count)
			strlist_ref(&all, d->arena,
				    root_install(d->q->root, host,
						 strlist_join(&packages[host], d->arena, " "),
						 d->arena));
	for (size_t i = 0; i < d->count; i++) {
		const struct preflight_line *l = &d->lines[i];
		if (l->level == PREFLIGHT_FAILURE && *l->fix && !*l->package)
			strlist_once(&all, d->arena, l->fix);
	}

	return fitting(d, &all, "\n", room);
}

int preflight_verdict(const struct preflight *d, struct err *e)
{
	struct strlist texts = {0};
	const char *fix = "";
	enum err_kind kind = ERR_NONE;

	for (size_t i = 0; i < d->count; i++) {
		const struct preflight_line *l = &d->lines[i];
		if (l->level != PREFLIGHT_FAILURE)
			continue;
		strlist_addf(&texts, d->arena, "%s: %s", l->name, l->text);
		fix = texts.count == 1 ? l->fix : what_to_do(d, sizeof(e->hint));
		/* What no table knows comes first; then what the machine lacks,
		 * before what does not go together, since it explains it. */
		const bool own =
			l->kind == ERR_CONFIG || l->kind == ERR_POLICY || l->kind == ERR_NETWORK;
		if (kind == ERR_NONE || l->kind == ERR_CONFIG)
			kind = own ? l->kind : ERR_SYSTEM;
		else if (l->kind != kind && l->kind != ERR_POLICY && kind != ERR_CONFIG)
			kind = ERR_SYSTEM;
	}

	if (!texts.count)
		return 0;
	const char *what = d->q->plan ? d->q->plan->variant
			   : d->q->release
				   ? d->q->release->name
				   : arena_printf(d->arena, "the world '%s'", d->q->world->name);
	const char *done = is_captured(d) ? "captured" : "built";
	if (texts.count == 1)
		err_set(e, kind, "%s cannot be %s here: %s", what, done, texts.items[0]);
	else
		err_set(e, kind, "%s cannot be %s here, for %zu reasons:\n  %s", what, done,
			texts.count,
			fitting(d, &texts, "\n  ", sizeof(e->msg) - strlen(what) - 64));
	return *fix ? err_hint(e, "%s", fix) : -1;
}
