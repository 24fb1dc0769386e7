#include "base/sys/tar.h"

#include <limits.h>

#include "base/sys/fs_internal.h"

#define MAX_DEPTH 100
#define MAX_PATH 3000

int tree_open(struct tree *t, const char *dir, struct err *e)
{
	*t = (struct tree){.top = -1};
	if (fs_mkdirs(TRUSTED, dir, e) < 0)
		return -1;
	t->top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->top < 0 ? err_errno(e, ERR_SYSTEM, "cannot open '%s'", dir) : 0;
}

void tree_close(struct tree *t)
{
	cleanup_fd(&t->top);
	t->top = -1;
	arena_release(&t->arena);
}

/* A name that the file system refuses is the archive's fault, all else the machine's. */
static int fail(struct err *e, const char *what)
{
	if (errno == ENAMETOOLONG)
		return err_set(e, ERR_INTEGRITY, "a name in its path is longer than %d bytes", NAME_MAX);
	return err_errno(e, errno == EINVAL || errno == EILSEQ ? ERR_INTEGRITY : ERR_SYSTEM, "%s", what);
}

static const char *kind_name(mode_t mode)
{
	return S_ISDIR(mode) ? "a directory" : S_ISLNK(mode) ? "a link" : S_ISREG(mode) ? "a file" : "a special file";
}

static int deny_present(int dir, const char *name, struct err *e)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(e, "cannot stat what exists there");
	return err_set(e, ERR_INTEGRITY, "would replace %s", kind_name(st.st_mode));
}

/* Says what on the way is no directory. */
static int deny_way(const struct tree *t, const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st;
	int why = errno;
	for (const char *end = path; *end; end += *end == '/') {
		end += strcspn(end, "/");
		const char *part = arena_strndup(&a, path, (size_t)(end - path));
		if (fstatat(t->top, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			return err_set(e, ERR_INTEGRITY,
				       S_ISLNK(st.st_mode) ? "goes through the link '%s'"
							   : "lies below '%s', which is not a directory",
				       part);
	}
	errno = why;
	return fail(e, "cannot open a directory");
}

static int open_dir(const struct tree *t, const char *path, struct err *e)
{
	size_t depth = 0;
	for (const char *p = path; *p; p++)
		depth += *p == '/';
	if (depth >= MAX_DEPTH || strlen(path) > MAX_PATH)
		return err_set(e, ERR_INTEGRITY,
			       "lies more than %d directories deep, or its path is longer than %d bytes", MAX_DEPTH,
			       MAX_PATH);
	int fd = fs_open_below(t->top, path, 0755 | FS_EXACT);
	return fd < 0 ? deny_way(t, path, e) : fd;
}

/* The open directory that holds `path`, made if needed; its name there is path_base(path). */
static int open_parent(const struct tree *t, const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	return open_dir(t, path_dir(&a, path), e);
}

int tree_mkdir(struct tree *t, const char *path, struct timespec mtime, struct err *e)
{
	AUTO_FD int fd = open_dir(t, path, e);
	if (fd < 0)
		return -1;
	t->times = arena_room(&t->arena, t->times, t->time_count, &t->time_cap, 256, sizeof(*t->times));
	t->times[t->time_count++] = (struct tree_time){.path = arena_strdup(&t->arena, path), .mtime = mtime};
	return 0;
}

int tree_create(const struct tree *t, const char *path, mode_t mode, int *ret_fd, struct err *e)
{
	AUTO_FD int dir = open_parent(t, path, e);
	const char *name = path_base(path);
	struct stat st;
	if (dir < 0)
		return -1;
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd >= 0 && fchmod(fd, mode) < 0)
			return fail(e, "cannot set its mode");
		if (fd >= 0) {
			*ret_fd = steal_fd(&fd);
			return 0;
		}
		if (errno != EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return fail(e, "cannot make it");
		if (!S_ISREG(st.st_mode))
			return deny_present(dir, name, e);
		if (unlinkat(dir, name, 0) < 0)
			return fail(e, "cannot replace it");
	}
	return err_set(e, ERR_SYSTEM, "another process creates files in the tree");
}

void tree_discard(const struct tree *t, const char *path)
{
	AUTO_FD int dir = open_parent(t, path, ERR_IGNORED);
	if (dir >= 0)
		unlinkat(dir, path_base(path), 0);
}

int tree_symlink(const struct tree *t, const char *path, const char *target, struct timespec mtime, struct err *e)
{
	const struct timespec times[2] = {mtime, mtime};
	char old[PATH_MAX];
	AUTO_FD int dir = open_parent(t, path, e);
	const char *name = path_base(path);
	if (dir < 0)
		return -1;
	if (symlinkat(target, dir, name) < 0) {
		if (errno != EEXIST)
			return fail(e, "cannot make the link");
		ssize_t n = readlinkat(dir, name, old, sizeof(old));
		if (n < 0 || (size_t)n != strlen(target) || memcmp(old, target, (size_t)n) != 0)
			return deny_present(dir, name, e);
	}
	if (utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(e, "cannot set its time");
	return 0;
}

int tree_hardlink(const struct tree *t, const char *path, const char *target, struct err *e)
{
	const char *name = path_base(path), *target_name = path_base(target);
	struct stat st, old;
	/* The first look must not make directories. */
	if (fstatat(t->top, target, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, ERR_INTEGRITY, "is a link to '%s', which is not in the archive before it", target);
	AUTO_FD int from = open_parent(t, target, e);
	if (from < 0)
		return err_wrap(e, "is a link to '%s'", target);
	if (fstatat(from, target_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "is a hard link to '%s', which is not a file", target);
	AUTO_FD int dir = open_parent(t, path, e);
	if (dir < 0)
		return -1;
	if (fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0) {
		if (old.st_ino == st.st_ino && old.st_dev == st.st_dev)
			return 0;
		if (!S_ISREG(old.st_mode))
			return deny_present(dir, name, e);
		if (unlinkat(dir, name, 0) < 0)
			return fail(e, "cannot replace it");
	}
	return linkat(from, target_name, dir, name, 0) < 0 ? fail(e, "cannot make the hard link") : 0;
}

int tree_finish(struct tree *t, struct err *e)
{
	for (size_t i = t->time_count; i-- > 0;) {
		const struct timespec times[2] = {t->times[i].mtime, t->times[i].mtime};
		const char *path = *t->times[i].path ? t->times[i].path : ".";
		if (utimensat(t->top, path, times, AT_SYMLINK_NOFOLLOW) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot set the time of '%s'", path);
	}
	return 0;
}
