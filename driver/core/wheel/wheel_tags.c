#include "base/yaml/yaml.h"

/* What a wheel's tags stand for, as installers take them: PEP 425, 600, 656, 703 and 803. */

#include "core/wheel/wheel.h"

enum { ABI3_FIRST = 2, PYMALLOC_LAST = 7 }; /* minor versions of Python 3 */

struct pair {              /* what a Python tag and an ABI tag mean together */
	const char *maker; /* "PyPy "; "": CPython, or any that speaks the language */
	const char *flags; /* of the ABI: "t", "d" */
	long major, minor; /* minor -1: any */
	bool newer;        /* later ones of this major version, too */
	bool any_build;    /* free-threaded or not */
};

/* "cp313-abi3", "py3-none"; false for a pair that
 * no installer asks for: "py3-cp313", "cp3-none". */
static bool read_pair(const char *tag, const char *abi, struct pair *ret)
{
	static const char *const makers[][2] = {{"cp", ""},
						{"py", ""},
						{"pp", "PyPy "},
						{"jy", "Jython "},
						{"ip", "IronPython "},
						{"graalpy", "GraalPy "}};
	size_t letters = strspn(tag, "abcdefghijklmnopqrstuvwxyz"),
	       digits = strspn(tag + letters, "0123456789");
	struct pair p = {.flags = "",
			 .minor = digits > 1 ? strtol(tag + letters + 1, NULL, 10) : -1};

	p.major = tag[letters] - '0';
	for (size_t i = 0; i < ARRAY_LEN(makers) && !p.maker; i++)
		if (strlen(makers[i][0]) == letters && strncmp(makers[i][0], tag, letters) == 0)
			p.maker = makers[i][1];
	bool cp = strncmp(tag, "cp", 2) == 0, none = strcmp(abi, "none") == 0,
	     modern = p.major == 3;
	if (!p.maker || !digits || tag[letters + digits])
		return false;
	if (cp && p.minor < 0)
		return false;
	p.any_build = none;
	if (strncmp(tag, "py", 2) == 0) {
		p.newer = modern;
		*ret = p;
		return none;
	}

	if (cp && (strcmp(abi, "abi3") == 0 || strcmp(abi, "abi3t") == 0)) {
		p.flags = abi + strlen("abi3");
		p.newer = true;
		*ret = p;
		return modern && p.minor >= ABI3_FIRST;
	}

	if (cp && !none) {
		p.flags = abi + strspn(abi, "cp0123456789");
		if (strncmp(abi, tag, strlen(tag)) != 0 || p.flags != abi + strlen(tag))
			return false;
		if (!modern || (*p.flags == 'm' && !p.flags[1] && p.minor <= PYMALLOC_LAST))
			p.flags = ""; /* "cp36m", "cp27mu": what every build of these has */
		else if (!*p.flags && p.minor <= PYMALLOC_LAST)
			return false;
	}

	*ret = p;
	return true;
}

/* Whether a pair is among those of a CPython. */
static bool is_for(const struct pair *p, long minor, bool threaded)
{
	if (*p->maker || p->major != 3)
		return false;
	bool fits_minor = p->newer ? p->minor <= minor : p->minor == minor;
	bool fits_build = p->any_build || strcmp(p->flags, threaded ? "t" : "") == 0;
	return fits_minor && fits_build;
}

/* The oldest glibc that a machine's tags name. */
static unsigned first_glibc(const char *machine)
{
	return strcmp(machine, "x86_64") == 0 ? 5 : 17;
}

static bool lands(const char *tag, const struct wheel_machine *m, struct arena *a)
{
	const char *machine = m->name;
	unsigned wants = manylinux_glibc(tag);

	return strcmp(tag, arena_printf(a, "linux_%s", machine)) == 0 ||
	       (wants >= first_glibc(machine) && wants <= m->glibc &&
		path_has_suffix(tag, arena_printf(a, "_%s", machine)));
}

/* Whether installers ask for the pair beside one of
 * the platforms: beside "any" for no ABI at all. */
static bool has_platform(const struct wheel_name *n, const char *abi, const struct wheel_machine *m,
			 struct arena *a)
{
	struct strlist platforms = {0};
	bool found = false;

	strlist_split(&platforms, a, n->platform, ".");
	for (size_t i = 0; i < platforms.count && !found; i++)
		found = strcmp(platforms.items[i], "any") == 0
				? strcmp(abi, "none") == 0
				: !m || lands(platforms.items[i], m, a);
	return found;
}

/* All pairs that installers ask for. */
static struct pair *read_pairs(const struct wheel_name *n, const struct wheel_machine *m,
			       struct arena *a, size_t *ret_count)
{
	struct strlist pythons = {0}, abis = {0};

	strlist_split(&pythons, a, n->python, ".");
	strlist_split(&abis, a, n->abi, ".");
	struct pair *pairs = arena_array(a, pythons.count * abis.count, sizeof(*pairs));
	*ret_count = 0;
	for (size_t i = 0; i < pythons.count; i++)
		for (size_t k = 0; k < abis.count; k++)
			*ret_count +=
				read_pair(pythons.items[i], abis.items[k], &pairs[*ret_count]) &&
				has_platform(n, abis.items[k], m, a);
	return pairs;
}

bool wheel_name_lands(const struct wheel_name *n, const struct wheel_machine *m, struct arena *a)
{
	return has_platform(n, "none", m, a);
}

bool wheel_name_installs(const struct wheel_name *n, const char *python,
			 const struct wheel_machine *m, struct arena *a)
{
	char *end = NULL;
	size_t count;

	if (strncmp(python, "3.", 2) != 0)
		return false;
	long minor = strtol(python + 2, &end, 10);
	const struct pair *pairs = read_pairs(n, m, a, &count);
	for (size_t i = 0; i < count; i++)
		if (is_for(&pairs[i], minor, *end == 't'))
			return true;
	return false;
}

