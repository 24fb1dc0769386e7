/* Requirements and their markers: PEP 508 as packaging reads it. */
#include <strings.h>

#include "core/wheel/requirement.h"

#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

enum { DEPTH_MAX = 100, PATCHES = 100, MINORS = 30 };

struct reader {
	const char *at;
	const struct marker_env *env;
	struct arena *a;
	unsigned depth;
	bool bad; /* what was read is not a marker */
};

struct operand {
	const char *text;
	bool quoted;
};

static void skip(struct reader *r)
{
	r->at += strspn(r->at, " \t");
}

static bool take_word(struct reader *r, const char *word)
{
	const size_t n = strlen(word);

	skip(r);
	if (strncmp(r->at, word, n) != 0 || isalnum((unsigned char)r->at[n]) || r->at[n] == '_')
		return false;
	r->at += n;
	return true;
}

static bool take_byte(struct reader *r, char byte)
{
	skip(r);
	if (*r->at != byte)
		return false;
	r->at++;
	return true;
}

/* ---- what the names stand for ---- */

/* The variables, and the names that setuptools once had. */
static const char *const variables[][2] = {
	{"python_version", NULL},
	{"python_full_version", NULL},
	{"os_name", NULL},
	{"sys_platform", NULL},
	{"platform_release", NULL},
	{"platform_system", NULL},
	{"platform_version", NULL},
	{"platform_machine", NULL},
	{"platform_python_implementation", NULL},
	{"implementation_name", NULL},
	{"implementation_version", NULL},
	{"extra", NULL},
	{"extras", NULL},
	{"dependency_groups", NULL},
	{"os.name", "os_name"},
	{"sys.platform", "sys_platform"},
	{"platform.version", "platform_version"},
	{"platform.machine", "platform_machine"},
	{"platform.python_implementation", "platform_python_implementation"},
	{"python_implementation", "platform_python_implementation"},
};

static const char *variable_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		if (strcmp(variables[i][0], name) == 0)
			return variables[i][1] ? variables[i][1] : variables[i][0];
	return NULL;
}

/* What Python says of a system. */
struct system_words {
	const char *os_name, *sys_platform, *platform_system;
};

static const struct system_words *system_of(const char *platform)
{
	static const struct system_words linux_words = {"posix", "linux", "Linux"},
					 darwin_words = {"posix", "darwin", "Darwin"},
					 windows_words = {"nt", "win32", "Windows"};

	if (strncmp(platform, "win", 3) == 0)
		return &windows_words;
	if (path_has_suffix(platform, "-darwin") || strncmp(platform, "macosx", 6) == 0)
		return &darwin_words;
	return strstr(platform, "linux") ? &linux_words : NULL;
}

/* NULL for a machine of which only the tag is known. */
static const char *machine_of(const char *platform, struct arena *a)
{
	static const char *const words[][2] = {{"aarch64-darwin", "arm64"},
					       {"win_amd64", "AMD64"},
					       {"win_arm64", "ARM64"},
					       {"win32", "x86"}};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i][0], platform) == 0)
			return words[i][1];
	const char *dash = strchr(platform, '-');
	return dash ? arena_strndup(a, platform, (size_t)(dash - platform)) : NULL;
}

static const char *of_system(const char *name, const struct system_words *w)
{
	if (strcmp(name, "os_name") == 0)
		return w->os_name;
	if (strcmp(name, "sys_platform") == 0)
		return w->sys_platform;
	return strcmp(name, "platform_system") == 0 ? w->platform_system : NULL;
}

static bool is_full_version(const char *name)
{
	return strcmp(name, "python_full_version") == 0 ||
	       strcmp(name, "implementation_version") == 0;
}

static const char *numbers_of(const char *python, struct arena *a)
{
	return arena_strndup(a, python, strspn(python, "0123456789."));
}

/* "3.13.2", not "3.13". */
static bool is_whole(const char *python)
{
	const char *dot = strchr(python, '.');
	return dot && strchr(dot + 1, '.');
}

