#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/os.h"
#include "base/path.h"
#include "cache/store_internal.h"

char *store_object_path(const struct store *s, const char *kind, const char *key, struct arena *a)
{
	return arena_printf(a, "%s/objects/%s/%s", s->dir, kind, key);
}

void store_touch(const char *path)
{
	if (utimensat(AT_FDCWD, path, NULL, 0) < 0)
		return;
}

int store_find(struct store *s, const char *kind, const char *key, struct arena *a, const char **ret, struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	const char *path = store_object_path(s, kind, key, a);
	const char *manifest = path_join(a, path, STORE_MANIFEST);
	struct stat st;
	if (stat(manifest, &st) < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			return err_errno(e, ERR_SYSTEM, "cannot look for '%s'", manifest);
		*ret = NULL;
		return 0;
	}
	store_touch(manifest);
	*ret = path;
	return 0;
}

struct listing { /* of the files below a directory that becomes or is an object */
	const char *top;
	json_t *files;
	struct arena *arena;
};

static int list_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct listing *l = user;
	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_CONFIG, "'%s/%s' is no regular file: the store takes only files and directories", l->top, rel);
	if (strcmp(rel, STORE_MANIFEST) == 0)
		return err_set(e, ERR_CONFIG, "'%s/%s' is a name that the store keeps for itself", l->top, rel);
	char hex[DIGEST_HEX_LEN + 1];
	if (digest_file(path_join(l->arena, l->top, rel), hex, e) < 0)
		return -1;
	json_t *row = json_pack("{s:s, s:I, s:s}", "path", rel, "size", (json_int_t)st->st_size, "sha256", hex);
	if (!row || json_array_append_new(l->files, row) < 0)
		return err_set(e, ERR_CONFIG, "the name '%s' in '%s' is not UTF-8", rel, l->top);
	return 0;
}