bool wheel_name_takes(const struct wheel_name *n, const char *python, struct arena *a)
{
	return wheel_name_installs(n, python, NULL, a);
}

static const char *name_of(const struct pair *p, struct arena *a)
{
	const char *build = strcmp(p->flags, "t") == 0 ? "t"
			    : *p->flags ? arena_printf(a, " built with '%s'", p->flags)
					: "";

	return p->minor < 0 ? arena_printf(a, "%s%ld", p->maker, p->major)
			    : arena_printf(a, "%s%ld.%ld%s", p->maker, p->major, p->minor, build);
}

static bool is_before(const struct pair *x, const struct pair *y)
{
	return x->major != y->major ? x->major < y->major : x->minor < y->minor;
}

char *wheel_name_pythons(const struct wheel_name *n, struct arena *a, bool *ret_newer)
{
	struct pair lowest = {0};
	struct strlist names = {0};
	size_t count;
	const struct pair *pairs = read_pairs(n, NULL, a, &count);

	*ret_newer = false;
	for (size_t i = 0; i < count; i++)
		if (pairs[i].newer && (!*ret_newer || is_before(&pairs[i], &lowest))) {
			lowest = pairs[i];
			*ret_newer = true;
		}
	for (size_t i = 0; i < count; i++) {
		const struct pair *p = &pairs[i];
		if (p->newer)
			continue;
		/* One that "and newer" does not cover. */
		bool plain = !*p->maker && !*p->flags;
		if (!*ret_newer || !plain || is_before(p, &lowest))
			strlist_once(&names, a, name_of(p, a));
	}

	if (*ret_newer)
		strlist_ref(&names, a, name_of(&lowest, a));
	return strlist_join(&names, a, ", ");
}

/* A tag that has no word of its own here is reported unchanged. */
static void add_platform(const char *tag, struct arena *a, struct strlist *ret)
{
	static const char *const machines[][2] = {{"x86_64", "x86_64"},
						  {"aarch64", "aarch64"},
						  {"arm64", "aarch64"},
						  {"universal2", "x86_64"},
						  {"universal2", "aarch64"}};
	const char *system = strncmp(tag, "macosx_", 7) == 0 ? "darwin"
			     : strstr(tag, "linux")          ? "linux"
							     : NULL;
	bool known = false;

	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		if (!system || !path_has_suffix(tag, machines[i][0]))
			continue;
		strlist_once(ret, a, arena_printf(a, "%s-%s", machines[i][1], system));
		known = true;
	}

	if (!known)
		strlist_once(ret, a, tag);
}

void wheel_name_platforms(const struct wheel_name *n, struct arena *a, struct strlist *ret)
{
	struct strlist tags = {0};

	strlist_split(&tags, a, n->platform, ".");
	for (size_t i = 0; i < tags.count; i++)
		if (strcmp(tags.items[i], "any") != 0)
			add_platform(tags.items[i], a, ret);
}

const char *wheel_name_musl(const struct wheel_name *n, struct arena *a)
{
	static const char mark[] = "musllinux_";
	struct strlist tags = {0};
	const char *version = NULL;

	strlist_split(&tags, a, n->platform, ".");
	for (size_t i = 0; i < tags.count; i++) {
		if (strncmp(tags.items[i], mark, strlen(mark)) != 0)
			return NULL;
		const char *major = tags.items[i] + strlen(mark), *minor = strchr(major, '_');
		if (!version && minor)
			version = arena_printf(a, "%.*s.%.*s", (int)(minor - major), major,
					       (int)strspn(minor + 1, "0123456789"), minor + 1);
	}

	return version;
}

struct version_row {
	const char *python;
	const char **names;
	unsigned names_count;
	unsigned line;
};

struct stable_file {
	struct version_row *versions;
	unsigned versions_count;
};

struct stable_abi {
	struct stable_symbol {
		const char *name;
		unsigned since;
	} * symbols; /* by name */
	size_t count;
};

ROW(version, struct version_row, NEED(struct version_row, python),
    NEED_LIST(struct version_row, names));
PLAIN(file, struct stable_file, NEED_ROWS(struct stable_file, versions, version));

int stable_abi_load(const char *profiles_dir, struct arena *a, const struct stable_abi **ret,
		    struct err *e)
{
	const char *path = path_join(a, profiles_dir, "stable_abi.yaml");
	struct stable_abi *s = arena_alloc(a, sizeof(*s));
	const struct yaml_tree *tree;
	struct stable_file f;
	size_t total = 0;

	if (yaml_load(path, &file_schema, a, &f, &tree, e) < 0)
		return -1;
	for (unsigned i = 0; i < f.versions_count; i++)
		total += f.versions[i].names_count;
	s->symbols = arena_array(a, total, sizeof(*s->symbols));
	for (unsigned i = 0; i < f.versions_count; i++) {
		const struct version_row *row = &f.versions[i];
		unsigned since = strncmp(row->python, "3.", 2) == 0
					 ? (unsigned)strtoul(row->python + 2, NULL, 10)
					 : 0;
		if (!since)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a version of Python 3",
				       path, row->line, row->python);
		for (unsigned k = 0; k < row->names_count; k++)
			s->symbols[s->count++] = (struct stable_symbol){row->names[k], since};
	}

	array_sort(s->symbols, s->count, sizeof(*s->symbols), text_cmp);
	*ret = s;
	return 0;
}

unsigned stable_abi_since(const struct stable_abi *s, const char *symbol)
{
	const struct stable_symbol *found = text_find(symbol, s->symbols, s->count, sizeof(*found));
	return found ? found->since : 0;
}
