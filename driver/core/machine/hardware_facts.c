#include "core/machine/hardware.h"

#include "base/yaml/yaml.h"

PLAIN(feature, struct feature_row, NEED(struct feature_row, name), MAY(struct feature_row, cpuid),
      MAY(struct feature_row, state), MAY(struct feature_row, hwcap), MAY(struct feature_row, hwcap2),
      LIST(struct feature_row, implies), LIST(struct feature_row, macros));

PLAIN(processor, struct processor_row, NEED(struct processor_row, name), MAY(struct processor_row, vendor),
      MAY(struct processor_row, family), LIST(struct processor_row, models), MAY(struct processor_row, steppings),
      MAY(struct processor_row, implementer), MAY(struct processor_row, part), LIST(struct processor_row, distrust),
      MAY(struct processor_row, note));

PLAIN(file, struct hardware_facts, NEED_ROWS(struct hardware_facts, features, feature),
      NEED_ROWS(struct hardware_facts, processors, processor), LIST(struct hardware_facts, driver_places));

/* "7" or "16-31". */
static bool parse_range(const char *text, unsigned *from, unsigned *to)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	*from = *to = (unsigned)strtoul(text, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*to = (unsigned)strtoul(end + 1, &end, 10);
	return !*end && *from <= *to;
}

static bool is_number(const char *text, int base, unsigned long max)
{
	char *end;
	if (!*text)
		return true;
	unsigned long n = strtoul(text, &end, base);
	return !*end && n <= max && *text != '-' && *text != '+' && *text != ' ';
}

uint64_t feature_state(const struct feature_row *row)
{
	return strtoull(row->state, NULL, 16);
}

bool feature_cpuid(const struct feature_row *row, struct feature_place *ret)
{
	static const char *const registers[] = {"eax", "ebx", "ecx", "edx"};
	struct feature_place p = {0};
	char name[4], end;
	if (sscanf(row->cpuid, "%x.%u.%3[a-z].%u%c", &p.leaf, &p.subleaf, name, &p.bit, &end) != 4 || p.bit > 31)
		return false;
	for (; p.reg < ARRAY_LEN(registers); p.reg++)
		if (strcmp(name, registers[p.reg]) == 0) {
			*ret = p;
			return true;
		}
	return false;
}

static const char *feature_fault(const struct hardware_facts *f, unsigned at)
{
	const struct feature_row *r = &f->features[at];
	struct feature_place place;
	if (hardware_feature(f, r->name) != r)
		return "is there twice";
	if (*r->cpuid && !feature_cpuid(r, &place))
		return "has a 'cpuid' that is not leaf.subleaf.register.bit, like 7.0.ebx.16";
	if (!is_number(r->state, 16, ~0ul) || strncmp(*r->state ? r->state : "0x", "0x", 2) != 0)
		return "has a 'state' that is not a number like \"0xe6\"";
	if (!is_number(r->hwcap, 10, 63) || !is_number(r->hwcap2, 10, 63))
		return "has a bit of the auxiliary vector that is not 0 to 63";
	for (unsigned i = 0; i < r->implies_count; i++)
		if (!hardware_feature(f, r->implies[i]))
			return "implies a feature that no row has";
	return NULL;
}

static const char *processor_fault(const struct hardware_facts *f, const struct processor_row *r)
{
	unsigned from, to;
	bool x86 = *r->vendor && *r->family && r->models_count && !*r->implementer && !*r->part;
	bool arm = !*r->vendor && !*r->family && !r->models_count && *r->implementer && *r->part;
	if (!x86 && !arm)
		return "needs vendor, family and models, or implementer and part";
	if (!is_number(r->family, 10, 255) || !is_number(r->implementer, 16, 0xff) || !is_number(r->part, 16, 0xfff))
		return "has a family, implementer or part that is not a number in its range";
	for (unsigned i = 0; i < r->models_count; i++)
		if (!parse_range(r->models[i], &from, &to))
			return "has a model that is neither a number nor a range like \"16-31\"";
	if (*r->steppings && !parse_range(r->steppings, &from, &to))
		return "has steppings that are neither a number nor a range like \"5-7\"";
	for (unsigned i = 0; i < r->distrust_count; i++)
		if (!hardware_feature(f, r->distrust[i]))
			return "distrusts a feature that no row has";
	return NULL;
}

