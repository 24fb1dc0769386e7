#include "core/wheel/dist.h"
#include "step/index/index.h"

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/wheel/wheel.h"

enum { BILL_MAX = 64 << 20 };

static int write_text(const struct bundle_request *q, const char *file, const struct buf *text,
		      struct err *e)
{
	return fs_write(q->dir, file, text->data, text->len, 0644, e);
}

/* As comments: with one --hash pip wants one of every
 * requirement, NVIDIA's too. It checks those of the index. */
static int write_constraints(const struct bundle_request *q, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};

	buf_printf(&out, "# of the bundle '%s': pip install -c, uv pip install -c\n",
		   utf8_printable(q->name, &a));
	for (size_t i = 0; i < q->count; i++)
		buf_printf(&out, "%s==%s # sha256:%s\n", q->wheels[i].name, q->wheels[i].version,
			   q->wheels[i].sha256);
	return write_text(q, BUNDLE_CONSTRAINTS, &out, e);
}

/* ---- the bill of materials ---- */

struct merged {
	struct arena *a;
	json_t *components, *dependencies;
	json_t *by_ref; /* component by its bom-ref */
};

/* Two wheels may call two things alike: the second gets the name of its
 * wheel in front. What a wheel was built against may be a wheel of the bundle. */
static const char *add_component(struct merged *m, const char *name, json_t *component)
{
	const char *ref = arena_strdup(m->a, json_text(component, "bom-ref")),
		   *purl = json_text(component, "purl");
	const json_t *have = json_object_get(m->by_ref, ref);

	if (have &&
	    (json_equal(have, component) || (*purl && strcmp(purl, json_text(have, "purl")) == 0)))
		return ref;
	json_t *own = json_deep_copy(component);
	if (have)
		ref = arena_printf(m->a, "%s:%s", name, ref);
	if (*ref) {
		json_object_set_new(own, "bom-ref", json_string(ref));
		json_object_set(m->by_ref, ref, own);
	}

	json_array_append_new(m->components, own);
	return ref;
}

static void add_bill(struct merged *m, const char *name, const json_t *bill)
{
	/* bills of a whole system have 60,000 components */
	AUTO_JSON json_t *renamed = json_object();
	json_t *item, *word;
	size_t i, k;

	json_array_foreach(json_object_get(bill, "components"), i, item)
	{
		const char *old = arena_strdup(m->a, json_text(item, "bom-ref"));
		if (json_is_object(item))
			json_object_set_new(renamed, old,
					    json_string(add_component(m, name, item)));
	}

	json_array_foreach(json_object_get(bill, "dependencies"), i, item)
	{
		const char *old = json_text(item, "ref"), *ref = json_member(renamed, old);
		if (!*old)
			continue;
		json_t *on = json_array();
		json_array_foreach(json_object_get(item, "dependsOn"), k,
				   word) if (json_is_string(word))
		{
			const char *to = json_member(renamed, json_string_value(word));
			json_array_append_new(on, json_string(to ? to : json_string_value(word)));
		}

		json_array_append_new(m->dependencies, json_pack("{s:s, s:o}", "ref",
								 ref ? ref : old, "dependsOn", on));
	}
}

