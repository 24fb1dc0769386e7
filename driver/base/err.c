#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"

/* vsnprintf cuts; a format that cannot be converted at all must still leave a string. */
static void format_into(char *out, size_t size, const char *fmt, va_list ap)
{
	if (vsnprintf(out, size, fmt, ap) < 0)
		out[0] = '\0';
}

/* The names stand in parentheses because the header makes them macros for the analyzer. */
int(err_set)(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	/* The arguments may point into `e` itself, so the text is made beside it. */
	char text[sizeof(e->msg)];
	va_list ap;
	va_start(ap, fmt);
	format_into(text, sizeof(text), fmt, ap);
	va_end(ap);
	e->kind = kind;
	memcpy(e->msg, text, sizeof(text));
	e->hint[0] = '\0';
	return -1;
}

int(err_errno)(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	int saved = errno;
	char text[sizeof(e->msg)];
	va_list ap;
	va_start(ap, fmt);
	format_into(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(e, kind, "%s: %s", text, os_errno_text(saved));
	if (saved == ENOSPC || saved == EDQUOT)
		err_hint(e, "the disk %s: free some space or point --cache, --out and TMPDIR elsewhere",
			 saved == ENOSPC ? "is full" : "quota is used up");
	errno = saved;
	return -1;
}

int(err_wrap)(struct err *e, const char *fmt, ...)
{
	char text[sizeof(e->msg)];
	char whole[sizeof(e->msg)];
	va_list ap;
	va_start(ap, fmt);
	format_into(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t used = strnlen(text, sizeof(text) - 1);
	memcpy(whole, text, used);
	snprintf(whole + used, sizeof(whole) - used, ": %s", e->msg);
	memcpy(e->msg, whole, strlen(whole) + 1);
	return -1;
}

int(err_hint)(struct err *e, const char *fmt, ...)
{
	char text[sizeof(e->hint)];
	va_list ap;
	va_start(ap, fmt);
	format_into(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(e->hint, text, sizeof(text));
	return -1;
}

enum err_kind err_kind_of_words(const char *words, enum err_kind otherwise)
{
	static const int faults[] = {ENOSPC, EDQUOT, EIO, EROFS, ENOMEM};
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strstr(words, os_errno_text(faults[i])))
			return ERR_SYSTEM;
	return otherwise;
}

void err_clear(struct err *e)
{
	e->kind = ERR_NONE;
	e->msg[0] = '\0';
	e->hint[0] = '\0';
}
