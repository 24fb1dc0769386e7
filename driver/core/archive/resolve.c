#include "core/archive/resolve.h"

#include <solv/evr.h>
#include <solv/pool.h>
#include <solv/poolarch.h>
#include <solv/repo.h>
#include <solv/repo_deb.h>
#include <solv/solver.h>
#include <string.h>

#include "base/suggest.h"

enum { REASONS_MAX = 6 };

struct closure {
	const struct resolve_request *request;
	struct arena *arena;
	Pool *pool;
	Queue wanted;  /* solvables of the closure, in the order in which they came in */
	Queue choices; /* dependencies with more than one answer, to look at when the others are in */
	Map in;        /* the solvables of `wanted` */
	const struct archive_package **of; /* by solvable */
};

static void free_pool(Pool **p)
{
	if (*p)
		pool_free(*p);
}

static void free_solver(Solver **s)
{
	if (*s)
		solver_free(*s);
}

/* Only what was checked, in one form: the library reads nothing that the archive wrote. */
static void write_package(struct buf *out, const struct archive_package *p)
{
	static const char *const names[RELATIONS] = {"Pre-Depends", "Depends", "Conflicts", "Breaks", "Provides"};
	buf_printf(out, "Package: %s\nVersion: %s\nArchitecture: %s\n", p->name, p->version, p->arch);
	for (size_t i = 0; i < RELATIONS; i++)
		if (p->relations[i] && *p->relations[i])
			buf_printf(out, "%s: %s\n", names[i], p->relations[i]);
	buf_addc(out, '\n');
}

static int load(struct closure *c, struct err *e)
{
	const struct archive_packages *packages = c->request->packages;
	AUTO_BUF struct buf text = {0};
	pool_setdisttype(c->pool, DISTTYPE_DEB);
	pool_setarch(c->pool, c->request->arch);
	Repo *repo = repo_create(c->pool, "archive");
	for (size_t i = 0; i < packages->count; i++)
		write_package(&text, &packages->items[i]);
	if (!text.len)
		return err_set(e, ERR_CONFIG, "the archive's index has no package");
	AUTO_FILE FILE *f = fmemopen(text.data, text.len, "r");
	if (!f || repo_add_debpackages(repo, f, 0) != 0)
		return err_set(e, ERR_SYSTEM, "libsolv cannot read the index: %s", pool_errstr(c->pool));
	pool_createwhatprovides(c->pool);
	c->of = arena_array(c->arena, (size_t)c->pool->nsolvables + 1, sizeof(const struct archive_package *));
	Id p;
	Solvable *s;
	FOR_REPO_SOLVABLES(repo, p, s)
	{
		c->of[p] = packages_find(packages, pool_id2str(c->pool, s->name), pool_id2str(c->pool, s->evr),
					 pool_id2str(c->pool, s->arch));
		if (!c->of[p])
			return err_set(e, ERR_SYSTEM, "libsolv read a package that the index lacks: '%s'",
				       pool_solvable2str(c->pool, s));
	}
	map_init(&c->in, c->pool->nsolvables);
	return 0;
}

/* The better answer to a dependency on `name`: the package of that name, the higher priority, the newer version, the
 * first by name. */
static bool better(const struct closure *c, Id name, Id a, Id b)
{
	const Solvable *x = pool_id2solvable(c->pool, a), *y = pool_id2solvable(c->pool, b);
	if ((x->name == name) != (y->name == name))
		return x->name == name;
	if (c->of[a]->priority != c->of[b]->priority)
		return c->of[a]->priority < c->of[b]->priority;
	if (x->name == y->name)
		return pool_evrcmp(c->pool, x->evr, y->evr, EVRCMP_COMPARE) > 0;
	return strcmp(c->of[a]->name, c->of[b]->name) < 0;
}

static Id best_of(const struct closure *c, Id dep)
{
	Pool *pool = c->pool; /* the library's macros ask for this name */
	Id name = dep, best = 0, p, pp;
	while (ISRELDEP(name))
		name = GETRELDEP(c->pool, name)->name;
	FOR_PROVIDES(p, pp, dep)
	if (!best || better(c, name, p, best))
		best = p;
	return best;
}

/* The first alternative that can be had. */
static Id first_choice(const struct closure *c, Id dep)
{
	while (ISRELDEP(dep) && GETRELDEP(c->pool, dep)->flags == REL_OR) {
		Id p = first_choice(c, GETRELDEP(c->pool, dep)->name);
		if (p)
			return p;
		dep = GETRELDEP(c->pool, dep)->evr;
	}
	return best_of(c, dep);
}

static void want(struct closure *c, Id p)
{
	if (!p || MAPTST(&c->in, p))
		return;
	MAPSET(&c->in, p);
	queue_push(&c->wanted, p);
}

/* What one answer alone satisfies comes in at once; the rest waits, since what comes in may satisfy it. */
static void want_dependency(struct closure *c, Id dep, bool now)
{
	Pool *pool = c->pool;
	Id p, pp, only = 0;
	int count = 0;
	FOR_PROVIDES(p, pp, dep)
	{
		if (MAPTST(&c->in, p))
			return;
		only = p;
		count++;
	}
	if (count == 1)
		want(c, only);
	else if (count > 1 && now)
		want(c, first_choice(c, dep));
	else if (count > 1)
		queue_push(&c->choices, dep);
}

