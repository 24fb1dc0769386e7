#include "core/world/cross.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"

#define MAX_STAMP 4096
#define MAX_RULES (1U << 20)

static int bad_name(const char *name, const char *what, const char *part, struct err *e)
{
	err_set(e, ERR_CONFIG, "world '%s': '%s' %s", name, part, what);
	return err_hint(e, "a world is a base, followed by other parts joined with '+': "
			   "debian13+cuda13_0");
}

/* A part that needs a base is shown with one that it fits: of the shortest names the last. */
static int not_a_base(const char *profiles, const char *name, const struct world_part *p,
		      struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	const char *base = NULL;
	const struct world_part *it;

	bad_name(name, "is not a base", p->part, e);
	if (world_part_names(profiles, &a, &names, ERR_IGNORED) < 0)
		return -1;
	strlist_sort(&names);
	for (size_t i = 0; i < names.count; i++) {
		if (world_part_load(profiles, names.items[i], &a, &it, ERR_IGNORED) < 0)
			continue;
		if (strcmp(it->kind, "base") != 0 || (base && strlen(it->part) > strlen(base)))
			continue;
		if (!*p->suite || strcmp(p->suite, it->suite) == 0)
			base = it->part;
	}

	return err_hint(e, "name it after a base: %s+%s", base ? base : "BASE", p->part);
}

/* A world that is read from its tables. */
struct loading {
	const char *profiles, *name, *platform;
	struct strlist parts; /* of the name */
	struct world *w;      /* its pieces up to the count are read */
	struct arena *a;
};

/* The next piece, whose table is read. */
static int check_order(const struct loading *l, struct err *e)
{
	const char *name = l->name;
	const struct strlist *parts = &l->parts;
	const size_t at = l->w->count;
	const struct world_piece *pieces = l->w->pieces;
	const struct world_part *p = pieces[at].part;
	bool base = strcmp(p->kind, "base") == 0;

	if (at == 0 && strcmp(p->kind, "cross") == 0)
		return 0;
	if (strcmp(p->kind, "cross") == 0)
		return bad_name(name, "is a tree of its own, and no part of a world", p->part, e);
	if (at > 0 && strcmp(pieces[0].part->kind, "cross") == 0)
		return at == 1 && strcmp(p->kind, "toolkit") == 0
			       ? 0
			       : bad_name(name, "is not the one toolkit that a cross part may have",
					  p->part, e);
	if (strings_contain(parts->items, at, p->part))
		return bad_name(name, "is there twice", p->part, e);
	if (at == 0 && !base)
		return not_a_base(l->profiles, name, p, e);
	if (at > 0 && base)
		return bad_name(name, "is a base, and there is one already", p->part, e);
	for (size_t i = 1; i < at; i++)
		if (strcmp(p->kind, pieces[i].part->kind) == 0)
			return bad_name(name,
					arena_printf(l->a, "is a %s, and '%s' is one already",
						     p->kind, pieces[i].part->part),
					p->part, e);
	if (*p->suite && strcmp(p->suite, pieces[0].part->suite) != 0)
		return bad_name(name, "has packages of another Debian than the base", p->part, e);
	return 0;
}

/* How the lock of a part is made. */
static int ask_for_lock(const struct world_part *p, const char *base, const char *platform,
			struct err *e)
{
	if (strcmp(p->kind, "python") == 0) /* no list of such archives is read */
		return err_hint(e,
				"the archive of a python is pinned by hand; 'ptbuild world list "
				"--platform %s' has "
				"those that are",
				platform);
	bool lies = p->packages_count && strcmp(p->part, base) != 0;
	return err_hint(e, "make it: ptbuild world lock %s --platform %s%s%s --write", p->part,
			platform, lies ? " --base " : "", lies ? base : "");
}

/* A wheel that the table asks for, "name==version", and the lock does not have; NULL: none. */
static const char *missing_wheel(const struct world_part *p, const struct world_lock *l,
				 struct arena *a)
{
	for (unsigned i = 0; i < p->wheels_count; i++) {
		bool found = false;
		for (size_t k = 0; k < l->count && !found; k++)
			found = l->entries[k].kind == WORLD_WHEEL &&
				strcmp(arena_printf(a, "%s==%s", l->entries[k].name,
						    l->entries[k].version),
				       p->wheels[i]) == 0;
		if (!found)
			return p->wheels[i];
	}

