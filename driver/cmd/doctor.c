#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/path.h"
#include "base/version.h"
#include "cmd/help.h"
#include "cmd/select.h"

#define GIB (1024.0 * 1024 * 1024)
#define JOB_BYTES (2.3 * GIB) /* largest compiler process of a PyTorch build without CUDA */

enum level { OK, WARNING, FAILURE };

struct check {
	enum level level;
	enum err_kind kind; /* of a failure */
	const char *name;
	const char *text;
	const char *fix; /* "" if there is nothing to do */
};

struct doctor {
	struct cmd_context *c;
	struct check checks[64];
	size_t count;
	const struct root *root;
	const struct toolchain *toolchain;
	const struct release_row *release;
	const struct plan *plan; /* NULL without a profile */
};

static void add(struct doctor *d, enum level level, enum err_kind kind, const char *name, const char *text, const char *fix)
{
	if (d->count < ARRAY_LEN(d->checks))
		d->checks[d->count++] = (struct check){level, kind, name, text, fix ? fix : ""};
}

#define TEXT(d, ...) arena_printf((d)->c->arena, __VA_ARGS__)

static void add_err(struct doctor *d, const char *name, const struct err *why)
{
	add(d, FAILURE, why->kind, name, arena_strdup(d->c->arena, why->msg), arena_strdup(d->c->arena, why->hint));
}

static bool interrupted(const struct err *why)
{
	return why->kind == ERR_INTERRUPTED;
}

static int check_sandbox(struct doctor *d, struct err *e)
{
	struct err why = {0};
	if (cmd_sandbox(d->c) == SANDBOX_NONE) {
		add(d, WARNING, 0, "sandbox", "none: the build sees the whole machine, and its wheel may depend on it",
		    "leave --sandbox none out");
	} else if (sandbox_probe(d->root, d->c->run, &why) == 0) {
		add(d, OK, 0, "sandbox", "bubblewrap works", "");
	} else if (interrupted(&why)) {
		*e = why;
		return -1;
	} else {
		add_err(d, "sandbox", &why);
	}
	return 0;
}

/* A program of the root and its version against the release's range. */
static void check_tool(struct doctor *d, const char *name, const char *range, bool needed)
{
	const struct tool *t = toolchain_get(d->toolchain, name);
	struct err why = {0};
	bool fits = true;
	if (!t->path) {
		add(d, needed ? FAILURE : WARNING, ERR_SYSTEM, name, TEXT(d, "not in the root '%s'", d->root->dir),
		    TEXT(d, "install it there%s%s", *range ? ", version " : "", range));
	} else if (version_in(t->version, range, &fits, &why) < 0) {
		add_err(d, name, &why);
	} else if (!fits) {
		add(d, FAILURE, ERR_POLICY, name, TEXT(d, "%s is %s, release %s needs %s", t->path, t->version, d->release->name, range),
		    TEXT(d, "install a version in that range, or build in another root with --root DIR"));
	} else {
		add(d, OK, 0, name, TEXT(d, "%s %s", t->path, t->version), "");
	}
}

static void check_python(struct doctor *d)
{
	const struct tool *t = toolchain_get(d->toolchain, "python3");
	const char *want = d->plan ? d->plan->python : "";
	size_t n = strlen(want);
	if (!n || !t->path || (strncmp(t->version, want, n) == 0 && (t->version[n] == '.' || !t->version[n])))
		check_tool(d, "python3", "", true);
	else
		add(d, FAILURE, ERR_POLICY, "python3", TEXT(d, "%s is %s, the build is for %s", t->path, t->version, want),
		    "say --python for the one that is there, or use a root that has the other");
}

