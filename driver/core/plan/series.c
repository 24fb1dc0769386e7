#include "core/plan/series.h"

#include "base/sys/fs.h"

#define MAX_SERIES (1U << 20)

/* The name on one line of a series, NULL on one without. */
static int series_line(const char *series, unsigned line_no, const char *line, struct arena *a, const char **ret,
		       struct err *e)
{
	struct strlist words = {0};
	*ret = NULL;
	strlist_split(&words, a, line, " \t\r");
	for (size_t i = 0; i < words.count && words.items[i][0] != '#'; i++) {
		if (i == 0) {
			*ret = words.items[0];
		} else if (strcmp(words.items[i], "-p1") != 0) {
			err_set(e, ERR_CONFIG, "%s:%u: option '%s' of patch '%s' is not supported", series, line_no,
				words.items[i], *ret);
			return err_hint(e, "write the patch for -p1, in its forward direction");
		}
	}
	if (*ret && !path_is_safe_relative(*ret))
		return err_set(e, ERR_CONFIG, "%s:%u: unsafe patch name '%s'", series, line_no, *ret);
	return 0;
}

int series_read(const char *series, const struct strlist *skip, struct arena *a, struct strlist *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct strlist all = {0}, out = {0};
	if (fs_read(TRUSTED, series, MAX_SERIES, &text, e) < 0)
		return -1;
	const char *p = buf_cstr(&text), *end = p + text.len;
	if (memchr(p, '\0', text.len))
		return err_set(e, ERR_CONFIG, "'%s' is not a text file", series);
	for (unsigned line_no = 1; p < end; line_no++) {
		size_t n = strcspn(p, "\n");
		const char *name;
		if (series_line(series, line_no, arena_strndup(a, p, n), a, &name, e) < 0)
			return -1;
		p += n + (p[n] == '\n');
		if (!name)
			continue;
		if (strlist_contains(&all, name))
			return err_set(e, ERR_CONFIG, "%s:%u: patch '%s' is listed twice", series, line_no, name);
		strlist_add(&all, a, name);
		if (!skip || !strlist_contains(skip, name))
			strlist_add(&out, a, name);
	}
	for (size_t i = 0; skip && i < skip->count; i++) {
		if (!strlist_contains(&all, skip->items[i])) {
			err_set(e, ERR_CONFIG, "'%s' has no patch '%s' to skip", series, skip->items[i]);
			return err_hint(e, "take the name off the list of skipped patches");
		}
	}
	strlist_append(ret, a, &out);
	return 0;
}
