#include "cmd_fixture.h"

#include "cmd/cmd.h"

/* ---- help, manual, completions ---- */

static void test_names_of_before_are_read_with_a_warning(void **state)
{
	(void)state;
	expect("take torchvision", 2, "'take' is now called 'capture'");
	assert_contains(err_text(), "'torchvision' cannot be captured");
	expect("set", 2, "'set' is now called 'bundle'");
	assert_contains(err_text(), "bundle needs one file");
	expect("help take", 0, "");
	expect("plan --profile cpu-avx2 --without-wall=nothing", 2,
	       "'--without-wall' is now called '--without-protection'");
	/* the word is an argument here, or belongs to another program */
	expect("capture take", 2, "'take' cannot be captured");
	assert_null(strstr(err_text(), "is now called"));
}

static void bare_program_prints_the_overview(void **state)
{
	(void)state;
	assert_int_equal(ptbuild(""), 0);
	for (size_t i = 0; cmd_table[i].command; i++)
		assert_contains(out(), cmd_table[i].command->summary);
	assert_string_equal(err_text(), "");
}

static void help_option_and_help_command_agree(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("--help"), 0);
	char *first = arena_strdup(&ran.arena, out());
	assert_int_equal(ptbuild("help"), 0);
	assert_string_equal(first, out());
}

static void help_of_a_command_lists_every_option(void **state)
{
	(void)state;
	for (size_t i = 0; cmd_table[i].command; i++) {
		const struct command *cmd = cmd_table[i].command;
		assert_int_equal(ptbuild(arena_printf(&ran.arena, "help %s", cmd->name)), 0);
		assert_contains(out(), arena_printf(&ran.arena, "usage: ptbuild %s", cmd->name));
		for (const struct arg_def *d = cmd_global_options; d->name; d++)
			assert_contains(out(), arena_printf(&ran.arena, "--%s", d->name));
		for (size_t j = 0; cmd->tables[j]; j++)
			for (const struct arg_def *d = cmd->tables[j]; d->name; d++)
				assert_contains(out(), arena_printf(&ran.arena, "--%s", d->name));
	}
}

static void help_after_the_command_is_its_help(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("cache gc --help"), 0);
	assert_contains(out(), "usage: ptbuild cache");
	assert_int_equal(ptbuild("-h doctor"), 0);
	assert_contains(out(), "usage: ptbuild doctor");
}

static void help_of_an_unknown_command_is_usage(void **state)
{
	(void)state;
	expect("help chache", 2, "did you mean 'ptbuild cache'");
	expect("help cache doctor", 2, "one command");
}

static void help_lines_fit_a_terminal(void **state)
{
	(void)state;
	for (size_t i = 0; cmd_table[i].command; i++) {
		assert_int_equal(ptbuild(arena_printf(&ran.arena, "help %s",
						      i ? cmd_table[i].command->name : "")),
				 0);
		for (const char *p = out(); *p;) {
			size_t n = strcspn(p, "\n");
			if (n > 80)
				fail_msg("%zu columns: %.*s", n, (int)n, p);
			p += n + (p[n] == '\n');
		}
	}
}

static void help_is_a_document(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("help --json"), 0);
	AUTO_JSON json_t *all = json_out();
	size_t count = 0;
	while (cmd_table[count].command)
		count++;
	assert_int_equal(json_array_size(json_object_get(all, "commands")), count);
	assert_int_equal(ptbuild("help plan --json"), 0);
	AUTO_JSON json_t *one = json_out();
	assert_string_equal(json_string_value(json_object_get(one, "name")), "plan");
	assert_int_equal(json_integer_value(json_object_get(one, "schema")), 1);
	assert_true(json_array_size(json_object_get(one, "options")) > 10);
}

static void every_option_and_command_is_documented(void **state)
{
	(void)state;
	for (size_t i = 0; cmd_table[i].command; i++) {
		const struct command *cmd = cmd_table[i].command;
		assert_non_null(cmd->run);
		assert_true(strlen(cmd->summary) > 10);
		for (size_t j = 0; cmd->tables[j]; j++)
			for (const struct arg_def *d = cmd->tables[j]; d->name; d++) {
				assert_true(d->help && strlen(d->help) > 5);
				assert_true((d->type == ARG_FLAG) == (d->metavar == NULL));
			}
	}
}

