#include "core/machine/hardware.h"

#include <inttypes.h>

#include "base/sys/fs.h"
#include "base/sys/json.h"

/* Whether CPUID or the auxiliary vector can show the feature. */
static bool has_place(const struct feature_row *row, const struct hardware *h)
{
	if (strncmp(h->platform, "x86_64", 6) == 0)
		return *row->cpuid != '\0';
	return *row->hwcap || *row->hwcap2;
}

const char *hardware_missing(const struct hardware_facts *f, const struct hardware *h,
			     const char *feature, struct arena *a)
{
	const struct hardware_cpu *cpu = &h->cpu;
	const struct feature_row *row = hardware_feature(f, feature);
	bool askable = row && cpu->probed_known && has_place(row, h);
	bool shown = askable && strlist_contains(&cpu->probed, feature);
	uint64_t state = row ? feature_state(row) : 0;
	bool saved = !cpu->xcr0_known || (cpu->xcr0 & state) == state;
	bool listed = cpu->flags.count ? strlist_contains(&cpu->flags, feature) : shown;

	if (!saved && (listed || shown))
		return arena_printf(
			a, "the operating system does not save its registers: XCR0 is 0x%" PRIx64,
			cpu->xcr0);
	if (!listed)
		return shown ? "the processor has it, but the operating system does not list it"
			     : "the processor does not list it";
	return askable && !shown
		       ? "the operating system lists it, but the processor does not show it"
		       : NULL;
}

const char *hardware_lacks(const struct hardware_facts *f, const struct hardware *h,
			   const struct strlist *features, struct arena *a)
{
	struct strlist missing = {0};
	const char *first = NULL;

	for (size_t i = 0; i < features->count; i++) {
		const char *why = hardware_missing(f, h, features->items[i], a);
		if (why)
			strlist_ref(&missing, a, features->items[i]);
		first = first ? first : why;
	}

	return missing.count ? arena_printf(a, "%s (%s)", strlist_join(&missing, a, " "), first)
			     : NULL;
}

static void put_text(json_t *o, const char *key, const char *text)
{
	if (*text)
		json_object_set_new(o, key, json_or_null(text));
}

static json_t *words(const struct strlist *l)
{
	AUTO_ARENA struct arena a = {0};
	return json_or_null(strlist_join(l, &a, " "));
}

static json_t *cpu_json(const struct hardware_cpu *cpu)
{
	AUTO_ARENA struct arena a = {0};
	json_t *o = json_object();

	put_text(o, "name", cpu->name);
	put_text(o, "vendor", cpu->vendor);
	if (*cpu->vendor)
		json_object_update_new(o,
				       json_pack("{s:i, s:i, s:i}", "family", cpu->family, "model",
						 cpu->model, "stepping", cpu->stepping));
	if (cpu->cores.count)
		json_object_set_new(o, "cores", json_from_strlist(&cpu->cores));
	json_object_set_new(o, "flags", words(&cpu->flags));
	if (cpu->probed_known)
		json_object_set_new(o, "probed", words(&cpu->probed));
	if (cpu->xcr0_known)
		put_text(o, "xcr0", arena_printf(&a, "0x%" PRIx64, cpu->xcr0));
	return o;
}

json_t *hardware_json(const struct hardware *h)
{
	JSON_FIELDS(fields, JSON_FIELD(struct hardware_gpu, name),
		    JSON_FIELD(struct hardware_gpu, capability),
		    JSON_FIELD(struct hardware_gpu, memory));
	json_t *gpus = json_rows(h->gpus, h->gpu_count, sizeof(*h->gpus), fields);
	json_t *o = json_pack("{s:s, s:o, s:i, s:I, s:o}", "platform", h->platform, "cpu",
			      cpu_json(&h->cpu), "processors", h->processors, "memory",
			      (json_int_t)(h->memory > INT64_MAX ? 0 : h->memory), "gpus", gpus);
	put_text(o, "driver", h->driver);
	put_text(o, "driver_cuda", h->driver_cuda);
	put_text(o, "gpu_source", h->gpu_source);
	put_text(o, "gpu_trouble", h->gpu_trouble);
	put_text(o, "glibc", h->glibc);
	if (h->pythons.count)
		json_object_set_new(o, "pythons", words(&h->pythons));
	return o;
}

/* Parsers of the texts in /proc; on any system, so that tests can run them. */
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
static void add_core(struct hardware_cpu *cpu, struct arena *a, const char *implementer,
		     const char *part)
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
	} numbers[] = {
		{"cpu family", &cpu->family}, {"model", &cpu->model}, {"stepping", &cpu->stepping}};
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
		if ((strcmp(key, "flags") == 0 || strcmp(key, "Features") == 0) &&
		    !cpu->flags.count)
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
	return major && text[major] == '.' && strspn(text + major + 1, "0123456789") == 1 &&
	       !text[major + 2];
}

const char *hardware_python_of(const char *name)
{
	static const char stem[] = "python";
	const char *version = name + strlen(stem);

	if (strncmp(name, stem, strlen(stem)) != 0 || strncmp(version, "3.", 2) != 0)
		return NULL;
	size_t digits = strspn(version + 2, "0123456789");
	const char *end = version + 2 + digits;
	return digits && (!*end || strcmp(end, "t") == 0) ? version : NULL;
}

/* Version managers put scripts of every version they
 * know of into PATH, which then say "not found". */
static bool is_interpreter(const char *path)
{
	char magic[4] = {0};
	AUTO_FD int fd =
		access(path, X_OK) == 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	ssize_t n = fd < 0 ? -1 : read(fd, magic, sizeof(magic));

	return n == (ssize_t)sizeof(magic) && memcmp(magic, "#!", 2) != 0;
}

static void add(const char *path, struct arena *a, struct strlist *ret)
{
	const char *version = hardware_python_of(path_base(path));

	if (!version || strlist_contains(ret, version) || !is_interpreter(path))
		return;
	strlist_add(ret, a, version);
	for (size_t i = ret->count - 1; i > 0 && version_cmp(ret->items[i - 1], ret->items[i]) > 0;
	     i--) {
		const char *other = ret->items[i];
		ret->items[i] = ret->items[i - 1];
		ret->items[i - 1] = other;
	}
}

void hardware_find_pythons(struct arena *a, struct strlist *ret)
{
	static const char *const links[] = {"python3", "python"};
	const char *path = getenv("PATH");
	struct strlist dirs = {0};

	strlist_split(&dirs, a, path ? path : "/usr/local/bin:/usr/bin:/bin", ":");
	for (size_t i = 0; i < dirs.count; i++) {
		struct strlist names = {0};
		if (dirs.items[i][0] != '/' ||
		    fs_list(TRUSTED, dirs.items[i], a, &names, ERR_IGNORED) < 0)
			continue;
		for (size_t k = 0; k < names.count; k++)
			add(path_join(a, dirs.items[i], names.items[k]), a, ret);
		/* In an environment of its own, or where Pythons lie elsewhere. */
		for (size_t k = 0; k < ARRAY_LEN(links); k++) {
			AUTO_FREE char *real =
				realpath(path_join(a, dirs.items[i], links[k]), NULL);
			if (real)
				add(real, a, ret);
		}
	}
}