	return NULL;
}

/* Why a lock does not belong to its part, in words; NULL: it does. */
static const char *lock_mismatch(const struct world_lock *l, const struct world_part *p,
				 const char *platform, struct arena *a)
{
	char asked[65];

	if (strcmp(l->part, p->part) != 0 || strcmp(l->platform, platform) != 0)
		return "is of another part or platform than its name says";
	world_part_asked(p, asked);
	if (strcmp(l->asked, asked) != 0)
		return "was made for another request than its table's";
	const char *missing = missing_wheel(p, l, a);
	return missing ? arena_printf(a, "has no wheel '%s', which its table asks for", missing)
		       : NULL;
}

static int read_lock(const struct loading *l, struct world_piece *piece, struct err *e)
{
	const struct world_part *p = piece->part;
	const char *platform = l->platform, *base = l->w->pieces[0].part->part;
	const char *path = world_lock_path(l->profiles, p->part, platform, l->a);

	if (world_part_check_platform(p, platform, e) < 0)
		return -1;
	if (!fs_exists(TRUSTED, path)) {
		err_set(e, ERR_CONFIG, "part '%s' has no lock for %s: there is no '%s'", p->part,
			platform, path);
		return ask_for_lock(p, base, platform, e);
	}

	if (world_lock_read(path, l->a, &piece->lock, e) < 0)
		return err_wrap(e, "part '%s' for %s", p->part, platform);
	const char *what = lock_mismatch(&piece->lock, p, platform, l->a);
	if (!what)
		return 0;
	err_set(e, ERR_CONFIG, "the lock '%s' %s", path, what);
	return ask_for_lock(p, base, platform, e);
}

static int place_of(const char *kind)
{
	static const char *const kinds[] = {"base", "python", "toolkit", "library"};
	int place = 0;

	while (place < (int)ARRAY_LEN(kinds) && strcmp(kinds[place], kind) != 0)
		place++;
	return place;
}

/* The parts of a world are of different kinds and lie beside each other:
 * in whichever order they are named, it is one world of one name. */
static const char *put_in_order(struct world_piece *pieces, size_t count, struct arena *a)
{
	struct strlist names = {0};

	for (size_t i = 1; i < count; i++)
		for (size_t k = i;
		     k > 0 && place_of(pieces[k].part->kind) < place_of(pieces[k - 1].part->kind);
		     k--) {
			struct world_piece later = pieces[k - 1];
			pieces[k - 1] = pieces[k];
			pieces[k] = later;
		}
	for (size_t i = 0; i < count; i++)
		strlist_ref(&names, a, pieces[i].part->part);
	return strlist_join(&names, a, "+");
}

/* Over the keys of all parts, and the sum of their files. */
static void fill(struct world *w)
{
	AUTO_BUF struct buf keys = {0};

	w->download = 0;
	for (size_t i = 0; i < w->count; i++) {
		AUTO_BUF struct buf rules = {0};
		char key[65];
		world_part_rules(w->pieces[i].part, &rules);
		if (strcmp(w->pieces[i].part->kind, "toolkit") == 0)
			buf_printf(&rules, "files %s\n", w->toolkit_rules);
		world_lock_key(&w->pieces[i].lock, buf_cstr(&rules), key);
		buf_printf(&keys, "%s\n", key);
		w->download += world_lock_bytes(&w->pieces[i].lock);
	}

	digest_data(buf_cstr(&keys), keys.len, w->key);
}

/* How a toolkit's files are laid out. Where there is no such table, making the world says so. */
static int read_toolkit_rules(const char *profiles, struct world *w, struct arena *a, struct err *e)
{
	AUTO_BUF struct buf text = {0}, AUTO_BUF rules = {0};
	struct strlist lines = {0};
	const char *path = path_join(a, profiles, "toolkit_tree.yaml");

	if (!fs_exists(TRUSTED, path))
		return 0;
	if (fs_read(TRUSTED, path, MAX_RULES, &text, e) < 0)
		return -1;
	strlist_split(&lines, a, buf_cstr(&text), "\n");
	for (size_t i = 0; i < lines.count; i++)
		if (lines.items[i][0] != '#')
			buf_printf(&rules, "%s\n", lines.items[i]);
	digest_data(buf_cstr(&rules), rules.len, w->toolkit_rules);
	return 0;
}

