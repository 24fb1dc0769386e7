/* Where the loader finds what a library needs: ld.so(8), and what glibc does of it. */

#include "core/plan/cuda_libraries.h"
#include "step/verify/verify_parts.h"

struct library {
	const struct verify_member *m;
	const char *installed; /* below SITE; NULL: elsewhere */
	struct strlist dirs;   /* of DT_RUNPATH, else of DT_RPATH, below "/" */
	bool handed_on;        /* they are of DT_RPATH, and serve what it loads as well */
	bool seen;
};

/* The site-packages of an environment, into which data and scripts are installed as well. */
#define SITE "lib/python/site-packages"

struct loading {
	struct verifying *v;
	struct library *libraries;
	size_t count;
	struct strlist installed; /* every member, below the prefix of an environment, sorted */
	struct strlist told;      /* NEEDED names that there is a finding for */
	/* of other makers: libraries with DT_RUNPATH, and entries that lead elsewhere */
	struct verify_some runpaths, absolute, outside, empty, lost;
};

/* What may stay outside because torch brings it, under any SONAME version, which distributions
 * add: torch's own libraries, and the OpenMP runtime, of which a process must have only one. */
static const char *const torch_libraries[] = {"libtorch.so*", "libtorch_*.so*", "libc10.so*",
					      "libc10_*.so*", "libshm.so*",     "libgomp.so.1"};

bool verify_is_of_torch(const char *needed)
{
	return strings_match(torch_libraries, ARRAY_LEN(torch_libraries), needed);
}

/* glibc's: "ld-linux-x86-64.so.2", "ld64.so.2" on POWER. */
bool verify_is_loader(const char *needed)
{
	return strncmp(needed, "ld-linux", 8) == 0 || strncmp(needed, "ld64.so.", 8) == 0;
}

static bool is_provided(const struct verifying *v, const char *needed)
{
	return strings_match(v->q->provided.items, v->q->provided.count, needed) ||
	       (strlist_contains(&v->requires, "torch") && verify_is_of_torch(needed));
}

/* What follows "$ORIGIN/"; NULL if the entry does not begin so. */
static const char *behind_origin(const char *entry)
{
	static const char *const words[] = {"$ORIGIN", "${ORIGIN}"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);
		if (strncmp(entry, words[i], n) == 0 && (entry[n] == '\0' || entry[n] == '/'))
			return entry + n + strspn(entry + n, "/");
	}

	return NULL;
}

void verify_count(struct verify_some *s, const char *file, const char *entry)
{
	if (s->count++ == 0)
		*s = (struct verify_some){1, file, entry};
}

const char *verify_more(struct verifying *v, const struct verify_some *s, const char *what)
{
	return s->count > 1 ? arena_printf(v->a, "; it is the first of %zu such %s", s->count, what)
			    : "";
}

/* A directory that other makers' libraries may name on purpose is no error there, and reported
 * once. */
static void tell_entry(struct loading *g, const struct library *l, struct verify_some *s,
		       const char *entry, const char *tag, const char *what)
{
	if (g->v->ours)
		verify_add(g->v, FINDING_ERROR, RULE_RPATH, l->m->entry->name,
			   "has '%s' in its %s, which %s", entry, tag, what);
	else
		verify_count(s, l->m->entry->name, entry);
}

static void tell_some(struct verifying *v, enum finding_level level, const struct verify_some *s,
		      const char *what)
{
	if (s->count)
		verify_add(v, level, RULE_RPATH, s->file, "looks for libraries in '%s', which %s%s",
			   s->entry, what, verify_more(v, s, "entries"));
}

/* Below the prefix of an environment; NULL for headers, whose place depends on the Python. */
static const char *placed(const char *name, struct arena *a)
{
	const char *site = wheel_installed(name), *data = strstr(name, ".data/data/"),
		   *scripts = strstr(name, ".data/scripts/");

	if (site)
		return path_join(a, SITE, site);
	if (data)
		return data + strlen(".data/data/");
	return scripts ? path_join(a, "bin", scripts + strlen(".data/scripts/")) : NULL;
}

