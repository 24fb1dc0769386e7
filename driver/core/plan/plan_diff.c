#include "core/plan/plan.h"

#include "base/sys/json.h"

struct comparing {
	const struct plan *left, *right;
	json_t *rows;
	const char *section, *titled; /* the section of the last row; NULL before the first */
	struct arena *a;
};

static void add(struct comparing *c, const char *name, json_t *left, json_t *right)
{
	json_t *row = json_pack("{s:s, s:s, s:o, s:o}", "section", c->section, "name", name, "left",
				left, "right", right);

	if (c->titled != c->section)
		json_object_set_new(row, "-title", json_string(c->section));
	c->titled = c->section;
	json_array_append_new(c->rows, row);
}

static bool same(const char *x, const char *y)
{
	return x == y || (x && y && strcmp(x, y) == 0);
}

static json_t *side(const char *value, const char *from, const char *rule, const char *why)
{
	if (!value)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "value", json_or_null(value), "from",
			 json_or_null(from), "rule", json_filled(rule), "why", json_filled(why));
}

static void compare_text(struct comparing *c, const char *name, const char *left, const char *right)
{
	left = left && *left ? left : NULL;
	right = right && *right ? right : NULL;
	if (!same(left, right))
		add(c, name, side(left, NULL, NULL, NULL), side(right, NULL, NULL, NULL));
}

static void compare_parts(struct comparing *c)
{
	const struct plan *l = c->left, *r = c->right;
	struct arena *a = c->a;

	compare_text(c, "variant", l->variant, r->variant);
	compare_text(c, "package", l->package, r->package);
	compare_text(c, "release", l->release, r->release);
	compare_text(c, "version", plan_full_version(l, a), plan_full_version(r, a));
	compare_text(c, "platform", l->platform, r->platform);
	compare_text(c, "python", l->python, r->python);
	compare_text(c, "cuda", l->cuda, r->cuda);
	compare_text(c, "gpu", strlist_join(&l->gpu, a, " "), strlist_join(&r->gpu, a, " "));
	compare_text(c, "isa", l->isa, r->isa);
	compare_text(c, "cpu flags", strlist_join(&l->cpu_flags, a, " "),
		     strlist_join(&r->cpu_flags, a, " "));
	compare_text(c, "blas", l->blas, r->blas);
	compare_text(c, "backend", l->package_row->backend, r->package_row->backend);
	compare_text(c, "against", strlist_join(&l->depends, a, " "),
		     strlist_join(&r->depends, a, " "));
	compare_text(c, "torch", l->torch_version, r->torch_version);
	compare_text(c, "series", l->package_row->series, r->package_row->series);
}

static json_t *setting_json(const struct setting *s, struct arena *a)
{
	return s ? side(s->value, settings_origin(s, a), s->rule, s->why) : json_null();
}

/* Whether one of the environments has it. */
static bool in_environment(const struct comparing *c, const char *name)
{
	return settings_get(&c->left->env, name) || settings_get(&c->right->env, name);
}

/* Both lists are sorted by name. `not_env`: what the environment has is left out. */
static void compare_settings(struct comparing *c, const struct settings *l,
			     const struct settings *r, bool not_env)
{
	size_t i = 0, k = 0;

	while (i < l->count || k < r->count) {
		int order = i == l->count   ? 1
			    : k == r->count ? -1
					    : strcmp(l->items[i].name, r->items[k].name);
		const struct setting *x = order <= 0 ? &l->items[i++] : NULL;
		const struct setting *y = order >= 0 ? &r->items[k++] : NULL;
		const char *name = x ? x->name : y ? y->name : "";
		if (not_env && in_environment(c, name))
			continue;
		if (!x || !y || !same(x->value, y->value))
			add(c, name, setting_json(x, c->a), setting_json(y, c->a));
	}
}

static void sources_of(const struct plan *p, struct arena *a, struct kvlist *ret)
{
	for (unsigned i = 0; i < p->package_row->sources_count; i++)
		kvlist_set(ret, a, p->package_row->sources[i].name,
			   p->package_row->sources[i].sha256);
}

static void patches_of(const struct plan *p, struct arena *a, struct kvlist *ret)
{
	for (size_t i = 0; i < p->patches_count; i++)
		kvlist_set(ret, a, p->patches[i].name, p->patches[i].sha256);
}

/* sources_of or patches_of. */
typedef void list_of_plan(const struct plan *p, struct arena *a, struct kvlist *ret);

static void compare_lists(struct comparing *c, list_of_plan *list_of)
{
	struct kvlist l = {0}, r = {0};

	list_of(c->left, c->a, &l);
	list_of(c->right, c->a, &r);
	for (size_t i = 0; i < l.count; i++)
		compare_text(c, l.items[i].key, l.items[i].value, kvlist_get(&r, l.items[i].key));
	for (size_t i = 0; i < r.count; i++)
		if (!kvlist_get(&l, r.items[i].key))
			compare_text(c, r.items[i].key, NULL, r.items[i].value);
}

static void compare_notes(struct comparing *c)
{
	const struct plan *l = c->left, *r = c->right;

	for (size_t i = 0; i < l->notes.count; i++)
		if (!strlist_contains(&r->notes, l->notes.items[i]))
			compare_text(c, "note", l->notes.items[i], NULL);
	for (size_t i = 0; i < r->notes.count; i++)
		if (!strlist_contains(&l->notes, r->notes.items[i]))
			compare_text(c, "note", NULL, r->notes.items[i]);
}

