#include "step/fetch.h"

#include "base/json.h"
#include "cmd/help.h"
#include "cmd/select.h"

/* The sources of all plans, each digest once: packages of one release may share an archive. */
static size_t collect_sources(const struct selection *s, size_t count, struct arena *a, struct fetch_source **ret)
{
	size_t max = 0, n = 0;
	for (size_t i = 0; i < count; i++)
		max += tables_package(s[i].release, s[i].variant.package)->sources_count;
	struct fetch_source *out = arena_array(a, max + 1, sizeof(*out));
	struct strlist seen = {0};
	for (size_t i = 0; i < count; i++) {
		const struct package_row *p = tables_package(s[i].release, s[i].variant.package);
		for (unsigned j = 0; j < p->sources_count; j++) {
			const struct source_row *row = &p->sources[j];
			if (strlist_contains(&seen, row->sha256))
				continue;
			strlist_add(&seen, a, row->sha256);
			out[n] = (struct fetch_source){.name = row->name, .sha256 = row->sha256};
			for (unsigned k = 0; k < row->urls_count; k++)
				strlist_ref(&out[n].urls, a, row->urls[k]);
			n++;
		}
	}
	*ret = out;
	return n;
}

static int print_fetched(const struct cmd_context *c, const struct fetch_source *sources, size_t count, const struct fetch_stats *stats,
			 struct err *e)
{
	if (c->global->json) {
		json_t *list = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", sources[i].name, "sha256", sources[i].sha256,
							      "path", sources[i].path));
		AUTO_JSON json_t *doc =
			json_pack("{s:i, s:o, s:i, s:i, s:I, s:f}", "schema", 1, "sources", list, "from_store", stats->from_store,
				  "downloaded", stats->downloaded, "bytes", (json_int_t)stats->bytes, "seconds", stats->seconds);
		return json_print(doc, e);
	}
	AUTO_BUF struct buf out = {0};
	for (size_t i = 0; i < count; i++)
		buf_printf(&out, "%s  %s\n", sources[i].sha256, sources[i].path);
	buf_printf(&out, "%zu sources: %u were in the store, %u downloaded (%.1f MB in %.1f s)\n", count, stats->from_store,
		   stats->downloaded, (double)stats->bytes / 1e6, stats->seconds);
	return cmd_write_stdout(&out, e);
}

static int run_fetch(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct selection *selected;
	struct fetch_source *sources;
	struct fetch_stats stats = {0};
	struct store *store;
	size_t count;
	if (cmd_select(c, args, &selected, &count, e) < 0 || cmd_store(c, &store, e) < 0)
		return -1;
	/* The plans say whether the variants can exist at all: nothing is downloaded for one that cannot. */
	for (size_t i = 0; i < count; i++) {
		const struct plan *plan;
		if (cmd_select_plan(c, &selected[i], NULL, NULL, NULL, &plan, e) < 0)
			return -1;
	}
	size_t n = collect_sources(selected, count, c->arena, &sources);
	struct fetch_options o = {.offline = c->global->offline, .mirrors = c->global->mirrors};
	if (fetch_all(store, sources, n, &o, c->run, c->arena, &stats, e) < 0)
		return -1;
	return print_fetched(c, sources, n, &stats, e);
}

const struct command command_fetch = {
	.name = "fetch",
	.summary = "download and check the sources of a build into the store",
	.usage = "--profile PROFILE | VARIANT... [options]",
	.text = (const char *const[]){"Every archive is checked against the sha256 of the release's table before it enters the store; a "
				      "build with --offline "
				      "then needs no network.",
				      NULL},
	.tables = (const struct arg_def *const[]){cmd_select_options, NULL},
	.arguments = cmd_select_arguments,
	.examples =
		(const struct cmd_example[]){{"ptbuild fetch --profile cpu-avx2 --package all", "have all three packages' sources at hand"},
					     {0}},
	.options_size = sizeof(struct cmd_select_base),
	.run = run_fetch,
};