int world_load(const char *profiles, const char *name, const char *platform, struct arena *a,
	       const struct world **ret, struct err *e)
{
	struct loading l = {.profiles = profiles, .name = name, .platform = platform, .a = a};

	if (!*name || *name == '+' || path_has_suffix(name, "+") || strstr(name, "++"))
		return bad_name(name, "has an empty part", name, e);
	if (!world_debian_arch(platform))
		return err_set(e, ERR_CONFIG, "no world is for the platform '%s'", platform);
	strlist_split(&l.parts, a, name, "+");
	struct world *w = l.w = arena_alloc(a, sizeof(*w));
	*w = (struct world){.platform = arena_strdup(a, platform)};
	w->pieces = arena_array(a, l.parts.count, sizeof(*w->pieces));
	for (; w->count < l.parts.count; w->count++) {
		struct world_piece *p = &w->pieces[w->count];
		if (world_part_load(profiles, l.parts.items[w->count], a, &p->part, e) < 0 ||
		    check_order(&l, e) < 0 || read_lock(&l, p, e) < 0)
			return -1;
		if (w->count && strcmp(w->pieces[0].part->kind, "cross") == 0)
			world_cross_take(w->pieces[0].part, p, a);
	}

	if (read_toolkit_rules(profiles, w, a, e) < 0)
		return -1;
	w->name = put_in_order(w->pieces, w->count, a);
	fill(w);
	*ret = w;
	return 0;
}

const struct world *world_with_locks(const struct world *w, const struct world_lock *locks,
				     struct arena *a)
{
	struct world *new = arena_alloc(a, sizeof(*new));

	*new = *w;
	new->pieces = arena_array(a, w->count, sizeof(*new->pieces));
	for (size_t i = 0; i < w->count; i++)
		new->pieces[i] = (struct world_piece){.part = w->pieces[i].part, .lock = locks[i]};
	fill(new);
	return new;
}

int world_read_stamp(const char *dir, struct arena *a, struct world_stamp *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct strlist words = {0};
	struct stat st;

	if (fs_stat(dir, WORLD_STAMP, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fs_read(dir, WORLD_STAMP, MAX_STAMP, &text, e) < 0)
		return -1;
	strlist_split(&words, a, buf_cstr(&text), " \n");
	if (words.count != 3 || !digest_valid_hex(words.items[2]))
		return err_set(e, ERR_INTEGRITY, "'%s/%s' does not name a world", dir, WORLD_STAMP);
	ret->name = arena_strdup(a, words.items[0]);
	ret->key = arena_strdup(a, words.items[2]);
	return 1;
}

static const struct world_row *fitting_row(const struct release_row *r,
					   const struct world_wanted *want)
{
	for (unsigned i = 0; i < r->worlds_count; i++) {
		const struct world_row *w = &r->worlds[i];
		if (strings_allow(w->platforms, w->platforms_count, want->platform) &&
		    (!w->cuda_count ||
		     (want->cuda && strings_contain(w->cuda, w->cuda_count, want->cuda))))
			return w;
	}

	return NULL;
}

/* "python3_12": the part of a version. */
static const char *part_of(const char *kind, const char *version, struct arena *a)
{
	char *part = arena_printf(a, "%s%s", kind, version);

	for (char *dot = part; (dot = strchr(dot, '.'));)
		*dot = '_';
	return part;
}

struct wanted_part {
	const char *part;         /* NULL: none */
	const char *what, *which; /* in words: "Python", "3.12" */
};

/* ERR_POLICY where there is no such part. */
static int find_part(const struct world_question *q, const struct wanted_part *p,
		     const struct world_part **ret, struct err *e)
{
	if (world_part_exists(q->tables->dir, p->part, q->arena))
		return world_part_load(q->tables->dir, p->part, q->arena, ret, e);
	err_set(e, ERR_POLICY, "no world of release %s has %s %s", q->release->name, p->what,
		p->which);
	return err_hint(e, "'ptbuild world list' lists the parts; or build in your own root with "
			   "--root DIR, or in this machine's with --root /");
}

static bool wants_library(const struct world_wanted *want)
{
	return want->library && *want->library;
}

static int choose(const struct world_question *q, struct world_choice *ret, struct err *e)
{
	const struct release_row *r = q->release;
	const struct world_wanted *want = q->want;
	struct arena *a = q->arena;
	const struct world_row *row =
		world_debian_arch(want->platform) ? fitting_row(r, want) : NULL;
	const char *cuda = want->cuda, *python = want->python;
	const struct world_part *base;

	*ret = (struct world_choice){0};
	if (!row)
		return 0;
	if (world_part_load(q->tables->dir, row->base, a, &base, e) < 0)
		return -1;
	if (!python)
		python = strings_contain(r->pythons, r->pythons_count, base->python)
				 ? base->python
				 : r->pythons[r->pythons_count - 1];
	const struct wanted_part parts[] = {
		{strcmp(python, base->python) != 0 ? part_of("python", python, a) : NULL, "Python",
		 python},
		{cuda ? part_of("cuda", cuda, a) : NULL, "CUDA", cuda},
		{wants_library(want) ? want->library : NULL, "the part", want->library}};
	struct world_piece pieces[1 + ARRAY_LEN(parts)] = {{.part = base}};
	size_t count = 1;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].part && find_part(q, &parts[i], &pieces[count++].part, e) < 0)
			return -1;
	*ret = (struct world_choice){put_in_order(pieces, count, a), python};
	return 0;
}

