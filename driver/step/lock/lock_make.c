#include "step/lock/lock_make.h"

#include <string.h>

#include "core/archive/resolve.h"

static const struct world_entry *find_entry(const struct world_lock *l, enum world_kind kind, const char *name)
{
	for (size_t i = 0; l && i < l->count; i++)
		if (l->entries[i].kind == kind && strcmp(l->entries[i].name, name) == 0)
			return &l->entries[i];
	return NULL;
}

/* The base decides: the toolkit's packages meet the base as it is locked, not as the archive would make it today. */
static int check_base(const struct lock_request *q, const struct archive_package *p, bool *ret_in_base, struct err *e)
{
	const struct world_entry *in_base = find_entry(q->base, WORLD_DEB, p->name);
	*ret_in_base = in_base != NULL;
	if (!q->base || !in_base || strcmp(in_base->version, p->version) == 0)
		return 0;
	err_set(e, ERR_CONFIG, "the lock of '%s' has '%s' %s, the archive %s", q->base->part, p->name, in_base->version,
		p->version);
	return err_hint(e, "make the base's lock first: ptbuild world lock %s", q->base->part);
}

static struct world_entry entry_of(const struct archive_package *p)
{
	return (struct world_entry){.kind = WORLD_DEB,
				    .name = p->name,
				    .version = p->version,
				    .arch = p->arch,
				    .sha256 = p->sha256,
				    .place = p->path,
				    .size = p->size};
}

static bool same_entry(const struct world_entry *x, const struct world_entry *y)
{
	return x->kind == y->kind && strcmp(x->name, y->name) == 0 && strcmp(x->version, y->version) == 0 &&
	       strcmp(x->arch, y->arch) == 0 && strcmp(x->sha256, y->sha256) == 0 && strcmp(x->place, y->place) == 0 &&
	       x->size == y->size;
}

/* In any order. */
static bool same_entries(const struct world_lock *x, const struct world_lock *y)
{
	bool same = x->count == y->count;
	for (size_t i = 0; same && i < x->count; i++) {
		const struct world_entry *other = find_entry(y, x->entries[i].kind, x->entries[i].name);
		same = other && same_entry(&x->entries[i], other);
	}
	return same;
}

static int add_packages(const struct lock_request *q, const struct archive_index *index, struct arena *a,
			struct world_lock *out, struct err *e)
{
	struct strlist asked = {0};
	const struct archive_package **got;
	size_t count;
	strlist_append(&asked, a, q->packages);
	if (q->base)
		strlist_append(&asked, a, q->base_packages);
	const struct resolve_request r = {.packages = &index->packages,
					  .arch = archive_arch(q->platform),
					  .asked = &asked,
					  .essential = q->essential || q->base};
	if (resolve(&r, a, &got, &count, e) < 0)
		return err_wrap(e, "%s", q->part);
	size_t kept = q->before ? q->before->count : 0;
	out->entries = arena_array(a, count + kept + 1, sizeof(*out->entries));
	for (size_t i = 0; i < count; i++) {
		bool in_base;
		if (check_base(q, got[i], &in_base, e) < 0)
			return -1;
		if (!in_base)
			out->entries[out->count++] = entry_of(got[i]);
	}
	for (size_t i = 0; i < kept; i++)
		if (q->before->entries[i].kind != WORLD_DEB)
			out->entries[out->count++] = q->before->entries[i];
	return 0;
}

int lock_make(const struct lock_request *q, const struct archive_get *get, const struct run *run, struct arena *a,
	      struct world_lock *ret, struct err *e)
{
	const struct world_lock *before = q->before;
	const struct archive_suite suite = {
		.archive = q->archive,
		.suite = q->suite,
		.arch = archive_arch(q->platform),
		.components = q->components,
		.keyring = q->keyring,
		.not_before = before && before->suite && strcmp(before->suite, q->suite) == 0 ? before->date : NULL};
	struct archive_index *index = arena_alloc(a, sizeof(*index));
	struct world_lock out = {
		.part = q->part, .platform = q->platform, .asked = q->asked, .archive = q->archive, .suite = q->suite};
	if (!suite.arch) {
		err_set(e, ERR_CONFIG, "Debian has no packages for the platform '%s'", q->platform);
		return err_hint(e, "platforms of worlds: x86_64-linux, aarch64-linux");
	}
	if (archive_index_read(&suite, get, run, a, index, e) < 0 || add_packages(q, index, a, &out, e) < 0)
		return -1;
	out.release = index->sha256;
	out.date = index->release.date;
	if (before && strcmp(before->asked, q->asked) == 0 && same_entries(before, &out))
		out = *before;
	*ret = out;
	return 0;
}
