#include "step/lock/drift.h"

#include <string.h>

#include "core/archive/resolve.h"

static int ask_for_lock(const struct world_lock *l, struct err *e)
{
	return err_hint(e, "make a new lock: ptbuild world lock %s --platform %s", l->part, l->platform);
}

int drift_refuse(const struct world_lock *l, const bool *gone, struct err *e)
{
	AUTO_BUF struct buf names = {0};
	size_t count = 0;
	for (size_t i = 0; i < l->count; i++)
		if (gone[i]) {
			buf_printf(&names, "%s%s %s", count ? ", " : "", l->entries[i].name, l->entries[i].version);
			count++;
		}
	err_set(e, ERR_NETWORK, "%zu packages of '%s' have left the archive, and --no-drift forbids others: %s", count,
		l->part, buf_cstr(&names));
	return err_hint(e,
			"name a place that has them (--mirror, --archive %s-snapshot=URL), or make a new lock: ptbuild "
			"world lock %s --platform %s",
			l->archive ? l->archive : "NAME", l->part, l->platform);
}

static int replace(const struct world_lock *l, struct world_entry *entry, const struct archive_index *index,
		   struct drift_change *ret, struct err *e)
{
	const struct archive_package *p = resolve_newest(&index->packages, entry->name);
	if (entry->kind != WORLD_DEB)
		return err_set(e, ERR_NETWORK, "'%s' %s is gone from its place, and only Debian packages have others",
			       entry->name, entry->version);
	if (!p) {
		err_set(e, ERR_NETWORK, "'%s' has left '%s' of the archive, in every version", entry->name, l->suite);
		return ask_for_lock(l, e);
	}
	if (resolve_compare(p->version, entry->version) <= 0) {
		err_set(e, ERR_NETWORK, "'%s' %s cannot be had, and the archive's index has nothing newer (%s)",
			entry->name, entry->version, p->version);
		return err_hint(e,
				"the archive's address may be of an incomplete mirror: name another with --archive "
				"%s=URL",
				l->archive);
	}
	*ret = (struct drift_change){.name = entry->name, .locked = entry->version, .present = p->version};
	entry->version = p->version;
	entry->arch = p->arch;
	entry->sha256 = p->sha256;
	entry->place = p->path;
	entry->size = p->size;
	return 0;
}

/* What is in the lock, with the index's word on what it needs and provides; of a locked version that the index lacks,
 * what the present one provides. The new packages must do with that. */
static int check_needs(const struct world_lock *l, const struct drift *d, const struct archive_index *index,
		       struct arena *a, struct err *e)
{
	struct archive_packages there = {.items = arena_array(a, l->count + 1, sizeof(*there.items))};
	struct strlist asked = {0};
	const struct archive_package **got;
	size_t count;
	for (size_t i = 0; i < l->count; i++) {
		const struct world_entry *entry = &l->entries[i];
		if (entry->kind != WORLD_DEB)
			continue;
		const struct archive_package *p =
			packages_find(&index->packages, entry->name, entry->version, entry->arch);
		struct archive_package own = {.name = entry->name, .version = entry->version, .arch = entry->arch};
		if (!p && (p = resolve_newest(&index->packages, entry->name)))
			own.relations[RELATION_PROVIDES] = p->relations[RELATION_PROVIDES];
		else if (p)
			own = *p;
		there.items[there.count++] = own;
	}
	for (size_t i = 0; i < d->count; i++)
		strlist_ref(&asked, a, d->changes[i].name);
	if (packages_sort(&there, e) < 0)
		return -1;
	const struct resolve_request q = {.packages = &there, .arch = archive_arch(l->platform), .asked = &asked};
	if (resolve(&q, a, &got, &count, e) == 0)
		return 0;
	e->kind = ERR_NETWORK;
	err_wrap(e, "the present versions of packages that are gone do not fit the lock of '%s'", l->part);
	return ask_for_lock(l, e);
}

int drift_resolve(const struct world_lock *l, const bool *gone, const struct archive_index *index, struct arena *a,
		  struct world_lock *ret, struct drift *ret_drift, struct err *e)
{
	struct world_lock out = *l;
	struct drift d = {.changes = arena_array(a, l->count + 1, sizeof(*d.changes))};
	out.entries = arena_array(a, l->count + 1, sizeof(*out.entries));
	for (size_t i = 0; i < l->count; i++) {
		out.entries[i] = l->entries[i];
		if (gone[i] && replace(l, &out.entries[i], index, &d.changes[d.count++], e) < 0)
			return -1;
	}
	if (check_needs(&out, &d, index, a, e) < 0)
		return -1;
	out.tree = d.count ? NULL : l->tree;
	out.release = index->sha256;
	out.date = index->release.date;
	*ret = out;
	*ret_drift = d;
	return 0;
}
