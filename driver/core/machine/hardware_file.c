/* What files say of machines: cpu.yaml, and the description of one. */
#include "core/machine/hardware.h"

#include "base/yaml/yaml.h"

PLAIN(feature, struct feature_row, NEED(struct feature_row, name), MAY(struct feature_row, cpuid),
      MAY(struct feature_row, state), MAY(struct feature_row, hwcap),
      MAY(struct feature_row, hwcap2), LIST(struct feature_row, implies),
      LIST(struct feature_row, macros));

PLAIN(processor, struct processor_row, NEED(struct processor_row, name),
      MAY(struct processor_row, vendor), MAY(struct processor_row, family),
      LIST(struct processor_row, models), MAY(struct processor_row, steppings),
      MAY(struct processor_row, implementer), MAY(struct processor_row, part),
      LIST(struct processor_row, distrust), MAY(struct processor_row, note));

PLAIN(file, struct hardware_facts, NEED_ROWS(struct hardware_facts, features, feature),
      NEED_ROWS(struct hardware_facts, processors, processor),
      LIST(struct hardware_facts, driver_places));

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
	bool is_plain = *text != '-' && *text != '+' && *text != ' ';
	return is_plain && !*end && n <= max;
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

	if (sscanf(row->cpuid, "%x.%u.%3[a-z].%u%c", &p.leaf, &p.subleaf, name, &p.bit, &end) !=
		    4 ||
	    p.bit > 31)
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
	bool all_of_x86 = *r->vendor && *r->family && r->models_count;
	bool any_of_x86 = *r->vendor || *r->family || r->models_count;
	bool all_of_arm = *r->implementer && *r->part;
	bool any_of_arm = *r->implementer || *r->part;
	bool x86 = all_of_x86 && !any_of_arm, arm = all_of_arm && !any_of_x86;

	if (!x86 && !arm)
		return "needs vendor, family and models, or implementer and part";
	if (!is_number(r->family, 10, 255) || !is_number(r->implementer, 16, 0xff) ||
	    !is_number(r->part, 16, 0xfff))
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

static int check(const struct hardware_facts *f, const char *path, const struct yaml_tree *lines,
		 struct err *e)
{
	for (unsigned i = 0; i < f->features_count; i++) {
		const char *fault = feature_fault(f, i);
		if (fault)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' %s", path,
				       yaml_line(lines, "features/%u", i), f->features[i].name,
				       fault);
	}

	for (unsigned i = 0; i < f->processors_count; i++) {
		const char *fault = processor_fault(f, &f->processors[i]);
		if (fault)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' %s", path,
				       yaml_line(lines, "processors/%u", i), f->processors[i].name,
				       fault);
	}

	return 0;
}

int hardware_facts_load(const char *profiles_dir, struct arena *a,
			const struct hardware_facts **ret, struct err *e)
{
	const char *path = path_join(a, profiles_dir, "cpu.yaml");
	const struct yaml_tree *lines;
	struct hardware_facts *facts = arena_alloc(a, sizeof(*facts));

	if (yaml_load(path, &file_schema, a, facts, &lines, e) < 0 ||
	    check(facts, path, lines, e) < 0)
		return -1;
	*ret = facts;
	return 0;
}

const struct feature_row *hardware_feature(const struct hardware_facts *f, const char *name)
{
	return text_search(name, f->features, f->features_count, sizeof(*f->features));
}

void hardware_closure(const struct hardware_facts *f, const char *const *names, unsigned count,
		      struct arena *a, struct strlist *ret)
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
	if (!*r->vendor || strcmp(r->vendor, cpu->vendor) != 0 ||
	    strtoul(r->family, NULL, 10) != cpu->family)
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

size_t hardware_processors(const struct hardware_facts *f, const struct hardware_cpu *cpu,
			   struct arena *a, const struct processor_row *const **ret)
{
	size_t count = 0, kinds = cpu->cores.count ? cpu->cores.count : 1;
	const struct processor_row **rows =
		arena_array(a, kinds, sizeof(const struct processor_row *));