static bool is_option(const char *name, size_t len)
{
	for (size_t i = 0; cmd_table[i].command; i++)
		for (size_t j = 0; j <= CMD_TABLES; j++) {
			const struct arg_def *table = j < CMD_TABLES
							      ? cmd_table[i].command->tables[j]
							      : cmd_global_options;
			for (const struct arg_def *d = table; d && d->name; d++)
				if (strlen(d->name) == len && memcmp(d->name, name, len) == 0)
					return true;
		}
	return false;
}

/* Every command and every option of all commands is in
 * the manual's reference; no option there is unknown. */
static void the_reference_is_true(void **state)
{
	(void)state;
	AUTO_FREE char *text = test_read(TEST_SOURCE_DIR "/../docs/reference.md");
	assert_non_null(text);
	for (size_t i = 0; cmd_table[i].command; i++)
		if (cmd_table[i].command != &command_build)
			assert_contains(text, arena_printf(&ran.arena, "| `ptbuild %s",
							   cmd_table[i].command->name));
	for (const struct arg_def *d = cmd_global_options; d->name; d++)
		assert_contains(text, arena_printf(&ran.arena, "`--%s%s%s", d->name,
						   d->metavar ? " " : "`",
						   d->metavar && strcmp(d->metavar, "KIND") != 0
							   ? d->metavar
							   : ""));
	for (const char *p = text; (p = strstr(p, "--")); p += strspn(p, "-")) {
		size_t n = strspn(p + 2, "abcdefghijklmnopqrstuvwxyz-");
		if (p > text && (p[-1] == '`' || p[-1] == ' ') && n && !is_option(p + 2, n))
			fail_msg("docs/reference.md has --%.*s, which is no option", (int)n, p + 2);
	}
}

static bool is_global(const char *name)
{
	for (const struct arg_def *g = cmd_global_options; g->name; g++)
		if (strcmp(g->name, name) == 0)
			return true;
	return false;
}

/* list --profiles, and --version of a source, which without a value stays ptbuild's own, are more
 * useful than the global options that they hide. */
static void only_list_hides_a_global_option(void **state)
{
	(void)state;
	for (size_t i = 0; cmd_table[i].command; i++)
		for (size_t j = 0; cmd_table[i].command->tables[j]; j++)
			for (const struct arg_def *d = cmd_table[i].command->tables[j]; d->name;
			     d++) {
				bool listed = strcmp(d->name, "version") == 0 ||
					      (strcmp(cmd_table[i].command->name, "list") == 0 &&
					       strcmp(d->name, "profiles") == 0);
				assert_int_equal(is_global(d->name), listed);
				for (const struct arg_def *g = cmd_global_options; g->name; g++)
					assert_true(!d->short_name ||
						    d->short_name != g->short_name);
			}
	assert_int_equal(ptbuild("list --profiles"), 0);
	assert_contains(out(), "cpu-");
	assert_int_equal(ptbuild("help list"), 0);
	assert_not_contains(out(), "--profiles DIR");
}

static void version_is_printed(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("--version"), 0);
	assert_string_equal(out(), "ptbuild " PTBUILD_VERSION "\n");
	assert_int_equal(ptbuild("plan --version"), 0);
	assert_string_equal(out(), "ptbuild " PTBUILD_VERSION "\n");
	assert_int_equal(ptbuild("--version --json"), 0);
	AUTO_JSON json_t *doc = json_out();
	assert_string_equal(json_string_value(json_object_get(doc, "version")), PTBUILD_VERSION);
}

static void man_page_is_valid_roff(void **state)
{
	(void)state;
	assert_int_equal(shell("\"$PTBUILD\" help --man | groff -man -Tutf8 -P-cbou -ww -rLL=80n"),
			 0);
	assert_string_equal(err_text(), "");
	assert_contains(out(), "EXIT STATUS");
}

static void man_page_names_everything(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("help --man"), 0);
	const char *page = arena_strdup(&ran.arena, out());
	for (size_t i = 0; cmd_table[i].command; i++) {
		assert_contains(page, arena_printf(&ran.arena, ".SS \"ptbuild %s",
						   cmd_table[i].command->name));
		for (size_t j = 0; cmd_table[i].command->tables[j]; j++)
			for (const struct arg_def *d = cmd_table[i].command->tables[j]; d->name;
			     d++) {
				AUTO_BUF struct buf name = {0};
				for (const char *p = d->name; *p; p++)
					buf_printf(&name, *p == '-' ? "\\-" : "%c", *p);
				assert_contains(page, arena_printf(&ran.arena, "\\-\\-%s",
								   buf_cstr(&name)));
			}
	}
}

