/* This machine's processors and memory, as far as this process may use them. */
#pragma once

#include "base/base.h"

/* machine_processors: returns how many processors the scheduler lets this process use, at most the
 * CPU quota of a cgroup (v1 and v2) above it and SLURM_CPUS_PER_TASK; at least 1. */
unsigned machine_processors(void);
/* machine_list_processors: the numbers of at most `max` processors that this process may run on,
 * and how many: first one of each core, then the other threads of the cores. 0: a process cannot be
 * held to some here. */
unsigned machine_list_processors(unsigned *ret, unsigned max);
/* machine_memory: bytes that can be taken without swapping: the least of MemAvailable and what each
 * cgroup limit (v1 and v2) above this process leaves, file cache counted as free; UINT64_MAX if
 * nothing can be read. */
uint64_t machine_memory(void);
/* machine_memory_text: "23.0 GiB"; "an unknown amount" of UINT64_MAX. */
char *machine_memory_text(uint64_t bytes, struct arena *a) __attribute__((returns_nonnull));
/* `root` is a tree with a machine's proc/ and sys/, "" for this machine.
 * machine_oom_kills: processes killed for memory so far, in the nearest cgroup of this process that
 * counts them, else in the machine. Only a difference of two calls means something. */
uint64_t machine_oom_kills(const char *root);
/* machine_pressure: percent of the last ten seconds in which everything waited for memory ("full"
 * of this process's cgroup, else of the machine); 0 where the kernel does not say. */
double machine_pressure(const char *root);

uint64_t machine_memory_at(const char *root);
/* machine_cores_first_at: puts the first number of each core in front; their order stays. */
void machine_cores_first(const char *root, unsigned *numbers, unsigned count);
/* machine_quota_at: processors that the quota is worth, rounded up; UINT64_MAX without one. */
uint64_t machine_quota(const char *root);

/* machine_platform: "x86_64-linux", "aarch64-darwin". */
char *machine_platform(struct arena *a) __attribute__((returns_nonnull));
/* machine_is_arm: whether a platform ("aarch64-linux") is of 64-bit Arm. */
bool machine_is_arm(const char *platform);
/* machine_has_feature: whether /proc/cpuinfo lists `name` among the first processor's flags (x86)
 * or Features (Arm). */
bool machine_has_feature(const char *name);
