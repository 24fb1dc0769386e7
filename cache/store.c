#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

/* The file in an object whose time is that of its last use. */
static const char *marker_of(const char *kind)
{
	return strcmp(kind, STORE_WORLD) == 0 ? STORE_WORLD_FACTS : STORE_MANIFEST;
}

int store_find_look(struct store *s, const char *kind, const char *key, enum store_look look,
		    struct arena *a, const char **ret, struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	struct store_object o = {.kind = kind, .key = key};
	o.path = store_object_path(s->dir, kind, key, a);
	int usable = store_is_usable(s, &o, look, e);
	if (usable > 0)
		store_touch(path_join(a, o.path, marker_of(kind)));
	for (size_t i = 0; i < s->fallbacks.count && usable == 0; i++) {
		o.path = store_object_path(s->fallbacks.items[i], kind, key, a);
		usable = store_is_usable(s, &o, look, e);
		if (usable > 0)
			store_touch(store_stamp_path(s, kind, key, a));
	}

	if (usable < 0)
		return -1;
	*ret = usable ? o.path : NULL;
	return 0;
}

int store_find(struct store *s, const char *kind, const char *key, struct arena *a,
	       const char **ret, struct err *e)
{
	return store_find_look(s, kind, key, STORE_LOOK_WHOLE, a, ret, e);
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
		return err_set(
			e, ERR_CONFIG,
			"not a regular file: '%s/%s' (a store holds only files and directories)",
			l->top, rel);
	if (strcmp(rel, STORE_MANIFEST) == 0)
		return err_set(e, ERR_CONFIG, "'%s/%s' has a name that the store reserves", l->top,
			       rel);
	char hex[DIGEST_HEX_LEN + 1];
	if (digest_file(path_join(l->arena, l->top, rel), hex, e) < 0)
		return -1;
	json_t *row = json_pack("{s:s, s:I, s:s}", "path", rel, "size", (json_int_t)st->st_size,
				"sha256", hex);
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
	AUTO_JSON json_t *doc = json_pack("{s:i, s:s, s:s, s:O}", "format", STORE_FORMAT, "kind",
					  kind, "key", key, "files", files);
	return json_write(doc, TRUSTED, path_join(&a, stage, STORE_MANIFEST), e);
}

int store_put_in_place(struct store *s, const struct store_object *o, const char *stage,
		       struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *to = o->path;

	for (int attempt = 0; attempt < 10; attempt++) {
		if (rename(stage, to) == 0) {
			if (fs_sync_dir(path_dir(&a, to), e) < 0)
				return -1;
			store_forget_stage(s, stage);
			store_stamp(s, o);
			return 0;
		}

		if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
			return err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", stage, to);
		int taken = store_is_usable(s, o, STORE_LOOK_WHOLE, e);
		if (taken < 0)
			return -1;
		if (taken) {
			store_touch(path_join(&a, to, marker_of(o->kind)));
			store_drop_stage(s, stage);
			return 0;
		}

		if (store_quarantine(s, o, e) < 0 && fs_exists(TRUSTED, to))
			return -1;
		err_clear(e);
	}

	return err_set(e, ERR_SYSTEM, "cannot publish '%s': another process keeps creating it", to);
}

int store_publish(struct store *s, const char *kind, const char *key, const char *stage,
		  struct arena *a, const char **ret, struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	const char *to = store_object_path(s->dir, kind, key, a);
	int rc = write_manifest(kind, key, stage, e);
	if (rc == 0)
		rc = fs_sync_tree(stage, e);
	if (rc == 0)
		rc = fs_mkdirs(TRUSTED, path_dir(a, to), e);
	if (rc == 0)
		rc = fs_sync_dir(path_join(a, s->dir, "objects"), e);
	if (rc == 0)
		rc = store_put_in_place(
			s, &(struct store_object){.kind = kind, .key = key, .path = to}, stage, e);
	if (rc < 0) {
		/* the caller may mend the stage and try again */
		(void)unlink(path_join(a, stage, STORE_MANIFEST));
		return err_wrap(e, "cannot publish the %s %.12s", kind, key);
	}

	*ret = to;
	return 0;
}

struct store_object *store_objects_next(struct store_objects *l)
{
	l->items = arena_room(l->arena, l->items, l->count, &l->cap, 32, sizeof(*l->items));
	return &l->items[l->count++];
}

int store_objects_add(struct store_objects *l, const struct store_object *o, const char *manifest,
		      struct err *e)
{
	const char *path = o->path;
	struct stat st, use;

