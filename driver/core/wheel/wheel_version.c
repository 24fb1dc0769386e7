/* PEP 440: which versions are written in different ways and are the same. */
#include <ctype.h>
#include <string.h>

#include "core/wheel/wheel.h"

struct reader {
	const char *at;
	struct buf *out;
};

static bool is_separator(char c)
{
	return c && strchr("-_.", c);
}

/* A number without its leading zeros; none is zero. */
static void take_number(struct reader *r)
{
	size_t n = strspn(r->at, "0123456789"), zeros = strspn(r->at, "0");
	if (zeros >= n)
		buf_addc(r->out, '0');
	else
		buf_add(r->out, r->at + zeros, n - zeros);
	r->at += n;
}

/* Zeros at the end say nothing: 1.0 is 1. */
static bool take_release(struct reader *r)
{
	size_t kept = 0;
	for (bool first = true;; first = false) {
		if (!isdigit((unsigned char)*r->at))
			return false;
		size_t before = r->out->len;
		take_number(r);
		if (first || r->out->len - before != 1 || r->out->data[before] != '0')
			kept = r->out->len;
		if (*r->at != '.' || !isdigit((unsigned char)r->at[1]))
			break;
		buf_addc(r->out, *r->at++);
	}
	r->out->len = kept;
	return true;
}

/* "-rc.1" as "rc1": one of these words, which are longest first where one begins with another. */
static bool take_word(struct reader *r, const char *const (*words)[2], size_t count)
{
	const char *word = r->at + is_separator(*r->at);
	for (size_t i = 0; i < count; i++) {
		if (strncmp(word, words[i][0], strlen(words[i][0])) != 0)
			continue;
		word += strlen(words[i][0]);
		buf_addstr(r->out, words[i][1]);
		r->at = word + (is_separator(*word) && isdigit((unsigned char)word[1]));
		take_number(r);
		return true;
	}
	return false;
}

static bool take_local(struct reader *r)
{
	for (char mark = '+';; mark = '.') {
		size_t n = strspn(++r->at, "abcdefghijklmnopqrstuvwxyz0123456789");
		if (!n)
			return false;
		buf_addc(r->out, mark);
		if (strspn(r->at, "0123456789") == n) {
			take_number(r);
		} else {
			buf_add(r->out, r->at, n);
			r->at += n;
		}
		if (!is_separator(*r->at))
			return true;
	}
}

static bool take_all(struct reader *r)
{
	static const char *const pre[][2] = {{"alpha", "a"}, {"beta", "b"}, {"preview", "rc"}, {"pre", "rc"},
					     {"rc", "rc"},   {"a", "a"},    {"b", "b"},        {"c", "rc"}};
	static const char *const post[][2] = {{"post", ".post"}, {"rev", ".post"}, {"r", ".post"}};
	static const char *const dev[][2] = {{"dev", ".dev"}};
	size_t digits = strspn(r->at, "0123456789");
	if (digits && r->at[digits] == '!') {
		take_number(r);
		buf_addc(r->out, *r->at++);
		if (strcmp(buf_cstr(r->out), "0!") == 0)
			buf_reset(r->out);
	}
	if (!take_release(r))
		return false;
	take_word(r, pre, ARRAY_LEN(pre));
	if (!take_word(r, post, ARRAY_LEN(post)) && *r->at && strchr("-_", *r->at) &&
	    isdigit((unsigned char)r->at[1])) {
		r->at++;
		buf_addstr(r->out, ".post");
		take_number(r);
	}
	take_word(r, dev, ARRAY_LEN(dev));
	return (*r->at != '+' || take_local(r)) && !*r->at;
}

char *wheel_version_key(const char *version, struct arena *a)
{
	struct buf AUTO_BUF out = {0};
	char *text = arena_strdup(a, version + strspn(version, " \t"));
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	for (size_t n = strlen(text); n && strchr(" \t", text[n - 1]); n--)
		text[n - 1] = '\0';
	struct reader r = {.at = *text == 'v' ? text + 1 : text, .out = &out};
	return take_all(&r) ? arena_strdup(a, buf_cstr(&out)) : NULL;
}

bool wheel_same_version(const char *left, const char *right, struct arena *a)
{
	const char *x = wheel_version_key(left, a), *y = wheel_version_key(right, a);
	return strcmp(x ? x : left, y ? y : right) == 0;
}
