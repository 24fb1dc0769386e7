#include "base/text.h"

#define MAX_NAME 128 /* longer names are not typed by hand */

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;
	return m < c ? m : c;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edit distance with adjacent transpositions, by three rolling rows. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t rows[3][MAX_NAME + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t cost = !same(a[i - 1], b[j - 1]);
			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + cost);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]) &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		size_t *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[m];
}

const char *suggest_nearest(const char *name, const char *const *candidates, size_t count)
{
	size_t n = strlen(name);
	if (n > MAX_NAME)
		return NULL;
	size_t best = 1 + n / 4 + 1;
	const char *found = NULL;
	for (size_t i = 0; i < count; i++) {
		size_t m = candidates[i] ? strlen(candidates[i]) : MAX_NAME + 1;
		if (m > MAX_NAME)
			continue;
		size_t d = distance(name, n, candidates[i], m);
		if (d == 0)
			return candidates[i];
		/* A distance of the whole length means not one letter in common. */
		if (d < best && d < (n > m ? n : m)) {
			best = d;
			found = candidates[i];
		}
	}
	return found;
}

/* The last one that begins with the version and goes on behind a dot ("": any), and is plain ("2.6.0", not
 * "2.6.0-debian"). */
static const char *last_of(const char *version, const char *const *candidates, size_t count)
{
	size_t len = strlen(version);
	for (size_t i = count; i-- > 0;)
		if (strncmp(candidates[i], version, len) == 0 && (!len || candidates[i][len] == '.') &&
		    !strchr(candidates[i], '-'))
			return candidates[i];
	return NULL;
}

/* "12.8", "128" and "cuda12_8" have the same digits. */
static bool same_digits(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strcspn(a, "0123456789");
		b += strcspn(b, "0123456789");
		if (*a != *b || !*a)
			return *a == *b;
	}
}

const char *suggest_version(const char *version, const char *const *candidates, size_t count)
{
	const char *found = NULL;
	if (!strpbrk(version, "0123456789")) {
		if (strcmp(version, "latest") == 0 || strcmp(version, "newest") == 0 || strcmp(version, "stable") == 0)
			found = last_of("", candidates, count);
		return found ? found : suggest_nearest(version, candidates, count);
	}
	found = last_of(version, candidates, count);
	for (size_t i = 0; i < count && !found && !strchr(version, '-'); i++)
		if (same_digits(version, candidates[i]))
			found = candidates[i];
	return found ? found : suggest_nearest(version, candidates, count);
}

int suggest_hint(struct err *e, const char *near, const char *rest)
{
	const char *gap = *rest ? " " : "";
	return near ? err_hint(e, "did you mean '%s'?%s%s", near, gap, rest) : err_hint(e, "%s", rest);
}
