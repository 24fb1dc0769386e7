/* Undefined symbols: without any one of them the library does not load, or fails at the first call. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/elf/elf.h"
#include "step/verify/verify.h"
#include "step/verify/verify_parts.h"

enum { SHOWN_MAX = 10 }; /* findings of one library */

enum origin { PROVIDED, OPEN, UNVERSIONED, MISSING };

struct symbols {
	struct verifying *v;
	void *libc, *libm;      /* this machine's */
	struct strlist defined; /* sorted; by any library inside and of the companions */
	bool *open;             /* by member: it needs, itself or through others, a library that was not given */
};

static void add_defined(struct symbols *l, const struct elf_info *info)
{
	strlist_refs(&l->defined, l->v->a, info->defined.items, info->defined.count);
}

static const struct verify_member *inside(const struct verifying *v, const char *needed)
{
	const struct verify_member *m = verify_inside(v, needed);
	return m && verify_is_library(m) ? m : NULL;
}

static bool at_hand(const struct verifying *v, const char *needed)
{
	for (size_t i = 0; i < v->q->companions_count; i++) {
		if (strcmp(v->q->companions[i].soname, needed) == 0)
			return true;
	}
	return inside(v, needed) != NULL;
}

/* Whether every symbol of this system library has a version, so that one wanted without is from somewhere else. */
static bool is_versioned_system(const struct verifying *v, unsigned machine, const char *needed)
{
	return strncmp(needed, "ld-linux", 8) == 0 ||
	       (v->q->policy && manylinux_allows(v->q->policy, machine, needed) &&
		manylinux_versioned(v->q->policy, needed));
}

/* A library that needs an open one is open too; there are few libraries, and few rounds. */
static void find_open(struct symbols *l)
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

static bool is_defined(const struct symbols *l, const char *name)
{
	return text_find(name, l->defined.items, l->defined.count, sizeof(name));
}

/* Python's own functions come from the program that loads an extension module. */
static bool is_python(const char *name)
{
	return strncmp(name, "Py", 2) == 0 || strncmp(name, "_Py", 3) == 0;
}

/* Wanted without a version, as a linker writes it that did not see the library. It works, because the C library is
 * always loaded. The names are the same on every machine. */
static bool is_libc(const struct symbols *l, const char *name)
{
	return (l->libc && dlsym(l->libc, name)) || (l->libm && dlsym(l->libm, name));
}

static enum origin of_version(const struct symbols *l, const struct verify_member *m, const char *name,
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
		if (is_defined(l, name))
			return PROVIDED;
	}
	return MISSING;
}

static enum origin origin_of(const struct symbols *l, const struct verify_member *m, const char *symbol)
{
	const char *at = strchr(symbol, '@');
	if (at)
		return of_version(l, m, arena_strndup(l->v->a, symbol, (size_t)(at - symbol)), at + 1);
	if (is_defined(l, symbol) || is_python(symbol))
		return PROVIDED;
	if (is_libc(l, symbol))
		return l->v->musl ? PROVIDED : UNVERSIONED; /* musl's symbols have no versions */
	return l->open[m - l->v->members] ? OPEN : MISSING;
}

static void check_library(const struct symbols *l, const struct verify_member *m, size_t *open)
{
	struct strlist unversioned = {0}, elsewhere = {0};
	const char *unseen = verify_not_given(l->v);
	size_t missing = 0;
	for (size_t i = 0; i < m->elf.undefined.count; i++) {
		const char *symbol = m->elf.undefined.items[i];
		enum origin o = origin_of(l, m, symbol);
		*open += o == OPEN;
		if (o == UNVERSIONED)
			strlist_ref(&unversioned, l->v->a, symbol);
		if (o == MISSING && *unseen && !strchr(symbol, '@'))
			strlist_ref(&elsewhere, l->v->a, demangle(symbol, l->v->a));
		else if (o == MISSING && missing++ < SHOWN_MAX)
			verify_add(l->v, FINDING_ERROR, "undefined", m->entry->name,
				   "needs the symbol '%s', which nothing provides", demangle(symbol, l->v->a));
	}
	/* By ctypes.CDLL with RTLD_GLOBAL, say. */
	if (elsewhere.count)
		verify_add(
			l->v, FINDING_NOTE, "undefined", m->entry->name,
			"needs the symbol '%s', which the wheel does not provide%s; a package that it or an extra of "
			"it requires may have loaded it (give it with --with): %s",
			elsewhere.items[0],
			elsewhere.count > 1 ? arena_printf(l->v->a, ", the first of %zu", elsewhere.count) : "",
			unseen);
	/* Python itself has loaded both. */
	if (unversioned.count)
		verify_add(
			l->v, l->v->ours ? FINDING_WARNING : FINDING_NOTE, "undefined", m->entry->name,
			"uses %s of the C library, which it does not need by name: something else must have loaded it",
			strlist_join(&unversioned, l->v->a, ", "));
	if (missing > SHOWN_MAX)
		verify_add(l->v, FINDING_ERROR, "undefined", m->entry->name,
			   "needs %zu more symbols that nothing provides", missing - SHOWN_MAX);
}

