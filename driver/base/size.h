/* Sizes and times as people and tables write them. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* size_parse: "20G" in bytes: a decimal number, or one with K, M, G or T (powers of 1024) behind
 * it, of at most INT64_MAX bytes. ERR_CONFIG names the text. */
int size_parse(const char *text, uint64_t *ret, struct err *e) MUST_CHECK;
/* size_bytes: the same of a text that was checked before; 0 if it is not a size. */
uint64_t size_bytes(const char *text);
/* size_time: "40 s", "3 min", "1 h 12 min". */
void size_time(char *to, size_t size, double seconds);
/* size_utc: "2026-01-31T12:00:00Z" of seconds since the epoch; "" beyond all calendars. */
char *size_utc(int64_t seconds, struct arena *a) __attribute__((returns_nonnull));
