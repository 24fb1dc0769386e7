#include <sys/statvfs.h>

#include "base/sys/fs.h"
#include "cmd/cmd.h"

/* Where the user can send what takes the space. */
struct disk_choice {
	const char *option, *dir;
};

enum { CHOICES = 3 };

static void list_choices(const struct cmd_context *c, struct disk_choice ret[CHOICES])
{
	const char *tmp = getenv("TMPDIR");
	ret[0] = (struct disk_choice){"--cache", NULL};
	ret[1] = (struct disk_choice){"--out", NULL};
	ret[2] = (struct disk_choice){"TMPDIR", tmp && *tmp == '/' ? tmp : "/tmp"};
	if (cmd_cache_dir(c, &ret[0].dir, ERR_IGNORED) < 0)
		ret[0].dir = NULL;
	if (cmd_out_dir(c, &ret[1].dir, ERR_IGNORED) < 0)
		ret[1].dir = NULL;
}

/* The nearest directory of a path that exists, and the file system it is on. */
static const char *existing(const char *path, struct arena *a, dev_t *ret)
{
	struct stat st;
	while (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
		if (strcmp(path, "/") == 0 || strcmp(path, ".") == 0)
			return NULL;
		path = path_dir(a, path);
	}
	*ret = st.st_dev;
	return path;
}

/* The last absolute path in single quotes: what could not be written. NULL without one. */
static const char *subject(const char *msg, struct arena *a)
{
	const char *found = NULL;
	for (const char *at = msg; (at = strstr(at, "'/")); at++) {
		const char *end = strchr(at + 1, '\'');
		found = end ? arena_strndup(a, at + 1, (size_t)(end - at - 1)) : found;
	}
	return found;
}

static const char *mount_point(const char *dir, dev_t dev, struct arena *a)
{
	struct stat st;
	while (strcmp(dir, "/") != 0) {
		const char *up = path_dir(a, dir);
		if (stat(up, &st) < 0 || st.st_dev != dev)
			break;
		dir = up;
	}
	return dir;
}

/* The options whose directory is on that file system. */
static const char *options_on(const struct disk_choice *all, dev_t dev, struct arena *a)
{
	struct strlist names = {0};
	for (size_t i = 0; i < CHOICES; i++) {
		dev_t own;
		if (all[i].dir && existing(all[i].dir, a, &own) && own == dev)
			strlist_ref(&names, a, all[i].option);
	}
	return names.count ? strlist_join(&names, a, ", ") : NULL;
}

static const char *what_is_full(int number, const char *mount, struct arena *a)
{
	struct statvfs v;
	const bool known = statvfs(mount, &v) == 0;
	if (number == EDQUOT)
		return arena_printf(a, "your quota on file system '%s' is used up", mount);
	if (number == EFBIG)
		return arena_printf(a, "a limit (ulimit -f), or file system '%s', allows no larger file", mount);
	if (known && v.f_files && !v.f_favail)
		return arena_printf(a, "file system '%s' has no room for more files", mount);
	if (known)
		return arena_printf(a, "file system '%s' (%.1f MB) is full", mount,
				    (double)v.f_blocks * (double)v.f_frsize / 1e6);
	return arena_printf(a, "file system '%s' is full", mount);
}

void cmd_disk_hint(const struct cmd_context *c, struct err *e)
{
	struct disk_choice all[CHOICES];
	dev_t dev;
	const int number = e->kind == ERR_SYSTEM ? err_disk(e->msg) : 0;
	if (!number || (*e->hint && strcmp(e->hint, ERR_DISK_HINT) != 0))
		return;
	const char *path = subject(e->msg, c->arena), *dir = path ? existing(path, c->arena, &dev) : NULL;
	if (!dir) {
		err_hint(e, ERR_DISK_HINT);
		return;
	}
	list_choices(c, all);
	const char *mount = mount_point(dir, dev, c->arena), *options = options_on(all, dev, c->arena);
	err_hint(e, "%s: %s%s%s", what_is_full(number, mount, c->arena),
		 number == EFBIG ? "raise the limit" : "free some space there",
		 options ? ", or name a directory on another file system with " : "", options ? options : "");
}