/* What is offered behind the words of a line, the last of which is begun. */
static const char *offers(const char *line)
{
	assert_int_equal(
		ptbuild(arena_printf(&ran.arena, "completion --offers -- ptbuild %s", line)), 0);
	assert_string_equal(err_text(), "");
	return arena_printf(&ran.arena, "\n%s", out());
}

static void every_command_and_option_is_offered(void **state)
{
	(void)state;
	const char *commands = offers("''");
	for (size_t i = 0; cmd_table[i].command; i++) {
		assert_contains(commands,
				arena_printf(&ran.arena, "\n%s\t%s\n", cmd_table[i].command->name,
					     cmd_table[i].command->summary));
		const char *text =
			offers(arena_printf(&ran.arena, "%s -", cmd_table[i].command->name));
		for (size_t j = 0; cmd_table[i].command->tables[j]; j++)
			for (const struct arg_def *d = cmd_table[i].command->tables[j]; d->name;
			     d++)
				assert_contains(text, arena_printf(&ran.arena, "\n--%s\t%s\n",
								   d->name, d->help));
		for (const struct arg_def *d = cmd_global_options; d->name; d++)
			assert_contains(text, arena_printf(&ran.arena, "\n--%s\t", d->name));
	}

	assert_not_contains(offers("list --prof"), "directory of the tables");
	assert_string_equal(offers("nothing"), "\n");
	assert_string_equal(offers("plan --jobs=1"), "\n");
	assert_string_equal(offers("index x"), "\n<dir>\n");
}

/* Every kind of name that an option or an argument takes has names. */
static void every_kind_has_names(void **state)
{
	(void)state;
	struct strlist kinds = {0};
	for (size_t i = 0; cmd_table[i].command; i++)
		for (size_t j = 0; cmd_table[i].command->tables[j]; j++)
			for (const struct arg_def *d = cmd_table[i].command->tables[j]; d->name;
			     d++)
				if (d->values && *d->values == '<' &&
				    !strlist_contains(&kinds, d->values))
					strlist_ref(&kinds, &ran.arena, d->values);
	assert_true(kinds.count > 7);
	for (size_t i = 0; i < kinds.count; i++) {
		const char *kind = kinds.items[i] + 1;
		if (cmd_names_files(kinds.items[i]) || strcmp(kind, "dir>") == 0)
			continue;
		assert_int_equal(ptbuild(arena_printf(&ran.arena, "completion --words %.*s",
						      (int)strlen(kind) - 1, kind)),
				 0);
		assert_true(strlen(out()) > 2);
	}
}

static void completion_scripts_are_valid(void **state)
{
	(void)state;
	assert_int_equal(shell("\"$PTBUILD\" completion bash | bash -n"), 0);
	assert_string_equal(err_text(), "");
	assert_int_equal(
		shell("\"$PTBUILD\" completion zsh > \"$HOME.zsh\" && zsh -n \"$HOME.zsh\""), 0);
	assert_string_equal(err_text(), "");
	assert_int_equal(
		shell("\"$PTBUILD\" completion fish > \"$HOME.fish\" && fish -n \"$HOME.fish\""),
		0);
	assert_string_equal(err_text(), "");
}

/* What bash would offer for the words so far, one a line. */
static const char *bash_offers(const char *words)
{
	assert_int_equal(shell(arena_printf(&ran.arena,
					    "bash -c 'ptbuild() { \"$PTBUILD\" \"$@\"; }; source "
					    "<(ptbuild completion bash); "
					    "COMP_WORDS=(%s); "
					    "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ptbuild; "
					    "printf \"%%s\\n\" \"${COMPREPLY[@]}\"'",
					    words)),
			 0);
	assert_string_equal(err_text(), "");
	return out();
}

static void bash_completes_commands_and_options(void **state)
{
	(void)state;
	assert_string_equal(bash_offers("ptbuild cac"), "cache\n");
	assert_string_equal(bash_offers("ptbuild cache ver"), "verify\n");
	assert_string_equal(bash_offers("ptbuild cache gc --max-s"), "--max-size\n--max-silence\n");
	assert_string_equal(bash_offers("ptbuild cache --sandbox n"), "none\n");
	assert_string_equal(bash_offers("ptbuild --off"), "--offline\n");
	assert_string_equal(bash_offers("ptbuild help doc"), "doctor\n");
}

