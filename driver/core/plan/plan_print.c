#include "base/sys/json.h"
#include "core/plan/plan.h"

static void set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

static json_t *settings_json(const void *from)
{
	const struct settings *s = from;
	json_t *o = json_object();

	for (size_t i = 0; i < s->count; i++)
		set(o, s->items[i].name, json_string(s->items[i].value));
	return o;
}

JSON_FIELDS(source_fields, JSON_FIELD(struct source_row, name),
	    JSON_STRINGS(struct source_row, urls),
	    JSON_IF_FILLED(struct source_row, sha256, "sha256"));
JSON_FIELDS(patch_fields, JSON_FIELD(struct plan_patch, name),
	    JSON_FIELD(struct plan_patch, sha256));

#define IS(member) JSON_FIELD(struct plan, member)
#define MAY_BE(member) JSON_IF_FILLED(struct plan, member, #member)
#define SETTINGS(member) JSON_BY(struct plan, member, #member, settings_json)

/* Behind the keys of the contract, in the order of the
 * contract, come those that tools asked for since. */
json_t *plan_json(const struct plan *p)
{
	JSON_FIELDS(before, IS(variant), IS(package), IS(distribution), IS(release), IS(version),
		    IS(local_label), IS(platform), IS(python), MAY_BE(cuda), IS(gpu), MAY_BE(isa),
		    MAY_BE(blas), IS(cpu_flags), SETTINGS(env), SETTINGS(cmake));
	JSON_FIELDS(between, IS(depends), IS(metadata_rev), IS(notes), IS(compile_key),
		    IS(output_key), SETTINGS(cache));
	JSON_FIELDS(after, MAY_BE(torch), MAY_BE(torch_version), IS(sandbox), IS(elsewhere),
		    MAY_BE(cuda_libraries));
	JSON_FIELDS(last, IS(requires), IS(advisories),
		    JSON_IF_FILLED(struct plan, advised, "advised_release"));
	const struct package_row *row = p->package_row;
	json_t *o = json_pack("{s:i}", "schema", PLAN_SCHEMA);
	json_add(o, p, before);
	set(o, "sources",
	    json_rows(row->sources, row->sources_count, sizeof(*row->sources), source_fields));
	set(o, "patches",
	    json_rows(p->patches, p->patches_count, sizeof(*p->patches), patch_fields));
	json_add(o, p, between);
	set(o, "backend", json_string(row->backend));
	set(o, "series", json_filled(row->series));
	json_add(o, p, after);
	set(o, "toolkit", p->toolkit ? toolkit_json(p->toolkit) : json_null());
	json_add(o, p, last);
	set(o, "runs_on", runs_on_json(&p->runs_on));
	return o;
}

static void explain(json_t *into, const struct plan *p, const struct settings *l, struct arena *a)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct setting *s = &l->items[i];
		const char *source =
			s->source && *s->source ? s->source : kvlist_get(&p->fact_sources, s->file);
		json_t *o = json_object();
		set(o, "value", json_string(s->value));
		set(o, "rule", json_string(s->rule ? s->rule : s->file));
		set(o, "from", json_string(settings_origin(s, a)));
		set(o, "why", json_string(s->why));
		set(o, "source", json_filled(source));
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

/* ---- for people ---- */

/* What every build of the release has says nothing of this one. */
static bool is_default(const struct plan *p, const struct setting *s, struct arena *a)
{
	if (strcmp(s->file, SETTING_BUILT_IN) == 0)
		return true;
	if (strcmp(s->file, arena_printf(a, "releases/%s.yaml", p->release)) == 0)
		return true;
	bool by_need = s->rule && strncmp(s->rule, "needs ", 6) == 0;
	return strcmp(s->file, "toggles.yaml") == 0 && !by_need;
}

static json_t *setting_words(const struct setting *s, const char *prefix, bool reason,
			     struct arena *a)
{
	json_t *o = json_pack("{s:o}", "line",
			      json_or_null(arena_printf(a, "%s%s=%s", prefix, s->name, s->value)));
	const char *why = s->rule ? arena_printf(a, "%s: %s", s->rule, s->why) : s->why;

	if (s->source && *s->source)
		why = arena_printf(a, "%s (source: %s)", why, s->source);
	if (reason) {
		set(o, "from", json_string(settings_origin(s, a)));
		set(o, "why", json_or_null(why));
	}

	return o;
}

/* Gives how many were left out. Without a title they
 * follow those before them, as options of CMake. */
