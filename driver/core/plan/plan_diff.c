#include "core/plan/plan_diff.h"

#include <ctype.h>

#include "base/sys/json.h"

static void add(struct plan_diff *d, struct arena *a, const struct plan_difference *item)
{
	d->items = arena_room(a, d->items, d->count, &d->cap, 32, sizeof(*d->items));
	d->items[d->count++] = *item;
}

static bool same(const char *x, const char *y)
{
	return x == y || (x && y && strcmp(x, y) == 0);
}

static void compare_text(struct plan_diff *d, struct arena *a, const char *section, const char *name, const char *left,
			 const char *right)
{
	left = left && *left ? left : NULL;
	right = right && *right ? right : NULL;
	if (same(left, right))
		return;
	add(d, a, &(struct plan_difference){section, name, {left, "", "", ""}, {right, "", "", ""}});
}

static void compare_parts(const struct plan *l, const struct plan *r, struct arena *a, struct plan_diff *d)
{
	compare_text(d, a, "plan", "variant", l->variant, r->variant);
	compare_text(d, a, "plan", "package", l->package, r->package);
	compare_text(d, a, "plan", "release", l->release, r->release);
	compare_text(d, a, "plan", "version", plan_full_version(l, a), plan_full_version(r, a));
	compare_text(d, a, "plan", "platform", l->platform, r->platform);
	compare_text(d, a, "plan", "python", l->python, r->python);
	compare_text(d, a, "plan", "cuda", l->cuda, r->cuda);
	compare_text(d, a, "plan", "gpu", strlist_join(&l->gpu, a, " "), strlist_join(&r->gpu, a, " "));
	compare_text(d, a, "plan", "isa", l->isa, r->isa);
	compare_text(d, a, "plan", "cpu flags", strlist_join(&l->cpu_flags, a, " "),
		     strlist_join(&r->cpu_flags, a, " "));
	compare_text(d, a, "plan", "blas", l->blas, r->blas);
	compare_text(d, a, "plan", "backend", l->package_row->backend, r->package_row->backend);
	compare_text(d, a, "plan", "against", strlist_join(&l->depends, a, " "), strlist_join(&r->depends, a, " "));
	compare_text(d, a, "plan", "torch", l->torch_version, r->torch_version);
	compare_text(d, a, "plan", "series", l->package_row->series, r->package_row->series);
}

static struct plan_side side_of(const struct setting *s, struct arena *a)
{
	if (!s)
		return (struct plan_side){NULL, "", "", ""};
	return (struct plan_side){s->value, settings_origin(s, a), s->rule ? s->rule : "", s->why};
}

static void compare_one(struct plan_diff *d, struct arena *a, const char *section, const char *name,
			const struct setting *l, const struct setting *r)
{
	if (l && r && same(l->value, r->value))
		return;
	add(d, a, &(struct plan_difference){section, name, side_of(l, a), side_of(r, a)});
}

/* Both lists are sorted by name. `left_env`, `right_env`: names in one of these are left out. */
static void compare_settings(struct plan_diff *d, struct arena *a, const char *section, const struct settings *l,
			     const struct settings *r, const struct settings *left_env,
			     const struct settings *right_env)
{
	size_t i = 0, k = 0;
	while (i < l->count || k < r->count) {
		int order = i == l->count ? 1 : k == r->count ? -1 : strcmp(l->items[i].name, r->items[k].name);
		const struct setting *x = order <= 0 ? &l->items[i++] : NULL;
		const struct setting *y = order >= 0 ? &r->items[k++] : NULL;
		const char *name = x ? x->name : y ? y->name : "";
		if (left_env && (settings_get(left_env, name) || settings_get(right_env, name)))
			continue;
		compare_one(d, a, section, name, x, y);
	}
}

static void sources_of(const struct plan *p, struct arena *a, struct kvlist *ret)
{
	for (unsigned i = 0; i < p->package_row->sources_count; i++)
		kvlist_set(ret, a, p->package_row->sources[i].name, p->package_row->sources[i].sha256);
}

static void patches_of(const struct plan *p, struct arena *a, struct kvlist *ret)
{
	for (size_t i = 0; i < p->patches_count; i++)
		kvlist_set(ret, a, p->patches[i].name, p->patches[i].sha256);
}

static void compare_lists(struct plan_diff *d, struct arena *a, const char *section, const struct kvlist *l,
			  const struct kvlist *r)
{
	for (size_t i = 0; i < l->count; i++)
		compare_text(d, a, section, l->items[i].key, l->items[i].value, kvlist_get(r, l->items[i].key));
	for (size_t i = 0; i < r->count; i++)
		if (!kvlist_get(l, r->items[i].key))
			compare_text(d, a, section, r->items[i].key, NULL, r->items[i].value);
}