static void bash_completes_values_from_the_tables(void **state)
{
	(void)state;
	assert_contains(bash_offers("ptbuild fetch --release 2."), "2.6.0-debian\n");
	assert_contains(bash_offers("ptbuild fetch --profile cpu-avx5"), "cpu-avx512\n");
}

static void completion_of_an_unknown_shell_is_usage(void **state)
{
	(void)state;
	expect("completion csh", 2, "bash, zsh or fish");
	expect("completion", 2, "one shell");
	expect("completion bash zsh", 2, "one shell");
	expect("completion --words nothing", 2, "'nothing'");
}

static void completion_words_come_from_the_tables(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("completion --words isa"), 0);
	assert_contains(out(), "avx2\n");
	assert_int_equal(ptbuild("completion --words blas"), 0);
	assert_contains(out(), "openblas\n");
	assert_int_equal(ptbuild("completion --words cuda"), 0);
	assert_contains(out(), "12.8\n");
}

/* ---- parsing ---- */

static void unknown_command_suggests_the_nearest(void **state)
{
	(void)state;
	expect("fetsh", 2, "not a command: 'fetsh'");
	assert_contains(err_text(), "hint: did you mean 'ptbuild fetch'?");
	expect("zzzzzzzz", 2, "hint: 'ptbuild help' lists all");
}

static void unknown_option_suggests_the_nearest(void **state)
{
	(void)state;
	expect("cache info --jsno", 2, "--jsno");
	assert_contains(err_text(), "--json");
	expect("fetch --profil x", 2, "--profile");
	expect("cache info -Z", 2, "-Z");
}

static void error_is_printed_once_on_standard_error(void **state)
{
	(void)state;
	expect("fetsh", 2, "ptbuild: error: not a command: 'fetsh'");
	assert_int_equal(occurrences(err_text(), "error"), 1);
	assert_int_equal(occurrences(err_text(), "hint: "), 1);
	assert_string_equal(out(), "");
}

/* Also where the words are not understood; a command
 * that has printed its document prints no other. */
static void with_json_an_error_is_a_document(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		int status;
		const char *message, *hint;
	} errors[] = {
		{"fetsh --json", 2, "not a command: 'fetsh'",
		 "did you mean 'ptbuild fetch'? 'ptbuild help' lists all"},
		{"plan --json --frob", 2, "unknown option '--frob'", "see 'ptbuild plan --help'"},
		{"plan --json --profile cpu-avx3", 3, "unknown instruction set 'avx3'", NULL}};
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		expect(errors[i].line, errors[i].status, errors[i].message);
		AUTO_JSON json_t *doc = json_out();
		const json_t *error = json_object_get(doc, "error");
		assert_int_equal(json_integer_value(json_object_get(error, "exit_code")),
				 errors[i].status);
		assert_contains(json_string_value(json_object_get(error, "message")),
				errors[i].message);
		if (errors[i].hint)
			assert_string_equal(json_string_value(json_object_get(error, "hint")),
					    errors[i].hint);
	}

	expect("detect --json --machine " TEST_DATA_DIR "/machines/nehalem-x5570.yaml", 7,
	       "no profile fits");
	AUTO_JSON json_t *doc = json_out();
	assert_null(json_object_get(doc, "error"));
}

static void options_may_stand_before_the_command(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("--json --cache \"$HOME/s\" cache info"), 0);
	AUTO_JSON json_t *doc = json_out();
	assert_contains(json_string_value(json_object_get(doc, "dir")), "/home/s");
}

static void option_value_that_is_a_command_name_is_no_command(void **state)
{
	(void)state;
	assert_int_equal(
		shell("cd \"$XDG_CACHE_HOME/..\" && \"$PTBUILD\" --cache doctor --json cache info"),
		0);
	AUTO_JSON json_t *doc = json_out();
	assert_contains(json_string_value(json_object_get(doc, "dir")), "/doctor");
}

static void missing_option_value_is_usage(void **state)
{
	(void)state;
	expect("cache info --cache", 2, "--cache");
	expect("cache info --jobs many", 2, "--jobs");
	expect("cache info --jobs 5000", 2, "too many");
}

