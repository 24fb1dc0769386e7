/* entry_points.txt, as importlib.metadata reads it. */
#include "core/wheel/dist.h"

static char *trim(const char *from, size_t len, struct arena *a)
{
	while (len && strchr(" \t", *from)) {
		from++;
		len--;
	}

	while (len && strchr(" \t", from[len - 1]))
		len--;
	return arena_strndup(a, from, len);
}

static bool is_script_group(const char *line)
{
	return strcmp(line, "[console_scripts]") == 0 || strcmp(line, "[gui_scripts]") == 0;
}

void entry_points_parse(const char *text, struct arena *a, struct entry_point **ret,
			size_t *ret_count)
{
	struct strlist lines = {0};
	struct entry_point *all;
	bool group = false, script = false;
	size_t count = 0;

	strlist_split(&lines, a, text, "\r\n");
	all = arena_array(a, lines.count + 1, sizeof(*all));
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = trim(lines.items[i], strlen(lines.items[i]), a);
		const char *equals = strchr(line, '=');
		if (*line == '[' && path_has_suffix(line, "]")) {
			group = true;
			script = is_script_group(line);
			continue;
		}

		if (!*line || *line == '#' || !group)
			continue;
		all[count++] = (struct entry_point){
			.line = line,
			.name = equals ? trim(line, (size_t)(equals - line), a) : NULL,
			.target = equals ? trim(equals + 1, strlen(equals + 1), a) : NULL,
			.script = script};
	}

	*ret = all;
	*ret_count = count;
}
