#include "base/sys/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "base/path.h"
#include "base/shell.h"
#include "base/sys/build_user.h"
#include "base/utf8.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* Nothing is waited for (FIFO) and nothing taken over (terminal). */
#define FILE_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* ---- what went wrong ---- */

static const char *kind_name(mode_t mode)
{
	return S_ISDIR(mode)    ? "a directory"
	       : S_ISFIFO(mode) ? "a FIFO"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISLNK(mode)  ? "a link"
				: "a device";
}

static const char *full(const char *top, const char *rel, struct arena *a)
{
	return utf8_printable(*rel ? path_join(a, top, rel) : top, a);
}

/* Which part of the path is the link. Whatever changes meanwhile, only the message is about it. */
static int link_error(const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	for (const char *end = rel; *end; end += *end == '/') {
		end += strcspn(end, "/");
		char target[PATH_MAX];
		const char *path = path_join(&a, top, arena_strndup(&a, rel, (size_t)(end - rel)));
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		err_set(e, ERR_INTEGRITY, "will not follow a link: '%s' points to '%s'", utf8_printable(path, &a),
			utf8_printable(target, &a));
		return err_hint(e,
				"a build leaves files and directories of its own there: find out what made the link; "
				"'rm %s' removes it",
				utf8_printable(shell_quoted(path, &a), &a));
	}
	return err_set(e, ERR_INTEGRITY, "will not follow a link: '%s' leads through one", full(top, rel, &a));
}

static int fail(const char *what, const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	if (errno == ELOOP)
		return link_error(top, rel, e);
	return err_errno(e, ERR_SYSTEM, "cannot %s '%s'", what, full(top, rel, &a));
}

static int wrong_kind(const char *top, const char *rel, mode_t mode, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	if (S_ISLNK(mode))
		return link_error(top, rel, e);
	return err_set(e, ERR_INTEGRITY, "not a regular file: '%s' is %s", full(top, rel, &a), kind_name(mode));
}

/* ---- the way there ---- */

/* One directory; ELOOP for a link to one. */
static int open_part(int dir, const char *name)
{
	struct stat st;
	int fd = openat(dir, name, DIR_FLAGS);
	if (fd >= 0 || errno != ENOTDIR)
		return fd;
	bool is_link = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
	errno = is_link ? ELOOP : ENOTDIR;
	return -1;
}

/* Where the kernel cannot do it at once. `make`: what is missing is made. */
static int open_each(int dir, const char *rel, bool make)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	for (const char *p = rel; at >= 0 && *p; p += *p == '/') {
		size_t len = strcspn(p, "/");
		const char *name = arena_strndup(&a, p, len);
		if (make && mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return -1;
		int next = open_part(at, name);
		int why = errno;
		close(at);
		at = next;
		errno = why;
		p += len;
	}
	return steal_fd(&at);
}

/* The directory at `rel`, "" or "." for `top`; -1 with errno. */
static int open_dir(const char *top, const char *rel, bool make)
{
	AUTO_FD int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !*rel || strcmp(rel, ".") == 0)
		return steal_fd(&dir);
	if (!path_is_safe_relative(rel)) {
		errno = EINVAL;
		return -1;
	}
	/* Without O_NOFOLLOW, which would say of a link that it is no directory. */
	int fd = make ? -1 : os_open_beneath(dir, rel, DIR_FLAGS & ~O_NOFOLLOW);
	/* EPERM: a filter that does not know the call; EAGAIN: something was moved meanwhile. */
	if (make || (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN)))
		fd = open_each(dir, rel, make);
	return fd;
}

/* The directory that `rel` is in; its name there is path_base(rel). */
static int open_parent(const char *top, const char *rel)
{
	AUTO_ARENA struct arena a = {0};
	if (path_is_safe_relative(rel))
		return open_dir(top, path_dir(&a, rel), false);
	errno = EINVAL;
	return -1;
}

/* ---- reading ---- */

