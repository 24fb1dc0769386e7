#include "base/os.h"
#include "base/sys/fs_internal.h"

/* Deeper directories are moved up to the top one and removed from there,
 * so that neither descriptors nor the stack bound the depth of a tree. */
#define MAX_DEPTH 32

struct removal {
	const char *path; /* for messages */
	int top;          /* the directory everything is below */
	unsigned moved;   /* names given to directories moved up */
};

static int remove_error(const struct removal *r, const char *name, struct err *e)
{
	return err_errno(e, ERR_SYSTEM, "cannot remove '%s' (at '%s')", r->path, name);
}

/* Opens a directory, never through a link, with the permissions needed to remove from it. Returns
 * -1 with errno. */
static int open_writable(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);

	if (fd < 0 && errno == EACCES && os_chmod_beside(parent, name, 0700) == 0)
		fd = openat(parent, name, flags);
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0300) != 0300)
		/* where it fails the unlink says why */
		(void)fchmod(fd, (st.st_mode & 07777) | 0700);
	return fd;
}

static int remove_entry(struct removal *r, int dir, const char *name, int depth, struct err *e);

static int remove_entries(struct removal *r, int dir, int depth, struct err *e)
{
	AUTO_DIR DIR *d = fs_open_entries(dir);

	if (!d)
		return remove_error(r, ".", e);
	/* What is moved up while the top is read may be missed
	 * by readdir: go round until a pass finds nothing. */
	for (bool found = true; found;) {
		found = false;
		rewinddir(d);
		for (const struct dirent *entry; (entry = fs_next_entry(d)); found = true)
			if (remove_entry(r, dir, entry->d_name, depth, e) < 0)
				return -1;
		if (errno)
			return remove_error(r, ".", e);
	}

	return 0;
}

static int move_up(struct removal *r, int dir, const char *name, struct err *e)
{
	/* A new parent means a new "..", which needs write permission on the directory itself. */
	(void)os_chmod_beside(dir, name, 0700);
	for (;;) {
		char fresh[32];
		snprintf(fresh, sizeof(fresh), ".ptbuild-deep-%u", r->moved++);
		/* A tree may hold such a name already. */
		if (os_rename_new(dir, name, r->top, fresh) == 0)
			return 0;
		if (errno != EEXIST)
			return remove_error(r, name, e);
	}
}

static int remove_entry(struct removal *r, int dir, const char *name, int depth, struct err *e)
{
	/* Linux gives EISDIR for a directory; POSIX allows EPERM. */
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return remove_error(r, name, e);
	int why = errno;
	if (depth >= MAX_DEPTH)
		return move_up(r, dir, name, e);
	AUTO_FD int fd = open_writable(dir, name);
	if (fd < 0) {
		/* Not a directory after all: the error of unlinkat counts. */
		if (errno == ENOTDIR)
			errno = why;
		return remove_error(r, name, e);
	}

	if (remove_entries(r, fd, depth + 1, e) < 0)
		return -1;
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? remove_error(r, name, e)
									: 0;
}

/* The root and paths that end in "." or "..": emptying them is never meant. */
static bool is_forbidden(const char *path)
{
	const char *base = path_base(path);
	return !*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0;
}

static int remove_trusted(const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *name = arena_strdup(&a, path);

	for (size_t len = strlen(name); len && name[len - 1] == '/'; len--)
		name[len - 1] = '\0'; /* "link/" would be followed */
	if (is_forbidden(name))
		return err_set(e, ERR_SYSTEM, "will not remove '%s'", path);
	return fs_remove_at(AT_FDCWD, name, path, e);
}

int fs_remove(const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (top == TRUSTED)
		return remove_trusted(rel, e);
	AUTO_FD int dir = fs_open_parent(top, rel, 0);
	if (dir < 0)
		return errno == ENOENT ? 0 : fs_fail("remove", top, rel, e);
	return fs_remove_at(dir, path_base(rel), fs_full(top, rel, &a), e);
}

int fs_remove_at(int dir, const char *name, const char *path, struct err *e)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", path);
	AUTO_FD int top = open_writable(dir, name);
	if (top < 0)
		return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", path);
	struct removal r = {.path = path, .top = top};
	if (remove_entries(&r, top, 0, e) < 0)
		return -1;
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", path);
	return 0;
}

const char *fs_standing(const char *dir, struct arena *a)
{
	while (access(dir, F_OK) < 0 && strcmp(dir, "/") != 0)
		dir = path_dir(a, dir);
	return dir;
}

void fs_drop_empty(const char *dir, const char *top)
{
	AUTO_ARENA struct arena a = {0};

	for (; dir && path_below(dir, top); dir = path_dir(&a, dir))
		if (rmdir(dir) < 0 && errno != ENOENT)
			return;
}
