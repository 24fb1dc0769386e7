/* Any bytes as a series file and as a patch: names that come out are safe, and
 * a patch whose scan went through changes no file that the scan did not name. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/plan/plan.h"
#include "fuzz.h"
#include "step/source/source.h"

#define ORIGINAL "one\ntwo\nthree\n"

/* look: a file of the patched tree; one that is not as it was must be among the names. */
static int look(const char *rel, const struct stat *st, void *user, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_ARENA struct arena a = {0};
	const struct strlist *state = user; /* the tree, then the names */
	const char *path = path_join(&a, state->items[0], rel);

	fail_unless(S_ISREG(st->st_mode));
	fail_unless(fs_read(TRUSTED, path, 1 << 24, &text, e) == 0);
	bool same = strcmp(buf_cstr(&text), ORIGINAL) == 0 && (st->st_mode & 0777) == 0644;
	fail_unless(same || strlist_contains(state, rel));
	return 0;
}

/* put: without the fsync of the module for files, which would be most of the time. */
static void put(const char *path)
{
	AUTO_FILE FILE *f = fopen(path, "wb");
	fail_unless(f && fputs(ORIGINAL, f) >= 0 && fchmod(fileno(f), 0644) == 0);
}

static void try_apply(const char *path, const struct strlist *files, struct arena *a)
{
	static const char *const present[] = {"f", "d/g", "old"};
	struct log log = {.level = LOG_QUIET, .fd = 2};
	const struct run run = {.log = &log, .cancel_fd = -1};
	struct err e = {0};
	struct strlist state = {0}, names = {0};
	char *top;

	fail_unless(fs_temp_dir(fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : "/tmp",
				"ptbuild-fuzz-", a, &top, &e) == 0);
	const char *tree = path_join(a, top, "tree");
	fail_unless(fs_mkdirs(TRUSTED, path_join(a, tree, "d"), &e) == 0);
	for (size_t i = 0; i < ARRAY_LEN(present); i++)
		put(path_join(a, tree, present[i]));
	strlist_add(&state, a, tree);
	strlist_append(&state, a, files);
	if (patch_apply(tree, path, &run, &e) != 0)
		fail_unless(e.kind != ERR_NONE && e.msg[0]);
	fail_unless(fs_list(TRUSTED, top, a, &names, &e) == 0 && names.count == 1);
	if (fs_is_dir(TRUSTED, tree))
		fail_unless(fs_walk(TRUSTED, tree, look, &state, &e) == 0);
	fail_unless(fs_remove(TRUSTED, top, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct strlist names = {0}, files = {0};
	struct err e = {0};
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (series_read(path, NULL, &a, &names, &e) == 0)
		for (size_t i = 0; i < names.count; i++)
			fail_unless(path_is_safe_relative(names.items[i]));
	if (patch_scan("fuzz", (const char *)data, size, &a, &files, &e) != 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && files.count == 0);
		return 0;
	}

	for (size_t i = 0; i < files.count; i++)
		fail_unless(path_is_safe_relative(files.items[i]));
	try_apply(path, &files, &a);
	return 0;
}
