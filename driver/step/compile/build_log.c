#include "step/compile/build_parts.h"

#define MAX_ERROR 500

static const char *const error_marks[] = {" error: ",     "fatal error:", "CMake Error",
					  "Error: ",      "error: ",      "undefined reference",
					  "No space left"};

/* What compilers and linkers print that got no memory. */
static const char *const memory_marks[] = {
	"out of memory allocating", "virtual memory exhausted",  "memory exhausted",
	"annot allocate memory",    "LLVM ERROR: out of memory", "std::bad_alloc",
};

static const char *line_start(const char *text, const char *at)
{
	while (at > text && at[-1] != '\n')
		at--;
	return at;
}

static char *line_at(const char *start, size_t most, struct arena *a)
{
	size_t n = strcspn(start, "\r\n");
	return arena_strndup(a, start, n < most ? n : most);
}

/* The first place of any of the marks. */
static const char *first_of(const char *text, const char *const *marks, size_t count)
{
	const char *best = NULL;

	for (size_t i = 0; i < count; i++) {
		const char *at = strstr(text, marks[i]);
		/* pip's wrapper; the reason is above it. */
		while (at && strncmp(at, "error: subprocess-exited", 24) == 0)
			at = strstr(at + 1, marks[i]);
		if (at && (!best || at < best))
			best = at;
	}

	return best;
}

/* Whether nothing but blanks, with which pip indents, is before it in its line. */
static bool begins_line(const char *text, const char *at)
{
	while (at > text && at[-1] == ' ')
		at--;
	return at == text || at[-1] == '\n';
}

/* "FAILED: OUTPUT OUTPUT " or, since ninja 1.13, "FAILED: [code=1] OUTPUT". */
static const char *find_failed(const char *text, struct arena *a, const char **unit, bool *killed)
{
	static const char mark[] = "FAILED: ";
	const char *at = text;

	while ((at = strstr(at, mark)) && !begins_line(text, at))
		at++;
	if (!at)
		return NULL;
	const char *p = at + strlen(mark);
	if (*p == '[') {
		const char *close = p + strcspn(p, "]\r\n");
		*killed = strncmp(p, "[code=137]", 10) == 0; /* 128 + SIGKILL */
		if (*close == ']')
			p = close + 1 + (close[1] == ' ');
	}

	size_t n = strcspn(p, " \r\n");
	if (n == 0)
		return NULL;
	*unit = arena_strndup(a, p, n);
	return at;
}

/* The last line that is not blank. */
static const char *last_line(const char *text, size_t len)
{
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	return line_start(text, text + len);
}

static char *error_line(const char *text, const char *at, struct arena *a)
{
	const char *start = line_start(text, at);
	char *line = line_at(start, MAX_ERROR, a);
	const char *next = start + strcspn(start, "\r\n");

	next += strspn(next, "\r\n");
	/* CMake puts the reason on the next line */
	if (strncmp(start, "CMake Error", 11) == 0 && *next)
		return arena_printf(a, "%s %s", line,
				    line_at(next + strspn(next, " "), MAX_ERROR, a));
	return line;
}

const char *build_log_killed(const char *text, struct arena *a)
{
	const char *at = err_words_killed(text);
	at = at ? at : strstr(text, "FAILED: [code=137]");
	return at ? line_at(line_start(text, at), MAX_ERROR, a) : NULL;
}

void build_log_read(const char *text, size_t len, struct arena *a, struct build_log *ret)
{
	struct build_log l = {0};
	bool by_signal = false;
	const char *failed = find_failed(text, a, &l.unit, &by_signal);
	const char *killed = first_of(text, memory_marks, ARRAY_LEN(memory_marks));
	const char *first = err_words_killed(text);

	if (first && (!killed || first < killed))
		killed = first;
	if (!killed && by_signal)
		killed = failed;
	if (killed)
		l.killed = line_at(line_start(text, killed), MAX_ERROR, a);
	/* Earlier output is of other units, and may hold warnings with the word error. */
	const char *at = failed ? first_of(failed, error_marks, ARRAY_LEN(error_marks)) : NULL;
	if (!at)
		at = first_of(text, error_marks, ARRAY_LEN(error_marks));
	l.error = at ? error_line(text, at, a) : line_at(last_line(text, len), MAX_ERROR, a);
	*ret = l;
}