static void contradicting_options_are_usage(void **state)
{
	(void)state;
	expect("cache info -v -q", 2, "cannot be used together");
	expect("cache info --sandbox docker", 2, "bubblewrap or none");
	expect("fetch pytorch-python313-cpu-avx2 --profile cpu-avx2", 2, "cannot be used together");
	expect("fetch pytorch-python313-cpu-avx2 --python 3.12", 2,
	       "a variant's name already says");
	expect("fetch", 2, "no profile, matrix or variant to fetch");
	expect("fetch --profile cpu-avx2 --package numpy", 2, "'numpy'");
	expect("fetch --profile cpu-avx2 --cuda 12.8", 2, "has no CUDA");
	expect("fetch --profile cpu-avx2 --release 2.6.0-debian --set USE_MKLDNN", 2, "NAME=VALUE");
}

static void options_alone_mean_build(void **state)
{
	(void)state;
	expect("--profile cpu-avx3 --package pytorch", 3, "avx3");
	assert_contains(err_text(), "avx2");
}

static void variant_alone_means_build(void **state)
{
	(void)state;
	expect("pytorch-python313-cpu-avx3", 3, "avx3");
}

static void words_where_none_belong_are_usage(void **state)
{
	(void)state;
	expect("cache", 2, "cache needs an action");
	assert_contains(err_text(), "info, verify, gc");
	expect("cache info gc", 2, "cache info has no name");
	expect("cache verfy", 2, "not an action of cache");
	assert_contains(err_text(), "did you mean 'verify'?");
	expect("cache clean", 2, "not an action of cache: 'clean'");
}

static void unknown_release_is_config(void **state)
{
	(void)state;
	expect("fetch --profile cpu-avx2 --release 2.6.0-debain", 3, "2.6.0-debian");
}

/* ---- where things are ---- */

static void tables_that_are_not_there_are_config(void **state)
{
	(void)state;
	expect("fetch --profile cpu-avx2 --profiles /nowhere", 2, "/nowhere");
	setenv("PTBUILD_DATA_DIR", "/nowhere", 1);
	expect("fetch --profile cpu-avx2", 3, "/nowhere/profiles");
	assert_contains(err_text(), "PTBUILD_DATA_DIR");
}

static void data_dir_of_the_environment_is_used(void **state)
{
	(void)state;
	assert_int_equal(shell("mkdir -p \"$HOME\" && ln -s '" PROFILES_DIR "' \"$HOME/profiles\""),
			 0);
	setenv("PTBUILD_DATA_DIR", test_path("home"), 1);
	assert_int_equal(ptbuild("completion --words isa"), 0);
	assert_contains(out(), "avx2");
}

static void cache_follows_xdg_then_home(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("cache info"), 0);
	assert_contains(out(), "/xdg/ptbuild");
	unsetenv("XDG_CACHE_HOME");
	assert_int_equal(ptbuild("cache info"), 0);
	assert_contains(out(), "/home/.cache/ptbuild");
	setenv("XDG_CACHE_HOME", "relative", 1);
	assert_int_equal(ptbuild("cache info"), 0);
	assert_contains(out(), "/home/.cache/ptbuild");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	expect("cache info", 8, "HOME is not set");
}

static void root_that_is_none_is_an_error(void **state)
{
	(void)state;
	expect("doctor --root /nowhere", 2, "the root '/nowhere' does not exist");
	expect("doctor --root ''", 2, "option '--root' needs a directory, and its value is empty");
	expect("cache info --cache=", 2,
	       "option '--cache' needs a directory, and its value is empty");
}

/* Options of other commands, and what the command has in their place. */
static void an_option_of_another_command(void **state)
{
	(void)state;
	expect("build --dry-run", 2, "'ptbuild plan' says what a build would do");
	expect("install --dry-run", 2, "'ptbuild install --print' shows what it would do");
	expect("bench --dry-run", 2, "it is an option of slim, bundle, world, cache;");
	expect("slim --gpus sm89", 2, "did you mean '--gpu'?");
}

