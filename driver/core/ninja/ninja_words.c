/* Reading a build.ninja: its lines, words and build statements. */
#include <string.h>

#include "core/ninja/ninja_parts.h"

bool ninja_begins(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);
	return (size_t)(end - p) > n && strncmp(p, word, n) == 0;
}

const char *ninja_line_end(const char *p, const char *end)
{
	for (;;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			return end;
		size_t dollars = 0;
		const char *before = nl > p && nl[-1] == '\r' ? nl - 1 : nl;
		while (before - dollars > p && before[-1 - (ptrdiff_t)dollars] == '$')
			dollars++;
		p = nl + 1;
		if (dollars % 2 == 0)
			return p;
	}
}

const char *ninja_comment_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));
	return nl ? nl + 1 : end;
}

const char *ninja_next_line(const char *p, const char *end)
{
	const char *text = p;
	while (text < end && (*text == ' ' || *text == '\r'))
		text++;
	return text < end && *text == '#' ? ninja_comment_end(p, end) : ninja_line_end(p, end);
}

const char *ninja_take_word(const char *p, const char *end, struct buf *out, bool *ret_plain)
{
	buf_reset(out);
	*ret_plain = true;
	while (p < end && *p != ' ' && *p != ':' && *p != '|' && *p != '\n') {
		if (*p == '$' && p + 1 < end) {
			p++;
			if (*p == '\n' || *p == '\r') {
				p += *p == '\r' && p + 1 < end && p[1] == '\n' ? 2 : 1;
				while (p < end && *p == ' ')
					p++;
				continue;
			}
			if (!strchr("$ :|", *p)) { /* a variable stays one */
				buf_addc(out, '$');
				*ret_plain = false;
			}
		} else if (*p == '$') { /* joins nothing */
			p++;
			continue;
		}
		*ret_plain = *ret_plain && *p != '\0';
		buf_addc(out, *p++);
	}
	return p;
}

const char *ninja_skip_blanks(const char *p, const char *end)
{
	while (p < end) {
		if (*p == ' ')
			p++;
		else if (*p == '$' && p + 1 < end && p[1] == '\n')
			p += 2;
		else
			break;
	}
	return p;
}

const char *ninja_take_paths(const char *p, const char *end, struct arena *a, const char **ret_first,
			     const char **ret_plain)
{
	AUTO_BUF struct buf word = {0};
	*ret_first = *ret_plain = NULL;
	for (;;) {
		bool plain;
		p = ninja_skip_blanks(p, end);
		const char *next = ninja_take_word(p, end, &word, &plain);
		if (next == p) {
			if (end - p < 2 || *p != '|' || p[1] == '|' || p[1] == '@')
				return p;
			next = p + 1;
		} else if (word.len && !(*ret_first && (*ret_plain || !plain))) {
			const char *path = arena_strdup(a, buf_cstr(&word));
			*ret_first = *ret_first ? *ret_first : path;
			*ret_plain = plain ? path : NULL;
		}
		p = next;
	}
}

bool ninja_take_head(const char *p, const char *end, struct arena *a, struct ninja_head *ret)
{
	AUTO_BUF struct buf word = {0};
	struct ninja_head h;
	p = ninja_take_paths(p + strlen("build"), end, a, &h.output, &h.plain_output);
	if (!h.output || p >= end || *p != ':')
		return false;
	h.inputs = ninja_take_word(ninja_skip_blanks(p + 1, end), end, &word, &h.plain_rule);
	h.rule = arena_strdup(a, buf_cstr(&word));
	*ret = h;
	return word.len > 0;
}
