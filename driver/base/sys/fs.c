#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include "base/os.h"
#include "base/sys/build_user.h"
#include "base/sys/fs_internal.h"

#define CHUNK ((size_t)64 * 1024)
#define TOO_LARGE "file too large: '%s' has more than %llu bytes"

/* An open file that is read to its end. */
struct reading {
	int fd;
	const char *path;
	uint64_t size; /* at which its end is; 0: not known */
	uint64_t max;  /* a larger one is an error */
};

static int read_to(const struct reading *r, struct buf *out, struct err *e)
{
	const uint64_t size = r->size, max = r->max;
	const char *path = r->path;
	uint64_t total = 0;
	size_t before = out->len;

	for (;;) {
		const size_t room = size > total && size <= max ? (size_t)(size - total) : CHUNK;
		char *to = buf_reserve(out, room);
		ssize_t n = read(r->fd, to, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
		total += n > 0 ? (uint64_t)n : 0;
		if (total > max)
			err_set(e, ERR_INTEGRITY, TOO_LARGE, path, (unsigned long long)max);
		bool failed = n < 0 || total > max;
		out->len = failed ? before : out->len + (size_t)n;
		if (n > 0 && !failed && total != size)
			continue;
		(void)buf_cstr(out);
		return failed ? -1 : 0;
	}
}

int fs_read_fd(int fd, const char *path, uint64_t max, struct buf *out, struct err *e)
{
	return read_to(&(struct reading){.fd = fd, .path = path, .max = max}, out, e);
}

int fs_map_fd(int fd, const char *name, struct fs_mapping *ret, struct err *e)
{
	struct stat st;

	*ret = (struct fs_mapping){0};
	if (fstat(fd, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", name);
	if (st.st_size == 0)
		return 0;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_errno(e, ERR_SYSTEM, "cannot map '%s'", name);
	*ret = (struct fs_mapping){.data = p, .size = (size_t)st.st_size};
	return 0;
}

int fs_map(const char *path, struct fs_mapping *ret, struct err *e)
{
	struct stat st;

	*ret = (struct fs_mapping){0};
	AUTO_FD int fd = fs_open(TRUSTED, path, &st, e);
	return fd < 0 ? -1 : fs_map_fd(fd, path, ret, e);
}

void fs_unmap(struct fs_mapping *m)
{
	if (m->data)
		munmap((void *)(uintptr_t)m->data, m->size);
	*m = (struct fs_mapping){0};
}

int fs_read(const char *top, const char *rel, uint64_t max, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st = {0};
	AUTO_FD int fd = fs_open(top, rel, &st, e);

	if (fd < 0)
		return -1;
	if ((uint64_t)st.st_size > max)
		return err_set(e, ERR_INTEGRITY, TOO_LARGE, fs_full(top, rel, &a),
			       (unsigned long long)max);
	const struct reading r = {fd, fs_full(top, rel, &a), (uint64_t)st.st_size, max};
	return read_to(&r, out, e);
}

int fs_write_all(int fd, const void *data, size_t len, const char *name, struct err *e)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EBADF) /* as the caller of the program left it */
			return err_set(e, ERR_SYSTEM, "%s is closed", name);
		if (n < 0)
			return err_errno(e, ERR_SYSTEM, "cannot write '%s'", name);
		p += n;
		len -= (size_t)n;
	}

	return 0;
}

int fs_disk_place(const char *where, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (!err_disk(e->msg))
		return -1;
	return err_wrap(e, "cannot write to '%s'", path_from_here(&a, where));
}

int fs_write_at(int fd, const void *data, size_t len, uint64_t offset, const char *name,
		struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t n =
			pwrite(fd, (const char *)data + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(e, ERR_SYSTEM, "cannot write '%s'", name);
		done += (size_t)n;
	}

	return 0;
}

int fs_close(int *fd, const char *name, struct err *e)
{
	if (close(steal_fd(fd)) < 0 && errno != EINTR)
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", name);
	return 0;
}

ssize_t fs_read_at(int fd, void *to, size_t len, uint64_t offset)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = pread(fd, (char *)to + have, len - have, (off_t)(offset + have));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}

	return (ssize_t)have;
}