/* NULL: not known. */
static const char *value_of(const struct reader *r, const char *name)
{
	const struct marker_env *env = r->env;
	const struct system_words *system = env->platform ? system_of(env->platform) : NULL;

	if (strcmp(name, "extra") == 0)
		return env->extra ? wheel_normalize(env->extra, r->a) : NULL;
	if (strcmp(name, "implementation_name") == 0)
		return env->python ? "cpython" : NULL;
	if (strcmp(name, "platform_python_implementation") == 0)
		return env->python ? "CPython" : NULL;
	if (strcmp(name, "platform_machine") == 0)
		return env->platform ? machine_of(env->platform, r->a) : NULL;
	if (env->python && strcmp(name, "python_version") == 0) {
		const char *dot = strchr(env->python, '.');
		const size_t major = dot ? (size_t)(dot - env->python) + 1 : 0;
		return arena_strndup(r->a, env->python,
				     major + strspn(env->python + major, "0123456789"));
	}

	if (env->python && is_full_version(name))
		return is_whole(env->python) ? numbers_of(env->python, r->a) : NULL;
	return system ? of_system(name, system) : NULL;
}

/* ---- one comparison ---- */

/* Fields of versions are compared as such where that can be done, all others are equal or not. */
static enum holds compare(const char *left, const char *op, const char *right, const char *key,
			  struct arena *a)
{
	const bool version = is_full_version(key) || strcmp(key, "python_version") == 0 ||
			     strcmp(key, "platform_release") == 0;
	const char *specifier = arena_printf(a, "%s%s", op, right);
	bool holds;

	if (strcmp(op, "in") == 0 || strcmp(op, "not in") == 0)
		holds = (strstr(right, left) != NULL) == (*op == 'i');
	else if (version && strcmp(op, "===") == 0)
		holds = strcasecmp(left, right) == 0;
	else if (version && !strchr(right, ',') && specifier_check(specifier, a, ERR_IGNORED) == 0)
		holds = specifier_takes(specifier, left, a);
	else if (strcmp(op, "~=") == 0 || strcmp(op, "===") == 0)
		return HOLDS_PERHAPS; /* installers fail */
	else if (strcmp(op, "!=") == 0)
		holds = strcmp(left, right) != 0;
	else
		holds = op[1] == '=' && strcmp(left, right) == 0;
	return holds ? HOLDS_ALWAYS : HOLDS_NEVER;
}

static enum holds evaluate(const struct reader *r, const struct operand given[2], const char *op)
{
	struct operand sides[2] = {given[0], given[1]};
	const size_t at = sides[0].quoted ? 1 : 0; /* the variable that decides how */
	const char *key = sides[at].quoted ? "" : sides[at].text;

	if (!sides[0].quoted && !sides[1].quoted)
		return HOLDS_PERHAPS;
	if (strcmp(key, "extra") == 0)
		sides[1 - at].text = wheel_normalize(sides[1 - at].text, r->a);
	if (*key)
		sides[at].text = value_of(r, key);
	return sides[at].text ? compare(sides[0].text, op, sides[1].text, key, r->a)
			      : HOLDS_PERHAPS;
}

/* ---- the grammar ---- */

static struct operand take_operand(struct reader *r)
{
	struct operand o = {.text = ""};

	skip(r);
	const char mark = *r->at;
	o.quoted = mark == '\'' || mark == '"';
	const char *from = r->at + o.quoted;
	const size_t n = o.quoted ? strcspn(from, mark == '"' ? "\"" : "'")
				  : strspn(from, "abcdefghijklmnopqrstuvwxyz_.");
	o.text = arena_strndup(r->a, from, n);
	r->at = from + n;
	if (o.quoted) {
		r->bad |= !*r->at;
		r->at += *r->at != '\0';
		return o;
	}

	const char *variable = variable_of(o.text);
	r->bad |= !variable || isalnum((unsigned char)*r->at);
	o.text = variable ? variable : "";
	return o;
}

static const char *take_operator(struct reader *r)
{
	static const char *const operators[] = {"===", "==", "~=", "!=", "<=", ">=", "<", ">"};

	skip(r);
	for (size_t i = 0; i < ARRAY_LEN(operators); i++)
		if (strncmp(r->at, operators[i], strlen(operators[i])) == 0) {
			r->at += strlen(operators[i]);
			return operators[i];
		}
	if (take_word(r, "in"))
		return "in";
	if (take_word(r, "not") && take_word(r, "in"))
		return "not in";
	r->bad = true;
	return "==";
}

static enum holds any_of(struct reader *r);

static enum holds term(struct reader *r)
{
	struct operand sides[2];

	if (!take_byte(r, '(')) {
		sides[0] = take_operand(r);
		const char *op = take_operator(r);
		sides[1] = take_operand(r);
		return r->bad ? HOLDS_PERHAPS : evaluate(r, sides, op);
	}

