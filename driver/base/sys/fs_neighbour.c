/* Temporary files that become another by rename, and directories. Their writer locks them, so that what a kill left can
 * be told from what is being written, also from inside another container. */
#include <sys/file.h>

#include "base/os.h"
#include "base/sys/build_user.h"
#include "base/sys/fs_internal.h"

#define PREFIX ".ptbuild-"
enum { DIGITS = 16, ATTEMPTS = 100, NAME_LEN = sizeof(PREFIX) + DIGITS };

static bool is_neighbour(const char *name)
{
	size_t n = strlen(PREFIX);
	return strncmp(name, PREFIX, n) == 0 && strlen(name) == n + DIGITS &&
	       strspn(name + n, "0123456789abcdef") == DIGITS;
}

/* False when fs_sweep was faster. A file system without locks locks nothing, and nothing is swept there. */
static bool hold(int fd)
{
	struct stat st;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return false;
	return fstat(fd, &st) == 0 && st.st_nlink != 0;
}

static int make(int dir, const char *name, mode_t mode)
{
	if (!S_ISDIR(mode))
		return openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (mkdirat(dir, name, mode & 07777) < 0)
		return -1;
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* A new file, or with S_IFDIR a directory, in an open directory; -1 with errno. The mode is that of open(2), less
 * umask, which mkostemp cannot do. */
static int new_file(int dir, mode_t mode, char name[NAME_LEN])
{
	uint64_t id;
	for (int attempt = 0; attempt < ATTEMPTS && os_random(&id, sizeof(id)) == 0; attempt++) {
		snprintf(name, NAME_LEN, PREFIX "%016llx", (unsigned long long)id);
		AUTO_FD int fd = make(dir, name, mode);
		if (fd < 0 && errno != EEXIST)
			return -1;
		if (fd >= 0 && hold(fd) && build_user_keep(fd, dir) == 0)
			return steal_fd(&fd);
	}
	return -1;
}

int fs_neighbour(const char *path, mode_t mode, struct arena *a, char **ret_name, struct err *e)
{
	char name[NAME_LEN];
	AUTO_FD int dir = fs_open_parent(TRUSTED, path, 0);
	int fd = dir < 0 ? -1 : new_file(dir, mode, name);
	if (fd < 0)
		return fs_fail("write", TRUSTED, path, e);
	*ret_name = path_join(a, path_dir(a, path), name);
	return fd;
}

static int set_like(int fd, const struct stat *like)
{
	struct stat st;
	const struct timespec times[2] = {like->st_atim, like->st_mtim};
	if (fstat(fd, &st) < 0 || ((st.st_uid != like->st_uid || st.st_gid != like->st_gid) &&
				   fchown(fd, like->st_uid, like->st_gid) < 0 && errno != EPERM))
		return -1;
	return fchmod(fd, like->st_mode & 0777) < 0 ? -1 : futimens(fd, times);
}

static int replace(const char *top, const char *rel, const void *data, size_t len, mode_t mode, const struct stat *like,
		   struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char name[NAME_LEN];
	AUTO_FD int dir = fs_open_parent(top, rel, 0);
	AUTO_FD int fd = dir < 0 ? -1 : new_file(dir, mode, name);
	if (fd < 0)
		return fs_fail("write", top, rel, e);
	int rc = fs_write_all(fd, data, len, fs_full(top, rel, &a), e);
	/* EINVAL: a file system where a directory cannot be synced (some network and FUSE ones) loses nothing by it. */
	if (rc == 0 && ((like && set_like(fd, like) < 0) || fsync(fd) < 0 ||
			renameat(dir, name, dir, path_base(rel)) < 0 || (fsync(dir) < 0 && errno != EINVAL)))
		rc = fs_fail("write", top, rel, e);
	if (rc < 0)
		(void)unlinkat(dir, name, 0);
	return rc;
}

int fs_write(const char *top, const char *rel, const void *data, size_t len, mode_t mode, struct err *e)
{
	return replace(top, rel, data, len, mode, NULL, e);
}

int fs_rewrite(const char *top, const char *rel, const void *data, size_t len, const struct stat *like, struct err *e)
{
	return replace(top, rel, data, len, 0600, like, e);
}

int fs_can_write(const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *name = NULL;
	if (fs_is_dir(TRUSTED, path)) {
		errno = EISDIR;
		return fs_fail("write", TRUSTED, path, e);
	}
	AUTO_FD int fd = fs_neighbour(path, 0600, &a, &name, e);
	if (fd < 0 || !name)
		return -1;
	unlink(name);
	return 0;
}

int fs_sweep(const char *dir, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	if (!fs_exists(TRUSTED, dir))
		return 0;
	if (fs_list(TRUSTED, dir, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct stat st;
		const char *path = path_join(&a, dir, names.items[i]);
		if (!is_neighbour(names.items[i]))
			continue;
		AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		if (fd < 0 && errno == EISDIR)
			fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 || fstat(fd, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) ||
		    flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (fs_remove(TRUSTED, path, e) < 0)
			return -1;
	}
	return 0;
}
