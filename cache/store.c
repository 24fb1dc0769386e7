#include "cache/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"

#define KIND_MAX 32
#define FORMAT_PREFIX "ptbuild store "

int store_check_name(const char *kind, const char *key, struct err *e)
{
	size_t n = strspn(kind, "abcdefghijklmnopqrstuvwxyz");
	if (n == 0 || n > KIND_MAX || kind[n])
		return err_set(e, ERR_CONFIG, "'%.64s' is no kind of object: one to %d lower-case letters", kind,
			       KIND_MAX);
	if (!digest_valid_hex(key))
		return err_set(e, ERR_CONFIG, "'%.80s' is no key of a %s: 64 lower-case hexadecimal digits", key, kind);
	return 0;
}

const char *store_dir(const struct store *s)
{
	return s->dir;
}

/* A directory with files in it and no format line belongs to somebody else: a store there would mix with them, and
 * garbage collection delete them. Another opener may be making the layout meanwhile: it writes the format first, so
 * whoever sees the rest finds it. */
static int adopt_directory(const char *dir, const char *format, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	if (fs_list(dir, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (names.items[i][0] == '.' || strncmp(names.items[i], "format", 6) == 0)
			continue;
		if (fs_exists(format))
			return 0;
		err_set(e, ERR_CONFIG, "'%s' is not a store: it holds '%s' and no format file", dir, names.items[i]);
		return err_hint(e, "name an empty or new directory with --cache");
	}
	char line[64];
	int n = snprintf(line, sizeof(line), FORMAT_PREFIX "%d\n", STORE_FORMAT);
	return fs_write_atomic(format, line, (size_t)n, 0644, e);
}

int store_check_format(const char *file, const char *dir, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	if (fs_read(file, 256, &text, e) < 0)
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
	if (!fs_exists(path) && adopt_directory(dir, path, e) < 0)
		return -1;
	return store_check_format(path, dir, e);
}

/* The lock is tried before anything is touched, so a stage in use is never seen as dead. */
static int remove_if_dead(const char *tmp, const char *name, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *lock = path_join(&a, tmp, arena_printf(&a, "%s.lock", name));
	AUTO_FD int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", lock);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	if (fs_remove_tree(path_join(&a, tmp, name), e) < 0)
		return -1;
	if (fd >= 0)
		unlink(lock);
	return 0;
}

static int remove_dead_stages(const char *dir, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *tmp = path_join(&a, dir, "tmp");
	struct strlist names = {0};
	if (fs_list(tmp, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (run_check(run, e) < 0)
			return -1;
		const char *name = names.items[i];
		if (path_has_suffix(name, ".lock"))
			name = arena_strndup(&a, name, strlen(name) - strlen(".lock"));
		if (remove_if_dead(tmp, name, e) < 0)
			return -1;
	}
	return 0;
}

/* Two opens at once may both make the layout: every step of it may be repeated. */
static int make_layout(const char *dir, struct err *e)
{
	static const char *const parts[] = {"objects", "tmp", "locks", "build", "quarantine", "stamps"};
	AUTO_ARENA struct arena a = {0};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (fs_mkdirs(path_join(&a, dir, parts[i]), e) < 0)
			return -1;
	const char *tmp = path_join(&a, dir, "tmp");
	if (access(tmp, W_OK | X_OK) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write in '%s'", tmp);
	return 0;
}

int store_open(const char *dir, const struct run *run, struct store **ret, struct err *e)
{
	if (fs_mkdirs(dir, e) < 0 || check_format(dir, e) < 0 || make_layout(dir, e) < 0 ||
	    remove_dead_stages(dir, run, e) < 0) {
		if (e->kind == ERR_SYSTEM && !e->hint[0])
			err_hint(e, "the store must be writable; name another directory with --cache");
		return err_wrap(e, "cannot open the store '%s'", dir);
	}
	struct store *s = calloc(1, sizeof(*s));
	if (!s || !(s->dir = realpath(dir, NULL))) {
		free(s);
		return err_errno(e, ERR_SYSTEM, "cannot open the store '%s'", dir);
	}
	pthread_mutex_init(&s->mutex, NULL);
	s->log = (struct log){.level = run->log->level, .fd = run->log->fd};
	s->cancel_fd = run->cancel_fd;
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	while (s->stages_count)
		store_drop_stage(s, s->stages[s->stages_count - 1].path);
	pthread_mutex_destroy(&s->mutex);
	for (size_t i = 0; i < s->lowers_count; i++)
		free(s->lowers[i]);
	for (size_t i = 0; i < s->bad_count; i++)
		free(s->bad[i]);
	free(s->lowers);
	free(s->bad);
	free(s->stages);
	free(s->dir);
	free(s);
}

/* Until the lock is held the cleaner of another process may take the new lock file away: then a new name is tried. */
static int lock_new_stage(const char *lock, int *ret, struct err *e)
{
	AUTO_FD int fd = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	struct stat st;
	*ret = -1;
	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", lock);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
		*ret = steal_fd(&fd);
	return 0;
}

static void remember_stage(struct store *s, const char *path, int fd)
{
	char *copy = strdup(path);
	if (!copy)
		abort();
	pthread_mutex_lock(&s->mutex);
	if (s->stages_count == s->stages_cap) {
		s->stages_cap = s->stages_cap ? s->stages_cap * 2 : 8;
		s->stages = realloc(s->stages, s->stages_cap * sizeof(*s->stages));
		if (!s->stages)
			abort();
	}
	s->stages[s->stages_count++] = (struct stage){copy, fd};
	pthread_mutex_unlock(&s->mutex);
}

int store_stage(struct store *s, struct arena *a, const char **ret, struct err *e)
{
	for (int attempt = 0; attempt < 100; attempt++) {
		unsigned char random[8];
		if (os_random(random, sizeof(random)) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot get random bytes");
		uint64_t id = 0;
		for (size_t i = 0; i < sizeof(random); i++)
			id = id << 8 | random[i];
		const char *path = arena_printf(a, "%s/tmp/%016llx", s->dir, (unsigned long long)id);
		const char *lock = arena_printf(a, "%s.lock", path);
		int fd;
		if (lock_new_stage(lock, &fd, e) < 0)
			return -1;
		if (fd < 0)
			continue;
		if (mkdir(path, 0755) < 0) {
			err_errno(e, ERR_SYSTEM, "cannot make '%s'", path);
			unlink(lock);
			close(fd);
			return -1;
		}
		remember_stage(s, path, fd);
		*ret = path;
		return 0;
	}
	return err_set(e, ERR_SYSTEM, "cannot make a stage below '%s/tmp': every name is taken", s->dir);
}

void store_forget_stage(struct store *s, const char *stage)
{
	struct stage found = {NULL, -1};
	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < s->stages_count && !found.path; i++) {
		if (strcmp(s->stages[i].path, stage) != 0)
			continue;
		found = s->stages[i];
		s->stages[i] = s->stages[--s->stages_count];
	}
	pthread_mutex_unlock(&s->mutex);
	if (!found.path)
		return;
	AUTO_ARENA struct arena a = {0};
	unlink(arena_printf(&a, "%s.lock", found.path));
	close(found.fd);
	free(found.path);
}

void store_drop_stage(struct store *s, const char *stage)
{
	AUTO_ARENA struct arena a = {0};
	struct err ignored = {0};
	const char *copy = arena_strdup(&a, stage); /* callers pass the very string that forgetting frees */
	if (fs_remove_tree(copy, &ignored) < 0)
		err_clear(&ignored); /* the next open tries again: nobody holds its lock then */
	store_forget_stage(s, copy);
}

int store_lock(struct store *s, const char *kind, const char *key, const struct run *run, struct lock *ret,
	       struct err *e)
{
	if (store_check_name(kind, key, e) < 0)
		return -1;
	AUTO_ARENA struct arena a = {0};
	return lock_acquire(ret, arena_printf(&a, "%s/locks/%s-%s", s->dir, kind, key), false, run, e);
}

int store_build_dir(struct store *s, const char *compile_key, struct arena *a, const char **ret, struct err *e)
{
	if (store_check_name(STORE_BUILD, compile_key, e) < 0)
		return -1;
	const char *path = arena_printf(a, "%s/build/%s", s->dir, compile_key);
	if (fs_mkdirs(path, e) < 0)
		return -1;
	store_touch(path);
	*ret = path;
	return 0;
}
