#include <sys/statvfs.h>

#include "base/sys/fs.h"
#include "cmd/cmd.h"

/* Directories that the user can move to another disk. */
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

static bool is_same_place(const char *x, const char *y, struct arena *a)
{
	struct stat of_x, of_y;

	if (strcmp(x, path_from_here(a, y)) == 0)
		return true;
	if (stat(x, &of_x) < 0 || stat(y, &of_y) < 0)
		return false;
	return of_x.st_dev == of_y.st_dev && of_x.st_ino == of_y.st_ino;
}

/* The options of the nearest directory that an absolute
 * path is in: no other one moves it. NULL: none does. */
static const char *options_of(const struct disk_choice *all, const char *path, struct arena *a)
{
	struct strlist names = {0};

	for (; !names.count; path = path_dir(a, path)) {
		for (size_t i = 0; i < CHOICES; i++)
			if (all[i].dir && is_same_place(path, all[i].dir, a))
				strlist_ref(&names, a, all[i].option);
		if (strcmp(path, "/") == 0)
			break;
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
		return arena_printf(
			a, "a limit (ulimit -f), or file system '%s', allows no larger file",
			mount);
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
	const char *path = subject(e->msg, c->arena),
		   *dir = path ? existing(path, c->arena, &dev) : NULL;
	if (!dir) {
		err_hint(e, ERR_DISK_HINT);
		return;
	}

	list_choices(c, all);
	const char *mount = mount_point(dir, dev, c->arena),
		   *options = options_of(all, path, c->arena);
	const char *problem = what_is_full(number, mount, c->arena);
	const char *fix = number == EFBIG ? "raise the limit" : "free some space there";
	if (options)
		err_hint(e, "%s: %s, or name a directory on another file system with %s", problem,
			 fix, options);
	else
		err_hint(e, "%s: %s", problem, fix);
}