	if (++r->depth > DEPTH_MAX) {
		r->bad = true;
		return HOLDS_PERHAPS;
	}

	const enum holds inner = any_of(r);
	r->bad |= !take_byte(r, ')');
	r->depth--;
	return inner;
}

static enum holds all_of(struct reader *r)
{
	enum holds holds = term(r);

	while (!r->bad && take_word(r, "and")) {
		const enum holds next = term(r);
		holds = next < holds ? next : holds;
	}

	return holds;
}

static enum holds any_of(struct reader *r)
{
	enum holds holds = all_of(r);

	while (!r->bad && take_word(r, "or")) {
		const enum holds next = all_of(r);
		holds = next > holds ? next : holds;
	}

	return holds;
}

static enum holds read_marker(const char *marker, const struct marker_env *env, struct arena *a,
			      bool *ret_bad)
{
	struct reader r = {.at = marker, .env = env, .a = a};
	const enum holds holds = any_of(&r);

	skip(&r);
	*ret_bad = r.bad || *r.at;
	return *ret_bad ? HOLDS_PERHAPS : holds;
}

static bool is_blank(const char *s)
{
	return !s[strspn(s, " \t")];
}

int marker_check(const char *marker, struct arena *a, struct err *e)
{
	const struct marker_env none = {0};
	bool bad = false;

	if (!is_blank(marker))
		(void)read_marker(marker, &none, a, &bad);
	return bad ? err_set(e, ERR_INTEGRITY, "'%s' is not a marker", marker) : 0;
}

static enum holds both(enum holds x, enum holds y)
{
	return x == y ? x : HOLDS_PERHAPS;
}

/* Over all patch releases of a Python whose minor version alone
 * is known: one by one, as a marker may name the version twice. */
static enum holds over_patches(const char *marker, const struct marker_env *env, struct arena *a)
{
	const char *numbers = numbers_of(env->python, a);
	enum holds all = HOLDS_PERHAPS;
	bool bad;

	for (unsigned i = 0; i < PATCHES; i++) {
		AUTO_ARENA struct arena own = {0};
		struct marker_env one = *env;
		one.python = arena_printf(&own, "%s.%u", numbers, i);
		const enum holds holds = read_marker(marker, &one, &own, &bad);
		all = i ? both(all, holds) : holds;
		if (all == HOLDS_PERHAPS)
			break;
	}

	return all;
}

enum holds marker_eval(const char *marker, const struct marker_env *env, struct arena *a)
{
	bool bad;

	if (is_blank(marker))
		return HOLDS_ALWAYS;
	const bool full =
		strstr(marker, "full_version") || strstr(marker, "implementation_version");
	if (full && env->python && !is_whole(env->python))
		return over_patches(marker, env, a);
	return read_marker(marker, env, a, &bad);
}

/* ---- requirements ---- */

/* Folded values of METADATA are one line. */
static char *on_one_line(const char *line, struct arena *a)
{
	char *out = arena_strdup(a, line + strspn(line, " \t\r\n"));

	for (char *c = out; *c; c++)
		*c = strchr("\r\n", *c) ? ' ' : *c;
	for (size_t n = strlen(out); n && strchr(" \t", out[n - 1]); n--)
		out[n - 1] = '\0';
	return out;
}

static const char *take_name(const char **at, struct arena *a)
{
	size_t n = isalnum((unsigned char)**at) ? strspn(*at, NAME_BYTES) : 0;

	while (n && !isalnum((unsigned char)(*at)[n - 1]))
		n--;
	const char *name = arena_strndup(a, *at, n);
	*at += n;
	*at += strspn(*at, " \t");
	return name;
}

static const char *take_extras(const char **at, struct arena *a, struct strlist *ret)
{
	bool more = false;

	for ((*at)++, *at += strspn(*at, " \t"); **at != ']' || more;) {
		const char *name = take_name(at, a);
		if (!*name)
			return strchr(*at, ']') ? "its extras are not names with commas between"
						: "its extras have no end";
		strlist_once(ret, a, wheel_normalize(name, a));
		more = **at == ',';
		*at += more;
		*at += strspn(*at, " \t");
		if (!more && **at != ']')
			return **at ? "its extras are not names with commas between"
				    : "its extras have no end";
	}

	(*at)++;
	*at += strspn(*at, " \t");
	return NULL;
}

