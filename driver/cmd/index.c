#include "step/index/index.h"

#include "base/sys/json.h"
#include "cmd/cmd.h"
#include "step/pack/pack.h"

struct index_options {
	struct cmd_globals global;
	const char *base_url;
	bool variants;
};

static const struct show line_rows[] = {
	{.text = "{-pip}", .indent = 2}, {.text = "{-uv}", .indent = 2}, {0}};

static const struct show rows[] = {
	{.text = "{dir}/{}/", .each = "indexes"},
	{.text = "{wheels} wheel{wheels:s} of {projects} project{projects:s}, {yanked} yanked"},
	{.text = "\nto install from {index}/:", .each = "installs", .rows = line_rows},
	{.text = "\n{variants.dir}/simple/: {variants.made:#} variant{variants.made:s}, "
		 "{variants.plain:#} "
		 "wheel{variants.plain:s} without a label"},
	{.text = "not a variant: {}", .each = "variants.left", .indent = 2},
	{0}};

static json_t *installs_json(const char *dir, const struct index_result *r, const struct run *run,
			     struct arena *a)
{
	json_t *list = json_array();

	for (size_t k = 0; r->count && k < r->subs[0].missing.count; k++)
		log_warn(run->log, INDEX_ALL "/ lacks %s", r->subs[0].missing.items[k]);
	for (size_t i = 1; i < r->count; i++) {
		const struct index_sub *sub = &r->subs[i];
		const char *lines[2];
		for (unsigned uv = 0; uv < ARRAY_LEN(lines); uv++) {
			struct strlist argv = {0};
			install_argv(NULL, uv, install_url(a, dir, sub->name), &sub->install, a,
				     &argv);
			lines[uv] = strlist_join(&argv, a, " ");
		}

		for (size_t k = 0; k < sub->missing.count; k++)
			log_warn(run->log, "%s/ is not complete: it lacks %s", sub->name,
				 sub->missing.items[k]);
		if (sub->install.count)
			json_array_append_new(list,
					      json_pack("{s:s, s:s, s:s, s:s, s:s}", "index",
							sub->name, "pip", lines[0], "uv", lines[1],
							"-pip", help_line(lines[0], a), "-uv",
							help_line(lines[1], a)));
	}

	return list;
}

static int make_variant(const char *wheel, const char *label, const char *json, const char *to,
			const struct run *run, struct arena *a, const char **ret, struct err *e)
{
	const struct repack_variant variant = {label, json};
	const struct repack_request q = {.run = run,
					 .wheel = wheel,
					 .generator = "ptbuild " PTBUILD_VERSION,
					 .variant = &variant,
					 .level = PACK_LEVEL,
					 .out_dir = to};
	struct pack_result made;

	if (repack_wheel(&q, a, &made, e) < 0)
		return -1;
	*ret = made.file;
	return 0;
}

/* One that no installer without variants can install from is no index for most people. */
static int add_variants(struct cmd_context *c, const struct index_request *q, json_t *doc,
			struct err *e)
{
	struct index_variants v;

	if (cmd_open(c, OPEN_TABLES, e) < 0 ||
	    index_variants(q, c->tables, make_variant, c->arena, &v, e) < 0)
		return -1;
	if (!v.plain.count)
		log_warn(c->run->log,
			 "%s/" VARIANTS_DIR
			 " has no unlabelled wheel: pip, and machines that match no wheel variant, "
			 "find nothing to install",
			 q->dir);
	json_object_set_new(doc, "variants",
			    json_pack("{s:o, s:o, s:o, s:o}", "dir",
				      json_or_null(path_join(c->arena, q->dir, VARIANTS_DIR)),
				      "made", json_from_strlist(&v.made), "plain",
				      json_from_strlist(&v.plain), "left",
				      json_from_strlist(&v.left)));
	return 0;
}

static int index_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct index_options *o = c->options;
	struct index_result r;

	if (words->count != 1) {
		err_set(e, ERR_USAGE, "index needs one directory of wheels, not %zu", words->count);
		return err_hint(e, "for example 'ptbuild index dist'");
	}

	/* The pages in JSON would have no files. */
	if (o->base_url && !utf8_valid(o->base_url)) {
		err_set(e, ERR_USAGE, "--base-url is not UTF-8: '%s'", o->base_url);
		return err_hint(e, "write the bytes of its path as %%XX");
	}

	if (o->base_url && index_check_base(o->base_url, e) < 0)
		return -1;
	const struct index_request q = {
		.run = c->run, .dir = words->items[0], .base_url = o->base_url};
	if (index_write(&q, c->arena, &r, e) < 0)
		return -1;
	struct strlist names = {0}, missing = {0};
	for (size_t i = 0; i < r.count; i++) {
		strlist_ref(&names, c->arena, r.subs[i].name);
		strlist_append(&missing, c->arena, &r.subs[i].missing);
	}

	if (!r.wheels)
		log_warn(c->run->log, "no wheel is left in '%s': its index is empty now", q.dir);
	json_t *doc = json_pack(
		"{s:i, s:o, s:i, s:i, s:i, s:o, s:o, s:o}", "schema", 1, "dir", json_or_null(q.dir),
		"wheels", (int)r.wheels, "projects", (int)r.projects, "yanked", (int)r.yanked,
		"indexes", json_from_strlist(&names), "installs",
		installs_json(q.dir, &r, c->run, c->arena), "missing", json_from_strlist(&missing));
	if (o->variants && add_variants(c, &q, doc, e) < 0) {
		json_decref(doc);
		return -1;
	}

	return cmd_show(c, doc, rows, e);
}

static const struct arg_def index_options[] = {
	{"base-url", 0, ARG_STRING, offsetof(struct index_options, base_url), "URL",
	 "URL that the wheels are served from (default: links relative to the index)", NULL},
	{"variants", 0, ARG_FLAG, offsetof(struct index_options, variants), NULL,
	 "make DIR/variants/, too: the wheels as wheel variants (drafts: PEP 825, 850)", NULL},
	{0},
};

const struct command command_index = {
	.name = "index",
	.summary = "make a static package index of a directory of wheels",
	.usage = "DIR [--base-url URL] [--variants]",
	.tables = {index_options},
	.arguments = {{"DIR", "the directory that holds the wheels", "<dir>"}},
	.options_size = sizeof(struct index_options),
	.run = index_main,
};
