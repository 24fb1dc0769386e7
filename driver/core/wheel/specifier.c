/* Versions in their order, and specifiers of them: PEP 440. */
#include <strings.h>

#include "core/wheel/requirement.h"

enum phase { PHASE_DEV, PHASE_A, PHASE_B, PHASE_RC, PHASE_FINAL };

/* Numbers as digits without leading zeros. */
struct version {
	const char *epoch;   /* "0" if none */
	const char *release; /* "2.6": zeros at its end are left out */
	enum phase phase;
	const char *pre;   /* number of a, b, rc */
	const char *post;  /* NULL: none */
	const char *dev;   /* NULL: none */
	const char *local; /* NULL: none */
};

static const char *take_digits(const char **at, struct arena *a)
{
	const size_t n = strspn(*at, "0123456789");
	const char *digits = arena_strndup(a, *at, n);

	*at += n;
	return digits;
}

static const char *take_after(const char **at, const char *word, struct arena *a)
{
	const size_t n = strlen(word);

	if (strncmp(*at, word, n) != 0)
		return NULL;
	*at += n;
	return take_digits(at, a);
}

/* By its key, in which everything has one spelling. */
static bool read_version(const char *text, struct arena *a, struct version *ret)
{
	static const char *const words[] = {[PHASE_A] = "a", [PHASE_B] = "b", [PHASE_RC] = "rc"};
	const char *at = wheel_version_key(text, a);
	struct version v = {.epoch = "0", .phase = PHASE_FINAL, .pre = "0"};

	if (!at)
		return false;
	const size_t digits = strspn(at, "0123456789");
	if (at[digits] == '!') {
		v.epoch = arena_strndup(a, at, digits);
		at += digits + 1;
	}

	size_t n = strspn(at, "0123456789.");
	while (n && at[n - 1] == '.')
		n--;
	v.release = arena_strndup(a, at, n);
	at += n;
	for (unsigned i = PHASE_A; i <= PHASE_RC && v.phase == PHASE_FINAL; i++) {
		const char *number = take_after(&at, words[i], a);
		if (number) {
			v.phase = (enum phase)i;
			v.pre = number;
		}
	}

	v.post = take_after(&at, ".post", a);
	v.dev = take_after(&at, ".dev", a);
	if (v.dev && !v.post && v.phase == PHASE_FINAL)
		v.phase = PHASE_DEV;
	v.local = *at == '+' ? at + 1 : NULL;
	*ret = v;
	return true;
}

static int number_order(const char *x, const char *y)
{
	const size_t n = strlen(x), m = strlen(y);

	if (n != m)
		return n < m ? -1 : 1;
	return strcmp(x, y);
}

/* One piece of a label: numbers come after words. */
static int piece_order(const char *x, const char *y)
{
	const bool left = !x[strspn(x, "0123456789")], right = !y[strspn(y, "0123456789")];

	if (left && right)
		return number_order(x, y);
	return left != right ? (int)left - (int)right : strcmp(x, y);
}

static int local_order(const char *x, const char *y, struct arena *a)
{
	struct strlist left = {0}, right = {0};

	if (!x || !y)
		return (x != NULL) - (y != NULL);
	strlist_split(&left, a, x, ".");
	strlist_split(&right, a, y, ".");
	for (size_t i = 0; i < left.count && i < right.count; i++) {
		const int c = piece_order(left.items[i], right.items[i]);
		if (c)
			return c;
	}

	return (left.count > right.count) - (left.count < right.count);
}

/* `none`: how a version without the part compares with one that has it. */
static int part_order(const char *x, const char *y, int none)
{
	if (x && y)
		return number_order(x, y);
	return x ? -none * (y == NULL) : none * (y != NULL);
}

static int base_order(const struct version *x, const struct version *y)
{
	const int c = number_order(x->epoch, y->epoch);
	return c ? c : version_cmp(x->release, y->release);
}

/* Without the local labels. */
static int public_order(const struct version *x, const struct version *y)
{
	int c = base_order(x, y);

	if (!c)
		c = (int)x->phase - (int)y->phase;
	if (!c)
		c = number_order(x->pre, y->pre);
	if (!c)
		c = part_order(x->post, y->post, -1);
	return c ? c : part_order(x->dev, y->dev, 1);
}

static int full_order(const struct version *x, const struct version *y, struct arena *a)
{
	const int c = public_order(x, y);
	return c ? c : local_order(x->local, y->local, a);
}

int pep440_cmp(const char *x, const char *y, struct arena *a)
{
	struct version left, right;
	const bool is_left = read_version(x, a, &left), is_right = read_version(y, a, &right);

	if (!is_left || !is_right)
		return (int)is_left - (int)is_right;
	return full_order(&left, &right, a);
}

