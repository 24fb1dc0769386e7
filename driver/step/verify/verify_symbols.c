/* Undefined symbols: each must come from somewhere, or the library does not load (or fails at the first call). */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "core/elf/demangle.h"
#include "step/verify/verify_parts.h"

enum { TOLD_MAX = 10 }; /* symbols of one library that are told one by one */

enum origin { PROVIDED, OPEN, UNSAID, MISSING };

struct names { /* sorted */
	const char **items;
	size_t count;
};

struct looking {
	struct verifying *v;
	void *libc, *libm;    /* this machine's */
	struct names defined; /* by any library inside and of the companions at hand */
	bool *open;           /* by member: a library that it needs, itself or through others inside, is not at hand */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has(const struct names *n, const char *name)
{
	return n->count && bsearch(&name, n->items, n->count, sizeof(*n->items), by_name);
}

static bool is_library(const struct verify_member *m)
{
	return m->is_elf && !m->elf_broken && m->elf.dynamic;
}

static struct names collect(struct verifying *v)
{
	struct names n = {0};
	size_t total = 0;
	for (size_t i = 0; i < v->count; i++)
		total += v->members[i].elf.defined.count;
	for (size_t i = 0; i < v->q->companions_count; i++)
		total += v->q->companions[i].defined.count;
	n.items = arena_array(v->a, total, sizeof(*n.items));
	for (size_t i = 0; i < v->count + v->q->companions_count; i++) {
		const struct strlist *l =
			i < v->count ? &v->members[i].elf.defined : &v->q->companions[i - v->count].defined;
		for (size_t k = 0; k < l->count; k++)
			n.items[n.count++] = l->items[k];
	}
	if (n.count)
		qsort(n.items, n.count, sizeof(*n.items), by_name);
	return n;
}

static bool answers_to(const struct elf_info *info, const char *path, const char *needed)
{
	return (info->soname && strcmp(info->soname, needed) == 0) || (path && strcmp(path_base(path), needed) == 0);
}

static const struct verify_member *inside(const struct verifying *v, const char *needed)
{
	for (size_t i = 0; i < v->count; i++) {
		if (is_library(&v->members[i]) && answers_to(&v->members[i].elf, v->members[i].entry->name, needed))
			return &v->members[i];
	}
	return NULL;
}

static bool at_hand(const struct verifying *v, const char *needed)
{
	for (size_t i = 0; i < v->q->companions_count; i++) {
		if (answers_to(&v->q->companions[i], NULL, needed))
			return true;
	}
	return inside(v, needed) != NULL;
}

/* Whether all that a library of the system offers is asked for with its version, so that a symbol without one is of
 * somebody else. */
static bool is_versioned_system(const struct verifying *v, unsigned machine, const char *needed)
{
	return strncmp(needed, "ld-linux", 8) == 0 ||
	       (v->q->policy && manylinux_allows(v->q->policy, machine, needed) &&
		manylinux_versioned(v->q->policy, needed));
}

/* What is open spreads to those who need it; there are few libraries, and few rounds. */
static void find_open(struct looking *l)
{
	struct verifying *v = l->v;
	l->open = arena_array(v->a, v->count, sizeof(*l->open));
	for (bool grown = true; grown;) {
		grown = false;
		for (size_t i = 0; i < v->count; i++) {
			const struct elf_info *info = &v->members[i].elf;
			bool open = l->open[i];
			for (size_t k = 0; k < info->needed.count && !open; k++) {
				const struct verify_member *m = inside(v, info->needed.items[k]);
				open = m ? l->open[m - v->members]
					 : !at_hand(v, info->needed.items[k]) &&
						       !is_versioned_system(v, info->machine, info->needed.items[k]);
			}
			grown = grown || open != l->open[i];
			l->open[i] = open;
		}
	}
}

/* Python's own functions come from the program that loads an extension module. */
static bool is_python(const char *name)
{
	return strncmp(name, "Py", 2) == 0 || strncmp(name, "_Py", 3) == 0;
}

/* Wanted without a version, as linkers write it that did not see the library: it works where something else has loaded
 * the C library, and it always has, but nothing says so. The names are the same on every machine. */
static bool is_libc(const struct looking *l, const char *name)
{
	return (l->libc && dlsym(l->libc, name)) || (l->libm && dlsym(l->libm, name));
}

static enum origin of_version(const struct looking *l, const struct verify_member *m, const char *name,
			      const char *version)
{
	const struct verifying *v = l->v;
	for (size_t i = 0; i < m->elf.versions_count; i++) {
		const char *file = m->elf.versions[i].file;
		if (strcmp(m->elf.versions[i].version, version) != 0)
			continue;
		/* Versions of system libraries are compared with the policy by the rule `tag`. */
		if (!at_hand(v, file))
			return v->q->policy && manylinux_allows(v->q->policy, m->elf.machine, file) ? PROVIDED : OPEN;
		if (has(&l->defined, name))
			return PROVIDED;
	}
	return MISSING;
}

static enum origin origin_of(const struct looking *l, const struct verify_member *m, const char *symbol)
{
	const char *at = strchr(symbol, '@');
	if (at)
		return of_version(l, m, arena_strndup(l->v->a, symbol, (size_t)(at - symbol)), at + 1);
	if (has(&l->defined, symbol) || is_python(symbol))
		return PROVIDED;
	if (is_libc(l, symbol))
		return UNSAID;
	return l->open[m - l->v->members] ? OPEN : MISSING;
}

static void check_library(const struct looking *l, const struct verify_member *m, size_t *open)
{
	struct strlist unsaid = {0};
	size_t missing = 0;
	for (size_t i = 0; i < m->elf.undefined.count; i++) {
		const char *symbol = m->elf.undefined.items[i];
		enum origin o = origin_of(l, m, symbol);
		*open += o == OPEN;
		if (o == UNSAID)
			strlist_ref(&unsaid, l->v->a, symbol);
		if (o == MISSING && missing++ < TOLD_MAX)
			verify_add(l->v, FINDING_ERROR, "undefined", m->entry->name,
				   "needs the symbol '%s', which nothing provides", demangle(symbol, l->v->a));
	}
	if (unsaid.count)
		verify_add(l->v, FINDING_WARNING, "undefined", m->entry->name,
			   "wants %s of the C library without naming it: it leaves that to whoever loads it",
			   strlist_join(&unsaid, l->v->a, ", "));
	if (missing > TOLD_MAX)
		verify_add(l->v, FINDING_ERROR, "undefined", m->entry->name,
			   "needs %zu more symbols that nothing provides", missing - TOLD_MAX);
}

/* The libraries that would have to be at hand, each once. */
static const char *absent(const struct looking *l)
{
	struct verifying *v = l->v;
	struct strlist names = {0};
	for (size_t i = 0; i < v->count; i++) {
		const struct elf_info *info = &v->members[i].elf;
		for (size_t k = 0; k < info->needed.count; k++) {
			const char *needed = info->needed.items[k];
			if (!at_hand(v, needed) && !is_versioned_system(v, info->machine, needed) &&
			    !strlist_contains(&names, needed))
				strlist_ref(&names, v->a, needed);
		}
	}
	strlist_sort(&names);
	return strlist_join(&names, v->a, ", ");
}

void verify_symbols(struct verifying *v)
{
	struct looking l = {.v = v};
	size_t open = 0;
	if (!v->q->policy)
		return;
	/* Both are loaded already. */
	l.libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	l.libm = dlopen("libm.so.6", RTLD_LAZY | RTLD_NOLOAD);
	l.defined = collect(v);
	find_open(&l);
	for (size_t i = 0; i < v->count; i++) {
		if (is_library(&v->members[i]))
			check_library(&l, &v->members[i], &open);
	}
	if (l.libc)
		dlclose(l.libc);
	if (l.libm)
		dlclose(l.libm);
	if (open)
		verify_add(v, FINDING_NOTE, "undefined-unchecked", "",
			   "%zu symbol%s may come from libraries that are not at hand: %s", open, open == 1 ? "" : "s",
			   absent(&l));
}