static void compare_notes(const struct plan *l, const struct plan *r, struct arena *a, struct plan_diff *d)
{
	for (size_t i = 0; i < l->notes.count; i++)
		if (!strlist_contains(&r->notes, l->notes.items[i]))
			compare_text(d, a, "notes", "note", l->notes.items[i], NULL);
	for (size_t i = 0; i < r->notes.count; i++)
		if (!strlist_contains(&l->notes, r->notes.items[i]))
			compare_text(d, a, "notes", "note", NULL, r->notes.items[i]);
}

void plan_compare(const struct plan *left, const struct plan *right, struct arena *a, struct plan_diff *ret)
{
	struct kvlist left_sources = {0}, right_sources = {0}, left_patches = {0}, right_patches = {0};
	*ret = (struct plan_diff){0};
	compare_parts(left, right, a, ret);
	compare_settings(ret, a, "environment", &left->env, &right->env, NULL, NULL);
	compare_settings(ret, a, "cache entries", &left->cmake, &right->cmake, &left->env, &right->env);
	sources_of(left, a, &left_sources);
	sources_of(right, a, &right_sources);
	compare_lists(ret, a, "sources", &left_sources, &right_sources);
	patches_of(left, a, &left_patches);
	patches_of(right, a, &right_patches);
	compare_lists(ret, a, "patches", &left_patches, &right_patches);
	compare_notes(left, right, a, ret);
	compare_text(ret, a, "keys", "compile key", left->compile_key, right->compile_key);
	compare_text(ret, a, "keys", "output key", left->output_key, right->output_key);
}

static json_t *side_json(const struct plan_side *s)
{
	if (!s->value)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "value", json_string(s->value));
	json_object_set_new(o, "from", json_or_null(*s->from ? s->from : NULL));
	json_object_set_new(o, "rule", json_or_null(*s->rule ? s->rule : NULL));
	json_object_set_new(o, "why", json_or_null(*s->why ? s->why : NULL));
	return o;
}

json_t *plan_diff_json(const struct plan *left, const struct plan *right, const struct plan_diff *d)
{
	json_t *o = json_object(), *l = json_array();
	const char *section = "";
	for (size_t i = 0; i < d->count; i++) {
		json_t *row = json_object();
		if (strcmp(section, d->items[i].section) != 0)
			json_object_set_new(row, "-title", json_string(d->items[i].section));
		section = d->items[i].section;
		json_object_set_new(row, "section", json_string(section));
		json_object_set_new(row, "name", json_string(d->items[i].name));
		json_object_set_new(row, "left", side_json(&d->items[i].left));
		json_object_set_new(row, "right", side_json(&d->items[i].right));
		json_array_append_new(l, row);
	}
	json_object_set_new(o, "schema", json_integer(PLAN_SCHEMA));
	json_object_set_new(o, "left", json_string(left->variant));
	json_object_set_new(o, "right", json_string(right->variant));
	json_object_set_new(o, "differences", l);
	json_object_set_new(o, "-releases", json_pack("{s:s, s:s}", "left", left->release, "right", right->release));
	return o;
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

/* A name inside the value, as "USE_MPI=ON" and "gcc: gcc (Debian) 14" have: its length, 0 for none; *ret_rest: what
 * follows. */
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

/* Digests are cut: their beginning tells them apart. */
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
		while (out.len && ((unsigned char)out.data[out.len] & 0xC0) == 0x80) /* not through a character */
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

static void say(struct strlist *ret, struct arena *a, const char *about, const char *old, const char *new)
{
	strlist_addf(ret, a, "%s: %s → %s", about, old ? shown(old, a) : "none", new ? shown(new, a) : "none");
}

void key_diff(const char *old, const char *new, struct arena *a, struct strlist *ret)
{
	struct inputs x = parse(old, a), y = parse(new, a);
	for (size_t i = 0, k = 0; i < x.count || k < y.count;) {
		int c = i == x.count ? 1 : k == y.count ? -1 : strcmp(x.items[i].about, y.items[k].about);
		if (c < 0) {
			say(ret, a, x.items[i].about, x.items[i].value, NULL);
			i++;
		} else if (c > 0) {
			say(ret, a, y.items[k].about, NULL, y.items[k].value);
			k++;
		} else {
			if (strcmp(x.items[i].value, y.items[k].value) != 0)
				say(ret, a, x.items[i].about, x.items[i].value, y.items[k].value);
			i++;
			k++;
		}
	}
}
