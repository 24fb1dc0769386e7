#include "core/machine/hardware.h"

#include <inttypes.h>
#include <string.h>

#include "base/sys/json.h"

/* Whether CPUID or the auxiliary vector can show the feature. */
static bool has_place(const struct feature_row *row, const struct hardware *h)
{
	if (strncmp(h->platform, "x86_64", 6) == 0)
		return *row->cpuid != '\0';
	return *row->hwcap || *row->hwcap2;
}

const char *hardware_missing(const struct hardware_facts *f, const struct hardware *h, const char *feature,
			     struct arena *a)
{
	const struct hardware_cpu *cpu = &h->cpu;
	const struct feature_row *row = hardware_feature(f, feature);
	bool askable = row && cpu->probed_known && has_place(row, h);
	bool shown = askable && strlist_contains(&cpu->probed, feature);
	uint64_t state = row ? feature_state(row) : 0;
	bool saved = !cpu->xcr0_known || (cpu->xcr0 & state) == state;
	bool listed = cpu->flags.count ? strlist_contains(&cpu->flags, feature) : shown;
	if (!saved && (listed || shown))
		return arena_printf(a, "the operating system does not save its registers: XCR0 is 0x%" PRIx64,
				    cpu->xcr0);
	if (!listed)
		return shown ? "the processor has it, but the operating system does not list it"
			     : "the processor does not list it";
	if (askable && !shown)
		return "the operating system lists it, but the processor does not show it";
	return NULL;
}

const char *hardware_lacks(const struct hardware_facts *f, const struct hardware *h, const struct strlist *features,
			   struct arena *a)
{
	struct strlist missing = {0};
	const char *first = NULL;
	for (size_t i = 0; i < features->count; i++) {
		const char *why = hardware_missing(f, h, features->items[i], a);
		if (why)
			strlist_ref(&missing, a, features->items[i]);
		first = first ? first : why;
	}
	return missing.count ? arena_printf(a, "%s (%s)", strlist_join(&missing, a, " "), first) : NULL;
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
		json_object_update_new(o, json_pack("{s:i, s:i, s:i}", "family", cpu->family, "model", cpu->model,
						    "stepping", cpu->stepping));
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
	json_t *gpus = json_array();
	for (size_t i = 0; i < h->gpu_count; i++)
		json_array_append_new(gpus,
				      json_pack("{s:o, s:s, s:I}", "name", json_or_null(h->gpus[i].name), "capability",
						h->gpus[i].capability, "memory", (json_int_t)h->gpus[i].memory));
	json_t *o = json_pack("{s:s, s:o, s:i, s:I, s:o}", "platform", h->platform, "cpu", cpu_json(&h->cpu),
			      "processors", h->processors, "memory", (json_int_t)h->memory, "gpus", gpus);
	put_text(o, "driver", h->driver);
	put_text(o, "driver_cuda", h->driver_cuda);
	put_text(o, "gpu_source", h->gpu_source);
	put_text(o, "gpu_trouble", h->gpu_trouble);
	put_text(o, "glibc", h->glibc);
	if (h->pythons.count)
		json_object_set_new(o, "pythons", words(&h->pythons));
	return o;
}
