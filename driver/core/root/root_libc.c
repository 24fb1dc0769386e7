#include <string.h>

#include "base/path.h"
#include "core/root/root.h"

enum { LIBC_MAX = 16 << 20 };

/* The library carries what it prints when it is run: "GNU C Library (Debian GLIBC 2.41-12) stable release version
 * 2.41.". */
static const char *version_in(const struct buf *library, struct arena *a)
{
	static const char name[] = "GNU C Library ", before[] = " release version ";
	const char *at = memmem(library->data, library->len, name, strlen(name));
	const char *end = at ? memchr(at, '\0', (size_t)(library->data + library->len - at)) : NULL;
	const char *version = end ? strstr(at, before) : NULL;
	if (!version)
		return "";
	version += strlen(before);
	size_t n = strspn(version, "0123456789.");
	while (n && version[n - 1] == '.')
		n--;
	return arena_strndup(a, version, n);
}

char *root_glibc(const struct root *r, struct arena *a)
{
	struct strlist dirs = {0};
	const char *found = "";
	(void)!root_library_dirs(r, a, &dirs, ERR_IGNORED);
	for (size_t i = 0; i < dirs.count && !*found; i++) {
		AUTO_BUF struct buf library = {0};
		if (root_read(r, path_join(a, dirs.items[i], "libc.so.6"), LIBC_MAX, &library, ERR_IGNORED) == 1)
			found = version_in(&library, a);
	}
	return arena_strdup(a, found);
}
