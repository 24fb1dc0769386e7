#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/tar.h"
#include "step/world/toolkit_parts.h"

static int add_entry(struct toolkit_tree *t, const struct toolkit_file *f, struct tar *tar, const struct tar_entry *en,
		     const char *below, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *path = toolkit_rules_map(t->rules, t->target, f->name, below, &a);
	uint64_t size;
	if (!path || en->type == S_IFDIR)
		return 0;
	if (en->hard)
		return err_set(e, ERR_INTEGRITY, "is a hard link");
	if (en->type == S_IFLNK && (strchr(en->target, '/') || !path_is_safe_relative(en->target)))
		return err_set(e, ERR_INTEGRITY, "is a link to another directory");
	if (en->type == S_IFLNK)
		return toolkit_tree_link(t, path, en->target, e);
	if (en->type != S_IFREG)
		return err_set(e, ERR_INTEGRITY, "is a special file");
	AUTO_FD int fd = toolkit_tree_add(t, path, e);
	if (fd < 0 || tar_copy(tar, en, fd, NULL, &size, e) < 0 || toolkit_tree_account(t, size, e) < 0)
		return -1;
	return toolkit_tree_done(&fd, en->executable, path, e);
}

int toolkit_archive_unpack(struct toolkit_tree *t, const struct toolkit_file *f, struct err *e)
{
	const struct tar_limits limits = {.max_bytes = TOOLKIT_TREE_MAX_BYTES - t->bytes};
	AUTO_ARENA struct arena a = {0};
	AUTO_TAR struct tar *tar = NULL;
	const char *top = NULL;
	struct tar_entry en;
	int got;
	if (tar_open(f->path, &limits, t->run, &tar, e) < 0)
		return -1;
	while ((got = tar_next(tar, &en, e)) > 0) {
		/* All lies below one top directory, which the first entry names. */
		size_t first = strcspn(en.name, "/");
		top = top ? top : arena_strndup(&a, en.name, first);
		int rc = 0;
		if (strlen(top) != first || strncmp(top, en.name, first) != 0)
			rc = err_set(e, ERR_INTEGRITY, "is not below '%s'", top);
		else if (en.name[first])
			rc = add_entry(t, f, tar, &en, en.name + first + 1, e);
		if (rc < 0)
			return tar_deny(tar, e);
	}
	return got < 0 || top ? got : err_set(e, ERR_INTEGRITY, "is empty");
}
