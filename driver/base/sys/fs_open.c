#include <limits.h>

#include "base/os.h"
#include "base/sys/build_user.h"
#include "base/sys/fs_internal.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
/* Nothing is waited for (FIFO) and nothing taken over (terminal). */
#define FILE_FLAGS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

const char fs_trusted[] = "";

/* ---- what went wrong ---- */

const char *fs_full(const char *top, const char *rel, struct arena *a)
{
	return top == TRUSTED ? rel : utf8_printable(*rel ? path_join(a, top, rel) : top, a);
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
		err_set(e, ERR_INTEGRITY, "will not follow a link: '%s' points to '%s'",
			utf8_printable(path, &a), utf8_printable(target, &a));
		return err_hint(e,
				"a build leaves files and directories of its own there: find out "
				"what made the link; "
				"'rm %s' removes it",
				utf8_printable(shell_quoted(path, &a), &a));
	}

	return err_set(e, ERR_INTEGRITY, "will not follow a link: '%s' leads through one",
		       fs_full(top, rel, &a));
}

int fs_fail(const char *what, const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (errno == ELOOP && top != TRUSTED)
		return link_error(top, rel, e);
	return err_errno(e, ERR_SYSTEM, "cannot %s '%s'", what, fs_full(top, rel, &a));
}

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

static int wrong_kind(const char *top, const char *rel, mode_t mode, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (S_ISLNK(mode))
		return link_error(top, rel, e);
	return err_set(e, top == TRUSTED ? ERR_SYSTEM : ERR_INTEGRITY,
		       "not a regular file: '%s' is %s", fs_full(top, rel, &a), kind_name(mode));
}

/* ---- the way there ---- */

/* One directory; ELOOP for a link to one. */
static int open_part(int dir, const char *name)
{
	struct stat st;
	int fd = openat(dir, name, DIR_FLAGS | O_NOFOLLOW);

	if (fd >= 0 || errno != ENOTDIR)
		return fd;
	bool is_link = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
	errno = is_link ? ELOOP : ENOTDIR;
	return -1;
}

/* Where the kernel cannot do it at once. */
static int open_each(int dir, const char *rel, mode_t mode)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	for (const char *p = rel; at >= 0 && *p; p += *p == '/') {
		size_t len = strcspn(p, "/");
		const char *name = arena_strndup(&a, p, len);
		bool made = mode && mkdirat(at, name, mode & ~FS_EXACT) == 0;
		if (mode && !made && errno != EEXIST)
			return -1;
		int next = open_part(at, name);
		if (next >= 0 && made && (mode & FS_EXACT))
			(void)fchmod(next, mode & ~FS_EXACT);
		int why = errno;
		close(at);
		at = next;
		errno = why;
		p += len;
	}

	return steal_fd(&at);
}

int fs_open_below(int dir, const char *rel, mode_t mode)
{
	if (!*rel || strcmp(rel, ".") == 0)
		return fcntl(dir, F_DUPFD_CLOEXEC, 0);
	if (!path_is_safe_relative(rel)) {
		errno = EINVAL;
		return -1;
	}

	/* Without O_NOFOLLOW, which would say of a link that it is no directory. */
	int fd = os_open_beneath(dir, rel, DIR_FLAGS);
	if (fd >= 0)
		return fd;
	/* EPERM: a filter that does not know the call; EAGAIN: something was moved meanwhile. */
	bool no_answer = errno == ENOSYS || errno == EPERM || errno == EAGAIN;
	bool to_create = mode && errno == ENOENT;
	return no_answer || to_create ? open_each(dir, rel, mode) : fd;
}

int fs_open_dir(const char *top, const char *rel, mode_t mode)
{
	AUTO_FD int dir = open(top == TRUSTED ? rel : top, DIR_FLAGS);
	return dir < 0 || top == TRUSTED ? steal_fd(&dir) : fs_open_below(dir, rel, mode);
}

int fs_open_parent(const char *top, const char *rel, mode_t mode)
{
	AUTO_ARENA struct arena a = {0};

	if (top == TRUSTED || path_is_safe_relative(rel))
		return fs_open_dir(top, path_dir(&a, rel), mode);
	errno = EINVAL;
	return -1;
}

/* ---- files ---- */

int fs_stat(const char *top, const char *rel, struct stat *ret)
{
	if (top == TRUSTED)
		return stat(rel, ret);
	AUTO_FD int dir = *rel ? fs_open_parent(top, rel, 0) : fs_open_dir(top, "", 0);
	return dir < 0 ? -1 : fstatat(dir, *rel ? path_base(rel) : ".", ret, AT_SYMLINK_NOFOLLOW);
}

bool fs_exists(const char *top, const char *rel)
{
	struct stat st;

	if (fs_stat(top, rel, &st) == 0)
		return true;
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case EINVAL:
		return false;
	case EACCES:
	case EPERM:
	case ELOOP:
	case ENAMETOOLONG:
		return top != TRUSTED;
	default:
		return true;
	}
}

bool fs_is_file(const char *top, const char *rel)
{
	struct stat st;
	return fs_stat(top, rel, &st) == 0 && S_ISREG(st.st_mode);
}

