#include "base/text.h"

#include <time.h>

int size_parse(const char *text, uint64_t *ret, struct err *e)
{
	static const char units[] = "KMGT";
	char *end;
	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	/* strtoull would take a sign and blanks before the number. */
	if (*text < '0' || *text > '9' || errno || (*end && (!unit || end[1])) || n > (uint64_t)INT64_MAX >> shift) {
		err_set(e, ERR_CONFIG, "not a size: '%s'", text);
		return err_hint(e, "give a number of bytes, or one with K, M, G or T, such as 20G");
	}
	*ret = n << shift;
	return 0;
}

uint64_t size_bytes(const char *text)
{
	uint64_t n = 0;
	return size_parse(text, &n, ERR_IGNORED) < 0 ? 0 : n;
}

void size_time(char *to, size_t size, double seconds)
{
	const long minutes = (long)(seconds / 60);
	if (seconds < 90)
		snprintf(to, size, "%.0f s", seconds < 1 ? 1 : seconds);
	else if (seconds < 90.0 * 60)
		snprintf(to, size, "%.0f min", seconds / 60);
	else
		snprintf(to, size, "%ld h %ld min", minutes / 60, minutes % 60);
}

char *size_utc(int64_t seconds, struct arena *a)
{
	char text[32] = "";
	const time_t at = (time_t)seconds;
	struct tm tm;
	if (gmtime_r(&at, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return arena_strdup(a, text);
}