/* What a newcomer types, and what he is told. */
static void slips_get_the_words_that_work(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		int status;
		const char *error, *hint;
	} slips[] = {
		{"plan --profile cpu-avx2 --package torch", 2, "unknown value 'torch'",
		 "did you mean 'pytorch'?"},
		{"plan --profile h100", 3, "unknown profile 'h100'",
		 "H100 is sm90: write sm90-avx2"},
		{"plan --profile rtx4090-avx2", 3, "unknown GPU target 'rtx4090'",
		 "GeForce RTX 4090 is sm89: write sm89"},
		{"build cpu-avx2", 2, "'cpu-avx2' is a profile", "write --profile cpu-avx2"},
		{"plan --profile cpu-avx2 --root \"/no where/it's\"", 2, "does not exist",
		 "ptbuild world make debian13 --copy '/no where/it'\\''s'"},
		{"plan --profile cpu-avx2 --python 3.13.2", 3, "unknown Python '3.13.2'",
		 "did you mean '3.13'?"},
		{"plan --profile cpu-avx2 --python 399", 3, "unknown Python '3.99'", NULL},
		{"plan --profile cpu-avx2 --python abc", 3, "unknown Python 'abc'",
		 "known: 3.9 3.10"},
		{"plan --profile sm90-avx2 --cuda 99", 3, "unknown CUDA toolkit '99'",
		 "known: 12.4"},
		{"plan --profile cpu-avx2 --cuda-home /usr", 2, "has no CUDA", NULL},
		{"plan --profile cpu-avx2 --without foo", 3, "unknown feature 'foo'",
		 "list --toggles"},
		{"plan --profile cpu-avx2 --torch root", 2, "for torchvision and torchaudio", NULL},
		{"plan --profile cpu-avx2 --metadata-rev 0", 2, "not a number from 1 on: '0'",
		 NULL},
		{"plan --profile cpu-avx2 --jobs 0", 2, "not a number from 1 on: '0'", NULL},
		{"plan --matrix build-pytorch/main --units /nonexistent/none", 2,
		 "'/nonexistent/none' does not exist", NULL},
		{"plan --profile cpu-avx2 --units /usr", 2, "--units without --matrix", NULL},
		{"repack --units /usr x.whl", 2, "unknown option '--units'", NULL},
		{"diff pytorch-python313-cpu-avx2 --profile cpu-avx2", 2,
		 "unknown option '--profile'", NULL},
		{"cache info --keep-days 3", 2, "cache info does not support --keep-days", NULL},
		{"cache verify --max-size 3G", 2, "cache verify does not support --max-size", NULL},
		{"help --man --json", 2, "--man prints roff, and 'ptbuild help --json' the same",
		 NULL},
		{"completion bash --json", 2, "no document for --json", NULL},
		{"help --man plan", 2, "the page of all commands, not of 'plan'", NULL},
		{"--frob", 2, "unknown option '--frob'", "see 'ptbuild build --help'"},
		{"version", 2, "not a command: 'version'", "ptbuild --version"},
		{"verify none.whl", 2, "'none.whl' does not exist", NULL},
		{"diff none.whl none.whl", 2, "'none.whl' does not exist", NULL},
		{"verify --key none x.whl", 2, "--key: 'none' does not exist", NULL},
		{"repack none.whl --metadata-rev 2", 2, "'none.whl' does not exist", NULL},
		{"plan --profile cpu-avx2 --torch oficial", 2, "--torch: 'oficial' does not exist",
		 "did you mean 'official'?"},
		{"units none none", 2, "'none' does not exist", NULL},
		{"verify /", 2, "'/' is not a regular file", NULL},
		{"verify --with /dev/null x.whl", 2, "--with: '/dev/null' is not a regular file",
		 NULL},
		{"verify --key / x.whl", 2, "--key: '/' is not a regular file", NULL},
		{"units / /", 3, "'/'", NULL},
		{"doctor --root /proc", 2, "'/proc' is not a root file system", NULL},
		{"cache info --cache /proc/version", 8, "cannot open the store", NULL},
		{"world list --cache /proc/version", 8, "cannot open the store", NULL},
		{"world verify debian13 --cache /proc/version", 8, "cannot open the store", NULL},
		{"plan --profile cpu-avx2 --cache /proc/version", 8, "cannot open the store", NULL},
		{"plan --profile cpu-avx2 --cache /proc/version/below", 8, "cannot open the store",
		 NULL},
		{"matrix ./none.yaml", 2, "'./none.yaml' does not exist", NULL},
		{"matrix none", 3, "unknown matrix 'none'", NULL},
		{"bench none.whl --against official --offline", 2, "'none.whl' does not exist",
		 NULL},
		{"plan --profile none.yaml", 2, "--profile: 'none.yaml' does not exist", NULL},
		{"plan --matrix none.yaml", 2, "--matrix: 'none.yaml' does not exist", NULL},
		{"matrix --file none", 2, "--file: 'none' does not exist", NULL},
		{"detect --machine none", 2, "--machine: 'none' does not exist", NULL},
		{"build --profile cpu-avx2 --sign-key none", 2, "--sign-key: 'none' does not exist",
		 NULL},
		{"plan --profile sm90-avx2 --cuda cuda12_8", 3, "unknown CUDA toolkit",
		 "did you mean '12.8'?"},
		{"plan --profile cpu-avx2 --python 3.14t", 3, "free-threaded Python '3.14t'",
		 "use --python 3.14"},
		{"plan --profile cpu-avx2 --python 3.99", 3, "unknown Python '3.99'",
		 "3.15; or leave --python out"},
		{"plan pytorch-python399-cpu-avx2", 3, "unknown Python 'python399'",
		 "hint: known: python39"},
		{"clean", 2, "not a command: 'clean'", "'ptbuild cache gc --keep-days 30'"},
		{"prune --offline", 2, "not a command: 'prune'",
		 "'ptbuild cache gc --keep-days 30'"},
		{"plan --profile sm80,sm90-avx512", 3, "'sm80,sm90-avx512'", "'sm80+sm90-avx512'"},
		{"cpu-avx2", 2, "not a command: 'cpu-avx2'", "'ptbuild build --profile cpu-avx2'"},
		{"diff --matrix x", 2, "unknown option '--matrix'",
		 "an option of build, repack, plan,"},
		{"plan pytorch-python313-cpu-avx2 --cuda-home /x", 2, "has no CUDA", NULL},
		{"matrix pytorch-python313-darwin-mps", 7, "none of these variants can be built",
		 NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(slips); i++) {
		expect(slips[i].line, slips[i].status, slips[i].error);
		if (slips[i].hint)
			assert_contains(err_text(), slips[i].hint);
	}
}

