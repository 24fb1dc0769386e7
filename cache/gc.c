#include <time.h>

#include "base/os.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

#define STAMP_SECONDS INT64_C(7776000) /* a missing stamp costs a hash */

/* Adds each entry directly below <store>/<part> as an object of that kind. */
static int list_part(const struct store *s, const char *part, struct store_objects *l,
		     struct err *e)
{
	struct strlist names = {0};
	const char *top = path_join(l->arena, s->dir, part);

	if (fs_exists(TRUSTED, top) && fs_list(TRUSTED, top, l->arena, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (store_objects_add(l,
				      &(struct store_object){
					      .kind = part,
					      .key = names.items[i],
					      .path = path_join(l->arena, top, names.items[i])},
				      NULL, e) < 0)
			return -1;
	return 0;
}

struct cache_files {
	struct store_objects *objects;
	const char *top;
	bool compiled; /* all files below are entries */
};

/* What builds compiled, and what older versions of ptbuild left in a cache of ccache's own making.
 * That keeps results and manifests as <digit>/.../<name>R or M, with the time of their last use. A
 * missing one is a miss to it. An entry of several names counts once: each has its share. */
static int add_cache_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct cache_files *f = user;
	size_t len = strlen(rel);

	(void)e;
	bool plain = len > 3 && rel[1] == '/' && strchr("0123456789abcdef", rel[0]) &&
		     strchr("RMW", rel[len - 1]);
	if (!(plain || f->compiled) || !S_ISREG(st->st_mode))
		return 0;
	struct arena *a = f->objects->arena;
	uint64_t names = st->st_nlink ? st->st_nlink : 1,
		 share = ((uint64_t)st->st_size + names - 1) / names;
	*store_objects_next(f->objects) =
		(struct store_object){GC_CCACHE, arena_strdup(a, rel), path_join(a, f->top, rel),
				      share, st->st_mtim.tv_sec};
	return 0;
}

int store_list_builds(struct store *s, struct arena *a, struct store_object **ret,
		      size_t *ret_count, struct err *e)
{
	struct store_objects l = {.arena = a};

	if (list_part(s, STORE_BUILD, &l, e) < 0)
		return -1;
	*ret = l.items;
	*ret_count = l.count;
	return 0;
}

static int by_use(const void *x, const void *y)
{
	const struct store_object *a = x, *b = y;

	if (a->used != b->used)
		return a->used < b->used ? -1 : 1;
	int rc = strcmp(a->kind, b->kind);
	return rc ? rc : strcmp(a->key, b->key);
}

/* All that may be removed, by kind, objects first; `kind` alone where it is not NULL. */
static int list_all(struct store *s, const char *kind, struct store_objects *l, struct err *e)
{
	static const char *const parts[] = {STORE_BUILD, GC_PARTIAL, GC_QUARANTINE, GC_APT};
	const bool compiled = kind && strcmp(kind, GC_CCACHE) == 0;
	const struct cache_files f[] = {{l, path_join(l->arena, s->dir, GC_CCACHE), false},
					{l, path_join(l->arena, s->dir, STORE_COMPILED), true}};

	if (!compiled && store_list(s, l->arena, &l->items, &l->count, e) < 0)
		return -1;
	l->cap = l->count;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (!compiled && list_part(s, parts[i], l, e) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		if (fs_exists(TRUSTED, f[i].top) &&
		    fs_walk_busy(TRUSTED, f[i].top, add_cache_file, (void *)&f[i], e) < 0)
			return -1;
	size_t n = 0;
	for (size_t k = 0; k < l->count; k++)
		if (!kind || strcmp(l->items[k].kind, kind) == 0)
			l->items[n++] = l->items[k];
	l->count = n;
	return 0;
}

int store_usage(struct store *s, const struct run *run, struct arena *a, struct store_usage **ret,
		size_t *ret_count, struct err *e)
{
	struct store_objects all = {.arena = a};
	size_t n = 0;

	if (run_check(run, e) < 0 || list_all(s, NULL, &all, e) < 0)
		return -1;
	struct store_usage *rows = arena_array(a, all.count + 1, sizeof(*rows));
	for (size_t i = 0; i < all.count; i++) {
		const struct store_object *o = &all.items[i];
		if (n == 0 || strcmp(rows[n - 1].kind, o->kind) != 0)
			rows[n++] = (struct store_usage){.kind = o->kind, .oldest = o->used};
		struct store_usage *row = &rows[n - 1];
		row->count++;
		row->bytes += o->bytes;
		if (o->used < row->oldest)
			row->oldest = o->used;
	}

	*ret = rows;
	*ret_count = n;
	return 0;
}

/* Returns the lock of a possible user of the object, NULL if it cannot have one. */
static const char *lock_of(const struct store *s, const struct store_object *o, struct arena *a)
{
	if (strcmp(o->kind, GC_QUARANTINE) == 0 || strcmp(o->kind, GC_CCACHE) == 0)
		return NULL;
	if (strcmp(o->kind, GC_APT) == 0)
		return path_join(a, o->path, "lock");
	return store_lock_path(s, strcmp(o->kind, GC_PARTIAL) == 0 ? STORE_SOURCE : o->kind, o->key,
			       a);
}

/* 1: its lock is held, so it stays. What another process removed counts as removed. */
static int remove_one(struct store *s, const struct store_object *o, bool dry_run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	const char *path = lock_of(s, o, &a);
	bool got = true;

	if (path && !fs_exists(TRUSTED, o->path))
		return 0;
	if (path && lock_try(&lock, path, false, &got, e) < 0)
		return -1;
	if (!got || dry_run)
		return !got;
	if (strcmp(o->kind, GC_CCACHE) == 0)
		return unlink(o->path) == 0 || errno == ENOENT
			       ? 0
			       : err_errno(e, ERR_SYSTEM, "cannot remove '%s'", o->path);
	if (store_remove(s, o, e) == 0)
		return 0;
	if (fs_exists(TRUSTED, o->path))
		return -1;
	err_clear(e);
	return 0;
}

static bool wanted_gone(const struct store_object *o, const struct gc_options *q, int64_t now,
			uint64_t left)
{
	if (q->keep_seconds >= 0 && now - o->used > q->keep_seconds)
		return true;
	if (q->unwanted && q->unwanted(q->user, o))
		return true;
	return q->max_bytes >= 0 && left > (uint64_t)q->max_bytes;
}

/* Stamps of objects that were removed in other ways, or that a fallback store has. */
static void remove_old_stamps(const struct store *s, int64_t now)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	const char *top = path_join(&a, s->dir, "stamps");

	if (fs_list(TRUSTED, top, &a, &names, ERR_IGNORED) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		const char *path = path_join(&a, top, names.items[i]);
		struct stat st;
		if (lstat(path, &st) == 0 && now - st.st_mtim.tv_sec > STAMP_SECONDS)
			(void)unlink(path);
	}
}

/* The files of the compiler cache are one row. */
static void note_removed(struct gc_result *r, const struct store_object *o,
			 struct store_object **cache_row)
{
	bool cache = strcmp(o->kind, GC_CCACHE) == 0;

