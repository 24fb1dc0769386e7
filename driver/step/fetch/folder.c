#include "step/fetch/fetch.h"

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"

enum { EPOCH = 315619200 }; /* 1980-01-02: a zip can hold no earlier time, in whatever zone */

struct packing {
	const char *dir, *top;
	struct archive *to;
	struct digest *digest;
	int fd;
	uint64_t bytes;
	size_t files;
	struct err *e; /* of on_bytes */
};

static la_ssize_t on_bytes(struct archive *to, void *user, const void *data, size_t len)
{
	struct packing *p = user;

	(void)to;
	digest_update(p->digest, data, len);
	return p->fd >= 0 && fs_write_all(p->fd, data, len, "the archive of a folder", p->e) < 0
		       ? -1
		       : (la_ssize_t)len;
}

static int fail(const struct packing *p, struct err *e)
{
	if (e->kind)
		return -1;
	const char *why = archive_error_string(p->to);
	return err_set(e, ERR_SYSTEM, "cannot pack '%s': %s", p->dir, why ? why : "unknown error");
}

/* What a build there before has left, and what no build needs: virtual environments, too. */
static bool is_left_out(const char *dir, const char *rel, struct arena *a)
{
	static const char *const tops[] = {".git", "build", "dist"};
	const size_t n = strcspn(rel, "/");

	for (size_t i = 0; i < ARRAY_LEN(tops); i++)
		if (strlen(tops[i]) == n && strncmp(rel, tops[i], n) == 0)
			return true;
	if (rel[n] && fs_exists(dir, path_join(a, arena_strndup(a, rel, n), "pyvenv.cfg")))
		return true;
	/* of a submodule: a file, or with older versions of git a directory */
	if (strstr(rel, "/.git/") || path_has_suffix(rel, "/.git"))
		return true;
	return strstr(rel, "__pycache__/") || path_has_suffix(rel, ".pyc");
}

static int copy_file(struct packing *p, const char *path, uint64_t size, struct err *e)
{
	AUTO_MAPPING struct fs_mapping m = {0};

	if (fs_map(path, &m, e) < 0)
		return -1;
	if (m.size != size)
		return err_set(e, ERR_SYSTEM, "'%s' changes while it is read", path);
	return m.size && archive_write_data(p->to, m.data, m.size) != (la_ssize_t)m.size
		       ? fail(p, e)
		       : 0;
}

static int add(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct packing *p = user;
	AUTO_ARENA struct arena a = {0};
	char target[PATH_MAX] = "";
	const char *path = path_join(&a, p->dir, rel);
	const bool link = S_ISLNK(st->st_mode);

	if (is_left_out(p->dir, rel, &a))
		return 0;
	if (!link && !S_ISREG(st->st_mode))
		return err_set(e, ERR_USAGE, "'%s' is neither a file nor a link", path);
	const uint64_t size = link ? 0 : (uint64_t)st->st_size;
	if ((p->bytes += size) > FOLDER_MAX)
		return err_set(e, ERR_USAGE, "'%s' is larger than 2 GiB: too large for a source",
			       p->dir);
	if (link && readlink(path, target, sizeof(target) - 1) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read the link '%s'", path);
	struct archive_entry *en = archive_entry_new();
	archive_entry_set_pathname(en, path_join(&a, p->top, rel));
	archive_entry_set_filetype(en, link ? AE_IFLNK : AE_IFREG);
	archive_entry_set_perm(en, link || st->st_mode & S_IXUSR ? 0755 : 0644);
	archive_entry_set_mtime(en, EPOCH, 0);
	archive_entry_set_size(en, (la_int64_t)size);
	if (link)
		archive_entry_set_symlink(en, target);
	p->e = e;
	int rc = archive_write_header(p->to, en) == ARCHIVE_OK ? 0 : fail(p, e);
	archive_entry_free(en);
	p->files++;
	return rc == 0 && !link ? copy_file(p, path, size, e) : rc;
}

static int pack(struct packing *p, struct err *e)
{
	p->e = e;
	if (archive_write_set_format_pax_restricted(p->to) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(p->to, 1) != ARCHIVE_OK ||
	    archive_write_open(p->to, p, NULL, on_bytes, NULL) != ARCHIVE_OK)
		return fail(p, e);
	if (fs_walk(TRUSTED, p->dir, add, p, e) != 0)
		return -1;
	if (!p->files)
		return err_set(e, ERR_USAGE, "'%s' has no files", p->dir);
	return archive_write_close(p->to) == ARCHIVE_OK ? 0 : fail(p, e);
}

int folder_pack(const char *dir, const char *top, int fd, char hex[65], struct err *e)
{
	uint8_t sum[DIGEST_LEN];
	AUTO_DIGEST struct digest *digest = digest_new();
	struct packing p = {
		.dir = dir, .top = top, .to = archive_write_new(), .digest = digest, .fd = fd};

	if (!p.to)
		return err_set(e, ERR_SYSTEM, "cannot start libarchive");
	int rc = fs_is_dir(TRUSTED, dir) ? pack(&p, e)
					 : err_set(e, ERR_USAGE, "no folder '%s'", dir);
	archive_write_free(p.to);
	if (rc < 0)
		return -1;
	digest_final(digest, sum);
	digest_hex(sum, hex);
	return 0;
}