int beneath_stat(const char *top, const char *rel, struct stat *ret)
{
	AUTO_FD int dir = *rel ? open_parent(top, rel) : open_dir(top, "", false);
	return dir < 0 ? -1 : fstatat(dir, *rel ? path_base(rel) : ".", ret, AT_SYMLINK_NOFOLLOW);
}

bool beneath_exists(const char *top, const char *rel)
{
	struct stat st;
	return beneath_stat(top, rel, &st) == 0 || (errno != ENOENT && errno != ENOTDIR && errno != EINVAL);
}

/* What root makes in the tree of its builds' user is that user's. */
static int keep_owner(int fd, int dir)
{
	struct stat st;
	bool is_theirs = geteuid() == 0 && fstat(dir, &st) == 0 && st.st_uid == BUILD_USER;
	return is_theirs ? fchown(fd, BUILD_USER, BUILD_USER) : 0;
}

/* A regular file, opened only when it looks like one. */
static int open_file(const char *top, const char *rel, int flags, const char *what, struct stat *ret, struct err *e)
{
	AUTO_FD int dir = open_parent(top, rel);
	if (dir < 0)
		return fail(what, top, rel, e);
	const char *name = path_base(rel);
	bool there = fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && !S_ISREG(ret->st_mode))
		return wrong_kind(top, rel, ret->st_mode, e);
	if (!there && (errno != ENOENT || !(flags & O_CREAT)))
		return fail(what, top, rel, e);
	AUTO_FD int fd = openat(dir, name, flags | FILE_FLAGS, 0644);
	if (fd < 0 || fstat(fd, ret) < 0 || (!there && keep_owner(fd, dir) < 0))
		return fail(what, top, rel, e);
	if (!S_ISREG(ret->st_mode))
		return wrong_kind(top, rel, ret->st_mode, e);
	return steal_fd(&fd);
}

int beneath_open(const char *top, const char *rel, struct stat *ret, struct err *e)
{
	return open_file(top, rel, O_RDONLY, "read", ret, e);
}

int beneath_copy(const char *top, const char *rel, const char *to, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st = {0};
	int fd = beneath_open(top, rel, &st, e);
	return fd < 0 ? -1 : fs_copy_open(fd, &st, full(top, rel, &a), to, e);
}

int beneath_read(const char *top, const char *rel, uint64_t max, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st = {0};
	AUTO_FD int fd = beneath_open(top, rel, &st, e);
	if (fd < 0)
		return -1;
	if ((uint64_t)st.st_size > max)
		return err_set(e, ERR_INTEGRITY, "file too large: '%s' has %llu bytes, which is more than %llu",
			       full(top, rel, &a), (unsigned long long)st.st_size, (unsigned long long)max);
	return fs_read_fd(fd, full(top, rel, &a), max, out, e);
}

int beneath_list(const char *top, const char *rel, struct arena *a, struct strlist *ret, struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	AUTO_FD int dir = open_dir(top, rel, false);
	return dir < 0 ? fail("list", top, rel, e) : fs_list_fd(dir, full(top, rel, &scratch), a, ret, e);
}

static int walk(const char *top, const char *rel, bool busy, fs_walk_fn fn, void *user, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int dir = open_dir(top, rel, false);
	return dir < 0 ? fail("open", top, rel, e) : fs_walk_fd(dir, full(top, rel, &a), busy, fn, user, e);
}

int beneath_walk(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e)
{
	return walk(top, rel, false, fn, user, e);
}

int beneath_walk_busy(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e)
{
	return walk(top, rel, true, fn, user, e);
}

char *beneath_resolve(const char *top, const char *path, struct arena *a)
{
	const char *name = path_base(path), *all = *path == '/' ? path : path_join(a, top, path);
	AUTO_FREE char *real_top = realpath(top, NULL);
	AUTO_FREE char *real = realpath(path_dir(a, all), NULL);
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || !real_top || !real)
		return NULL;
	if (strcmp(real, real_top) == 0)
		return arena_strdup(a, name);
	const char *inside = path_below(real, real_top);
	return inside ? path_join(a, inside, name) : NULL;
}

