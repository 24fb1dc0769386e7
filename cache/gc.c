#include "cache/gc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

#define STAMP_SECONDS INT64_C(7776000) /* a stamp that is gone costs a hash */

/* What lies directly below <store>/<part>, as objects of that kind. */
static int list_part(struct store *s, const char *part, struct arena *a, struct store_object **ret, size_t *ret_count,
		     struct err *e)
{
	struct strlist names = {0};
	const char *top = path_join(a, s->dir, part);
	if (fs_exists(top) && fs_list(top, a, &names, e) < 0)
		return -1;
	struct store_object *items = arena_array(a, names.count + 1, sizeof(*items));
	size_t count = 0;
	for (size_t i = 0; i < names.count; i++) {
		const char *path = path_join(a, top, names.items[i]);
		struct stat st;
		if (lstat(path, &st) < 0)
			continue;
		uint64_t bytes = (uint64_t)st.st_size;
		if (S_ISDIR(st.st_mode) && fs_tree_size(path, &bytes, e) < 0) {
			if (fs_exists(path))
				return -1;
			err_clear(e); /* another process removed it meanwhile */
			continue;
		}
		items[count++] = (struct store_object){part, names.items[i], path, bytes, st.st_mtim.tv_sec};
	}
	*ret = items;
	*ret_count = count;
	return 0;
}

struct cache_files {
	struct arena *arena;
	const char *top;
	struct store_object *items;
	size_t count, cap;
};

/* Results and manifests of ccache lie as <digit>/.../<name>R or M; it marks their use by their time, and takes one that
 * is gone for a miss. */
static int add_cache_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct cache_files *f = user;
	size_t len = strlen(rel);
	(void)e;
	bool entry = len > 3 && rel[1] == '/' && strchr("0123456789abcdef", rel[0]) && strchr("RMW", rel[len - 1]) &&
		     S_ISREG(st->st_mode);
	if (!entry)
		return 0;
	if (f->count == f->cap)
		f->items = arena_grow(f->arena, f->items, &f->cap, 256, sizeof(*f->items));
	const char *key = arena_strdup(f->arena, rel);
	f->items[f->count++] = (struct store_object){GC_CCACHE, key, path_join(f->arena, f->top, key),
						     (uint64_t)st->st_size, st->st_mtim.tv_sec};
	return 0;
}

static int list_cache(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count, struct err *e)
{
	struct cache_files f = {.arena = a, .top = path_join(a, s->dir, GC_CCACHE)};
	if (fs_exists(f.top) && fs_walk_busy(f.top, add_cache_file, &f, e) < 0)
		return -1;
	*ret = f.items;
	*ret_count = f.count;
	return 0;
}

int store_list_builds(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count, struct err *e)
{
	return list_part(s, STORE_BUILD, a, ret, ret_count, e);
}

static int by_use(const void *x, const void *y)
{
	const struct store_object *a = x, *b = y;
	if (a->used != b->used)
		return a->used < b->used ? -1 : 1;
	int rc = strcmp(a->kind, b->kind);
	return rc ? rc : strcmp(a->key, b->key);
}

enum { PARTS = 6 };

