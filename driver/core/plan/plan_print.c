#include <string.h>

#include "base/buf.h"
#include "base/sys/json.h"
#include "base/term.h"
#include "core/plan/plan.h"

static void set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

static json_t *settings_json(const struct settings *s)
{
	json_t *o = json_object();
	for (size_t i = 0; i < s->count; i++)
		set(o, s->items[i].name, json_string(s->items[i].value));
	return o;
}

static json_t *strings_json(const char *const *items, unsigned count)
{
	json_t *l = json_array();
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(l, json_string(items[i]));
	return l;
}

static json_t *sources_json(const struct package_row *row)
{
	json_t *l = json_array();
	for (unsigned i = 0; i < row->sources_count; i++) {
		const struct source_row *s = &row->sources[i];
		json_t *o = json_object();
		set(o, "name", json_string(s->name));
		set(o, "urls", strings_json((const char *const *)s->urls, s->urls_count));
		set(o, "sha256", json_string(s->sha256));
		json_array_append_new(l, o);
	}
	return l;
}

static json_t *patches_json(const struct plan *p)
{
	json_t *l = json_array();
	for (size_t i = 0; i < p->patches_count; i++) {
		json_t *o = json_object();
		set(o, "name", json_string(p->patches[i].name));
		set(o, "sha256", json_string(p->patches[i].sha256));
		json_array_append_new(l, o);
	}
	return l;
}

static json_t *or_null(const char *s)
{
	return s && *s ? json_string(s) : json_null();
}

/* Behind the keys of the contract, in the order of the contract, come those that tools asked for since. */
json_t *plan_json(const struct plan *p)
{
	json_t *o = json_object();
	set(o, "schema", json_integer(PLAN_SCHEMA));
	set(o, "variant", json_string(p->variant));
	set(o, "package", json_string(p->package));
	set(o, "distribution", json_string(p->distribution));
	set(o, "release", json_string(p->release));
	set(o, "version", json_string(p->version));
	set(o, "local_label", json_string(p->local_label));
	set(o, "platform", json_string(p->platform));
	set(o, "python", json_string(p->python));
	set(o, "cuda", or_null(p->cuda));
	set(o, "gpu", json_from_strlist(&p->gpu));
	set(o, "isa", or_null(p->isa));
	set(o, "blas", or_null(p->blas));
	set(o, "cpu_flags", json_from_strlist(&p->cpu_flags));
	set(o, "env", settings_json(&p->env));
	set(o, "cmake", settings_json(&p->cmake));
	set(o, "sources", sources_json(p->package_row));
	set(o, "patches", patches_json(p));
	set(o, "depends", json_from_strlist(&p->depends));
	set(o, "metadata_rev", json_integer(p->metadata_rev));
	set(o, "notes", json_from_strlist(&p->notes));
	set(o, "compile_key", json_string(p->compile_key));
	set(o, "output_key", json_string(p->output_key));
	set(o, "cache", settings_json(&p->cache));
	set(o, "backend", json_string(p->package_row->backend));
	set(o, "series", or_null(p->package_row->series));
	set(o, "torch", or_null(p->torch));
	set(o, "torch_version", or_null(p->torch_version));
	set(o, "sandbox", json_string(p->sandbox));
	set(o, "elsewhere", json_boolean(p->elsewhere));
	set(o, "cuda_libraries", or_null(p->cuda_libraries));
	set(o, "toolkit", p->toolkit ? toolkit_json(p->toolkit) : json_null());
	set(o, "requires", json_from_strlist(&p->requires));
	set(o, "runs_on", runs_on_json(&p->runs_on));
	return o;
}

static void explain(json_t *into, const struct plan *p, const struct settings *l, struct arena *a)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct setting *s = &l->items[i];
		const char *source = s->source && *s->source ? s->source : kvlist_get(&p->fact_sources, s->file);
		json_t *o = json_object();
		set(o, "value", json_string(s->value));
		set(o, "rule", json_string(s->rule ? s->rule : s->file));
		set(o, "from", json_string(settings_origin(s, a)));
		set(o, "why", json_string(s->why));
		set(o, "source", or_null(source));
		set(o, "checked", json_boolean(s->check || s->cache));
		set(into, s->name, o);
	}
}

