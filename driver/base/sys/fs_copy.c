#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/fs.h"

#define CHUNK ((size_t)256 * 1024)
#define MAX_DEPTH 512 /* each level holds two descriptors and a stack frame */

/* A relative path for messages, grown and cut while the tree is walked. */
static size_t push(struct buf *rel, const char *name)
{
	size_t before = rel->len;
	buf_printf(rel, "%s%s", before ? "/" : "", name);
	return before;
}

static void pop(struct buf *rel, size_t before)
{
	rel->len = before;
	(void)buf_cstr(rel);
}

static int copy_error(const struct buf *rel, struct err *e)
{
	return err_errno(e, ERR_SYSTEM, "cannot copy '%s'", buf_cstr(rel));
}

/* Whatever os_copy cannot do (other file systems, old kernels, files without a size) the plain loop finishes from where
 * it stands. */
static int copy_bytes(int in, int out, const struct buf *rel, struct err *e)
{
	while (os_copy(in, NULL, out, (size_t)1 << 30) > 0)
		;
	AUTO_FREE char *chunk = malloc(CHUNK);
	if (!chunk)
		abort();
	for (;;) {
		ssize_t n = read(in, chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return copy_error(rel, e);
		if (n == 0)
			return 0;
		if (fs_write_all(out, chunk, (size_t)n, buf_cstr(rel), e) < 0)
			return -1;
	}
}

static int copy_file_at(int from, int to, const char *name, const struct buf *rel, struct err *e)
{
	AUTO_FD int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (in < 0 || fstat(in, &st) < 0)
		return copy_error(rel, e);
	AUTO_FD int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out < 0)
		return copy_error(rel, e);
	if (copy_bytes(in, out, rel, e) < 0)
		return -1;
	const struct timespec times[2] = {st.st_atim, st.st_mtim};
	if (fchmod(out, st.st_mode & 07777) < 0 || futimens(out, times) < 0)
		return copy_error(rel, e);
	return 0;
}

static int copy_link_at(int from, int to, const char *name, const struct stat *st, const struct buf *rel, struct err *e)
{
	char target[4096];
	ssize_t n = readlinkat(from, name, target, sizeof(target));
	if (n < 0)
		return copy_error(rel, e);
	if ((size_t)n == sizeof(target)) {
		errno = ENAMETOOLONG;
		return copy_error(rel, e);
	}
	target[n] = '\0';
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	if (symlinkat(target, to, name) < 0 || utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return copy_error(rel, e);
	return 0;
}

static int copy_dir_at(int from, const char *from_name, int to, const char *to_name, struct buf *rel, int depth,
		       struct err *e);

static int copy_entry(int from, int to, const char *name, struct buf *rel, int depth, struct err *e)
{
	struct stat st;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return copy_error(rel, e);
	if (S_ISDIR(st.st_mode))
		return copy_dir_at(from, name, to, name, rel, depth + 1, e);
	if (S_ISREG(st.st_mode))
		return copy_file_at(from, to, name, rel, e);
	if (S_ISLNK(st.st_mode))
		return copy_link_at(from, to, name, &st, rel, e);
	return err_set(e, ERR_SYSTEM, "cannot copy '%s': neither file, directory nor link", buf_cstr(rel));
}

/* Takes over `in`, which belongs to the stream from here on. */
static int copy_entries(int in, int out, struct buf *rel, int depth, struct err *e)
{
	AUTO_DIR DIR *d = fdopendir(in);
	if (!d) {
		close(in);
		return copy_error(rel, e);
	}
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(d);
		if (!entry)
			return errno ? copy_error(rel, e) : 0;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		size_t before = push(rel, entry->d_name);
		if (copy_entry(in, out, entry->d_name, rel, depth, e) < 0)
			return -1;
		pop(rel, before);
	}
}

static int copy_dir_at(int from, const char *from_name, int to, const char *to_name, struct buf *rel, int depth,
		       struct err *e)
{
	if (depth > MAX_DEPTH)
		return err_set(e, ERR_SYSTEM, "directories nested more than %d deep: '%s'", MAX_DEPTH, buf_cstr(rel));
	/* Only the directory named by the caller may be a link. */
	AUTO_FD int in = openat(from, from_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0));
	struct stat st;
	if (in < 0 || fstat(in, &st) < 0)
		return copy_error(rel, e);
	if (mkdirat(to, to_name, 0700) < 0)
		return copy_error(rel, e);
	AUTO_FD int out = openat(to, to_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (out < 0)
		return copy_error(rel, e);
	if (copy_entries(steal_fd(&in), out, rel, depth, e) < 0)
		return -1;
	/* Last, since each new entry changes the time, and the bits may forbid writing. */
	const struct timespec times[2] = {st.st_atim, st.st_mtim};
	if (fchmod(out, st.st_mode & 07777) < 0 || futimens(out, times) < 0)
		return copy_error(rel, e);
	return 0;
}

int fs_copy_tree(const char *from, const char *to, struct err *e)
{
	struct stat st;
	if (lstat(to, &st) == 0) {
		errno = EEXIST;
		return err_errno(e, ERR_SYSTEM, "cannot copy '%s' to '%s'", from, to);
	}
	AUTO_BUF struct buf rel = {0};
	if (copy_dir_at(AT_FDCWD, from, AT_FDCWD, to, &rel, 0, e) == 0)
		return 0;
	struct err ignored;
	if (fs_remove_tree(to, &ignored) < 0)
		err_hint(e, "remove the incomplete copy '%s'", to);
	return err_wrap(e, "copying '%s' to '%s'", from, to);
}

int fs_copy_fd(const char *from, int out, struct err *e)
{
	AUTO_BUF struct buf rel = {0};
	buf_addstr(&rel, from);
	AUTO_FD int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (in < 0 || fstat(in, &st) < 0)
		return copy_error(&rel, e);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_SYSTEM, "cannot copy '%s': not a regular file", from);
	if (copy_bytes(in, out, &rel, e) < 0)
		return -1;
	return fchmod(out, st.st_mode & 07777) == 0 ? 0 : copy_error(&rel, e);
}

int fs_copy(const char *from, const char *to, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *name = NULL;
	AUTO_FD int out = fs_neighbour(to, 0600, &a, &name, e);
	if (out < 0)
		return -1;
	if (fs_copy_fd(from, out, e) < 0)
		goto undo;
	if (rename(name, to) < 0) {
		err_errno(e, ERR_SYSTEM, "cannot write '%s'", to);
		goto undo;
	}
	return 0;
undo:
	unlink(name);
	return -1;
}
