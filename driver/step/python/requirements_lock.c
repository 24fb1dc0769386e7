#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/proc.h"
#include "cache/store.h"
#include "core/wheel/requirement.h"
#include "step/python/pyenv_parts.h"

enum { ROUNDS = 4, REPORT_MAX = 64 << 20 };

/* What pip is asked for. */
struct asking {
	const struct pyenv_request *q;
	const struct python *py;
	struct locked_list list; /* of every extension */
	struct pyenv_wanted tags;
	struct strlist requires; /* of this one */
	struct strlist unlisted; /* those of them that the list has not */
	bool more;               /* some that pyenv_check does not look at are among them */
	const char *stage;       /* where pip may write */
	const char *reason;      /* why it failed */
};

struct found {
	struct strlist lines, names; /* "cython==3.2.1 --hash=sha256:...", "cython" */
	struct strlist lacks;        /* required by one of them, and not among them */
};

/* "setuptools==81.0.0" where the list has it and the requirements take it; else NULL. */
static const char *pinned(const struct asking *k, const struct locked *l, struct arena *a)
{
	const char *name = wheel_normalize(l->name, a);

	if (!marker_holds(l->marker, k->q->plan->python))
		return NULL;
	for (size_t i = 0; i < k->requires.count; i++) {
		struct requirement r;
		if (requirement_parse(k->requires.items[i], a, &r, ERR_IGNORED) == 0 &&
		    strcmp(r.name, name) == 0 && !specifier_takes(r.specifier, l->version, a))
			return NULL;
	}

	return arena_printf(a, "%s==%s", l->name, l->version);
}

/* With `with_list`, also what the list pins; else ninja, which torch uses unasked. */
static int write_requests(const struct asking *k, bool with_list, const char *path, struct err *e)
{
	struct arena *a = k->py->arena;
	AUTO_BUF struct buf text = {0};

	for (size_t i = 0; i < k->requires.count; i++)
		buf_printf(&text, "%s\n", k->requires.items[i]);
	for (size_t i = 0; with_list && i < k->list.count; i++) {
		const char *line = pinned(k, &k->list.items[i], a);
		if (line)
			buf_printf(&text, "%s\n", line);
	}

	if (!with_list)
		buf_addstr(&text, "ninja\n");
	return fs_write(TRUSTED, path, text.data, text.len, 0644, e);
}

/* pip's choice as a report. 0: it found none, and says why in k->reason. */
static int ask_pip(struct asking *k, bool with_list, const char *report, struct err *e)
{
	static const char fixed[] =
		"install --dry-run --ignore-installed --quiet --disable-pip-version-check "
		"--no-input --only-binary :all:";
	struct arena *a = k->py->arena;
	AUTO_BUF struct buf output = {0};
	struct strlist argv = {0};
	struct proc_result result;
	const char *in = path_join(a, k->stage, "in.txt");

	strlist_ref(&argv, a, "env");
	strlist_addf(&argv, a, "TMPDIR=%s", k->stage);
	if (python_start_pip(k->py, &k->tags, &argv, e) < 0 ||
	    write_requests(k, with_list, in, e) < 0)
		return -1;
	strlist_split(&argv, a, fixed, " ");
	python_add_tags(k->py, &k->tags, &argv);
	strlist_addf(&argv, a, "--target=%s", path_join(a, k->stage, "target"));
	strlist_addf(&argv, a, "--report=%s", report);
	strlist_addf(&argv, a, "--requirement=%s", in);
	const struct proc_spec spec = {.argv = strlist_argv(&argv, a),
				       .out = &output,
				       .err = &output,
				       .cwd = k->stage,
				       .answer = true};
	if (proc_run(&spec, k->py->run, &result, e) < 0)
		return -1;
	const char *other = strstr(buf_cstr(&output), PIP_IS_OTHER);
	if (other)
		log_warn(k->py->run->log,
			 "the pip of this machine chooses only versions that its own Python can "
			 "use, too: %.*s",
			 (int)strcspn(other, "\n"), other);
	if (result.status == 0)
		return 1;
	if (proc_no_space("pip", k->stage, buf_cstr(&output), e))
		return -1;
	k->reason = strstr(buf_cstr(&output), "no such option")
			    ? "it is older than 23.1, and cannot resolve without installing"
			    : pip_reason(a, &output);
	return 0;
}

