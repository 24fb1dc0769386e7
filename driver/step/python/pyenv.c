#include "step/python/pyenv_parts.h"

#include "base/download.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store.h"
#include "core/root/sandbox.h"
#include "core/wheel/wheel.h"

/* What a Python has of the requirements, and what it has not, in words. */
struct compared {
	struct strlist have, missing;
};

/* Sets the program: the root's python3.X, else its python3. ERR_POLICY if there is none. */
int python_find(struct python *p, const char *version, struct err *e)
{
	const char *name = arena_printf(p->arena, "python%s", version);

	p->program = root_find_program(p->root, name, p->arena);
	if (!p->program)
		p->program = root_find_program(p->root, "python3", p->arena);
	if (p->program)
		return 0;
	err_set(e, ERR_POLICY, "no Python in the root '%s'", p->root->dir);
	return err_hint(e, "install python%s there with its headers, venv and pip", version);
}

/* An offline sandbox with a bare environment for it. */
static int python_sandbox(const struct python *p, struct sandbox *ret, struct err *e)
{
	struct sandbox s;

	if (sandbox_init(&s, p->kind, p->root, p->arena, e) < 0)
		return -1;
	kvlist_set(&s.env, p->arena, "PATH", ROOT_PATH);
	kvlist_set(&s.env, p->arena, "HOME", SANDBOX_HOME);
	kvlist_set(&s.env, p->arena, "TMPDIR", p->kind == SANDBOX_NONE ? "/tmp" : SANDBOX_TMP);
	kvlist_set(&s.env, p->arena, "LC_ALL", "C.UTF-8");
	kvlist_set(&s.env, p->arena, "PIP_CONFIG_FILE", "/dev/null");
	if (p->venv)
		sandbox_add(&s, SANDBOX_RO, p->venv, SANDBOX_VENV);
	*ret = s;
	return 0;
}

/* Runs the text with these arguments, isolated from user
 * sites and PYTHON* variables; gives the printed lines. */
static int python_script(const struct python *p, const char *script, const struct strlist *args,
			 struct strlist *ret_lines, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct sandbox s;
	struct strlist argv = {0};

	if (python_sandbox(p, &s, e) < 0)
		return -1;
	strlist_add(&argv, p->arena, p->program);
	strlist_split(&argv, p->arena, "-I -c", " ");
	strlist_add(&argv, p->arena, script);
	strlist_append(&argv, p->arena, args);
	if (sandbox_capture(&s, strlist_argv(&argv, p->arena), p->run, &out, e) < 0)
		return err_wrap(e, "cannot ask '%s' of the root", p->program);
	strlist_split(ret_lines, p->arena, buf_cstr(&out), "\n");
	return 0;
}

#define LIST_NAME "requirements.txt"

/* pip carries the reference implementation of markers and tags; the standard library has none. */
static const char want_script[] =
	"import json, sys\n"
	"try:\n"
	"    from pip._vendor.packaging import markers, tags\n"
	"except ImportError:\n"
	"    print('no pip')\n"
	"    sys.exit(0)\n"
	"for text in sys.argv[1:]:\n"
	"    print('marker', int(not text or markers.Marker(text).evaluate()))\n"
	"print('python', '%d.%d' % sys.version_info[:2])\n"
	"print('implementation', tags.interpreter_name())\n"
	"print('environment', json.dumps(markers.default_environment()))\n"
	"known = list(tags.sys_tags())\n"
	"for abi in dict.fromkeys(t.abi for t in known):\n"
	"    print('abi', abi)\n"
	"for platform in dict.fromkeys(t.platform for t in known):\n"
	"    if platform != 'any':\n"
	"        print('platform', platform)\n";

