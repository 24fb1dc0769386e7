#include "step/python/pyenv.h"

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/text.h"
#include "core/wheel/wheel.h"
#include "step/python/covers.h"
#include "step/python/pyenv_fetch.h"

#define MARK ".ptbuild-pyenv"

static const char check_script[] = "import sys\n"
				   "from importlib import metadata\n"
				   "print('%d.%d' % sys.version_info[:2])\n"
				   "for name in sys.argv[1:]:\n"
				   "    try:\n"
				   "        print(metadata.version(name) or '-')\n"
				   "    except Exception:\n"
				   "        print('-')\n";

struct requirement {
	const char *name;
	const char *range;
};

/* "setuptools>=62.3,<80": a name and a range, without extras and markers. */
static int parse_requirement(struct arena *a, const char *text, struct requirement *ret, struct err *e)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
	const char *rest = text + n;
	rest += strspn(rest, " ");
	if (n == 0 || strchr("-_.", *text) || (*rest && !strchr("<>=!~", *rest))) {
		err_set(e, ERR_CONFIG, "not a Python requirement: '%s'", text);
		return err_hint(e, "write NAME or NAME with a range, like \"setuptools>=62.3,<80\"");
	}
	*ret = (struct requirement){.name = arena_strndup(a, text, n), .range = rest};
	return 0;
}

/* Compares each requirement with the version that the Python has. */
static int check_with(const struct python *py, const struct plan *p, const char *where, struct strlist *have,
		      struct strlist *missing, struct err *e)
{
	const struct package_row *row = p->package_row;
	struct requirement *r = arena_array(py->arena, row->python_requires_count, sizeof(*r));
	struct strlist names = {0}, found = {0}, good = {0}, bad = {0};
	for (unsigned i = 0; i < row->python_requires_count; i++) {
		if (parse_requirement(py->arena, row->python_requires[i], &r[i], e) < 0)
			return -1;
		strlist_ref(&names, py->arena, r[i].name);
	}
	if (python_script(py, check_script, &names, &found, e) < 0)
		return -1;
	if (found.count != names.count + 1)
		return err_set(e, ERR_BUILD, "unexpected output of the root's '%s'", py->program);
	if (strcmp(found.items[0], p->python) != 0) {
		err_set(e, ERR_POLICY, "'%s' of the root '%s' is Python %s, the plan needs %s", py->program,
			py->root->dir, found.items[0], p->python);
		return err_hint(e, "use --python %s, or a root that has Python %s", found.items[0], p->python);
	}
	for (unsigned i = 0; i < row->python_requires_count; i++) {
		const char *wanted = row->python_requires[i], *version = found.items[i + 1];
		bool present = strcmp(version, "-") != 0, in = false;
		if (present && version_in(version, r[i].range, &in, e) < 0)
			return err_wrap(e, "requirement '%s'", wanted);
		if (in)
			strlist_addf(&good, py->arena, "%s %s (%s)", r[i].name, version, where);
		else if (present)
			strlist_addf(&bad, py->arena, "%s (found %s)", wanted, version);
		else
			strlist_addf(&bad, py->arena, "%s (not installed)", wanted);
	}
	*have = good;
	*missing = bad;
	return 0;
}

int pyenv_check(const struct plan *p, const struct root *root, enum sandbox_kind kind, const struct run *run,
		struct arena *a, struct strlist *have, struct strlist *missing, struct err *e)
{
	struct python py;
	if (python_find(p->python, root, kind, run, a, &py, e) < 0)
		return -1;
	return check_with(&py, p, "root", have, missing, e);
}

static int read_lists(const struct pyenv_request *q, struct arena *a, struct locked_list *ret, struct err *e)
{
	const struct package_row *row = q->plan->package_row;
	const char *const files[] = {row->requirements, row->tried_with};
	return locked_lists_read(path_join(a, q->profiles_dir, "requirements"), files, ARRAY_LEN(files), a, ret, e);
}