/* The libraries that were not given, each once. */
static const char *absent(const struct symbols *l)
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
	struct symbols l = {.v = v};
	size_t open = 0;
	if (!v->q->policy)
		return;
	/* Both are loaded already. */
	l.libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	l.libm = dlopen("libm.so.6", RTLD_LAZY | RTLD_NOLOAD);
	for (size_t i = 0; i < v->count; i++)
		add_defined(&l, &v->members[i].elf);
	for (size_t i = 0; i < v->q->companions_count; i++)
		add_defined(&l, &v->q->companions[i]);
	strlist_sort(&l.defined);
	find_open(&l);
	for (size_t i = 0; i < v->count; i++) {
		if (verify_is_library(&v->members[i]))
			check_library(&l, &v->members[i], &open);
	}
	if (l.libc)
		dlclose(l.libc);
	if (l.libm)
		dlclose(l.libm);
	if (open)
		verify_add(v, FINDING_NOTE, "undefined-unchecked", "",
			   "%zu symbol%s may come from libraries that were not given: %s", open, open == 1 ? "" : "s",
			   absent(&l));
}

/* Libraries that are installed beside the wheel, read for the symbols that they define. */
static void make_room(struct companions *c, size_t more, struct arena *a)
{
	struct elf_info *grown = arena_array(a, c->count + more, sizeof(*grown));
	if (c->count)
		memcpy(grown, c->items, c->count * sizeof(*grown));
	c->items = grown;
}

/* Without a SONAME a library is needed by the name of its file. */
static int read_one(const char *path, const char *name, struct arena *a, struct companions *c, struct err *e)
{
	struct elf_info *info = &c->items[c->count];
	int rc = elf_try(path, ELF_SYMBOLS, a, info, e);
	if (rc <= 0)
		return rc;
	if (!*info->soname)
		info->soname = arena_strdup(a, path_base(name));
	c->count++;
	return 0;
}

static int read_member(struct zip_reader *z, const struct zip_entry *en, const char *tmp, struct arena *a,
		       struct companions *c, struct err *e)
{
	AUTO_FD int fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", tmp);
	if (zip_extract_fd(z, en, fd, NULL, e) < 0)
		return -1;
	return read_one(tmp, en->name, a, c, e) < 0 ? err_wrap(e, "%s", en->name) : 0;
}

int companions_of_wheel(const char *wheel, const struct run *run, struct arena *a, struct companions *c, struct err *e)
{
	struct zip_reader *z;
	char *dir;
	if (zip_open(wheel, a, &z, e) < 0)
		return -1;
	make_room(c, zip_count(z), a);
	int rc = fs_temp_dir(NULL, "ptbuild-verify-", a, &dir, e);
	bool made = rc == 0;
	for (size_t i = 0; i < zip_count(z) && rc == 0; i++) {
		const struct zip_entry *en = zip_at(z, i);
		if (strstr(path_base(en->name), ".so"))
			rc = run_check(run, e) < 0 ? -1 : read_member(z, en, path_join(a, dir, "member"), a, c, e);
	}
	if (made)
		(void)!fs_remove(TRUSTED, dir, ERR_IGNORED);
	zip_close(z);
	return rc;
}

int companions_of_files(const struct strlist *paths, struct arena *a, struct companions *c, struct err *e)
{
	make_room(c, paths->count, a);
	for (size_t i = 0; i < paths->count; i++) {
		if (read_one(paths->items[i], paths->items[i], a, c, e) < 0)
			return -1;
	}
	return 0;
}