static int read_answer(const struct python *p, const struct locked_list *all,
		       const struct strlist *lines, struct pyenv_wanted *w, struct err *e)
{
	size_t markers = 0;

	w->list.items = arena_array(p->arena, all->count, sizeof(*w->list.items));
	for (size_t i = 0; i < lines->count; i++) {
		char *value = arena_strdup(p->arena, lines->items[i]);
		const char *key = strsep(&value, " ");
		if (!value)
			continue;
		if (strcmp(key, "marker") == 0) {
			if (markers < all->count && strcmp(value, "1") == 0)
				w->list.items[w->list.count++] = all->items[markers];
			markers++;
		} else if (strcmp(key, "python") == 0) {
			w->python = value;
		} else if (strcmp(key, "implementation") == 0) {
			w->implementation = value;
		} else if (strcmp(key, "environment") == 0) {
			w->environment = value;
		} else if (strcmp(key, "abi") == 0) {
			strlist_ref(&w->abis, p->arena, value);
		} else if (strcmp(key, "platform") == 0) {
			strlist_ref(&w->platforms, p->arena, value);
		}
	}

	const bool is_named = w->python && w->implementation && w->environment;
	const bool has_tags = w->abis.count && w->platforms.count;
	if (markers != all->count || !is_named || !has_tags)
		return err_set(e, ERR_BUILD, "unexpected output of the root's '%s'", p->program);
	return 0;
}

/* Asks the root's Python which markers hold and which tags it supports. ERR_POLICY if it has no
 * pip. */
int pyenv_want(const struct python *p, const struct locked_list *all, struct pyenv_wanted *ret,
	       struct err *e)
{
	struct pyenv_wanted w = {.lacks = ret->lacks};
	struct strlist markers = {0}, lines = {0};

	for (size_t i = 0; i < all->count; i++)
		strlist_ref(&markers, p->arena, all->items[i].marker);
	if (python_script(p, want_script, &markers, &lines, e) < 0)
		return -1;
	if (lines.count == 1 && strcmp(lines.items[0], "no pip") == 0) {
		err_set(e, ERR_POLICY,
			"'%s' of the root '%s' has no pip to install build requirements with",
			p->program, p->root->dir);
		return err_hint(e,
				"install pip there (python3-pip), or the requirements themselves");
	}

	if (read_answer(p, all, &lines, &w, e) < 0)
		return -1;
	AUTO_BUF struct buf text = {0}, key = {0};
	for (size_t i = 0; i < w.list.count; i++) {
		const struct locked *l = &w.list.items[i];
		buf_printf(&text, "%s==%s", l->name, l->version);
		for (size_t h = 0; h < l->hashes.count; h++)
			buf_printf(&text, " --hash=sha256:%s", l->hashes.items[h]);
		buf_addc(&text, '\n');
	}

	w.text = arena_strdup(p->arena, buf_cstr(&text));
	buf_printf(&key, "python: %s %s\nabi: %s\nplatform: %s\n%s", w.implementation, w.python,
		   strlist_join(&w.abis, p->arena, " "), strlist_join(&w.platforms, p->arena, " "),
		   w.text);
	digest_data(key.data, key.len, w.key);
	*ret = w;
	return 0;
}

/* pip of the host, which has the user's network settings.
 * When the root is the host, its Python has pip. */
int python_find_pip(const struct python *p, struct strlist *argv, struct err *e)
{
	if (p->root->host) {
		python_module(p->program, "pip", p->arena, argv);
		return 0;
	}

	return pip_find(p->arena, argv,
			arena_printf(p->arena,
				     "install pip (python3-pip) on this machine, or the "
				     "requirements in the root '%s'",
				     p->root->dir),
			e);
}

static int pip_failed(const struct pyenv_wanted *w, const struct buf *output, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	bool other_bytes = strstr(buf_cstr(output), "DO NOT MATCH THE HASHES") != NULL;

	err_set(e, other_bytes ? ERR_INTEGRITY : ERR_NETWORK,
		"pip cannot download the build requirements for Python %s: %s", w->python,
		pip_reason(&a, output));
	return err_hint(e, other_bytes ? "the index has other bytes than those of the locked list"
			   : strstr(buf_cstr(output), "No module named pip")
				   ? "install pip (python3-pip)"
				   : "check pip's network settings (PIP_INDEX_URL, proxy "
				     "variables), or install "
				     "the requirements in the root");
}

