#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/root/toolkit.h"

static const char *skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

long toolkit_header_number(const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		const char *p = skip_blanks(line);
		if (*p++ != '#')
			continue;
		p = skip_blanks(p);
		if (strncmp(p, "define", 6) != 0)
			continue;
		p = skip_blanks(p + 6);
		if (strncmp(p, name, n) != 0 || (p[n] != ' ' && p[n] != '\t'))
			continue;
		p = skip_blanks(p + n);
		while (*p == '(')
			p = skip_blanks(p + 1);
		if (isdigit((unsigned char)*p))
			return strtol(p, NULL, 0);
	}
	return -1;
}

/* The number behind the last `mark` of the text, 0 without one. */
static unsigned number_behind(const char *text, const char *mark)
{
	unsigned long found = 0;
	for (const char *p = strstr(text, mark); p; p = strstr(p + 1, mark)) {
		const char *digits = skip_blanks(p + strlen(mark));
		if (isdigit((unsigned char)*digits))
			found = strtoul(digits, NULL, 10);
	}
	return found < 10000 ? (unsigned)found : 0;
}

void toolkit_header_limits(const char *text, unsigned *gcc_max, unsigned *clang_max)
{
	unsigned beyond = number_behind(text, "(__clang_major__ >=");
	*gcc_max = number_behind(text, "#if __GNUC__ >");
	*clang_max = beyond ? beyond - 1 : 0;
}