static void the_name_of_a_variant_of_a_profile_file_is_one(void **state)
{
	(void)state;
	test_write(test_path("own.yaml"), "gpu: cpu\nisa: avx2\n");
	const char *line = "cd '%s' && \"$PTBUILD\" %s pytorch-python311-own";
	assert_int_equal(shell(arena_printf(&ran.arena, line, test_path("."), "plan")), 0);
	assert_contains(out(), "pytorch-python311-own\n");
	shell(arena_printf(&ran.arena, line, test_path("."), "shell"));
	assert_contains(err_text(), "no kept build tree for 'pytorch-python311-own'");
}

static void a_view_that_leaves_out_everything_is_refused(void **state)
{
	(void)state;
	test_write(test_path("view.yaml"), "note: mine\nof: build-pytorch/main\nexcept: [\"*\"]\n");
	static const char *const only[] = {"", " --only '*-avx2'"};
	for (size_t i = 0; i < ARRAY_LEN(only); i++) {
		expect(arena_printf(&ran.arena, "plan --matrix '%s'%s", test_path("view.yaml"),
				    only[i]),
		       3, "view.yaml' has no variant\n");
		assert_contains(err_text(), "'only' and 'except' exclude every variant");
		assert_not_contains(err_text(), "--only");
		assert_not_contains(err_text(), "null");
	}
}

/* Only some release has both targets; the newest that has is taken. */
static void the_release_is_one_that_has_the_targets(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("plan --profile sm61+sm120-avx2"), 0);
	assert_contains(out(), ", of release 2.13.0");
	assert_int_equal(ptbuild("plan --profile sm61+sm120-avx2 --cuda 12.8"), 0);
	assert_contains(out(), ", of release 2.11.0");
	expect("plan --profile sm61+sm120-avx2 --release 2.14.1", 7, "no sm61");
	assert_contains(err_text(), "--cuda 12.9 --release 2.13.0");
}

static void test_gpu_or_profile_without_its_option(void **state)
{
	(void)state;
	expect("slim sm89", 2, "hint: a GPU is named with --gpu sm89");
	expect("slim native", 2, "hint: a GPU is named with --gpu native");
	expect("slim sm90-avx512", 2, "hint: a profile is named with --profile sm90-avx512");
	expect("slim none", 2, "'none' does not exist");
	assert_null(strstr(err_text(), "hint"));
}

static void test_python_of_a_release_that_must_be_named(void **state)
{
	(void)state;
	expect("plan --profile cpu-avx2 --python 3.15t", 3, "hint: use one of 3.9 3.10");
	assert_null(strstr(err_text(), "3.15 "));
	expect("plan --profile cpu-avx2 --python 3.15", 3,
	       "hint: release 2.15.0 has them and can be planned (--release 2.15.0)");
}

