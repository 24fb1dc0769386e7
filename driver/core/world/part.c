#include "core/world/world.h"

#include <fnmatch.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/yaml/yaml.h"

#define L struct world_link
PLAIN(link, L, NEED(L, path), NEED(L, to), NEED(L, why));
#define M struct world_made
PLAIN(made, M, NEED(M, path), NEED(M, kind), NEED(M, from), NEED(M, why));
#define W struct world_wheel
PLAIN(place, W, NEED(W, wheel), NEED(W, from), NEED(W, to));
#define V struct world_move
PLAIN(move, V, NEED(V, from), NEED(V, to));
#define S struct world_same
PLAIN(same, S, NEED(S, package), NEED(S, as));
#define F struct world_slower
PLAIN(slower, F, NEED(F, compilers), NEED_NUMBER(F, percent), NEED_NUMBER(F, seconds),
      NEED(F, source));
#define P struct world_part
PLAIN(part, P, NEED(P, sources), NEED(P, part), NEED(P, kind), MAY(P, suite), LIST(P, components),
      MAY(P, python), MAY(P, glibc), LIST(P, platforms), LIST(P, packages), LIST(P, wheels),
      MAY(P, prefix), MAY(P, manifest), LIST(P, archives), LIST(P, exclude), LIST(P, keep),
      ROWS(P, places, place), ROWS(P, links, link), ROWS(P, made, made), MAY(P, target),
      MAY(P, emulator), MAY(P, cpu), ROWS(P, moves, move), ROWS(P, same, same),
      ROWS(P, slower, slower), ROWS(P, programs, place));

/* Raised when the same table and packages give another tree. */
#define RULES_VERSION "part 3"

#define WORD "abcdefghijklmnopqrstuvwxyz0123456789"

static const struct {
	const char *platform, *debian;
} platforms[] = {{"x86_64-linux", "amd64"}, {"aarch64-linux", "arm64"}};

const char *world_debian_arch(const char *platform)
{
	for (size_t i = 0; i < ARRAY_LEN(platforms); i++)
		if (strcmp(platforms[i].platform, platform) == 0)
			return platforms[i].debian;
	return NULL;
}

const char *world_part_path(const char *path, const char *platform, struct arena *a)
{
	AUTO_BUF struct buf out = {0};

	for (const char *p = path; *p; p++)
		if (*p == '@')
			buf_printf(&out, "%s-gnu", platform);
		else
			buf_addc(&out, *p);
	return arena_strdup(a, buf_cstr(&out));
}

/* The table of a part that is checked. */
struct checking {
	const char *file, *name; /* as the part is asked for */
	const struct yaml_tree *lines;
	const struct world_part *p;
	struct err *e; /* what all checks set */
};

static int bad(const struct checking *c, unsigned line, const char *what, const char *value)
{
	return err_set(c->e, ERR_CONFIG, "%s:%u: %s '%s'", c->file, line, what, value);
}

static bool is_word(const char *s, const char *more)
{
	for (const char *p = s; *p; p++)
		if (!strchr(WORD, *p) && (p == s || !strchr(more, *p)))
			return false;
	return *s != '\0';
}

struct word_list {
	const char *key; /* of the table */
	const char *const *items;
	unsigned count;
	const char *more; /* characters that these words may have, too */
};

static int check_words(const struct checking *c, const struct word_list *l)
{
	const char *const *items = l->items;

	for (unsigned i = 0; i < l->count; i++) {
		unsigned line = yaml_line(c->lines, "%s/%u", l->key, i);
		if (!is_word(items[i], l->more))
			return bad(c, line, "not a name:", items[i]);
		if (strings_contain(items, i, items[i]))
			return bad(c, line, "there twice:", items[i]);
	}

	return 0;
}

