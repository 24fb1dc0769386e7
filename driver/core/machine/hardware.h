/* A machine as data, which detect decides from: this machine, or one described in a file. */
#pragma once
#include <jansson.h>

#include "base/base.h"

struct hardware_cpu;

/* Facts about processors: the rows of cpu.yaml, loaded apart from the other tables because no plan
 * depends on them. */
struct feature_row {
	const char *name;   /* as /proc/cpuinfo spells it */
	const char *cpuid;  /* "7.0.ebx.16", "" */
	const char *state;  /* "0xe6", "" */
	const char *hwcap;  /* "22", "" */
	const char *hwcap2; /* "1", "" */
	const char **implies;
	const char **macros;
	unsigned implies_count, macros_count;
};

struct processor_row {
	const char *name;
	const char *vendor; /* "" for Arm */
	const char *family;
	const char **models;   /* "85" or "16-31" */
	const char *steppings; /* "5-7", "" = all */
	const char *implementer;
	const char *part;
	const char **distrust;
	const char *note;
	unsigned models_count, distrust_count;
};

struct hardware_facts {
	struct feature_row *features;
	struct processor_row *processors;
	/* directories, or patterns of them, where NVIDIA's driver has its libraries and the loader
	 * does not look */
	const char **driver_places;
	unsigned features_count, processors_count, driver_places_count;
};

/* hardware_facts_load: cpu.yaml of the profiles directory. ERR_CONFIG with file and line. */
int hardware_facts_load(const char *profiles_dir, struct arena *a,
			const struct hardware_facts **ret, struct err *e) MUST_CHECK;
const struct feature_row *hardware_feature(const struct hardware_facts *f, const char *name);
/* hardware_closure: the features and all that they imply, each once. */
void hardware_closure(const struct hardware_facts *f, const char *const *names, unsigned count,
		      struct arena *a, struct strlist *ret);
/* hardware_processors: the row of each kind of core; none if its numbers are unknown. */
size_t hardware_processors(const struct hardware_facts *f, const struct hardware_cpu *cpu,
			   struct arena *a, const struct processor_row *const **ret);
/* feature_state: the XCR0 bits a feature needs, 0 for none. */
uint64_t feature_state(const struct feature_row *row);

struct feature_place {
	unsigned leaf, subleaf, reg, bit; /* reg: 0 eax, 1 ebx, 2 ecx, 3 edx */
};
/* feature_cpuid: where CPUID shows the feature; false when the row does not say. */
bool feature_cpuid(const struct feature_row *row, struct feature_place *ret);

struct hardware_cpu {
	const char *name;   /* as the machine reports it; "" */
	const char *vendor; /* x86: "GenuineIntel"; "" */
	unsigned family, model, stepping;
	/* Arm: "0x41:0xd40", implementer and part, for each kind of core */
	struct strlist cores;
	/* what the operating system lists, in the spelling of /proc/cpuinfo */
	struct strlist flags;
	struct strlist probed; /* features of the facts that CPUID or the auxiliary vector shows */
	bool probed_known;     /* false: there is nothing but the list */
	uint64_t xcr0;         /* register states that the operating system saves; 0: not known */
	bool xcr0_known;
};

struct hardware_gpu {
	const char *name;       /* "NVIDIA H200" */
	const char *capability; /* "9.0" */
	uint64_t memory;        /* bytes, 0: not known */
};

struct hardware {
	/* "x86_64-linux", "aarch64-linux", "aarch64-darwin", "x86_64-darwin" */
	const char *platform;
	struct hardware_cpu cpu;
	unsigned processors;
	uint64_t memory; /* bytes */
	struct hardware_gpu *gpus;
	size_t gpu_count;
	const char *driver;      /* NVIDIA's version: "570.86.15"; "": none, or unknown */
	const char *driver_cuda; /* the newest CUDA that the driver claims to support: "12.8"; "" */
	const char *gpu_source;  /* "libcuda", "NVML", "nvidia-smi"; "" */
	const char *gpu_trouble; /* why the driver gave no answer; "" */
	const char *glibc;       /* "2.36"; "": another C library, or unknown */
	struct strlist pythons;  /* in PATH, ascending: "3.11" */
	bool bare;               /* a description that states neither glibc nor Pythons */
};

