/* A machine as data, which detect decides from: this machine, or one described in a file. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/run.h"
#include "base/strlist.h"
#include "core/machine/hardware_facts.h"

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
};

/* hardware_read: this machine, `gpus` with its NVIDIA GPUs. A GPU driver that fails or hangs is not
 * an error; gpu_trouble says why. */
int hardware_read(const struct hardware_facts *f, bool gpus, const struct run *run, struct arena *a,
		  struct hardware *ret, struct err *e) MUST_CHECK;
/* hardware_load: a description in YAML (or JSON, as hardware_json gives it). ERR_CONFIG with file
 * and line. */
int hardware_load(const char *path, struct arena *a, struct hardware *ret, struct err *e) MUST_CHECK;
/* hardware_json: an object that hardware_load reads (new reference). */
json_t *hardware_json(const struct hardware *h);
/* hardware_missing: why the machine cannot run code that uses a feature, as a phrase ("the
 * processor does not list it"); NULL if it can. */
const char *hardware_missing(const struct hardware_facts *f, const struct hardware *h, const char *feature,
			     struct arena *a);
/* hardware_lacks: those of the features that it cannot run, and why the first of them:
 * "avx2 fma (the processor does not list it)"; NULL if none. */
const char *hardware_lacks(const struct hardware_facts *f, const struct hardware *h, const struct strlist *features,
			   struct arena *a);
