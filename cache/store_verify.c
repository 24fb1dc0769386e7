#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

struct verifier {
	struct store *s;
	const struct store_object *objects;
	struct err **wrong; /* one for each object, NULL: fine */
	size_t count, done;
	pthread_mutex_t mutex; /* of `done` and the arena */
	struct arena *arena;
	const struct run *run;
};

static int verify_one(unsigned thread, size_t i, void *user, struct err *e)
{
	struct verifier *v = user;
	struct log quiet = {.level = LOG_QUIET, .fd = v->run->log->fd};
	struct err why = {0};

	(void)thread;
	int rc = store_verify(&v->objects[i],
			      &(struct run){.log = &quiet, .cancel_fd = v->run->cancel_fd}, &why);
	if (rc < 0 && why.kind == ERR_INTERRUPTED)
		return err_take(e, &why);
	pthread_mutex_lock(&v->mutex);
	if (rc < 0) {
		v->wrong[i] = arena_alloc(v->arena, sizeof(why));
		*v->wrong[i] = why;
	}

	log_status(v->run->log, "checking: %zu of %zu object%s", ++v->done, v->count,
		   plural(v->count));
	pthread_mutex_unlock(&v->mutex);
	return 0;
}

/* Checked again under the lock: somebody may have replaced it since. */
static int move_away(const struct verifier *v, const struct store_object *o, enum store_fate *ret,
		     struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	struct err again = {0};
	bool got = false;

	if (lock_try(&lock, store_lock_path(v->s, o->kind, o->key, &a), false, &got, e) < 0)
		return -1;
	if (!got) {
		*ret = STORE_WRONG_BUSY;
		return 0;
	}

	*ret = STORE_WRONG_MOVED;
	if (store_verify(o, v->run, &again) == 0 || !fs_exists(TRUSTED, o->path))
		return 0;
	if (again.kind != ERR_INTEGRITY)
		return err_take(e, &again);
	return store_quarantine(v->s, o, e);
}

static int collect(struct verifier *v, bool move, struct store_checks *ret, struct err *e)
{
	struct store_checks r = {.items = arena_array(v->arena, v->count + 1, sizeof(*r.items))};

	for (size_t i = 0; i < v->count; i++) {
		const struct store_object *o = &v->objects[i];
		const struct err *why = v->wrong[i];
		if (why && !fs_exists(TRUSTED, o->path))
			continue;
		r.checked++;
		r.bytes += o->bytes;
		if (!why)
			continue;
		struct store_check *k = &r.items[r.wrong++];
		*k = (struct store_check){.object = *o, .why = *why};
		if (move && why->kind == ERR_INTEGRITY && move_away(v, o, &k->fate, e) < 0)
			return -1;
	}

	*ret = r;
	return 0;
}

int store_verify_all(struct store *s, bool move, unsigned threads, const struct run *run,
		     struct arena *a, struct store_checks *ret, struct err *e)
{
	struct store_object *objects;
	struct verifier v = {.s = s, .run = run, .arena = a, .mutex = PTHREAD_MUTEX_INITIALIZER};

	if (run_check(run, e) < 0 || store_list(s, a, &objects, &v.count, e) < 0)
		return -1;
	v.objects = objects;
	v.wrong = arena_array(a, v.count + 1, sizeof(struct err *));
	uint64_t *sizes = arena_array(a, v.count, sizeof(*sizes));
	for (size_t i = 0; i < v.count; i++)
		sizes[i] = objects[i].bytes;
	log_status(run->log, "checking: %zu object%s", v.count, plural(v.count));
	int rc = thread_items(threads < 1 ? 1 : threads, v.count, sizes, run, verify_one, &v, e);
	log_status_end(run->log);
	return rc < 0 ? -1 : collect(&v, move, ret, e);
}

int store_check_source(const char *key, const json_t *files, struct err *e)
{
	if (json_array_size(files) != 1)
		return err_set(e, ERR_INTEGRITY, "a source is one file, not %zu",
			       json_array_size(files));
	const json_t *file = json_array_get(files, 0);
	const char *got = json_member(file, "sha256");
	if (strcmp(got, key) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' has sha256 %s, not %s",
			       json_member(file, "path"), got, key);
	return 0;
}

int store_check_wheel(const char *dir, const char *key, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *record = NULL;
	const char *path = path_join(&a, dir, STORE_RECORD);

	if (json_read(TRUSTED, path, &record, e) < 0) {
		if (!fs_exists(TRUSTED, path) || e->kind == ERR_CONFIG)
			e->kind = ERR_INTEGRITY;
		return -1;
	}

	const char *wheel = json_member(record, "wheel");
	const char *sha256 = json_member(record, "sha256");
	const char *own = json_member(record, "output_key");
	const bool has_digest = sha256 && digest_valid_hex(sha256);
	const bool has_path = wheel && path_is_safe_relative(wheel);
	if (!has_digest || !has_path || !fs_exists(TRUSTED, path_join(&a, dir, wheel)))
		return err_set(e, ERR_INTEGRITY, "'%s' names no wheel", path);
	if (!own || strcmp(own, key) != 0)
		return err_set(e, ERR_INTEGRITY,
			       "'%s' belongs to another wheel: its output key is %s", path,
			       own ? own : "missing");
	return 0;
}

