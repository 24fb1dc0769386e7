/* The root: its tools in the release's ranges, programs
 * and headers, Python, compiler, BLAS, torch, CUDA. */

#include "base/sys/fs.h"
#include "core/plan/buildenv.h"
#include "core/wheel/wheel.h"
#include "core/world/world.h"
#include "step/preflight/preflight.h"

/* ---- asking it ---- */

struct question {
	const char *name;   /* of the line */
	const char *script; /* for a shell */
	const struct strlist *args;
};

struct answer {
	bool ok;
	const char *text; /* standard output, in the arena */
	const char *why;  /* what went wrong if not ok */
};

/* Runs a shell script in the sandbox, with /tmp writable and the toolkit mounted. A failing script
 * is an answer; 1 with the line where a fault of the machine was in the way, such as a
 * program that was killed; -1 only for an interruption. */
static int ask(struct preflight *d, const struct question *q, struct answer *ret, struct err *e)
{
	struct sandbox s;
	struct arena *a = d->arena;
	AUTO_BUF struct buf out = {0};
	struct strlist argv = {0};
	struct err why = {0};

	strlist_split(&argv, a, "/bin/sh -c", " ");
	strlist_ref(&argv, a, q->script);
	strlist_ref(&argv, a, "sh");
	strlist_append(&argv, a, q->args);
	int rc = sandbox_init(&s, d->q->kind, d->q->root, a, &why);
	if (rc == 0) {
		if (d->toolkit)
			toolkit_mount(d->toolkit, &s);
		kvlist_set(&s.env, a, "PATH", ROOT_PATH);
		kvlist_set(&s.env, a, "HOME", SANDBOX_HOME);
		kvlist_set(&s.env, a, "LC_ALL", "C.UTF-8");
		if (d->q->plan && d->q->plan->isa_row) /* a torch of the profile is imported */
			sandbox_emulate_as(&s, d->q->plan->isa_row->qemu);
		rc = sandbox_capture(&s, strlist_argv(&argv, a), d->run, &out, &why);
	}

	*ret = (struct answer){rc == 0, arena_strdup(a, buf_cstr(&out)), arena_strdup(a, why.msg)};
	if (why.kind != ERR_INTERRUPTED && err_kind_of_words(why.msg, ERR_NONE) != ERR_SYSTEM)
		return 0;
	return preflight_err(d, q->name, &why, e) < 0 ? -1 : 1;
}

/* Whether a row of needs.yaml counts for this build;
 * without a plan, for every build of the release. */
static bool wants(const struct preflight *d, const struct need_row *row)
{
	const struct plan *p = d->q->plan;

	if (*row->release && strcmp(row->release, d->q->release->name) != 0)
		return false;
	if (*row->package && (!p || strcmp(row->package, p->package) != 0))
		return false;
	return !*row->toggle || (p && settings_on(&p->env, row->toggle));
}

/* The path inside the root of a program in the PATH of the
 * plan's build, which is not all of ROOT_PATH; NULL if absent. */
static const char *find_program(const struct preflight *d, const char *name)
{
	struct strlist dirs = {0};
	const char *path = d->q->plan ? settings_value(&d->q->plan->env, "PATH") : NULL,
		   *found = NULL;

	if (!path)
		return root_find_program(d->q->root, name, d->arena);
	strlist_split(&dirs, d->arena, path, ":");
	for (size_t i = 0; i < dirs.count && !found; i++)
		found = root_find_program(d->q->root, path_join(d->arena, dirs.items[i], name),
					  d->arena);
	return found;
}

/* ---- tools, by their versions ---- */

static const char *range_of(const struct preflight *d, const char *tool)
{
	const struct release_row *r = d->q->release;
	const char *range = "";

	if (strcmp(tool, "gcc") == 0 || strcmp(tool, "g++") == 0)
		range = tables_gcc(r, d->q->plan ? d->q->plan->platform : "");
	else if (strcmp(tool, "cmake") == 0)
		range = r->cmake;
	else if (strcmp(tool, "ninja") == 0)
		range = r->ninja;
	return range ? range : "";
}

