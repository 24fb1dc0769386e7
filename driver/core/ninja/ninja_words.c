/* Reading a build.ninja: its lines, words and build statements. */

#include "core/ninja/ninja_parts.h"

bool ninja_begins(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);
	return (size_t)(end - p) > n && strncmp(p, word, n) == 0;
}

const char *ninja_eol(const char *p, const char *next)
{
	if (next > p && next[-1] == '\n')
		next -= next - p > 1 && next[-2] == '\r' ? 2 : 1;
	return next;
}

/* Whether a '$' before its end joins the line to the next one; a second '$' before that makes the first one text. */
static bool joins(const char *p, const char *next)
{
	const char *eol = ninja_eol(p, next), *text = eol;
	while (text > p && text[-1] == '$')
		text--;
	return (eol - text) % 2 != 0;
}

const char *ninja_line_end(const char *p, const char *end)
{
	const char *next;
	while (p < end && (next = ninja_comment_end(p, end), joins(p, next)))
		p = next;
	return p < end ? next : end;
}

const char *ninja_comment_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));
	return nl ? nl + 1 : end;
}

static bool is_comment(const char *p, const char *end)
{
	while (p < end && *p == ' ')
		p++;
	return p < end && *p == '#';
}

const char *ninja_next_line(const char *p, const char *end)
{
	return is_comment(p, end) ? ninja_comment_end(p, end) : ninja_line_end(p, end);
}

const char *ninja_line_fault(const char *p, const char *next, const char **ret_at)
{
	const char *cr = is_comment(p, next) ? NULL : memchr(p, '\r', (size_t)(next - p));
	for (; cr; cr = memchr(cr + 1, '\r', (size_t)(next - cr - 1))) {
		if (cr + 1 < next && cr[1] == '\n')
			continue;
		*ret_at = cr;
		return "a carriage return that is not part of a line's end";
	}
	if (next[-1] == '\n' && (is_comment(p, next) || !joins(p, next)))
		return NULL;
	*ret_at = p;
	return "the last line does not end";
}

/* How long the joined end of a line at `p` is: '$' and a line's end; else 0. */
static size_t joint(const char *p, const char *end)
{
	if (end - p > 1 && *p == '$' && p[1] == '\n')
		return 2;
	return end - p > 2 && *p == '$' && p[1] == '\r' && p[2] == '\n' ? 3 : 0;
}

const char *ninja_take_word(const char *p, const char *end, struct buf *out, bool *ret_plain)
{
	buf_reset(out);
	*ret_plain = true;
	while (p < end && *p != ' ' && *p != ':' && *p != '|' && *p != '\n' && *p != '\r') {
		size_t joined = joint(p, end);
		if (joined) {
			p += joined;
			while (p < end && *p == ' ')
				p++;
			continue;
		}
		if (*p == '$' && p + 1 < end) {
			p++;
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
	size_t joined;
	while (p < end && (*p == ' ' || joint(p, end)))
		p += (joined = joint(p, end)) ? joined : 1;
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
