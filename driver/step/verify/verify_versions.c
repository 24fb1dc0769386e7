/* Symbol versions as glibc checks them, _dl_check_map_versions in
 * elf/dl-version.c: each library that versions are needed of must be loaded under
 * the name that the need has, else the loader aborts. */
#include "core/plan/cuda_libraries.h"
#include "step/verify/verify_parts.h"

/* Known names are what DT_NEEDED entries ask for:
 * a SONAME becomes one once an entry asks for it. */
struct need {
	struct verifying *v;
	const struct verify_member *m;
	const struct strlist *closure;
	const char *file;
};

bool verify_lacks_version(const struct elf_info *info, const char *version)
{
	return info->defined_versions.count && !strlist_contains(&info->defined_versions, version);
}

static bool is_system(const struct verifying *v, const char *file)
{
	return v->q->policy && manylinux_allows(v->q->policy, file);
}

/* Python itself needs both. */
static bool is_loaded_always(const char *file)
{
	return verify_is_loader(file) || strcmp(file, "libc.so.6") == 0 ||
	       strcmp(file, "libm.so.6") == 0;
}

/* Whether a library that is not at hand may load
 * it: one of the system loads others of the system. */
static bool may_come_along(const struct need *n)
{
	const bool system = is_system(n->v, n->file);

	for (size_t i = 0; i < n->closure->count; i++) {
		const char *name = n->closure->items[i];
		if (is_loaded_always(name) || verify_at_hand(n->v, name))
			continue;
		if (system || !is_system(n->v, name))
			return true;
	}

	return false;
}

/* Whether a process may have loaded it under this name before: another
 * library of the wheel asks for it, or packages that load it bring it. */
static bool may_be_loaded(const struct need *n)
{
	const struct verifying *v = n->v;

	if (is_system(v, n->file) || verify_is_of_torch(n->file))
		return true;
	if (v->q->tables && cuda_source(v->q->tables, &v->requires, n->file, v->a) != CUDA_UNKNOWN)
		return true;
	for (size_t i = 0; i < v->count; i++)
		if (strlist_contains(&v->members[i].elf.needed, n->file))
			return true;
	return false;
}

enum version_file verify_version_file(struct verifying *v, const struct verify_member *m,
				      const struct strlist *closure, const char *file)
{
	const struct need n = {v, m, closure, file};

	if (v->musl || is_loaded_always(file) || strlist_contains(closure, file))
		return VERSION_FILE_LOADED;
	if (may_come_along(&n))
		return VERSION_FILE_OPEN;
	return may_be_loaded(&n) ? VERSION_FILE_EARLIER : VERSION_FILE_ABSENT;
}

/* The needed library that defines a version wanted of another name; NULL. */
static const char *renamed(const struct need *n)
{
	for (size_t i = 0; i < n->m->elf.versions_count; i++) {
		const struct elf_version_need *want = &n->m->elf.versions[i];
		if (strcmp(want->file, n->file) != 0)
			continue;
		for (size_t k = 0; k < n->m->elf.needed.count; k++) {
			const struct elf_info *there =
				verify_at_hand(n->v, n->m->elf.needed.items[k]);
			if (there && strlist_contains(&there->defined_versions, want->version))
				return n->m->elf.needed.items[k];
		}
	}

	return NULL;
}

static void check_file(const struct need *n)
{
	const char *name = n->m->entry->name;
	const enum version_file state = verify_version_file(n->v, n->m, n->closure, n->file);

	if (state == VERSION_FILE_EARLIER)
		verify_add(n->v, FINDING_WARNING, RULE_UNDEFINED, name,
			   "needs versions of '%s', which no DT_NEEDED asks for: the loader aborts "
			   "unless something "
			   "has loaded it before",
			   n->file);
	if (state != VERSION_FILE_ABSENT)
		return;
	const char *other = renamed(n);
	verify_add(n->v, FINDING_ERROR, RULE_UNDEFINED, name,
		   "needs versions of '%s', which nothing loads under that name: the loader "
		   "aborts%s%s%s",
		   n->file, other ? "; '" : "", other ? other : "", other ? "' has them" : "");
}

void verify_versions(struct verifying *v, const struct verify_member *m,
		     const struct strlist *closure)
{
	struct strlist files = {0};

	for (size_t i = 0; i < m->elf.versions_count; i++) {
		const struct elf_version_need *want = &m->elf.versions[i];
		const struct elf_info *there = verify_at_hand(v, want->file);
		strlist_once(&files, v->a, want->file);
		/* The loader refuses the whole library, whichever symbols it uses. */
		if (there && !want->weak && verify_lacks_version(there, want->version))
			verify_add(v, FINDING_ERROR, RULE_UNDEFINED, m->entry->name,
				   "needs version '%s' of '%s', which does not define it",
				   want->version, want->file);
	}

	for (size_t i = 0; i < files.count; i++)
		check_file(&(struct need){v, m, closure, files.items[i]});
}