	if (lstat(path, &st) < 0)
		return 0;
	uint64_t bytes = (uint64_t)st.st_size;
	bool said = strcmp(o->kind, STORE_WORLD) == 0 && store_world_bytes(o->key, path, &bytes);
	if (!said && S_ISDIR(st.st_mode) && fs_tree_size_most(path, &bytes, e) < 0) {
		if (fs_exists(TRUSTED, path))
			return -1;
		err_clear(e);
		return 0;
	}

	bool marked = manifest && stat(path_join(l->arena, path, manifest), &use) == 0;
	*store_objects_next(l) = (struct store_object){
		o->kind, o->key, path, bytes, marked ? use.st_mtim.tv_sec : st.st_mtim.tv_sec};
	return 0;
}

/* Adds the objects of one kind that are in `dir`. */
static int list_kind(struct store_objects *l, const char *kind, const char *dir, struct err *e)
{
	struct strlist keys = {0};

	if (fs_list(TRUSTED, dir, l->arena, &keys, e) < 0)
		return -1;
	for (size_t i = 0; i < keys.count; i++) {
		const struct store_object o = {.kind = kind,
					       .key = keys.items[i],
					       .path = path_join(l->arena, dir, keys.items[i])};
		/* else it is not ours */
		if (store_check_name(kind, o.key, ERR_IGNORED) == 0 &&
		    store_objects_add(l, &o, marker_of(kind), e) < 0)
			return -1;
	}

	return 0;
}

int store_list(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count,
	       struct err *e)
{
	const char *top = path_join(a, s->dir, "objects");
	struct strlist kinds = {0};
	struct store_objects l = {.arena = a};

	if (fs_list(TRUSTED, top, a, &kinds, e) < 0)
		return -1;
	for (size_t i = 0; i < kinds.count; i++) {
		const char *dir = path_join(a, top, kinds.items[i]);
		if (fs_is_dir(TRUSTED, dir) && list_kind(&l, kinds.items[i], dir, e) < 0)
			return -1;
	}

	if (list_kind(&l, STORE_WORLD, path_join(a, s->dir, "worlds"), e) < 0)
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
	if (fs_temp_dir(path_join(&a, s->dir, "quarantine"),
			arena_printf(&a, "%s-%s-", o->kind, o->key), &a, &to, e) < 0)
		return -1;
	/* A directory replaces the empty one; anything else in an object's path goes inside. */
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

#define FORMAT_PREFIX "ptbuild store "

const char *store_dir(const struct store *s)
{
	return s->dir;
}

/* A directory with files and no format file is not a store, and garbage collection would delete its
 * files. Another process may create the layout meanwhile: it writes the format first, so seeing the
 * rest implies seeing the format. */
static int adopt_directory(const char *dir, const char *format, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};

	if (fs_list(TRUSTED, dir, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (names.items[i][0] == '.' || strncmp(names.items[i], "format", 6) == 0)
			continue;
		if (fs_exists(TRUSTED, format))
			return 0;
		err_set(e, ERR_CONFIG, "not a store: '%s' holds '%s' and no format file", dir,
			names.items[i]);
		return err_hint(e, "name an empty or new directory with --cache");
	}

	char line[64];
	int n = snprintf(line, sizeof(line), FORMAT_PREFIX "%d\n", STORE_FORMAT);
	return fs_write(TRUSTED, format, line, (size_t)n, 0644, e);
}

static int check_version(const char *file, const char *dir, struct err *e)
{
	AUTO_BUF struct buf text = {0};

	if (fs_read(TRUSTED, file, 256, &text, e) < 0)
		return -1;
	const char *s = buf_cstr(&text);
	size_t prefix = strlen(FORMAT_PREFIX);
	char *end = NULL;
	unsigned long version =
		strncmp(s, FORMAT_PREFIX, prefix) == 0 ? strtoul(s + prefix, &end, 10) : 0;
	if (!end || end == s + prefix || strcmp(end, "\n") != 0) {
		err_set(e, ERR_CONFIG, "'%s' does not hold a store's format line", file);
		return err_hint(e,
				"the store of a ptbuild of this version has the line '%s%d' in it; "
				"name that one with --cache",
				FORMAT_PREFIX, STORE_FORMAT);
	}

	if (version != STORE_FORMAT) {
		err_set(e, ERR_CONFIG, "the store '%s' has format %lu, this program knows %d", dir,
			version, STORE_FORMAT);
		return err_hint(
			e, "use the ptbuild that made it, or name another directory with --cache");
	}

	return 0;
}

static int check_format(const char *dir, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *path = path_join(&a, dir, "format");

	return !fs_exists(TRUSTED, path) && adopt_directory(dir, path, e) < 0
		       ? -1
		       : check_version(path, dir, e);
}

/* In a sticky directory, such as the top of a tmpfs, nobody can replace what is the owner's. */
static int check_mode(const char *dir, const struct stat *st, struct err *e)
{
	if ((st->st_mode & (S_IWOTH | S_ISVTX)) != S_IWOTH)
		return 0;
	err_set(e, ERR_POLICY, "store '%s' is world-writable", dir);
	return err_hint(e, "run: chmod o-w '%s'", dir);
}

/* Who can write in a store decides what is built with
 * it: objects are believed, trees are gone on with. */
static int check_owner(const char *dir, struct err *e)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot look at '%s'", dir);
	if (st.st_uid != geteuid()) {
		err_set(e, ERR_POLICY,
			"store '%s' is owned by user %lu, but ptbuild runs as user %lu", dir,
			(unsigned long)st.st_uid, (unsigned long)geteuid());
		return err_hint(e,
				"use your own store with --cache, and read from this one with "
				"--lower-store '%s'",
				dir);
	}

