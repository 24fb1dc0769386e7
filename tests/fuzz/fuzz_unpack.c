/* Any bytes as an archive: whatever becomes of it, nothing
 * is made outside of the tree, and no link in it leads out. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "fuzz.h"
#include "step/source/source.h"

/* mend_sums: makes the checksums of tar headers right
 * again, so that changes in them get past the first look. */
static void mend_sums(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + 512 <= size; at += 512) {
		uint8_t *block = data + at;
		unsigned sum = 0;
		if (memcmp(block + 257, "ustar", 5) != 0)
			continue;
		memset(block + 148, ' ', 8);
		for (size_t i = 0; i < 512; i++)
			sum += block[i];
		char text[8];
		snprintf(text, sizeof(text), "%06o", sum & 0777777);
		memcpy(block + 148, text, 7);
	}
}

/* look: a file of an unpacked tree; its user argument is the tree's true path. */
static int look(const char *rel, const struct stat *st, void *user, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *top = user;
	char real[PATH_MAX];

	(void)e;
	if (!path_is_safe_relative(rel) || (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode)))
		abort();
	if (S_ISREG(st->st_mode) && (st->st_mode & 07777) != 0644 && (st->st_mode & 07777) != 0755)
		abort();
	/* A link may lead nowhere, but not out. */
	if (S_ISLNK(st->st_mode) && realpath(path_join(&a, top, rel), real) &&
	    (strncmp(real, top, strlen(top)) != 0 ||
	     (real[strlen(top)] != '/' && real[strlen(top)] != '\0')))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	AUTO_FREE uint8_t *copy = malloc(size + 1);
	struct log log = {.level = LOG_QUIET, .fd = 2};
	const struct run run = {.log = &log, .cancel_fd = -1};
	const struct tar_limits limits = {.max_bytes = 1 << 20, .max_entries = 100};
	struct err e = {0};
	struct strlist names = {0};
	char path[64], *top;

	if (fd < 0 || !copy || size == 0)
		return 0;
	memcpy(copy, data, size);
	/* The one choice there is, made by something that no format cares about. */
	bool strip = (size & 1) != 0;
	mend_sums(copy, size);
	if (write(fd, copy, size) != (ssize_t)size ||
	    fs_temp_dir(fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : "/tmp", "ptbuild-fuzz-", &a,
			&top, &e) != 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const char *tree = path_join(&a, top, "a/b/tree");
	if (unpack_archive(path, tree, strip, &limits, &run, &e) != 0 &&
	    (e.kind == ERR_NONE || !e.msg[0]))
		abort();
	/* Three levels, in each of which there is nothing but the next. */
	static const char *const levels[] = {"", "a", "a/b"}, *const inner[] = {"a", "b", "tree"};
	for (size_t i = 0; i < ARRAY_LEN(levels) && fs_is_dir(TRUSTED, tree); i++) {
		names = (struct strlist){0};
		if (fs_list(TRUSTED, path_join(&a, top, levels[i]), &a, &names, &e) != 0 ||
		    names.count != 1 || strcmp(names.items[0], inner[i]) != 0)
			abort();
	}

	if (fs_is_dir(TRUSTED, tree) && fs_walk(TRUSTED, tree, look, (void *)tree, &e) != 0)
		abort();
	if (fs_remove(TRUSTED, top, &e) != 0)
		abort();
	return 0;
}