int pyenv_installs(const struct pyenv_request *q, const struct run *run, struct arena *a, struct strlist *ret,
		   struct err *e)
{
	const char *file = q->plan->package_row->requirements;
	struct strlist have = {0}, missing = {0};
	struct locked_list list;
	if (!file || !*file)
		return 0;
	if (pyenv_check(q->plan, q->root, q->kind, run, a, &have, &missing, e) < 0)
		return -1;
	if (missing.count == 0)
		return 0;
	if (read_lists(q, a, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (marker_holds(list.items[i].marker, q->plan->python))
			strlist_ref(ret, a, wheel_normalize(list.items[i].name, a));
	return 0;
}

static int capture(const struct python *py, const struct sandbox *s, const char *const *argv, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	return sandbox_capture(s, argv, py->run, &out, e);
}

static bool is_ready(const char *venv, const char *text)
{
	AUTO_BUF struct buf have = {0};
	return fs_read(venv, MARK, 4096, &have, ERR_IGNORED) == 0 && strcmp(buf_cstr(&have), text) == 0;
}

/* The mark is written last: without it the environment is incomplete. */
static int make_venv(const struct python *py, const char *key, const char *wheels, const char *venv, struct err *e)
{
	const char *text = arena_printf(py->arena, "%s\n%s\n%s\n", key, py->program, py->root->fingerprint);
	if (is_ready(venv, text))
		return 0;
	if (fs_remove(TRUSTED, venv, e) < 0 || fs_mkdirs(TRUSTED, venv, e) < 0)
		return -1;
	/* Installs the whole list, whatever the root has: the environment depends on the list alone. */
	static const char pip[] =
		SANDBOX_VENV "/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-cache-dir "
			     "--no-index --find-links " SANDBOX_TOP
			     "/wheels --no-deps --require-hashes --only-binary :all: --ignore-installed "
			     "--requirement " SANDBOX_TOP "/wheels/requirements.txt";
	const char *const make[] = {py->program,  "-I", "-m", "venv", "--without-pip", "--system-site-packages",
				    SANDBOX_VENV, NULL};
	struct strlist argv = {0};
	struct sandbox s;
	strlist_split(&argv, py->arena, pip, " ");
	if (python_sandbox(py, &s, e) < 0)
		return -1;
	sandbox_add(&s, SANDBOX_RW, venv, SANDBOX_VENV);
	sandbox_add(&s, SANDBOX_RO, wheels, SANDBOX_TOP "/wheels");
	if (capture(py, &s, make, e) < 0)
		return err_wrap(e, "cannot make the build's Python environment");
	if (capture(py, &s, argv.items, e) < 0)
		return err_wrap(e, "cannot install the build requirements");
	return fs_write(venv, MARK, text, strlen(text), 0644, e);
}

static int no_list(const struct plan *p, const struct root *root, const char *lacks, struct err *e)
{
	err_set(e, ERR_CONFIG, "the root '%s' lacks %s, and %s of release %s has no locked list of Python requirements",
		root->dir, lacks, p->package, p->release);
	return err_hint(e, "install them in the root, or take a root that has them");
}

/* What an extension asks for is nobody's table: told before anything is downloaded. */
static int check_listed(const struct plan *p, const struct locked_list *l, const char *lacks, struct arena *a,
			struct err *e)
{
	const struct package_row *row = p->package_row;
	const bool own = strcmp(row->requirements, TABLES_EXTENSION_LIST) == 0; /* also of its trial */
	for (unsigned i = 0; own && i < row->python_requires_count; i++) {
		struct requirement r;
		bool in = false;
		if (!strstr(lacks, row->python_requires[i]))
			continue;
		if (parse_requirement(a, row->python_requires[i], &r, e) < 0)
			return -1;
		for (size_t k = 0; k < l->count && !in; k++)
			if (strcmp(wheel_normalize(l->items[k].name, a), wheel_normalize(r.name, a)) == 0 &&
			    marker_holds(l->items[k].marker, p->python) &&
			    version_in(l->items[k].version, r.range, &in, e) < 0)
				return err_wrap(e, "requirement '%s'", row->python_requires[i]);
		if (in)
			continue;
		err_set(e, ERR_POLICY, "neither the root nor the locked list '%s' has '%s', which the build needs",
			row->requirements, row->python_requires[i]);
		return err_hint(e,
				"install it in a root of your own (--root DIR), or add it to "
				"profiles/requirements/%s",
				row->requirements);
	}
	return 0;
}

static int get_wheels(const struct pyenv_request *q, const struct python *py, const char *lacks,
		      struct pyenv_wanted *wanted, const char **ret_wheels, struct err *e)
{
	const char *file = q->plan->package_row->requirements;
	struct locked_list list;
	if (!file || !*file)
		return no_list(q->plan, q->root, lacks, e);
	log_verbose(py->run->log, "the root lacks %s: a Python environment is made from '%s'", lacks, file);
	if (read_lists(q, py->arena, &list, e) < 0 || check_listed(q->plan, &list, lacks, py->arena, e) < 0 ||
	    pyenv_want(py, &list, wanted, e) < 0)
		return -1;
	return pyenv_fetch(py, wanted, q->store, q->offline, lacks, ret_wheels, e);
}

static int check_venv(const struct pyenv_request *q, const struct python *py, const char *venv, struct strlist *have,
		      struct err *e)
{
	struct strlist missing = {0};
	struct python inside = *py;
	inside.program = SANDBOX_VENV "/bin/python";
	inside.venv = venv;
	if (check_with(&inside, q->plan, "environment", have, &missing, e) < 0)
		return -1;
	if (missing.count == 0)
		return 0;
	err_set(e, ERR_CONFIG, "the locked list '%s' does not provide %s", q->plan->package_row->requirements,
		strlist_join(&missing, py->arena, ", "));
	return err_hint(e, "make the list again from its requirements");
}

int pyenv_prepare(const struct pyenv_request *q, const struct run *run, struct arena *a, struct pyenv *ret,
		  struct err *e)
{
	struct python py;
	struct pyenv out = {0};
	struct strlist missing = {0};
	struct pyenv_wanted wanted;
	const char *wheels;
	if (python_find(q->plan->python, q->root, q->kind, run, a, &py, e) < 0 ||
	    check_with(&py, q->plan, "root", &out.have, &missing, e) < 0)
		return -1;
	if (missing.count == 0) {
		*ret = out;
		return 0;
	}
	if (get_wheels(q, &py, strlist_join(&missing, a, ", "), &wanted, &wheels, e) < 0)
		return -1;
	if (q->build_dir) {
		out.dir = path_join(a, q->build_dir, "venv");
		if (make_venv(&py, wanted.key, wheels, out.dir, e) < 0 || check_venv(q, &py, out.dir, &out.have, e) < 0)
			return -1;
	}
	snprintf(out.key, sizeof(out.key), "%s", wanted.key);
	*ret = out;
	return 0;
}