	return check_mode(dir, &st, e);
}

/* Two opens at once may both make the layout: every step of it may be repeated. */
static int make_layout(const char *dir, struct err *e)
{
	static const char *const parts[] = {"objects",    "tmp",    "locks",  "build",
					    "quarantine", "stamps", "worlds", STORE_COMPILED};
	AUTO_ARENA struct arena a = {0};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const char *part = path_join(&a, dir, parts[i]);
		struct stat st;
		if (fs_mkdirs(TRUSTED, part, e) < 0)
			return -1;
		if (lstat(part, &st) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot look at '%s'", part);
		if (!S_ISDIR(st.st_mode)) {
			err_set(e, ERR_POLICY,
				"'%s' is a symbolic link: ptbuild would write to "
				"and delete from its target",
				part);
			return err_hint(
				e,
				"remove it; the store as a whole may be a link, its parts may not");
		}

		if (st.st_uid != geteuid())
			return err_set(e, ERR_POLICY,
				       "'%s' is owned by user %lu, not by the owner of the store",
				       part, (unsigned long)st.st_uid);
	}

	const char *tmp = path_join(&a, dir, "tmp");
	if (access(tmp, W_OK | X_OK) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write in '%s'", tmp);
	return 0;
}

static int take(const char *dir, const struct run *run, struct store **ret, struct err *e)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->dir = realpath(dir, NULL);
	if (!s->dir) {
		free(s);
		return err_errno(e, ERR_SYSTEM, "cannot open the store '%s'", dir);
	}

	pthread_mutex_init(&s->mutex, NULL);
	s->run = *run;
	*ret = s;
	return 0;
}

/* Creates what is missing of a store, and checks what is there. */
static int prepare(const char *dir, const struct run *run, struct err *e)
{
	if (fs_mkdirs(TRUSTED, dir, e) < 0 || check_owner(dir, e) < 0)
		return -1;
	if (check_format(dir, e) < 0 || make_layout(dir, e) < 0)
		return -1;
	return store_remove_dead_stages(dir, run, e);
}

int store_open(const char *dir, const struct run *run, struct store **ret, struct err *e)
{
	if (prepare(dir, run, e) < 0) {
		if (e->kind == ERR_SYSTEM && !e->hint[0])
			err_hint(e,
				 "the store must be writable; name another directory with --cache");
		return err_wrap(e, "cannot open the store '%s'", dir);
	}

	return take(dir, run, ret, e);
}

/* By the rights of the user or the mount; anything else that is wrong is for store_open to say. */
static bool is_read_only(const char *dir)
{
	AUTO_ARENA struct arena a = {0};
	const char *const places[] = {dir, path_join(&a, dir, "tmp")};

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], W_OK | X_OK) < 0 &&
		    (errno == EACCES || errno == EROFS || errno == EPERM))
			return true;
	return false;
}

