#include "step/index/index.h"

#include <jansson.h>

#include "base/sys/json.h"
#include "base/utf8.h"
#include "cmd/cmd.h"

struct index_options {
	struct cmd_globals global;
	const char *base_url;
};

static const struct show rows[] = {{.text = "{dir}/{}/", .each = "indexes"},
				   {.text = "{wheels} wheels of {projects} projects, {yanked} yanked"},
				   {0}};

static int index_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct index_options *o = c->options;
	struct index_result r;
	if (words->count != 1) {
		err_set(e, ERR_USAGE, "index takes one directory of wheels, not %zu", words->count);
		return err_hint(e, "for example 'ptbuild index dist'");
	}
	/* The pages in JSON would have no files. */
	if (o->base_url && !utf8_valid(o->base_url)) {
		err_set(e, ERR_USAGE, "--base-url is not UTF-8: '%s'", o->base_url);
		return err_hint(e, "write the bytes of its path as %%XX");
	}
	const struct index_request q = {.dir = words->items[0], .base_url = o->base_url};
	if (index_write(&q, c->run, c->arena, &r, e) < 0)
		return -1;
	json_t *doc = json_pack("{s:i, s:o, s:i, s:i, s:i, s:o}", "schema", 1, "dir", json_or_null(q.dir), "wheels",
				(int)r.wheels, "projects", (int)r.projects, "yanked", (int)r.yanked, "indexes",
				json_from_strlist(&r.names));
	return cmd_show(c, doc, rows, e);
}

static const struct arg_def index_options[] = {
	{"base-url", 0, ARG_STRING, offsetof(struct index_options, base_url), "URL",
	 "URL that the wheels are served from (default: links relative to the index)", NULL},
	{0},
};

const struct command command_index = {
	.name = "index",
	.summary = "make a static package index of a directory of wheels",
	.usage = "DIR [--base-url URL]",
	.text = "Writes DIR/simple/ with all wheels of the directory, and a subdirectory per profile (cpu-avx2, "
		"cu128-sm90-avx512), from which an installer cannot pick a wheel for another machine. Any web server "
		"can serve it, and pip can read it as file://.\n"
		"The pages exist as HTML and as JSON, with digests, sizes and each wheel's metadata beside it, so "
		"installers need not download wheels to resolve. A file WHEEL.yanked beside a wheel yanks it; its "
		"first line is the reason.",
	.tables = {index_options},
	.arguments = {{"DIR", "the directory that holds the wheels", "<dir>"}},
	.examples = {{"ptbuild index dist",
		      "then serve dist: pip install --index-url http://HOST/cpu-avx2/ torch torchvision torchaudio"},
		     {"ptbuild index dist --base-url https://files.example.org/wheels/",
		      "the wheels are served from elsewhere"}},
	.options_size = sizeof(struct index_options),
	.run = index_main,
};