static int sandbox_shell(struct doctor *d, const char *script, const struct strlist *args, struct buf *out, struct err *e)
{
	struct sandbox s;
	struct arena *a = d->c->arena;
	struct strlist argv = {0};
	if (sandbox_init(&s, cmd_sandbox(d->c), d->root, a, e) < 0)
		return -1;
	kvlist_set(&s.env, a, "PATH", "/usr/local/bin:/usr/bin:/bin");
	kvlist_set(&s.env, a, "LC_ALL", "C.UTF-8");
	strlist_ref(&argv, a, "/bin/sh");
	strlist_ref(&argv, a, "-c");
	strlist_ref(&argv, a, script);
	strlist_ref(&argv, a, "sh");
	strlist_append(&argv, a, args);
	return sandbox_capture(&s, strlist_argv(&argv, a), d->c->run, out, e);
}

/* Compiles and links a program with the very flags: a compiler's version number says less. */
static int check_flags(struct doctor *d, struct err *e)
{
	const char *compiler = "g++";
	AUTO_BUF struct buf out = {0};
	struct err why = {0};
	if (!d->plan || d->plan->cpu_flags.count == 0 || !toolchain_get(d->toolchain, compiler)->path)
		return 0;
	const char *flags = strlist_join(&d->plan->cpu_flags, d->c->arena, " ");
	if (sandbox_shell(d,
			  "printf 'int main() { return 0; }' | g++ \"$@\" -x c++ - -o /tmp/ptbuild-doctor$$ && rm -f /tmp/ptbuild-doctor$$",
			  &d->plan->cpu_flags, &out, &why) == 0)
		add(d, OK, 0, "flags", TEXT(d, "%s takes %s", compiler, flags), "");
	else if (interrupted(&why))
		return err_set(e, ERR_INTERRUPTED, "%s", why.msg);
	else
		add(d, FAILURE, ERR_POLICY, "flags", TEXT(d, "%s does not compile with %s: %s", compiler, flags, why.msg),
		    TEXT(d, "use a root with a newer compiler, or a lower instruction set than %s", d->plan->isa));
	return 0;
}

static int check_blas(struct doctor *d, struct err *e)
{
	const struct tables *t;
	AUTO_BUF struct buf out = {0};
	struct err why = {0};
	if (!d->plan || !d->plan->blas)
		return 0;
	if (cmd_tables(d->c, &t, e) < 0)
		return -1;
	const struct blas_row *row = tables_blas(t, d->plan->blas);
	if (!row || !*row->pkgconf)
		return 0;
	struct strlist args = {0}, lines = {0};
	strlist_ref(&args, d->c->arena, row->pkgconf);
	if (sandbox_shell(d, "exec pkg-config --modversion \"$1\"", &args, &out, &why) == 0) {
		strlist_split(&lines, d->c->arena, buf_cstr(&out), "\n");
		add(d, OK, 0, "blas", TEXT(d, "%s %s", row->pkgconf, lines.count ? lines.items[0] : ""), "");
	} else if (interrupted(&why)) {
		return err_set(e, ERR_INTERRUPTED, "%s", why.msg);
	} else {
		add(d, FAILURE, ERR_SYSTEM, "blas", TEXT(d, "pkg-config finds no module '%s' in the root '%s'", row->pkgconf, d->root->dir),
		    TEXT(d, "install the development files of %s there, or choose another with --blas", row->name));
	}
	return 0;
}

static void check_host_program(struct doctor *d, const char *name, const char *what)
{
	const char *path = proc_find(d->c->arena, name);
	if (path)
		add(d, OK, 0, name, path, "");
	else
		add(d, FAILURE, ERR_SYSTEM, name, TEXT(d, "not in PATH: %s", what), TEXT(d, "install %s", name));
}

static void check_cpu(struct doctor *d)
{
	const struct tables *t;
	struct err why = {0};
	struct strlist missing = {0};
	if (!d->plan || !d->plan->isa || cmd_tables(d->c, &t, &why) < 0)
		return;
	const struct isa_row *isa = tables_isa(t, d->plan->isa);
	for (unsigned i = 0; isa && i < isa->cpuinfo_count; i++)
		if (!machine_has_feature(isa->cpuinfo[i]))
			strlist_ref(&missing, d->c->arena, isa->cpuinfo[i]);
	if (missing.count)
		add(d, WARNING, 0, "cpu",
		    TEXT(d, "this processor cannot run %s (no %s): the wheel is built but not tried", d->plan->isa,
			 strlist_join(&missing, d->c->arena, ", ")),
		    "");
	else
		add(d, OK, 0, "cpu", TEXT(d, "runs %s", d->plan->isa), "");
}

