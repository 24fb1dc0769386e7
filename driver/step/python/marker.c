#include "step/python/marker.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/version.h"

#define MAX_DEPTH 32

struct reader {
	const char *at;
	const char *python;
	struct arena *a;
	unsigned depth;
	bool bad; /* what was read is not a marker */
};

static void skip(struct reader *r)
{
	r->at += strspn(r->at, " \t");
}

static bool take_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	skip(r);
	if (strncmp(r->at, word, n) != 0 || !strchr(" \t('\"", r->at[n]))
		return false;
	r->at += n;
	return true;
}

/* A name or a quoted text. */
static const char *operand(struct reader *r, bool *ret_quoted)
{
	skip(r);
	char end = *r->at;
	*ret_quoted = end == '\'' || end == '"';
	if (*ret_quoted) {
		const char *from = r->at + 1, *to = strchr(from, end);
		r->bad |= !to;
		r->at = to ? to + 1 : from + strlen(from);
		return arena_strndup(r->a, from, (size_t)((to ? to : r->at) - from));
	}
	size_t n = strspn(r->at, "abcdefghijklmnopqrstuvwxyz_.");
	r->bad |= n == 0;
	r->at += n;
	return arena_strndup(r->a, r->at - n, n);
}

static bool comparison(struct reader *r)
{
	bool quoted, value_quoted, in = true;
	const char *name = operand(r, &quoted);
	skip(r);
	size_t n = strspn(r->at, "<>=!~");
	const char *op = arena_strndup(r->a, r->at, n);
	r->at += n;
	if (n == 0 && !take_word(r, "in") && !(take_word(r, "not") && take_word(r, "in")))
		r->bad = true;
	const char *value = operand(r, &value_quoted);
	if (r->bad || n == 0 || quoted || !value_quoted ||
	    (strcmp(name, "python_version") != 0 && strcmp(name, "python_full_version") != 0))
		return true;
	return version_in(r->python, arena_printf(r->a, "%s%s", op, value), &in, ERR_IGNORED) < 0 || in;
}

static bool any_of(struct reader *r);

static bool term(struct reader *r)
{
	skip(r);
	if (*r->at != '(')
		return comparison(r);
	if (++r->depth > MAX_DEPTH) {
		r->bad = true;
		return true;
	}
	r->at++;
	bool holds = any_of(r);
	skip(r);
	if (*r->at == ')')
		r->at++;
	else
		r->bad = true;
	r->depth--;
	return holds;
}

static bool all_of(struct reader *r)
{
	bool holds = term(r);
	while (!r->bad && take_word(r, "and"))
		holds &= term(r);
	return holds;
}

static bool any_of(struct reader *r)
{
	bool holds = all_of(r);
	while (!r->bad && take_word(r, "or"))
		holds |= all_of(r);
	return holds;
}

bool marker_holds(const char *marker, const char *python)
{
	AUTO_ARENA struct arena a = {0};
	struct reader r = {.at = marker, .python = python, .a = &a};
	skip(&r);
	if (!*r.at)
		return true;
	bool holds = any_of(&r);
	skip(&r);
	return holds || r.bad || *r.at;
}