/* What a distribution requires on that Python, of which `found` has no name. */
static void add_lacks(const struct asking *k, const json_t *metadata, const struct found *f,
		      struct strlist *ret)
{
	struct arena *a = k->py->arena;
	const struct marker_env env = {
		.python = k->q->plan->python, .platform = k->q->plan->platform, .extra = ""};
	const json_t *text;
	size_t i;

	json_array_foreach(json_object_get(metadata, "requires_dist"), i, text)
	{
		struct requirement r;
		if (!json_is_string(text) ||
		    requirement_parse(json_string_value(text), a, &r, ERR_IGNORED) < 0)
			continue;
		if (marker_eval(r.marker, &env, a) == HOLDS_ALWAYS &&
		    !strlist_contains(&f->names, r.name))
			strlist_addf(ret, a, "%s%s", r.name, r.specifier);
	}
}

static int read_report(const struct asking *k, const char *path, struct found *ret, struct err *e)
{
	struct arena *a = k->py->arena;
	AUTO_JSON json_t *doc = NULL;
	struct found f = {0};
	const json_t *item;
	size_t i;

	if (json_read(TRUSTED, path, &doc, e) < 0)
		return err_wrap(e, "pip's report");
	const json_t *install = json_object_get(doc, "install");
	json_array_foreach(install, i, item)
	{
		const json_t *metadata = json_object_get(item, "metadata");
		const json_t *info =
			json_object_get(json_object_get(item, "download_info"), "archive_info");
		const char *name = json_member(metadata, "name"),
			   *version = json_member(metadata, "version");
		const char *sha256 = json_member(json_object_get(info, "hashes"), "sha256");
		const char *hash = json_member(info, "hash");
		if (!sha256 && hash && strncmp(hash, "sha256=", 7) == 0)
			sha256 = hash + 7;
		if (!name || !version || !sha256 || !digest_valid_hex(sha256))
			return err_set(e, ERR_NETWORK, "pip's report has no digest of '%s'",
				       name ? name : "a distribution");
		strlist_addf(&f.lines, a, "%s==%s --hash=sha256:%s", name, version, sha256);
		strlist_add(&f.names, a, wheel_normalize(name, a));
	}

	json_array_foreach(install, i, item)
		add_lacks(k, json_object_get(item, "metadata"), &f, &f.lacks);
	strlist_sort(&f.lines);
	*ret = f;
	return 0;
}

static int refuse(const struct asking *k, const char *lacks, struct err *e)
{
	const bool none = strstr(k->reason, "No matching distribution") ||
			  strstr(k->reason, "ResolutionImpossible") ||
			  strstr(k->reason, "conflict");

	err_set(e, none ? ERR_POLICY : ERR_NETWORK,
		"pip finds no wheels for Python %s of what the build needs (%s): %s",
		k->q->plan->python, lacks, k->reason);
	return err_hint(e, "give a lock of your own with --requirements LOCK, or install them in a "
			   "root of your own (--root DIR)");
}

/* A pip that evaluates markers for its own Python leaves out what the
 * root's needs besides: that is asked for until nothing is missing. */
static int resolve(struct asking *k, const char *lacks, struct found *ret, struct err *e)
{
	struct arena *a = k->py->arena;
	bool with_list = true;

	for (unsigned round = 0; round < ROUNDS; round++) {
		const char *report = arena_printf(a, "%s/report-%u.json", k->stage, round);
		const int found = ask_pip(k, with_list, report, e);
		if (found < 0)
			return -1;
		if (!found && !with_list)
			return refuse(k, lacks, e);
		with_list = with_list && found;
		if (!found)
			continue;
		if (read_report(k, report, ret, e) < 0)
			return -1;
		if (!ret->lacks.count)
			return 0;
		strlist_append(&k->requires, a, &ret->lacks);
	}

	return err_set(e, ERR_POLICY, "what the build needs has requirements without end: %s",
		       strlist_join(&ret->lacks, a, ", "));
}

