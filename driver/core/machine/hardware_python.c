#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/version.h"
#include "core/machine/hardware_parts.h"

/* "3.11" of "python3.11", "3.13t" of "python3.13t"; NULL for every other name. */
static const char *version_of(const char *name)
{
	static const char stem[] = "python";
	const char *version = name + strlen(stem);
	if (strncmp(name, stem, strlen(stem)) != 0 || strncmp(version, "3.", 2) != 0)
		return NULL;
	size_t digits = strspn(version + 2, "0123456789");
	const char *end = version + 2 + digits;
	return digits && (!*end || strcmp(end, "t") == 0) ? version : NULL;
}

/* Version managers put scripts of every version they know of into PATH, which then say "not found". */
static bool is_interpreter(const char *path)
{
	char magic[4] = {0};
	int fd = access(path, X_OK) == 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	ssize_t n = fd < 0 ? -1 : read(fd, magic, sizeof(magic));
	if (fd >= 0)
		close(fd);
	return n == (ssize_t)sizeof(magic) && memcmp(magic, "#!", 2) != 0;
}

static void add(const char *path, struct arena *a, struct strlist *ret)
{
	const char *version = version_of(path_base(path));
	if (!version || strlist_contains(ret, version) || !is_interpreter(path))
		return;
	strlist_add(ret, a, version);
	for (size_t i = ret->count - 1; i > 0 && version_cmp(ret->items[i - 1], ret->items[i]) > 0; i--) {
		const char *other = ret->items[i];
		ret->items[i] = ret->items[i - 1];
		ret->items[i - 1] = other;
	}
}

void hardware_find_pythons(struct arena *a, struct strlist *ret)
{
	static const char *const links[] = {"python3", "python"};
	const char *path = getenv("PATH");
	struct strlist dirs = {0};
	strlist_split(&dirs, a, path ? path : "/usr/local/bin:/usr/bin:/bin", ":");
	for (size_t i = 0; i < dirs.count; i++) {
		struct strlist names = {0};
		if (dirs.items[i][0] != '/' || fs_list(TRUSTED, dirs.items[i], a, &names, ERR_IGNORED) < 0)
			continue;
		for (size_t k = 0; k < names.count; k++)
			add(path_join(a, dirs.items[i], names.items[k]), a, ret);
		/* In an environment of its own, or where Pythons lie elsewhere. */
		for (size_t k = 0; k < ARRAY_LEN(links); k++) {
			AUTO_FREE char *real = realpath(path_join(a, dirs.items[i], links[k]), NULL);
			if (real)
				add(real, a, ret);
		}
	}
}
