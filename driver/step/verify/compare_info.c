#include "step/verify/compare_info.h"

#include "core/wheel/wheel.h"

static const char *const sides[] = {"first", "second"};

struct found {
	struct strlist *where, *what;
};

static void add(const struct found *ret, struct arena *a, const char *key, const char *text)
{
	strlist_add(ret->where, a, key);
	strlist_add(ret->what, a, text);
}

/* Values that one side alone has; of single values both. */
static void compare_values(const char *key, const struct strlist lists[2], struct arena *a,
			   const struct found *ret)
{
	if (lists[0].count == 1 && lists[1].count == 1) {
		if (strcmp(lists[0].items[0], lists[1].items[0]) != 0)
			add(ret, a, key,
			    arena_printf(a, "is '%s' in the first, '%s' in the second",
					 lists[0].items[0], lists[1].items[0]));
		return;
	}

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < lists[side].count; i++)
			if (!strlist_contains(&lists[!side], lists[side].items[i]))
				add(ret, a, key,
				    arena_printf(a, "'%s' is in the %s only", lists[side].items[i],
						 sides[side]));
}

static bool compare_headers(const struct fs_mapping files[2], const char *name, struct arena *a,
			    const struct found *ret)
{
	struct wheel_headers h[2];
	struct strlist keys = {0};

	for (int side = 0; side < 2; side++) {
		const char *text =
			arena_strndup(a, (const char *)files[side].data, files[side].size);
		if (wheel_headers_parse(&(struct file_bytes){text, files[side].size, name}, a,
					&h[side], ERR_IGNORED) < 0)
			return false;
		for (size_t i = 0; i < h[side].count; i++)
			strlist_once(&keys, a, h[side].items[i].key);
	}

	for (size_t i = 0; i < keys.count; i++) {
		struct strlist values[2] = {{0}, {0}};
		for (int side = 0; side < 2; side++)
			wheel_headers_all(&h[side], keys.items[i], a, &values[side]);
		compare_values(keys.items[i], values, a, ret);
	}

	if (strcmp(h[0].body, h[1].body) != 0)
		add(ret, a, "description", "differs");
	return true;
}

/* "[section] key = value" of each entry. */
static void read_entries(const struct fs_mapping *file, struct arena *a, struct strlist *ret)
{
	struct strlist lines = {0};
	const char *section = "";

	strlist_split(&lines, a, arena_strndup(a, (const char *)file->data, file->size), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i] + strspn(lines.items[i], " \t\r");
		size_t n = strlen(line);
		while (n && strchr(" \t\r", line[n - 1]))
			n--;
		if (!n || *line == '#' || *line == ';')
			continue;
		if (*line == '[')
			section = arena_strndup(a, line, n);
		else
			strlist_addf(ret, a, "%s %.*s", section, (int)n, line);
	}
}

static bool compare_entries(const struct fs_mapping files[2], struct arena *a,
			    const struct found *ret)
{
	struct strlist entries[2] = {{0}, {0}};

	for (int side = 0; side < 2; side++)
		read_entries(&files[side], a, &entries[side]);
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < entries[side].count; i++)
			if (!strlist_contains(&entries[!side], entries[side].items[i]))
				add(ret, a, "entry",
				    arena_printf(a, "'%s' is in the %s only",
						 entries[side].items[i], sides[side]));
	return true;
}

/* Its rows repeat what the members themselves say. */
static bool compare_record(const struct fs_mapping files[2], struct arena *a,
			   const struct found *ret)
{
	struct wheel_record_row *rows[2];
	size_t count[2], differ = 0;

	for (int side = 0; side < 2; side++) {
		const char *text =
			arena_strndup(a, (const char *)files[side].data, files[side].size);
		if (wheel_record_parse(text, files[side].size, "RECORD", a, &rows[side],
				       &count[side], ERR_IGNORED) < 0)
			return false;
		array_sort(rows[side], count[side], sizeof(**rows), text_cmp);
	}

	for (size_t i = 0; i < count[1]; i++) {
		const struct wheel_record_row *row =
			text_find(rows[1][i].path, rows[0], count[0], sizeof(**rows));
		differ += !row || strcmp(row->digest, rows[1][i].digest) != 0 ||
			  row->size != rows[1][i].size;
	}

	for (size_t i = 0; i < count[0]; i++)
		differ += !text_find(rows[0][i].path, rows[1], count[1], sizeof(**rows));
	if (differ)
		add(ret, a, "rows",
		    arena_printf(a, "%zu %s", differ, differ == 1 ? "row differs" : "rows differ"));
	return true;
}

bool compare_info(const char *name, const struct fs_mapping files[2], struct arena *a,
		  struct strlist *where, struct strlist *what)
{
	const char *base = path_base(name);
	const struct found found = {where, what};

	if (!strstr(name, ".dist-info/") || !files[0].size || !files[1].size)
		return false;
	if (strcmp(base, "METADATA") == 0 || strcmp(base, "WHEEL") == 0)
		return compare_headers(files, name, a, &found);
	if (strcmp(base, "entry_points.txt") == 0)
		return compare_entries(files, a, &found);
	return strcmp(base, "RECORD") == 0 && compare_record(files, a, &found);
}
