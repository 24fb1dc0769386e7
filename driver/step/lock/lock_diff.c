#include "step/lock/lock_diff.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {[WORLD_DEB] = "deb", [WORLD_WHEEL] = "wheel", [WORLD_FILE] = "file"};

static int by_name(const void *x, const void *y)
{
	const struct world_entry *a = x, *b = y;
	return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->name, b->name);
}

static const struct world_entry *sorted(const struct world_lock *l, struct arena *a)
{
	size_t count = l ? l->count : 0;
	struct world_entry *out = arena_array(a, count + 1, sizeof(*out));
	if (count) {
		memcpy(out, l->entries, count * sizeof(*out));
		qsort(out, count, sizeof(*out), by_name);
	}
	return out;
}

static void add(struct lock_diff *d, const struct world_entry *before, const struct world_entry *after)
{
	const struct world_entry *any = after ? after : before;
	d->added += !before;
	d->removed += !after;
	d->changed += before && after;
	d->changes[d->count++] =
		(struct lock_change){.kind = kinds[any->kind],
				     .name = any->name,
				     .before = before ? before->version : NULL,
				     .after = after ? after->version : NULL,
				     .size = after ? after->size : 0,
				     .same_version = before && after && strcmp(before->version, after->version) == 0};
}

static bool same(const struct world_entry *x, const struct world_entry *y)
{
	return strcmp(x->version, y->version) == 0 && strcmp(x->arch, y->arch) == 0 &&
	       strcmp(x->sha256, y->sha256) == 0 && strcmp(x->place, y->place) == 0 && x->size == y->size;
}

void lock_compare(const struct world_lock *before, const struct world_lock *after, struct arena *a,
		  struct lock_diff *ret)
{
	const struct world_entry *x = sorted(before, a), *y = sorted(after, a);
	const struct world_entry *x_end = x + (before ? before->count : 0), *y_end = y + after->count;
	*ret = (struct lock_diff){
		.changes = arena_array(a, (size_t)(x_end - x) + (size_t)(y_end - y) + 1, sizeof(*ret->changes)),
		.other_request = before && strcmp(before->asked, after->asked) != 0};
	while (x < x_end || y < y_end) {
		int order = x == x_end ? 1 : y == y_end ? -1 : by_name(x, y);
		if (order != 0)
			add(ret, order < 0 ? x : NULL, order < 0 ? NULL : y);
		else if (!same(x, y))
			add(ret, x, y);
		x += order <= 0;
		y += order >= 0;
	}
}