static int write_lock(const struct asking *k, const char *path, struct err *e)
{
	struct found f = {0};
	AUTO_BUF struct buf text = {0};
	const struct plan *p = k->q->plan;
	struct asking own = *k;

	if (resolve(&own, strlist_join(&k->requires, k->py->arena, ", "), &f, e) < 0)
		return -1;
	buf_printf(&text, "# What the build of %s %s needs from Python %s, resolved by pip.\n",
		   p->distribution, p->version, p->python);
	for (size_t i = 0; i < f.lines.count; i++)
		buf_printf(&text, "%s\n", f.lines.items[i]);
	return fs_write(TRUSTED, path, text.data, text.len, 0644, e);
}

/* The file in the store; by all that pip's answer depends on but the day. */
static int lock_path(const struct asking *k, const char **ret, struct err *e)
{
	struct arena *a = k->py->arena;
	const struct plan *p = k->q->plan;
	char list[DIGEST_HEX_LEN + 1], hex[DIGEST_HEX_LEN + 1];
	AUTO_BUF struct buf text = {0};

	if (digest_file(path_join(a, path_join(a, k->q->profiles_dir, "requirements"),
				  TABLES_EXTENSION_LIST),
			list, e) < 0)
		return -1;
	buf_printf(&text, "lock 1\n%s %s\n%s %s\n%s\n%s\n", p->distribution, p->version, p->python,
		   p->platform, k->q->root->fingerprint, list);
	for (size_t i = 0; i < k->requires.count; i++)
		buf_printf(&text, "%s\n", k->requires.items[i]);
	digest_data(text.data, text.len, hex);
	*ret = arena_printf(a, "%s/stamps/requirements-%s.txt", store_dir(k->q->store), hex);
	return 0;
}

/* Whether the root has what the list has not. */
static int root_has_all(const struct asking *k, bool *ret, struct err *e)
{
	struct arena *a = k->py->arena;
	struct strlist have = {0}, missing = {0};

	*ret = false;
	if (k->more)
		return 0;
	if (pyenv_check(k->q->plan, k->q->root, k->q->kind, k->py->run, a, &have, &missing, e) < 0)
		return -1;
	*ret = true;
	for (size_t i = 0; i < missing.count; i++) {
		const char *text =
			arena_strndup(a, missing.items[i], strcspn(missing.items[i], " "));
		*ret = *ret && locked_has(&k->list, k->q->plan->python, text, a);
	}

	return 0;
}

static int make_lock(struct asking *k, const char *path, struct err *e)
{
	bool enough;

	if (root_has_all(k, &enough, e) < 0)
		return -1;
	if (enough) /* an empty file says so the next time */
		return fs_write(TRUSTED, path, "", 0, 0644, e);
	if (k->q->offline) {
		err_set(e, ERR_NETWORK,
			"what the build needs is in no locked list (%s), and --offline forbids "
			"asking the index",
			strlist_join(&k->requires, k->py->arena, ", "));
		return err_hint(e, "run it once without --offline, or name a lock with "
				   "--requirements LOCK");
	}

	if (pyenv_want(k->py, &k->list, &k->tags, e) < 0 ||
	    store_stage(k->q->store, k->py->arena, &k->stage, e) < 0)
		return -1;
	log_info(k->py->run->log, "%s: asking the Python index for what its build needs: %s",
		 k->q->plan->package, strlist_join(&k->requires, k->py->arena, ", "));
	int rc = write_lock(k, path, e);
	store_drop_stage(k->q->store, k->stage);
	return rc;
}

