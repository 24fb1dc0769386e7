#include "base/sys/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>
#include <locale.h>

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
		return err_set(e, ERR_INTEGRITY, "a name in its path is longer than %d bytes",
			       NAME_MAX);
	return err_errno(e, errno == EINVAL || errno == EILSEQ ? ERR_INTEGRITY : ERR_SYSTEM, "%s",
			 what);
}

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFLNK:
		return "a link";
	case S_IFREG:
		return "a file";
	default:
		return "a special file";
	}
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
				       S_ISLNK(st.st_mode)
					       ? "goes through the link '%s'"
					       : "is below '%s', which is not a directory",
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
		return err_set(
			e, ERR_INTEGRITY,
			"is more than %d directories deep, or its path is longer than %d bytes",
			MAX_DEPTH, MAX_PATH);
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
	t->times = arena_room(&t->arena, t->times, t->time_count, &t->time_cap, 256,
			      sizeof(*t->times));
	t->times[t->time_count++] =
		(struct tree_time){.path = arena_strdup(&t->arena, path), .mtime = mtime};
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
		AUTO_FD int fd = openat(dir, name,
					O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
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

static void tree_discard(const struct tree *t, const char *path)
{
	AUTO_FD int dir = open_parent(t, path, ERR_IGNORED);
	if (dir >= 0)
		unlinkat(dir, path_base(path), 0);
}

int tree_symlink(const struct tree *t, const char *path, const char *target, struct timespec mtime,
		 struct err *e)
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

	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? fail(e, "cannot set its time")
								    : 0;
}