/* hardware_read: describes this machine, and its NVIDIA GPUs if `gpus`. Texts are in the arena. A
 * GPU driver that fails or hangs is no error: gpu_trouble has the reason. ERR_POLICY on a Linux
 * machine whose processor is neither x86_64 nor aarch64. */
int hardware_read(const struct hardware_facts *f, bool gpus, const struct run *run, struct arena *a,
		  struct hardware *ret, struct err *e) MUST_CHECK;
/* hardware_load: a description in YAML (or JSON, as hardware_json gives it). ERR_CONFIG with file
 * and line. */
int hardware_load(const char *path, struct arena *a, struct hardware *ret,
		  struct err *e) MUST_CHECK;
/* hardware_json: an object that hardware_load reads (new reference). */
json_t *hardware_json(const struct hardware *h);
/* hardware_missing: why the machine cannot run code that uses a feature, as a phrase ("the
 * processor does not list it"); NULL if it can. */
const char *hardware_missing(const struct hardware_facts *f, const struct hardware *h,
			     const char *feature, struct arena *a);
/* hardware_lacks: returns the features that it cannot run, and why not the first of them: "avx2 fma
 * (the processor does not list it)"; NULL if it can run all. */
const char *hardware_lacks(const struct hardware_facts *f, const struct hardware *h,
			   const struct strlist *features, struct arena *a);

/* The pieces of hardware_read. The build chooses hardware_cpu_linux.c or hardware_cpu_darwin.c. */

/* hardware_read_cpu: platform, processor and C library as the operating system shows them. */
int hardware_read_cpu(const struct hardware_facts *f, struct arena *a, struct hardware *h,
		      struct err *e) MUST_CHECK;
/* hardware_find_pythons: the versions of the Pythons in PATH, ascending, without running any. */
void hardware_find_pythons(struct arena *a, struct strlist *ret);
/* hardware_python_of: "3.11" of a program's name "python3.11", "3.13t" of "python3.13t"; NULL for
 * every other name. */
const char *hardware_python_of(const char *name);
/* hardware_kernel_driver: the version of NVIDIA's driver in the kernel; "" if unknown. */
const char *hardware_kernel_driver(struct arena *a);
/* hardware_parse_cpuinfo: the first processor of /proc/cpuinfo, and for Arm each kind of core.
 * Unknown lines are skipped. */
void hardware_parse_cpuinfo(const char *text, struct arena *a, struct hardware_cpu *cpu);
/* hardware_parse_driver: the version in /proc/driver/nvidia/version, or "". */
const char *hardware_parse_driver(const char *text, struct arena *a);
/* hardware_is_capability: "9.0"; no other number of digits behind the dot. */
bool hardware_is_capability(const char *text);
/* hardware_question: who answers what GPUs there are, and for how long it may be silent. */
typedef void (*hardware_child_fn)(int fd, const struct hardware_facts *f);
struct hardware_question {
	hardware_child_fn child;
	const struct hardware_facts *facts;
	int patience_ms;
	const struct run *run;
};
/* hardware_ask_child: runs the child in a process of its own and reads its answers. If it dies
 * twice, or is silent for too long, gpu_trouble says so. */
int hardware_ask_child(const struct hardware_question *q, struct arena *a, struct hardware *h,
		       struct err *e) MUST_CHECK;
/* hardware_gpu_child: writes what libcuda, else NVML, says of all GPUs of the machine, as lines
 * ("gpu NAME<TAB>9.0<TAB>BYTES", "driver 570.86.15", "cuda 12.8", "source libcuda", "trouble
 * ...", which may come several times). It may hang or crash. */
void hardware_gpu_child(int fd, const struct hardware_facts *f);
/* hardware_take_answers: reads these lines. hardware_take_smi: reads nvidia-smi's: name,
 * capability, MiB and driver, separated by commas. Other lines are troubles. */
void hardware_take_answers(const char *text, struct arena *a, struct hardware *h);
void hardware_take_smi(const char *text, struct arena *a, struct hardware *h);