/* Adds a hint to a refused world: the Python of the world that fits with `any` Python, if one does.
 * The version comes from --python, or from a variant's name: "python313". */
static int hint_python(const struct world_wanted *want, const struct world_choice *any,
		       const char *otherwise, struct err *e)
{
	if (!want->python || !any->python)
		return err_hint(e, "%s", otherwise);
	return err_hint(e,
			"leave --python out, or name python%c%s, for Python %s, which '%s' has; "
			"'ptbuild world list' lists the parts, and --root DIR names your own root",
			*any->python, any->python + 2, any->python, any->name);
}

int world_choose(const struct world_question *q, struct world_choice *ret, struct err *e)
{
	struct world_wanted any = *q->want;
	struct world_question again = *q;
	struct world_choice other = {0};

	if (choose(q, ret, e) == 0)
		return 0;
	any.python = NULL;
	again.want = &any;
	if (e->kind != ERR_POLICY || choose(&again, &other, ERR_IGNORED) < 0)
		other = (struct world_choice){0};
	return hint_python(q->want, &other, e->hint, e);
}

/* "1:3.31.6-2" is 3.31.6. */
static const char *upstream_version(const char *version, struct arena *a)
{
	const char *colon = strchr(version, ':'), *from = colon ? colon + 1 : version;
	return arena_strndup(a, from, strspn(from, "0123456789."));
}

/* A tool of a base, and the versions that a release supports. */
struct tool_range {
	const char *tool, *version, *range;
};

static int refuse_tool(const struct world *w, const struct release_row *r,
		       const struct tool_range *t, struct err *e)
{
	const char *arm = t->range == r->gcc_arm ? " on Arm" : "";

	err_set(e, ERR_POLICY, "'%s' has %s %s; release %s needs%s %s", w->pieces[0].part->part,
		t->tool, t->version, r->name, arm, t->range);
	return err_hint(e, "try another release or --cuda version, or build in your own root with "
			   "--root DIR");
}

/* The wheel or the package of a base that has a tool; a wheel's is first in PATH. */
static const struct world_entry *find_tool(const struct world_lock *l, const char *package,
					   const char *wheel)
{
	const struct world_entry *found = NULL;

	for (size_t i = 0; i < l->count; i++) {
		const struct world_entry *t = &l->entries[i];
		if (t->kind == WORLD_WHEEL && strcmp(t->name, wheel) == 0)
			return t;
		if (t->kind == WORLD_DEB && strcmp(t->name, package) == 0)
			found = t;
	}

	return found;
}

int world_check_tools(const struct world *w, const struct release_row *r, struct arena *a,
		      struct err *e)
{
	const struct {
		const char *package, *wheel, *range;
	} tools[] = {{"cmake", "cmake", r->cmake},
		     {"ninja-build", "ninja", r->ninja},
		     {"gcc", "", tables_gcc(r, w->platform)}};

	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		const struct world_entry *t =
			find_tool(&w->pieces[0].lock, tools[i].package, tools[i].wheel);
		bool fits = true;
		if (!t)
			continue;
		const char *version = upstream_version(t->version, a);
		if (version_in(version, tools[i].range, &fits, e) < 0)
			return -1;
		if (!fits)
			return refuse_tool(
				w, r, &(struct tool_range){t->name, version, tools[i].range}, e);
	}

	return 0;
}

