#include "core/tables/tables_parts.h"

int row_bad(const struct row_place *at, struct err *e, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_CONFIG, "%s:%u: %s", at->file, at->line, text);
}

int row_version(const struct row_place *at, const char *key, const char *value, bool optional, struct err *e)
{
	if ((optional && !*value) || version_valid(value))
		return 0;
	row_bad(at, e, "'%s': not a version: '%s'", key, value);
	return err_hint(e, "a version is numbers with dots between, in quotes: \"12.8\"");
}

int row_range(const struct row_place *at, const char *key, const char *value, struct err *e)
{
	bool in;
	if (version_in("1", value, &in, e) < 0)
		return err_wrap(e, "%s:%u: '%s'", at->file, at->line, key);
	return 0;
}

int row_one_of(const struct row_place *at, const char *key, const char *value, const char *const *words, size_t count,
	       struct err *e)
{
	char known[256] = "";
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(value, words[i]) == 0)
			return 0;
		if (n < sizeof(known))
			n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", words[i]);
	}
	row_bad(at, e, "'%s' cannot be '%s'", key, value);
	return err_hint(e, "it is one of: %s", known);
}

int row_all_of(const struct row_place *at, const char *key, const char *const *list, unsigned list_count,
	       const char *const *words, size_t count, struct err *e)
{
	for (unsigned i = 0; i < list_count; i++)
		if (row_one_of(at, key, list[i], words, count, e) < 0)
			return -1;
	return 0;
}

int row_flags(const struct row_place *at, const char *key, const char *const *flags, unsigned count, struct err *e)
{
	for (unsigned i = 0; i < count; i++)
		if (flags[i][0] != '-' || strpbrk(flags[i], " \t\n'\"\\$`;"))
			return row_bad(at, e, "'%s': not a compiler flag: '%s' (one word per entry, with '-' in front)",
				       key, flags[i]);
	return 0;
}

bool row_identifier(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

int row_first(const struct row_place *at, const void *rows, size_t size, size_t line, const void *row, struct err *e)
{
	const char *name = *(const char *const *)row;
	for (const char *r = rows; r < (const char *)row; r += size)
		if (strcmp(*(const char *const *)(const void *)r, name) == 0)
			return row_bad(at, e, "'%s' is listed twice, first in line %u", name,
				       *(const unsigned *)(const void *)(r + line));
	return 0;
}

static const char *const gpu_kinds[] = {"cpu", "cuda", "mps"};

int row_settings(const struct tables *t, const char *file, const struct table_setting *s, unsigned count, struct err *e)
{
	for (unsigned i = 0; i < count; i++) {
		const struct row_place at = {file, s[i].line};
		const struct toggle_row *toggle;
		const char *value;
		if (!row_identifier(s[i].name))
			return row_bad(&at, e, "not a name of a setting: '%s'", s[i].name);
		if ((!tables_extension(t, s[i].package, "") &&
		     row_one_of(&at, "package", s[i].package, tables_packages, TABLES_PACKAGES, e) < 0) ||
		    (*s[i].gpu && row_one_of(&at, "gpu", s[i].gpu, gpu_kinds, ARRAY_LEN(gpu_kinds), e) < 0) ||
		    row_version(&at, "since", s[i].since, true, e) < 0 ||
		    row_version(&at, "until", s[i].until, true, e) < 0)
			return -1;
		if (strpbrk(s[i].value, "\n\r"))
			return row_bad(&at, e, "the value of '%s' has more than one line", s[i].name);
		for (unsigned k = 0; k < i; k++)
			if (strcmp(s[k].name, s[i].name) == 0 && strcmp(s[k].package, s[i].package) == 0)
				return row_bad(&at, e, "'%s' is set twice, first in line %u", s[i].name, s[k].line);
		toggle = tables_toggle(t, s[i].package, s[i].name, NULL);
		if (!toggle)
			continue;
		if (tables_toggle_value(toggle, s[i].value, &value, e) < 0)
			return err_wrap(e, "%s:%u", file, s[i].line);
		if (strcmp(value, s[i].value) != 0)
			return row_bad(&at, e, "write '%s' for '%s', not '%s'", value, s[i].name, s[i].value);
	}
	return 0;
}
