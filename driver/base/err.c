#include "base/err.h"

#include "base/os.h"

/* vsnprintf cuts; a format that cannot be converted at all must still leave a string. */
static void format_into(char *out, size_t size, const char *fmt, va_list ap)
{
	if (vsnprintf(out, size, fmt, ap) < 0)
		out[0] = '\0';
}

/* The parentheses keep the header's macros for the analyzer from replacing these names. */
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

static const int disk_errnos[] = {ENOSPC, EDQUOT, EFBIG};

static bool is_disk_errno(int number)
{
	for (size_t i = 0; i < sizeof(disk_errnos) / sizeof(disk_errnos[0]); i++)
		if (disk_errnos[i] == number)
			return true;
	return false;
}

int err_disk(const char *words)
{
	/* What programs print without the system's own text: Python's tempfile, apt-get. */
	static const char *const others[] = {"No usable temporary directory found",
					     "You don't have enough free space in"};

	for (size_t i = 0; i < sizeof(disk_errnos) / sizeof(disk_errnos[0]); i++)
		if (strstr(words, os_errno_text(disk_errnos[i])))
			return disk_errnos[i];
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strstr(words, others[i]))
			return ENOSPC;
	return 0;
}

int(err_errno)(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	int saved = errno;
	char text[sizeof(e->msg)];
	va_list ap;

	va_start(ap, fmt);
	format_into(text, sizeof(text), fmt, ap);
	va_end(ap);
	bool full = is_disk_errno(saved);
	err_set(e, full ? ERR_SYSTEM : kind, "%s: %s", text, os_errno_text(saved));
	if (full)
		err_hint(e, ERR_DISK_HINT);
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

int(err_take)(struct err *e, const struct err *other)
{
	*e = *other;
	return -1;
}

/* What a shell prints for a program that got signal 9: "Killed", or "sh: line 1: 123 Killed cc1plus
 * ...". */
static const char *shell_kill(const char *text)
{
	for (const char *at = text; (at = strstr(at, "Killed")); at++) {
		const char *start = at, *before = at;
		while (start > text && start[-1] != '\n')
			start--;
		while (before > start && (before[-1] == ' ' || isdigit((unsigned char)before[-1])))
			before--;
		bool alone = before == start && strchr("\r\n", at[6]);
		bool after_pid = before < at && before > start && before[-1] == ':';
		bool word_ends = at[6] == ' ' || strchr("\r\n", at[6]);
		if (alone || (after_pid && word_ends))
			return at;
	}

	return NULL;
}

const char *err_words_killed(const char *words)
{
	/* Messages of GCC, Clang, nvcc and the linkers. */
	static const char *const marks[] = {"Killed signal terminated program",
					    "internal compiler error: Killed",
					    "unable to execute command: Killed",
					    "terminated with signal 9",
					    "died due to signal 9",
					    "was killed by signal 9"};
	const char *first = shell_kill(words);

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const char *at = strstr(words, marks[i]);
		if (at && (!first || at < first))
			first = at;
	}

	return first;
}

enum err_kind err_kind_of_words(const char *words, enum err_kind otherwise)
{
	static const int faults[] = {EIO, EROFS, ENOMEM};

	if (err_disk(words))
		return ERR_SYSTEM;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strstr(words, os_errno_text(faults[i])))
			return ERR_SYSTEM;
	return err_words_killed(words) ? ERR_SYSTEM : otherwise;
}

void err_clear(struct err *e)
{
	e->kind = ERR_NONE;
	e->msg[0] = '\0';
	e->hint[0] = '\0';
}