/* Links have relative targets, so that they mean the same seen from outside of the world. */
static int check_places(const struct checking *c)
{
	const struct yaml_tree *lines = c->lines;
	const struct world_part *p = c->p;
	AUTO_ARENA struct arena a = {0};

	for (unsigned i = 0; i < p->links_count; i++) {
		const struct world_link *l = &p->links[i];
		const char *dir = strchr(l->path, '/') ? path_dir(&a, l->path) : "";
		if (!path_is_safe_relative(l->path))
			return bad(c, yaml_line(lines, "links/%u", i),
				   "not a path below the root:", l->path);
		if (*l->to == '/' || !path_stays_inside(dir, l->to))
			return bad(c, yaml_line(lines, "links/%u/to", i),
				   "not a relative target:", l->to);
	}

	for (unsigned i = 0; i < p->made_count; i++) {
		const struct world_made *m = &p->made[i];
		if (!path_is_safe_relative(m->path) || !path_is_safe_relative(m->from))
			return bad(c, yaml_line(lines, "made/%u", i),
				   "not paths below the root:", m->path);
		if (strcmp(m->kind, "copy") != 0 && strcmp(m->kind, "join") != 0)
			return bad(c, yaml_line(lines, "made/%u/kind", i),
				   "neither copy nor join:", m->kind);
	}

	for (unsigned i = 0; i < p->programs_count; i++)
		if (!path_is_safe_relative(p->programs[i].from) ||
		    !path_is_safe_relative(p->programs[i].to))
			return bad(c, yaml_line(lines, "programs/%u", i),
				   "not paths of a wheel and below the root:", p->programs[i].to);
	for (unsigned i = 0; i < p->moves_count; i++)
		if (!path_is_safe_relative(p->moves[i].from) ||
		    !path_is_safe_relative(p->moves[i].to))
			return bad(c, yaml_line(lines, "moves/%u", i),
				   "not paths below the root:", p->moves[i].from);
	return 0;
}

static int check_slower(const struct checking *c)
{
	const struct world_part *p = c->p;

	for (unsigned i = 0; i < p->slower_count; i++) {
		const struct world_slower *s = &p->slower[i];
		const unsigned line = yaml_line(c->lines, "slower/%u", i);
		const bool known = strcmp(s->compilers, "native") == 0 ||
				   strcmp(s->compilers, "emulated") == 0;
		if (!known)
			return bad(c, line, "neither native nor emulated:", s->compilers);
		if (s->percent < 100)
			return bad(c, line, "less than 100 percent for compilers that are",
				   s->compilers);
	}

	return 0;
}

/* A cross part has packages alone, and keys that no other kind has. */
static int check_cross(const struct checking *c)
{
	const struct yaml_tree *lines = c->lines;
	const struct world_part *p = c->p;
	const bool cross = strcmp(p->kind, "cross") == 0;
	const bool words = *p->target || *p->emulator || *p->cpu;
	const bool rows = p->moves_count + p->same_count + p->slower_count + p->programs_count;
	const bool keys = words || rows;
	const bool others = p->wheels_count || p->archives_count || *p->python;

	if (!cross && keys)
		return bad(c, 1,
			   "target, emulator, cpu, moves, same, slower and programs are keys of a "
			   "cross part, unlike",
			   c->name);
	if (!cross)
		return 0;
	if (!p->packages_count || others || !*p->cpu)
		return bad(c, 1, "a cross part has packages, a cpu and nothing else, unlike",
			   c->name);
	if (!world_debian_arch(p->target))
		return bad(c, yaml_line(lines, "target"), "not a platform of worlds:", p->target);
	if (!path_is_safe_relative(p->emulator))
		return bad(c, yaml_line(lines, "emulator"),
			   "not a path below the root:", p->emulator);
	for (unsigned i = 0; i < p->same_count; i++)
		if (!strings_contain(p->packages, p->packages_count, p->same[i].package))
			return bad(c, yaml_line(lines, "same/%u", i),
				   "not a package of this part:", p->same[i].package);
	return check_slower(c);
}

const struct world_wheel *world_part_place(const struct world_part *p, const char *wheel)
{
	return text_search(wheel, p->places, p->places_count, sizeof(*p->places));
}

/* Each wheel has a place; one of a toolkit without any goes by toolkit_tree.yaml. */
static int check_wheels(const struct checking *c)
{
	const struct yaml_tree *lines = c->lines;
	const struct world_part *p = c->p;
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	bool toolkit = strcmp(p->kind, "toolkit") == 0;

	for (unsigned i = 0; i < p->wheels_count; i++) {
		strlist_ref(&names, &a,
			    arena_strndup(&a, p->wheels[i], strcspn(p->wheels[i], "=")));
		if (!toolkit && !world_part_place(p, names.items[i]))
			return bad(c, yaml_line(lines, "wheels/%u", i),
				   "a wheel without an install path:", p->wheels[i]);
	}

	for (unsigned i = 0; i < p->places_count; i++) {
		const struct world_wheel *w = &p->places[i];
		unsigned line = yaml_line(lines, "places/%u", i);
		if (!strlist_contains(&names, w->wheel))
			return bad(c, line, "an install path for what is not a wheel of this part:",
				   w->wheel);
		for (unsigned j = 0; j < i; j++)
			if (strcmp(p->places[j].wheel, w->wheel) == 0 &&
			    strcmp(p->places[j].from, w->from) == 0)
				return bad(c, line, "there twice:", w->wheel);
		if (strcmp(w->from, ".") != 0 && !path_is_safe_relative(w->from))
			return bad(c, line, "not a directory of a wheel:", w->from);
		if (!path_is_safe_relative(w->to))
			return bad(c, line, "not a path below the root:", w->to);
	}

	return 0;
}

