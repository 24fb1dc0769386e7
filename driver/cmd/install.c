#include "cmd/cmd.h"

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/machine/detect.h"
#include "core/plan/plan.h"
#include "core/wheel/requirement.h"
#include "step/fetch/fetch.h"
#include "step/index/index.h"

struct install_options {
	struct cmd_globals global;
	const char *python;
	const char *machine;
	bool uv, print;
};

/* A directory of the index, as the machine sees it. */
struct offer {
	const json_t *row;
	struct runs_on runs_on;
	int score;
	const char *why_not; /* NULL: it fits */
};

struct installing {
	struct cmd_context *c;
	const char *python;      /* the program */
	struct strlist versions; /* of the Python to install into; of a file's machine, of each */
	struct strlist has;      /* of pip and ensurepip, those that it has */
	const char *place;       /* the index: a directory, or a URL that ends with a slash */
	bool remote;
	const struct hardware_facts *facts;
	struct hardware machine;
	struct detected detected;
};

enum { LISTING_MAX = 16 << 20 };
#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

char *install_url(struct arena *a, const char *dir, const char *name)
{
	AUTO_BUF struct buf out = {0};
	const char *path = path_join(a, path_from_here(a, dir), name);

	buf_addstr(&out, "file://");
	buf_addurl(&out, path, "/");
	return arena_printf(a, "%s/", buf_cstr(&out));
}

void install_argv(const char *python, bool uv, const char *url, const struct strlist *wanted,
		  struct arena *a, struct strlist *ret)
{
	if (!uv && python)
		python_module(python, "pip", a, ret);
	else
		strlist_split(ret, a, uv ? "uv pip" : "pip", " ");
	strlist_ref(ret, a, "install");
	if (uv && python) {
		strlist_ref(ret, a, "--python");
		strlist_ref(ret, a, python);
	}

	/* uv installs a project from the first index that has it, and this one before the
	 * default. */
	strlist_ref(ret, a, uv ? "--index" : "--extra-index-url");
	strlist_ref(ret, a, url);
	/* pip passes over an index without TLS */
	const char *host = uv ? NULL : fetch_http_host(url, a);
	if (host) {
		strlist_ref(ret, a, "--trusted-host");
		strlist_ref(ret, a, host);
	}

	strlist_append(ret, a, wanted);
}

/* "--index-url=http://me:secret@host/" without user name and password. */
static const char *shown_word(const char *word, struct arena *a)
{
	const char *at = strstr(word, "://"), *start = at;

	while (start && start > word &&
	       (isalnum((unsigned char)start[-1]) || strchr("+.-", start[-1])))
		start--;
	if (!start || !strchr(at, '@'))
		return word;
	while (*start == '-') /* of the option, as no scheme begins so */
		start++;
	return arena_printf(a, "%.*s%s", (int)(start - word), word, transfer_shown_url(a, start));
}

/* The line for messages, which others may read. */
static const char *shown_line(const struct strlist *argv, struct arena *a)
{
	struct strlist shown = {0};

	for (size_t i = 0; i < argv->count; i++)
		strlist_ref(&shown, a, shown_word(argv->items[i], a));
	return shell_line(shown.items, shown.count, a);
}

/* ---- the index ---- */

static void read_list(const json_t *row, const char *key, struct arena *a, struct strlist *ret)
{
	size_t i;
	json_t *item;

	json_array_foreach(json_object_get(row, key), i, item)
		strlist_add(ret, a, json_string_value(item));
}

/* A single part of a path, and of a URL. */
static bool is_name(const char *s)
{
	return *s && *s != '.' && *s != '-' && !s[strspn(s, NAME_BYTES)];
}

/* "torch==2.6.0+cpu.avx2": an installer reads it neither as an option nor as a file. */
static bool is_pin(const char *word, struct arena *a)
{
	const char *version, *name = text_pin(word, a, &version);

	if (!version || !is_name(name) || !isalnum((unsigned char)*version))
		return false;
	return !version[strspn(version, NAME_BYTES "+!")] && wheel_version_key(version, a);
}

static bool is_strings(const json_t *list)
{
	size_t i;
	json_t *item;

	json_array_foreach(list, i, item) if (!json_is_string(item)) return false;
	return json_is_array(list);
}

