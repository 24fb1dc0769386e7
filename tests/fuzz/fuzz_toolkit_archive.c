/* Any bytes as an archive of a toolkit's component: whatever becomes of it,
 * nothing is made outside of the tree, and links lead to names beside them. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "fuzz.h"
#include "step/world/toolkit_tree.h"

/* look: a file of the tree; its user argument is the tree's path. */
static int look(const char *rel, const struct stat *st, void *user, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char to[4096];

	(void)e;
	if (!path_is_safe_relative(rel) || (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode)))
		abort();
	if (S_ISREG(st->st_mode) && (st->st_mode & 07777) != 0644 && (st->st_mode & 07777) != 0755)
		abort();
	if (S_ISLNK(st->st_mode)) {
		ssize_t n = readlink(path_join(&a, user, rel), to, sizeof(to) - 1);
		if (n <= 0)
			abort();
		to[n] = '\0';
		if (strchr(to, '/') || strcmp(to, "..") == 0)
			abort();
	}

	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct log log = {.level = LOG_QUIET, .fd = 2};
	const struct run run = {.log = &log, .cancel_fd = -1};
	struct toolkit_target platform = {"x86_64-linux", "x86_64-linux"};
	struct toolkit_move moves[] = {{"lib", "targets/@/lib"}, {"include", "targets/@/include"}};
	const struct toolkit_rules rules = {
		.platforms = &platform, .platforms_count = 1, .moves = moves, .moves_count = 2};
	struct err e = {0};
	char *top;

	if (fd < 0 || fs_write_all(fd, data, size, "fuzz", &e) < 0 ||
	    fs_temp_dir(fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : NULL, "ptbuild-fuzz-", &a,
			&top, &e) < 0)
		abort();
	const struct toolkit_file file = {.path = arena_printf(&a, "/proc/self/fd/%d", fd),
					  .name = "part",
					  .version = "1",
					  .file = "part.tar.xz"};
	int status = toolkit_tree_make(&rules, &file, 1, "x86_64-linux", top, &run, &e);
	if (status < 0 && !e.msg[0])
		abort();
	if (fs_walk(TRUSTED, top, look, top, &e) < 0 || fs_remove(TRUSTED, top, &e) < 0)
		abort();
	return 0;
}