	for (size_t k = 0; k < kinds; k++)
		for (unsigned i = 0; i < f->processors_count; i++) {
			const struct processor_row *r = &f->processors[i];
			if (!(cpu->cores.count ? fits_arm(r, cpu->cores.items[k])
					       : fits_x86(r, cpu)))
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
	const char *platform, *memory, *driver, *driver_cuda, *gpu_source, *gpu_trouble, *glibc,
		*pythons, *source;
	unsigned processors;
	struct cpu_text *cpu;
	struct gpu_text *gpus;
	unsigned gpus_count;
};

static bool is_core(const char *s)
{
	char *end;
	return strtoul(s, &end, 16) <= 0xff && *end == ':' && strtoul(end + 1, &end, 16) <= 0xfff &&
	       !*end;
}

static bool is_hexadecimal(const char *s)
{
	char *end;
	(void)strtoull(s, &end, 16);
	return !*end;
}

static bool is_glibc(const char *s)
{
	return version_valid(s) && strncmp(s, "2.", 2) == 0;
}

static bool is_python(const char *s)
{
	const char *end = s + 2 + (strncmp(s, "3.", 2) == 0 ? strspn(s + 2, "0123456789") : 0);
	return end > s + 2 && strlen(end) <= (*end == 't');
}

#define C struct cpu_text
PLAIN(cpu, C, MAY(C, name), MAY(C, vendor),
      /* a Mac may have none, and a description of it is read again */
      KEY(C, flags, YAML_STRING, .need = true),
      /* empty (nothing was found) is not the same as absent */
      NODE(C, probed), MAY(C, xcr0, .good = is_hexadecimal, .is = "a hexadecimal number"),
      NUMBER(C, family), NUMBER(C, model), NUMBER(C, stepping),
      LIST(C, cores, .good = is_core, .is = "implementer and part of a core, like 0x41:0xd40"));

#define G struct gpu_text
PLAIN(gpu, G, NEED(G, name),
      NEED(G, capability, .good = hardware_is_capability, .is = "a compute capability like 9.0"),
      MAY(G, memory, .check = yaml_size));

#define M struct machine_text
PLAIN(machine, M,
      NEED(M, platform, .words = "x86_64-linux aarch64-linux aarch64-darwin x86_64-darwin",
	   .is = "a platform"),
      KEY(M, cpu, YAML_ROW, .need = true, .of = &cpu_schema), NUMBER(M, processors),
      MAY(M, memory, .check = yaml_size), ROWS(M, gpus, gpu),
      MAY(M, driver, .good = version_valid, .is = "a driver version"),
      MAY(M, driver_cuda, .good = version_valid, .is = "a CUDA version"), MAY(M, gpu_source),
      MAY(M, gpu_trouble), MAY(M, glibc, .good = is_glibc, .is = "a version of glibc"),
      MAY(M, pythons), MAY(M, source));

/* What is absent or empty is not known: 0. */
int hardware_load(const char *path, struct arena *a, struct hardware *ret, struct err *e)
{
	const struct yaml_tree *lines;
	struct machine_text t = {0};

	if (yaml_load(path, &machine_schema, a, &t, &lines, e) < 0)
		return -1;
	const struct cpu_text *cpu = t.cpu;
	struct hardware h = {.platform = t.platform,
			     .cpu = {.name = cpu->name,
				     .vendor = cpu->vendor,
				     .family = cpu->family,
				     .model = cpu->model,
				     .stepping = cpu->stepping,
				     .probed_known = cpu->probed,
				     .xcr0_known = *cpu->xcr0,
				     .xcr0 = strtoull(cpu->xcr0, NULL, 16)},
			     .processors = t.processors,
			     .memory = size_bytes(t.memory),
			     .gpus = arena_array(a, t.gpus_count, sizeof(*h.gpus)),
			     .gpu_count = t.gpus_count,
			     .driver = t.driver,
			     .driver_cuda = t.driver_cuda,
			     .gpu_source = t.gpu_source,
			     .gpu_trouble = t.gpu_trouble,
			     .glibc = t.glibc};
	for (unsigned i = 0; i < t.gpus_count; i++)
		h.gpus[i] = (struct hardware_gpu){t.gpus[i].name, t.gpus[i].capability,
						  size_bytes(t.gpus[i].memory)};
	if (cpu->probed && cpu->probed->kind != YAML_TEXT)
		return err_set(e, ERR_CONFIG, "%s:%u: 'probed' must be text", path,
			       cpu->probed->line);
	strlist_split(&h.cpu.flags, a, cpu->flags, " \t\n");
	strlist_split(&h.cpu.probed, a, cpu->probed ? cpu->probed->text : "", " \t\n");
	strlist_refs(&h.cpu.cores, a, cpu->cores, cpu->cores_count);
	strlist_split(&h.pythons, a, t.pythons, " \t\n");
	for (size_t i = 0; i < h.pythons.count; i++)
		if (!is_python(h.pythons.items[i]))
			return err_set(e, ERR_CONFIG,
				       "%s:%u: '%s' is not a Python like 3.13 or 3.13t", path,
				       yaml_line(lines, "pythons"), h.pythons.items[i]);
	h.bare = !*h.glibc && !h.pythons.count;
	*ret = h;
	return 0;
}
