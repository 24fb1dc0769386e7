#include "step/world/world_parts.h"

#include <search.h>

void names_release(struct names *n)
{
	while (n->tree)
		(void)tdelete(*(struct name **)n->tree, &n->tree, text_cmp);
	pthread_mutex_destroy(&n->mutex);
	arena_release(&n->arena);
}

struct name *names_find(const struct names *n, const char *path)
{
	struct name *const *at = tfind(&path, &n->tree, text_cmp);
	return at ? *at : NULL;
}

static uint32_t bit(const struct world_unit *u)
{
	return u ? UINT32_C(1) << u->piece : 0;
}

static struct name *add(struct names *n, const char *path, enum name_kind kind,
			const struct world_unit *u)
{
	struct name *new = arena_alloc(&n->arena, sizeof(*new));

	*new = (struct name){.path = arena_strdup(&n->arena, path),
			     .kind = kind,
			     .unit = u,
			     .pieces = bit(u),
			     .next = n->all};
	if (!tsearch(new, &n->tree, text_cmp))
		abort();
	n->all = new;
	n->count++;
	return new;
}

static const char *unit_name(const struct world_unit *u)
{
	return u ? u->name : "the world's table";
}

/* Prints both names in the world's order, so that the message does not depend on who came first. */
static int both(const char *path, const struct world_unit *a, const struct world_unit *b,
		const char *what, struct err *e)
{
	bool swap = a && b && b->at < a->at;

	err_set(e, ERR_INTEGRITY, "'%s' and '%s' both have '%s', %s", unit_name(swap ? b : a),
		unit_name(swap ? a : b), path, what);
	return err_hint(e, "neither says that it replaces the other; leave the path out in the "
			   "part's 'exclude'");
}

/* The directories above a path. Those above one that has the bit have it as well. */
static int claim_above(struct names *n, const char *path, const struct world_unit *u, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *dir = arena_strdup(&a, path);

	for (char *end; (end = strrchr(dir, '/'));) {
		*end = '\0';
		struct name *d = names_find(n, dir);
		if (!d)
			d = add(n, dir, NAME_DIR, u);
		else if (d->kind != NAME_DIR)
			return both(d->path, d->unit, u,
				    "which is a directory in one of them alone", e);
		else if ((d->pieces & bit(u)) == bit(u))
			return 0;
		d->pieces |= bit(u);
	}

	return 0;
}

static bool newer(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static int claim(struct names *n, const struct name_claim *c, struct name **ret, struct err *e)
{
	const char *path = c->path;
	const enum name_kind kind = c->kind;
	const struct world_unit *u = c->unit;
	const struct timespec mtime = c->mtime;

	if (claim_above(n, path, u, e) < 0)
		return -1;
	struct name *have = names_find(n, path);
	if (!have) {
		*ret = add(n, path, kind, u);
		(*ret)->mtime = mtime;
		return 0;
	}

	*ret = have;
	if (have->kind == NAME_DIR && kind == NAME_DIR) {
		have->pieces |= bit(u);
		if (newer(mtime, have->mtime))
			have->mtime = mtime;
		return 0;
	}

	if (have->kind == NAME_DIR || kind == NAME_DIR)
		return both(path, have->unit, u, "which is a directory in one of them alone", e);
	for (const struct name *r = have; r; r = r->rival)
		if (r->unit == u)
			return err_set(e, ERR_INTEGRITY, "is there twice");
	struct name *new = arena_alloc(&n->arena, sizeof(*new));
	*new = (struct name){
		.path = have->path, .kind = kind, .unit = u, .pieces = bit(u), .mtime = mtime};
	new->spare = arena_printf(&n->arena, NAMES_SPARE "/%zu", n->spares++);
	new->rival = have->rival;
	have->rival = new;
	*ret = new;
	return 0;
}

int names_claim(struct names *n, const struct name_claim *c, struct name **ret, struct err *e)
{
	pthread_mutex_lock(&n->mutex);
	int rc = claim(n, c, ret, e);
	pthread_mutex_unlock(&n->mutex);
	return rc;
}

static bool same(const struct name *a, const struct name *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == NAME_LINK
		       ? strcmp(a->target, b->target) == 0
		       : a->executable == b->executable && strcmp(a->sha256, b->sha256) == 0;
}

static bool replaces(const struct name *a, const struct name *b)
{
	return a->unit->replaces && strlist_contains(a->unit->replaces, b->unit->name);
}

/* Whether `a` stays where `b` is as well: the first of two
 * that are the same, else the one that replaces the other. */
static bool beats(const struct name *a, const struct name *b)
{
	if (same(a, b))
		return a->unit->at < b->unit->at;
	return replaces(a, b) && !replaces(b, a);
}

/* The first in the world's order of those that are not the same as `than` (NULL: of all). */
static const struct name *first_of(const struct name *head, const struct name *than)
{
	const struct name *best = NULL;

	for (const struct name *c = head; c; c = c->rival)
		if ((!than || !same(c, than)) && (!best || c->unit->at < best->unit->at))
			best = c;
	return best;
}

static int settle(struct name *head, struct err *e)
{
	const struct name *best = NULL;

	for (const struct name *c = head; c && !best; c = c->rival) {
		bool all = true;
		for (const struct name *o = head; o && all; o = o->rival)
			all = o == c || beats(c, o);
		best = all ? c : NULL;
	}

	if (!best) {
		const struct name *first = first_of(head, NULL);
		return both(head->path, first->unit, first_of(head, first)->unit,
			    "with different contents", e);
	}

	uint32_t pieces = 0;
	for (const struct name *o = head; o; o = o->rival)
		pieces |= same(best, o) ? o->pieces : 0;
	struct name *rival = head->rival, *next = head->next;
	*head = *best;
	head->pieces = pieces;
	head->rival = rival;
	head->next = next;
	return 0;
}

int names_settle(struct names *n, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct name **all = names_sorted(n, &a);

	for (size_t i = 0; i < n->count; i++)
		if (all[i]->rival && settle(all[i], e) < 0)
			return -1;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	return text_cmp(*(struct name *const *)a, *(struct name *const *)b);
}

struct name **names_sorted(const struct names *n, struct arena *a)
{
	struct name **all = arena_array(a, n->count + 1, sizeof(struct name *));
	size_t count = 0;

	for (struct name *it = n->all; it; it = it->next)
		all[count++] = it;
	array_sort(all, count, sizeof(struct name *), by_place);
	return all;
}

void names_text(struct name *const *sorted, size_t count, size_t piece, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct name *m = sorted[i];
		if (piece != SIZE_MAX && !(m->pieces & (UINT32_C(1) << piece)))
			continue;
		if (m->kind == NAME_DIR)
			buf_printf(out, "dir\t%s\n", m->path);
		else if (m->kind == NAME_LINK)
			buf_printf(out, "link\t%s\t%s\n", m->target, m->path);
		else
			buf_printf(out, "file\t%s\t%llu\t%s\t%s\n", m->executable ? "755" : "644",
				   (unsigned long long)m->size, m->sha256, m->path);
	}
}