struct clause {
	const char *op;
	const char *text;    /* behind the operator, without ".*" */
	const char *release; /* its numbers as they are written: "2.0" */
	bool any;            /* ".*" */
	struct version version;
};

static const char *operator_of(const char *clause)
{
	static const char *const operators[] = {"===", "==", "!=", "<=", ">=", "~=", "<", ">"};

	for (size_t i = 0; i < ARRAY_LEN(operators); i++)
		if (strncmp(clause, operators[i], strlen(operators[i])) == 0)
			return operators[i];
	return NULL;
}

static bool is_op(const struct clause *c, const char *op)
{
	return strcmp(c->op, op) == 0;
}

/* The numbers of "v1!2.0rc1" as they are written: "2.0". */
static const char *written_release(const char *text, struct arena *a)
{
	const char *mark = strchr(text, '!');

	text = mark ? mark + 1 : text + (tolower((unsigned char)*text) == 'v');
	size_t n = strspn(text, "0123456789.");
	while (n && text[n - 1] == '.')
		n--;
	return arena_strndup(a, text, n);
}

/* Only == and != take local labels, and ".*" after a release. */
static bool read_clause(const char *from, size_t len, struct arena *a, struct clause *ret)
{
	struct clause c = {.op = operator_of(from)};

	if (!c.op)
		return false;
	const size_t op = strlen(c.op), skip = op + strspn(from + op, " \t");
	if (skip >= len)
		return false;
	char *text = arena_strndup(a, from + skip, len - skip);
	c.text = text;
	if (is_op(&c, "===")) {
		*ret = c;
		return !strpbrk(text, " \t\r\n;)");
	}

	const bool equal = is_op(&c, "==") || is_op(&c, "!=");
	c.any = equal && path_has_suffix(text, ".*");
	if (c.any)
		text[strlen(text) - 2] = '\0';
	if (!read_version(text, a, &c.version))
		return false;
	c.release = written_release(text, a);
	const struct version *v = &c.version;
	const bool plain = v->phase == PHASE_FINAL && !v->post && !v->dev;
	if (c.any && (!plain || v->local || text[strlen(text) - 1] == '.'))
		return false;
	*ret = c;
	return (equal || !v->local) && (!is_op(&c, "~=") || strchr(c.release, '.'));
}

/* The version's own local label does not count where the clause has none. */
static bool is_equal(const struct clause *c, const struct version *v, struct arena *a)
{
	bool in = false;

	if (!c->any)
		return c->version.local ? full_order(v, &c->version, a) == 0
					: public_order(v, &c->version) == 0;
	return strcmp(v->epoch, c->version.epoch) == 0 &&
	       version_in(v->release, arena_printf(a, "==%s.*", c->release), &in, ERR_IGNORED) ==
		       0 &&
	       in;
}

static bool is_compatible(const struct clause *c, const struct version *v, struct arena *a)
{
	const char *last = c->release ? strrchr(c->release, '.') : NULL;
	struct clause series = *c;

	if (!last) /* clauses without one are refused when they are read */
		return false;
	series.any = true;
	series.release = arena_strndup(a, c->release, (size_t)(last - c->release));
	return public_order(v, &c->version) >= 0 && is_equal(&series, v, a);
}

static bool is_pre(const struct version *v)
{
	return v->phase != PHASE_FINAL || v->dev;
}

/* Whether both are of one release, "2.6", or of one of its pre-releases, "2.6rc1". */
static bool is_same_release(const struct version *v, const struct version *w)
{
	return base_order(v, w) == 0 && v->phase == w->phase && number_order(v->pre, w->pre) == 0;
}

/* A pre-release of V is not before V. */
static bool is_before(const struct version *v, const struct version *w)
{
	if (public_order(v, w) >= 0)
		return false;
	if (w->post && !w->dev)
		return !(is_same_release(v, w) && part_order(v->post, w->post, -1) == 0);
	return is_pre(w) || base_order(v, w) != 0 || !is_pre(v);
}

/* A post-release of V is not behind V, nor is V with a label. */
static bool is_behind(const struct version *v, const struct version *w)
{
	return public_order(v, w) > 0 && !(is_same_release(v, w) && v->post && !w->post);
}

static bool clause_takes(const struct clause *c, const char *version, struct arena *a)
{
	struct version v;

	if (is_op(c, "==="))
		return strcasecmp(c->text, version) == 0;
	if (!read_version(version, a, &v))
		return false;
	if (is_op(c, "==") || is_op(c, "!="))
		return is_equal(c, &v, a) == (*c->op == '=');
	if (is_op(c, "~="))
		return is_compatible(c, &v, a);
	if (is_op(c, "<=") || is_op(c, ">="))
		return (*c->op == '<') == (public_order(&v, &c->version) < 0) ||
		       public_order(&v, &c->version) == 0;
	return *c->op == '<' ? is_before(&v, &c->version) : is_behind(&v, &c->version);
}

