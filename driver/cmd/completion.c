#include "cmd/cmd.h"
#include "core/plan/plan.h"
#include "core/variant/variant.h"
#include "core/wheel/application.h"
#include "core/world/world.h"

struct completion_options {
	struct cmd_globals global;
	const char *words;
	bool offers;
};

static void add_isa_profiles(const struct tables *t, const struct gpu_row *gpu, struct arena *a,
			     struct strlist *ret)
{
	for (unsigned i = 0; i < t->isas_count; i++)
		if (!gpu)
			strlist_addf(ret, a, "cpu-%s", t->isas[i].name);
		else if (strings_allow(gpu->platforms, gpu->platforms_count, t->isas[i].platform))
			strlist_addf(ret, a, "sm%s-%s", gpu->sm, t->isas[i].name);
}

static int add_profiles(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	(void)e;
	strlist_ref(ret, a, "native");
	strlist_ref(ret, a, "darwin-mps");
	add_isa_profiles(t, NULL, a, ret);
	for (unsigned i = 0; i < t->gpus_count; i++)
		add_isa_profiles(t, &t->gpus[i], a, ret);
	return 0;
}

/* A package for one Python. */
struct python_package {
	const char *package, *python;
};

/* Whether a release that needs no --release has this package for
 * the Python, the toolkit and the GPU target, if there are any. */
static bool is_released(const struct tables *t, const struct python_package *p, const char *cuda,
			const struct gpu_row *gpu)
{
	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct release_row *r = &t->releases[i];
		if (!tables_offered(r) || !tables_package(r, p->package))
			continue;
		if (!strings_contain(r->pythons, r->pythons_count, p->python))
			continue;
		if (cuda && !strings_contain(r->toolkits, r->toolkits_count, cuda))
			continue;
		const struct gpu_target target = {.row = gpu, .suffix = ""};
		if (!gpu || plan_takes_target(r, p->package, cuda, &target))
			return true;
	}

	return false;
}

static void add_variants_of(const struct tables *t, const struct python_package *p, struct arena *a,
			    struct strlist *ret)
{
	struct strlist profiles = {0};

	add_isa_profiles(t, NULL, a, &profiles);
	for (size_t i = 0; i < profiles.count; i++)
		strlist_ref(ret, a,
			    variant_spell(p->package, p->python, NULL, profiles.items[i], a));
	for (unsigned k = 0; k < t->toolkits_count; k++)
		for (unsigned i = 0; i < t->gpus_count; i++) {
			const char *cuda = t->toolkits[k].version;
			if (!is_released(t, p, cuda, &t->gpus[i]))
				continue;
			profiles.count = 0;
			add_isa_profiles(t, &t->gpus[i], a, &profiles);
			for (size_t n = 0; n < profiles.count; n++)
				strlist_ref(ret, a,
					    variant_spell(p->package, p->python, cuda,
							  profiles.items[n], a));
		}
}

static int add_pythons(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	(void)e;
	for (unsigned i = 0; i < t->releases_count; i++)
		for (unsigned k = 0; k < t->releases[i].pythons_count; k++)
			strlist_once(ret, a, t->releases[i].pythons[k]);
	return 0;
}

static int add_variants(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	struct strlist pythons = {0};

	if (add_pythons(t, a, &pythons, e) < 0)
		return -1;
	for (size_t p = 0; p < TABLES_PACKAGES; p++)
		for (size_t i = 0; i < pythons.count; i++) {
			const struct python_package one = {tables_packages[p], pythons.items[i]};
			if (is_released(t, &one, NULL, NULL))
				add_variants_of(t, &one, a, ret);
		}
	return 0;
}

static int add_gpus(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	(void)e;
	for (unsigned i = 0; i < t->gpus_count; i++)
		strlist_addf(ret, a, "sm%s", t->gpus[i].sm);
	return 0;
}

static int add_official(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	(void)e;
	for (unsigned i = 0; i < t->releases_count; i++)
		if (official_pinned(t->dir, t->releases[i].name, a))
			strlist_ref(ret, a, t->releases[i].name);
	strlist_ref(ret, a, CMD_LATEST);
	return 0;
}