json_t *plan_json_explained(const struct plan *p)
{
	AUTO_ARENA struct arena a = {0};
	json_t *o = plan_json(p), *all = json_object();
	explain(all, p, &p->cmake, &a);
	explain(all, p, &p->env, &a);
	set(o, "explain", all);
	return o;
}

/* How a plan is printed: everything below writes into `out`. */
struct page {
	struct buf *out;
	const struct term *term;
	enum plan_detail detail;
	size_t width;        /* 0: not wrapped */
	const char *release; /* its table */
	struct arena *a;
};

static void title(const struct page *g, const char *text)
{
	buf_addc(g->out, '\n');
	term_style(g->out, g->term, TERM_BOLD, text);
	buf_addc(g->out, '\n');
}

/* Pads to a column with at least two spaces, so that a long entry pushes its line but never runs into the next. */
static void column(struct buf *b, size_t line_start, size_t to)
{
	do
		buf_addc(b, ' ');
	while (b->len - line_start < to || b->data[b->len - 2] != ' ');
}

/* Behind the value in columns; on a terminal, wrapped below it. */
static void print_reason(const struct page *g, size_t start, const struct setting *s)
{
	const char *origin = settings_origin(s, g->a);
	const char *why = arena_printf(g->a, s->source && *s->source ? "%s%s%s (source: %s)" : "%s%s%s",
				       s->rule ? s->rule : "", s->rule ? ": " : "", s->why, s->source);
	if (g->width) {
		buf_addstr(g->out, "\n      ");
		term_wrap(g->out, arena_printf(g->a, "%s: %s", origin, why), 6, 6, g->width);
		return;
	}
	column(g->out, start, 44);
	buf_addstr(g->out, origin);
	column(g->out, start, 74);
	buf_printf(g->out, "%s\n", why);
}

/* What every build of the release has says nothing of this one. */
static bool is_default(const struct page *g, const struct setting *s)
{
	return strcmp(s->file, SETTING_BUILT_IN) == 0 || strcmp(s->file, g->release) == 0 ||
	       (strcmp(s->file, "toggles.yaml") == 0 && (!s->rule || strncmp(s->rule, "needs ", 6) != 0));
}

static bool shows_any(const struct page *g, const struct settings *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (g->detail != PLAN_CHANGES || !is_default(g, &s->items[i]))
			return true;
	return false;
}

/* Gives how many were left out. Without a name they follow those before them, as options of CMake. */
static size_t print_settings(const struct page *g, const char *name, const struct settings *s)
{
	size_t left_out = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct setting *item = &s->items[i];
		if (g->detail == PLAN_CHANGES && is_default(g, item)) {
			left_out++;
			continue;
		}
		if (name && i == left_out)
			title(g, name);
		size_t start = g->out->len;
		buf_printf(g->out, "  %s%s=", name ? "" : "-D", item->name);
		if (g->detail == PLAN_CHANGES) {
			term_wrap(g->out, item->value, 6, g->out->len - start, g->width);
			continue;
		}
		buf_addstr(g->out, item->value);
		if (g->detail == PLAN_REASONS)
			print_reason(g, start, item);
		else
			buf_addc(g->out, '\n');
	}
	return left_out;
}

static void print_line(const struct page *g, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	buf_printf(g->out, "  %-14s", name);
	term_wrap(g->out, value, 16, 16, g->width);
}

/* Where the wheel will run. */
static void print_runs_on(const struct page *g, const struct runs_on *r, const char *here)
{
	struct kvlist lines = {0};
	runs_on_lines(r, g->a, &lines);
	for (size_t i = 0; i < lines.count; i++)
		print_line(g, lines.items[i].key, lines.items[i].value);
	print_line(g, "this machine", here);
}