/* The next clause of *at: 1, 0 at the end, -1 if it is malformed: *ret_text is its text. */
static int next_clause(const char **at, struct arena *a, struct clause *ret, const char **ret_text)
{
	while (**at) {
		const char *from = *at + strspn(*at, " \t\r\n");
		size_t len = strcspn(from, ",");
		*at = from + len + (from[len] == ',');
		while (len && isspace((unsigned char)from[len - 1]))
			len--;
		*ret_text = arena_strndup(a, from, len);
		if (len)
			return read_clause(*ret_text, len, a, ret) ? 1 : -1;
	}

	return 0;
}

int specifier_check(const char *specifier, struct arena *a, struct err *e)
{
	struct clause c;
	const char *text = "";
	int got;

	while ((got = next_clause(&specifier, a, &c, &text)) > 0)
		;
	return got < 0 ? err_set(e, ERR_INTEGRITY, "'%s' is not a version specifier of PEP 440",
				 text)
		       : 0;
}

bool specifier_takes(const char *specifier, const char *version, struct arena *a)
{
	struct clause c;
	const char *text;
	int got;

	while ((got = next_clause(&specifier, a, &c, &text)) > 0)
		if (!clause_takes(&c, version, a))
			return false;
	return got == 0;
}

/* With its last number one higher: "2.5" of "2.4", the first
 * release that no "2.4.*" has, and "3rc2" of "3rc1". */
static const char *behind(const char *version, struct arena *a)
{
	const char *end = version + strcspn(version, "+"), *last = end;

	while (last > version && isdigit((unsigned char)last[-1]))
		last--;
	return arena_printf(a, "%.*s%lu", (int)(last - version), version,
			    strtoul(last, NULL, 10) + 1);
}

/* Versions at which a range may begin, as this clause bounds it. */
static void add_bounds(const struct clause *c, struct arena *a, struct strlist *ret)
{
	strlist_ref(ret, a, c->text);
	if (is_op(c, "==="))
		return;
	strlist_addf(ret, a, "%s!%s", c->version.epoch, c->release);
	strlist_addf(ret, a, "%s!%s.0.0.1", c->version.epoch, c->release);
	strlist_addf(ret, a, "%s!%s", c->version.epoch, behind(c->release, a));
	strlist_ref(ret, a, behind(c->text, a));
}

/* A range that is not empty has its beginning in it, or what comes next. */
bool specifier_takes_some(const char *specifier, struct arena *a)
{
	const char *at = specifier, *text;
	struct strlist versions = {0};
	struct clause c;
	int got;

	strlist_ref(&versions, a, "0");
	while ((got = next_clause(&at, a, &c, &text)) > 0)
		add_bounds(&c, a, &versions);
	for (size_t i = 0; i < versions.count; i++)
		if (specifier_takes(specifier, versions.items[i], a))
			return true;
	return got < 0;
}

const char *specifier_pin(const char *specifier, struct arena *a)
{
	struct clause c, more;
	const char *text;

	if (next_clause(&specifier, a, &c, &text) <= 0 ||
	    next_clause(&specifier, a, &more, &text) != 0)
		return NULL;
	return strncmp(c.op, "==", 2) == 0 && !c.any ? c.text : NULL;
}

bool specifier_takes_series(const char *specifier, const char *series, struct arena *a)
{
	enum { PATCHES = 30 };
	const char *pin = specifier_pin(specifier, a);
	bool in = false;

	if (pin)
		return version_in(pin, arena_printf(a, "==%s.*", series), &in, ERR_IGNORED) == 0 &&
		       in;
	for (unsigned i = 0; i < PATCHES; i++)
		if (specifier_takes(specifier, arena_printf(a, "%s.%u", series, i), a))
			return true;
	return false;
}

int wheel_requires_python(const char *range, const char *python, struct arena *a,
			  enum wheel_python_fit *ret, struct err *e)
{
	enum { PATCHES = 100 };
	const char *numbers = arena_strndup(a, python, strspn(python, "0123456789."));
	unsigned fits = 0;

	if (specifier_check(range, a, e) < 0)
		return -1;
	for (unsigned i = 0; i < PATCHES; i++) {
		AUTO_ARENA struct arena own = {0};
		fits += specifier_takes(range, arena_printf(&own, "%s.%u", numbers, i), &own);
	}

	*ret = fits == PATCHES ? WHEEL_PYTHON_ALWAYS
	       : fits          ? WHEEL_PYTHON_BY_PATCH
			       : WHEEL_PYTHON_NEVER;
	return 0;
}
