/* This machine's processors and memory, as far as this process may use them. */
#pragma once
#include <stdint.h>

/* machine_processors: those the scheduler lets this process run on; at least 1. */
unsigned machine_processors(void);
/* machine_memory: bytes that can be taken without swapping: the smallest of MemAvailable and what
 * every cgroup limit above this process (v2: memory.max and memory.high; v1: memory.limit_in_bytes)
 * leaves, file cache not counted as used; UINT64_MAX if nothing can be read. Programs that are
 * started from here are below the same limits. */
uint64_t machine_memory(void);
/* machine_oom_kills: how many processes the kernel has killed for memory so far, in the cgroups of
 * this process and in the machine. Only a difference of two calls means something. */
uint64_t machine_oom_kills(void);
/* machine_pressure: percent of the last ten seconds in which everything stood still for memory
 * ("full" of memory.pressure of this process's cgroup, else of the machine); 0 where the kernel
 * does not say. */
double machine_pressure(void);

/* The same on a tree of files that has proc/ and sys/ of a machine: for tests. `root` is "" for
 * this machine. */
uint64_t machine_memory_at(const char *root);
uint64_t machine_oom_kills_at(const char *root);
double machine_pressure_at(const char *root);

/* machine_has_feature: whether /proc/cpuinfo lists `name` among the first processor's flags (x86)
 * or Features (Arm). */
int machine_has_feature(const char *name);