static int check_source(const char *key, const json_t *files, struct err *e)
{
	if (json_array_size(files) != 1)
		return err_set(e, ERR_INTEGRITY, "a source is one file, not %zu", json_array_size(files));
	const json_t *file = json_array_get(files, 0);
	const char *got = json_string_value(json_object_get(file, "sha256"));
	if (strcmp(got, key) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' has sha256 %s, not %s", json_string_value(json_object_get(file, "path")), got, key);
	return 0;
}

static int write_manifest(const char *kind, const char *key, const char *stage, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *files = json_array();
	struct listing l = {stage, files, &a};
	if (fs_walk(stage, list_file, &l, e) < 0)
		return -1;
	if (json_array_size(files) == 0)
		return err_set(e, ERR_CONFIG, "'%s' is empty: there is nothing to publish", stage);
	if (strcmp(kind, STORE_SOURCE) == 0 && check_source(key, files, e) < 0)
		return -1;
	AUTO_JSON json_t *doc = json_pack("{s:i, s:s, s:s, s:O}", "format", STORE_FORMAT, "kind", kind, "key", key, "files", files);
	return json_write(doc, path_join(&a, stage, STORE_MANIFEST), e);
}

static int quarantine_path(struct store *s, const char *kind, const char *key, const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *to;
	if (fs_temp_dir(path_join(&a, s->dir, "quarantine"), arena_printf(&a, "%s-%s-", kind, key), &a, &to, e) < 0)
		return -1;
	if (fs_rename(path, to, e) < 0) {
		remove(to);
		return -1;
	}
	return 0;
}

/* Renames the stage into place. *ret_taken: an object was there already. What is there without a manifest was never published: it gives way. */
static int put_in_place(struct store *s, const char *kind, const char *key, const char *stage, const char *to, bool *ret_taken,
			struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	for (int attempt = 0; attempt < 10; attempt++) {
		*ret_taken = false;
		if (rename(stage, to) == 0)
			return fs_sync_dir(path_dir(&a, to), e);
		if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
			return err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", stage, to);
		*ret_taken = true;
		if (fs_exists(path_join(&a, to, STORE_MANIFEST)))
			return 0;
		if (quarantine_path(s, kind, key, to, e) < 0 && fs_exists(to))
			return -1;
		err_clear(e);
	}
	return err_set(e, ERR_SYSTEM, "cannot publish '%s': something keeps taking its place", to);
}

int store_publish(struct store *s, const char *kind, const char *key, const char *stage, struct arena *a, const char **ret, struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	const char *to = store_object_path(s, kind, key, a);
	bool taken;
	if (write_manifest(kind, key, stage, e) < 0 || fs_sync_tree(stage, e) < 0 || fs_mkdirs(path_dir(a, to), e) < 0 ||
	    fs_sync_dir(path_join(a, s->dir, "objects"), e) < 0 || put_in_place(s, kind, key, stage, to, &taken, e) < 0) {
		struct err ignored = {0};
		if (fs_remove_tree(path_join(a, stage, STORE_MANIFEST), &ignored) <
		    0) /* so that the caller may mend the stage and try again */
			err_clear(&ignored);
		return err_wrap(e, "cannot publish the %s %.12s", kind, key);
	}
	if (taken) {
		store_touch(path_join(a, to, STORE_MANIFEST));
		store_drop_stage(s, stage);
	} else {
		store_forget_stage(s, stage);
	}
	*ret = to;
	return 0;
}

struct object_array {
	struct store_object *items;
	size_t count;
	size_t cap;
};

static struct store_object *object_add(struct object_array *l, struct arena *a)
{
	if (l->count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;
		struct store_object *items = arena_array(a, cap, sizeof(*items));
		if (l->count)
			memcpy(items, l->items, l->count * sizeof(*items));
		l->items = items;
		l->cap = cap;
	}
	return &l->items[l->count++];
}

/* An object that another process deletes meanwhile is left out. */
static int list_object(const char *kind, const char *key, const char *path, struct arena *a, struct object_array *l, struct err *e)
{
	struct stat st;
	uint64_t bytes;
	if (stat(path_join(a, path, STORE_MANIFEST), &st) < 0 && stat(path, &st) < 0)
		return 0;
	if (fs_tree_size(path, &bytes, e) < 0) {
		if (fs_exists(path))
			return -1;
		err_clear(e);
		return 0;
	}
	*object_add(l, a) = (struct store_object){kind, key, path, bytes, st.st_mtim.tv_sec};
	return 0;
}

int store_list(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count, struct err *e)
{
	const char *top = path_join(a, s->dir, "objects");
	struct strlist kinds = {0};
	struct object_array l = {0};
	if (fs_list(top, a, &kinds, e) < 0)
		return -1;
	for (size_t i = 0; i < kinds.count; i++) {
		const char *dir = path_join(a, top, kinds.items[i]);
		struct strlist keys = {0};
		if (fs_list(dir, a, &keys, e) < 0)
			return -1;
		for (size_t j = 0; j < keys.count; j++) {
			struct err ignored = {0};
			if (store_check_name(kinds.items[i], keys.items[j], &ignored) < 0)
				continue; /* not ours */
			if (list_object(kinds.items[i], keys.items[j], path_join(a, dir, keys.items[j]), a, &l, e) < 0)
				return -1;
		}
	}
	*ret = l.items;
	*ret_count = l.count;
	return 0;
}

static int broken_manifest(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "'%s' is no manifest: %s", path, what);
}

static int read_manifest(const struct store_object *o, const char *path, json_t **ret, struct err *e)
{
	AUTO_JSON json_t *doc = NULL;
	if (!fs_exists(path))
		return err_set(e, ERR_INTEGRITY, "'%s' is missing", path);
	if (json_read(path, &doc, e) < 0)
		return -1;
	const char *kind, *key;
	int format;
	json_t *files;
	if (json_unpack(doc, "{s:i, s:s, s:s, s:o !}", "format", &format, "kind", &kind, "key", &key, "files", &files) < 0)
		return broken_manifest(path, "it needs format, kind, key and files", e);
	if (format != STORE_FORMAT || strcmp(kind, o->kind) != 0 || strcmp(key, o->key) != 0)
		return broken_manifest(path, "its format, kind or key is another's", e);
	if (!json_is_array(files) || json_array_size(files) == 0)
		return broken_manifest(path, "it lists no files", e);
	*ret = doc;
	doc = NULL;
	return 0;
}

