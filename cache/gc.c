#include "cache/gc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/path.h"
#include "cache/store_internal.h"

#define QUARANTINE "quarantine"
#define PARTIAL "partial"

/* What lies directly below <store>/<part>, as objects of that kind. */
static int list_part(struct store *s, const char *part, struct arena *a, struct store_object **ret, size_t *ret_count, struct err *e)
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

/* Everything that may go, oldest first. */
static int candidates(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count, struct err *e)
{
	static const char *const names[] = {STORE_BUILD, PARTIAL, QUARANTINE};
	struct store_object *parts[ARRAY_LEN(names) + 1];
	size_t counts[ARRAY_LEN(parts)];
	if (store_list(s, a, &parts[0], &counts[0], e) < 0)
		return -1;
	size_t total = counts[0];
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (list_part(s, names[i], a, &parts[i + 1], &counts[i + 1], e) < 0)
			return -1;
		total += counts[i + 1];
	}
	struct store_object *all = arena_array(a, total + 1, sizeof(*all));
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		for (size_t j = 0; j < counts[i]; j++)
			all[n++] = parts[i][j];
	qsort(all, n, sizeof(*all), by_use);
	*ret = all;
	*ret_count = n;
	return 0;
}

/* *ret_busy: its lock is held, it stays. Quarantined objects have no users and no lock. */
static int remove_one(struct store *s, const struct store_object *o, bool dry_run, bool *ret_busy, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	const char *kind = strcmp(o->kind, PARTIAL) == 0 ? STORE_SOURCE : o->kind;
	bool got = true;
	if (strcmp(o->kind, QUARANTINE) != 0 &&
	    lock_try(&lock, arena_printf(&a, "%s/locks/%s-%s", s->dir, kind, o->key), false, &got, e) < 0)
		return -1;
	*ret_busy = !got;
	if (!got || dry_run)
		return 0;
	return store_discard(s, o->path, e);
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

int store_gc(struct store *s, const struct gc_options *q, const struct run *run, struct arena *a, struct gc_result *ret, struct err *e)
{
	struct store_object *all;
	size_t count;
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
		r.removed[r.count++] = all[i];
		r.removed_bytes += all[i].bytes;
		left -= all[i].bytes;
	}
	r.kept_bytes = left;
	*ret = r;
	return 0;
}