bool fs_is_dir(const char *top, const char *rel)
{
	struct stat st;
	return fs_stat(top, rel, &st) == 0 && S_ISDIR(st.st_mode);
}

int fs_file_at(int parent, const char *top, const char *rel, int flags, struct stat *ret,
	       struct err *e)
{
	const bool trusted = top == TRUSTED;
	const int dir = trusted ? AT_FDCWD : parent;
	const char *name = trusted ? rel : path_base(rel),
		   *what = flags & O_CREAT ? "write" : "read";
	bool there = fstatat(dir, name, ret, trusted ? 0 : AT_SYMLINK_NOFOLLOW) == 0;

	if (there && !S_ISREG(ret->st_mode))
		return wrong_kind(top, rel, ret->st_mode, e);
	if (!there && (errno != ENOENT || !(flags & O_CREAT)))
		return fs_fail(what, top, rel, e);
	AUTO_FD int fd = openat(dir, name, flags | FILE_FLAGS | (trusted ? 0 : O_NOFOLLOW), 0644);
	if (fd < 0 || fstat(fd, ret) < 0 || (!there && build_user_keep(fd, parent) < 0))
		return fs_fail(what, top, rel, e);
	if (!S_ISREG(ret->st_mode))
		return wrong_kind(top, rel, ret->st_mode, e);
	return steal_fd(&fd);
}

static int open_file(const char *top, const char *rel, int flags, const char *what,
		     struct stat *ret, struct err *e)
{
	AUTO_FD int parent = top == TRUSTED ? -1 : fs_open_parent(top, rel, 0);

	if (parent < 0 && top != TRUSTED)
		return fs_fail(what, top, rel, e);
	return fs_file_at(parent, top, rel, flags, ret, e);
}

int fs_open(const char *top, const char *rel, struct stat *ret, struct err *e)
{
	return open_file(top, rel, O_RDONLY, "read", ret, e);
}

/* What is written into in place must not be another file as well. */
int fs_append(const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st = {0};
	AUTO_FD int fd = open_file(top, rel, O_WRONLY | O_APPEND | O_CREAT, "write", &st, e);

	if (fd < 0)
		return -1;
	if (st.st_nlink <= 1)
		return steal_fd(&fd);
	err_set(e, ERR_INTEGRITY, "will not change a file with %llu names: '%s'",
		(unsigned long long)st.st_nlink, fs_full(top, rel, &a));
	return err_hint(e, "the others may be anywhere; 'rm %s' removes this one",
			utf8_printable(shell_quoted(path_join(&a, top, rel), &a), &a));
}

int fs_create(const char *top, const char *rel, mode_t mode, struct err *e)
{
	AUTO_FD int dir = fs_open_parent(top, rel, 0755);
	int fd = dir < 0 ? -1
			 : openat(dir, path_base(rel),
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	return fd < 0 ? fs_fail("write", top, rel, e) : fd;
}

/* ---- directories ---- */

static int make_dirs(const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *part = arena_strdup(&a, path);

	for (char *p = part;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		bool last = *p == '\0';
		*p = '\0';
		/* EEXIST is not the only "it is there": an automounter
		 * or a read-only parent may say EROFS or EACCES. */
		int why = *part && mkdir(part, 0755) < 0 ? errno : 0;
		if (why && !fs_is_dir(TRUSTED, part)) {
			errno = why == EEXIST ? ENOTDIR : why;
			return err_errno(e, ERR_SYSTEM, "cannot make directory '%s'", part);
		}

		if (last)
			break;
		*p = '/';
	}

	return *path ? 0 : err_set(e, ERR_SYSTEM, "cannot make directory ''");
}

int fs_mkdirs(const char *top, const char *rel, struct err *e)
{
	if (top == TRUSTED)
		return make_dirs(rel, e);
	AUTO_FD int dir = fs_open_dir(top, rel, 0755);
	return dir < 0 ? fs_fail("make directory", top, rel, e) : 0;
}

int fs_move(const char *top, const char *rel, const char *to_top, const char *to_rel)
{
	AUTO_FD int from = fs_open_parent(top, rel, 0);
	AUTO_FD int to = from < 0 ? -1 : fs_open_parent(to_top, to_rel, 0);
	return to < 0 ? -1 : renameat(from, path_base(rel), to, path_base(to_rel));
}

DIR *fs_open_entries(int fd)
{
	AUTO_FD int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (d) {
		(void)steal_fd(&copy);
		rewinddir(d); /* the copy shares its position with what was read before */
	}

	return d;
}

const struct dirent *fs_next_entry(DIR *d)
{
	const struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(d);
	} while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry;
}

int fs_list(const char *top, const char *rel, struct arena *a, struct strlist *ret, struct err *e)
{
	AUTO_FD int fd = fs_open_dir(top, rel, 0);
	AUTO_DIR DIR *d = fd < 0 ? NULL : fs_open_entries(fd);

	if (!d)
		return fs_fail("list", top, rel, e);
	struct strlist names = {0};
	for (const struct dirent *entry; (entry = fs_next_entry(d));)
		strlist_add(&names, a, entry->d_name);
	if (errno)
		return fs_fail("list", top, rel, e);
	strlist_sort(&names);
	strlist_refs(ret, a, names.items, names.count);
	return 0;
}
