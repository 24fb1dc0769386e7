/* The texts of Linux' /proc, taken apart without Linux. */
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "core/machine/hardware_parts.h"

/* The value of a line "key<blanks>: value", NULL if the line has another key. */
static char *value_of(char *line, const char *key)
{
	size_t n = strlen(key);
	if (strncmp(line, key, n) != 0)
		return NULL;
	char *rest = line + n + strspn(line + n, " \t");
	if (*rest != ':')
		return NULL;
	rest++;
	return rest + strspn(rest, " \t");
}

static void take_number(char *line, const char *key, unsigned *ret)
{
	const char *value = value_of(line, key);
	if (value)
		*ret = (unsigned)strtoul(value, NULL, 0);
}

static void take_text(char *line, const char *key, struct arena *a, const char **ret)
{
	const char *value = value_of(line, key);
	if (value && !**ret)
		*ret = arena_strdup(a, value);
}

static void take_flags(char *line, const char *key, struct arena *a, struct hardware_cpu *cpu)
{
	const char *value = value_of(line, key);
	if (value && !cpu->flags.count)
		strlist_split(&cpu->flags, a, value, " \t");
}

struct core {
	unsigned implementer, part;
	bool has_implementer;
};

/* Arm lists implementer and part for every processor. */
static void take_core(char *line, struct core *core, struct arena *a, struct hardware_cpu *cpu)
{
	const char *value = value_of(line, "CPU implementer");
	if (value) {
		core->implementer = (unsigned)strtoul(value, NULL, 0);
		core->has_implementer = true;
	}
	value = value_of(line, "CPU part");
	if (!value || !core->has_implementer)
		return;
	core->part = (unsigned)strtoul(value, NULL, 0);
	const char *id = arena_printf(a, "0x%02x:0x%03x", core->implementer & 0xff, core->part & 0xfff);
	if (!strlist_contains(&cpu->cores, id) && cpu->cores.count < 16)
		strlist_ref(&cpu->cores, a, id);
}

void hardware_parse_cpuinfo(const char *text, struct arena *a, struct hardware_cpu *cpu)
{
	struct strlist lines = {0};
	struct core core = {0};
	bool first = true;
	strlist_split(&lines, a, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		char *line = arena_strdup(a, lines.items[i]);
		take_core(line, &core, a, cpu);
		take_flags(line, "flags", a, cpu);
		take_flags(line, "Features", a, cpu);
		take_text(line, "vendor_id", a, &cpu->vendor);
		take_text(line, "model name", a, &cpu->name);
		if (first) {
			take_number(line, "cpu family", &cpu->family);
			take_number(line, "model", &cpu->model);
			take_number(line, "stepping", &cpu->stepping);
		}
		if (value_of(line, "flags"))
			first = false;
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
