#include "step/python/pyenv_fetch.h"

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/proc.h"
#include "cache/store.h"

#define LIST_NAME "requirements.txt"

/* pip carries the reference implementation of markers and tags; the standard library has none. */
static const char want_script[] = "import sys\n"
				  "try:\n"
				  "    from pip._vendor.packaging import markers, tags\n"
				  "except ImportError:\n"
				  "    print('no pip')\n"
				  "    sys.exit(0)\n"
				  "for text in sys.argv[1:]:\n"
				  "    print('marker', int(not text or markers.Marker(text).evaluate()))\n"
				  "print('python', '%d.%d' % sys.version_info[:2])\n"
				  "print('implementation', tags.interpreter_name())\n"
				  "known = list(tags.sys_tags())\n"
				  "for abi in dict.fromkeys(t.abi for t in known):\n"
				  "    print('abi', abi)\n"
				  "for platform in dict.fromkeys(t.platform for t in known):\n"
				  "    if platform != 'any':\n"
				  "        print('platform', platform)\n";

static int read_answer(const struct python *p, const struct locked_list *all, const struct strlist *lines,
		       struct pyenv_wanted *w, struct err *e)
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
		} else if (strcmp(key, "abi") == 0) {
			strlist_ref(&w->abis, p->arena, value);
		} else if (strcmp(key, "platform") == 0) {
			strlist_ref(&w->platforms, p->arena, value);
		}
	}
	if (markers != all->count || !w->python || !w->implementation || !w->abis.count || !w->platforms.count)
		return err_set(e, ERR_BUILD, "unexpected output of the root's '%s'", p->program);
	return 0;
}

int pyenv_want(const struct python *p, const struct locked_list *all, struct pyenv_wanted *ret, struct err *e)
{
	struct pyenv_wanted w = {0};
	struct strlist markers = {0}, lines = {0};
	for (size_t i = 0; i < all->count; i++)
		strlist_ref(&markers, p->arena, all->items[i].marker);
	if (python_script(p, want_script, &markers, &lines, e) < 0)
		return -1;
	if (lines.count == 1 && strcmp(lines.items[0], "no pip") == 0) {
		err_set(e, ERR_POLICY, "'%s' of the root '%s' has no pip to install build requirements with",
			p->program, p->root->dir);
		return err_hint(e, "install pip there (python3-pip), or the requirements themselves");
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
		   strlist_join(&w.abis, p->arena, " "), strlist_join(&w.platforms, p->arena, " "), w.text);
	digest_data(key.data, key.len, w.key);
	*ret = w;
	return 0;
}

/* pip of the host, which has the user's network settings. When the root is the host, its Python has pip. */
static int find_pip(const struct python *p, struct strlist *argv, struct err *e)
{
	if (p->root->host) {
		strlist_add(argv, p->arena, p->program);
		strlist_split(argv, p->arena, "-m pip", " ");
		return 0;
	}
	return pip_find(p->arena, argv,
			arena_printf(p->arena,
				     "install pip (python3-pip) on this machine, or the requirements in the root '%s'",
				     p->root->dir),
			e);
}

static int pip_failed(const struct pyenv_wanted *w, const struct buf *output, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	bool other_bytes = strstr(buf_cstr(output), "DO NOT MATCH THE HASHES") != NULL;
	err_set(e, other_bytes ? ERR_INTEGRITY : ERR_NETWORK,
		"pip cannot download the build requirements for Python %s: %s", w->python, pip_reason(&a, output));
	return err_hint(e, other_bytes ? "the index has other bytes than those of the locked list"
			   : strstr(buf_cstr(output), "No module named pip")
				   ? "install pip (python3-pip)"
				   : "check pip's network settings (PIP_INDEX_URL, proxy variables), or install "
				     "the requirements in the root");
}

