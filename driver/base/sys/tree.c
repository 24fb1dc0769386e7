#include "base/sys/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/utf8.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int tree_check_bytes(const char *name, struct err *e)
{
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			return err_set(e, ERR_INTEGRITY, "has a control byte in its name");
	if (!utf8_valid(name))
		return err_set(e, ERR_INTEGRITY, "its name is not UTF-8");
	return 0;
}

int tree_normal_name(const char *name, struct buf *out, struct err *e)
{
	buf_reset(out);
	if (name[0] == '/')
		return err_set(e, ERR_INTEGRITY, "has an absolute name");
	if (tree_check_bytes(name, e) < 0)
		return -1;
	for (const char *p = name; *p;) {
		size_t n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.')
			return err_set(e, ERR_INTEGRITY, "has '..' in its name");
		if (n > 0 && !(n == 1 && p[0] == '.')) {
			if (out->len > 0)
				buf_addc(out, '/');
			buf_add(out, p, n);
		}
		p += n + (p[n] == '/');
	}
	if (out->len > 0 && !path_is_safe_relative(out->data))
		return err_set(e, ERR_INTEGRITY, "has an unsafe name");
	return 0;
}

const char *tree_printable(const char *s, char *out, size_t size)
{
	size_t n = 0;
	for (; *s && n + 8 < size; s++) {
		unsigned char c = (unsigned char)*s;
		if (c < 32 || c >= 127)
			n += (size_t)snprintf(out + n, size - n, "\\x%02x", c);
		else
			out[n++] = *s;
	}
	snprintf(out + n, size - n, "%s", *s ? "..." : "");
	return out;
}

int tree_open(struct tree *t, const char *dir, struct err *e)
{
	*t = (struct tree){.top = -1};
	if (fs_mkdirs(TRUSTED, dir, e) < 0)
		return -1;
	t->top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->top < 0 ? err_errno(e, ERR_SYSTEM, "cannot open '%s'", dir) : 0;
}

static void close_to(struct tree *t, size_t depth)
{
	while (t->depth > depth)
		close(t->levels[--t->depth].fd);
	t->path.len = depth > 0 ? t->levels[depth - 1].end : 0;
}

void tree_close(struct tree *t)
{
	close_to(t, 0);
	if (t->top >= 0)
		close(t->top);
	t->top = -1;
	buf_release(&t->path);
	arena_release(&t->arena);
}

/* A name that the file system refuses is the archive's fault, all else the machine's. */
static int fail(struct err *e, const char *what)
{
	return err_errno(e, errno == ENAMETOOLONG || errno == EINVAL || errno == EILSEQ ? ERR_INTEGRITY : ERR_SYSTEM,
			 "%s", what);
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

/* Opens (and makes) one directory below the deepest one. */
static int enter(struct tree *t, const char *name, size_t len, struct err *e)
{
	char text[NAME_MAX + 1];
	int parent = t->depth > 0 ? t->levels[t->depth - 1].fd : t->top;
	if (len > NAME_MAX)
		return err_set(e, ERR_INTEGRITY, "a name in its path is longer than %d bytes", NAME_MAX);
	if (t->depth == TREE_MAX_DEPTH)
		return err_set(e, ERR_INTEGRITY, "lies more than %d directories deep", TREE_MAX_DEPTH);
	memcpy(text, name, len);
	text[len] = '\0';
	int fd = openat(parent, text, DIR_FLAGS);
	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(parent, text, 0755) < 0 && errno != EEXIST) /* another thread's tree may make it too */
			return fail(e, "cannot make a directory");
		fd = openat(parent, text, DIR_FLAGS);
		/* whatever the umask */
		if (fd >= 0 && fchmod(fd, 0755) < 0) {
			close(fd);
			return fail(e, "cannot set the mode of a directory");
		}
	}
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
		struct stat st;
		bool link = fstatat(parent, text, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
		return err_set(e, ERR_INTEGRITY,
			       link ? "goes through the link '%s'" : "lies below '%s', which is not a directory", text);
	}
	if (fd < 0)
		return fail(e, "cannot open a directory");
	if (t->path.len > 0)
		buf_addc(&t->path, '/');
	buf_add(&t->path, text, len);
	t->levels[t->depth++] = (struct tree_level){.fd = fd, .end = t->path.len};
	return 0;
}