static bool has_wheels(const char *dir, struct arena *a)
{
	struct strlist names = {0};

	if (!fs_is_dir(TRUSTED, dir) || fs_list(TRUSTED, dir, a, &names, ERR_IGNORED) < 0)
		return false;
	for (size_t i = 0; i < names.count; i++)
		if (path_has_suffix(names.items[i], ".whl"))
			return true;
	return false;
}

static int read_listing(struct installing *x, json_t **ret, struct err *e)
{
	const char *rel = INDEX_ALL "/" INDEX_LISTING,
		   *file = path_join(x->c->arena, x->place, rel);
	struct store *store;

	if (x->remote) {
		const char *url = arena_printf(x->c->arena, "%s%s", x->place, rel);
		if (cmd_open(x->c, OPEN_NETWORK, e) < 0 || cmd_store(x->c, &store, e) < 0)
			return -1;
		int rc = fetch_latest(&(struct fetcher){store, x->c->fetch, x->c->run, x->c->arena},
				      &(struct fetch_page){url, NULL, LISTING_MAX}, &file, e);
		if (rc < 0 && e->kind == ERR_NETWORK)
			err_hint(e, "%s; for a directory of this machine: 'ptbuild install DIR'",
				 e->hint);
		if (rc < 0)
			return -1;
	} else if (!fs_exists(TRUSTED, file) && !has_wheels(x->place, x->c->arena)) {
		err_set(e, ERR_USAGE, "'%s' is not an index, nor a directory of wheels", x->place);
		return err_hint(e, "'ptbuild index DIR' makes one of a directory of wheels");
	} else if (!fs_exists(TRUSTED, file)) {
		err_set(e, ERR_USAGE, "'%s' is not an index: there is no '%s'", x->place, file);
		return err_hint(e, "'ptbuild index %s' makes it of a directory of wheels",
				x->place);
	}

	if (json_read(TRUSTED, file, ret, e) < 0)
		return -1;
	/* The listing of an index on a server is somebody else's:
	 * its words go into the installer's command line. */
	const json_t *doc = *ret;
	const json_t *rows = json_object_get(doc, "directories"), *row;
	size_t i;
	if (!json_is_array(rows))
		return err_set(e, ERR_INTEGRITY, "'%s' is not the listing of an index", file);
	json_array_foreach(rows, i, row)
	{
		const char *name = json_text(row, "name");
		struct strlist pins = {0};
		if (!is_name(name) || !json_is_string(json_object_get(row, "label")))
			return err_set(e, ERR_INTEGRITY,
				       "'%s': not the name of a directory with its label: '%s'",
				       file, name);
		if (!is_strings(json_object_get(row, "install")) ||
		    !is_strings(json_object_get(row, "wheels")) ||
		    (json_object_get(row, "missing") &&
		     !is_strings(json_object_get(row, "missing"))))
			return err_set(e, ERR_INTEGRITY, "'%s': no lists of what '%s' holds", file,
				       name);
		read_list(row, "install", x->c->arena, &pins);
		for (size_t k = 0; k < pins.count; k++)
			if (!is_pin(pins.items[k], x->c->arena))
				return err_set(e, ERR_INTEGRITY,
					       "'%s': not a project with its version: '%s'", file,
					       pins.items[k]);
	}

	return 0;
}

/* ---- the choice ---- */

/* What detect would take instead of a row that runs, as of a processor whose AVX-512 is slow. */
static const char *isa_refused(const struct detected *d, const struct isa_row *isa)
{
	for (size_t i = 0; i < d->isa_count; i++)
		if (d->isas[i].row == isa)
			return d->isas[i].missing;
	return NULL;
}

/* Code for the GPU counts most, most of all for exactly that GPU; then the instruction set that
 * detect recommends, then those of general use; then a wheel that declares its needs. */
static int score_of(const struct installing *x, const struct promise *p, const struct runs_on *r)
{
	const struct isa_row *isa = r->isa;
	int score = p->binding ? 1 : 0;

	if (isa)
		score += x->detected.isa && strcmp(isa->name, x->detected.isa) == 0
				 ? 2000
				 : (isa->workloads_count ? 2 : 1000) + (int)isa->rank;
	if (r->gpu.count)
		score += strlist_contains(&r->gpu, x->machine.gpus[0].capability) ? 20000 : 10000;
	return score;
}

/* What installers would say of the wheel's Requires-Python,
 * which the index has told; NULL: nothing. */
