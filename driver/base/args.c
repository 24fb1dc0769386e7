#include "base/args.h"

#include <limits.h>

#include "base/text.h"

/* The words being parsed. A first pass only checks, so
 * that a wrong command line leaves the target untouched. */
struct parse {
	const struct arg_def *const *tables;
	size_t ntables;
	char *target; /* NULL: only check */
	int argc;
	char *const *argv;
	int next;
	struct arena *arena;
	struct strlist *positional;
	struct kvlist ones; /* what options of ARG_ONE were given */
	struct arena *own;  /* of ones */
};

static bool is_text(const struct arg_def *d)
{
	return d->type == ARG_STRING || d->type == ARG_ONE;
}

/* By the short name `c`, or by the long one if that is 0. */
static const struct arg_def *find(const struct parse *p, char c, const char *name, size_t len)
{
	for (size_t t = 0; t < p->ntables; t++)
		for (const struct arg_def *d = p->tables[t]; d->name; d++)
			if (c ? d->short_name == c
			      : strlen(d->name) == len && memcmp(d->name, name, len) == 0)
				return d;
	return NULL;
}

static int unknown_long(const struct parse *p, const char *name, size_t len, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0};

	for (size_t t = 0; t < p->ntables; t++)
		for (const struct arg_def *d = p->tables[t]; d->name; d++)
			strlist_ref(&known, &a, d->name);
	for (size_t t = 0; t < p->ntables; t++)
		for (const struct arg_def *d = p->tables[t]; d->name; d++)
			if (d->type == ARG_FLAG)
				strlist_addf(&known, &a, "no-%s", d->name);
	const char *near = suggest_nearest(arena_strndup(&a, name, len), strlist_argv(&known, &a),
					   known.count);
	err_set(e, ERR_USAGE, "unknown option '--%.*s'", (int)len, name);
	return near ? err_hint(e, "did you mean '--%s'?", near) : -1;
}

/* An option with its value. */
struct given {
	const struct arg_def *def;
	const char *shown; /* the option as the user wrote it */
	const char *value;
};

static int store_uint(const struct parse *p, const struct given *g, struct err *e)
{
	const struct arg_def *d = g->def;
	const char *shown = g->shown, *value = g->value;
	bool digits = *value && strspn(value, "0123456789") == strlen(value);

	errno = 0;
	unsigned long n = digits ? strtoul(value, NULL, 10) : 0;
	unsigned least = d->type == ARG_COUNT;
	if (!digits || errno || n > UINT_MAX || n < least) {
		err_set(e, ERR_USAGE, "option '%s': not a number%s: '%s'", shown,
			least ? " from 1 on" : "", value);
		return err_hint(e, "give a decimal number from %u to %u", least, UINT_MAX);
	}

	if (p->target)
		*(unsigned *)(p->target + d->offset) = (unsigned)n;
	return 0;
}

/* Checks what a table says of a piece of a value: NAME=VALUE, or one of the values it lists. */
static int check_piece(const struct arg_def *d, const char *shown, const char *piece, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0};

	if (d->type == ARG_PAIRS) {
		if (*piece != '=' && strchr(piece, '='))
			return 0;
		err_set(e, ERR_USAGE, "option '%s': not NAME=VALUE: '%s'", shown, piece);
		return err_hint(e, "--%s: %s", d->name, d->help);
	}

	if (!d->values || *d->values == '<')
		return 0;
	strlist_split(&known, &a, d->values, " ");
	if (strlist_contains(&known, piece))
		return 0;
	const char *near = suggest_nearest(piece, known.items, known.count),
		   *last = known.items[--known.count];
	err_set(e, ERR_USAGE, "option '%s': unknown value '%s'", shown, piece);
	const char *choices = strlist_join(&known, &a, ", ");
	return suggest_hint(e, near, arena_printf(&a, "it is %s or %s", choices, last));
}

/* The kind of value that an option needs, in words. */
static const char *value_kind(const struct arg_def *d)
{
	if (strcmp(d->metavar, "FILE") == 0)
		return "file";
	if (strcmp(d->metavar, "DIR") == 0 || strcmp(d->metavar, "TREE") == 0)
		return "directory";
	return "value";
}

static int store(struct parse *p, const struct given *g, struct err *e)
{
	const struct arg_def *d = g->def;
	const char *shown = g->shown, *value = g->value;
	AUTO_ARENA struct arena a = {0};
	struct strlist pieces = {0};

	if (d->type == ARG_UINT || d->type == ARG_COUNT)
		return store_uint(p, g, e);
	/* Often an unset variable of a shell: it would
	 * be the current directory, or all of a matrix. */
	const bool lists = d->type == ARG_LIST || d->type == ARG_PAIRS;
	if (!value[lists ? strspn(value, ",") : 0])
		return err_set(e, ERR_USAGE, "option '%s' needs a %s, and its value is empty",
			       shown, value_kind(d));
	const char *was = d->type == ARG_ONE ? kvlist_get(&p->ones, d->name) : NULL;
	if (was && strcmp(was, value) != 0) {
		err_set(e, ERR_USAGE, "option '--%s' is given twice: '%s' and '%s'", d->name, was,
			value);
		return err_hint(e, "give one; a file for --matrix lists several variants");
	}

	if (d->type == ARG_ONE)
		kvlist_set(&p->ones, p->own, d->name, value);
	if (is_text(d) || d->type == ARG_EACH)
		strlist_ref(&pieces, &a, value);
	else
		strlist_split(&pieces, &a, value, ",");
	for (size_t i = 0; i < pieces.count; i++)
		if (check_piece(d, shown, pieces.items[i], e) < 0)
			return -1;
	if (!p->target)
		return 0;
	void *to = p->target + d->offset;
	if (is_text(d))
		*(const char **)to = value;
	else if (d->type == ARG_LIST || d->type == ARG_EACH)
		strlist_append(to, p->arena, &pieces);
	for (size_t i = 0; d->type == ARG_PAIRS && i < pieces.count; i++) {
		const char *piece = pieces.items[i], *equals = strchr(piece, '=');
		kvlist_set(to, p->arena, arena_strndup(&a, piece, (size_t)(equals - piece)),
			   equals + 1);
	}

	return 0;
}

