/* What files say of machines: cpu.yaml, and the description of one. */
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

/* The description of a machine in a file. */

struct cpu_text {
	const char *name, *vendor, *flags, *xcr0;
	const struct yaml_tree *probed;
	unsigned family, model, stepping;
	const char **cores;
	unsigned cores_count;
};

struct gpu_text {
	const char *name, *capability, *memory;
};

struct machine_text {
	const char *platform, *memory, *driver, *driver_cuda, *gpu_source, *gpu_trouble, *glibc, *pythons, *source;
	unsigned processors;
	struct cpu_text *cpu;
	struct gpu_text *gpus;
	unsigned gpus_count;
};

PLAIN(cpu, struct cpu_text, MAY(struct cpu_text, name), MAY(struct cpu_text, vendor),
      /* a Mac may have none, and a description of it is read again */
      {"flags", YAML_STRING, .offset = offsetof(struct cpu_text, flags), .need = true},
      /* empty (nothing was found) is not the same as absent */
      NODE(struct cpu_text, probed), MAY(struct cpu_text, xcr0), NUMBER(struct cpu_text, family),
      NUMBER(struct cpu_text, model), NUMBER(struct cpu_text, stepping), LIST(struct cpu_text, cores));

PLAIN(gpu, struct gpu_text, NEED(struct gpu_text, name), NEED(struct gpu_text, capability),
      MAY(struct gpu_text, memory));

PLAIN(machine, struct machine_text, NEED(struct machine_text, platform),
      {"cpu", YAML_ROW, .offset = offsetof(struct machine_text, cpu), .need = true, .of = &cpu_schema},
      NUMBER(struct machine_text, processors), MAY(struct machine_text, memory), ROWS(struct machine_text, gpus, gpu),
      MAY(struct machine_text, driver), MAY(struct machine_text, driver_cuda), MAY(struct machine_text, gpu_source),
      MAY(struct machine_text, gpu_trouble), MAY(struct machine_text, glibc), MAY(struct machine_text, pythons),
      MAY(struct machine_text, source));

struct reading {
	const char *path;
	const struct yaml_tree *lines;
	struct arena *arena;
};

static int bad(const struct reading *r, const char *at, const char *what, const char *value, struct err *e)
{
	return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not %s", r->path, yaml_line(r->lines, "%s", at), value, what);
}

/* Absent or empty: 0, not known. */
static int take_size(const struct reading *r, const char *at, const char *text, uint64_t *ret, struct err *e)
{
	*ret = 0;
	return *text && size_parse(text, ret, e) < 0 ? err_wrap(e, "%s:%u", r->path, yaml_line(r->lines, "%s", at)) : 0;
}

static int take_cpu(const struct reading *r, const struct cpu_text *t, struct hardware_cpu *cpu, struct err *e)
{
	char *end;
	cpu->name = t->name;
	cpu->vendor = t->vendor;
	cpu->family = t->family;
	cpu->model = t->model;
	cpu->stepping = t->stepping;
	strlist_split(&cpu->flags, r->arena, t->flags, " \t\n");
	for (unsigned i = 0; i < t->cores_count; i++) {
		unsigned long id = strtoul(t->cores[i], &end, 16);
		if (*end != ':' || id > 0xff || strtoul(end + 1, &end, 16) > 0xfff || *end)
			return bad(r, "cpu/cores", "implementer and part of a core, like 0x41:0xd40", t->cores[i], e);
		strlist_ref(&cpu->cores, r->arena, t->cores[i]);
	}
	cpu->probed_known = t->probed;
	if (t->probed && t->probed->kind != YAML_TEXT)
		return err_set(e, ERR_CONFIG, "%s:%u: 'probed' must be text", r->path, t->probed->line);
	strlist_split(&cpu->probed, r->arena, t->probed ? t->probed->text : "", " \t\n");
	cpu->xcr0_known = *t->xcr0;
	cpu->xcr0 = strtoull(t->xcr0, &end, 16);
	return *end ? bad(r, "cpu/xcr0", "a hexadecimal number", t->xcr0, e) : 0;
}

static int take_gpus(const struct reading *r, const struct machine_text *t, struct hardware *h, struct err *e)
{
	h->gpus = arena_array(r->arena, t->gpus_count, sizeof(*h->gpus));
	h->gpu_count = t->gpus_count;
	for (unsigned i = 0; i < t->gpus_count; i++) {
		const struct gpu_text *g = &t->gpus[i];
		const char *at = arena_printf(r->arena, "gpus/%u", i);
		if (!hardware_is_capability(g->capability))
			return bad(r, at, "a compute capability like 9.0", g->capability, e);
		h->gpus[i] = (struct hardware_gpu){.name = g->name, .capability = g->capability};
		if (take_size(r, at, g->memory, &h->gpus[i].memory, e) < 0)
			return -1;
	}
	return 0;
}

int hardware_load(const char *path, struct arena *a, struct hardware *ret, struct err *e)
{
	static const char known[] = "x86_64-linux aarch64-linux aarch64-darwin x86_64-darwin";
	struct strlist platforms = {0};
	const struct yaml_tree *lines;
	struct machine_text text = {0}, *t = &text;
	if (yaml_load(path, &machine_schema, a, &text, &lines, e) < 0)
		return -1;
	const struct reading r = {path, lines, a};
	struct hardware h = {0};
	strlist_split(&platforms, a, known, " ");
	if (!strlist_contains(&platforms, t->platform)) {
		bad(&r, "platform", "a platform", t->platform, e);
		return err_hint(e, "use one of: %s", known);
	}
	h.platform = t->platform;
	h.processors = t->processors;
	h.driver = t->driver;
	h.driver_cuda = t->driver_cuda;
	h.gpu_source = t->gpu_source;
	h.gpu_trouble = t->gpu_trouble;
	h.glibc = t->glibc;
	strlist_split(&h.pythons, a, t->pythons, " \t\n");
	if (take_size(&r, "memory", t->memory, &h.memory, e) < 0)
		return -1;
	if (*h.driver && !version_valid(h.driver))
		return bad(&r, "driver", "a driver version", h.driver, e);
	if (*h.driver_cuda && !version_valid(h.driver_cuda))
		return bad(&r, "driver_cuda", "a CUDA version", h.driver_cuda, e);
	if (*h.glibc && (!version_valid(h.glibc) || strncmp(h.glibc, "2.", 2) != 0))
		return bad(&r, "glibc", "a version of glibc", h.glibc, e);
	for (size_t i = 0; i < h.pythons.count; i++) {
		const char *python = h.pythons.items[i], *end = python + 2;
		end += strncmp(python, "3.", 2) == 0 ? strspn(end, "0123456789") : 0;
		if (end == python + 2 || strlen(end) > (*end == 't'))
			return bad(&r, "pythons", "a Python like 3.13 or 3.13t", python, e);
	}
	if (take_cpu(&r, t->cpu, &h.cpu, e) < 0 || take_gpus(&r, t, &h, e) < 0)
		return -1;
	*ret = h;
	return 0;
}
