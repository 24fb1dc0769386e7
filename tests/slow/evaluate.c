/* Answers a question a line, for test_requirements.py; fields are separated by tabs:
 *   V SPECIFIER VERSION           "yes", "no", or "bad" for no specifier
 *   C VERSION VERSION             "-1", "0", "1"
 *   M PYTHON PLATFORM EXTRA MARKER   "never", "perhaps", "always", or "bad"; EXTRA "*": any
 *   R LINE                        "name extra,extra specifier url marker", or "bad" */
#include <stdio.h>

#include "core/wheel/requirement.h"

static const char *field(char **rest)
{
	char *from = *rest, *end = strchr(from, '\t');

	*rest = end ? end + 1 : from + strlen(from);
	if (end)
		*end = '\0';
	return from;
}

static void answer(char *line, struct arena *a)
{
	static const char *const words[] = {"never", "perhaps", "always"};
	const char *kind = field(&line);
	struct requirement r;

	if (*kind == 'V') {
		const char *specifier = field(&line), *version = field(&line);
		puts(specifier_check(specifier, a, ERR_IGNORED) < 0 ? "bad"
		     : specifier_takes(specifier, version, a)       ? "yes"
								    : "no");
	} else if (*kind == 'C') {
		const char *x = field(&line);
		const int c = pep440_cmp(x, field(&line), a);
		printf("%d\n", (c > 0) - (c < 0));
	} else if (*kind == 'M') {
		struct marker_env env = {.python = field(&line), .platform = field(&line)};
		const char *extra = field(&line);
		env.extra = *extra == '*' ? NULL : extra;
		puts(marker_check(line, a, ERR_IGNORED) < 0 ? "bad"
							    : words[marker_eval(line, &env, a)]);
	} else if (requirement_parse(line, a, &r, ERR_IGNORED) < 0) {
		puts("bad");
	} else {
		printf("%s\t%s\t%s\t%s\t%s\n", r.name, strlist_join(&r.extras, a, ","), r.specifier,
		       r.url, r.marker);
	}
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, stdin)) > 0) {
		struct arena a = {0};
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		answer(line, &a);
		arena_release(&a);
	}

	free(line);
	return 0;
}