static void set_flag(const struct parse *p, const struct arg_def *d, bool on)
{
	if (p->target)
		*(bool *)(p->target + d->offset) = on;
}

/* The word behind an option. One that looks like a long
 * option is more likely the next option than a value. */
static const char *take_value(struct parse *p, const struct arg_def *d, const char *shown,
			      struct err *e)
{
	if (p->next < p->argc && strncmp(p->argv[p->next], "--", 2) != 0)
		return p->argv[p->next++];
	err_set(e, ERR_USAGE, "option '%s' needs a value", shown);
	err_hint(e, "write --%s=%s", d->name, d->metavar ? d->metavar : "VALUE");
	return NULL;
}

static int parse_long(struct parse *p, const char *word, struct err *e)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct arg_def *d = find(p, 0, name, len);
	bool on = true;

	if (!d && len > 3 && strncmp(name, "no-", 3) == 0) {
		d = find(p, 0, name + 3, len - 3);
		on = false;
		if (d && d->type != ARG_FLAG)
			d = NULL;
	}

	if (!d)
		return unknown_long(p, name, len, e);
	AUTO_ARENA struct arena a = {0};
	const char *shown = arena_strndup(&a, word, len + 2);
	if (d->type == ARG_FLAG) {
		if (equals)
			return err_set(e, ERR_USAGE, "option '%s' accepts no value", shown);
		set_flag(p, d, on);
		return 0;
	}

	const char *value = equals ? equals + 1 : take_value(p, d, shown, e);
	return value ? store(p, &(struct given){d, shown, value}, e) : -1;
}

/* "-j4", "-j 4", "-vq". */
static int parse_short(struct parse *p, const char *word, struct err *e)
{
	for (const char *c = word + 1; *c; c++) {
		const char shown[] = {'-', *c, '\0'};
		const struct arg_def *d = find(p, *c, NULL, 0);
		if (!d)
			return err_set(e, ERR_USAGE, "unknown option '%s'",
				       c == word + 1 && !c[1] ? shown : word);
		if (d->type == ARG_FLAG) {
			set_flag(p, d, true);
			continue;
		}

		const char *value = c[1] ? c + 1 : take_value(p, d, shown, e);
		return value ? store(p, &(struct given){d, shown, value}, e) : -1;
	}

	return 0;
}

static int parse_words(struct parse *p, struct err *e)
{
	bool options = true;

	p->next = 1;
	while (p->next < p->argc) {
		const char *word = p->argv[p->next++];
		int rc = 0;
		if (!options || word[0] != '-' || !word[1]) {
			if (p->target)
				strlist_ref(p->positional, p->arena, word);
		} else if (strcmp(word, "--") == 0) {
			options = false;
		} else {
			rc = word[1] == '-' ? parse_long(p, word, e) : parse_short(p, word, e);
		}

		if (rc)
			return -1;
	}

	return 0;
}

int args_parse(const struct arg_def *const *tables, size_t ntables, void *target, int argc,
	       char *const *argv, struct arena *a, struct strlist *positional, struct err *e)
{
	AUTO_ARENA struct arena own = {0};
	struct parse p = {.tables = tables,
			  .ntables = ntables,
			  .argc = argc,
			  .argv = argv,
			  .arena = a,
			  .positional = positional,
			  .own = &own};

	if (parse_words(&p, e) < 0)
		return -1;
	p.target = target;
	return parse_words(&p, e);
}

bool args_given(const struct arg_def *d, const void *target)
{
	const char *field = (const char *)target + d->offset;

	switch (d->type) {
	case ARG_FLAG:
		return *(const bool *)field;
	case ARG_STRING:
	case ARG_ONE:
		return *(const char *const *)field != NULL;
	case ARG_LIST:
	case ARG_EACH:
		return ((const struct strlist *)field)->count > 0;
	case ARG_PAIRS:
		return ((const struct kvlist *)field)->count > 0;
	default:
		return *(const unsigned *)field > 0;
	}
}

void args_values(const struct arg_def *d, const void *target, struct arena *a, struct strlist *ret)
{
	const void *field = (const char *)target + d->offset;
	const struct kvlist *pairs = d->type == ARG_PAIRS ? field : &(struct kvlist){0};

	if (is_text(d) && args_given(d, target))
		strlist_ref(ret, a, *(const char *const *)field);
	if ((d->type == ARG_UINT || d->type == ARG_COUNT) && args_given(d, target))
		strlist_addf(ret, a, "%u", *(const unsigned *)field);
	if (d->type == ARG_LIST || d->type == ARG_EACH)
		strlist_append(ret, a, field);
	for (size_t i = 0; i < pairs->count; i++)
		strlist_addf(ret, a, "%s=%s", pairs->items[i].key, pairs->items[i].value);
}
