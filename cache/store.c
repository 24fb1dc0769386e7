#include "cache/store_internal.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"

#define FORMAT_PREFIX "ptbuild store "

const char *store_dir(const struct store *s)
{
	return s->dir;
}

/* A directory with files in it and no format file belongs to somebody else, and garbage collection would delete them.
 * Another opener may be making the layout meanwhile: it writes the format first, so whoever sees the rest finds it. */
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
		err_set(e, ERR_CONFIG, "not a store: '%s' holds '%s' and no format file", dir, names.items[i]);
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
	unsigned long version = strncmp(s, FORMAT_PREFIX, prefix) == 0 ? strtoul(s + prefix, &end, 10) : 0;
	if (!end || end == s + prefix || strcmp(end, "\n") != 0) {
		err_set(e, ERR_CONFIG, "'%s' does not hold a store's format line", file);
		return err_hint(e, "remove '%s', or name another directory", dir);
	}
	if (version != STORE_FORMAT) {
		err_set(e, ERR_CONFIG, "the store '%s' has format %lu, this program knows %d", dir, version,
			STORE_FORMAT);
		return err_hint(e, "use the ptbuild that made it, or name another directory with --cache");
	}
	return 0;
}

static int check_format(const char *dir, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *path = path_join(&a, dir, "format");
	return !fs_exists(TRUSTED, path) && adopt_directory(dir, path, e) < 0 ? -1 : check_version(path, dir, e);
}

/* In a sticky directory, such as the top of a tmpfs, nobody can replace what is the owner's. */
static int check_mode(const char *dir, const struct stat *st, struct err *e)
{
	if ((st->st_mode & (S_IWOTH | S_ISVTX)) != S_IWOTH)
		return 0;
	err_set(e, ERR_POLICY, "everybody may write in the store '%s'", dir);
	return err_hint(e, "take that away: chmod o-w '%s'", dir);
}

/* Who can write in a store decides what is built with it: objects are believed, trees are gone on with. */
static int check_owner(const char *dir, struct err *e)
{
	struct stat st;
	if (stat(dir, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot look at '%s'", dir);
	if (st.st_uid != geteuid()) {
		err_set(e, ERR_POLICY, "the store '%s' belongs to user %lu, not to user %lu, who runs this", dir,
			(unsigned long)st.st_uid, (unsigned long)geteuid());
		return err_hint(
			e, "name a store of your own with --cache; --lower-store '%s' takes what is in this one", dir);
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
			err_set(e, ERR_POLICY, "'%s' is a link: what it points to would be filled and emptied", part);
			return err_hint(e, "remove it; the store as a whole may be a link, its parts may not");
		}
		if (st.st_uid != geteuid())
			return err_set(e, ERR_POLICY, "'%s' belongs to user %lu, not to who owns the store", part,
				       (unsigned long)st.st_uid);
	}
	const char *tmp = path_join(&a, dir, "tmp");
	if (access(tmp, W_OK | X_OK) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write in '%s'", tmp);
	return 0;
}

static int take(const char *dir, const struct run *run, bool read_only, struct store **ret, struct err *e)
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
	s->log = (struct log){.level = run->log->level, .fd = run->log->fd};
	s->cancel_fd = run->cancel_fd;
	s->read_only = read_only;
	*ret = s;
	return 0;
}

int store_open(const char *dir, const struct run *run, struct store **ret, struct err *e)
{
	if (fs_mkdirs(TRUSTED, dir, e) < 0 || check_owner(dir, e) < 0 || check_format(dir, e) < 0 ||
	    make_layout(dir, e) < 0 || store_remove_dead_stages(dir, run, e) < 0) {
		if (e->kind == ERR_SYSTEM && !e->hint[0])
			err_hint(e, "the store must be writable; name another directory with --cache");
		return err_wrap(e, "cannot open the store '%s'", dir);
	}
	return take(dir, run, false, ret, e);
}

/* By the rights of the user or the mount; anything else that is wrong is for store_open to say. */
static bool is_read_only(const char *dir)
{
	AUTO_ARENA struct arena a = {0};
	const char *const places[] = {dir, path_join(&a, dir, "tmp")};
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], W_OK | X_OK) < 0 && (errno == EACCES || errno == EROFS || errno == EPERM))
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
	return take(dir, run, true, ret, e);
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
	return err_hint(e, "name another directory with --cache; --lower-store '%s' takes what is in this one", s->dir);
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
	struct log log = s->log;
	log_warn(&log, "the lower store '%s' is left out: %s", dir, why);
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
		return err_hint(e, "--lower-store names the directory that was another ptbuild's --cache");
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

int store_lock(struct store *s, const char *kind, const char *key, const struct run *run, struct lock *ret,
	       struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	AUTO_ARENA struct arena a = {0};
	return lock_acquire(ret, store_lock_path(s, kind, key, &a), false, run, e);
}

int store_build_dir(struct store *s, const char *compile_key, struct arena *a, const char **ret, struct err *e)
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
		return err_set(e, ERR_CONFIG, "not a kind of object: '%.64s' (one to %d lower-case letters)", kind,
			       KIND_MAX);
	if (!digest_valid_hex(key))
		return err_set(e, ERR_CONFIG, "not a key of a %s: '%.80s' (64 lower-case hexadecimal digits)", kind,
			       key);
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