static void print_head(const struct page *g, const struct plan *p, const char *here)
{
	struct arena *a = g->a;
	term_style(g->out, g->term, TERM_BOLD, p->variant);
	buf_addc(g->out, '\n');
	const bool brief = g->detail == PLAN_CHANGES; /* so that it fits a screen */
	const char *builds = arena_printf(a, "%s %s", p->distribution, plan_full_version(p, a));
	print_line(g, "builds", brief ? arena_printf(a, "%s, of release %s", builds, p->release) : builds);
	if (!brief)
		print_line(g, "release", arena_printf(a, "%s, built by %s", p->release, p->package_row->backend));
	print_runs_on(g, &p->runs_on, here);
	print_line(g, "cuda",
		   brief && p->cuda && p->blas ? arena_printf(a, "%s, and %s for the CPU", p->cuda, p->blas) : p->cuda);
	if (p->toolkit)
		print_line(g, "toolkit",
			   arena_printf(a, "%s in %s (%s)", p->toolkit->release, p->toolkit->where,
					toolkit_layout_name(p->toolkit->layout)));
	if (!brief) { /* CFLAGS shows them */
		print_line(g, "cpu flags", strlist_join(&p->cpu_flags, a, " "));
		print_line(g, "requires", strlist_join(&p->requires, a, ", "));
	}
	if (!brief || !p->cuda)
		print_line(g, "blas", p->blas);
	if (!brief) /* "torch" says it */
		print_line(g, "against", strlist_join(&p->depends, a, " "));
	for (unsigned i = 0; i < p->package_row->sources_count; i++) {
		const struct source_row *s = &p->package_row->sources[i];
		print_line(g, "source",
			   g->detail == PLAN_CHANGES ? s->name : arena_printf(a, "%s  sha256 %s", s->name, s->sha256));
	}
	print_line(g, "series", p->package_row->series);
	for (size_t i = 0; i < p->patches_count; i++)
		print_line(g, "patch", p->patches[i].name);
}

char *plan_text(const struct plan *p, enum plan_detail detail, const struct term *term, const char *here,
		struct arena *a)
{
	AUTO_BUF struct buf b = {0};
	const struct page g = {.out = &b,
			       .term = term,
			       .detail = detail,
			       .width = detail == PLAN_CHANGES && !term->width ? TERM_WIDTH : term->width,
			       .release = arena_printf(a, "releases/%s.yaml", p->release),
			       .a = a};
	print_head(&g, p, here);
	size_t left_out = print_settings(&g, "environment", &p->env);
	const bool follow = detail == PLAN_CHANGES && shows_any(&g, &p->env);
	left_out += print_settings(&g, follow ? NULL : "cache entries from the generated file", &p->cache);
	if (detail == PLAN_REASONS)
		print_settings(&g, "compared with CMakeCache.txt after configure", &p->cmake);
	if (left_out)
		buf_printf(&b, "  %zu more are defaults of the release: --all shows them\n", left_out);
	if (p->notes.count)
		title(&g, "notes");
	for (size_t i = 0; i < p->notes.count; i++) {
		buf_addstr(&b, "  - ");
		term_wrap(&b, p->notes.items[i], 4, 4, g.width);
	}
	if (detail == PLAN_REASONS && p->fact_sources.count)
		title(&g, "where the facts come from");
	for (size_t i = 0; detail == PLAN_REASONS && i < p->fact_sources.count; i++) {
		const char *file = p->fact_sources.items[i].key;
		buf_printf(&b, "  %s: ", file);
		term_wrap(&b, p->fact_sources.items[i].value, 4, strlen(file) + 4, g.width);
	}
	buf_printf(&b, "\n  %-14s%s\n  %-14s%s\n", "compile key", p->compile_key, "output key", p->output_key);
	return arena_strdup(a, buf_cstr(&b));
}
