#include "step/source/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/tree.h"
#include "step/source/unpack_filter.h"

#define DEFAULT_BYTES (8ULL << 30)
#define DEFAULT_RATIO 200U
#define DEFAULT_ENTRIES 500000U
#define RATIO_FROM (64ULL << 20)
#define CHECK_EVERY (16ULL << 20) /* bytes between two looks at the cancel descriptor */
#define READ_SIZE (1U << 18)

struct unpacker {
	const char *archive_name;
	bool strip_top;
	struct unpack_limits limits;
	const struct run *run;
	struct archive *reader;
	struct unpack_filter *filter;
	struct tree tree;
	uint64_t packed;  /* bytes of the archive file */
	uint64_t bytes;   /* unpacked so far, holes included */
	unsigned entries; /* so far */
	struct buf top;   /* the shared top directory, once known */
	struct buf path;  /* of the entry, normal */
	struct buf other; /* the target of its hard link, normal */
};

static void unpacker_release(struct unpacker *u)
{
	archive_read_free(u->reader);
	unpack_filter_stop(u->filter);
	tree_close(&u->tree);
	buf_release(&u->top);
	buf_release(&u->path);
	buf_release(&u->other);
}

/* Puts archive and entry in front of the error. */
static int deny(const struct unpacker *u, const char *entry, struct err *e)
{
	char name[256];
	return err_wrap(e, "archive '%s', entry '%s'", u->archive_name, tree_printable(entry, name, sizeof(name)));
}

/* Removes the top directory, which the first entry names. */
static int strip(struct unpacker *u, struct buf *path, bool is_dir, struct err *e)
{
	if (!u->strip_top || path->len == 0)
		return 0;
	size_t n = strcspn(path->data, "/");
	if (u->top.len == 0)
		buf_add(&u->top, path->data, n);
	if (n != u->top.len || memcmp(path->data, u->top.data, n) != 0)
		return err_set(e, ERR_INTEGRITY, "is not below '%s', the top directory of the entries before it",
			       u->top.data);
	if (path->data[n] == '\0' && !is_dir)
		return err_set(e, ERR_INTEGRITY, "is not below the one top directory that was expected");
	size_t cut = path->data[n] ? n + 1 : n;
	memmove(path->data, path->data + cut, path->len - cut + 1);
	path->len -= cut;
	return 0;
}

/* A symbolic link stays inside if its ".." come first and are no more than the directories above it, which are real.
 * After a name, ".." depends on what that name is. */
static int check_target(const char *path, const char *target, struct err *e)
{
	size_t depth = 0, up = 0;
	bool names = false;
	AUTO_ARENA struct arena a = {0};
	if (tree_check_bytes(target, e) < 0)
		return err_wrap(e, "its target");
	for (const char *p = path; *p; p++)
		depth += *p == '/';
	if (!*target || target[0] == '/')
		return err_set(e, ERR_INTEGRITY, "is a link with %s target", *target ? "an absolute" : "an empty");
	for (const char *p = target; *p;) {
		size_t n = strcspn(p, "/");
		bool dots = n == 2 && p[0] == '.' && p[1] == '.';
		if (dots && names)
			return err_set(e, ERR_INTEGRITY, "is a link with '..' after a name in its target '%s'", target);
		up += dots;
		names = names || (!dots && n > 0 && !(n == 1 && p[0] == '.'));
		p += n + (p[n] == '/');
	}
	const char *from = depth > 0 ? path_dir(&a, path) : "";
	if (up > depth || (names && !path_stays_inside(from, target)))
		return err_set(e, ERR_INTEGRITY, "is a link that leaves the tree, to '%s'", target);
	return 0;
}

/* Whether `more` bytes may be unpacked. */
static int account(const struct unpacker *u, uint64_t more, struct err *e)
{
	uint64_t total = u->bytes + more;
	if (total < more || total > u->limits.max_bytes)
		return err_set(e, ERR_INTEGRITY, "unpacks to more than %llu bytes",
			       (unsigned long long)u->limits.max_bytes);
	if (total > RATIO_FROM && total / u->limits.max_ratio > u->packed)
		return err_set(e, ERR_INTEGRITY, "unpacks to more than %u times the archive's size",
			       u->limits.max_ratio);
	return 0;
}

