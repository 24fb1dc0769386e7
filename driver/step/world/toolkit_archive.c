#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/world/toolkit_parts.h"

enum { READ_SIZE = 256 * 1024 };

static void reader_free(struct archive **r)
{
	archive_read_free(*r);
}

/* The path below the one top directory; NULL for that directory itself. The first entry says which it is. */
static int below_top(const char *name, const char **top, const char **ret, struct arena *a, struct err *e)
{
	size_t n = strlen(name);
	while (n && name[n - 1] == '/')
		n--;
	const char *path = arena_strndup(a, name, n);
	if (!path_is_safe_relative(path))
		return err_set(e, ERR_INTEGRITY, "has an unsafe name");
	size_t first = strcspn(path, "/");
	if (!*top)
		*top = arena_strndup(a, path, first);
	if (strlen(*top) != first || strncmp(*top, path, first) != 0)
		return err_set(e, ERR_INTEGRITY, "is not below '%s'", *top);
	*ret = path[first] ? path + first + 1 : NULL;
	return 0;
}

static int copy_data(struct toolkit_tree *t, struct archive *r, int fd, const char *path, struct err *e)
{
	const void *data;
	size_t len;
	la_int64_t at;
	uint64_t end = 0;
	for (int rc; (rc = archive_read_data_block(r, &data, &len, &at)) != ARCHIVE_EOF;) {
		if (rc != ARCHIVE_OK)
			return err_set(e, ERR_INTEGRITY, "is damaged: %s", archive_error_string(r));
		if (at < 0 || (uint64_t)at != end) /* sparse files: no toolkit has any */
			return err_set(e, ERR_INTEGRITY, "has holes");
		if (run_check(t->run, e) < 0 || toolkit_tree_account(t, len, e) < 0 ||
		    fs_write_all(fd, data, len, path, e) < 0)
			return -1;
		end += len;
	}
	return 0;
}

static int add_entry(struct toolkit_tree *t, const struct toolkit_file *f, struct archive *r, struct archive_entry *en,
		     const char *below, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *path = toolkit_rules_map(t->rules, t->target, f->name, below, &a);
	mode_t type = archive_entry_filetype(en);
	if (!path || type == AE_IFDIR)
		return 0;
	if (archive_entry_hardlink(en))
		return err_set(e, ERR_INTEGRITY, "is a hard link");
	if (type == AE_IFLNK) {
		const char *to = archive_entry_symlink(en);
		if (!to || strchr(to, '/') || !path_is_safe_relative(to))
			return err_set(e, ERR_INTEGRITY, "is a link to another directory");
		return toolkit_tree_link(t, path, to, e);
	}
	if (type != AE_IFREG)
		return err_set(e, ERR_INTEGRITY, "is a special file");
	AUTO_FD int fd = toolkit_tree_add(t, path, e);
	if (fd < 0 || copy_data(t, r, fd, path, e) < 0)
		return -1;
	return toolkit_tree_done(&fd, archive_entry_perm(en) & S_IXUSR, path, e);
}

int toolkit_archive_unpack(struct toolkit_tree *t, const struct toolkit_file *f, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct archive *CLEANUP(reader_free) r = archive_read_new();
	struct archive_entry *en;
	const char *top = NULL;
	size_t count = 0;
	if (!r)
		abort();
	archive_read_support_filter_xz(r);
	archive_read_support_filter_gzip(r);
	archive_read_support_filter_zstd(r);
	archive_read_support_format_tar(r);
	if (archive_read_open_filename(r, f->path, READ_SIZE) != ARCHIVE_OK)
		return err_set(e, ERR_INTEGRITY, "cannot be read: %s", archive_error_string(r));
	for (int rc; (rc = archive_read_next_header(r, &en)) != ARCHIVE_EOF; count++) {
		const char *name = rc == ARCHIVE_OK ? archive_entry_pathname(en) : NULL, *below = NULL;
		if (!name)
			return err_set(e, ERR_INTEGRITY, "is damaged: %s",
				       archive_error_string(r) ? archive_error_string(r) : "an entry has no name");
		if (below_top(name, &top, &below, &a, e) < 0 || (below && add_entry(t, f, r, en, below, e) < 0))
			return err_wrap(e, "entry '%.200s'", name);
	}
	return count ? 0 : err_set(e, ERR_INTEGRITY, "is empty");
}