static int broken_manifest(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "invalid manifest '%s': %s", path, what);
}

/* A file that cannot be looked at is not called missing. */
static int missing(const char *path, struct err *e)
{
	if (errno == ENOENT || errno == ENOTDIR)
		return err_set(e, ERR_INTEGRITY, "'%s' is missing", path);
	return err_errno(e, ERR_SYSTEM, "cannot look at '%s'", path);
}

int store_read_manifest(const struct store_object *o, const char *path, json_t **ret, struct err *e)
{
	AUTO_JSON json_t *doc = NULL;
	struct stat st;

	if (lstat(path, &st) < 0)
		return missing(path, e);
	if (json_read(TRUSTED, path, &doc, e) < 0)
		return -1;
	const char *has_kind, *has_key;
	int format;
	json_t *files;
	if (json_unpack(doc, "{s:i, s:s, s:s, s:o !}", "format", &format, "kind", &has_kind, "key",
			&has_key, "files", &files) < 0)
		return broken_manifest(path, "it needs format, kind, key and files", e);
	if (format != STORE_FORMAT || strcmp(has_kind, o->kind) != 0 ||
	    strcmp(has_key, o->key) != 0)
		return broken_manifest(path, "it is of another format, kind or key", e);
	if (!json_is_array(files) || json_array_size(files) == 0)
		return broken_manifest(path, "it lists no files", e);
	*ret = doc;
	doc = NULL;
	return 0;
}

static int verify_file(const struct store_object *o, const json_t *row, const char *manifest,
		       struct err *e)
{
	const char *rel, *want;
	json_int_t size;

	if (json_unpack((json_t *)row, "{s:s, s:I, s:s !}", "path", &rel, "size", &size, "sha256",
			&want) < 0 ||
	    !path_is_safe_relative(rel) || !digest_valid_hex(want))
		return broken_manifest(
			manifest, "an entry needs a path inside the object, a size and a sha256",
			e);
	AUTO_ARENA struct arena a = {0};
	const char *path = path_join(&a, o->path, rel);
	struct stat st;
	if (lstat(path, &st) < 0)
		return missing(path, e);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "not a regular file: '%s'", path);
	char got[DIGEST_HEX_LEN + 1];
	if (digest_file(path, got, e) < 0)
		return -1;
	if (st.st_size != size || strcmp(got, want) != 0)
		return err_set(e, ERR_INTEGRITY,
			       "'%s' has sha256 %s and %lld bytes, not %s and %lld", path, got,
			       (long long)st.st_size, want, (long long)size);
	return 0;
}

int store_check_extra(const char *top, const struct strlist *known, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist there = {0};

	if (fs_list_tree(TRUSTED, top, &a, &there, e) < 0)
		return -1;
	for (size_t i = 0; i < there.count; i++)
		if (!text_find(there.items[i], known->items, known->count, sizeof(*known->items)))
			return err_set(e, ERR_INTEGRITY, "'%s/%s' is not in the manifest", top,
				       there.items[i]);
	return 0;
}

static int verify_object(const struct store_object *o, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = NULL;
	struct strlist paths = {0};
	const char *manifest = path_join(&a, o->path, STORE_MANIFEST);

	if (store_read_manifest(o, manifest, &doc, e) < 0)
		return -1;
	const json_t *files = json_object_get(doc, "files"), *row;
	size_t i;
	json_array_foreach(files, i, row)
	{
		if (run_check(run, e) < 0 || verify_file(o, row, manifest, e) < 0)
			return -1;
		strlist_ref(&paths, &a, json_member(row, "path"));
	}

	strlist_ref(&paths, &a, STORE_MANIFEST);
	strlist_sort(&paths);
	for (i = 1; i < paths.count; i++)
		if (strcmp(paths.items[i], paths.items[i - 1]) == 0)
			return broken_manifest(manifest, "it lists a file twice", e);
	if ((strcmp(o->kind, STORE_SOURCE) == 0 && store_check_source(o->key, files, e) < 0) ||
	    (strcmp(o->kind, STORE_WHEEL) == 0 && store_check_wheel(o->path, o->key, e) < 0))
		return -1;
	return store_check_extra(o->path, &paths, e);
}

int store_verify(const struct store_object *o, const struct run *run, struct err *e)
{
	if (store_check_name(o->kind, o->key, e) < 0)
		return -1;
	bool world = strcmp(o->kind, STORE_WORLD) == 0;
	if ((world ? store_world_verify : verify_object)(o, run, e) < 0) {
		if (e->kind == ERR_INTEGRITY && !e->hint[0])
			err_hint(e, "'ptbuild cache verify' moves it to the quarantine, and "
				    "ptbuild recreates it when needed");
		return err_wrap(e, "%s %.12s", o->kind, o->key);
	}

	return 0;
}