	r->removed_bytes += o->bytes;
	if (cache && *cache_row) {
		(*cache_row)->bytes += o->bytes;
		(*cache_row)->used = o->used;
		return;
	}

	r->removed[r->count] = *o;
	if (cache)
		*cache_row = &r->removed[r->count];
	r->count++;
}

int store_gc(struct store *s, const struct gc_options *q, const struct run *run, struct arena *a,
	     struct gc_result *ret, struct err *e)
{
	struct store_objects all = {.arena = a};
	struct store_object *cache_row = NULL;
	size_t cache_files = 0;

	if (list_all(s, q->kind, &all, e) < 0)
		return -1;
	array_sort(all.items, all.count, sizeof(*all.items), by_use);
	int64_t now = q->now ? q->now : (int64_t)time(NULL);
	struct gc_result r = {.removed = arena_array(a, all.count + 1, sizeof(*r.removed))};
	for (size_t i = 0; i < all.count; i++)
		r.kept_bytes += all.items[i].bytes;
	for (size_t i = 0; i < all.count; i++) {
		const struct store_object *o = &all.items[i];
		if (run_check(run, e) < 0)
			return -1;
		const bool wanted = wanted_gone(o, q, now, r.kept_bytes);
		const bool gone = wanted && now - o->used >= q->grace_seconds;
		r.young += wanted && !gone;
		const int busy = gone ? remove_one(s, o, q->dry_run, e) : 0;
		if (busy < 0)
			return -1;
		if (!gone || busy) {
			r.kept++;
			r.busy += busy > 0;
			continue;
		}

		cache_files += strcmp(o->kind, GC_CCACHE) == 0;
		note_removed(&r, o, &cache_row);
		r.kept_bytes -= o->bytes;
	}

	if (cache_row)
		cache_row->key =
			arena_printf(a, "%zu file%s", cache_files, cache_files == 1 ? "" : "s");
	if (!q->dry_run)
		remove_old_stamps(s, now);
	*ret = r;
	return 0;
}