/* Everything that may go, in parts of which each is of one kind but the first, the objects. */
static int list_parts(struct store *s, struct arena *a, struct store_object *parts[PARTS], size_t counts[PARTS],
		      struct err *e)
{
	static const char *const names[] = {STORE_BUILD, GC_PARTIAL, GC_QUARANTINE, GC_APT};
	if (store_list(s, a, &parts[0], &counts[0], e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (list_part(s, names[i], a, &parts[i + 1], &counts[i + 1], e) < 0)
			return -1;
	return list_cache(s, a, &parts[PARTS - 1], &counts[PARTS - 1], e);
}

/* The same in one list, oldest first. */
static int candidates(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count, struct err *e)
{
	struct store_object *parts[PARTS];
	size_t counts[PARTS], total = 0, n = 0;
	if (list_parts(s, a, parts, counts, e) < 0)
		return -1;
	for (size_t i = 0; i < PARTS; i++)
		total += counts[i];
	struct store_object *all = arena_array(a, total + 1, sizeof(*all));
	for (size_t i = 0; i < PARTS; i++)
		for (size_t j = 0; j < counts[i]; j++)
			all[n++] = parts[i][j];
	qsort(all, n, sizeof(*all), by_use);
	*ret = all;
	*ret_count = n;
	return 0;
}

int store_usage(struct store *s, const struct run *run, struct arena *a, struct store_usage **ret, size_t *ret_count,
		struct err *e)
{
	struct store_object *parts[PARTS];
	size_t counts[PARTS], total = 0, n = 0;
	if (run_check(run, e) < 0 || list_parts(s, a, parts, counts, e) < 0)
		return -1;
	for (size_t i = 0; i < PARTS; i++)
		total += counts[i];
	struct store_usage *rows = arena_array(a, total + 1, sizeof(*rows));
	for (size_t i = 0; i < PARTS; i++) {
		for (size_t j = 0; j < counts[i]; j++) {
			const struct store_object *o = &parts[i][j];
			if (n == 0 || strcmp(rows[n - 1].kind, o->kind) != 0)
				rows[n++] = (struct store_usage){.kind = o->kind, .oldest = o->used};
			struct store_usage *row = &rows[n - 1];
			row->count++;
			row->bytes += o->bytes;
			if (o->used < row->oldest)
				row->oldest = o->used;
		}
	}
	*ret = rows;
	*ret_count = n;
	return 0;
}

/* The lock of whoever may be using it, NULL where nobody can. */
static const char *lock_of(const struct store *s, const struct store_object *o, struct arena *a)
{
	if (strcmp(o->kind, GC_QUARANTINE) == 0 || strcmp(o->kind, GC_CCACHE) == 0)
		return NULL;
	if (strcmp(o->kind, GC_APT) == 0)
		return path_join(a, o->path, "lock");
	return arena_printf(a, "%s/locks/%s-%s", s->dir, strcmp(o->kind, GC_PARTIAL) == 0 ? STORE_SOURCE : o->kind,
			    o->key);
}

/* *ret_busy: its lock is held, it stays. What is gone already is gone. */
static int remove_one(struct store *s, const struct store_object *o, bool dry_run, bool *ret_busy, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	const char *path = lock_of(s, o, &a);
	bool got = true, object = !path || (strcmp(o->kind, GC_PARTIAL) != 0 && strcmp(o->kind, GC_APT) != 0);
	*ret_busy = false;
	if (path && !fs_exists(o->path))
		return 0;
	if (path && lock_try(&lock, path, false, &got, e) < 0)
		return -1;
	*ret_busy = !got;
	if (!got || dry_run)
		return 0;
	if (strcmp(o->kind, GC_CCACHE) == 0)
		return unlink(o->path) == 0 || errno == ENOENT
			       ? 0
			       : err_errno(e, ERR_SYSTEM, "cannot remove '%s'", o->path);
	if (object && path)
		(void)unlink(store_stamp_path(s, o->kind, o->key, &a));
	if (store_discard(s, o->path, e) == 0)
		return 0;
	if (fs_exists(o->path))
		return -1;
	err_clear(e);
	return 0;
}

static bool wanted_gone(const struct store_object *o, const struct gc_options *q, int64_t now, uint64_t left)
{
	int64_t age = now - o->used;
	if (age < q->grace_seconds)
		return false;
	if (q->keep_seconds >= 0 && age > q->keep_seconds)
		return true;
	return q->max_bytes >= 0 && left > (uint64_t)q->max_bytes;
}

/* Of objects that are not here: they lay in a lower store, or went by other ways. */
static void remove_old_stamps(struct store *s, int64_t now)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	struct err ignored = {0};
	const char *top = path_join(&a, s->dir, "stamps");
	if (fs_list(top, &a, &names, &ignored) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		const char *path = path_join(&a, top, names.items[i]);
		struct stat st;
		if (lstat(path, &st) == 0 && now - st.st_mtim.tv_sec > STAMP_SECONDS)
			(void)unlink(path);
	}
}

static void note_removed(struct gc_result *r, const struct store_object *o, size_t *cache_row, size_t *cache_files)
{
	r->removed_bytes += o->bytes;
	if (strcmp(o->kind, GC_CCACHE) != 0) {
		r->removed[r->count++] = *o;
		return;
	}
	if ((*cache_files)++ == 0) {
		*cache_row = r->count++;
		r->removed[*cache_row] = *o;
	} else {
		r->removed[*cache_row].bytes += o->bytes;
		r->removed[*cache_row].used = o->used;
	}
}

int store_gc(struct store *s, const struct gc_options *q, const struct run *run, struct arena *a, struct gc_result *ret,
	     struct err *e)
{
	struct store_object *all;
	size_t count, cache_row = 0, cache_files = 0;
	if (candidates(s, a, &all, &count, e) < 0)
		return -1;
	int64_t now = q->now ? q->now : (int64_t)time(NULL);
	struct gc_result r = {.removed = arena_array(a, count + 1, sizeof(*r.removed))};
	uint64_t left = 0;
	for (size_t i = 0; i < count; i++)
		left += all[i].bytes;
	for (size_t i = 0; i < count; i++) {
		bool busy = false;
		if (run_check(run, e) < 0)
			return -1;
		bool gone = wanted_gone(&all[i], q, now, left);
		if (gone && remove_one(s, &all[i], q->dry_run, &busy, e) < 0)
			return -1;
		if (!gone || busy) {
			r.kept++;
			r.busy += busy;
			continue;
		}
		note_removed(&r, &all[i], &cache_row, &cache_files);
		left -= all[i].bytes;
	}
	if (cache_files)
		r.removed[cache_row].key = arena_printf(a, "%zu file%s", cache_files, cache_files == 1 ? "" : "s");
	if (!q->dry_run)
		remove_old_stamps(s, now);
	r.kept_bytes = left;
	*ret = r;
	return 0;
}