static bool holds_files(const struct loading *g, const char *dir)
{
	for (size_t i = 0; i < g->installed.count; i++)
		if (path_below(g->installed.items[i], dir))
			return true;
	return false;
}

#define NOT_OF_ORIGIN "does not begin with $ORIGIN"
#define LEAVES "leaves site-packages"

/* strsep, because an empty entry means the current directory. */
static void read_path(struct loading *g, struct library *l, const char *path, const char *tag)
{
	struct verifying *v = g->v;

	/* An empty path has no entries: patchelf and strip leave it. */
	for (char *rest = *path ? arena_strdup(v->a, path) : NULL, *entry;
	     (entry = strsep(&rest, ":"));) {
		const char *relative = behind_origin(entry);
		if (!relative) {
			tell_entry(g, l, *entry ? &g->absolute : &g->empty, entry, tag,
				   NOT_OF_ORIGIN);
			continue;
		}

		const char *from = path_dir(
			v->a, path_join(v->a, "/" SITE, l->installed ? l->installed : "x"));
		const char *dir = path_absolute(v->a, from, *relative ? relative : ".");
		bool inside = strcmp(dir, "/" SITE) == 0 || path_below(dir, "/" SITE) ||
			      (dir[1] && holds_files(g, dir + 1));
		if (l->installed && !inside) {
			tell_entry(g, l, &g->outside, entry, tag, LEAVES);
			continue;
		}

		strlist_ref(&l->dirs, v->a, dir);
	}
}

const struct verify_member *verify_inside(const struct verifying *v, const char *needed)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (m->kind == ELF_HOST && (strcmp(path_base(m->entry->name), needed) == 0 ||
					    (m->elf.soname && strcmp(m->elf.soname, needed) == 0)))
			return m;
	}

	return NULL;
}

static bool reaches(const struct loading *g, const struct strlist *dirs, const char *needed)
{
	for (size_t i = 0; i < dirs->count; i++) {
		const char *path = path_join(g->v->a, dirs->items[i], needed) + 1;
		if (text_find(path, g->installed.items, g->installed.count, sizeof(path)))
			return true;
	}

	return false;
}

static bool loads(const struct library *l, const struct verify_member *m)
{
	for (size_t i = 0; i < l->m->elf.needed.count; i++) {
		const char *needed = l->m->elf.needed.items[i];
		if (strcmp(needed, path_base(m->entry->name)) == 0 ||
		    (m->elf.soname && strcmp(needed, m->elf.soname) == 0))
			return true;
	}

	return false;
}

/* Whether what loads the library makes the name known: it needs it, too,
 * and finds it, so that it is loaded already; or its DT_RPATH is searched
 * for all that it loads, unless that has a DT_RUNPATH. */
static bool loaders_reach(struct loading *g, const struct verify_member *m, const char *needed,
			  bool handed_on)
{
	for (size_t i = 0; i < g->count; i++) {
		struct library *l = &g->libraries[i];
		if (l->seen || l->m == m || !loads(l, m))
			continue;
		l->seen = true;
		bool searches = handed_on && l->handed_on;
		searches = searches || strlist_contains(&l->m->elf.needed, needed);
		if (searches && reaches(g, &l->dirs, needed))
			return true;
		if (loaders_reach(g, l->m, needed, handed_on && !l->m->elf.runpath))
			return true;
	}

	return false;
}

static bool is_reached(struct loading *g, const struct library *l, const char *needed)
{
	if (!l->installed || reaches(g, &l->dirs, needed))
		return true;
	for (size_t i = 0; i < g->count; i++)
		g->libraries[i].seen = false;
	return loaders_reach(g, l->m, needed, !l->m->elf.runpath);
}

/* Wheels of other makers: a missing library is reported once, whatever needs it. */
static bool is_untold(struct loading *g, const char *needed)
{
	if (!g->v->ours && strlist_contains(&g->told, needed))
		return false;
	strlist_ref(&g->told, g->v->a, needed);
	return true;
}