/* Reads the bills in the wheel, from any maker. */
static int read_bills(struct merged *m, const struct bundle_wheel *w, struct err *e)
{
	AUTO_ZIP struct zip_reader *z = NULL;
	const char *info;

	if (zip_open(w->path, m->a, &z, e) < 0 || wheel_zip_dist_info(z, m->a, &info, e) < 0)
		return -1;
	const char *below = arena_printf(m->a, "%s/sboms/", info);
	for (size_t i = 0; i < zip_count(z); i++) {
		const struct zip_entry *en = zip_at(z, i);
		AUTO_BUF struct buf text = {0};
		if (strncmp(en->name, below, strlen(below)) != 0 ||
		    !path_has_suffix(en->name, ".json"))
			continue;
		if (zip_read(z, en, BILL_MAX, &text, e) < 0)
			return -1;
		AUTO_JSON json_t *bill =
			json_loadb(buf_cstr(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
		if (!json_is_object(bill))
			return err_set(e, ERR_INTEGRITY, "'%s' in '%s' is not a bill of materials",
				       en->name, path_base(w->path));
		add_bill(m, w->name, bill);
	}

	return 0;
}

static int write_bill(const struct bundle_request *q, struct arena *a, struct err *e)
{
	AUTO_JSON json_t *components = json_array(), *dependencies = json_array(),
			 *by_ref = json_object();
	struct merged m = {a, components, dependencies, by_ref};
	AUTO_JSON json_t *refs = json_array(), *weaknesses = json_array();

	for (size_t i = 0; i < q->count; i++) {
		const struct bundle_wheel *w = &q->wheels[i];
		/* "torch@2.6.0%2Bcpu.avx2", as the wheels' own bills call them. */
		AUTO_BUF struct buf out = {0};
		buf_printf(&out, "pkg:pypi/%s@", w->name);
		buf_addurl(&out, w->version, "");
		const char *ref = arena_strdup(a, buf_cstr(&out));
		AUTO_JSON json_t *c = json_pack(
			"{s:s, s:s, s:s, s:s, s:s, s:[{s:s, s:s}], s:[{s:s, s:s}]}", "type",
			"library", "bom-ref", ref, "name", w->name, "version", w->version, "purl",
			ref, "hashes", "alg", "SHA-256", "content", w->sha256, "properties", "name",
			"ptbuild:file", "value", path_base(w->path));
		json_array_append_new(refs, json_string(add_component(&m, w->name, c)));
		/* What is published of a wheel's package in that version. */
		for (unsigned k = 0; k < q->tables->advisories_count; k++) {
			const struct advisory_row *row = &q->tables->advisories[k];
			if (tables_affects(row, w->name, w->version))
				json_array_append_new(weaknesses,
						      json_pack("{s:s, s:{s:s}, s:s, s:[{s:s}]}",
								"id", row->id, "source", "name",
								row->source, "description",
								row->what, "affects", "ref", ref));
		}
	}

	for (size_t i = 0; i < q->count; i++)
		if (read_bills(&m, &q->wheels[i], e) < 0)
			return -1;
	const char *top = arena_printf(a, "bundle:%s", q->name);
	json_array_append_new(dependencies, json_pack("{s:s, s:O}", "ref", top, "dependsOn", refs));
	AUTO_JSON json_t *doc = json_pack(
		"{s:s, s:s, s:i, s:{s:{s:[{s:s, s:s, s:s}]}, s:{s:s, s:s, s:s}}, s:O, s:O, s:O}",
		"bomFormat", "CycloneDX", "specVersion", "1.6", "version", 1, "metadata", "tools",
		"components", "type", "application", "name", "ptbuild", "version", PTBUILD_VERSION,
		"component", "type", "application", "bom-ref", top, "name", q->name, "components",
		components, "dependencies", dependencies, "vulnerabilities", weaknesses);
	return json_write(doc, q->dir, BUNDLE_SBOM, e);
}

/* ---- the stage ---- */

/* The image of that Python whose glibc all wheels take: Debian 12's has 2.36, 13's 2.41. */
static const char *base_image(const struct bundle_request *q, struct arena *a)
{
	bool older = true;

	for (size_t i = 0; i < q->count; i++) {
		struct wheel_name n;
		older = older && wheel_name_parse(q->wheels[i].path, a, &n, ERR_IGNORED) == 0 &&
			wheel_name_lands(&n, &(struct wheel_machine){q->machine, 36}, a);
	}

	return arena_printf(a, "python:%s-slim-%s", q->python, older ? "bookworm" : "trixie");
}

static int write_stage(const struct bundle_request *q, struct arena *a, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	char *stage = arena_strdup(a, q->name);

	for (char *c = stage; *c; c++)
		*c = isalnum((unsigned char)*c) || strchr("._-", *c)
			     ? (char)tolower((unsigned char)*c)
			     : '-';
	buf_printf(
		&out,
		"# The set '%s' as a stage: docker build -t IMAGE DIR, where DIR is the directory "
		"of this file.\n"
		"ARG BASE=%s\n"
		"FROM ${BASE} AS %s\n"
		"# What the wheels require beside each other comes from the index that pip knows.\n"
		"RUN --mount=type=bind,target=/bundle",
		utf8_printable(q->name, a), base_image(q, a), stage);
	for (size_t i = 0; i < q->install->count; i++)
		buf_printf(&out, "%s%s", i ? " " : " \\\n\t",
			   shell_quoted(q->install->items[i], a));
	buf_addstr(&out, "\nRUN python3 -m pip check\n");
	return write_text(q, BUNDLE_DOCKERFILE, &out, e);
}

/* What each wheel requires of another one of the bundle, by its METADATA. */
static int check_requires(const struct bundle_request *q, struct arena *a, struct err *e)
{
	struct dist *all = arena_array(a, q->count, sizeof(*all));

	for (size_t i = 0; i < q->count; i++)
		if (dist_of_wheel(q->wheels[i].path, a, &all[i], e) < 0)
			return err_wrap(e, "'%s'", path_base(q->wheels[i].path));
	for (size_t i = 0; i < q->count; i++)
		for (size_t k = 0; k < q->count; k++) {
			const struct requirement *r =
				dist_refuses(&all[i], &all[k], &all[i].scope, a);
			const char *mixed = dist_mixed(&all[i], &all[k], &all[i].scope, a);
			if (r)
				return err_set(e, ERR_POLICY,
					       "%s requires '%s', and the bundle has %s",
					       all[i].title, r->line, all[k].title);
			if (mixed)
				return err_set(e, ERR_POLICY, "%s", mixed);
		}
	return 0;
}

int bundle_write(const struct bundle_request *q, struct arena *a, struct err *e)
{
	if (check_requires(q, a, e) < 0)
		return -1;
	return write_constraints(q, e) < 0 || write_bill(q, a, e) < 0 ? -1 : write_stage(q, a, e);
}