/* "3.13.5" among minor versions. */
static bool is_one_of(const char *version, const char *const *minors, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		size_t n = strlen(minors[i]);
		if (strncmp(version, minors[i], n) == 0 && (version[n] == '.' || !version[n]))
			return true;
	}

	return false;
}

/* False with a line, unless it is one that the release builds for, and the plan's. */
static bool check_python(struct preflight *d, const struct tool *t)
{
	const struct plan *p = d->q->plan;
	const struct release_row *r = d->q->release;

	if (p && !is_one_of(t->version, &p->python, 1))
		preflight_fail(d, ERR_POLICY, "python3",
			       arena_printf(d->arena,
					    "ask for the root's own Python (leave --python out), "
					    "or name a root that has "
					    "Python %s",
					    p->python),
			       "%s of the root '%s' is %s, the build is for Python %s", t->path,
			       d->q->root->dir, t->version, p->python);
	else if (!is_one_of(t->version, r->pythons, r->pythons_count))
		preflight_fail(
			d, ERR_POLICY, "python3",
			"use a root with a Python of 'ptbuild list --releases', or another release",
			"%s is %s, which release %s does not build for", t->path, t->version,
			r->name);
	else
		return true;
	return false;
}

static int check_tool(struct preflight *d, const struct need_row *row, struct err *e)
{
	const char *name = row->tool, *range = range_of(d, name);
	const struct tool *t = toolchain_get(d->toolchain, name);
	struct err why = {0};
	bool fits = true;

	if (!t) {
		preflight_fail(d, ERR_CONFIG, name, "", "not one of the tools that ptbuild knows");
	} else if (!t->path) {
		preflight_install(d, name, row->debian, false, "not in the root '%s': %s",
				  d->q->root->dir, row->why);
		if (row->optional)
			d->lines[d->count - 1].level = PREFLIGHT_WARNING;
	} else if (!*t->version) {
		preflight_install(d, name, row->debian, false,
				  "%s prints no version: is it broken?", t->path);
	} else if (strcmp(name, "python3") == 0) {
		if (check_python(d, t))
			preflight_ok(d, name, "%s %s", t->path, t->version);
	} else if (!row->optional && !find_program(d, name)) {
		preflight_install(d, name, row->debian, false,
				  "only as '%s', where a build does not look", t->path);
	} else if (version_in(t->version, range, &fits, &why) < 0) {
		return preflight_err(d, name, &why, e);
	} else if (!fits) {
		preflight_fail(
			d, ERR_POLICY, name,
			"install a version in that range, or build in another root with --root DIR",
			"%s is %s, release %s needs %s", t->path, t->version, d->q->release->name,
			range);
		preflight_fix_world(d);
	} else {
		preflight_ok(d, name, "%s %s", t->path, t->version);
	}

	return 0;
}

int preflight_tools(struct preflight *d, struct err *e)
{
	const struct tables *t = d->q->tables;
	const bool cmake = !d->q->plan || buildenv_uses_cmake(d->q->plan->package_row->backend);
	struct err why = {0};

	if (!d->toolchain &&
	    toolchain_probe(d->q->root, d->q->kind, d->run, d->arena, &d->toolchain, &why) < 0)
		return preflight_err(d, "tools", &why, e);
	for (unsigned i = 0; i < t->needs_count; i++) {
		const struct need_row *row = &t->needs[i];
		const bool wanted = *row->tool && wants(d, row);
		if (!wanted || (!cmake && strcmp(row->tool, "cmake") == 0))
			continue;
		if (check_tool(d, row, e) < 0)
			return -1;
	}

	return 0;
}

/* ---- programs and headers, found without running anything ---- */