const struct world_part *world_python_part(const struct world *w)
{
	const struct world_part *found = NULL;

	for (size_t i = 1; i < w->count; i++)
		if (*w->pieces[i].part->python)
			found = w->pieces[i].part;
	return found;
}

const char *world_python(const struct world *w)
{
	const struct world_part *part = world_python_part(w);
	return part ? part->python : w->pieces[0].part->python;
}

const char *world_python_program(const struct world *w, struct arena *a)
{
	const struct world_part *part = world_python_part(w);
	return part ? arena_printf(a, "/%s/bin/python3", part->prefix) : NULL;
}

static bool has_part(const struct world *w, const char *part)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->pieces[i].part->part, part) == 0)
			return true;
	return false;
}

/* A build gets only a library's prefix, so another version in that prefix works as well. */
static int has_library(const struct world_question *q, const struct world *w, bool *ret,
		       struct err *e)
{
	const char *library = q->want->library;
	const struct world_part *part;

	*ret = true;
	if (has_part(w, library))
		return 0;
	if (world_part_load(q->tables->dir, library, q->arena, &part, e) < 0)
		return -1;
	for (size_t i = 1; i < w->count; i++)
		if (strcmp(w->pieces[i].part->kind, part->kind) == 0 &&
		    strcmp(w->pieces[i].part->prefix, part->prefix) == 0)
			return 0;
	*ret = false;
	return 0;
}

/* What of that is not in it, in words; NULL: it is all there. */
static int find_lack(const struct world_question *q, const struct world *w, const char **ret,
		     struct err *e)
{
	const struct world_wanted *want = q->want;
	struct arena *a = q->arena;
	const char *own = world_python(w);
	bool library = true;

	if (wants_library(want) && has_library(q, w, &library, e) < 0)
		return -1;
	*ret = NULL;
	if (want->python && strcmp(want->python, own) != 0)
		*ret = arena_printf(a, "has Python %s, not %s", own, want->python);
	else if (want->cuda && !has_part(w, part_of("cuda", want->cuda, a)))
		*ret = arena_printf(a, "has no CUDA %s", want->cuda);
	else if (!library)
		*ret = arena_printf(a, "has no part '%s', which the BLAS is in", want->library);
	return 0;
}

/* The world itself with its own Python, if that is all
 * that it does not have and the release builds for it. */
static int with_own_python(const struct world_question *q, const struct world *w,
			   struct world_choice *ret, struct err *e)
{
	const struct release_row *r = q->release;
	struct world_wanted any = *q->want;
	struct world_question asked = *q;
	const char *lacks, *own = world_python(w);

	any.python = NULL;
	asked.want = &any;
	if (find_lack(&asked, w, &lacks, e) < 0)
		return -1;
	bool fits = !lacks && strings_contain(r->pythons, r->pythons_count, own);
	*ret = fits ? (struct world_choice){w->name, own} : (struct world_choice){0};
	return 0;
}

int world_check_parts(const struct world_question *q, const struct world *w, struct err *e)
{
	struct world_wanted here = *q->want;
	struct world_question asked = *q;
	struct world_choice fits = {0}, own;
	struct err none = {0};
	const char *lacks;

	here.platform = w->platform;
	asked.want = &here;
	if (find_lack(&asked, w, &lacks, e) < 0)
		return -1;
	if (!lacks)
		return 0;
	if (with_own_python(&asked, w, &own, e) < 0)
		return -1;
	if (choose(&asked, &fits, &none) == 0 && fits.name) {
		err_set(e, ERR_POLICY, "the world '%s' %s; '%s' has it", w->name, lacks, fits.name);
		return err_hint(e, "use --root world:%s, the default of release %s", fits.name,
				q->release->name);
	}

	err_set(e, ERR_POLICY, "the world '%s' %s", w->name, lacks);
	return hint_python(
		&here, &own,
		arena_printf(q->arena, "%s; 'ptbuild world list' shows the parts there are",
			     *none.msg ? none.msg : "the release's table names no world"),
		e);
}
