#include <string.h>

#include "base/buf.h"
#include "base/sys/json.h"
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
	set(o, "cuda_libraries", or_null(p->cuda_libraries));
	set(o, "toolkit", p->toolkit ? toolkit_json(p->toolkit) : json_null());
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

/* Pads to a column with at least two spaces, so that a long entry pushes its line but never runs into the next. */
static void column(struct buf *b, size_t line_start, size_t to)
{
	do
		buf_addc(b, ' ');
	while (b->len - line_start < to || b->data[b->len - 2] != ' ');
}

static void print_settings(struct buf *b, const char *title, const struct settings *s, bool reasons, struct arena *a)
{
	if (s->count)
		buf_printf(b, "\n%s\n", title);
	for (size_t i = 0; i < s->count; i++) {
		size_t start = b->len;
		buf_printf(b, "  %s=%s", s->items[i].name, s->items[i].value);
		if (reasons) {
			column(b, start, 44);
			buf_addstr(b, settings_origin(&s->items[i], a));
			column(b, start, 74);
			if (s->items[i].rule)
				buf_printf(b, "%s: ", s->items[i].rule);
			buf_addstr(b, s->items[i].why);
			if (s->items[i].source && *s->items[i].source)
				buf_printf(b, " (source: %s)", s->items[i].source);
		}
		buf_addc(b, '\n');
	}
}

static void print_line(struct buf *b, const char *name, const char *value)
{
	if (value && *value)
		buf_printf(b, "  %-14s%s\n", name, value);
}

static void print_head(struct buf *b, const struct plan *p, struct arena *a)
{
	buf_printf(b, "%s\n", p->variant);
	print_line(b, "builds", arena_printf(a, "%s %s", p->distribution, plan_full_version(p, a)));
	print_line(b, "release", p->release);
	print_line(b, "platform", p->platform);
	print_line(b, "python", p->python);
	print_line(b, "cuda", p->cuda);
	if (p->toolkit)
		print_line(b, "toolkit",
			   arena_printf(a, "%s in %s (%s)", p->toolkit->release, p->toolkit->where,
					toolkit_layout_name(p->toolkit->layout)));
	print_line(b, "gpu", strlist_join(&p->gpu, a, " "));
	print_line(b, "isa", p->isa);
	print_line(b, "cpu flags", strlist_join(&p->cpu_flags, a, " "));
	print_line(b, "blas", p->blas);
	print_line(b, "backend", p->package_row->backend);
	print_line(b, "against", strlist_join(&p->depends, a, " "));
	print_line(b, "torch", p->torch_version);
	for (unsigned i = 0; i < p->package_row->sources_count; i++)
		print_line(b, "source",
			   arena_printf(a, "%s  sha256 %s", p->package_row->sources[i].name,
					p->package_row->sources[i].sha256));
	print_line(b, "series", p->package_row->series);
	for (size_t i = 0; i < p->patches_count; i++)
		print_line(b, "patch", p->patches[i].name);
}

char *plan_text(const struct plan *p, bool reasons, struct arena *a)
{
	AUTO_BUF struct buf b = {0};
	print_head(&b, p, a);
	print_settings(&b, "environment", &p->env, reasons, a);
	print_settings(&b, "cache entries from the generated file", &p->cache, reasons, a);
	if (reasons)
		print_settings(&b, "compared with CMakeCache.txt after configure", &p->cmake, reasons, a);
	if (p->notes.count)
		buf_addstr(&b, "\nnotes\n");
	for (size_t i = 0; i < p->notes.count; i++)
		buf_printf(&b, "  - %s\n", p->notes.items[i]);
	if (reasons && p->fact_sources.count)
		buf_addstr(&b, "\nwhere the facts come from\n");
	for (size_t i = 0; reasons && i < p->fact_sources.count; i++)
		buf_printf(&b, "  %s: %s\n", p->fact_sources.items[i].key, p->fact_sources.items[i].value);
	buf_printf(&b, "\n  %-14s%s\n  %-14s%s\n", "compile key", p->compile_key, "output key", p->output_key);
	return arena_strdup(a, buf_cstr(&b));
}
