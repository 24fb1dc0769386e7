#include <string.h>

#include "cmd/help.h"

struct completion_options {
	struct cmd_globals global;
	const char *words;
};

static int print_words(struct cmd_context *c, const char *kind, struct buf *out, struct err *e)
{
	const struct tables *t;
	if (cmd_tables(c, &t, e) < 0)
		return -1;
	if (strcmp(kind, "release") == 0) {
		for (unsigned i = 0; i < t->releases_count; i++)
			buf_printf(out, "%s\n", t->releases[i].name);
	} else if (strcmp(kind, "isa") == 0) {
		for (unsigned i = 0; i < t->isas_count; i++)
			buf_printf(out, "%s\n", t->isas[i].name);
	} else if (strcmp(kind, "cuda") == 0) {
		for (unsigned i = 0; i < t->toolkits_count; i++)
			buf_printf(out, "%s\n", t->toolkits[i].version);
	} else if (strcmp(kind, "blas") == 0) {
		for (unsigned i = 0; i < t->blas_count; i++)
			buf_printf(out, "%s\n", t->blas[i].name);
	} else {
		buf_addstr(out, "darwin-mps\n");
		for (unsigned i = 0; i < t->isas_count; i++) {
			buf_printf(out, "cpu-%s\n", t->isas[i].name);
			for (unsigned j = 0; j < t->gpus_count; j++)
				buf_printf(out, "sm%s-%s\n", t->gpus[j].sm, t->isas[i].name);
		}
	}
	return 0;
}

static int run_completion(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct completion_options *o = c->options;
	AUTO_BUF struct buf text = {0};
	if (o->words ? args->count != 0 : args->count != 1) {
		err_set(e, ERR_USAGE, "completion takes one shell, or --words KIND");
		return err_hint(e, "for example 'ptbuild completion bash'");
	}
	if ((o->words ? print_words(c, o->words, &text, e) : completion_script(args->items[0], &text, e)) < 0)
		return -1;
	return cmd_write_stdout(&text, e);
}

static const struct arg_def completion_options[] = {
	{"words", 0, ARG_STRING, offsetof(struct completion_options, words), "KIND",
	 "print the names of this kind from the tables", "release profile isa cuda blas"},
	{0},
};

const struct command command_completion = {
	.name = "completion",
	.summary = "print the completion script for a shell",
	.usage = "bash|zsh|fish",
	.tables = {completion_options},
	.arguments = {{"SHELL", "bash, zsh or fish", "bash zsh fish"}},
	.examples = {{"source <(ptbuild completion bash)", "complete in this shell"}},
	.options_size = sizeof(struct completion_options),
	.run = run_completion,
};