#define PIP_TICK_S 0.5

/* What pip has downloaded so far is what its directory holds. */
struct pip_watch {
	struct log *log;
	const char *dir;
	double start;
};

static struct download_state pip_state(const struct pip_watch *w)
{
	struct download_state now = {.files = 1, .seconds = log_seconds() - w->start};

	if (fs_tree_size_most(w->dir, &now.received, ERR_IGNORED) < 0)
		now.received = 0;
	return now;
}

static int on_pip_tick(pid_t pid, void *user, struct err *e)
{
	const struct pip_watch *w = user;
	const struct download_state now = pip_state(w);

	(void)pid;
	(void)e;
	download_show(w->log, &now);
	return 0;
}

static void announce(const struct python *p, const struct pyenv_wanted *w, const char *kept)
{
	struct strlist origins = {0};
	struct download d = {
		.files = w->list.count, .unknown = w->list.count, .of = &origins, .kept = kept};

	strlist_ref(&origins, p->arena, "the Python index");
	if (w->list.count == 1)
		d.name = w->list.items[0].name;
	download_begin(p->run->log, &d);
}

void python_add_tags(const struct python *p, const struct pyenv_wanted *w, struct strlist *argv)
{
	strlist_addf(argv, p->arena, "--python-version=%s", w->python);
	strlist_addf(argv, p->arena, "--implementation=%s", w->implementation);
	for (size_t i = 0; i < w->abis.count; i++)
		strlist_addf(argv, p->arena, "--abi=%s", w->abis.items[i]);
	for (size_t i = 0; i < w->platforms.count; i++)
		strlist_addf(argv, p->arena, "--platform=%s", w->platforms.items[i]);
}

static int download(const struct python *p, const struct pyenv_wanted *w, const char *stage,
		    struct err *e)
{
	AUTO_BUF struct buf output = {0};
	struct strlist argv = {0};
	struct proc_result result;
	const char *list = path_join(p->arena, stage, LIST_NAME);
	static const char fixed[] = "download --quiet --disable-pip-version-check --no-input "
				    "--no-deps --require-hashes "
				    "--only-binary :all:";

	/* pip's temporary files on the disk that has room for the wheels. */
	strlist_ref(&argv, p->arena, "env");
	strlist_addf(&argv, p->arena, "TMPDIR=%s", stage);
	if (python_find_pip(p, &argv, e) < 0 ||
	    fs_write(TRUSTED, list, w->text, strlen(w->text), 0644, e) < 0)
		return -1;
	strlist_split(&argv, p->arena, fixed, " ");
	python_add_tags(p, w, &argv);
	strlist_addf(&argv, p->arena, "--dest=%s", stage);
	strlist_addf(&argv, p->arena, "--requirement=%s", list);
	struct pip_watch watch = {.log = p->run->log, .dir = stage, .start = log_seconds()};
	struct proc_spec spec = {.argv = strlist_argv(&argv, p->arena),
				 .out = &output,
				 .err = &output,
				 .cwd = stage,
				 .on_tick = on_pip_tick,
				 .tick_user = &watch,
				 .tick_s = PIP_TICK_S,
				 .answer = true};
	if (proc_run(&spec, p->run, &result, e) < 0)
		return -1;
	const struct download_state end = pip_state(&watch);
	if (result.status == 0) {
		download_end(p->run->log, &end);
		return 0;
	}

	log_status_end(p->run->log);
	return proc_no_space("pip", stage, buf_cstr(&output), e) ? -1 : pip_failed(w, &output, e);
}

static bool is_pinned(const struct pyenv_wanted *w, const char *hex)
{
	for (size_t i = 0; i < w->list.count; i++)
		if (strlist_contains(&w->list.items[i].hashes, hex))
			return true;
	return false;
}

