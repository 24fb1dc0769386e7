/* What Python imports of the wheel: suffixes of modules, and the stable ABI. */

#include "core/wheel/wheel.h"
#include "step/verify/verify_parts.h"

/* Returns "cpython-313t-x86_64-linux-gnu" of "x.cpython-313t-x86_64-linux-gnu.so", "pyd" of a
 * module for Windows; NULL for a name that every Python imports. */
static const char *suffix_of(const char *file, struct arena *a)
{
	static const char *const interpreters[] = {"cpython-*", "pypy*", "graalpy*"};
	const char *base = path_base(file), *dot = strchr(base, '.');

	if (path_has_suffix(base, ".pyd"))
		return "pyd";
	if (!path_has_suffix(base, ".so") || !dot[strlen(".so")])
		return NULL;
	const char *suffix = arena_strndup(a, dot + 1, strlen(dot) - 1 - strlen(".so"));
	return strings_match(interpreters, ARRAY_LEN(interpreters), suffix) ? suffix : NULL;
}

/* Whether a Python on one of the wheel's platforms looks for "x86_64-linux-gnu"; true
 * for platforms whose word is not known here. On musl, Pythons before 3.11 say gnu, too. */
static bool is_of_platform(struct verifying *v, const char *triple)
{
	struct strlist platforms = {0};

	strlist_split(&platforms, v->a, v->report.name.platform, ".");
	for (size_t i = 0; i < platforms.count; i++) {
		const char *p = platforms.items[i];
		const char *machine = path_has_suffix(p, "_x86_64")    ? "x86_64"
				      : path_has_suffix(p, "_aarch64") ? "aarch64"
								       : NULL;
		bool musl = strncmp(p, "musllinux_", 10) == 0;
		if (!machine || !strstr(p, "linux"))
			return true;
		if (strcmp(triple, arena_printf(v->a, "%s-linux-gnu", machine)) == 0 ||
		    (musl && strcmp(triple, arena_printf(v->a, "%s-linux-musl", machine)) == 0))
			return true;
	}

	return false;
}

/* "3.13t" of "cpython-313t-x86_64-linux-gnu"; NULL for
 * other interpreters, and for what no Python 3 is. */
static const char *python_of(const char *suffix, struct arena *a)
{
	if (strncmp(suffix, "cpython-", 8) != 0)
		return NULL;
	const char *digits = suffix + strlen("cpython-"),
		   *flags = digits + strspn(digits, "0123456789");
	if (*digits != '3' || flags - digits < 2)
		return NULL;
	return arena_printf(a, "3.%.*s%s", (int)(flags - digits) - 1, digits + 1,
			    *flags == 't' ? "t" : "");
}

/* "pypy310-pp73-x86_64-linux-gnu" is for "pp310". */
static bool is_of_other(struct verifying *v, const char *suffix)
{
	struct strlist tags = {0};
	const char *digits = suffix + strspn(suffix, "abcdefghijklmnopqrstuvwxyz");

	strlist_split(&tags, v->a, v->report.name.python, ".");
	if (strncmp(suffix, "graalpy", 7) == 0)
		return strstr(v->report.name.python, "graalpy") != NULL;
	return strlist_contains(
		&tags, arena_printf(v->a, "pp%.*s", (int)strspn(digits, "0123456789"), digits));
}

/* Whether a Python that can install the wheel looks for this suffix. Before 3.5 it named no
 * platform. */
static bool is_imported(struct verifying *v, const char *suffix)
{
	const char *python = python_of(suffix, v->a);

	if (strcmp(suffix, "pyd") == 0)
		return is_of_platform(v, "");
	if (!python)
		return strncmp(suffix, "cpython-", 8) != 0 && is_of_other(v, suffix);
	const char *abi = arena_strndup(v->a, suffix + strlen("cpython-"),
					strcspn(suffix + strlen("cpython-"), "-"));
	const char *triple = strchr(suffix + strlen("cpython-"), '-');
	bool debug = strchr(abi, 'd') != NULL;
	if (debug && !strstr(v->report.name.abi, abi))
		return false;
	return (debug || wheel_name_takes(&v->report.name, python, v->a)) &&
	       (is_of_platform(v, triple ? triple + 1 : "") ||
		(!triple && version_cmp(python, "3.5") < 0));
}

/* Whether another file of the wheel is the same module for more Pythons. */
static bool has_sibling(const struct verifying *v, const struct verify_member *m)
{
	size_t stem = strlen(m->entry->name) - strlen(strchr(path_base(m->entry->name), '.'));

	for (size_t i = 0; i < v->count; i++) {
		const char *name = v->members[i].entry->name;
		bool is_module = path_has_suffix(name, ".so") || path_has_suffix(name, ".py");
		if (&v->members[i] == m || !is_module)
			continue;
		if (strncmp(name, m->entry->name, stem) == 0 && name[stem] == '.')
			return true;
	}

	return false;
}

/* Whether one of the Pythons that take the wheel finds the module, and others do not. */
static bool is_for_one(struct verifying *v, const struct verify_member *m, const char *suffix)
{
	const char *python = python_of(suffix, v->a);
	unsigned long minor = python ? strtoul(python + 2, NULL, 10) : 0;

	return python &&
	       wheel_name_takes(&v->report.name, arena_printf(v->a, "3.%lu", minor + 1), v->a) &&
	       !has_sibling(v, m);
}

static bool defines_module(const struct verify_member *m)
{
	for (size_t i = 0; i < m->elf.defined.count; i++)
		if (strncmp(m->elf.defined.items[i], "PyInit_", 7) == 0)
			return true;
	return false;
}