static int check(const struct checking *c)
{
	const struct yaml_tree *lines = c->lines;
	const struct world_part *p = c->p;
	const char *name = c->name;
	bool base = strcmp(p->kind, "base") == 0, python = strcmp(p->kind, "python") == 0;
	bool library = strcmp(p->kind, "library") == 0, cross = strcmp(p->kind, "cross") == 0;

	if (strcmp(p->part, name) != 0)
		return bad(c, yaml_line(lines, "part"), "the file has another name than its part",
			   p->part);
	const bool known = base || python || library || cross;
	if (!known && strcmp(p->kind, "toolkit") != 0)
		return bad(c, yaml_line(lines, "kind"),
			   "neither base, toolkit, python, library nor cross:", p->kind);
	if ((base && (!p->packages_count || !*p->python || !*p->glibc)))
		return bad(c, 1, "a base has packages, python and glibc; they are missing in",
			   name);
	if (base && *p->prefix)
		return bad(c, yaml_line(lines, "prefix"), "a base has no prefix:", p->prefix);
	if (!base && !path_is_safe_relative(p->prefix))
		return bad(c, yaml_line(lines, "prefix"), "not a path below the root:", p->prefix);
	bool one_archive = p->archives_count == 1 && !*p->manifest;
	bool others = p->packages_count || p->wheels_count;
	if (python && (!*p->python || !one_archive || others))
		return bad(c, 1, "a python has its version, one archive and nothing else, unlike",
			   name);
	if (library && (!(p->wheels_count + p->packages_count) || *p->manifest || *p->python))
		return bad(c, 1, "a library has wheels or packages and nothing else, unlike", name);
	if (!python && (p->archives_count > 0) != (*p->manifest != '\0'))
		return bad(c, 1, "a manifest and archives come together, but not in", name);
	if (*p->manifest && strncmp(p->manifest, "https://", 8) != 0 &&
	    strncmp(p->manifest, "http://", 7) != 0)
		return bad(c, yaml_line(lines, "manifest"), "not a URL:", p->manifest);
	if (p->packages_count && (!is_word(p->suite, "-") || !p->components_count))
		return bad(c, yaml_line(lines, "packages"),
			   "packages without suite and components in", name);
	for (unsigned i = 0; i < p->platforms_count; i++)
		if (!world_debian_arch(p->platforms[i]))
			return bad(c, yaml_line(lines, "platforms/%u", i),
				   "not a platform of worlds:", p->platforms[i]);
	const struct word_list lists[] = {
		{"packages", p->packages, p->packages_count, "+-."},
		{"components", p->components, p->components_count, "-"},
		{"wheels", p->wheels, p->wheels_count, "-._=+"},
		{"archives", p->archives, p->archives_count, "-._=+"},
	};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (check_words(c, &lists[i]) < 0)
			return -1;
	if (check_cross(c) < 0 || check_wheels(c) < 0)
		return -1;
	return check_places(c);
}