static const char *python_refused(const struct installing *x, const json_t *row, const char *file)
{
	const char *range =
		json_string_value(json_object_get(json_object_get(row, "requires_python"), file));
	struct arena *a = x->c->arena;

	if (!range || specifier_check(range, a, ERR_IGNORED) < 0)
		return NULL;
	for (size_t i = 0; i < x->versions.count; i++)
		if (specifier_takes(range, x->versions.items[i], a))
			return NULL;
	return arena_printf(a, "'%s' requires Python %s, not %s", file, range,
			    strlist_join(&x->versions, a, " or "));
}

/* Whether a project of the words to install has none of the wheels that fit. */
static bool is_without(const struct strlist *install, const struct strlist *fitting,
		       struct arena *a)
{
	for (size_t i = 0; i < install->count; i++)
		if (!strlist_contains(fitting, wheel_requires_name(install->items[i], a)))
			return true;
	return false;
}

static int judge(struct installing *x, const json_t *row, struct offer *ret, struct err *e)
{
	const struct strlist none = {0};
	struct arena *a = x->c->arena;
	struct strlist wheels = {0}, missing = {0}, install = {0}, fitting = {0};
	const struct tables *t = x->c->tables;
	struct promise p;
	const char *why_not = NULL;

	read_list(row, "missing", a, &missing);
	*ret = (struct offer){
		.row = row,
		.why_not = missing.count
				   ? arena_printf(a, "it lacks %s", strlist_join(&missing, a, "; "))
				   : "all of its wheels are yanked"};
	read_list(row, "wheels", a, &wheels);
	promise_of_label(t, json_text(row, "label"), a, &p);
	read_list(row, "install", a, &install);
	for (size_t i = 0; i < wheels.count; i++) {
		struct wheel_name n;
		struct fit fit, gpu;
		if (wheel_name_parse(wheels.items[i], a, &n, e) < 0)
			return -1;
		/* One wheel of each project is enough: the index has them for many Pythons. */
		runs_on_of_wheel(t, &n, "", &p, &none, "", a, &ret->runs_on);
		fit_of(&ret->runs_on, NULL, x->facts, &x->machine, a, &fit);
		/* Code that may run on a GPU, and may not, is no choice. */
		fit_gpu(&ret->runs_on, &x->machine, a, &gpu);
		const struct fit *worst = fit.verdict == FIT_NO ? &fit : &gpu;
		const char *refused =
			ret->runs_on.isa ? isa_refused(&x->detected, ret->runs_on.isa) : NULL;
		refused = refused ? refused : python_refused(x, row, wheels.items[i]);
		refused =
			worst->verdict != FIT_YES ? strlist_join(&worst->lacks, a, "; ") : refused;
		if (!refused)
			strlist_once(&fitting, a, wheel_normalize(n.dist, a));
		why_not = refused && !strlist_contains(&fitting, wheel_normalize(n.dist, a))
				  ? refused
				  : why_not;
	}

	if (fitting.count && !is_without(&install, &fitting, a))
		ret->why_not = NULL;
	else if (why_not)
		ret->why_not = why_not;
	if (!ret->why_not)
		ret->score = score_of(x, &p, &ret->runs_on);
	return 0;
}

static int refuse_all(const struct installing *x, const struct strlist *refused, struct err *e)
{
	const struct install_options *o = x->c->options;
	struct arena *a = x->c->arena;
	const char *who = o->machine ? arena_printf(a, "the machine of '%s'", o->machine)
				     : arena_printf(a, "this machine and '%s'", x->python);

	err_set(e, ERR_POLICY, "no directory of '%s' is for %s%s%s", shown_word(x->place, a), who,
		refused->count ? ": " : "", strlist_join(refused, a, "; "));
	if (o->machine)
		return err_hint(e, "run 'ptbuild detect --machine %s' to see what to build for it",
				shell_quoted(o->machine, a));
	return err_hint(e, "run 'ptbuild detect' to see what to build for it, or choose another "
			   "Python with --python");
}

