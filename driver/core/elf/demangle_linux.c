#include "core/elf/elf.h"

#include <setjmp.h>

enum { SHOWN_MAX = 400, NAME_MAX_BYTES = 16384 };

/* From libstdc++, which has no header for it: like __cxa_demangle, but in pieces and without
 * allocating. */
/* NOLINT */
extern int __gcclibcxx_demangle_callback(const char *name,
					 void (*take)(const char *text, size_t len, void *user),
					 void *user);

struct piece {
	char text[SHOWN_MAX + 1];
	size_t len;
	jmp_buf full;
};

/* The demangler's output can grow exponentially with the name, and the demangler has no way to
 * stop: longjmp leaves it. It holds nothing but its stack. */
static void take(const char *text, size_t len, void *user)
{
	struct piece *p = user;
	size_t room = SHOWN_MAX - p->len, n = len < room ? len : room;

	memcpy(p->text + p->len, text, n);
	p->len += n;
	if (n < len)
		longjmp(p->full, 1);
}

char *demangle(const char *name, struct arena *a)
{
	struct piece p = {.len = 0};
	bool mangled = strncmp(name, "_Z", 2) == 0 && strlen(name) <= NAME_MAX_BYTES;

	if (setjmp(p.full) != 0)
		return arena_printf(a, "%.*s...", (int)p.len, p.text);
	if (mangled && __gcclibcxx_demangle_callback(name, take, &p) == 0)
		return arena_strndup(a, p.text, p.len);
	return arena_printf(a, "%.*s%s", SHOWN_MAX, name, strlen(name) > SHOWN_MAX ? "..." : "");
}
