/* Parsers of the texts in /proc; on any system, so that tests can run them. */
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "core/machine/hardware_parts.h"

/* Cuts "key<blanks>: value" behind its key; the value, NULL without a colon. */
static const char *cut_line(char *line)
{
	char *colon = strchr(line, ':');
	if (!colon)
		return NULL;
	while (colon > line && (colon[-1] == ' ' || colon[-1] == '\t'))
		colon--;
	const char *value = colon + strspn(colon, " \t") + 1;
	*colon = '\0';
	return value + strspn(value, " \t");
}

/* Arm lists implementer and part for every processor. */
static void add_core(struct hardware_cpu *cpu, struct arena *a, const char *implementer, const char *part)
{
	const char *id = arena_printf(a, "0x%02lx:0x%03lx", strtoul(implementer, NULL, 0) & 0xff,
				      strtoul(part, NULL, 0) & 0xfff);
	if (!strlist_contains(&cpu->cores, id) && cpu->cores.count < 16)
		strlist_ref(&cpu->cores, a, id);
}

void hardware_parse_cpuinfo(const char *text, struct arena *a, struct hardware_cpu *cpu)
{
	const struct {
		const char *key;
		unsigned *to;
	} numbers[] = {{"cpu family", &cpu->family}, {"model", &cpu->model}, {"stepping", &cpu->stepping}};
	struct strlist lines = {0};
	const char *implementer = NULL;
	bool first = true;
	strlist_split(&lines, a, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		char *key = arena_strdup(a, lines.items[i]);
		const char *value = cut_line(key);
		if (!value)
			continue;
		for (size_t k = 0; first && k < ARRAY_LEN(numbers); k++)
			if (strcmp(key, numbers[k].key) == 0)
				*numbers[k].to = (unsigned)strtoul(value, NULL, 0);
		if ((strcmp(key, "flags") == 0 || strcmp(key, "Features") == 0) && !cpu->flags.count)
			strlist_split(&cpu->flags, a, value, " \t");
		else if (strcmp(key, "vendor_id") == 0 && !*cpu->vendor)
			cpu->vendor = value;
		else if (strcmp(key, "model name") == 0 && !*cpu->name)
			cpu->name = value;
		else if (strcmp(key, "CPU implementer") == 0)
			implementer = value;
		else if (strcmp(key, "CPU part") == 0 && implementer)
			add_core(cpu, a, implementer, value);
		first = first && strcmp(key, "flags") != 0;
	}
}

const char *hardware_parse_driver(const char *text, struct arena *a)
{
	struct strlist words = {0};
	strlist_split(&words, a, text, " \t\n");
	for (size_t i = 0; i < words.count; i++)
		if (strchr(words.items[i], '.') && version_valid(words.items[i]))
			return words.items[i];
	return "";
}

bool hardware_is_capability(const char *text)
{
	size_t major = strspn(text, "0123456789");
	return major && text[major] == '.' && strspn(text + major + 1, "0123456789") == 1 && !text[major + 2];
}