static void add(struct asking *k, const char *text, bool more)
{
	struct arena *a = k->py->arena;

	strlist_once(&k->requires, a, text);
	if (locked_has(&k->list, k->q->plan->python, text, a) && !strchr(text, '['))
		return;
	strlist_once(&k->unlisted, a, text);
	k->more = k->more || more;
}

/* What its table or pyproject.toml names, for this Python, and what its back end asked for. */
static int collect(struct asking *k, struct err *e)
{
	struct arena *a = k->py->arena;
	const struct package_row *row = k->q->plan->package_row;
	const char *const files[] = {TABLES_EXTENSION_LIST};
	const struct marker_env env = {
		.python = k->q->plan->python, .platform = k->q->plan->platform, .extra = ""};
	struct strlist asked = {0};

	if (locked_lists_read(path_join(a, k->q->profiles_dir, "requirements"), files, 1, a,
			      &k->list, e) < 0)
		return -1;
	for (unsigned i = 0; i < row->python_requires_count; i++)
		add(k, row->python_requires[i], false);
	for (unsigned i = 0; i < row->also_requires_count; i++) {
		const char *marker = strchr(row->also_requires[i], ';');
		if (marker_eval(marker ? marker + 1 : "", &env, a) != HOLDS_NEVER)
			add(k, row->also_requires[i], true);
	}

	if (k->q->store && k->q->root && requirements_asked(k->q, a, &asked, e) < 0)
		return -1;
	for (size_t i = 0; i < asked.count; i++)
		add(k, asked.items[i], true);
	return 0;
}

static bool is_locked_later(const struct pyenv_request *q)
{
	const struct package_row *row = q->plan->package_row;
	return row->name && strcmp(row->requirements, TABLES_EXTENSION_LIST) == 0;
}

int requirements_lock(const struct pyenv_request *q, const struct run *run, struct arena *a,
		      const char **ret, struct err *e)
{
	struct python py = {.root = q->root, .kind = q->kind, .run = run, .arena = a};
	struct asking k = {.q = q, .py = &py};
	const char *path;
	struct stat st;

	*ret = NULL;
	if (!is_locked_later(q))
		return 0;
	if (collect(&k, e) < 0)
		return -1;
	if (!k.unlisted.count)
		return 0;
	if (lock_path(&k, &path, e) < 0)
		return -1;
	if (!fs_exists(TRUSTED, path) &&
	    (python_find(&py, q->plan->python, e) < 0 || make_lock(&k, path, e) < 0))
		return -1;
	if (stat(path, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	*ret = st.st_size ? path : NULL;
	return 0;
}

static int look_at_lock(struct lock_look *l, struct arena *a, struct err *e)
{
	struct locked_list list;

	if (locked_list_read(l->path, a, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		strlist_addf(&l->pins, a, "%s==%s", list.items[i].name, list.items[i].version);
	return 0;
}

int requirements_look(const struct pyenv_request *q, struct arena *a, struct lock_look *ret,
		      struct err *e)
{
	struct python py = {.root = q->root, .kind = q->kind, .arena = a};
	struct asking k = {.q = q, .py = &py};
	const struct package_row *row = q->plan->package_row;
	struct stat st;

	*ret = (struct lock_look){.state = LOCK_NOT_NEEDED};
	if (row->name && requirements_is_lock(row->requirements)) {
		ret->state = LOCK_GIVEN;
		ret->path = row->requirements;
		return look_at_lock(ret, a, e);
	}

	if (!is_locked_later(q))
		return 0;
	if (collect(&k, e) < 0)
		return -1;
	ret->wants = k.unlisted;
	if (!k.unlisted.count)
		return 0;
	ret->state = LOCK_TO_MAKE;
	if (!q->store || !q->root)
		return 0;
	if (lock_path(&k, &ret->path, e) < 0)
		return -1;
	if (stat(ret->path, &st) < 0) {
		ret->path = NULL;
		return 0;
	}

	/* An empty one: the root has all. */
	ret->state = st.st_size ? LOCK_KEPT : LOCK_NOT_NEEDED;
	return st.st_size ? look_at_lock(ret, a, e) : 0;
}
