/* Thread pools: two in one process spin against each other. */
#include <fnmatch.h>

#include "step/verify/verify_parts.h"

struct pool { /* one that is there when the wheel is used */
	const struct pool_row *row;
	const char *library; /* the name it is loaded by */
	const char *file;    /* the member that it is, or that needs it; NULL: of a companion */
	bool outside;
};

struct pools {
	struct verifying *v;
	struct pool *items;
	size_t count, cap;
};

/* Symbols may have a version behind '@'. Few names are globs, and libraries have a hundred thousand symbols. */
static bool has_symbol(const struct strlist *symbols, const char *name)
{
	bool glob = strpbrk(name, "*?[") != NULL;
	size_t len = strlen(name);
	for (size_t i = 0; i < symbols->count; i++) {
		const char *s = symbols->items[i];
		if (glob ? fnmatch(name, s, 0) == 0 : strncmp(s, name, len) == 0 && (!s[len] || s[len] == '@'))
			return true;
	}
	return false;
}

static size_t count_symbols(const struct strlist *symbols, const char **names, unsigned count)
{
	size_t n = 0;
	for (unsigned i = 0; i < count; i++)
		n += has_symbol(symbols, names[i]);
	return n;
}

static bool is_pool(const struct pool_row *row, const struct elf_info *info, const char *name)
{
	if (!row->defines_count)
		return strings_match(row->libraries, row->libraries_count, name);
	return count_symbols(&info->defined, row->defines, row->defines_count) == row->defines_count &&
	       (!row->wants_count || count_symbols(&info->undefined, row->wants, row->wants_count)) &&
	       !count_symbols(&info->defined, row->without, row->without_count) &&
	       !count_symbols(&info->undefined, row->without, row->without_count);
}

/* The loader loads a name once. */
static void add_pool(struct pools *l, struct pool pool)
{
	for (size_t i = 0; i < l->count; i++) {
		if (l->items[i].row == pool.row && strcmp(l->items[i].library, pool.library) == 0)
			return;
	}
	l->items = arena_room(l->v->a, l->items, l->count, &l->cap, 4, sizeof(*l->items));
	l->items[l->count++] = pool;
}

static void add_library(struct pools *l, const struct elf_info *info, const char *name, const char *file)
{
	const struct pool_file *rows = &l->v->q->tables->threads;
	for (unsigned i = 0; i < rows->pools_count; i++) {
		if (is_pool(&rows->pools[i], info, name))
			add_pool(l, (struct pool){&rows->pools[i], name, file, false});
	}
}

/* What a library needs that is not in the wheel is known by its name alone. */
static void add_needed(struct pools *l, const struct verify_member *m)
{
	const struct pool_file *rows = &l->v->q->tables->threads;
	for (size_t k = 0; k < m->elf.needed.count; k++) {
		const char *needed = m->elf.needed.items[k];
		for (unsigned i = 0; i < rows->pools_count; i++) {
			if (strings_match(rows->pools[i].libraries, rows->pools[i].libraries_count, needed) &&
			    !verify_inside(l->v, needed))
				add_pool(l, (struct pool){&rows->pools[i], needed, m->entry->name, true});
		}
	}
}

static void find_pools(struct pools *l)
{
	struct verifying *v = l->v;
	for (size_t i = 0; i < v->q->companions_count; i++)
		add_library(l, &v->q->companions[i], v->q->companions[i].soname, NULL);
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (verify_is_library(m))
			add_library(l, &m->elf, *m->elf.soname ? m->elf.soname : path_base(m->entry->name),
				    m->entry->name);
	}
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (m->kind == ELF_HOST && !m->elf_broken)
			add_needed(l, m);
	}
}

void verify_threads(struct verifying *v)
{
	struct pools l = {.v = v};
	const struct pool *openmp = NULL;
	if (!v->q->tables)
		return;
	find_pools(&l);
	for (size_t i = 0; i < l.count && !openmp; i++)
		openmp = l.items[i].row->openmp ? &l.items[i] : NULL;
	/* Wheels of other packages never promised to be loaded beside another pool. */
	bool torch = v->named && strcmp(wheel_normalize(v->report.name.dist, v->a), "torch") == 0;
	for (size_t i = 0; openmp && i < l.count; i++) {
		const struct pool *p = &l.items[i];
		if (p == openmp || !p->file)
			continue;
		verify_add(v, torch || v->ours ? FINDING_ERROR : FINDING_WARNING, "threads", p->file,
			   "%s%s%s%s%s beside '%s' (%s): %s; %s", p->outside ? "needs '" : "is ",
			   p->outside ? p->library : "", p->outside ? "' (" : "", p->row->name, p->outside ? ")" : "",
			   openmp->library, openmp->row->name, p->row->why, p->row->instead);
	}
}