json_t *plan_compare(const struct plan *left, const struct plan *right, struct arena *a)
{
	struct comparing c = {.left = left, .right = right, .rows = json_array(), .a = a};

	c.section = "plan";
	compare_parts(&c);
	c.section = "environment";
	compare_settings(&c, &left->env, &right->env, false);
	c.section = "cache entries";
	compare_settings(&c, &left->cmake, &right->cmake, true);
	c.section = "sources";
	compare_lists(&c, sources_of);
	c.section = "patches";
	compare_lists(&c, patches_of);
	c.section = "notes";
	compare_notes(&c);
	c.section = "keys";
	compare_text(&c, "compile key", left->compile_key, right->compile_key);
	compare_text(&c, "output key", left->output_key, right->output_key);
	return json_pack("{s:i, s:s, s:s, s:o, s:{s:s, s:s}}", "schema", PLAN_SCHEMA, "left",
			 left->variant, "right", right->variant, "differences", c.rows, "-releases",
			 "left", left->release, "right", right->release);
}

static const struct show differences[] = {
	{.text = "\n{-title}", .bold = true},
	{.text = "{name}", .indent = 2},
	{.text = "- {left.value}[  \\[{left.from}[, {left.rule}]\\] {left.why}]", .indent = 4},
	{.text = "+ {right.value}[  \\[{right.from}[, {right.rule}]\\] {right.why}]", .indent = 4},
	{0}};
const struct show plan_diff_rows[] = {{.text = "- {left} ({-releases.left})"},
				      {.text = "+ {right} ({-releases.right})"},
				      {.each = "differences", .rows = differences},
				      {.text = "{!differences}no difference"},
				      {0}};

#define MAX_VALUE 120

/* One line: what it is about ("toolchain gcc", "env USE_MPI", "python") and what it says. */
struct input {
	const char *about, *value;
};

struct inputs {
	struct input *items;
	size_t count;
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_+.-", c));
}

/* A name inside the value, as "USE_MPI=ON" and "gcc: gcc (Debian)
 * 14" have: its length, 0 for none; *ret_rest: what follows. */
static size_t inner_name(const char *value, const char **ret_rest)
{
	size_t n = 0;

	while (is_name(value[n]))
		n++;
	if (n && value[n] == '=')
		*ret_rest = value + n + 1;
	else if (n && value[n] == ':' && value[n + 1] == ' ')
		*ret_rest = value + n + 2;
	else
		return 0;
	return n;
}

/* Digests are shortened: their beginning distinguishes them. */
static const char *shown(const char *value, struct arena *a)
{
	AUTO_BUF struct buf out = {0};

	while (*value) {
		size_t n = strspn(value, "0123456789abcdef");
		if (n == 64 && !isalnum((unsigned char)value[n])) {
			buf_add(&out, value, 12);
			value += n;
			continue;
		}

		do
			buf_addc(&out, *value++);
		while (*value && isalnum((unsigned char)value[-1]));
	}

	if (out.len > MAX_VALUE) {
		out.len = MAX_VALUE;
		/* not through a character */
		while (out.len && ((unsigned char)out.data[out.len] & 0xC0) == 0x80)
			out.len--;
		buf_addstr(&out, "...");
	}

	return arena_strdup(a, buf_cstr(&out));
}

static int by_about(const void *a, const void *b)
{
	const struct input *x = a, *y = b;
	int c = strcmp(x->about, y->about);
	return c ? c : strcmp(x->value, y->value);
}

static struct inputs parse(const char *text, struct arena *a)
{
	struct strlist lines = {0};
	struct inputs in = {0};

	strlist_split(&lines, a, text, "\n");
	in.items = arena_array(a, lines.count + 1, sizeof(*in.items));
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i], *colon = strstr(line, ": "), *rest;
		if (!*line)
			continue;
		struct input *one = &in.items[in.count++];
		*one = (struct input){.about = line, .value = ""};
		if (!colon)
			continue;
		one->about = arena_strndup(a, line, (size_t)(colon - line));
		one->value = colon + 2;
		size_t n = inner_name(one->value, &rest);
		if (n) {
			one->about = arena_printf(a, "%s %.*s", one->about, (int)n, one->value);
			one->value = rest;
		}
	}

	qsort(in.items, in.count, sizeof(*in.items), by_about);
	return in;
}

/* One of the two may be NULL. */
static void say(struct strlist *ret, struct arena *a, const struct input *old,
		const struct input *new)
{
	strlist_addf(ret, a, "%s: %s → %s", old ? old->about : new->about,
		     old ? shown(old->value, a) : "none", new ? shown(new->value, a) : "none");
}

void key_diff(const char *old, const char *new, struct arena *a, struct strlist *ret)
{
	struct inputs x = parse(old, a), y = parse(new, a);

	for (size_t i = 0, k = 0; i < x.count || k < y.count;) {
		int c = i == x.count   ? 1
			: k == y.count ? -1
				       : strcmp(x.items[i].about, y.items[k].about);
		if (c < 0) {
			say(ret, a, &x.items[i], NULL);
			i++;
		} else if (c > 0) {
			say(ret, a, NULL, &y.items[k]);
			k++;
		} else {
			if (strcmp(x.items[i].value, y.items[k].value) != 0)
				say(ret, a, &x.items[i], &y.items[k]);
			i++;
			k++;
		}
	}
}