static int check_files(const struct python *p, const struct pyenv_wanted *w, const char *stage,
		       struct err *e)
{
	struct strlist names = {0};
	size_t wheels = 0;

	if (fs_list(TRUSTED, stage, p->arena, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		char hex[DIGEST_HEX_LEN + 1];
		if (strcmp(name, LIST_NAME) == 0)
			continue;
		if (!path_has_suffix(name, ".whl"))
			return err_set(e, ERR_INTEGRITY, "pip left '%s', which is not a wheel",
				       name);
		if (digest_file(path_join(p->arena, stage, name), hex, e) < 0)
			return -1;
		if (!is_pinned(w, hex))
			return err_set(e, ERR_INTEGRITY,
				       "'%s' has sha256 %s, which the locked list does not have",
				       name, hex);
		wheels++;
	}

	if (wheels != w->list.count)
		return err_set(e, ERR_INTEGRITY,
			       "pip left %zu wheels for %zu applicable lines of the locked list",
			       wheels, w->list.count);
	return 0;
}

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
static int parse_requirement(struct arena *a, const char *text, struct requirement *ret,
			     struct err *e)
{
	size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
	const char *rest = text + n;

	rest += strspn(rest, " ");
	if (n == 0 || strchr("-_.", *text) || (*rest && !strchr("<>=!~", *rest))) {
		err_set(e, ERR_CONFIG, "not a Python requirement: '%s'", text);
		return err_hint(e,
				"write NAME or NAME with a range, like \"setuptools>=62.3,<80\"");
	}

	*ret = (struct requirement){.name = arena_strndup(a, text, n), .range = rest};
	return 0;
}

/* Compares each requirement with the version that the Python has. */
static int check_with(const struct python *py, const struct plan *p, struct compared *ret,
		      struct err *e)
{
	const struct package_row *row = p->package_row;
	const char *where = py->venv ? "environment" : "root";
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
		err_set(e, ERR_POLICY, "'%s' of the root '%s' is Python %s, the plan needs %s",
			py->program, py->root->dir, found.items[0], p->python);
		return err_hint(e, "use --python %s, or a root that has Python %s", found.items[0],
				p->python);
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

	*ret = (struct compared){good, bad};
	return 0;
}

int pyenv_check(const struct plan *p, const struct root *root, enum sandbox_kind kind,
		const struct run *run, struct arena *a, struct strlist *have,
		struct strlist *missing, struct err *e)
{
	struct python py = {.root = root, .kind = kind, .run = run, .arena = a};
	struct compared c;

	if (python_find(&py, p->python, e) < 0 || check_with(&py, p, &c, e) < 0)
		return -1;
	*have = c.have;
	*missing = c.missing;
	return 0;
}

static int read_lists(const struct pyenv_request *q, struct arena *a, struct locked_list *ret,
		      struct err *e)
{
	const struct package_row *row = q->plan->package_row;
	const char *const files[] = {row->requirements, row->tried_with};

	return locked_lists_read(path_join(a, q->profiles_dir, "requirements"), files,
				 ARRAY_LEN(files), a, ret, e);
}

/* A lock is installed whatever the root has: it has what a back end asks for, too, and makes the
 * same wheel in a root of other versions. */
static bool is_locked(const struct pyenv_request *q)
{
	const char *file = q->plan->package_row->requirements;
	return file && requirements_is_lock(file);
}

int pyenv_installs(const struct pyenv_request *q, const struct run *run, struct arena *a,
		   struct strlist *ret, struct err *e)
{
	const char *file = q->plan->package_row->requirements;
	struct strlist have = {0}, missing = {0};
	struct locked_list list;