static int check(const struct hardware_facts *f, const char *path, const struct yaml_tree *lines, struct err *e)
{
	for (unsigned i = 0; i < f->features_count; i++) {
		const char *fault = feature_fault(f, i);
		if (fault)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' %s", path, yaml_line(lines, "features/%u", i),
				       f->features[i].name, fault);
	}
	for (unsigned i = 0; i < f->processors_count; i++) {
		const char *fault = processor_fault(f, &f->processors[i]);
		if (fault)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' %s", path, yaml_line(lines, "processors/%u", i),
				       f->processors[i].name, fault);
	}
	return 0;
}

int hardware_facts_load(const char *profiles_dir, struct arena *a, const struct hardware_facts **ret, struct err *e)
{
	const char *path = path_join(a, profiles_dir, "cpu.yaml");
	const struct yaml_tree *lines;
	struct hardware_facts *facts = arena_alloc(a, sizeof(*facts));
	if (yaml_load(path, &file_schema, a, facts, &lines, e) < 0 || check(facts, path, lines, e) < 0)
		return -1;
	*ret = facts;
	return 0;
}

const struct feature_row *hardware_feature(const struct hardware_facts *f, const char *name)
{
	return text_search(name, f->features, f->features_count, sizeof(*f->features));
}

void hardware_closure(const struct hardware_facts *f, const char *const *names, unsigned count, struct arena *a,
		      struct strlist *ret)
{
	for (unsigned i = 0; i < count; i++) {
		const struct feature_row *row = hardware_feature(f, names[i]);
		if (strlist_contains(ret, names[i]))
			continue;
		strlist_add(ret, a, names[i]);
		if (row)
			hardware_closure(f, row->implies, row->implies_count, a, ret);
	}
}

static bool in_range(const char *range, unsigned n)
{
	unsigned from, to;
	return parse_range(range, &from, &to) && from <= n && n <= to;
}

static bool fits_x86(const struct processor_row *r, const struct hardware_cpu *cpu)
{
	if (!*r->vendor || strcmp(r->vendor, cpu->vendor) != 0 || strtoul(r->family, NULL, 10) != cpu->family)
		return false;
	if (*r->steppings && !in_range(r->steppings, cpu->stepping))
		return false;
	for (unsigned i = 0; i < r->models_count; i++)
		if (in_range(r->models[i], cpu->model))
			return true;
	return false;
}

static bool fits_arm(const struct processor_row *r, const char *core)
{
	char *end;
	unsigned long implementer = strtoul(core, &end, 16);
	return *r->implementer && *end == ':' && strtoul(r->implementer, NULL, 16) == implementer &&
	       strtoul(r->part, NULL, 16) == strtoul(end + 1, NULL, 16);
}

size_t hardware_processors(const struct hardware_facts *f, const struct hardware_cpu *cpu, struct arena *a,
			   const struct processor_row *const **ret)
{
	size_t count = 0, kinds = cpu->cores.count ? cpu->cores.count : 1;
	const struct processor_row **rows = arena_array(a, kinds, sizeof(const struct processor_row *));
	for (size_t k = 0; k < kinds; k++)
		for (unsigned i = 0; i < f->processors_count; i++) {
			const struct processor_row *r = &f->processors[i];
			if (!(cpu->cores.count ? fits_arm(r, cpu->cores.items[k]) : fits_x86(r, cpu)))
				continue;
			rows[count++] = r;
			break;
		}
	*ret = rows;
	return count;
}
