#include <string.h>

#include "cmd/help.h"

/* Text as roff takes it: a line break starts a paragraph, no line may look like a request, and hyphens and backslashes
 * stand for themselves. */
static void roff(struct buf *out, const char *text)
{
	static const char *const escapes[128] = {
		['\n'] = "\n.PP\n", ['\\'] = "\\e", ['-'] = "\\-", ['"'] = "\\(dq", ['~'] = "\\(ti"};
	for (const char *p = text; *p; p++) {
		const char *escape = (unsigned char)*p < ARRAY_LEN(escapes) ? escapes[(unsigned char)*p] : NULL;
		if ((*p == '.' || *p == '\'') && (p == text || p[-1] == '\n'))
			buf_addstr(out, "\\&");
		if (escape)
			buf_addstr(out, escape);
		else
			buf_addc(out, *p);
	}
}

static void item(struct buf *out, const char *tag, const char *text)
{
	buf_addstr(out, ".TP\n\\fB");
	roff(out, tag);
	buf_addstr(out, "\\fR\n");
	roff(out, text);
	buf_addc(out, '\n');
}

static void options(struct buf *out, const struct arg_def *table)
{
	for (const struct arg_def *d = table; d->name; d++) {
		AUTO_BUF struct buf tag = {0};
		help_option(d, &tag);
		item(out, buf_cstr(&tag), d->help);
	}
}

static void command(struct buf *out, const struct command *cmd)
{
	AUTO_BUF struct buf synopsis = {0};
	help_synopsis(cmd, &synopsis);
	buf_addstr(out, ".SS \"");
	roff(out, buf_cstr(&synopsis));
	buf_addstr(out, "\"\n");
	roff(out, cmd->summary);
	buf_addstr(out, ".\n");
	if (cmd->text) {
		buf_addstr(out, ".PP\n");
		roff(out, cmd->text);
		buf_addc(out, '\n');
	}
	for (const struct cmd_positional *p = cmd->arguments; p->name; p++)
		item(out, p->name, p->help);
	for (size_t i = 0; cmd->tables[i]; i++)
		options(out, cmd->tables[i]);
}

static void examples(struct buf *out)
{
	buf_addstr(out, ".SH EXAMPLES\n");
	for (size_t i = 0; cmd_table[i]; i++)
		for (const struct cmd_example *x = cmd_table[i]->examples; x->line; x++)
			item(out, x->line, x->what);
}

static void exit_status(struct buf *out)
{
	buf_addstr(out, ".SH EXIT STATUS\n");
	item(out, "0", "success");
	item(out, "2", "the command line is wrong");
	item(out, "3", "a table, profile or name is wrong");
	item(out, "4", "a file could not be downloaded");
	item(out, "5", "wrong bytes: a digest, an archive or a wheel");
	item(out, "6", "a compiler or build tool failed");
	item(out, "7",
	     "what was built is not what was asked for, the combination cannot work, or no sandbox can be made");
	item(out, "8", "the machine: disk, memory, permissions, a missing tool");
	item(out, "130", "interrupted");
}

static void environment(struct buf *out)
{
	buf_addstr(out, ".SH ENVIRONMENT\n");
	item(out, "PTBUILD_DATA_DIR", "the directory that holds profiles and patches");
	item(out, "XDG_CACHE_HOME", "without --cache, the store is its subdirectory ptbuild");
	item(out, "PTBUILD_LOWER_STORE", "fallback stores beside those of --lower-store, with colons between them");
	item(out, "PTBUILD_STORE_URL", "the remote store, without --store-url");
	item(out, "PTBUILD_CCACHE_REMOTE", "the server of the compiler cache, without --ccache-remote");
	item(out, "CUDA_HOME", "a CUDA toolkit to look at first, without --root and --cuda-home");
	item(out, "NO_COLOR", "any text in it switches colours off, as TERM=dumb does");
	buf_addstr(out, ".SH FILES\n");
	item(out, "~/.cache/ptbuild", "the store: sources, wheels, build trees");
	item(out, "dist", "where wheels go without --out");
}

void man_page(struct buf *out)
{
	buf_printf(out, ".TH PTBUILD 1 \"\" \"ptbuild %s\" \"User Commands\"\n", PTBUILD_VERSION);
	buf_addstr(out, ".SH NAME\nptbuild \\- build PyTorch wheels for one exact machine\n.SH SYNOPSIS\n");
	buf_addstr(out, ".B ptbuild\n[build] \\-\\-profile \\fIPROFILE\\fR [options]\n.br\n.B ptbuild\n\\fICOMMAND\\fR "
			"[options] [\\fIARGUMENTS\\fR]\n");
	buf_addstr(out, ".SH DESCRIPTION\n");
	roff(out, "ptbuild fetches the pinned sources of PyTorch, torchvision and torchaudio and checks their digests. "
		  "It turns a profile (a list of GPU architectures, a CPU instruction set, a BLAS) into environment "
		  "variables and CMake cache entries, builds in a sandbox without network access, proves that what was "
		  "asked for is what was built, and packs a relocatable wheel.");
	buf_addstr(out, "\n.SH COMMANDS\n");
	for (size_t i = 0; cmd_table[i]; i++)
		command(out, cmd_table[i]);
	buf_addstr(out, ".SH OPTIONS OF EVERY COMMAND\n");
	options(out, cmd_global_options);
	examples(out);
	exit_status(out);
	environment(out);
}
