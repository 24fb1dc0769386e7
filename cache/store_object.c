#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

int store_find_look(struct store *s, const char *kind, const char *key, bool whole, struct arena *a, const char **ret,
		    struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	const char *path = store_object_path(s->dir, kind, key, a);
	bool usable;
	if (store_is_usable(s, kind, key, path, whole, &usable, e) < 0)
		return -1;
	if (usable)
		store_touch(path_join(a, path, strcmp(kind, STORE_WORLD) == 0 ? STORE_WORLD_FACTS : STORE_MANIFEST));
	for (size_t i = 0; i < s->fallbacks.count && !usable; i++) {
		path = store_object_path(s->fallbacks.items[i], kind, key, a);
		if (store_is_usable(s, kind, key, path, whole, &usable, e) < 0)
			return -1;
		if (usable)
			store_touch(store_stamp_path(s, kind, key, a));
	}
	*ret = usable ? path : NULL;
	return 0;
}

int store_find(struct store *s, const char *kind, const char *key, struct arena *a, const char **ret, struct err *e)
{
	return store_find_look(s, kind, key, true, a, ret, e);
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
		return err_set(e, ERR_CONFIG,
			       "not a regular file: '%s/%s' (the store takes only files and directories)", l->top, rel);
	if (strcmp(rel, STORE_MANIFEST) == 0)
		return err_set(e, ERR_CONFIG, "'%s/%s' has a name that the store reserves", l->top, rel);
	char hex[DIGEST_HEX_LEN + 1];
	if (digest_file(path_join(l->arena, l->top, rel), hex, e) < 0)
		return -1;
	json_t *row = json_pack("{s:s, s:I, s:s}", "path", rel, "size", (json_int_t)st->st_size, "sha256", hex);
	if (!row || json_array_append_new(l->files, row) < 0)
		return err_set(e, ERR_CONFIG, "the name '%s' in '%s' is not UTF-8", rel, l->top);
	return 0;
}

static int write_manifest(const char *kind, const char *key, const char *stage, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *files = json_array();
	struct listing l = {stage, files, &a};
	if (fs_walk(TRUSTED, stage, list_file, &l, e) < 0)
		return -1;
	if (json_array_size(files) == 0)
		return err_set(e, ERR_CONFIG, "'%s' is empty: there is nothing to publish", stage);
	if (strcmp(kind, STORE_SOURCE) == 0 && store_check_source(key, files, e) < 0)
		return -1;
	AUTO_JSON json_t *doc =
		json_pack("{s:i, s:s, s:s, s:O}", "format", STORE_FORMAT, "kind", kind, "key", key, "files", files);
	return json_write(doc, TRUSTED, path_join(&a, stage, STORE_MANIFEST), e);
}

int store_put_in_place(struct store *s, const char *kind, const char *key, const char *stage, const char *to,
		       bool *ret_taken, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	for (int attempt = 0; attempt < 10; attempt++) {
		*ret_taken = false;
		if (rename(stage, to) == 0)
			return fs_sync_dir(path_dir(&a, to), e);
		if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
			return err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", stage, to);
		if (store_is_usable(s, kind, key, to, true, ret_taken, e) < 0)
			return -1;
		if (*ret_taken)
			return 0;
		const struct store_object o = {.kind = kind, .key = key, .path = to};
		if (store_quarantine(s, &o, e) < 0 && fs_exists(TRUSTED, to))
			return -1;
		err_clear(e);
	}
	return err_set(e, ERR_SYSTEM, "cannot publish '%s': something keeps taking its place", to);
}

int store_publish(struct store *s, const char *kind, const char *key, const char *stage, struct arena *a,
		  const char **ret, struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	const char *to = store_object_path(s->dir, kind, key, a);
	bool taken;
	if (write_manifest(kind, key, stage, e) < 0 || fs_sync_tree(stage, e) < 0 ||
	    fs_mkdirs(TRUSTED, path_dir(a, to), e) < 0 || fs_sync_dir(path_join(a, s->dir, "objects"), e) < 0 ||
	    store_put_in_place(s, kind, key, stage, to, &taken, e) < 0) {
		(void)unlink(path_join(a, stage, STORE_MANIFEST)); /* the caller may mend the stage and try again */
		return err_wrap(e, "cannot publish the %s %.12s", kind, key);
	}
	if (taken) {
		store_touch(path_join(a, to, STORE_MANIFEST));
		store_drop_stage(s, stage);
	} else {
		store_forget_stage(s, stage);
		store_stamp(s, kind, key, to);
	}
	*ret = to;
	return 0;
}

