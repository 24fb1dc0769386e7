/* Texts: versions, sizes and times, names that are mistyped, and UTF-8. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strlist.h"

/* The bytes of a file, for its parser. Messages call it by `name`, which may be NULL where the
 * function says so. */
struct file_bytes {
	const void *data;
	size_t size;
	const char *name;
};

/* Dotted versions and ranges of them. */

/* version_cmp: <0, 0, >0 by numeric components ("12.8" < "12.10"); a missing one is zero. What
 * follows the digits and single dots is ignored ("2.6.0a0+git1" == "2.6.0", "13.0-rc1" == "13");
 * text without a number in front is version zero. */
int version_cmp(const char *a, const char *b);
/* version_in: whether `v` (its numeric part, as above) satisfies every clause of `range`, which has
 * commas between clauses and spaces anywhere around them:
 *   >=V <=V >V <V ==V !=V   by version_cmp
 *   ==V.* !=V.*             the leading components are (not) those of V
 *   ~=V                     >=V, and all components of V but the last are equal: "~=3.1"
 *                           allows 3.9, but not 4.0
 * V must be version_valid. An empty range allows all. ERR_CONFIG for a malformed range or a `v`
 * that does not begin with a number. */
int version_in(const char *v, const char *range, bool *ret, struct err *e) MUST_CHECK;
/* version_order: version_cmp for qsort and strings. */
int version_order(const void *a, const void *b);
/* version_valid: one or more numeric components with dots. */
bool version_valid(const char *v);

/* text_pin: returns the name of "NAME==VERSION", or all of a text without "==". *ret_version: the
 * version, NULL without one. */
const char *text_pin(const char *text, struct arena *a, const char **ret_version);

/* Sizes and times as people and tables write them. */

/* size_parse: "20G" in bytes: a decimal number, or one with K, M, G or T (powers of 1024) behind
 * it, of at most INT64_MAX bytes. ERR_CONFIG names the text. */
int size_parse(const char *text, uint64_t *ret, struct err *e) MUST_CHECK;
/* size_bytes: like size_parse, for a text that was checked before; 0 if it is not a size. */
uint64_t size_bytes(const char *text);
/* size_time: "40 s", "3 min", "1 h 12 min". */
void size_time(char *to, size_t size, double seconds);
/* size_utc: "2026-01-31T12:00:00Z" of seconds since the epoch; "" beyond all calendars. */
char *size_utc(int64_t seconds, struct arena *a) __attribute__((returns_nonnull));

/* plural: what ends the name of so many things: "" of one, else "s". */
const char *plural(uint64_t n) __attribute__((const));

/* The nearest known name to a mistyped one. */

/* suggest_nearest: the first candidate with the smallest edit distance (a transposition counts
 * one, other case nothing); NULL when that is above 2 + length/4 or all of the name. Names above
 * 128 bytes are never near. */
const char *suggest_nearest(const char *name, const char *const *candidates, size_t count);
/* suggest_version: the candidate (they ascend) that a version is meant to be: "2.11" the newest
 * 2.11.x, "3.13.1" 3.13, "128" 12.8, "latest" the newest; else the nearest, of several the last.
 * NULL as well for one that all begin with. */
const char *suggest_version(const char *version, const char *const *candidates, size_t count);
/* suggest_hint: sets the hint "did you mean 'NEAR'? REST", or only the rest if `near` is NULL.
 * Returns -1. suggest_known: uses "known: A B" as the rest. */
int suggest_hint(struct err *e, const char *near, const char *rest);
int suggest_known(struct err *e, const char *near, const struct strlist *known);

/* UTF-8, for names and texts that come from outside: a build's log, a server's answer, names in an
 * archive. */

bool utf8_valid(const char *s);
/* utf8_printable: a copy with '?' for control characters, for what changes the direction or the
 * order of what is read, and for bytes that are not UTF-8. */
char *utf8_printable(const char *s, struct arena *a) __attribute__((returns_nonnull));
/* utf8_escape: appends JSON, whose strings get "\uXXXX" for what utf8_printable replaces. */
void utf8_escape(struct buf *out, const char *json);
/* utf8_show: appends a text for a terminal. New lines and tabs stay; what utf8_printable replaces
 * is written as "\x1b" or "\u{202e}". With `colours`, the sequences of term_style stay as well. */
void utf8_show(struct buf *out, const char *s, size_t len, bool colours);
