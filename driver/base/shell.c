#include "base/shell.h"

#include <string.h>

#include "base/buf.h"

const char *shell_quoted(const char *word, struct arena *a)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	AUTO_BUF struct buf out = {0};
	if (*word && strspn(word, plain) == strlen(word))
		return word;
	buf_addc(&out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_addstr(&out, "'\\''");
		else
			buf_addc(&out, *word);
	}
	buf_addc(&out, '\'');
	return arena_strdup(a, buf_cstr(&out));
}