static size_t add_section(json_t *sections, const struct plan *p, const char *title,
			  const struct settings *s, enum plan_detail detail)
{
	AUTO_ARENA struct arena a = {0};
	json_t *items = json_array();

	for (size_t i = 0; i < s->count; i++)
		if (detail != PLAN_CHANGES || !is_default(p, &s->items[i], &a))
			json_array_append_new(items, setting_words(&s->items[i], title ? "" : "-D",
								   detail == PLAN_REASONS, &a));
	const size_t shown = json_array_size(items);
	json_t *section = json_pack("{s:o, s:o}", "title", json_or_null(title), "items", items);
	if (shown)
		json_array_append(sections, section);
	json_decref(section);
	return s->count - shown;
}

/* Reasons show all notes, else those that say something of what was asked. */
static void add_notes(json_t *doc, const struct plan *p, enum plan_detail detail)
{
	json_t *notes = json_array();

	for (size_t i = 0; i < p->notes.count; i++)
		if (detail == PLAN_REASONS || !strlist_contains(&p->asides, p->notes.items[i]))
			json_array_append_new(notes, json_or_null(p->notes.items[i]));
	const size_t more = p->notes.count - json_array_size(notes);
	set(doc, "-notes", notes);
	set(doc, "-more_notes", json_integer((json_int_t)more));
}

void plan_words(json_t *doc, const struct plan *p, enum plan_detail detail)
{
	AUTO_ARENA struct arena a = {0};
	json_t *sections = json_array(), *facts = json_object();
	size_t left_out = add_section(sections, p, "environment", &p->env, detail);
	const bool follow = detail == PLAN_CHANGES && json_array_size(sections);

	left_out +=
		add_section(sections, p, follow ? NULL : "cache entries from the generated file",
			    &p->cache, detail);
	if (detail == PLAN_REASONS)
		add_section(sections, p, "compared with CMakeCache.txt after configure", &p->cmake,
			    detail);
	for (size_t i = 0; detail == PLAN_REASONS && i < p->fact_sources.count; i++)
		set(facts, p->fact_sources.items[i].key,
		    json_or_null(p->fact_sources.items[i].value));
	set(doc, "-version", json_string(plan_full_version(p, &a)));
	set(doc, "-brief", json_boolean(detail == PLAN_CHANGES)); /* so that it fits a screen */
	set(doc, "-sections", sections);
	add_notes(doc, p, detail);
	set(doc, "-left_out", json_integer((json_int_t)left_out));
	set(doc, "-facts", facts);
}

#define ROW(label, text, ...) SHOW(label, text, .indent = 2, ##__VA_ARGS__)

static const struct show section_rows[] = {
	{.text = "\n{title}", .bold = true},
	{.text = "{line:<40}  {from:<28}  {why}", .each = "items", .indent = 2},
	{.text = "{!from}{line}", .each = "items", .indent = 2},
	{0}};

/* First what it is and how large, then what the build needs, then where the wheel runs. */
const struct show plan_rows[] = {
	{.text = "\n{variant}", .bold = true},
	ROW("builds", "{distribution} {-version}[{?-brief}, of release {release}]"),
	ROW("cannot build", "{-unbuilt}"),
	ROW("size", "{-size}"),
	ROW("time", "{-time}"),
	ROW("disk", "{-disk}"),
	ROW("downloads", "{-downloads}"),
	ROW("{^}", "{}", .each = "-runs_on"),
	ROW("this machine", "{-here}"),
	ROW("release", "{!-brief}{release}, built by {backend}"),
	ROW("cuda", "{cuda}[{?-brief}, and {blas} for the CPU]"),
	ROW("toolkit", "{toolkit.release} in {toolkit.where} ({toolkit.layout})"),
	ROW("world", "{-world}"),
	ROW("build needs", "{-needs}"),
	ROW("cpu flags", "{!-brief}{cpu_flags}"), /* which CFLAGS shows */
	ROW("requires", "{!-brief}{requires:,}"),
	ROW("blas", "{!-brief}{blas}"),
	ROW("blas", "{?-brief}{!cuda}{blas}"),
	ROW("against", "{!-brief}{depends}"), /* which "torch" says */
	ROW("source", "{name}[{!-brief}{?sha256}  sha256 {sha256}]", .each = "sources"),
	ROW("series", "{series}"),
	ROW("patch", "{name}", .each = "patches"),
	{.each = "-sections", .rows = section_rows},
	{.text = "{?-left_out}{-left_out} more are defaults of the release: --all shows them",
	 .indent = 2},
	{.text = "\n{?-notes}notes", .bold = true},
	{.text = "- {}", .each = "-notes", .indent = 2},
	{.text = "{?-more_notes}[{!-notes}\n]{-more_notes} more note{-more_notes:s}: see --explain",
	 .indent = 2},
	{.text = "\n{?-facts}where the facts come from", .bold = true},
	{.text = "{^}: {}", .each = "-facts", .indent = 2},
	ROW("compile key", "\n{compile_key}"),
	ROW("output key", "{output_key}"),
	ROW("keys", "a build's also count {-keys}"),
	{0}};