/* ---- writing ---- */

int beneath_mkdirs(const char *top, const char *rel, struct err *e)
{
	AUTO_FD int dir = open_dir(top, rel, true);
	return dir < 0 ? fail("make directory", top, rel, e) : 0;
}

static int fill(int fd, const void *data, size_t len, const struct stat *like, const char *name, struct err *e)
{
	if (fs_write_all(fd, data, len, name, e) < 0)
		return -1;
	if (like) {
		struct stat st;
		const struct timespec times[2] = {like->st_atim, like->st_mtim};
		if (fstat(fd, &st) < 0 ||
		    ((st.st_uid != like->st_uid || st.st_gid != like->st_gid) &&
		     fchown(fd, like->st_uid, like->st_gid) < 0 && errno != EPERM) ||
		    fchmod(fd, like->st_mode & 0777) < 0 || futimens(fd, times) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot write '%s'", name);
	}
	return fsync(fd) < 0 ? err_errno(e, ERR_SYSTEM, "cannot write '%s'", name) : 0;
}

int beneath_write(const char *top, const char *rel, const void *data, size_t len, mode_t mode, const struct stat *like,
		  struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int dir = open_parent(top, rel);
	uint64_t id;
	if (dir < 0 || os_random(&id, sizeof(id)) < 0)
		return fail("write", top, rel, e);
	const char *fresh = arena_printf(&a, ".ptbuild-%016llx", (unsigned long long)id);
	AUTO_FD int fd = openat(dir, fresh, O_RDWR | O_CREAT | O_EXCL | FILE_FLAGS, mode);
	if (fd < 0 || keep_owner(fd, dir) < 0)
		return fail("write", top, rel, e);
	int rc = fill(fd, data, len, like, full(top, rel, &a), e);
	if (rc == 0 && (renameat(dir, fresh, dir, path_base(rel)) < 0 || (fsync(dir) < 0 && errno != EINVAL)))
		rc = fail("write", top, rel, e);
	if (rc < 0)
		(void)unlinkat(dir, fresh, 0);
	return rc;
}

/* What is written into in place must not be another file as well. */
static int open_own(const char *top, const char *rel, int flags, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st = {0};
	AUTO_FD int fd = open_file(top, rel, flags, "write", &st, e);
	if (fd < 0)
		return -1;
	if (st.st_nlink <= 1)
		return steal_fd(&fd);
	err_set(e, ERR_INTEGRITY, "will not change a file with %llu names: '%s'", (unsigned long long)st.st_nlink,
		full(top, rel, &a));
	return err_hint(e, "the others may be anywhere; 'rm %s' removes this one",
			utf8_printable(shell_quoted(path_join(&a, top, rel), &a), &a));
}

int beneath_append(const char *top, const char *rel, struct err *e)
{
	return open_own(top, rel, O_WRONLY | O_APPEND | O_CREAT, e);
}

int beneath_truncate(const char *top, const char *rel, uint64_t len, struct err *e)
{
	AUTO_FD int fd = open_own(top, rel, O_WRONLY, e);
	if (fd < 0)
		return -1;
	return ftruncate(fd, (off_t)len) < 0 ? fail("cut", top, rel, e) : 0;
}

int beneath_remove(const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int dir = open_parent(top, rel);
	if (dir < 0)
		return errno == ENOENT ? 0 : fail("remove", top, rel, e);
	return fs_remove_at(dir, path_base(rel), full(top, rel, &a), e);
}

int beneath_move(const char *top, const char *rel, const char *to_top, const char *to_rel)
{
	AUTO_FD int from = open_parent(top, rel);
	AUTO_FD int to = from < 0 ? -1 : open_parent(to_top, to_rel);
	return to < 0 ? -1 : renameat(from, path_base(rel), to, path_base(to_rel));
}