/* One finding each: what a build left over for another Python, and what one Python alone finds. */
static void check_suffixes(struct verifying *v)
{
	struct verify_some others = {0}, lones = {0};
	size_t imported = 0;

	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		bool binary = m->kind == ELF_HOST || m->kind == ELF_FOREIGN ||
			      path_has_suffix(m->entry->name, ".pyd");
		const char *suffix = binary ? suffix_of(m->entry->name, v->a) : NULL;
		if (suffix ? is_imported(v, suffix) : defines_module(m))
			imported++;
		else if (suffix)
			verify_count(&others, m->entry->name, "");
		if (suffix && is_imported(v, suffix) && is_for_one(v, m, suffix))
			verify_count(&lones, m->entry->name, "");
	}

	const struct wheel_name *n = &v->report.name;
	/* What is for Windows may be there for no import at all. */
	bool sure = others.count && !imported && !path_has_suffix(others.file, ".pyd");
	if (others.count)
		verify_add(v, sure ? FINDING_ERROR : FINDING_WARNING, RULE_MODULE, others.file,
			   "has a suffix that no Python compatible with '%s-%s-%s' imports%s%s",
			   n->python, n->abi, n->platform,
			   sure ? ": the wheel has no module that is" : "",
			   verify_more(v, &others, "modules"));
	if (lones.count)
		verify_add(v, FINDING_WARNING, RULE_MODULE, lones.file,
			   "is looked for by one Python alone, and others take '%s-%s', too%s",
			   n->python, n->abi, verify_more(v, &lones, "modules"));
}

/* Returns the lowest minor version that an abi3 wheel declares; 0 for any other wheel. */
static unsigned promised_abi(const struct verifying *v)
{
	struct strlist tags = {0}, abis = {0};
	unsigned lowest = 0;

	strlist_split(&abis, v->a, v->report.name.abi, ".");
	strlist_split(&tags, v->a, v->report.name.python, ".");
	for (size_t i = 0; i < tags.count && strlist_contains(&abis, "abi3"); i++) {
		unsigned minor = strncmp(tags.items[i], "cp3", 3) == 0
					 ? (unsigned)strtoul(tags.items[i] + 3, NULL, 10)
					 : 0;
		lowest = minor && (!lowest || minor < lowest) ? minor : lowest;
	}

	return lowest;
}

/* The first Python that both the tag and Requires-Python take. */
static unsigned first_python(const struct verifying *v, unsigned promised)
{
	enum { MINORS = 30 };
	enum wheel_python_fit fit = WHEEL_PYTHON_ALWAYS;

	for (unsigned minor = promised; v->requires_python && minor < MINORS; minor++) {
		const char *python = arena_printf(v->a, "3.%u", minor);
		if (wheel_requires_python(v->requires_python, python, v->a, &fit, ERR_IGNORED) < 0)
			return promised;
		if (fit != WHEEL_PYTHON_NEVER)
			return minor;
	}

	return promised;
}

/* Whether a library is needed that was not given, and that
 * may define names like Python's: a binding generator's. */
static bool lacks_libraries(const struct verifying *v)
{
	for (size_t i = 0; i < v->count; i++)
		for (size_t k = 0; k < v->members[i].elf.needed.count; k++) {
			const char *needed = v->members[i].elf.needed.items[k];
			if (!verify_inside(v, needed) && !manylinux_allows(v->q->policy, needed) &&
			    !verify_at_hand(v, needed))
				return true;
		}
	return false;
}

static void check_abi(struct verifying *v, const struct stable_abi *s,
		      const struct verify_member *m, unsigned promised)
{
	struct strlist outside = {0}, later = {0};
	unsigned newest = 0;

	for (size_t i = 0; i < m->elf.undefined.count; i++) {
		const char *symbol = m->elf.undefined.items[i];
		if (strncmp(symbol + (*symbol == '_'), "Py", 2) != 0 || strchr(symbol, '@'))
			continue;
		unsigned since = stable_abi_since(s, symbol);
		if ((since && since <= promised) || verify_is_defined(v, symbol))
			continue;
		strlist_ref(since ? &later : &outside, v->a, symbol);
		newest = since > newest ? since : newest;
	}

	bool perhaps = outside.count && lacks_libraries(v);
	if (outside.count)
		verify_add(v, perhaps ? FINDING_NOTE : FINDING_WARNING, RULE_ABI3, m->entry->name,
			   "uses %s, which the stable ABI does not guarantee: a later Python may "
			   "lack %s",
			   strlist_join(&outside, v->a, ", "),
			   perhaps ? "it, unless a library that was not given has it" : "it");
	if (later.count)
		verify_add(v, FINDING_ERROR, RULE_ABI3, m->entry->name,
			   "uses %s, which Python 3.%u has first, and the wheel is for 3.%u on",
			   strlist_join(&later, v->a, ", "), newest, promised);
}

void verify_modules(struct verifying *v)
{
	unsigned promised = v->named ? promised_abi(v) : 0;
	const struct stable_abi *s;
	struct err why = {0};

	if (!v->named)
		return;
	check_suffixes(v);
	if (!promised || !v->q->tables || !v->q->policy)
		return;
	promised = first_python(v, promised);
	if (stable_abi_load(v->q->tables->dir, v->a, &s, &why) < 0) {
		v->fault = why;
		return;
	}

	/* A module for one Python alone may use all that Python has. */
	for (size_t i = 0; i < v->count; i++)
		if (verify_is_library(&v->members[i]) &&
		    !strstr(path_base(v->members[i].entry->name), ".cpython-3"))
			check_abi(v, s, &v->members[i], promised);
}