static int choose(struct installing *x, const json_t *listing, struct offer *ret, struct err *e)
{
	struct strlist refused = {0}, idle = {0}; /* idle: with code for GPUs */
	struct offer best = {0};
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(listing, "directories"), i, row)
	{
		struct offer o;
		if (judge(x, row, &o, e) < 0)
			return -1;
		if (!o.why_not) {
			best = best.row && o.score < best.score ? best : o;
			continue;
		}

		const char *text =
			arena_printf(x->c->arena, "%s: %s", json_text(row, "name"), o.why_not);
		strlist_ref(&refused, x->c->arena, text);
		if (o.runs_on.gpu.count)
			strlist_ref(&idle, x->c->arena, text);
	}

	*ret = best;
	if (!best.row)
		return refuse_all(x, &refused, e);
	if (x->machine.gpu_count && !best.runs_on.gpu.count && idle.count)
		log_warn(x->c->run->log, "'%s' does not use the GPU '%s': %s",
			 json_text(best.row, "name"), x->machine.gpus[0].name,
			 strlist_join(&idle, x->c->arena, "; "));
	return 0;
}

/* ---- the run ---- */

/* Wheels are for one Python: for the one that they are installed into. */
static int read_python(struct installing *x, struct err *e)
{
	static const char script[] =
		"import importlib.util, sys, sysconfig\n"
		/* Debian's own refuses it */
		"has = ['pip'] + ['ensurepip'] * (sys.prefix != sys.base_prefix)\n"
		"print('%d.%d%s' % (*sys.version_info[:2], 't' if "
		"sysconfig.get_config_var('Py_GIL_DISABLED') else ''),"
		" '%d.%d.%d' % sys.version_info[:3], *(m for m in has if "
		"importlib.util.find_spec(m)))";
	const char *const argv[] = {x->python, "-I", "-c", script, NULL};
	AUTO_BUF struct buf version = {0};

	if (proc_capture(argv, x->c->run, &version, e) < 0) {
		err_wrap(e, "cannot ask '%s' for its version", x->python);
		return e->hint[0] ? -1
				  : err_hint(e, "--python names the Python of the environment to "
						"install into");
	}

	x->machine.pythons = (struct strlist){0};
	strlist_split(&x->has, x->c->arena, buf_cstr(&version), " ");
	strlist_add(&x->machine.pythons, x->c->arena, x->has.count ? x->has.items[0] : "");
	strlist_add(&x->versions, x->c->arena, x->has.count > 1 ? x->has.items[1] : "");
	return 0;
}

/* Those that a file describes; it gives minor versions, and a free-threaded one has a "t". */
static void described_pythons(struct installing *x)
{
	const struct strlist *pythons = &x->machine.pythons;

	for (size_t i = 0; i < pythons->count; i++) {
		const char *name = pythons->items[i];
		strlist_add(&x->versions, x->c->arena,
			    arena_strndup(x->c->arena, name, strspn(name, "0123456789.")));
	}
}

static int read_machine(struct installing *x, struct err *e)
{
	const struct install_options *o = x->c->options;
	const struct hardware *h;

	if (o->machine) {
		if (hardware_facts_load(x->c->profiles_dir, x->c->arena, &x->facts, e) < 0 ||
		    hardware_load(o->machine, x->c->arena, &x->machine, e) < 0)
			return -1;
	} else {
		if (cmd_machine(x->c, true, &x->facts, &h, e) < 0)
			return -1;
		x->machine = *h;
	}

	if (o->machine && x->machine.pythons.count)
		described_pythons(x);
	else if (read_python(x, e) < 0)
		return -1;
	return detect_choose(x->c->tables, x->facts, &x->machine, NULL, NULL, x->c->arena,
			     &x->detected, e);
}

/* An environment of uv's, or one that 'python3 -m venv --without-pip' made, has no pip. */
static int check_pip(const struct installing *x, struct err *e)
{
	const struct install_options *o = x->c->options;
	const bool uv = proc_find(x->c->arena, "uv"), own = strlist_contains(&x->has, "ensurepip");

	if (o->uv || strlist_contains(&x->has, "pip"))
		return 0;
	err_set(e, ERR_SYSTEM, "'%s' has no pip", x->python);
	const char *add = arena_printf(x->c->arena, "run: %s -m ensurepip",
				       shell_quoted(x->python, x->c->arena));
	if (!uv && !own)
		return err_hint(e,
				"install uv and pass --uv, or name another Python with --python");
	return err_hint(e, "%s%s%s", uv ? "pass --uv" : "", uv && own ? ", or " : "",
			own ? add : "");
}

static const struct show rows[] = {{.text = "{line}"}, {0}};

/* Returns how many arguments precede --. One that is meant for ptbuild would be a package to an
 * installer. */
static int own_words(const struct cmd_context *c, const struct strlist *words, size_t *ret,
		     struct err *e)
{
	size_t at = 0;

