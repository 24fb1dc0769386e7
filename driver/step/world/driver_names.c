#include "step/world/toolkit_tree.h"

#include "base/buf.h"

enum { MAX_NAME = 200, MAX_NAMES = 20000 };

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define WORD LETTERS "0123456789"
#define BLANKS " \t\r\f\v"

/* Behind a comment or a literal that starts at `p`; `p` itself where none does. */
static const char *skip_one(const char *p, const char *end)
{
	const char *q = p;

	if (*p == '"' || *p == '\'') {
		for (q++; q < end && *q != *p && *q != '\n'; q++)
			if (*q == '\\' && q + 1 < end)
				q++;
		return q < end && *q == *p ? q + 1 : q;
	}

	if (end - p >= 2 && p[0] == '/' && p[1] == '/')
		return (q = memchr(p, '\n', (size_t)(end - p))) ? q : end;
	if (end - p >= 2 && p[0] == '/' && p[1] == '*')
		return (q = memmem(p + 2, (size_t)(end - p - 2), "*/", 2)) ? q + 2 : end;
	return p;
}

/* The text without comments, literals and NULs, and with continued lines joined. */
static void clean(const char *text, size_t len, struct buf *out)
{
	const char *end = text + len;

	for (const char *p = text; p < end;) {
		const char *next = skip_one(p, end);
		if (next > p)
			buf_addc(out, ' ');
		else if (end - p >= 2 && p[0] == '\\' && p[1] == '\n')
			next = p + 2;
		else if (end - p >= 3 && memcmp(p, "\\\r\n", 3) == 0)
			next = p + 3;
		else
			buf_addc(out, *p ? *p : ' '), next = p + 1;
		p = next;
	}
}

/* The next word or mark: its length, and where it starts in *p; 0 at the end of the text. */
static size_t next_token(const char **p, const char *blanks)
{
	*p += strspn(*p, blanks);
	size_t n = strspn(*p, WORD);
	return n ? n : **p != '\0';
}

static bool is(const char *token, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(token, word, n) == 0;
}

/* cuda... is the runtime's. */
static bool is_function(const char *token, size_t n)
{
	return n > 2 && token[0] == 'c' && token[1] == 'u' && token[2] >= 'A' && token[2] <= 'Z';
}

static int add(const char *name, size_t n, const char *suffix, struct arena *a, struct strlist *ret,
	       struct err *e)
{
	if (n > MAX_NAME)
		return err_set(e, ERR_INTEGRITY,
			       "has a function with a name of more than %d characters, '%.40s...'",
			       MAX_NAME, name);
	if (ret->count >= MAX_NAMES)
		return err_set(e, ERR_INTEGRITY, "has more than %d functions", MAX_NAMES);
	strlist_addf(ret, a, "%.*s%s", (int)n, name, suffix);
	return 0;
}

/* "#define cuX cuX_v2", "#define cuX __CUDA_API_PTSZ(cuX_v2)". */
static int read_define(const char *p, struct arena *a, struct strlist *ret, struct err *e)
{
	const char *suffix = "";
	size_t n = next_token(&p, BLANKS "#");

	if (!is(p, n, "define"))
		return 0;
	p += n;
	n = next_token(&p, BLANKS);
	if (!is_function(p, n) || p[n] == '(')
		return 0;
	p += n;
	n = next_token(&p, BLANKS);
	if (is(p, n, "__CUDA_API_PTDS"))
		suffix = "_ptds";
	else if (is(p, n, "__CUDA_API_PTSZ"))
		suffix = "_ptsz";
	if (*suffix) {
		p += n;
		n = next_token(&p, BLANKS "(");
	}

	if (!is_function(p, n) || add(p, n, "", a, ret, e) < 0)
		return is_function(p, n) ? -1 : 0;
	return *suffix ? add(p, n, suffix, a, ret, e) : 0;
}

/* "CUresult CUDAAPI cuInit(", also over several lines; not "(CUDAAPI *CUhostFn)(". */
static int read_code(const char *p, struct arena *a, struct strlist *ret, struct err *e)
{
	const char *name = NULL;
	size_t len = 0;
	bool marked = false;

	for (size_t n; (n = next_token(&p, BLANKS "\n")) > 0; p += n) {
		if (name && is(p, n, "(") && add(name, len, "", a, ret, e) < 0)
			return -1;
		name = marked && is_function(p, n) ? p : NULL;
		len = n;
		marked = is(p, n, "CUDAAPI");
	}

	return 0;
}

int driver_names(const char *text, size_t len, struct arena *a, struct strlist *ret, struct err *e)
{
	AUTO_BUF struct buf lines = {0};
	AUTO_BUF struct buf code = {0};

	clean(text, len, &lines);
	for (const char *line = buf_cstr(&lines), *next; *line; line = next) {
		size_t n = strcspn(line, "\n");
		next = line + n + (line[n] == '\n');
		if (line[strspn(line, BLANKS)] != '#') {
			buf_add(&code, line, (size_t)(next - line));
			continue;
		}

		AUTO_BUF struct buf directive = {0};
		buf_add(&directive, line, n);
		if (read_define(buf_cstr(&directive), a, ret, e) < 0)
			return -1;
	}

	return read_code(buf_cstr(&code), a, ret, e);
}
