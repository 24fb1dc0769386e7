#include "core/wheel/wheel_requires.h"

#include <string.h>

#include "base/path.h"
#include "base/version.h"

char *wheel_requires_name(const char *requirement, struct arena *a)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	requirement += strspn(requirement, " \t");
	return wheel_normalize(arena_strndup(a, requirement, strspn(requirement, letters)), a);
}

static bool same_distribution(const char *old, const char *new, struct arena *a)
{
	return strcmp(wheel_requires_name(old, a), wheel_requires_name(new, a)) == 0;
}

void wheel_requires_replace(struct wheel_headers *h, struct arena *a, const char *requirement)
{
	wheel_headers_replace(h, a, "Requires-Dist", requirement, same_distribution);
}

/* One clause as version_in has it for versions without a suffix, which Pythons are: before a pre-release of 3.12 is
 * before 3.12. "": all fit; NULL: it is not a clause. */
static const char *plain_clause(const char *clause, struct arena *a)
{
	static const char *const operators[] = {"===", "==", "!=", "<=", ">=", "~=", "<", ">"};
	const char *op = NULL, *last = clause + strlen(clause);
	for (size_t i = 0; i < ARRAY_LEN(operators) && !op; i++)
		op = strncmp(clause, operators[i], strlen(operators[i])) == 0 ? operators[i] : NULL;
	if (!op)
		return NULL;
	const char *text = clause + strlen(op) + strspn(clause + strlen(op), " \t");
	bool equal = strcmp(op, "==") == 0 || strcmp(op, "!=") == 0, any = equal && path_has_suffix(text, ".*");
	char *version = arena_strndup(a, text, (size_t)(last - text) - (any ? 2 : 0));
	size_t numbers = strspn(version, "0123456789.");
	while (numbers && version[numbers - 1] == '.')
		numbers--;
	const char *suffix = version + numbers, *release = arena_strndup(a, version, numbers);
	if (!wheel_version_key(version, a) || !numbers || (any && *suffix) || (*op == '~' && !strchr(release, '.')))
		return NULL;
	if (!*suffix)
		return arena_printf(a, "%.2s%s%s", strlen(op) == 3 ? "==" : op, release, any ? ".*" : "");
	bool later = strstr(suffix, "post") != NULL;
	if (*op == '=' || *op == '!')
		return *op == '=' ? "<0" : "";
	if (*op == '<')
		return arena_printf(a, "%s%s", later ? "<=" : "<", release);
	return arena_printf(a, "%s%s", *op == '~' ? "~=" : later ? ">" : ">=", release);
}

int wheel_requires_python(const char *range, const char *python, struct arena *a, enum wheel_python_fit *ret,
			  struct err *e)
{
	enum { PATCHES = 100 };
	struct strlist clauses = {0}, plain = {0};
	const char *numbers = arena_strndup(a, python, strspn(python, "0123456789."));
	unsigned fits = 0;
	strlist_split(&clauses, a, range, ",");
	for (size_t i = 0; i < clauses.count; i++) {
		const char *clause = clauses.items[i] + strspn(clauses.items[i], " \t\r\n");
		size_t len = strlen(clause);
		while (len && strchr(" \t\r\n", clause[len - 1]))
			len--;
		const char *one = len ? plain_clause(arena_strndup(a, clause, len), a) : "";
		if (!one)
			return err_set(e, ERR_INTEGRITY, "'%.*s' is not a version specifier of PEP 440", (int)len,
				       clause);
		if (*one)
			strlist_ref(&plain, a, one);
	}
	const char *all = strlist_join(&plain, a, ",");
	for (unsigned i = 0; i < PATCHES; i++) {
		bool in;
		if (version_in(arena_printf(a, "%s.%u", numbers, i), all, &in, e) < 0)
			return -1;
		fits += in;
	}
	*ret = fits == PATCHES ? WHEEL_PYTHON_ALWAYS : fits ? WHEEL_PYTHON_BY_PATCH : WHEEL_PYTHON_NEVER;
	return 0;
}