struct store_object *store_objects_next(struct store_objects *l)
{
	l->items = arena_room(l->arena, l->items, l->count, &l->cap, 32, sizeof(*l->items));
	return &l->items[l->count++];
}

int store_objects_add(struct store_objects *l, const char *kind, const char *key, const char *path,
		      const char *manifest, struct err *e)
{
	struct stat st, use;
	if (lstat(path, &st) < 0)
		return 0;
	uint64_t bytes = (uint64_t)st.st_size;
	bool said = strcmp(kind, STORE_WORLD) == 0 && store_world_bytes(key, path, &bytes);
	if (!said && S_ISDIR(st.st_mode) && fs_tree_size_most(path, &bytes, e) < 0) {
		if (fs_exists(TRUSTED, path))
			return -1;
		err_clear(e);
		return 0;
	}
	bool marked = manifest && stat(path_join(l->arena, path, manifest), &use) == 0;
	*store_objects_next(l) =
		(struct store_object){kind, key, path, bytes, marked ? use.st_mtim.tv_sec : st.st_mtim.tv_sec};
	return 0;
}

/* The objects of one kind that lie in `dir`. */
static int list_kind(struct store_objects *l, const char *kind, const char *dir, const char *manifest, struct err *e)
{
	struct strlist keys = {0};
	if (fs_list(TRUSTED, dir, l->arena, &keys, e) < 0)
		return -1;
	for (size_t i = 0; i < keys.count; i++) {
		if (store_check_name(kind, keys.items[i], ERR_IGNORED) == 0 && /* else it is not ours */
		    store_objects_add(l, kind, keys.items[i], path_join(l->arena, dir, keys.items[i]), manifest, e) < 0)
			return -1;
	}
	return 0;
}

int store_list(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count, struct err *e)
{
	const char *top = path_join(a, s->dir, "objects");
	struct strlist kinds = {0};
	struct store_objects l = {.arena = a};
	if (fs_list(TRUSTED, top, a, &kinds, e) < 0)
		return -1;
	for (size_t i = 0; i < kinds.count; i++)
		if (list_kind(&l, kinds.items[i], path_join(a, top, kinds.items[i]), STORE_MANIFEST, e) < 0)
			return -1;
	if (list_kind(&l, STORE_WORLD, path_join(a, s->dir, "worlds"), STORE_WORLD_FACTS, e) < 0)
		return -1;
	*ret = l.items;
	*ret_count = l.count;
	return 0;
}

int store_quarantine(struct store *s, const struct store_object *o, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *to;
	struct stat st;
	if (store_check_name(o->kind, o->key, e) < 0)
		return -1;
	const char *path = store_object_path(s->dir, o->kind, o->key, &a);
	(void)unlink(store_stamp_path(s, o->kind, o->key, &a));
	if (fs_temp_dir(path_join(&a, s->dir, "quarantine"), arena_printf(&a, "%s-%s-", o->kind, o->key), &a, &to, e) <
	    0)
		return -1;
	/* A directory takes the place of the empty one; anything else that stands where an object belongs goes in. */
	bool dir = lstat(path, &st) < 0 || S_ISDIR(st.st_mode);
	if (fs_rename(path, dir ? to : path_join(&a, to, "file"), e) < 0) {
		remove(to);
		return -1;
	}
	return 0;
}

int store_remove(struct store *s, const struct store_object *o, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *stage;
	if (store_stage(s, &a, &stage, e) < 0)
		return -1;
	(void)unlink(store_stamp_path(s, o->kind, o->key, &a));
	int rc = rename(o->path, path_join(&a, stage, "gone"));
	if (rc < 0)
		err_errno(e, ERR_SYSTEM, "cannot remove '%s'", o->path);
	store_drop_stage(s, stage);
	return rc;
}