static void test_python_is_read_as_pip_and_uv_write_it(void **state)
{
	(void)state;
	static const char *const words[] = {"3.13", "313", "cp313", "python3.13", "cpython3.13"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		ptbuild(arena_printf(&ran.arena,
				     "plan --profile cpu-avx2 --release 2.9.1 --python %s",
				     words[i]));
		assert_int_equal(ran.status, 0);
		assert_contains(out(), "pytorch-python313-cpu-avx2");
	}
}

static void what_is_off_already_is_not_given_up(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("plan --profile cpu-avx2 --without cudnn --json"), 0);
	assert_not_contains(out(), "nocudnn");
	assert_contains(out(), "--without cudnn changes nothing: USE_CUDNN is OFF already");
	assert_int_equal(ptbuild("plan --profile sm90-avx2 --without cudnn --json"), 0);
	assert_contains(out(), "sm90.avx2.nocudnn");
	assert_int_equal(
		ptbuild("plan --profile cpu-avx2 --package torchvision --without jpeg --json"), 0);
	assert_contains(out(), "avx2.nojpeg");
}

/* Before a command runs nothing is created, and no machine is asked. */
static void test_first_things_change_nothing(void **state)
{
	(void)state;
	for (const struct cmd_row *r = cmd_table; r->command; r++) {
		assert_int_equal(r->first & ~(unsigned)OPEN_BUILD, 0);
		assert_ptr_equal(cmd_row_of(r->command), r);
	}
}

static void test_open_refuses_what_is_not_declared(void **state)
{
	struct err e = {0};
	struct cmd_globals global = {0};
	struct cmd_context c = {.command = &command_help,
				.row = cmd_row_of(&command_help),
				.arena = &ran.arena,
				.global = &global};
	struct store *store;

	(void)state;
	assert_int_equal(cmd_open(&c, OPEN_TABLES, &e), -1);
	assert_int_equal(e.kind, ERR_CONFIG);
	assert_contains(e.msg, "help");
	assert_null(c.tables);
	assert_int_equal(cmd_store(&c, &store, ERR_IGNORED), -1);
	c.command = &command_detect;
	c.row = cmd_row_of(&command_detect);
	assert_ok(cmd_open(&c, OPEN_TABLES, &e), &e);
	assert_non_null(c.tables);
	assert_int_equal(cmd_open(&c, OPEN_BUILD, ERR_IGNORED), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_names_of_before_are_read_with_a_warning),
		T(bare_program_prints_the_overview),
		T(test_first_things_change_nothing),
		T(test_open_refuses_what_is_not_declared),
		T(help_option_and_help_command_agree),
		T(help_of_a_command_lists_every_option),
		T(help_after_the_command_is_its_help),
		T(help_of_an_unknown_command_is_usage),
		T(help_lines_fit_a_terminal),
		T(help_is_a_document),
		T(every_option_and_command_is_documented),
		T(the_reference_is_true),
		T(only_list_hides_a_global_option),
		T(version_is_printed),
		T(man_page_is_valid_roff),
		T(man_page_names_everything),
		T(every_command_and_option_is_offered),
		T(every_kind_has_names),
		T(completion_scripts_are_valid),
		T(bash_completes_commands_and_options),
		T(bash_completes_values_from_the_tables),
		T(completion_of_an_unknown_shell_is_usage),
		T(completion_words_come_from_the_tables),
		T(unknown_command_suggests_the_nearest),
		T(unknown_option_suggests_the_nearest),
		T(error_is_printed_once_on_standard_error),
		T(with_json_an_error_is_a_document),
		T(options_may_stand_before_the_command),
		T(option_value_that_is_a_command_name_is_no_command),
		T(missing_option_value_is_usage),
		T(contradicting_options_are_usage),
		T(options_alone_mean_build),
		T(variant_alone_means_build),
		T(words_where_none_belong_are_usage),
		T(unknown_release_is_config),
		T(tables_that_are_not_there_are_config),
		T(data_dir_of_the_environment_is_used),
		T(cache_follows_xdg_then_home),
		T(root_that_is_none_is_an_error),
		T(the_name_of_a_variant_of_a_profile_file_is_one),
		T(an_option_of_another_command),
		T(slips_get_the_words_that_work),
		T(a_view_that_leaves_out_everything_is_refused),
		T(the_release_is_one_that_has_the_targets),
		T(test_gpu_or_profile_without_its_option),
		T(test_python_of_a_release_that_must_be_named),
		T(test_python_is_read_as_pip_and_uv_write_it),
		T(what_is_off_already_is_not_given_up),
	};

	return cmocka_run_group_tests_name("cmd", tests, NULL, NULL);
}
