#include "step/pack/pack.h"

#include "base/sys/json.h"
#include "cmd/build.h"

static const struct show wheels_rows[] = {
	{.text = "{wheel}",
	 .each = "",
	 .rows = (const struct show[]){SHOW("sha256", "{sha256}", .indent = 2), {0}}},
	{0}};

static int print_wheels(struct cmd_context *c, const struct pack_result *results, size_t count,
			struct err *e)
{
	JSON_FIELDS(fields, JSON_AS(struct pack_result, path, "wheel"),
		    JSON_FIELD(struct pack_result, sha256), JSON_FIELD(struct pack_result, bytes));
	return cmd_result(c, json_rows(results, count, sizeof(*results), fields), wheels_rows, e);
}

/* A wheel is copied as it is: what it is made of is chosen no more,
 * and without its record there is no provenance that could be signed. */
static int refuse_options(const struct cmd_context *c, struct err *e)
{
	if (cmd_refuse(c, "repack of a wheel", " metadata-rev ", e) == 0)
		return 0;
	return err_hint(e, "it has an effect on variants, whose wheels are in the store: 'ptbuild "
			   "repack VARIANT "
			   "--metadata-rev N'");
}

static int repack_wheels(struct cmd_context *c, const struct strlist *wheels, unsigned rev,
			 struct err *e)
{
	struct pack_result *results = arena_array(c->arena, wheels->count, sizeof(*results));

	if (refuse_options(c, e) < 0 || cmd_open(c, OPEN_OUTPUT, e) < 0 ||
	    fs_mkdirs(TRUSTED, c->out_dir, e) < 0)
		return -1;
	for (size_t i = 0; i < wheels->count; i++) {
		const struct repack_request q = {.run = c->run,
						 .wheel = wheels->items[i],
						 .metadata_rev = rev,
						 .generator = "ptbuild " PTBUILD_VERSION,
						 .level = PACK_LEVEL,
						 .out_dir = c->out_dir};
		const char *text = arena_printf(c->arena, "%u\n", rev);
		if (repack_wheel(&q, c->arena, &results[i], e) < 0 ||
		    fs_write(TRUSTED, arena_printf(c->arena, "%s.metadata-rev", results[i].path),
			     text, strlen(text), 0644, e) < 0)
			return -1;
	}

	return print_wheels(c, results, wheels->count, e);
}

/* All words again: the variant's name alone leads to another release, or to no profile file. */
static const char *build_line(const struct cmd_context *c)
{
	return arena_printf(c->arena, "ptbuild build %s",
			    shell_line(c->words->items + 1, c->words->count - 1, c->arena));
}

static int repack_variants(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	struct cmd_build_requests l;
	struct pipeline_results all = {0};
	int rc = 0;

	if (cmd_open(c, OPEN_BUILD, e) < 0 || cmd_build_requests(c, words, &l, e) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < l.count; i++) {
		l.items[i].q.repack_only = true;
		l.items[i].q.build_line = build_line(c);
		rc = cmd_build_root(c, &l.items[i], e) < 0
			     ? -1
			     : pipeline_build(&l.items[i].q, c->arena, &all, e);
	}

	if (rc == 0)
		rc = cmd_build_print(c, &all, e);
	pipeline_free(&all);
	return rc;
}

/* JSON is UTF-8, and a path with other bytes replaced leads to no wheel. */
static int check_names(struct cmd_context *c, struct err *e)
{
	if (!c->global->json)
		return 0;
	if (cmd_open(c, OPEN_OUTPUT, e) < 0)
		return -1;
	if (utf8_valid(c->out_dir))
		return 0;
	err_set(e, ERR_USAGE, "--json cannot name the wheels: the directory '%s' is not UTF-8",
		c->out_dir);
	return err_hint(e, "name another one with --out, or leave --json out");
}

static int repack_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	unsigned rev = cmd_selected(c)->plan.metadata_rev;
	size_t wheels = 0;

	for (size_t i = 0; i < words->count; i++)
		wheels += path_has_suffix(words->items[i], ".whl");
	if (rev == 0) {
		err_set(e, ERR_USAGE, "repack needs the new metadata revision");
		return err_hint(e, "for example --metadata-rev 2");
	}

	if (wheels && wheels != words->count)
		return err_set(e, ERR_USAGE, "wheels and variants cannot be repacked together");
	if (check_names(c, e) < 0)
		return -1;
	return wheels ? repack_wheels(c, words, rev, e) : repack_variants(c, words, e);
}

const struct command command_repack = {
	.name = "repack",
	.summary = "change a wheel's metadata revision without packing it again",
	.usage = "WHEEL... | VARIANT... | --profile PROFILE --metadata-rev N",
	.tables = {cmd_select_options, cmd_plan_options, cmd_build_options},
	.arguments = {{"WHEEL|VARIANT...",
		       "wheels packed by ptbuild, or variants whose wheels are in the store",
		       "<wheel or variant>"}},
	.options_size = sizeof(struct cmd_build_base),
	.run = repack_main,
};
