/* Facts about processors: the rows of cpu.yaml, loaded apart from the other tables because no plan
 * depends on them. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strlist.h"

struct feature_row {
	const char *name;   /* as /proc/cpuinfo spells it */
	const char *cpuid;  /* "7.0.ebx.16", "" */
	const char *state;  /* "0xe6", "" */
	const char *hwcap;  /* "22", "" */
	const char *hwcap2; /* "1", "" */
	const char **implies;
	unsigned implies_count;
	const char **macros;
	unsigned macros_count;
};

struct processor_row {
	const char *name;
	const char *vendor; /* "" for Arm */
	const char *family;
	const char **models; /* "85" or "16-31" */
	unsigned models_count;
	const char *steppings; /* "5-7", "" = all */
	const char *implementer;
	const char *part;
	const char **distrust;
	unsigned distrust_count;
	const char *note;
};

struct hardware_facts {
	struct feature_row *features;
	unsigned features_count;
	struct processor_row *processors;
	unsigned processors_count;
	/* directories, or patterns of them, where NVIDIA's driver has its libraries and the loader
	 * does not look */
	const char **driver_places;
	unsigned driver_places_count;
};

struct hardware_cpu; /* hardware.h */

/* hardware_facts_load: cpu.yaml of the profiles directory. ERR_CONFIG with file and line. */
int hardware_facts_load(const char *profiles_dir, struct arena *a, const struct hardware_facts **ret,
			struct err *e) MUST_CHECK;
const struct feature_row *hardware_feature(const struct hardware_facts *f, const char *name);
/* hardware_closure: the features and all that they imply, each once. */
void hardware_closure(const struct hardware_facts *f, const char *const *names, unsigned count, struct arena *a,
		      struct strlist *ret);
/* hardware_processors: the row of each kind of core; none if its numbers are unknown. */
size_t hardware_processors(const struct hardware_facts *f, const struct hardware_cpu *cpu, struct arena *a,
			   const struct processor_row *const **ret);
/* feature_state: the XCR0 bits a feature needs, 0 for none. */
uint64_t feature_state(const struct feature_row *row);

struct feature_place {
	unsigned leaf, subleaf, reg, bit; /* reg: 0 eax, 1 ebx, 2 ecx, 3 edx */
};
/* feature_cpuid: where CPUID shows the feature; false when the row does not say. */
bool feature_cpuid(const struct feature_row *row, struct feature_place *ret);
