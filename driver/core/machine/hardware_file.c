/* The description of a machine in a file. */

#include "base/yaml/yaml.h"
#include "core/machine/hardware.h"

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
	if (*text && size_parse(text, ret, e) < 0)
		return err_wrap(e, "%s:%u", r->path, yaml_line(r->lines, "%s", at));
	return 0;
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
