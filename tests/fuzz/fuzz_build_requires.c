/* Any bytes as a requirement of a build: what is handed to pip is one line, no option and no place,
 * and the same when it is read again. */
#include <string.h>

#include "fuzz.h"
#include "step/python/pyenv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	const char *text = requirements_text(arena_strndup(&a, (const char *)data, size), &a);

	if (!text)
		return 0;
	const char *marker = strchr(text, ';');
	const size_t before = marker ? (size_t)(marker - text) : strlen(text);
	fail_unless(*text && *text != '-' && !strpbrk(text, "\r\n"));
	fail_unless(memchr(text, '@', before) == NULL && memchr(text, '/', before) == NULL);
	const char *again = requirements_text(text, &a);
	fail_unless(again && strcmp(again, text) == 0);
	return 0;
}