/* A library of CUDA's in a wheel that ptbuild did not build, where no
 * requirement brings it. torch for CUDA requires those that it needs itself. */
static void tell_unrequired(struct loading *g, const char *name, const char *needed)
{
	struct verifying *v = g->v;
	struct strlist holders = {0};

	if (!is_untold(g, needed))
		return;
	cuda_holders(v->q->tables, needed, v->a, &holders);
	const char *packages = strlist_join(&holders, v->a, " or ");
	if (cuda_source(v->q->tables, &v->optional, needed, v->a) == CUDA_PACKAGE)
		verify_add(v, FINDING_NOTE, RULE_NEEDED, name,
			   "needs '%s', which an extra of the wheel alone brings (%s)", needed,
			   packages);
	else if (strlist_contains(&v->requires, "torch") &&
		 !strlist_contains(&v->q->given, "torch"))
		verify_add(v, FINDING_NOTE, RULE_NEEDED, name,
			   "needs '%s', which the wheel does not require; torch may bring it (give "
			   "it with --with): %s",
			   needed, packages);
	else
		verify_add(v, FINDING_WARNING, RULE_NEEDED, name,
			   "needs '%s', which no requirement brings%s: %s", needed,
			   cuda_source(v->q->tables, &v->off, needed, v->a) == CUDA_PACKAGE
				   ? " for these Pythons and platforms"
				   : "",
			   packages);
}

/* CUDA's libraries stay outside of the wheel: they come from packages that it requires, or from the
 * system. A promise for GPUs needs them, also where neither it nor the label names a toolkit. */
static bool is_of_cuda(struct loading *g, const char *name, const char *needed)
{
	struct verifying *v = g->v;
	const struct promise *p = &v->report.promise;
	enum cuda_source source =
		v->q->tables ? cuda_source(v->q->tables, &v->brought, needed, v->a) : CUDA_UNKNOWN;
	bool cuda = p->cuda || p->gpu.count;

	if (source == CUDA_SYSTEM && !v->ours && !p->binding) {
		tell_unrequired(g, name, needed);
		return true;
	}

	if (source == CUDA_UNKNOWN || (p->binding && !cuda) || (source == CUDA_SYSTEM && !cuda))
		return false;
	if (source == CUDA_SYSTEM && is_untold(g, needed))
		verify_add(v, FINDING_NOTE, RULE_NEEDED, name,
			   "needs '%s', which no required package holds: the machine that runs it "
			   "must have it",
			   needed);
	return true;
}

/* Whether a library of CUDA that is in the wheel as
 * well is the machine's, or torch has loaded it before. */
static bool is_brought(struct verifying *v, const char *needed)
{
	if (!v->q->tables)
		return false;
	const enum cuda_source source = cuda_source(v->q->tables, &v->requires, needed, v->a);
	return source == CUDA_DRIVER || source == CUDA_PACKAGE ||
	       (source == CUDA_SYSTEM && strlist_contains(&v->requires, "torch"));
}

/* What musllinux leaves outside: the C library, under the names that linkers give it, and zlib. */
static bool is_musl(const struct verifying *v, const char *needed)
{
	const struct manylinux_policy *p = v->q->policy;
	return v->musl && p && strings_match(p->musl, p->musl_count, needed);
}

/* ptbuild knows what its own wheels may find there. */
void verify_not_given(const struct verifying *v, struct strlist *ret)
{
	const struct strlist *lists[] = {&v->requires, &v->optional};

	for (size_t k = 0; k < ARRAY_LEN(lists) && !v->ours; k++)
		for (size_t i = 0; i < lists[k]->count; i++)
			if (!strlist_contains(&v->q->given, lists[k]->items[i]))
				strlist_once(ret, v->a, lists[k]->items[i]);
}