/* Only its owner may have written in it. */
static int check_read_only(const char *dir, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *format = path_join(&a, dir, "format");
	struct stat st;

	if (stat(dir, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot look at '%s'", dir);
	if (check_mode(dir, &st, e) < 0)
		return -1;
	if (stat(format, &st) < 0 && errno == ENOENT) {
		err_set(e, ERR_CONFIG, "not a store: '%s' has no format file", dir);
		return err_hint(e, "name the directory of a store with --cache");
	}

	return check_version(format, dir, e);
}

int store_look(const char *dir, const struct run *run, struct store **ret, struct err *e)
{
	if (!is_read_only(dir))
		return store_open(dir, run, ret, e);
	if (check_read_only(dir, e) < 0)
		return err_wrap(e, "cannot open the store '%s'", dir);
	if (take(dir, run, ret, e) < 0)
		return -1;
	(*ret)->read_only = true;
	return 0;
}

bool store_is_read_only(const struct store *s)
{
	return s->read_only;
}

int store_check_writable(const struct store *s, struct err *e)
{
	if (!s->read_only)
		return 0;
	err_set(e, ERR_SYSTEM, "the store '%s' cannot be written", s->dir);
	return err_hint(e,
			"use another directory with --cache, and read from this one with "
			"--lower-store '%s'",
			s->dir);
}

void store_close(struct store *s)
{
	if (!s)
		return;
	while (s->stages_count)
		store_drop_stage(s, s->stages[s->stages_count - 1].path);
	pthread_mutex_destroy(&s->mutex);
	arena_release(&s->arena);
	free(s->dir);
	free(s);
}

/* What cannot be used now, such as an empty mount, is left out with a warning. */
static int leave_out(const struct store *s, const char *dir, const char *why)
{
	log_warn(s->run.log, "the lower store '%s' is left out: %s", dir, why);
	return 0;
}

int store_add_fallback(struct store *s, const char *dir, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	AUTO_FREE char *real = realpath(dir, NULL);

	if (!real)
		return leave_out(s, dir, strerror(errno));
	if (strcmp(real, s->dir) == 0) {
		err_set(e, ERR_USAGE, "'%s' cannot be its own lower store", dir);
		return err_hint(e, "--lower-store names another directory than --cache");
	}

	if (fs_list(TRUSTED, real, &a, &names, e) < 0) {
		leave_out(s, dir, e->msg);
		err_clear(e);
		return 0;
	}

	if (names.count == 0)
		return leave_out(s, dir, "it is empty");
	const char *format = path_join(&a, real, "format");
	if (!fs_exists(TRUSTED, format)) {
		err_set(e, ERR_CONFIG, "not a store: '%s' has no format file", dir);
		return err_hint(
			e, "--lower-store names the directory that was another ptbuild's --cache");
	}

	if (check_version(format, real, e) < 0)
		return -1;
	if (!strlist_contains(&s->fallbacks, real))
		strlist_add(&s->fallbacks, &s->arena, real);
	return 0;
}

size_t store_fallbacks(const struct store *s, const char *const **ret)
{
	*ret = s->fallbacks.items;
	return s->fallbacks.count;
}

int store_lock(struct store *s, const char *kind, const char *key, const struct run *run,
	       struct lock *ret, struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	AUTO_ARENA struct arena a = {0};
	return lock_acquire(ret, store_lock_path(s, kind, key, &a), false, run, e);
}

int store_build_dir(struct store *s, const char *compile_key, struct arena *a, const char **ret,
		    struct err *e)
{
	if (store_check_name(STORE_BUILD, compile_key, e) < 0)
		return -1;
	const char *path = arena_printf(a, "%s/build/%s", s->dir, compile_key);
	if (fs_mkdirs(TRUSTED, path, e) < 0)
		return -1;
	store_touch(path);
	*ret = path;
	return 0;
}

#define KIND_MAX 32

int store_check_name(const char *kind, const char *key, struct err *e)
{
	size_t n = strspn(kind, "abcdefghijklmnopqrstuvwxyz");

	if (n == 0 || n > KIND_MAX || kind[n])
		return err_set(e, ERR_CONFIG,
			       "not a kind of object: '%.64s' (one to %d lower-case letters)", kind,
			       KIND_MAX);
	if (!digest_valid_hex(key))
		return err_set(e, ERR_CONFIG,
			       "not a key of a %s: '%.80s' (64 lower-case hexadecimal digits)",
			       kind, key);
	return 0;
}

char *store_object_path(const char *store_dir, const char *kind, const char *key, struct arena *a)
{
	if (strcmp(kind, STORE_WORLD) == 0)
		return arena_printf(a, "%s/worlds/%s", store_dir, key);
	return arena_printf(a, "%s/objects/%s/%s", store_dir, kind, key);
}

char *store_stamp_path(const struct store *s, const char *kind, const char *key, struct arena *a)
{
	return arena_printf(a, "%s/stamps/%s-%s", s->dir, kind, key);
}

char *store_lock_path(const struct store *s, const char *kind, const char *key, struct arena *a)
{
	return arena_printf(a, "%s/locks/%s-%s", s->dir, kind, key);
}

void store_touch(const char *path)
{
	if (utimensat(AT_FDCWD, path, NULL, 0) < 0)
		return;
}
