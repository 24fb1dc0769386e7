#include "base/sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include "base/os.h"
#include "base/path.h"

#define CHUNK ((size_t)64 * 1024)

int fs_read_fd(int fd, const char *path, uint64_t max, struct buf *out, struct err *e)
{
	uint64_t total = 0;
	size_t before = out->len;
	for (;;) {
		char *to = buf_reserve(out, CHUNK);
		ssize_t n = read(fd, to, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
		total += n > 0 ? (uint64_t)n : 0;
		if (total > max)
			err_set(e, ERR_INTEGRITY, "file too large: '%s' has more than %llu bytes", path,
				(unsigned long long)max);
		bool failed = n < 0 || total > max;
		out->len = failed ? before : out->len + (size_t)n;
		if (n > 0 && !failed)
			continue;
		(void)buf_cstr(out);
		return failed ? -1 : 0;
	}
}

int fs_open_file(const char *path, struct stat *ret, struct err *e)
{
	/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, ret) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	if (!S_ISREG(ret->st_mode))
		return err_set(e, ERR_SYSTEM, "cannot read '%s': not a regular file", path);
	return steal_fd(&fd);
}

int fs_map(const char *path, struct fs_mapping *ret, struct err *e)
{
	struct stat st;
	AUTO_FD int fd = fs_open_file(path, &st, e);
	*ret = (struct fs_mapping){0};
	if (fd < 0 || st.st_size == 0)
		return fd < 0 ? -1 : 0;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_errno(e, ERR_SYSTEM, "cannot map '%s'", path);
	*ret = (struct fs_mapping){.data = p, .size = (size_t)st.st_size};
	return 0;
}

void fs_unmap(struct fs_mapping *m)
{
	if (m->data)
		munmap((void *)(uintptr_t)m->data, m->size);
	*m = (struct fs_mapping){0};
}

int fs_read(const char *path, uint64_t max, struct buf *out, struct err *e)
{
	struct stat st;
	AUTO_FD int fd = fs_open_file(path, &st, e);
	return fd < 0 ? -1 : fs_read_fd(fd, path, max, out, e);
}

int fs_write_all(int fd, const void *data, size_t len, const char *name, struct err *e)
{
	const char *p = data;
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, ERR_SYSTEM, "cannot write '%s'", name);
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fs_write_at(int fd, const void *data, size_t len, uint64_t offset, const char *name, struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, (const char *)data + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(e, ERR_SYSTEM, "cannot write '%s'", name);
		done += (size_t)n;
	}
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

int fs_write_atomic(const char *path, const void *data, size_t len, mode_t mode, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *name = NULL;
	AUTO_FD int fd = fs_neighbour(path, mode, &a, &name, e);
	if (fd < 0)
		return -1;
	int rc = fs_write_all(fd, data, len, path, e);
	if (rc == 0 && (fsync(fd) < 0 || rename(name, path) < 0))
		rc = err_errno(e, ERR_SYSTEM, "cannot write '%s'", path);
	if (rc < 0)
		unlink(name);
	return rc < 0 ? -1 : fs_sync_dir(path_dir(&a, path), e);
}

int fs_can_write(const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *name = NULL;
	if (fs_is_dir(path)) {
		errno = EISDIR;
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", path);
	}
	AUTO_FD int fd = fs_neighbour(path, 0600, &a, &name, e);
	if (fd < 0)
		return -1;
	unlink(name);
	return 0;
}

int fs_mkdirs(const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *part = arena_strdup(&a, path);
	for (char *p = part;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		bool last = *p == '\0';
		*p = '\0';
		/* EEXIST is not the only "it is there": an automounter or a read-only parent may say EROFS or
		 * EACCES. */
		if (*part && mkdir(part, 0755) < 0 && !fs_is_dir(part)) {
			if (errno == EEXIST)
				errno = ENOTDIR;
			return err_errno(e, ERR_SYSTEM, "cannot make directory '%s'", part);
		}
		if (last)
			break;
		*p = '/';
	}
	return *path ? 0 : err_set(e, ERR_SYSTEM, "cannot make directory ''");
}

int fs_sync_dir(const char *path, struct err *e)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* EINVAL: a file system that has no such notion (some network and FUSE ones) loses nothing by it. */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		return err_errno(e, ERR_SYSTEM, "cannot sync directory '%s'", path);
	return 0;
}

int fs_sync_file(const char *path, struct err *e)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot sync '%s'", path);
	return 0;
}

int fs_rename(const char *from, const char *to, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	if (rename(from, to) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", from, to);
	return fs_sync_dir(path_dir(&a, to), e);
}

DIR *fs_open_entries(int fd)
{
	AUTO_FD int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	if (d)
		(void)steal_fd(&copy);
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

int fs_list(const char *path, struct arena *a, struct strlist *ret, struct err *e)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_errno(e, ERR_SYSTEM, "cannot list '%s'", path) : fs_list_fd(fd, path, a, ret, e);
}

int fs_list_fd(int fd, const char *path, struct arena *a, struct strlist *ret, struct err *e)
{
	AUTO_DIR DIR *d = fs_open_entries(fd);
	if (!d)
		return err_errno(e, ERR_SYSTEM, "cannot list '%s'", path);
	struct strlist names = {0};
	for (const struct dirent *entry; (entry = fs_next_entry(d));)
		strlist_add(&names, a, entry->d_name);
	if (errno)
		return err_errno(e, ERR_SYSTEM, "cannot list '%s'", path);
	strlist_sort(&names);
	for (size_t i = 0; i < names.count; i++)
		strlist_ref(ret, a, names.items[i]);
	return 0;
}

bool fs_exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

bool fs_is_dir(const char *path)
{
	int saved = errno;
	struct stat st;
	bool is = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	errno = saved;
	return is;
}

int fs_free_bytes(const char *path, uint64_t *ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct statvfs v;
	const char *p = path;
	while (statvfs(p, &v) < 0) {
		if (errno != ENOENT || strcmp(p, ".") == 0 || strcmp(p, "/") == 0)
			return err_errno(e, ERR_SYSTEM, "cannot measure the free space of '%s'", path);
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
		return err_errno(e, ERR_SYSTEM, "cannot make a temporary directory in '%s'", parent);
	*ret = path;
	return 0;
}
