#include "core/elf/elf.h"

enum { SHOWN_MAX = 400, NAME_MAX_BYTES = 512 };

/* From libc++abi, which has no C header for it. Output for a name of this length is bounded
 * enough. */
extern char *__cxa_demangle(const char *name, char *room, size_t *len, int *status); /* NOLINT */

char *demangle(const char *name, struct arena *a)
{
	int status = -1;
	AUTO_FREE char *plain = NULL;

	if (strncmp(name, "_Z", 2) == 0 && strlen(name) <= NAME_MAX_BYTES)
		plain = __cxa_demangle(name, NULL, NULL, &status);
	const char *shown = plain ? plain : name;
	return arena_printf(a, "%.*s%s", SHOWN_MAX, shown, strlen(shown) > SHOWN_MAX ? "..." : "");
}