/* "avutil" of "libavutil.so.56". */
static const char *stem_of(const char *needed, struct arena *a)
{
	const char *from = needed + (strncmp(needed, "lib", 3) == 0 ? 3 : 0);
	return wheel_normalize(arena_strndup(a, from, strcspn(from, ".")), a);
}

/* Those of the names that are in the library's name, or have it in theirs. */
static void find_namesakes(const struct verifying *v, const struct strlist *names,
			   const char *needed, struct strlist *ret)
{
	enum { SHORTEST = 3 };
	const char *stem = stem_of(needed, v->a);

	for (size_t i = 0; i < names->count; i++) {
		const char *name = names->items[i], *suffix = strrchr(name, '_');
		const bool cuda = suffix && strncmp(suffix, "_cu", 3) == 0;
		const char *bare = cuda ? arena_strndup(v->a, name, (size_t)(suffix - name)) : name;
		bare += strncmp(bare, "lib", 3) == 0 ? 3 : 0;
		if (strlen(bare) >= SHORTEST && strlen(stem) >= SHORTEST &&
		    (strstr(bare, stem) || strstr(stem, bare)))
			strlist_ref(ret, v->a, name);
	}
}

static void tell_missing(struct loading *g, const struct library *l, const char *needed)
{
	struct strlist unseen = {0}, namesakes = {0};
	const char *name = l->m->entry->name;
	bool of_torch = verify_is_of_torch(needed) && strncmp(needed, "libgomp", 7) != 0;

	if (!is_untold(g, needed))
		return;
	verify_not_given(g->v, &unseen);
	find_namesakes(g->v, &unseen, needed, &namesakes);
	if (unseen.count && !of_torch)
		verify_add(g->v, FINDING_NOTE, RULE_NEEDED, name,
			   "needs '%s', which is not in the wheel; %s (give it with --with)%s%s",
			   needed,
			   namesakes.count ? "a package that it requires may hold it"
					   : "no package that it requires has its name",
			   namesakes.count ? ": " : "", strlist_join(&namesakes, g->v->a, ", "));
	else if (of_torch && !g->v->ours)
		verify_add(g->v, FINDING_WARNING, RULE_NEEDED, name,
			   "needs '%s' of torch, which the wheel does not require: it loads only "
			   "after 'import torch'",
			   needed);
	else
		verify_add(g->v, FINDING_ERROR, RULE_NEEDED, name,
			   "needs '%s', which is neither in the wheel, nor from a dependency, nor "
			   "allowed by %s",
			   needed, g->v->musl ? "musllinux" : "manylinux");
}

/* Libraries of the driver that a stub stands for at link time have the same name. */
static bool is_stub(const char *name)
{
	return strstr(name, "/stubs/") != NULL;
}

/* The first library that needs it and finds it in the wheel; NULL. */
static const struct library *loader_of(struct loading *g, const struct verify_member *m)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct library *l = &g->libraries[i];
		const char *base = path_base(m->entry->name);
		const bool needs = l->m != m && strlist_contains(&l->m->elf.needed, base);
		if (needs && is_reached(g, l, base))
			return l;
	}

	return NULL;
}

/* The driver's libraries talk to its kernel module, which
 * must have the same version: they are the machine's. */
static void check_driver(struct loading *g, const struct library *l)
{
	const struct tables *t = g->v->q->tables;
	const char *name = l->m->entry->name;

	if (!t || (!strings_match(t->driver_files, t->driver_files_count, path_base(name)) &&
		   !strings_match(t->driver_files, t->driver_files_count, l->m->elf.soname)))
		return;
	const struct library *by = loader_of(g, l->m);
	if (by)
		verify_add(g->v, FINDING_ERROR, RULE_DRIVER, name,
			   "is a library of NVIDIA's driver, and '%s' loads it instead of the "
			   "machine's: it must have "
			   "the version of the machine's kernel module",
			   by->m->entry->name);
	else if (is_stub(name))
		verify_add(g->v, FINDING_NOTE, RULE_DRIVER, name,
			   "is for linking: a program needs the machine's own, of its driver");
	else
		verify_add(g->v, FINDING_WARNING, RULE_DRIVER, name,
			   "is a library of NVIDIA's driver: the machine has its own, of the "
			   "version of its kernel "
			   "module");
}