static double parse_disk(const char *text)
{
	char *end;
	double n = strtod(text, &end);
	return *end == 'T' ? n * 1024 * GIB : *end == 'M' ? n * GIB / 1024 : n * GIB;
}

/* The file system that the store is, or will be, on. */
static void check_disk(struct doctor *d)
{
	const char *dir;
	struct err why = {0};
	uint64_t bytes;
	if (cmd_cache_dir(d->c, &dir, &why) < 0) {
		add_err(d, "disk", &why);
		return;
	}
	while (!fs_exists(dir) && strcmp(dir, "/") != 0)
		dir = path_dir(d->c->arena, dir);
	if (fs_free_bytes(dir, &bytes, &why) < 0) {
		add_err(d, "disk", &why);
		return;
	}
	double need = *d->release->disk ? parse_disk(d->release->disk) : 0;
	const char *text =
		TEXT(d, "%.1f GiB free at '%s', a build of PyTorch %s needs %.0f", (double)bytes / GIB, dir, d->release->name, need / GIB);
	if ((double)bytes < need)
		add(d, FAILURE, ERR_SYSTEM, "disk", text, "make room, or name another place with --cache DIR");
	else
		add(d, OK, 0, "disk", text, "");
}

static void check_memory(struct doctor *d)
{
	double bytes = (double)machine_memory();
	unsigned processors = machine_processors(), jobs = d->c->global->jobs ? d->c->global->jobs : processors;
	const char *text = TEXT(d, "%.1f GiB for %u processors", bytes / GIB, processors);
	if (bytes < JOB_BYTES)
		add(d, FAILURE, ERR_SYSTEM, "memory",
		    TEXT(d, "%s: the largest compiler process alone takes %.1f GiB", text, JOB_BYTES / GIB),
		    "use a machine or a container with more memory");
	else if (bytes < JOB_BYTES * jobs)
		add(d, WARNING, 0, "memory", TEXT(d, "%s: heavy files will be compiled with fewer than %u jobs", text, jobs), "");
	else
		add(d, OK, 0, "memory", text, "");
}

static int choose(struct doctor *d, const struct strlist *args, struct err *e)
{
	const struct cmd_select *o = &((const struct cmd_select_base *)d->c->options)->select;
	const struct tables *t;
	if (cmd_tables(d->c, &t, e) < 0)
		return -1;
	if (args->count || o->profile) {
		struct selection *s;
		size_t count;
		if (cmd_select(d->c, args, &s, &count, e) < 0)
			return -1;
		if (count != 1)
			return err_set(e, ERR_USAGE, "doctor looks at one build, not %zu", count);
		d->release = s->release;
		return cmd_select_plan(d->c, s, NULL, NULL, NULL, &d->plan, e);
	}
	if (o->release)
		return tables_need_release(t, o->release, &d->release, e);
	for (unsigned i = 0; i < t->releases_count; i++)
		if (strcmp(t->releases[i].name, t->releases[i].base) == 0)
			d->release = &t->releases[i];
	return d->release ? 0 : err_set(e, ERR_CONFIG, "the tables in '%s' have no release", t->dir);
}

