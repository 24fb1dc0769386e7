/* Any tree that a build could leave, and any paths into it: nothing outside is read, changed or
 * removed. Each line is an operation: "l NAME TARGET" makes a link and "d NAME" a directory, as
 * a build would; "r", "w", "a", "t", "x", "m", "i", "v" PATH are the module's read, write,
 * append, truncate, remove, mkdirs, list and resolve. */
#include <fcntl.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "fuzz.h"

#define SECRET "of the host"
enum { MAX_LINES = 24 };

static struct arena arena;
static const char *top, *inside;

static void clean(void)
{
	struct err e;
	(void)!fs_remove(TRUSTED, top, &e);
	arena_release(&arena);
}

static void make_top(void)
{
	char *dir;
	struct err e = {0};

	fail_unless(fs_temp_dir(fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : "/tmp",
				"ptbuild-fuzz-", &arena, &dir, &e) == 0);
	top = dir;
	inside = path_join(&arena, top, "in");
	fail_unless(fs_mkdirs(TRUSTED, path_join(&arena, top, "out"), &e) == 0);
	fail_unless(fs_write(TRUSTED, path_join(&arena, top, "out/f"), SECRET, strlen(SECRET), 0644,
			     &e) == 0);
	atexit(clean);
}

static void begin(void)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};

	fail_unless(fs_remove(TRUSTED, inside, &e) == 0);
	fail_unless(fs_mkdirs(TRUSTED, path_join(&a, inside, "d/e"), &e) == 0);
	for (const char *const *p = (const char *const[]){"f", "d/f", "d/e/f", NULL}; *p; p++) {
		int fd = open(path_join(&a, inside, *p), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		fail_unless(fd >= 0 && write(fd, "own", 3) == 3 && close(fd) == 0);
	}

	fail_unless(symlink("../out", path_join(&a, inside, "o")) == 0);
}

/* What a build does: by the real directories alone, so that this program itself stays inside. */
static void build(char kind, char *name, struct arena *a)
{
	char *target = strchr(name, ' ');

	if (target)
		*target++ = '\0';
	const char *path = path_join(a, inside, name);
	if (!path_is_safe_relative(name) || strchr(name, '/'))
		return;
	(void)unlink(path);
	if (kind == 'd')
		(void)!mkdir(path, 0755);
	else
		(void)!symlink(target && *target ? target : "../out/f", path);
}

static void act(char kind, const char *path, struct arena *a)
{
	AUTO_BUF struct buf b = {0};
	struct strlist names = {0};
	struct err e = {0};
	int fd;

	switch (kind) {
	case 'r':
		(void)!fs_read(inside, path, 100, &b, &e);
		fail_unless(!strstr(buf_cstr(&b), SECRET));
		return;
	case 'w':
		(void)!fs_write(inside, path, "new", 3, 0644, &e);
		return;
	case 'a':
		fd = fs_append(inside, path, &e);
		if (fd >= 0)
			fail_unless(write(fd, "more", 4) == 4 && close(fd) == 0);
		return;
	case 'x':
		(void)!fs_remove(inside, path, &e);
		return;
	case 'm':
		(void)!fs_mkdirs(inside, path, &e);
		return;
	case 'i':
		(void)!fs_list(inside, path, a, &names, &e);
		return;
	default:
		return;
	}
}

static void outside_is_as_it_was(void)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf b = {0};
	struct strlist names = {0}, all = {0};
	struct err e = {0};

	fail_unless(fs_read(TRUSTED, path_join(&a, top, "out/f"), 100, &b, &e) == 0 &&
		    strcmp(buf_cstr(&b), SECRET) == 0);
	fail_unless(fs_list(TRUSTED, path_join(&a, top, "out"), &a, &names, &e) == 0 &&
		    names.count == 1);
	fail_unless(fs_list(TRUSTED, top, &a, &all, &e) == 0 && all.count == 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist lines = {0};

	if (!top)
		make_top();
	begin();
	strlist_split(&lines, &a, arena_strndup(&a, (const char *)data, size), "\n");
	for (size_t i = 0; i < lines.count && i < MAX_LINES; i++) {
		char *line = arena_strdup(&a, lines.items[i]);
		if (strlen(line) < 3 || line[1] != ' ')
			continue;
		if (*line == 'l' || *line == 'd')
			build(*line, line + 2, &a);
		else
			act(*line, line + 2, &a);
	}

	outside_is_as_it_was();
	return 0;
}