static void check_needed(struct loading *g, const struct library *l)
{
	struct verifying *v = g->v;
	const char *name = l->m->entry->name;
	struct strlist lost = {0};

	for (size_t i = 0; i < l->m->elf.needed.count; i++) {
		const char *needed = l->m->elf.needed.items[i];
		const struct verify_member *inside = verify_inside(v, needed);
		if (strchr(needed, '/'))
			verify_add(v, FINDING_ERROR, RULE_NEEDED, name, "needs '%s' by its path",
				   needed);
		else if ((inside && is_reached(g, l, needed)) || is_provided(v, needed) ||
			 (verify_is_loader(needed) || is_musl(v, needed) ||
			  (!v->musl && v->q->policy && manylinux_allows(v->q->policy, needed))))
			continue;
		else if (inside && !is_brought(v, needed))
			strlist_ref(&lost, v->a, needed);
		else if (!inside && !is_of_cuda(g, name, needed))
			tell_missing(g, l, needed);
	}

	if (lost.count)
		verify_count(&g->lost, name, strlist_join(&lost, v->a, "', '"));
}

void verify_load(struct verifying *v)
{
	struct loading g = {.v = v, .libraries = arena_array(v->a, v->count, sizeof(*g.libraries))};

	for (size_t i = 0; i < v->count; i++) {
		const char *place = placed(v->members[i].entry->name, v->a);
		if (place)
			strlist_ref(&g.installed, v->a, place);
	}

	strlist_sort(&g.installed);
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (!verify_is_library(m))
			continue;
		struct library *l = &g.libraries[g.count++];
		*l = (struct library){.m = m, .installed = wheel_installed(m->entry->name)};
		/* With a DT_RUNPATH the loader ignores DT_RPATH, and looks at LD_LIBRARY_PATH
		 * first. */
		const struct elf_info *elf = &l->m->elf;
		const char *name = l->m->entry->name;
		l->handed_on = elf->rpath && !elf->runpath;
		if (elf->runpath && g.v->ours)
			verify_add(g.v, FINDING_ERROR, RULE_RPATH, name,
				   "has a DT_RUNPATH ('%s'), after which LD_LIBRARY_PATH wins",
				   elf->runpath);
		else if (elf->runpath)
			verify_count(&g.runpaths, name, "");
		if (elf->runpath && elf->rpath && strcmp(elf->runpath, elf->rpath) != 0)
			verify_add(g.v, FINDING_WARNING, RULE_RPATH, name,
				   "has a DT_RPATH ('%s') that the loader passes over, because "
				   "there is a DT_RUNPATH",
				   elf->rpath);
		if (elf->runpath)
			read_path(&g, l, elf->runpath, "DT_RUNPATH");
		else if (elf->rpath)
			read_path(&g, l, elf->rpath, "DT_RPATH");
	}

	for (size_t i = 0; i < g.count; i++) {
		check_needed(&g, &g.libraries[i]);
		check_driver(&g, &g.libraries[i]);
	}

	tell_some(v, FINDING_ERROR, &g.empty, "means the current directory");
	tell_some(v, FINDING_WARNING, &g.absolute, NOT_OF_ORIGIN);
	tell_some(v, FINDING_WARNING, &g.outside, LEAVES);
	if (g.runpaths.count)
		verify_add(v, FINDING_NOTE, RULE_RPATH, g.runpaths.file,
			   "has a DT_RUNPATH, after which LD_LIBRARY_PATH wins%s",
			   verify_more(v, &g.runpaths, "libraries"));
	if (g.lost.count)
		verify_add(v, FINDING_WARNING, RULE_NEEDED, g.lost.file,
			   "needs '%s', which is in the wheel but not on its search path or that "
			   "of the libraries that load it%s",
			   g.lost.entry, verify_more(v, &g.lost, "libraries"));
}