static int download(const struct python *p, const struct pyenv_wanted *w, const char *stage, struct err *e)
{
	AUTO_BUF struct buf output = {0};
	struct strlist argv = {0};
	struct proc_result result;
	const char *list = path_join(p->arena, stage, LIST_NAME);
	static const char fixed[] =
		"download --quiet --disable-pip-version-check --no-input --no-deps --require-hashes "
		"--only-binary :all:";
	if (find_pip(p, &argv, e) < 0 || fs_write(TRUSTED, list, w->text, strlen(w->text), 0644, e) < 0)
		return -1;
	strlist_split(&argv, p->arena, fixed, " ");
	strlist_addf(&argv, p->arena, "--python-version=%s", w->python);
	strlist_addf(&argv, p->arena, "--implementation=%s", w->implementation);
	strlist_addf(&argv, p->arena, "--dest=%s", stage);
	strlist_addf(&argv, p->arena, "--requirement=%s", list);
	for (size_t i = 0; i < w->abis.count; i++)
		strlist_addf(&argv, p->arena, "--abi=%s", w->abis.items[i]);
	for (size_t i = 0; i < w->platforms.count; i++)
		strlist_addf(&argv, p->arena, "--platform=%s", w->platforms.items[i]);
	struct proc_spec spec = {
		.argv = strlist_argv(&argv, p->arena), .out = &output, .err = &output, .cwd = stage, .answer = true};
	if (proc_run(&spec, p->run, &result, e) < 0)
		return -1;
	return result.status == 0 ? 0 : pip_failed(w, &output, e);
}

static bool is_pinned(const struct pyenv_wanted *w, const char *hex)
{
	for (size_t i = 0; i < w->list.count; i++)
		if (strlist_contains(&w->list.items[i].hashes, hex))
			return true;
	return false;
}

static int check_files(const struct python *p, const struct pyenv_wanted *w, const char *stage, struct err *e)
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
			return err_set(e, ERR_INTEGRITY, "pip left '%s', which is not a wheel", name);
		if (digest_file(path_join(p->arena, stage, name), hex, e) < 0)
			return -1;
		if (!is_pinned(w, hex))
			return err_set(e, ERR_INTEGRITY, "'%s' has sha256 %s, which the locked list does not have",
				       name, hex);
		wheels++;
	}
	if (wheels != w->list.count)
		return err_set(e, ERR_INTEGRITY, "pip left %zu wheels for %zu applicable lines of the locked list",
			       wheels, w->list.count);
	return 0;
}

static int fill_store(const struct python *p, const struct pyenv_wanted *w, struct store *store, const char **ret,
		      struct err *e)
{
	const char *stage;
	if (store_stage(store, p->arena, &stage, e) < 0)
		return -1;
	log_info(p->run->log, "fetch: %zu Python distributions that the build needs", w->list.count);
	if (download(p, w, stage, e) < 0 || check_files(p, w, stage, e) < 0 ||
	    store_publish(store, STORE_PYENV, w->key, stage, p->arena, ret, e) < 0) {
		store_drop_stage(store, stage);
		return -1;
	}
	return 0;
}

int pyenv_fetch(const struct python *p, const struct pyenv_wanted *w, struct store *store, bool offline,
		const char *why, const char **ret, struct err *e)
{
	AUTO_LOCK struct lock lock = LOCK_NONE;
	const char *dir = NULL;
	if (store_lock(store, STORE_PYENV, w->key, p->run, &lock, e) < 0 ||
	    store_find(store, STORE_PYENV, w->key, p->arena, &dir, e) < 0)
		return -1;
	if (!dir && store_pull(store, STORE_PYENV, w->key, p->run, p->arena, &dir, e) < 0)
		return -1;
	if (!dir && offline) {
		err_set(e, ERR_NETWORK,
			"the root lacks %s, the store has no wheels of the locked list for Python %s, and --offline "
			"forbids fetching them",
			why, w->python);
		return err_hint(e, "run it once without --offline, or install the requirements in the root");
	}
	if (!dir && fill_store(p, w, store, &dir, e) < 0)
		return -1;
	*ret = dir;
	return 0;
}