/* The directory named by the first `len` bytes of `path`, made if needed. Most of the way is open already, since
 * archives list neighbours together. */
static int walk(struct tree *t, const char *path, size_t len, int *ret_fd, struct err *e)
{
	size_t keep = 0, pos = 0;
	if (len > TREE_MAX_PATH)
		return err_set(e, ERR_INTEGRITY, "its path is longer than %d bytes", TREE_MAX_PATH);
	while (keep < t->depth) {
		size_t end = t->levels[keep].end;
		if (end > len || memcmp(t->path.data, path, end) != 0 || (end < len && path[end] != '/'))
			break;
		keep++;
		pos = end;
	}
	close_to(t, keep);
	while (pos < len) {
		pos += path[pos] == '/';
		size_t n = strcspn(path + pos, "/");
		if (n > len - pos)
			n = len - pos;
		if (enter(t, path + pos, n, e) < 0)
			return -1;
		pos += n;
	}
	*ret_fd = t->depth > 0 ? t->levels[t->depth - 1].fd : t->top;
	return 0;
}

/* The open directory that holds `path`, and its name there. */
static int locate(struct tree *t, const char *path, int *ret_dir, const char **ret_name, struct err *e)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	if (strlen(name) > NAME_MAX)
		return err_set(e, ERR_INTEGRITY, "its name is longer than %d bytes", NAME_MAX);
	*ret_name = name;
	return walk(t, path, slash ? (size_t)(slash - path) : 0, ret_dir, e);
}

int tree_mkdir(struct tree *t, const char *path, struct timespec mtime, struct err *e)
{
	int fd = -1;
	if (walk(t, path, strlen(path), &fd, e) < 0)
		return -1;
	if (t->time_count == t->time_cap)
		t->times = arena_grow(&t->arena, t->times, &t->time_cap, 256, sizeof(*t->times));
	t->times[t->time_count++] = (struct tree_time){.path = arena_strdup(&t->arena, path), .mtime = mtime};
	return 0;
}

int tree_create(struct tree *t, const char *path, mode_t mode, int *ret_fd, struct err *e)
{
	int dir = -1;
	const char *name = "";
	struct stat st;
	if (locate(t, path, &dir, &name, e) < 0)
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

void tree_discard(struct tree *t, const char *path)
{
	struct err ignored = {0};
	int dir = -1;
	const char *name = "";
	if (locate(t, path, &dir, &name, &ignored) == 0)
		unlinkat(dir, name, 0);
}

int tree_symlink(struct tree *t, const char *path, const char *target, struct timespec mtime, struct err *e)
{
	const struct timespec times[2] = {mtime, mtime};
	char old[PATH_MAX];
	int dir = -1;
	const char *name = "";
	if (locate(t, path, &dir, &name, e) < 0)
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

int tree_hardlink(struct tree *t, const char *path, const char *target, struct err *e)
{
	int dir = -1;
	const char *name = "";
	struct stat st, old;
	/* The first look must not make directories. The descriptor is duplicated because the second walk may close
	 * it. */
	if (fstatat(t->top, target, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, ERR_INTEGRITY, "is a link to '%s', which is not in the archive before it", target);
	if (locate(t, target, &dir, &name, e) < 0)
		return err_wrap(e, "is a link to '%s'", target);
	AUTO_FD int from = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	if (from < 0)
		return fail(e, "cannot open a directory");
	const char *target_name = name;
	if (fstatat(from, target_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "is a hard link to '%s', which is not a file", target);
	if (locate(t, path, &dir, &name, e) < 0)
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
	close_to(t, 0);
	for (size_t i = t->time_count; i-- > 0;) {
		const struct timespec times[2] = {t->times[i].mtime, t->times[i].mtime};
		const char *path = *t->times[i].path ? t->times[i].path : ".";
		if (utimensat(t->top, path, times, AT_SYMLINK_NOFOLLOW) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot set the time of '%s'", path);
	}
	return 0;
}