int world_part_names(const char *profiles, struct arena *a, struct strlist *ret, struct err *e)
{
	const char *dir = path_join(a, profiles, "worlds");
	struct strlist names = {0};

	if (!fs_exists(TRUSTED, dir))
		return 0;
	if (fs_list(TRUSTED, dir, a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (path_has_suffix(names.items[i], ".yaml"))
			strlist_ref(ret, a,
				    arena_strndup(a, names.items[i], strlen(names.items[i]) - 5));
	return 0;
}

static int unknown(const char *profiles, const char *name, struct arena *a, struct err *e)
{
	struct strlist names = {0};

	if (world_part_names(profiles, a, &names, e) < 0)
		return -1;
	const char *near = suggest_nearest(name, names.items, names.count);
	err_set(e, ERR_CONFIG, "unknown part of a world: '%s'", name);
	return near ? err_hint(e, "did you mean '%s'?", near)
		    : err_hint(e, "there are: %s", strlist_join(&names, a, " "));
}

static const char *part_file(const char *profiles, const char *name, struct arena *a)
{
	return arena_printf(a, "%s/worlds/%s.yaml", profiles, name);
}

bool world_part_exists(const char *profiles, const char *name, struct arena *a)
{
	return is_word(name, "_") && fs_exists(TRUSTED, part_file(profiles, name, a));
}

int world_part_load(const char *profiles, const char *name, struct arena *a,
		    const struct world_part **ret, struct err *e)
{
	const char *file = part_file(profiles, name, a);
	const struct yaml_tree *lines;
	struct world_part *part = arena_alloc(a, sizeof(*part));

	if (!world_part_exists(profiles, name, a))
		return unknown(profiles, name, a, e);
	if (yaml_load(file, &part_schema, a, part, &lines, e) < 0 ||
	    check(&(struct checking){file, name, lines, part, e}) < 0)
		return -1;
	*ret = part;
	return 0;
}

int world_part_check_platform(const struct world_part *p, const char *platform, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist others = {0};

	if (strings_allow(p->platforms, p->platforms_count, platform))
		return 0;
	strlist_refs(&others, &a, p->platforms, p->platforms_count);
	err_set(e, ERR_CONFIG, "part '%s' is not for %s: its files are for %s alone", p->part,
		platform, strlist_join(&others, &a, " and "));
	return err_hint(e, "'ptbuild world list --platform %s' shows the parts that are", platform);
}

static void put_list(struct buf *out, const char *key, const char *const *items, unsigned count)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist sorted = {0};

	strlist_refs(&sorted, &a, items, count);
	strlist_sort(&sorted);
	for (size_t i = 0; i < sorted.count; i++)
		buf_printf(out, "%s %s\n", key, sorted.items[i]);
}

const char *world_part_move(const struct world_part *p, const char *path, struct arena *a)
{
	for (unsigned i = 0; i < p->moves_count; i++) {
		const struct world_move *m = &p->moves[i];
		const char *rest = path_below(path, m->from);
		if (strcmp(path, m->from) == 0)
			return m->to;
		if (rest)
			return path_join(a, m->to, rest);
	}

	return path;
}

void world_part_asked(const struct world_part *p, char ret[65])
{
	AUTO_BUF struct buf text = {0};

	buf_printf(&text, "suite %s\n", p->suite);
	put_list(&text, "component", p->components, p->components_count);
	put_list(&text, "package", p->packages, p->packages_count);
	put_list(&text, "wheel", p->wheels, p->wheels_count);
	if (*p->manifest)
		buf_printf(&text, "manifest %s\n", p->manifest);
	put_list(&text, "archive", p->archives, p->archives_count);
	digest_data(buf_cstr(&text), text.len, ret);
}

void world_part_rules(const struct world_part *p, struct buf *out)
{
	buf_printf(out, RULES_VERSION "\nkind %s\nprefix %s\n", p->kind, p->prefix);
	put_list(out, "exclude", p->exclude, p->exclude_count);
	put_list(out, "keep", p->keep, p->keep_count);
	for (unsigned i = 0; i < p->places_count; i++)
		buf_printf(out, "place %s %s %s\n", p->places[i].wheel, p->places[i].from,
			   p->places[i].to);
	for (unsigned i = 0; i < p->links_count; i++)
		buf_printf(out, "link %s %s\n", p->links[i].path, p->links[i].to);
	for (unsigned i = 0; i < p->made_count; i++)
		buf_printf(out, "%s %s %s\n", p->made[i].kind, p->made[i].path, p->made[i].from);
	for (unsigned i = 0; i < p->moves_count; i++)
		buf_printf(out, "move %s %s\n", p->moves[i].from, p->moves[i].to);
	for (unsigned i = 0; i < p->same_count; i++)
		buf_printf(out, "same %s %s\n", p->same[i].package, p->same[i].as);
}

/* Whether something kept may be below this path: libgomp1's directory
 * of documents is a link to that of gcc-14-base, where its licence is. */
static bool leads_to_kept(const struct world_part *p, const char *path)
{
	AUTO_ARENA struct arena a = {0};

	for (unsigned i = 0; i < p->keep_count; i++)
		if (fnmatch(path_dir(&a, p->keep[i]), path, FNM_PATHNAME) == 0)
			return true;
	return false;
}

bool world_part_excludes(const struct world_part *p, const char *path, bool is_link)
{
	return strings_match(p->exclude, p->exclude_count, path) &&
	       !strings_match(p->keep, p->keep_count, path) && !(is_link && leads_to_kept(p, path));
}