/* In /usr/local/include, /usr/include and the directory of the platform below it. */
static bool has_header(const struct preflight *d, const char *name)
{
	struct strlist dirs = {0};

	strlist_split(&dirs, d->arena, "/usr/local/include /usr/include", " ");
	(void)!root_library_dirs(d->q->root, d->arena, &dirs, ERR_IGNORED);
	for (size_t i = 0; i < dirs.count; i++) {
		const char *below = path_below(dirs.items[i], "/usr/lib");
		const char *dir =
			below ? path_join(d->arena, "/usr/include", below) : dirs.items[i];
		const char *path =
			root_resolve(d->q->root, path_join(d->arena, dir, name), d->arena);
		struct stat st;
		if (path && stat(root_host_path(d->q->root, path, d->arena), &st) == 0 &&
		    S_ISREG(st.st_mode))
			return true;
	}

	return false;
}

/* Checks this machine's programs. */
int preflight_programs(struct preflight *d, struct err *e)
{
	const struct tables *t = d->q->tables;

	(void)e;
	for (unsigned i = 0; i < t->needs_count; i++) {
		const struct need_row *row = &t->needs[i];
		if (!row->host || !wants(d, row))
			continue;
		const char *path = proc_find(d->arena, row->program);
		if (path)
			preflight_ok(d, row->program, "%s", path);
		else
			preflight_install(d, row->program, row->debian, true,
					  "not in PATH of this machine: %s", row->why);
	}

	return 0;
}

int preflight_files(struct preflight *d, struct err *e)
{
	const struct tables *t = d->q->tables;
	unsigned headers = 0;

	(void)e;
	for (unsigned i = 0; i < t->needs_count; i++) {
		const struct need_row *row = &t->needs[i];
		if (row->host || !(*row->program || *row->header) || !wants(d, row))
			continue;
		const char *path = *row->program ? find_program(d, row->program) : NULL;
		if (path)
			preflight_ok(d, row->program, "%s", path);
		else if (*row->header && has_header(d, row->header))
			headers++;
		else
			preflight_install(d, *row->program ? row->program : row->header,
					  row->debian, false, "not in the root '%s': %s",
					  d->q->root->dir, row->why);
	}

	if (headers)
		preflight_ok(d, "headers", "%u of them are there", headers);
	return 0;
}

/* ---- Python: its headers, what makes environments and
 * installs into them, and modules of finished wheels ---- */

/* A line for each question, the first word of which says what kind of answer
 * it is. Each module is imported: a package may be there and not work. */
static const char python_script[] =
	"exec python3 -I -c 'import importlib, os, sys, sysconfig\n"
	"h = os.path.join(sysconfig.get_paths()[\"include\"], \"Python.h\")\n"
	"print(\"ok\" if os.path.isfile(h) else \"none\", h)\n"
	"for name in sys.argv[1:]:\n"
	"    try:\n"
	"        m = importlib.import_module(name)\n"
	"        if not m.__file__: raise ModuleNotFoundError(name)\n"
	"        print(\"ok\", m.__file__)\n"
	"    except ModuleNotFoundError as x:\n"
	"        print(\"none\", x)\n"
	"    except OSError as x:\n"
	"        import pip._vendor.certifi\n"
	"        print(\"oserror\", pip._vendor.certifi.where(), x)\n"
	"    except Exception as x:\n"
	"        print(\"broken\", type(x).__name__, str(x).split(chr(10))[0])' \"$@\"";

/* What every build needs; the first is asked without a
 * module. Python's own ensurepip is in Debian's python3-venv. */
static const struct need_row python_needs[] = {
	{.tool = "python3-dev",
	 .debian = "python3-dev",
	 .why = "extensions are compiled with its headers"},
	{.tool = "python3-venv",
	 .module = "venv",
	 .debian = "python3-venv",
	 .why = "a wheel is tried in an environment of its own"},
	{.tool = "python3-venv",
	 .module = "ensurepip",
	 .debian = "python3-venv",
	 .why = "an environment for the wheel gets its pip from it"},
	{.tool = "pip",
	 .module = "pip._internal.commands.install",
	 .debian = "python3-pip",
	 .why = "it checks whether a wheel can be installed"},
};

