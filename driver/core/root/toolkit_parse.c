/* Parsers of what a toolkit's programs print and its headers say. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "core/root/toolkit.h"

/* Options of nvcc that a build uses where the toolkit has them. */
static const char *const known_options[] = {"--objdir-as-tempdir", "--compress-mode", "--frandom-seed",
					    "--split-compile", "--threads"};

/* The text after a mark, up to one of the characters `end`; "" without the mark. */
static char *text_after(const char *text, const char *mark, const char *end, struct arena *a)
{
	const char *p = strstr(text, mark);
	if (!p)
		return arena_strdup(a, "");
	p += strlen(mark);
	return arena_strndup(a, p, strcspn(p, end));
}

static void take_targets(const char *help, struct arena *a, struct strlist *ret)
{
	for (const char *p = strstr(help, "'sm_"); p; p = strstr(p + 1, "'sm_")) {
		const char *name = p + 4;
		size_t n = strcspn(name, "'");
		if (n == 0 || n > 8 || name[n] != '\'' || !isdigit((unsigned char)*name))
			continue;
		const char *target = arena_strndup(a, name, n);
		strlist_once(ret, a, target);
	}
}

bool toolkit_parse(const char *version_text, const char *help_text, struct arena *a, struct toolkit *k)
{
	k->release = text_after(version_text, ", V", " \n", a);
	k->build = text_after(version_text, "Build ", "\n", a);
	k->version = text_after(version_text, ", release ", ", \n", a);
	if (!version_valid(k->version) || !version_valid(k->release))
		return false;
	take_targets(help_text, a, &k->targets);
	for (size_t i = 0; i < ARRAY_LEN(known_options); i++) {
		const char *at = strstr(help_text, known_options[i]);
		if (at && strchr(" \t\n=", at[strlen(known_options[i])]))
			strlist_ref(&k->options, a, known_options[i]);
	}
	return k->targets.count > 0;
}

long toolkit_header_number(const char *text, const char *name)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist lines = {0};
	strlist_split(&lines, &a, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i];
		struct strlist words = {0};
		if (line[strspn(line, " \t")] != '#')
			continue;
		strlist_split(&words, &a, line, "# \t\r()");
		if (words.count > 2 && strcmp(words.items[0], "define") == 0 && strcmp(words.items[1], name) == 0 &&
		    isdigit((unsigned char)*words.items[2]))
			return strtol(words.items[2], NULL, 0);
	}
	return -1;
}

/* The number after the last `mark` that has one, 0 without. */
static unsigned number_after(const char *text, const char *mark)
{
	unsigned long found = 0;
	for (const char *p = strstr(text, mark); p; p = strstr(p + 1, mark)) {
		unsigned long n = strtoul(p + strlen(mark), NULL, 10);
		found = n ? n : found;
	}
	return found < 10000 ? (unsigned)found : 0;
}

void toolkit_header_limits(const char *text, unsigned *gcc_max, unsigned *clang_max)
{
	unsigned beyond = number_after(text, "(__clang_major__ >=");
	*gcc_max = number_after(text, "#if __GNUC__ >");
	*clang_max = beyond ? beyond - 1 : 0;
}
