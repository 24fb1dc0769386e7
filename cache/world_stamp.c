#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"
#include "cache/world.h"

/* The path is the last field of a line. A directory's times change with what is added to it or taken from it. */
static bool print_path(int root, const char *rel, struct buf *out)
{
	struct stat st;
	if (fstatat(root, rel, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	store_print_stat(rel, &st, out);
	return true;
}

/* Lines of the manifest begin with the kind of what they are about. */
static bool print_line(int root, const char *line, bool whole, struct buf *out)
{
	const char *tab = strrchr(line, '\t');
	if (!tab || !path_is_safe_relative(tab + 1))
		return false;
	return (!whole && strncmp(line, "dir\t", 4) != 0) || print_path(root, tab + 1, out);
}

bool store_world_print(const char *object, bool whole, struct buf *ret)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf manifest = {0};
	AUTO_FD int root =
		open(path_join(&a, object, STORE_WORLD_ROOT), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0 ||
	    fs_read(TRUSTED, path_join(&a, object, STORE_WORLD_FACTS), STORE_MANIFEST_MAX, ret, ERR_IGNORED) < 0 ||
	    fs_read(TRUSTED, path_join(&a, object, STORE_WORLD_MANIFEST), STORE_MANIFEST_MAX, &manifest, ERR_IGNORED) <
		    0 ||
	    !print_path(root, ".", ret))
		return false;
	buf_add(ret, manifest.data, manifest.len);
	for (char *line = manifest.data, *end; line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		if (!print_line(root, line, whole, ret))
			return false;
	}
	return true;
}