/* pip 25 reads its list of authorities when it is imported, also to
 * install a file. The package is not enough where its script never ran. */
static void add_no_certificates(struct preflight *d, const char *rest)
{
	const struct root *root = d->q->root;
	const char *fix;

	preflight_install(d, "certificates", "ca-certificates", false,
			  "pip cannot start without its CA bundle: %s", rest);
	if (root_world_fix(root, d->arena))
		fix = "add to the world's definition what profiles/worlds/debian13.yaml has: the "
		      "package "
		      "ca-certificates, and under 'made' the file "
		      "etc/ssl/certs/ca-certificates.crt";
	else if (root_find_program(root, "update-ca-certificates", d->arena))
		fix = root->host ? "sudo update-ca-certificates"
				 : arena_printf(d->arena, "sudo chroot %s update-ca-certificates",
						shell_quoted(root->dir, d->arena));
	else
		return;
	d->lines[d->count - 1].package = "";
	d->lines[d->count - 1].fix = fix;
}

static void judge(struct preflight *d, const struct need_row *q, const char *answer)
{
	const char *name = *q->tool ? q->tool : q->module, *dir = d->q->root->dir;
	size_t n = strcspn(answer, " ");
	const char *rest = answer + n + strspn(answer + n, " ");

	if (strncmp(answer, "ok", n) == 0)
		preflight_ok(d, name, "%s", rest);
	else if (strncmp(answer, "oserror", n) == 0 && strcmp(name, "pip") == 0)
		add_no_certificates(d, rest);
	else if (strncmp(answer, "none", n) == 0)
		preflight_install(d, name, q->debian, false,
				  "not in the Python of the root '%s': %s", dir, q->why);
	else
		preflight_install(d, name, q->debian, false,
				  "%s cannot be imported in the root '%s': %s", q->module, dir,
				  rest);
}

/* The wheels that a build installs for itself. */
struct own_wheels {
	bool asked;
	struct strlist names;
};

/* Whether a module that the root's Python lacks is in one of them. Asks for the list once, and only
 * then, since that is slow. */
static bool is_installed(struct preflight *d, const struct need_row *q, struct own_wheels *own,
			 struct err *e)
{
	if (*q->tool || !d->q->installs)
		return false;
	if (!own->asked && d->q->installs(d->q->user, d, &own->names, e) < 0)
		own->names = (struct strlist){0};
	own->asked = true;
	return strlist_contains(&own->names, wheel_normalize(tables_need_wheel(q), d->arena));
}