static int add_bundles(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	struct application_file f;

	if (applications_load(t->dir, a, &f, e) < 0)
		return -1;
	for (unsigned i = 0; i < f.applications_count; i++)
		strlist_ref(ret, a, f.applications[i].parts[0].wheel);
	return 0;
}

static int add_worlds(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	return world_part_names(t->dir, a, ret, e);
}

#define NAMES(array, row, field)                                                                   \
	offsetof(struct tables, array), offsetof(struct tables, array##_count),                    \
		sizeof(struct row), offsetof(struct row, field)

static const struct words {
	const char *kind;
	int (*add)(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e);
	/* without `add`: of the tables' array, and of the name in a row */
	size_t array, count, size, name;
} words[] = {
	{"release", NULL, NAMES(releases, release_row, name)},
	{"profile", .add = add_profiles},
	{"variant", .add = add_variants},
	{"matrix", .add = matrix_names},
	{"python", .add = add_pythons},
	{"isa", NULL, NAMES(isas, isa_row, name)},
	{"cuda", NULL, NAMES(toolkits, toolkit_row, version)},
	{"blas", NULL, NAMES(blas, blas_row, name)},
	{"world", .add = add_worlds},
	{"gpu", .add = add_gpus},
	{"official", .add = add_official},
	{"bundle", .add = add_bundles},
};

/* The kind is one of `words`: the options' table has them. */
static int add_words(struct cmd_context *c, const char *kind, struct strlist *names, struct err *e)
{
	const struct words *w = words;

	if (cmd_open(c, OPEN_TABLES, e) < 0)
		return -1;
	const struct tables *t = c->tables;
	while (strncmp(w->kind, kind, strlen(w->kind)) != 0)
		w++;
	if (w->add)
		return w->add(t, c->arena, names, e);
	const char *base = (const char *)t,
		   *rows = *(const char *const *)(const void *)(base + w->array);
	for (unsigned i = 0; i < *(const unsigned *)(const void *)(base + w->count); i++)
		strlist_ref(names, c->arena,
			    *(const char *const *)(const void *)(rows + i * w->size + w->name));
	return 0;
}

/* ---- completions for a command line ---- */

struct offers {
	struct cmd_context *c;
	const char *begun; /* of the last word */
	struct buf *out;   /* a word a line, with a tab and what it is; or a kind of file alone */
};

static void offer(const struct offers *o, const char *word, const char *help)
{
	if (strncmp(word, o->begun, strlen(o->begun)) == 0)
		buf_printf(o->out, *help ? "%s\t%s\n" : "%s\n", word, help);
}

/* "sm80+" of the list of GPUs "sm80+sm9": all before its last name. */
static const char *list_before(const struct offers *o, const char *values)
{
	size_t n = strcmp(values, "<gpu>") == 0 ? strlen(o->begun) : 0;

	while (n && !strchr("+,", o->begun[n - 1]))
		n--;
	return arena_strndup(o->c->arena, o->begun, n);
}

/* Skips names that cannot be read: a shell has no use for the error. */
static void offer_values(const struct offers *o, const char *values)
{
	struct strlist names = {0};

	if (cmd_names_files(values))
		buf_printf(o->out, "<file>\n");
	else if (strcmp(values, "<dir>") == 0)
		buf_printf(o->out, "<dir>\n");
	else if (strcmp(values, "<command>") == 0)
		for (size_t i = 0; cmd_table[i].command; i++)
			offer(o, cmd_table[i].command->name, cmd_table[i].command->summary);
	else if (*values != '<')
		strlist_split(&names, o->c->arena, values, " ");
	else if (add_words(o->c, values + 1, &names, ERR_IGNORED) < 0)
		names.count = 0;
	const char *before = list_before(o, values);
	for (size_t i = 0; i < names.count; i++)
		offer(o, arena_printf(o->c->arena, "%s%s", before, names.items[i]), "");
	/* a name of the tables, or a file */
	if (strcmp(values, "<bundle>") == 0 && !o->out->len)
		buf_printf(o->out, "<file>\n");
}

static void offer_options(const struct offers *o, const struct arg_def *table,
			  const struct command *hider)
{
	for (const struct arg_def *d = table; d->name; d++) {
		const char *name = arena_printf(o->c->arena, "--%s", d->name);
		bool hidden = false;
		for (size_t i = 0; hider && hider->tables[i]; i++)
			hidden = hidden || cmd_option(hider->tables[i], name);
		if (!hidden)
			offer(o, name, d->help);
	}
}

/* The option whose value follows the word; NULL. A command's own hide those of every command. */
static const struct arg_def *option_of(const struct command *cmd, const char *word)
{
	const struct arg_def *d = NULL;

	for (size_t i = 0; *word == '-' && word[1] && !d && cmd->tables[i]; i++)
		d = cmd_option(cmd->tables[i], word);
	d = d || *word != '-' || !word[1] ? d : cmd_option(cmd_global_options, word);
	return d && d->type != ARG_FLAG ? d : NULL;
}

/* Returns the kind of values for the argument that follows `typed`. */
static const char *argument_values(const struct command *cmd, const char *const *typed,
				   size_t count)
{
	const struct cmd_positional *p = cmd->arguments;

	for (size_t i = 0; i < count; i++) {
		if (*typed[i] == '-')
			i += !strchr(typed[i], '=') && option_of(cmd, typed[i]);
		else if (p->name && !path_has_suffix(p->name, "..."))
			p++;
	}

	return p->name && p->values ? p->values : "";
}

/* `line`: the program and the words behind it; the last one is begun, and may be "". */
static void make_offers(struct offers *o, const struct strlist *line)
{
	const int before = line->count ? (int)line->count - 1 : 0,
		  at = cmd_first_word(before, line->items);
	const struct command *cmd = at < before ? cmd_find(line->items[at]) : NULL,
			     *own = cmd ? cmd : &command_build;
	const char *equals = strchr(o->begun, '=');
	const struct arg_def *d = option_of(own, before > 1 ? line->items[before - 1] : "");
	const bool valued = equals && strncmp(o->begun, "--", 2) == 0;

	if (valued) {
		d = option_of(own,
			      arena_strndup(o->c->arena, o->begun, (size_t)(equals - o->begun)));
		o->begun = equals + 1;
	}

	if (d || valued) {
		offer_values(o, d && d->values ? d->values : "");
		return;
	}

	if (*o->begun != '-' && cmd)
		offer_values(o,
			     argument_values(cmd, &line->items[at + 1], (size_t)(before - at - 1)));
	if (*o->begun != '-' && !cmd)
		offer_values(o, "<command>");
	if (!cmd && strstr(o->begun, "torch"))
		offer_values(o, "<variant>");
	if (o->out->len)
		return;
	for (size_t i = 0; own->tables[i]; i++)
		offer_options(o, own->tables[i], NULL);
	offer_options(o, cmd_global_options, own);
}

/* bash makes words of their own of '=' and leaves the quote that a word begins with. */
static const char bash[] =
	"_ptbuild()\n{\n\tlocal word glue= words=() lines\n"
	"\tfor word in \"${COMP_WORDS[@]:0:COMP_CWORD+1}\"; do\n"
	"\t\tif [[ $word == '=' || -n $glue ]]; then words[-1]+=$word; else "
	"words+=(\"${word#[\\\"\\']}\"); fi\n"
	"\t\tif [[ $word == '=' ]]; then glue=1; else glue=; fi\n"
	"\tdone\n"
	"\tmapfile -t lines < <(ptbuild completion --offers -- \"${words[@]}\" 2>/dev/null)\n"
	"\tcase ${lines[0]-} in\n"
	"\t'<file>'|'<dir>') mapfile -t COMPREPLY < <(compgen -\"${lines[0]:1:1}\" -- "
	"\"${words[-1]#--*=}\");;\n"
	"\t*) COMPREPLY=(\"${lines[@]%%$'\\t'*}\");;\n"
	"\tesac\n}\ncomplete -F _ptbuild ptbuild\n";

/* From a file in $fpath the function is called at once; sourced, it is registered. */
static const char zsh[] = "#compdef ptbuild\n"
			  "_ptbuild()\n{\n\tlocal -a lines names\n"
			  "\tif [[ $PREFIX == --*=* ]]; then compset -P '*='; fi\n"
			  "\tlines=(${(f)\"$(ptbuild completion --offers -- "
			  "\"${(@)words[1,CURRENT-1]}\" \"$IPREFIX$PREFIX\" "
			  "2>/dev/null)\"})\n"
			  "\tcase $lines[1] in\n"
			  "\t'<file>') _files;;\n"
			  "\t'<dir>') _path_files -/;;\n"
			  "\t*)\n\t\tnames=(${lines%%$'\\t'*}) lines=(${lines/$'\\t'/  -- })\n"
			  "\t\tif (( $#names )); then compadd -l -d lines -a names; fi;;\n"
			  "\tesac\n}\n"
			  "if [[ $funcstack[1] == _ptbuild ]]; then _ptbuild \"$@\"; else compdef "
			  "_ptbuild ptbuild; fi\n";

static const char fish[] =
	"function __ptbuild_offers\n"
	"\tset -l word (commandline -ct | string trim -l -c '\"\\'')\n"
	"\tset -l option (string match -r -- '^--[^=]*=' \"$word\")\n"
	"\tset -l lines (ptbuild completion --offers -- (commandline -opc) \"$word\" 2>/dev/null)\n"
	"\tswitch \"$lines[1]\"\n"
	"\t\tcase '<file>'\n\t\t\t__fish_complete_path (string replace -- \"$option\" '' "
	"\"$word\")\n"
	"\t\tcase '<dir>'\n\t\t\t__fish_complete_directories (string replace -- \"$option\" '' "
	"\"$word\")\n"
	"\t\tcase '*'\n\t\t\tprintf '%s\\n' \"$option\"$lines\n"
	"\tend\nend\n"
	"complete -c ptbuild -f -a '(__ptbuild_offers)'\n";

static int script(const char *shell, struct buf *out, struct err *e)
{
	static const struct kv scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
	const struct kv *found = text_search(shell, scripts, ARRAY_LEN(scripts), sizeof(*found));

	if (found) {
		buf_addstr(out, found->value);
		return 0;
	}

	err_set(e, ERR_USAGE, "no completion script for the shell '%s'", shell);
	return err_hint(e, "it is bash, zsh or fish");
}

static int run_completion(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct completion_options *o = c->options;
	AUTO_BUF struct buf text = {0};
	struct strlist names = {0};
	struct offers offers = {c, args->count ? args->items[args->count - 1] : "", &text};

	if (o->global.json)
		return err_set(e, ERR_USAGE,
			       "completion prints what shells read, and no document for --json");
	if (!o->offers && (o->words ? args->count != 0 : args->count != 1)) {
		err_set(e, ERR_USAGE, "completion needs one shell, or --words KIND");
		return err_hint(e, "for example 'ptbuild completion bash'");
	}

	if (o->offers)
		make_offers(&offers, args);
	else if ((o->words ? add_words(c, o->words, &names, e) : script(args->items[0], &text, e)) <
		 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		buf_printf(&text, "%s\n", names.items[i]);
	return cmd_write_stdout(&text, e);
}

static const struct arg_def completion_options[] = {
	{"words", 0, ARG_STRING, offsetof(struct completion_options, words), "KIND",
	 "print the names of this kind from the tables",
	 "release profile variant matrix python isa cuda blas world gpu official bundle"},
	{"offers", 0, ARG_FLAG, offsetof(struct completion_options, offers), NULL,
	 "print completions for the last argument of the command line after '--'", NULL},
	{0},
};

const struct command command_completion = {
	.name = "completion",
	.summary = "print the completion script for a shell",
	.usage = "bash|zsh|fish | --words KIND | --offers -- ARGUMENT...",
	.tables = {completion_options},
	.arguments = {{"SHELL", "bash, zsh or fish", "bash zsh fish"}},
	.options_size = sizeof(struct completion_options),
	.run = run_completion,
};