static int verify_file(const struct store_object *o, const json_t *row, const char *manifest, struct err *e)
{
	const char *rel, *want;
	json_int_t size;
	if (json_unpack((json_t *)row, "{s:s, s:I, s:s !}", "path", &rel, "size", &size, "sha256", &want) < 0 ||
	    !path_is_safe_relative(rel) || !digest_valid_hex(want))
		return broken_manifest(manifest, "an entry needs a path inside the object, a size and a sha256", e);
	AUTO_ARENA struct arena a = {0};
	const char *path = path_join(&a, o->path, rel);
	struct stat st;
	if (lstat(path, &st) < 0)
		return err_set(e, ERR_INTEGRITY, "'%s' is missing", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "'%s' is no regular file", path);
	char got[DIGEST_HEX_LEN + 1];
	if (digest_file(path, got, e) < 0)
		return -1;
	if (st.st_size != size || strcmp(got, want) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' has sha256 %s and %lld bytes, not %s and %lld", path, got, (long long)st.st_size,
			       want, (long long)size);
	return 0;
}

struct known_files {
	const char *top;
	json_t *paths; /* object: path -> true */
};

static int find_extra(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct known_files *k = user;
	(void)st;
	if (strcmp(rel, STORE_MANIFEST) == 0 || json_object_get(k->paths, rel))
		return 0;
	return err_set(e, ERR_INTEGRITY, "'%s/%s' is not in the manifest", k->top, rel);
}

static int verify_object(const struct store_object *o, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = NULL;
	AUTO_JSON json_t *paths = json_object();
	const char *manifest = path_join(&a, o->path, STORE_MANIFEST);
	if (read_manifest(o, manifest, &doc, e) < 0)
		return -1;
	const json_t *files = json_object_get(doc, "files"), *row;
	size_t i;
	json_array_foreach(files, i, row)
	{
		if (run_check(run, e) < 0 || verify_file(o, row, manifest, e) < 0)
			return -1;
		json_object_set_new(paths, json_string_value(json_object_get(row, "path")), json_true());
	}
	if (json_object_size(paths) != json_array_size(files))
		return broken_manifest(manifest, "it lists a file twice", e);
	if (strcmp(o->kind, STORE_SOURCE) == 0 && check_source(o->key, files, e) < 0)
		return -1;
	struct known_files known = {o->path, paths};
	return fs_walk(o->path, find_extra, &known, e);
}

int store_verify(struct store *s, const struct store_object *o, const struct run *run, struct err *e)
{
	(void)s;
	if (store_check_name(o->kind, o->key, e) < 0)
		return -1;
	if (verify_object(o, run, e) < 0) {
		if (e->kind == ERR_INTEGRITY && !e->hint[0])
			err_hint(e, "'ptbuild cache verify --repair' moves it out of the way, so that it is made anew");
		return err_wrap(e, "%s %.12s", o->kind, o->key);
	}
	return 0;
}

int store_quarantine(struct store *s, const struct store_object *o, struct err *e)
{
	if (store_check_name(o->kind, o->key, e) < 0)
		return -1;
	AUTO_ARENA struct arena a = {0};
	return quarantine_path(s, o->kind, o->key, store_object_path(s, o->kind, o->key, &a), e);
}

int store_discard(struct store *s, const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *stage;
	if (store_stage(s, &a, &stage, e) < 0)
		return -1;
	int rc = rename(path, path_join(&a, stage, "gone"));
	if (rc < 0)
		err_errno(e, ERR_SYSTEM, "cannot remove '%s'", path);
	store_drop_stage(s, stage);
	return rc;
}

int store_remove(struct store *s, const struct store_object *o, struct err *e)
{
	if (store_check_name(o->kind, o->key, e) < 0)
		return -1;
	AUTO_ARENA struct arena a = {0};
	return store_discard(s, store_object_path(s, o->kind, o->key, &a), e);
}