int preflight_python(struct preflight *d, struct err *e)
{
	const struct tables *t = d->q->tables;
	const bool taken = d->q->plan && d->q->plan->captured; /* then a wheel is only tried */
	const struct tool *python = d->toolchain ? toolchain_get(d->toolchain, "python3") : NULL;
	struct strlist modules = {0}, lines = {0};
	struct own_wheels own = {0};
	const struct need_row **all = arena_array(
		d->arena, ARRAY_LEN(python_needs) + t->needs_count, sizeof(struct need_row *));
	size_t count = 0;
	struct answer got;

	/* preflight_tools reports a missing Python; a captured wheel does not need it. */
	if (!taken && (!python || !python->path || !*python->version))
		return 0;
	/* The trial had them all. */
	for (size_t i = 0; i < (d->q->tried && !taken ? 1 : ARRAY_LEN(python_needs)); i++)
		all[count++] = &python_needs[i];
	for (unsigned i = 0; !taken && i < t->needs_count; i++)
		if (*t->needs[i].module && wants(d, &t->needs[i]))
			all[count++] = &t->needs[i];
	if (d->q->tried && count == 1)
		return 0;
	for (size_t i = 1; i < count; i++)
		strlist_ref(&modules, d->arena, all[i]->module);
	int rc = ask(d, &(struct question){"python3", python_script, &modules}, &got, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	strlist_split(&lines, d->arena, got.text, "\n");
	if (!got.ok || lines.count != count) {
		preflight_install(d, "python3", "python3", false,
				  "the Python of the root '%s' does not work: %s", d->q->root->dir,
				  got.why);
		return 0;
	}

	for (size_t i = taken ? 1 : 0; i < count; i++) {
		struct err why = {0};
		const bool lacks = strncmp(lines.items[i], "none", 4) == 0;
		if (lacks && is_installed(d, all[i], &own, &why))
			preflight_ok(d, all[i]->module, "the build installs it for itself");
		else
			judge(d, all[i], lines.items[i]);
		if (why.kind == ERR_INTERRUPTED) {
			*e = why;
			return -1;
		}
	}

	return 0;
}

/* ---- the compiler with the profile's flags ---- */

/* Compiles and links C and C++ with the flags themselves: a version number says less. */
int preflight_flags(struct preflight *d, struct err *e)
{
	static const char script[] =
		"t=/tmp/ptbuild-check$$; trap 'rm -f $t' EXIT; printf 'int main(void) { return 0; "
		"}' | gcc \"$@\" -x c "
		"- -o $t && printf 'int main() { return 0; }' | g++ \"$@\" -x c++ - -o $t";
	const struct plan *p = d->q->plan;
	const struct strlist none = {0};
	struct strlist flags = {0};
	struct answer got, plain;

	if (!p || p->cpu_flags.count == 0 || !toolchain_get(d->toolchain, "g++")->path ||
	    !toolchain_get(d->toolchain, "gcc")->path)
		return 0;
	strlist_append(&flags, d->arena, &p->cpu_flags);
	tables_cflags(p->package_row, p->platform, d->arena, &flags);
	const char *all = strlist_join(&flags, d->arena, " ");
	int rc = ask(d, &(struct question){"flags", script, &flags}, &got, e);
	if (rc == 0 && !got.ok)
		rc = ask(d, &(struct question){"flags", script, &none}, &plain, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (got.ok)
		preflight_ok(d, "flags", "gcc and g++ accept %s", all);
	else if (!plain.ok)
		preflight_install(d, "flags", "g++", false,
				  "the root's compiler compiles nothing: %s", plain.why);
	else
		preflight_fail(d, ERR_POLICY, "flags",
			       arena_printf(d->arena,
					    "use a root with GCC %s or newer, or a lower "
					    "instruction set than %s",
					    p->isa_row ? p->isa_row->gcc_min : "", p->isa),
			       "the root's compiler does not compile with %s: %s", all, got.why);
	return 0;
}

/* ---- the BLAS ---- */

/* Where one that the root's packages do not have comes from: the world of this build. */
__attribute__((format(printf, 3, 4))) static void
fail_blas(struct preflight *d, const struct blas_row *row, const char *fmt, ...)
{
	const struct plan *p = d->q->plan;
	const char *place = settings_value(&p->cache, row->place), *fix;
	const struct world_wanted want = {p->platform, p->cuda, p->python, row->world};
	struct world_choice w = {0};
	struct err none = {0};
	va_list args;

	va_start(args, fmt);
	const char *text = arena_vprintf(d->arena, fmt, args);
	va_end(args);
	if (!*row->world) {
		preflight_install(d, "blas", row->debian, false, "%s", text);
		return;
	}

	if (world_choose(&(struct world_question){d->q->tables, d->q->release, &want, d->arena}, &w,
			 &none) < 0 ||
	    !w.name)
		w.name = arena_printf(d->arena, "WORLD+%s", row->world);
	/* the store's own, so what was set leads elsewhere */
	if (root_world_fix(d->q->root, d->arena))
		fix = arena_printf(
			d->arena,
			"the world has it: leave out what --set or the profile says of %s and "
			"PKG_CONFIG_PATH",
			row->place);
	else
		fix = arena_printf(d->arena,
				   "the world '%s' has it: leave --root and --sandbox none out, or "
				   "make a root of your "
				   "own with 'ptbuild world make %s --copy DIR'; in another root "
				   "it must be in '%s'",
				   w.name, w.name, place ? place : "");
	preflight_fail(d, ERR_SYSTEM, "blas", fix, "%s", text);
}

/* The files of a BLAS in a place of its own, and its
 * licence, which goes into the wheel. False: one is missing. */
static bool check_blas_files(struct preflight *d, const struct blas_row *row)
{
	const char *place = *row->place ? settings_value(&d->q->plan->cache, row->place) : NULL;
	const char *texts = arena_printf(d->arena, "/usr/share/doc/%s", row->linked),
		   *dir = d->q->root->dir;
	struct strlist found = {0};
	struct err why = {0};

	for (unsigned i = 0; place && i < row->files_count; i++) {
		const char *path = path_join(d->arena, place, row->files[i]);
		if (*path == '/' && root_resolve(d->q->root, path, d->arena))
			continue;
		fail_blas(d, row, "'%s' is not in the root '%s', where %s says that %s is", path,
			  dir, row->place, row->name);
		return false;
	}

	if (!*row->linked ||
	    (root_files(d->q->root, texts, d->arena, &found, &why) == 0 && found.count))
		return true;
	fail_blas(d, row,
		  "no file below '%s' in the root '%s'%s%s: the texts of the licence of %s, which "
		  "must go into the "
		  "wheel",
		  texts, dir, *why.msg ? ": " : "", why.msg, row->name);
	return false;
}

/* -x none: MKL's module names the files of its archives. */
int preflight_blas(struct preflight *d, struct err *e)
{
	static const char script[] = "export PKG_CONFIG_PATH=\"$2\"; pkg-config --modversion "
				     "\"$1\" || exit; t=/tmp/ptbuild-check$$; trap "
				     "'rm -f $t' EXIT; printf 'void sgemm_(void); int main(int n, "
				     "char **v) { (void)v; if (n > 9) sgemm_(); "
				     "return 0; }' | gcc -x c - -o $t -x none $(pkg-config --libs "
				     "\"$1\") || { echo no-link >&2; exit 1; }";
	const struct blas_row *row = d->q->plan ? d->q->plan->blas_row : NULL;
	struct strlist args = {0};
	struct answer got;

	if (!row || !*row->pkgconf || !check_blas_files(d, row))
		return 0;
	const char *dirs = settings_value(&d->q->plan->env, "PKG_CONFIG_PATH");
	strlist_ref(&args, d->arena, row->pkgconf);
	strlist_ref(&args, d->arena, dirs ? dirs : "");
	int rc = ask(d, &(struct question){"blas", script, &args}, &got, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (got.ok)
		preflight_ok(d, "blas", "%s %.*s, and a program links with it", row->pkgconf,
			     (int)strcspn(got.text, "\n"), got.text);
	else if (strstr(got.why, "no-link"))
		fail_blas(d, row, "%s is there, but a program does not link with it: %s",
			  row->pkgconf, got.why);
	else
		fail_blas(d, row, "pkg-config does not find '%s' in the root '%s'", row->pkgconf,
			  d->q->root->dir);
	return 0;
}

/* ---- the torch of the root, which a companion is built against ---- */

/* Imports torch, reads its headers (only preprocessed: compiling them would need ten seconds) and
 * looks for its CMake package like the build. A part of it may be missing: Debian has it in three
 * packages. */
static const char torch_script[] =
	"say() { s=$?; [ $s -lt 128 ] || exit $s; ! grep -m 1 'Killed signal' log >&2 || exit 1; "
	"echo \"$1: $(sed -n "
	"\"/$2/,\\$p\" log | head -n \"$3\")\" >&2; exit 1; }\n"
	"d=$(mktemp -d) || exit; trap 'rm -rf \"$d\"' EXIT; cd \"$d\" || exit\n"
	"python3 -I -c 'import sysconfig, torch.utils, torch.utils.cpp_extension as x\n"
	"print(torch.utils.cmake_prefix_path)\n"
	"print(sysconfig.get_paths()[\"include\"], *x.include_paths(), sep=\"\\n\")' >said 2>log "
	"|| say 'it cannot be "
	"imported' Error 1\n"
	"{ read -r prefix; while read -r path; do set -- \"$@\" -isystem \"$path\"; done; } <said\n"
	"echo '#include <torch/extension.h>' >t.cpp; g++ -std=c++17 -E -o t.ii \"$@\" t.cpp 2>log "
	"|| say 'its headers "
	"are not all there' error 1\n"
	"echo 'cmake_minimum_required(VERSION 3.18)\n"
	"project(t C CXX)\n"
	"find_package(Torch REQUIRED)' >CMakeLists.txt\n"
	"command -v cmake >/dev/null || exit 0\n"
	"cmake -S . -B b -DCMAKE_PREFIX_PATH=\"$prefix\" >log 2>&1 || say 'CMake does not find it' "
	"'CMake Error' 6\n";

int preflight_torch(struct preflight *d, struct err *e)
{
	const struct plan *p = d->q->plan;
	const struct strlist none = {0};
	struct answer got;

	if (!p || strcmp(p->torch, "root") != 0)
		return 0;
	int rc = ask(d, &(struct question){"torch", torch_script, &none}, &got, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (got.ok)
		preflight_ok(d, "torch",
			     "%s of the root: imported, headers and CMake package found",
			     p->torch_version);
	else
		preflight_install(d, "torch", "python3-torch libtorch-dev", false,
				  "the root's torch cannot be used: %s", got.why);
	return 0;
}

/* ---- CUDA ---- */

/* nvcc breaks its messages into lines anywhere. */
static const char *way_out(const struct preflight *d, const char *message)
{
	const struct tables *t = d->q->tables;
	struct strlist words = {0};

	strlist_split(&words, d->arena, message, " \t\r\n");
	const char *line = strlist_join(&words, d->arena, " ");
	for (unsigned i = 0; i < t->nvcc_errors_count; i++)
		if (strstr(line, t->nvcc_errors[i].text))
			return t->nvcc_errors[i].fix;
	return "read its message: the toolkit and its host compiler are not compatible";
}

/* Compiles a kernel for every target at once, with the compiler that the build will give nvcc. */
static int compile_kernel(struct preflight *d, struct err *e)
{
	static const char script[] =
		"n=$1; c=$2; shift 2; t=$(mktemp -d /tmp/ptbuild-checkXXXXXX) && trap 'rm -rf $t' "
		"EXIT && echo '__global__ void twice(float *x) { *x *= 2; }' >$t/k.cu && cd "
		"$t && \"$n\" -ccbin \"$c\" \"$@\" -c k.cu -o k.o";
	const struct toolkit *k = d->toolkit;
	struct strlist args = {0}, targets = {0};
	struct answer got;
	struct arena *a = d->arena;

	plan_nvcc_targets(d->q->plan, a, &targets);
	strlist_ref(&args, a, k->nvcc);
	strlist_ref(&args, a, k->cxx);
	for (size_t i = 0; i < targets.count; i++)
		strlist_addf(&args, a, "-gencode=arch=compute_%s,code=sm_%s", targets.items[i],
			     targets.items[i]);
	int rc = ask(d, &(struct question){"targets", script, &args}, &got, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	const char *names = strlist_join(&targets, a, ", sm_");
	if (got.ok)
		preflight_ok(d, "targets", "nvcc %s compiles for sm_%s with %s", k->release, names,
			     k->cxx);
	else
		preflight_fail(d, ERR_POLICY, "targets", way_out(d, got.why),
			       "nvcc %s does not compile a kernel for sm_%s: %s", k->release, names,
			       got.why);
	return 0;
}

/* Where CMake looks for a library of CUDA: a path inside the root, or NULL. */
static const char *find_library(const struct preflight *d, const char *name)
{
	struct strlist own = {0}, below = {0}, dirs = {0}, system = {0};

	strlist_split(&own, d->arena, "lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib",
		      " ");
	strlist_split(&below, d->arena, ". nvidia/current stubs", " ");
	for (size_t i = 0; i < own.count; i++)
		strlist_ref(&dirs, d->arena, path_join(d->arena, d->toolkit->where, own.items[i]));
	(void)!root_library_dirs(d->q->root, d->arena, &system, ERR_IGNORED);
	/* The loader may know others, such as those of another toolkit; CMake does not. */
	for (size_t i = 0; i < system.count; i++)
		if (strncmp(system.items[i], "/usr/lib", 8) == 0 ||
		    strncmp(system.items[i], "/usr/local/lib", 14) == 0)
			strlist_ref(&dirs, d->arena, system.items[i]);
	for (size_t i = 0; i < below.count * dirs.count; i++) {
		const char *path =
			path_join(d->arena, dirs.items[i % dirs.count],
				  path_join(d->arena, below.items[i / dirs.count], name));
		if (root_resolve(d->q->root, path, d->arena))
			return path;
	}

	return NULL;
}

/* What is only missed when all is compiled. */
static void check_library(struct preflight *d, const struct need_row *row)
{
	const char *path = find_library(d, row->library), *where = d->toolkit->where;
	static const char text[] = "neither in the toolkit '%s' nor in the root '%s': %s";

	if (path)
		preflight_ok(d, row->library, "%s", path);
	else if (d->toolkit->layout == TOOLKIT_DISTRIBUTION)
		preflight_install(d, row->library, row->debian, false, text, where, d->q->root->dir,
				  row->why);
	else
		preflight_fail(d, ERR_SYSTEM, row->library,
			       arena_printf(d->arena,
					    "put it there as '%s/lib64/stubs/%s', or build without "
					    "--root: worlds have "
					    "it",
					    where, row->library),
			       text, where, d->q->root->dir, row->why);
}

int preflight_cuda(struct preflight *d, struct err *e)
{
	const struct preflight_request *q = d->q;
	const struct toolkits *all = q->toolkits;
	bool able = true;
	struct plan_need *needs;
	struct err why = {0};

	if (!q->plan || !q->plan->cuda)
		return 0;
	if (!all && toolkit_probe(q->tables, q->root, q->kind, q->cuda_home, d->run, d->arena, &all,
				  &why) < 0)
		return preflight_err(d, "nvcc", &why, e);
	const size_t count = plan_root_needs(q->plan, all, d->arena, &needs);
	for (size_t i = 0; i < count; i++) {
		if (needs[i].text)
			preflight_ok(d, needs[i].name, "%s", needs[i].text);
		else if (preflight_err(d, needs[i].name, &needs[i].why, e) < 0)
			return -1;
		else
			preflight_fix_world(d);
		able &= needs[i].text || (strcmp(needs[i].name, "nvcc-host") != 0 &&
					  strcmp(needs[i].name, "targets") != 0);
	}

	d->toolkit = toolkit_find(all, q->plan->cuda);
	if (!d->toolkit)
		return 0;
	if (able && !q->tried && compile_kernel(d, e) < 0)
		return -1;
	for (unsigned i = 0; i < q->tables->needs_count; i++)
		if (*q->tables->needs[i].library && wants(d, &q->tables->needs[i]))
			check_library(d, &q->tables->needs[i]);
	return 0;
}