int fs_sync_dir(const char *path, struct err *e)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* EINVAL: a file system that has no such notion
	 * (some network and FUSE ones) loses nothing by it. */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		return err_errno(e, ERR_SYSTEM, "cannot sync directory '%s'", path);
	return 0;
}

int fs_sync_file(const char *path, struct err *e)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? err_errno(e, ERR_SYSTEM, "cannot sync '%s'", path) : 0;
}

int fs_rename(const char *from, const char *to, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (rename(from, to) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", from, to);
	return fs_sync_dir(path_dir(&a, to), e);
}

int fs_rename_new(const char *from, const char *to, bool *ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	int rc = os_rename_new(AT_FDCWD, from, AT_FDCWD, to);

	/* Network file systems may lack it, and have hard links. */
	if (rc < 0 && errno != EEXIST && errno != ENOENT && link(from, to) == 0)
		rc = unlink(from);
	*ret = rc == 0;
	if (rc < 0 && errno == EEXIST)
		return 0;
	if (rc < 0)
		return err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", from, to);
	return fs_sync_dir(path_dir(&a, to), e);
}

int fs_free_bytes(const char *path, uint64_t *ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct statvfs v;
	const char *p = path;

	while (statvfs(p, &v) < 0) {
		if (errno != ENOENT || strcmp(p, ".") == 0 || strcmp(p, "/") == 0)
			return err_errno(e, ERR_SYSTEM, "cannot measure the free space of '%s'",
					 path);
		p = path_dir(&a, p);
	}

	*ret = (uint64_t)v.f_bavail * v.f_frsize;
	return 0;
}

int fs_temp_dir(const char *parent, const char *prefix, struct arena *a, char **ret, struct err *e)
{
	const char *tmp = getenv("TMPDIR");

	parent = parent ? parent : tmp && *tmp ? tmp : "/tmp";
	char *path = arena_printf(a, "%s/%sXXXXXX", parent, prefix);
	if (!mkdtemp(path))
		return err_errno(e, ERR_SYSTEM, "cannot make a temporary directory in '%s'",
				 parent);
	*ret = path;
	return 0;
}

/* Temporary files that become another by rename, and directories. Their writer locks them, so that
 * leftovers of a killed process can be distinguished from files being written, also from another
 * container. */

#define PREFIX ".ptbuild-"
enum { DIGITS = 16, ATTEMPTS = 100 };
_Static_assert(sizeof(PREFIX) + DIGITS == FS_NEIGHBOUR_LEN, "the name of a neighbour");

static bool is_neighbour(const char *name)
{
	size_t n = strlen(PREFIX);
	return strncmp(name, PREFIX, n) == 0 && strlen(name) == n + DIGITS &&
	       strspn(name + n, "0123456789abcdef") == DIGITS;
}

/* False when fs_sweep was faster. A file system without
 * locks locks nothing, and nothing is swept there. */
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

/* The mode is that of open(2), less umask, which mkostemp cannot do. */
int fs_neighbour_at(int dir, mode_t mode, char name[FS_NEIGHBOUR_LEN])
{
	uint64_t id;

	for (int attempt = 0; attempt < ATTEMPTS && os_random(&id, sizeof(id)) == 0; attempt++) {
		snprintf(name, FS_NEIGHBOUR_LEN, PREFIX "%016llx", (unsigned long long)id);
		AUTO_FD int fd = make(dir, name, mode);
		/* ENOENT: a sweep took the directory before it was locked. */
		const bool again = errno == EEXIST || (S_ISDIR(mode) && errno == ENOENT);
		if (fd < 0 && !again)
			return -1;
		if (fd >= 0 && hold(fd) && build_user_keep(fd, dir) == 0)
			return steal_fd(&fd);
	}

	return -1;
}

int fs_neighbour(const char *path, mode_t mode, struct arena *a, char **ret_name, struct err *e)
{
	char name[FS_NEIGHBOUR_LEN];
	AUTO_FD int dir = fs_open_parent(TRUSTED, path, 0);
	int fd = dir < 0 ? -1 : fs_neighbour_at(dir, mode, name);

	if (fd < 0)
		return fs_fail("write", TRUSTED, path, e);
	*ret_name = path_join(a, path_dir(a, path), name);
	return fd;
}

static int set_like(int fd, const struct stat *like)
{
	struct stat st;
	const struct timespec times[2] = {like->st_atim, like->st_mtim};

	if (fstat(fd, &st) < 0)
		return -1;
	bool same_owner = st.st_uid == like->st_uid && st.st_gid == like->st_gid;
	if (!same_owner && fchown(fd, like->st_uid, like->st_gid) < 0 && errno != EPERM)
		return -1;
	return fchmod(fd, like->st_mode & 0777) < 0 ? -1 : futimens(fd, times);
}

/* Renames the written file to its name; both the file and the name then survive a crash. */
static int put_in_place(int dir, int fd, const char *name, const char *rel)
{
	if (fsync(fd) < 0 || renameat(dir, name, dir, path_base(rel)) < 0)
		return -1;
	/* EINVAL: a file system where a directory cannot be synced
	 * (some network and FUSE ones) loses nothing by it. */
	return fsync(dir) < 0 && errno != EINVAL ? -1 : 0;
}

/* What a file shall be. */
struct new_file {
	const char *top, *rel;
	const void *data;
	size_t len;
	mode_t mode;
	const struct stat *like; /* whose owner, mode and time it gets; NULL: its own */
};

static int replace(const struct new_file *f, struct err *e)
{
	const char *top = f->top, *rel = f->rel;
	AUTO_ARENA struct arena a = {0};
	char name[FS_NEIGHBOUR_LEN];
	AUTO_FD int dir = fs_open_parent(top, rel, 0);
	AUTO_FD int fd = dir < 0 ? -1 : fs_neighbour_at(dir, f->mode, name);

	if (fd < 0)
		return fs_fail("write", top, rel, e);
	int rc = fs_write_all(fd, f->data, f->len, fs_full(top, rel, &a), e);
	if (rc == 0 && f->like && set_like(fd, f->like) < 0)
		rc = fs_fail("write", top, rel, e);
	if (rc == 0 && put_in_place(dir, fd, name, rel) < 0)
		rc = fs_fail("write", top, rel, e);
	if (rc < 0)
		(void)unlinkat(dir, name, 0);
	return rc;
}

int fs_write(const char *top, const char *rel, const void *data, size_t len, mode_t mode,
	     struct err *e)
{
	return replace(&(struct new_file){top, rel, data, len, mode, NULL}, e);
}

int fs_rewrite(const char *top, const char *rel, const void *data, size_t len,
	       const struct stat *like, struct err *e)
{
	return replace(&(struct new_file){top, rel, data, len, 0600, like}, e);
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

/* Locked until it is gone: who has just made it must not lock it meanwhile. */
static int sweep_one(int dir, const char *name, const char *label, struct err *e)
{
	struct stat st;
	AUTO_FD int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno == EISDIR)
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	bool file_or_dir = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
	if (!file_or_dir || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	return fs_remove_at(dir, name, label, e);
}

int fs_sweep_at(int dir, const char *label, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_DIR DIR *d = fs_open_entries(dir);
	struct strlist names = {0};

	if (!d)
		return err_errno(e, ERR_SYSTEM, "cannot list '%s'", label);
	for (const struct dirent *entry; (entry = fs_next_entry(d));)
		if (is_neighbour(entry->d_name))
			strlist_add(&names, &a, entry->d_name);
	if (errno)
		return err_errno(e, ERR_SYSTEM, "cannot list '%s'", label);
	for (size_t i = 0; i < names.count; i++)
		if (sweep_one(dir, names.items[i], path_join(&a, label, names.items[i]), e) < 0)
			return -1;
	return 0;
}

int fs_sweep(const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (!fs_exists(top, rel))
		return 0;
	AUTO_FD int dir = fs_open_dir(top, rel, 0);
	return dir < 0 ? fs_fail("list", top, rel, e) : fs_sweep_at(dir, fs_full(top, rel, &a), e);
}