/* The closure as apt walks it: the solver then prefers what is in it, and finds other ways around conflicts. */
static void walk(struct closure *c)
{
	Queue needs;
	int done = 0;
	queue_init(&needs);
	for (int choice = 0;; choice++) {
		for (; done < c->wanted.count; done++) {
			Solvable *s = pool_id2solvable(c->pool, c->wanted.elements[done]);
			solvable_lookup_deparray(s, SOLVABLE_REQUIRES, &needs, 0);
			for (int i = 0; i < needs.count; i++)
				if (needs.elements[i] != SOLVABLE_PREREQMARKER)
					want_dependency(c, needs.elements[i], false);
		}
		if (choice >= c->choices.count)
			break;
		want_dependency(c, c->choices.elements[choice], true);
	}
	queue_free(&needs);
}

static int unknown_name(const struct closure *c, const char *name, struct err *e)
{
	Pool *pool = c->pool;
	Id id = pool_str2id(pool, name, 0), p, pp;
	AUTO_BUF struct buf providers = {0};
	if (id) {
		FOR_PROVIDES(p, pp, id)
		buf_printf(&providers, "%s%s", providers.len ? ", " : "", c->of[p]->name);
	}
	err_set(e, ERR_CONFIG, "the archive has no package '%s'", name);
	if (providers.len)
		return err_hint(e, "ask for one of those that provide it: %.800s", buf_cstr(&providers));
	return err_hint(e, "look for its name in this suite and its components");
}

/* Everything asked for, as jobs, and in the closure. */
static int ask(struct closure *c, Queue *jobs, struct err *e)
{
	const struct archive_packages *packages = c->request->packages;
	for (size_t i = 0; i < c->request->asked->count; i++) {
		const char *name = c->request->asked->items[i];
		size_t count;
		if (!packages_of(packages, name, &count))
			return unknown_name(c, name, e);
		Id id = pool_str2id(c->pool, name, 1);
		queue_push2(jobs, SOLVER_INSTALL | SOLVER_SOLVABLE_NAME, id);
		want(c, best_of(c, id));
	}
	for (size_t i = 0; c->request->essential && i < packages->count; i++)
		if (packages->items[i].essential) {
			Id id = pool_str2id(c->pool, packages->items[i].name, 1);
			queue_push2(jobs, SOLVER_INSTALL | SOLVER_SOLVABLE_NAME, id);
			want(c, best_of(c, id));
		}
	return 0;
}

static int cannot_solve(Solver *solver, int problems, struct err *e)
{
	AUTO_BUF struct buf reasons = {0};
	for (int i = 1; i <= problems && i <= REASONS_MAX; i++) {
		Id from, to, dep;
		Id rule = solver_findproblemrule(solver, i);
		SolverRuleinfo kind = solver_ruleinfo(solver, rule, &from, &to, &dep);
		buf_printf(&reasons, "%s%s", reasons.len ? "; " : "",
			   solver_problemruleinfo2str(solver, kind, from, to, dep));
	}
	err_set(e, ERR_CONFIG, "the packages cannot be together: %s", buf_cstr(&reasons));
	return err_hint(e, "change the part's list of packages, its components or its suite");
}

static int by_name(const void *x, const void *y)
{
	const struct archive_package *const *a = x, *const *b = y;
	return strcmp((*a)->name, (*b)->name);
}

static int solve(struct closure *c, Queue *jobs, const struct archive_package ***ret, size_t *ret_count, struct err *e)
{
	CLEANUP(free_solver) Solver *solver = solver_create(c->pool);
	Queue decided;
	size_t n = 0;
	for (int i = 0; i < c->wanted.count; i++)
		queue_push2(jobs, SOLVER_FAVOR | SOLVER_SOLVABLE, c->wanted.elements[i]);
	solver_set_flag(solver, SOLVER_FLAG_IGNORE_RECOMMENDED, 1);
	int problems = solver_solve(solver, jobs);
	if (problems)
		return cannot_solve(solver, problems, e);
	queue_init(&decided);
	solver_get_decisionqueue(solver, &decided);
	const struct archive_package **out = arena_array(c->arena, (size_t)decided.count + 1, sizeof(void *));
	for (int i = 0; i < decided.count; i++)
		if (decided.elements[i] > 0 && decided.elements[i] != SYSTEMSOLVABLE)
			out[n++] = c->of[decided.elements[i]];
	queue_free(&decided);
	qsort(out, n, sizeof(void *), by_name);
	*ret = out;
	*ret_count = n;
	return 0;
}

int resolve(const struct resolve_request *q, struct arena *a, const struct archive_package ***ret, size_t *ret_count,
	    struct err *e)
{
	CLEANUP(free_pool) Pool *pool = pool_create();
	struct closure c = {.request = q, .arena = a, .pool = pool};
	Queue jobs;
	queue_init(&jobs);
	queue_init(&c.wanted);
	queue_init(&c.choices);
	int status = load(&c, e);
	if (status == 0)
		status = ask(&c, &jobs, e);
	if (status == 0) {
		walk(&c);
		status = solve(&c, &jobs, ret, ret_count, e);
	}
	queue_free(&jobs);
	queue_free(&c.wanted);
	queue_free(&c.choices);
	map_free(&c.in);
	return status;
}

int resolve_compare(const char *x, const char *y)
{
	CLEANUP(free_pool) Pool *pool = pool_create();
	pool_setdisttype(pool, DISTTYPE_DEB);
	return pool_evrcmp_str(pool, x, y, EVRCMP_COMPARE);
}

const struct archive_package *resolve_newest(const struct archive_packages *packages, const char *name)
{
	const struct archive_package *newest = NULL;
	size_t count;
	const struct archive_package *first = packages_of(packages, name, &count);
	for (size_t i = 0; i < count; i++)
		if (!newest || resolve_compare(first[i].version, newest->version) > 0)
			newest = &first[i];
	return newest;
}
