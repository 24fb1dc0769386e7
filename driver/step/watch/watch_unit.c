#include <string.h>

#include "base/path.h"
#include "core/root/sandbox.h"
#include "step/watch/watch_parts.h"

char *watch_unit_name(const char *build_dir, const char *dir, const char *output, struct arena *a)
{
	if (output[0] != '/' && !dir)
		return arena_strdup(a, output);
	const char *path = output[0] == '/' ? path_absolute(a, "/", output) : path_absolute(a, dir, output);
	const char *inside = path_below(path, SANDBOX_SRC "/build");
	if (!inside)
		inside = path_below(path, path_join(a, build_dir, "src/build"));
	return arena_strdup(a, inside ? inside : path);
}

/* "x86_64-linux-gnu-g++-14" ends in "g++", and so does "g++". */
static bool is_compiler(const char *path)
{
	static const char *const names[] = {"gcc",  "g++",      "cc",     "c++",     "clang", "clang++",
					    "nvcc", "gfortran", "ccache", "sccache", "ld"};
	const char *base = path_base(path);
	size_t n = strlen(base), digits = n;
	while (digits > 0 && strchr("0123456789.", base[digits - 1]))
		digits--;
	if (digits < n && digits > 0 && base[digits - 1] == '-')
		n = digits - 1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);
		if (n >= len && strncmp(base + n - len, names[i], len) == 0 && (n == len || base[n - len - 1] == '-'))
			return true;
	}
	return false;
}

const char *watch_output(const char *command, size_t len)
{
	const char *end = command + len, *found = NULL;
	if (len == 0 || end[-1] != '\0' || !is_compiler(command))
		return NULL;
	for (const char *p = command + strlen(command) + 1; p < end; p += strlen(p) + 1) {
		if (strcmp(p, "-o") == 0 && p + 3 < end)
			found = p + 3; /* the last one counts, as it does for the compiler */
	}
	return found && *found ? found : NULL;
}