	if (!file || !*file)
		return 0;
	if (pyenv_check(q->plan, q->root, q->kind, run, a, &have, &missing, e) < 0)
		return -1;
	if (missing.count == 0 && !is_locked(q))
		return 0;
	if (read_lists(q, a, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (marker_holds(list.items[i].marker, q->plan->python))
			strlist_ref(ret, a, wheel_normalize(list.items[i].name, a));
	return 0;
}

static int capture(const struct python *py, const struct sandbox *s, const char *const *argv,
		   struct err *e)
{
	AUTO_BUF struct buf out = {0};
	return sandbox_capture(s, argv, py->run, &out, e);
}

static bool is_ready(const char *venv, const char *text)
{
	AUTO_BUF struct buf have = {0};
	return fs_read(venv, MARK, 4096, &have, ERR_IGNORED) == 0 &&
	       strcmp(buf_cstr(&have), text) == 0;
}

/* The mark is written last: without it the environment is incomplete. */
static int make_venv(const struct python *py, const struct pyenv_wanted *w, const char *venv,
		     struct err *e)
{
	const char *text =
		arena_printf(py->arena, "%s\n%s\n%s\n", w->key, py->program, py->root->fingerprint);

	if (is_ready(venv, text))
		return 0;
	if (fs_remove(TRUSTED, venv, e) < 0 || fs_mkdirs(TRUSTED, venv, e) < 0)
		return -1;
	/* Installs the whole list, whatever the root has:
	 * the environment depends on the list alone. */
	static const char pip[] = SANDBOX_VENV
		"/bin/python -m pip install --quiet --disable-pip-version-check --no-input "
		"--no-cache-dir "
		"--no-index --find-links " SANDBOX_TOP
		"/wheels --no-deps --require-hashes --only-binary :all: --ignore-installed "
		"--requirement " SANDBOX_TOP "/wheels/requirements.txt";
	const char *const make[] = {
		py->program,  "-I", "-m", "venv", "--without-pip", "--system-site-packages",
		SANDBOX_VENV, NULL};
	struct strlist argv = {0};
	struct sandbox s;
	strlist_split(&argv, py->arena, pip, " ");
	if (python_sandbox(py, &s, e) < 0)
		return -1;
	sandbox_add(&s, SANDBOX_RW, venv, SANDBOX_VENV);
	sandbox_add(&s, SANDBOX_RO, w->wheels, SANDBOX_TOP "/wheels");
	if (capture(py, &s, make, e) < 0)
		return err_wrap(e, "cannot make the build's Python environment");
	if (capture(py, &s, argv.items, e) < 0)
		return err_wrap(e, "cannot install the build requirements");
	return fs_write(venv, MARK, text, strlen(text), 0644, e);
}

static int no_list(const struct plan *p, const struct root *root, const char *lacks, struct err *e)
{
	err_set(e, ERR_CONFIG,
		"the root '%s' lacks %s, and %s of release %s has no locked list of Python "
		"requirements",
		root->dir, lacks, p->package, p->release);
	return err_hint(e, "install them in the root, or take a root that has them");
}

/* What an extension asks for is nobody's table: told before anything is downloaded. */
static int check_listed(const struct plan *p, const struct locked_list *l, const char *lacks,
			struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct package_row *row = p->package_row;
	/* also of its trial */
	const bool own = strcmp(row->requirements, TABLES_EXTENSION_LIST) == 0 ||
			 requirements_is_lock(row->requirements);

	for (unsigned i = 0; own && i < row->python_requires_count; i++) {
		if (!strstr(lacks, row->python_requires[i]) ||
		    locked_has(l, p->python, row->python_requires[i], &a))
			continue;
		err_set(e, ERR_POLICY,
			"neither the root nor the locked list '%s' has '%s', which the build needs",
			row->requirements, row->python_requires[i]);
		return err_hint(e, "install it in a root of your own (--root DIR), or leave "
				   "--requirements out");
	}

	return 0;
}

/* Fills in `wanted`, of which `lacks` is set, and gets its wheels. */
static int get_wheels(const struct pyenv_request *q, const struct python *py,
		      struct pyenv_wanted *wanted, struct err *e)
{
	const char *file = q->plan->package_row->requirements, *lacks = wanted->lacks;
	struct locked_list list;

	if (!file || !*file)
		return no_list(q->plan, q->root, lacks, e);
	log_verbose(py->run->log, "the root lacks %s: creating a Python environment from '%s'",
		    lacks, file);
	if (read_lists(q, py->arena, &list, e) < 0 || check_listed(q->plan, &list, lacks, e) < 0)
		return -1;
	if (pyenv_want(py, &list, wanted, e) < 0)
		return -1;
	/* The store object with requirements.txt and a wheel for each of its lines, downloaded by
	 * the host's pip if absent; every digest is checked here too. `why` is for messages.
	 * ERR_NETWORK offline or when pip fails; ERR_INTEGRITY for other bytes. */
	AUTO_LOCK struct lock lock = LOCK_NONE;
	const char *dir = NULL;
	if (store_lock(q->store, STORE_PYENV, wanted->key, py->run, &lock, e) < 0 ||
	    store_find(q->store, STORE_PYENV, wanted->key, py->arena, &dir, e) < 0 ||
	    (!dir &&
	     store_pull(q->store, STORE_PYENV, wanted->key, py->run, py->arena, &dir, e) < 0))
		return -1;
	if (!dir && q->offline) {
		err_set(e, ERR_NETWORK,
			"the root lacks %s, the store has no wheels of the locked list for Python "
			"%s, and --offline "
			"forbids fetching them",
			lacks, wanted->python);
		return err_hint(
			e,
			"run it once without --offline, or install the requirements in the root");
	}

	if (!dir) {
		const char *stage;
		if (store_stage(q->store, py->arena, &stage, e) < 0)
			return -1;
		log_info(py->run->log, "fetch: %zu Python distributions that the build needs",
			 wanted->list.count);
		announce(py, wanted, store_dir(q->store));
		if (download(py, wanted, stage, e) < 0 || check_files(py, wanted, stage, e) < 0 ||
		    store_publish(q->store, STORE_PYENV, wanted->key, stage, py->arena, &dir, e) <
			    0) {
			store_drop_stage(q->store, stage);
			return -1;
		}
	}

	wanted->wheels = dir;
	return 0;
}

static int check_venv(const struct python *py, const struct plan *p, struct pyenv *out,
		      struct err *e)
{
	struct compared c;
	struct python inside = *py;

	inside.program = SANDBOX_VENV "/bin/python";
	inside.venv = out->dir;
	if (check_with(&inside, p, &c, e) < 0)
		return -1;
	out->have = c.have;
	if (c.missing.count == 0)
		return 0;
	err_set(e, ERR_CONFIG, "the locked list '%s' does not provide %s",
		p->package_row->requirements, strlist_join(&c.missing, py->arena, ", "));
	return err_hint(e, "make the list again from its requirements");
}

int pyenv_prepare(const struct pyenv_request *q, const struct run *run, struct arena *a,
		  struct pyenv *ret, struct err *e)
{
	struct python py = {.root = q->root, .kind = q->kind, .run = run, .arena = a};
	struct pyenv out = {0};
	struct compared c;
	struct pyenv_wanted wanted = {0};

	if (python_find(&py, q->plan->python, e) < 0 || check_with(&py, q->plan, &c, e) < 0)
		return -1;
	out.have = c.have;
	if (c.missing.count == 0 && !is_locked(q)) {
		*ret = out;
		return 0;
	}

	wanted.lacks = c.missing.count ? strlist_join(&c.missing, a, ", ") : "versions of the lock";
	if (get_wheels(q, &py, &wanted, e) < 0)
		return -1;
	if (q->build_dir) {
		out.dir = path_join(a, q->build_dir, "venv");
		if (make_venv(&py, &wanted, out.dir, e) < 0 ||
		    check_venv(&py, q->plan, &out, e) < 0)
			return -1;
	}

	snprintf(out.key, sizeof(out.key), "%s", wanted.key);
	*ret = out;
	return 0;
}
