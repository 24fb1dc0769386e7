/* Any bytes as an archive: what opens has safe names that can be found
 * again, and contents of the size and digest that its directory promises. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/path.h"
#include "core/zip/zip.h"
#include "fuzz.h"

enum { CONTENTS_MAX = 1 << 22 };

static void check_entry(const struct zip_reader *z, const struct zip_entry *en, size_t archive,
			struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	char *name = arena_strdup(a, en->name);

	if (path_has_suffix(name, "/"))
		name[strlen(name) - 1] = '\0';
	fail_unless(path_is_safe_relative(name) && !strchr(name, '\\'));
	fail_unless(zip_find(z, en->name) == en);
	fail_unless(en->offset < archive && en->packed < archive);
	if (zip_read(z, en, CONTENTS_MAX, &out, &e) == 0)
		fail_unless(out.len == en->size);
	else
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && out.len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct zip_reader *z = NULL;
	struct err e = {0};
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (zip_open(path, &a, &z, &e) != 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && !z);
		return 0;
	}

	for (size_t i = 0; i < zip_count(z); i++)
		check_entry(z, zip_at(z, i), size, &a);
	zip_close(z);
	return 0;
}