/* Behind the blanks of `at`, without those at its end. */
static const char *trimmed(const char *at, size_t len, struct arena *a)
{
	const size_t blank = strspn(at, " \t");
	const char *from = at + (blank < len ? blank : len);

	len -= (size_t)(from - at);
	while (len && strchr(" \t", from[len - 1]))
		len--;
	return arena_strndup(a, from, len);
}

/* "@ URL", then a blank before ';'. */
static const char *take_url(const char **at, struct arena *a, struct requirement *r)
{
	*at += 1 + strspn(*at + 1, " \t");
	const size_t n = strcspn(*at, " \t");
	r->url = arena_strndup(a, *at, n);
	*at += n;
	*at += strspn(*at, " \t");
	if (!n)
		return "its '@' has no URL";
	return **at && **at != ';' ? "its URL is not followed by ' ;'" : NULL;
}

/* A comma at the end is taken, and no other one without a clause before it. */
static bool has_gap(const char *specifier)
{
	for (const char *c = specifier; *c; c += strcspn(c, ","), c += *c == ',')
		if (c[strspn(c, " \t")] == ',')
			return true;
	return false;
}

static const char *take_specifier(const char **at, struct arena *a, struct requirement *r,
				  struct err *why)
{
	const bool braced = **at == '(';
	const size_t n = strcspn(*at + braced, braced ? ")" : ";");
	const char *end = *at + braced + n;

	r->specifier = trimmed(*at + braced, n, a);
	if (braced && !*end)
		return "its '(' has no end";
	*at = end + braced + strspn(end + braced, " \t");
	if (**at && **at != ';')
		return "it has more than a version specifier before ';'";
	if (has_gap(r->specifier))
		return "a clause between its commas is empty";
	return specifier_check(r->specifier, a, why) < 0 ? why->msg : NULL;
}

int requirement_parse(const char *line, struct arena *a, struct requirement *ret, struct err *e)
{
	const char *text = on_one_line(line, a), *at = text, *fault = NULL;
	struct requirement r = {.line = text, .specifier = "", .url = "", .marker = ""};
	struct err why = {0};

	r.name = wheel_normalize(take_name(&at, a), a);
	if (!*r.name)
		fault = "it names nothing";
	if (!fault && *at == '[')
		fault = take_extras(&at, a, &r.extras);
	if (!fault)
		fault = *at == '@' ? take_url(&at, a, &r) : take_specifier(&at, a, &r, &why);
	if (!fault && *at == ';') {
		r.marker = trimmed(at + 1, strlen(at + 1), a);
		if (!*r.marker || marker_check(r.marker, a, ERR_IGNORED) < 0)
			fault = "the text after the ';' is not a marker";
	}

	if (fault)
		return err_set(e, ERR_INTEGRITY, "%s", fault);
	*ret = r;
	return 0;
}

/* ---- the scope of a wheel ---- */

static bool is_allowed(const char *requires_python, const char *python, struct arena *a)
{
	enum wheel_python_fit fit;

	return !requires_python ||
	       wheel_requires_python(requires_python, python, a, &fit, ERR_IGNORED) < 0 ||
	       fit != WHEEL_PYTHON_NEVER;
}

void wheel_scope_of(const struct wheel_name *n, const char *requires_python, struct arena *a,
		    struct wheel_scope *ret)
{
	struct wheel_scope s = {0};

	for (unsigned i = 0; i < MINORS; i++)
		for (unsigned threaded = 0; threaded < 2; threaded++) {
			const char *python = arena_printf(a, "3.%u%s", i, threaded ? "t" : "");
			if (wheel_name_takes(n, python, a) &&
			    is_allowed(requires_python, python, a))
				strlist_ref(&s.pythons, a, python);
		}
	wheel_name_platforms(n, a, &s.platforms);
	*ret = s;
}

enum holds requirement_holds(const struct requirement *r, const struct wheel_scope *s,
			     const char *extra, struct arena *a)
{
	enum holds all = HOLDS_PERHAPS;
	bool first = true;

	if (!*r->marker)
		return HOLDS_ALWAYS;
	for (size_t i = 0; i < (s->pythons.count ? s->pythons.count : 1); i++)
		for (size_t k = 0; k < (s->platforms.count ? s->platforms.count : 1); k++) {
			const struct marker_env env = {
				.python = s->pythons.count ? s->pythons.items[i] : NULL,
				.platform = s->platforms.count ? s->platforms.items[k] : NULL,
				.extra = extra};
			const enum holds one = marker_eval(r->marker, &env, a);
			all = first ? one : both(all, one);
			first = false;
		}
	return all;
}