int tree_hardlink(const struct tree *t, const char *path, const char *target, struct err *e)
{
	const char *name = path_base(path), *target_name = path_base(target);
	struct stat st, old;

	/* The first look must not make directories. */
	if (fstatat(t->top, target, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, ERR_INTEGRITY,
			       "is a link to '%s', which is not in the archive before it", target);
	AUTO_FD int from = open_parent(t, target, e);
	if (from < 0)
		return err_wrap(e, "is a link to '%s'", target);
	if (fstatat(from, target_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "is a hard link to '%s', which is not a file",
			       target);
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

	return linkat(from, target_name, dir, name, 0) < 0 ? fail(e, "cannot make the hard link")
							   : 0;
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

#ifdef __APPLE__
#include <xlocale.h>
#endif

#define RATIO_FROM (UINT64_C(64) << 20)
#define READ_SIZE ((size_t)256 * 1024)

struct tar {
	struct archive *reader;
	int fd;
	locale_t utf8, before;
	struct tar_limits limits;
	const struct run *run;
	uint64_t packed, bytes; /* of the file; 0: unknown. Unpacked so far */
	unsigned entries;
	const char *entry;     /* as the archive has it; NULL: none yet */
	struct buf name, hard; /* normal */
};

/* EILSEQ and EINVAL are libarchive's own numbers for
 * bytes that it cannot make sense of, -1 for all else. */
int tar_fail(struct archive *a, struct err *e)
{
	int number = archive_errno(a);
	const char *text = archive_error_string(a);

	if (number > 0 && number != EILSEQ && number != EINVAL)
		return err_set(e, ERR_SYSTEM, "cannot be read: %s", strerror(number));
	return err_set(e, ERR_INTEGRITY, "damaged: %s", text ? text : "it ends too early");
}

int tar_deny(const struct tar *t, struct err *e)
{
	AUTO_BUF struct buf name = {0};

	for (const char *p = t->entry; *p;) {
		size_t n = strcspn(p, "\n\t");
		utf8_show(&name, p, n, false);
		p += n;
		if (*p)
			buf_printf(&name, "\\x%02x", (unsigned char)*p++);
	}

	return err_wrap(e, "entry '%.200s'", buf_cstr(&name));
}

static struct tar *new_tar(const struct tar_limits *l, const struct run *run)
{
	struct tar *t = calloc(1, sizeof(*t));

	if (!t || !(t->reader = archive_read_new()))
		abort();
	t->fd = -1;
	t->limits = *l;
	t->run = run;
	/* libarchive converts names to the locale's
	 * character set: "C" would lose those outside ASCII. */
	t->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	t->before = t->utf8 ? uselocale(t->utf8) : (locale_t)0;
	return t;
}

static void support_tar(struct archive *r)
{
	/* "all" would start programs for formats that the library cannot read itself. */
	archive_read_support_filter_gzip(r);
	archive_read_support_filter_xz(r);
	archive_read_support_filter_bzip2(r);
	archive_read_support_filter_zstd(r);
	archive_read_support_format_tar(r);
}

static int open_file(struct tar *t, const char *path, struct err *e)
{
	char magic[4] = {0};
	struct stat st;

	t->fd = fs_open(TRUSTED, path, &st, e);
	if (t->fd < 0)
		return -1;
	t->packed = (uint64_t)st.st_size;
	if (!t->packed)
		return err_set(e, ERR_INTEGRITY, "is empty");
	if (fs_read_at(t->fd, magic, sizeof(magic), 0) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot be read");
	if (memcmp(magic, "PK\003\004", 4) == 0 || memcmp(magic, "PK\005\006", 4) == 0)
		archive_read_support_format_zip_seekable(t->reader);
	else
		support_tar(t->reader);
	return archive_read_open_fd(t->reader, t->fd, READ_SIZE) == ARCHIVE_OK
		       ? 0
		       : tar_fail(t->reader, e);
}

/* The archive for its caller, or nothing where opening it gave -1. */
static int give(struct tar *t, int rc, struct tar **ret)
{
	if (rc < 0)
		tar_close(t);
	else
		*ret = t;
	return rc;
}

int tar_open(const char *path, const struct tar_limits *l, const struct run *run, struct tar **ret,
	     struct err *e)
{
	struct tar *t = new_tar(l, run);
	return give(t, open_file(t, path, e), ret);
}

int tar_open_member(ssize_t (*read)(struct archive *, void *, const void **), void *user,
		    const struct tar_limits *l, const struct run *run, struct tar **ret,
		    struct err *e)
{
	struct tar *t = new_tar(l, run);

	support_tar(t->reader);
	bool open = archive_read_open(t->reader, user, NULL, read, NULL) == ARCHIVE_OK;
	return give(t, open ? 0 : tar_fail(t->reader, e), ret);
}

void tar_close(struct tar *t)
{
	if (!t)
		return;
	archive_read_free(t->reader);
	if (t->utf8) {
		uselocale(t->before);
		freelocale(t->utf8);
	}

	cleanup_fd(&t->fd);
	buf_release(&t->name);
	buf_release(&t->hard);
	free(t);
}

/* ---- entries ---- */

static int check_bytes(const char *name, struct err *e)
{
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			return err_set(e, ERR_INTEGRITY, "has a control byte in its name");
	return utf8_valid(name) ? 0 : err_set(e, ERR_INTEGRITY, "its name is not UTF-8");
}

static int normal_name(const char *name, struct buf *out, struct err *e)
{
	buf_reset(out);
	if (name[0] == '/')
		return err_set(e, ERR_INTEGRITY, "has an absolute name");
	if (check_bytes(name, e) < 0)
		return -1;
	for (const char *p = name; *p;) {
		size_t n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.')
			return err_set(e, ERR_INTEGRITY, "has '..' in its name");
		if (n > 0 && !(n == 1 && p[0] == '.'))
			buf_printf(out, "%s%.*s", out->len ? "/" : "", (int)n, p);
		p += n + (p[n] == '/');
	}

	return 0;
}

/* Whether `more` bytes may be unpacked. */
static int account(const struct tar *t, uint64_t more, struct err *e)
{
	uint64_t total = t->bytes + more;

	if (total < more || total > t->limits.max_bytes)
		return err_set(e, ERR_INTEGRITY, "unpacks to more than %llu bytes",
			       (unsigned long long)t->limits.max_bytes);
	if (t->limits.max_ratio && total > RATIO_FROM && total / t->limits.max_ratio > t->packed)
		return err_set(e, ERR_INTEGRITY, "unpacks to more than %u times the archive's size",
			       t->limits.max_ratio);
	return 0;
}

static int fill(struct tar *t, struct archive_entry *en, struct tar_entry *ret, struct err *e)
{
	const char *hard = archive_entry_hardlink(en), *target = archive_entry_symlink(en);

	*ret = (struct tar_entry){.type = hard ? S_IFREG : archive_entry_filetype(en),
				  .executable = (archive_entry_perm(en) & 0111) != 0,
				  .mtime = {archive_entry_mtime(en), archive_entry_mtime_nsec(en)}};
	if (++t->entries > t->limits.max_entries && t->limits.max_entries)
		return err_set(e, ERR_INTEGRITY, "the archive has more than %u entries",
			       t->limits.max_entries);
	if (normal_name(t->entry, &t->name, e) < 0)
		return -1;
	if (hard && normal_name(hard, &t->hard, e) < 0)
		return err_wrap(e, "the target of its hard link");
	if (ret->type == S_IFLNK && check_bytes(target ? target : "", e) < 0)
		return err_wrap(e, "its target");
	ret->name = buf_cstr(&t->name);
	ret->hard = hard ? buf_cstr(&t->hard) : NULL;
	ret->target = target ? target : "";
	if (!hard && archive_entry_size_is_set(en) && archive_entry_size(en) > 0)
		ret->size = (uint64_t)archive_entry_size(en);
	if (!*ret->name && ret->type != S_IFDIR)
		return err_set(e, ERR_INTEGRITY, "has no name");
	return account(t, ret->size, e);
}

int tar_next(struct tar *t, struct tar_entry *ret, struct err *e)
{
	struct archive_entry *en;

	if (run_check(t->run, e) < 0)
		return -1;
	int rc = archive_read_next_header(t->reader, &en);
	if (rc == ARCHIVE_EOF)
		return 0;
	if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN) {
		tar_fail(t->reader, e);
		return err_wrap(e, "after %u entries", t->entries);
	}

	t->entry = archive_entry_pathname(en);
	if (!t->entry)
		return err_set(e, ERR_INTEGRITY, "after %u entries: a name that cannot be read",
			       t->entries);
	return fill(t, en, ret, e) < 0 ? tar_deny(t, e) : 1;
}

int tar_read(struct tar *t, uint64_t max, struct buf *out, struct err *e)
{
	for (uint64_t total = 0;;) {
		la_ssize_t n = archive_read_data(t->reader, buf_reserve(out, READ_SIZE), READ_SIZE);
		if (n <= 0)
			return n < 0 ? tar_fail(t->reader, e) : 0;
		out->len += (size_t)n;
		total += (uint64_t)n;
		if (total > max)
			return err_set(e, ERR_INTEGRITY, "has more than %llu bytes",
				       (unsigned long long)max);
	}
}

static int copy(struct tar *t, const struct tar_entry *en, int fd, char *hex, uint64_t *ret_size,
		struct err *e)
{
	AUTO_DIGEST struct digest *d = hex ? digest_new() : NULL;
	uint8_t sum[DIGEST_LEN];
	uint64_t end = 0;
	const void *data;
	size_t len;
	la_int64_t at;

	for (int rc; (rc = archive_read_data_block(t->reader, &data, &len, &at)) != ARCHIVE_EOF;) {
		if (rc != ARCHIVE_OK)
			return tar_fail(t->reader, e);
		if (at < 0 || (uint64_t)at < end)
			return err_set(e, ERR_INTEGRITY, "its blocks are out of order");
		if (account(t, (uint64_t)at + len, e) < 0 || run_check(t->run, e) < 0)
			return -1;
		if (hex && (uint64_t)at > end)
			return err_set(e, ERR_INTEGRITY, "has holes");
		if ((uint64_t)at > end && lseek(fd, at, SEEK_SET) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot write it");
		if (fs_write_all(fd, data, len, "it", e) < 0)
			return -1;
		if (d)
			digest_update(d, data, len);
		end = (uint64_t)at + len;
	}

	if (hex && en->size > end)
		return err_set(e, ERR_INTEGRITY, "has %llu bytes, not the %llu of its header",
			       (unsigned long long)end, (unsigned long long)en->size);
	if (en->size > end && ftruncate(fd, (off_t)en->size) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write it");
	*ret_size = en->size > end ? en->size : end;
	t->bytes += *ret_size;
	if (d) {
		digest_final(d, sum);
		digest_hex(sum, hex);
	}

	return 0;
}

int tar_extract(struct tar *t, const struct tar_entry *en, struct tree *tree, const char *path,
		char *hex, uint64_t *ret_size, struct err *e)
{
	const struct timespec times[2] = {en->mtime, en->mtime};
	AUTO_FD int fd = -1;

	if (tree_create(tree, path, en->executable ? 0755 : 0644, &fd, e) < 0)
		return -1;
	int rc = copy(t, en, fd, hex, ret_size, e);
	if (rc == 0 && futimens(fd, times) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot set its time");
	if (rc == 0)
		rc = fs_close(&fd, path, e);
	if (rc < 0)
		tree_discard(tree, path);
	return rc;
}