static int look(struct doctor *d, struct err *e)
{
	if (check_sandbox(d, e) < 0)
		return -1;
	struct err why = {0};
	if (toolchain_probe(d->root, cmd_sandbox(d->c), d->c->run, d->c->arena, &d->toolchain, &why) < 0) {
		if (interrupted(&why))
			return err_set(e, ERR_INTERRUPTED, "%s", why.msg);
		add_err(d, "tools", &why);
	} else {
		check_tool(d, "gcc", d->release->gcc, true);
		check_tool(d, "g++", d->release->gcc, true);
		check_tool(d, "cmake", d->release->cmake, true);
		check_tool(d, "ninja", d->release->ninja, true);
		check_python(d);
		check_tool(d, "ccache", "", false);
		check_tool(d, "pkg-config", "", true);
		if (d->plan && d->plan->cuda)
			check_tool(d, "nvcc", TEXT(d, "==%s.*", d->plan->cuda), true);
		if (check_flags(d, e) < 0 || check_blas(d, e) < 0)
			return -1;
	}
	check_host_program(d, "patch", "patches cannot be applied");
	check_host_program(d, "patchelf", "libraries cannot be taken into the wheel");
	check_cpu(d);
	check_disk(d);
	check_memory(d);
	return 0;
}

static const char *const level_names[] = {"ok", "warning", "failure"};

static int print_json(const struct doctor *d, struct err *e)
{
	json_t *list = json_array();
	enum level worst = OK;
	for (size_t i = 0; i < d->count; i++) {
		const struct check *k = &d->checks[i];
		worst = k->level > worst ? k->level : worst;
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", k->name, "level", level_names[k->level], "text",
						      k->text, "fix", k->fix));
	}
	AUTO_JSON json_t *doc =
		json_pack("{s:i, s:s, s:s, s:o, s:s, s:o}", "schema", 1, "root", d->root->dir, "release", d->release->name, "variant",
			  json_or_null(d->plan ? d->plan->variant : NULL), "worst", level_names[worst], "checks", list);
	return json_print(doc, e);
}

static int print_text(const struct doctor *d, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	buf_printf(&out, "root %s (%s), release %s%s%s\n", d->root->dir, d->root->id, d->release->name, d->plan ? ", " : "",
		   d->plan ? d->plan->variant : "");
	for (size_t i = 0; i < d->count; i++) {
		const struct check *k = &d->checks[i];
		buf_printf(&out, "%-8s %-11s %s\n", level_names[k->level], k->name, k->text);
		if (*k->fix)
			buf_printf(&out, "%-8s %-11s -> %s\n", "", "", k->fix);
	}
	return cmd_write_stdout(&out, e);
}

static int run_doctor(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct doctor d = {.c = c};
	if (choose(&d, args, e) < 0 || cmd_root(c, &d.root, e) < 0 || look(&d, e) < 0)
		return -1;
	if ((c->global->json ? print_json(&d, e) : print_text(&d, e)) < 0)
		return -1;
	size_t failures = 0;
	enum err_kind kind = ERR_NONE;
	for (size_t i = 0; i < d.count; i++) {
		if (d.checks[i].level != FAILURE)
			continue;
		failures++;
		if (kind < ERR_SYSTEM)
			kind = d.checks[i].kind == ERR_POLICY ? ERR_POLICY : ERR_SYSTEM;
	}
	if (failures == 0)
		return 0;
	return err_set(e, kind, "this machine cannot build it: %zu of %zu checks failed", failures, d.count);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "look whether this machine can build it",
	.usage = "[--profile PROFILE | VARIANT] [options]",
	.text =
		(const char *const[]){
			"Runs the sandbox, asks every tool of the root for its version, compiles with the profile's flags, looks for the "
			"BLAS, "
			"and compares disk and memory with what the build needs. The exit status is 0 when nothing fails, else 7 or 8.",
			NULL},
	.tables = (const struct arg_def *const[]){cmd_select_options, NULL},
	.arguments = (const struct cmd_positional[]){{"VARIANT", "exact name of a build, instead of --profile", "<profile>"}, {0}},
	.examples =
		(const struct cmd_example[]){{"ptbuild doctor --profile cpu-avx512 --root /srv/debian13", "can it be built in that root?"},
					     {0}},
	.options_size = sizeof(struct cmd_select_base),
	.run = run_doctor,
};