	while (at < c->words->count && strcmp(c->words->items[at], "--") != 0)
		at++;
	*ret = at < c->words->count ? words->count - (c->words->count - 1 - at) : words->count;
	if (*ret <= 1)
		return 0;
	err_set(e, ERR_USAGE, "install needs one index, not '%s' as well", words->items[1]);
	return err_hint(e, "pass arguments for the installer after --");
}

static int install_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct install_options *o = c->options;
	struct arena *a = c->arena;
	struct installing x = {.c = c, .python = o->python ? o->python : "python3"};
	struct strlist argv = {0}, wanted = {0}, missing = {0};
	struct offer best;
	AUTO_JSON json_t *listing = NULL;
	size_t own;

	if (own_words(c, words, &own, e) < 0)
		return -1;
	x.place = own ? words->items[0] : "dist";
	x.remote = strstr(x.place, "://") != NULL;
	if (x.remote && !path_has_suffix(x.place, "/"))
		x.place = arena_printf(a, "%s/", x.place);
	if (o->global.json && !o->print)
		return err_set(
			e, ERR_USAGE,
			"install writes what the installer writes: --json goes with --print");
	if (o->machine && !o->print) {
		err_set(e, ERR_USAGE,
			"--machine without --print: wheels are installed on this machine");
		return err_hint(e, "add --print");
	}

	if (read_listing(&x, &listing, e) < 0 || read_machine(&x, e) < 0 ||
	    choose(&x, listing, &best, e) < 0 || (!o->print && check_pip(&x, e) < 0))
		return -1;
	const char *name = json_text(best.row, "name");
	const char *url =
		x.remote ? arena_printf(a, "%s%s/", x.place, name) : install_url(a, x.place, name);
	read_list(best.row, "install", a, &wanted);
	install_argv(x.python, o->uv, url, &wanted, a, &argv);
	strlist_refs(&argv, a, words->items + own, words->count - own);
	const char *line = shell_line(argv.items, argv.count, a);
	read_list(best.row, "missing", a, &missing);
	for (size_t i = 0; i < missing.count; i++)
		log_warn(c->run->log,
			 "skipped: '%s' lacks %s; add the missing wheel and run 'ptbuild index' "
			 "again",
			 name, missing.items[i]);
	if (!o->print) {
		const struct proc_spec spec = {.argv = strlist_argv(&argv, a), .attached = true};
		struct proc_result r;
		const char *shown = shown_line(&argv, a);
		log_info(c->run->log, "%s", shown);
		c->shown = true;
		if (proc_run(&spec, c->run, &r, e) < 0)
			return -1;
		if (r.status == 0)
			return 0;
		err_set(e, ERR_SYSTEM, "%s ended with exit status %d", o->uv ? "uv" : "pip",
			r.status);
		return err_hint(e, "see its output above; the command was: %s", shown);
	}

	return cmd_show(c,
			json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", 1,
				  "directory", name, "url", json_or_null(url), "profile",
				  json_or_null(x.detected.profile), "install",
				  json_from_strlist(&wanted), "missing",
				  json_from_strlist(&missing), "command", json_from_strlist(&argv),
				  "line", json_or_null(line)),
			rows, e);
}

#define INSTALL(type, field) (type), offsetof(struct install_options, field)

static const struct arg_def install_options[] = {
	{"python", 0, INSTALL(ARG_STRING, python), "PROGRAM",
	 "the Python of the environment to install into (default: python3)", NULL},
	{"machine", 0, INSTALL(ARG_STRING, machine), "FILE",
	 "with --print: choose for the machine that a file describes, as for detect", "<file>"},
	{"uv", 0, INSTALL(ARG_FLAG, uv), NULL, "install with uv (default: with this Python's pip)",
	 NULL},
	{"print", 0, INSTALL(ARG_FLAG, print), NULL, "print the line, and do not run it", NULL},
	{0},
};

const struct command command_install = {
	.name = "install",
	.summary = "install the wheels of an index that are for this machine",
	.usage = "[DIR|URL] [--python PROGRAM] [--uv] [--print [--machine FILE]] [-- ARGUMENT...]",
	.tables = {install_options},
	.arguments = {{"DIR|URL",
		       "the directory that holds the index (default: dist), or where it is served",
		       "<dir>"},
		      {"ARGUMENT...", "arguments for the installer", NULL}},
	.options_size = sizeof(struct install_options),
	.run = install_main,
};