/* The entry's bytes into `fd`; holes stay holes. */
static int copy_data(struct unpacker *u, int fd, uint64_t announced, struct err *e)
{
	uint64_t end = 0, checked = 0;
	const void *data;
	size_t len;
	la_int64_t offset;
	for (int r; (r = archive_read_data_block(u->reader, &data, &len, &offset)) != ARCHIVE_EOF;) {
		if (r != ARCHIVE_OK)
			return unpack_archive_error(u->reader, "damaged", e);
		if (offset < 0 || (uint64_t)offset < end)
			return err_set(e, ERR_INTEGRITY, "its blocks are out of order");
		if (account(u, (uint64_t)offset + len, e) < 0)
			return -1;
		if ((uint64_t)offset > end && lseek(fd, offset, SEEK_SET) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot write it");
		if (fs_write_all(fd, data, len, "it", e) < 0)
			return -1;
		end = (uint64_t)offset + len;
		if (end - checked >= CHECK_EVERY) {
			checked = end;
			if (run_check(u->run, e) < 0)
				return -1;
		}
	}
	if (announced > end && ftruncate(fd, (off_t)announced) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write it");
	u->bytes += announced > end ? announced : end;
	return 0;
}

static struct timespec entry_time(struct archive_entry *entry)
{
	return (struct timespec){.tv_sec = archive_entry_mtime(entry), .tv_nsec = archive_entry_mtime_nsec(entry)};
}

static int write_file(struct unpacker *u, struct archive_entry *entry, struct err *e)
{
	const struct timespec times[2] = {entry_time(entry), entry_time(entry)};
	uint64_t announced = archive_entry_size_is_set(entry) && archive_entry_size(entry) > 0
				     ? (uint64_t)archive_entry_size(entry)
				     : 0;
	AUTO_FD int fd = -1;
	if (account(u, announced, e) < 0)
		return -1;
	if (tree_create(&u->tree, u->path.data, archive_entry_perm(entry) & 0111 ? 0755 : 0644, &fd, e) < 0)
		return -1;
	int rc = copy_data(u, fd, announced, e);
	if (rc == 0 && futimens(fd, times) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot set its time");
	if (rc < 0)
		tree_discard(&u->tree, u->path.data);
	return rc;
}

static int unpack_entry(struct unpacker *u, struct archive_entry *entry, const char *name, struct err *e)
{
	const char *hard = archive_entry_hardlink(entry);
	mode_t type = archive_entry_filetype(entry);
	if (++u->entries > u->limits.max_entries)
		return err_set(e, ERR_INTEGRITY, "the archive has more than %u entries", u->limits.max_entries);
	if (tree_normal_name(name, &u->path, e) < 0 || strip(u, &u->path, type == AE_IFDIR && !hard, e) < 0)
		return -1;
	if (u->path.len == 0 && (hard || type != AE_IFDIR))
		return err_set(e, ERR_INTEGRITY, "has an empty name");
	if (hard) {
		if (tree_normal_name(hard, &u->other, e) < 0 || strip(u, &u->other, false, e) < 0)
			return err_wrap(e, "the target of its hard link");
		return tree_hardlink(&u->tree, u->path.data, buf_cstr(&u->other), e);
	}
	switch (type) {
	case AE_IFREG:
		return write_file(u, entry, e);
	case AE_IFDIR:
		return u->path.len == 0 ? 0 : tree_mkdir(&u->tree, u->path.data, entry_time(entry), e);
	case AE_IFLNK: {
		const char *target = archive_entry_symlink(entry);
		if (check_target(u->path.data, target ? target : "", e) < 0)
			return -1;
		return tree_symlink(&u->tree, u->path.data, target, entry_time(entry), e);
	}
	default:
		return err_set(e, ERR_INTEGRITY, "is a device, fifo or socket");
	}
}

static int unpack_all(struct unpacker *u, struct err *e)
{
	struct archive_entry *entry;
	for (;;) {
		if (run_check(u->run, e) < 0)
			return -1;
		int r = archive_read_next_header(u->reader, &entry);
		if (r == ARCHIVE_EOF)
			break;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN) {
			unpack_archive_error(u->reader, "damaged", e);
			return err_wrap(e, "archive '%s', after %u entries", u->archive_name, u->entries);
		}
		const char *name = archive_entry_pathname(entry);
		if (!name)
			return err_set(e, ERR_INTEGRITY, "archive '%s', after %u entries: a name that cannot be read",
				       u->archive_name, u->entries);
		if (unpack_entry(u, entry, name, e) < 0)
			return deny(u, name, e);
	}
	if (u->entries == 0)
		return err_set(e, ERR_INTEGRITY, "archive '%s' is empty", u->archive_name);
	return tree_finish(&u->tree, e);
}

static la_ssize_t read_filtered(struct archive *a, void *user, const void **data)
{
	struct unpacker *u = user;
	ssize_t n = unpack_filter_read(u->filter, data);
	if (n < 0)
		unpack_filter_error(u->filter, a);
	return n;
}

/* A zip needs the file itself, for its directory; anything else is a tar behind the decompressing thread. */
static int open_reader(struct unpacker *u, int fd, struct err *e)
{
	char magic[4] = {0};
	if (fs_read_at(fd, magic, sizeof(magic), 0) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", u->archive_name);
	u->reader = archive_read_new();
	if (!u->reader)
		abort();
	if (memcmp(magic, "PK\003\004", 4) == 0 || memcmp(magic, "PK\005\006", 4) == 0) {
		if (archive_read_support_format_zip_seekable(u->reader) == ARCHIVE_OK &&
		    archive_read_open_fd(u->reader, fd, READ_SIZE) == ARCHIVE_OK)
			return 0;
	} else {
		if (unpack_filter_start(fd, &u->filter, e) < 0)
			return err_wrap(e, "archive '%s'", u->archive_name);
		if (archive_read_support_format_tar(u->reader) == ARCHIVE_OK &&
		    archive_read_open(u->reader, u, NULL, read_filtered, NULL) == ARCHIVE_OK)
			return 0;
	}
	unpack_archive_error(u->reader, "damaged", e);
	return err_wrap(e, "archive '%s'", u->archive_name);
}

static int unpack_fd(struct unpacker *u, int fd, const char *dir, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", u->archive_name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_SYSTEM, "'%s' is not a file", u->archive_name);
	if (st.st_size == 0)
		return err_set(e, ERR_INTEGRITY, "archive '%s' is empty", u->archive_name);
	u->packed = (uint64_t)st.st_size;
	if (open_reader(u, fd, e) < 0 || tree_open(&u->tree, dir, e) < 0)
		return -1;
	return unpack_all(u, e);
}

int unpack_archive(const char *archive, const char *dir, bool strip_top, const struct unpack_limits *limits,
		   const struct run *run, struct err *e)
{
	struct unpacker u = {.archive_name = archive, .strip_top = strip_top, .run = run, .tree = {.top = -1}};
	if (limits)
		u.limits = *limits;
	u.limits.max_bytes = u.limits.max_bytes ? u.limits.max_bytes : DEFAULT_BYTES;
	u.limits.max_ratio = u.limits.max_ratio ? u.limits.max_ratio : DEFAULT_RATIO;
	u.limits.max_entries = u.limits.max_entries ? u.limits.max_entries : DEFAULT_ENTRIES;
	AUTO_FD int fd = open(archive, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", archive);
	/* libarchive converts names to the locale's character set: "C" would lose those outside ASCII. */
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
	int rc = unpack_fd(&u, fd, dir, e);
	unpacker_release(&u);
	if (utf8) {
		uselocale(before);
		freelocale(utf8);
	}
	return rc;
}
