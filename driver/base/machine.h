/* This machine's processors and memory, as far as this process may use them. */
#pragma once
#include <stdint.h>

/* machine_processors: those the scheduler lets this process run on; at least 1. */
unsigned machine_processors(void);
/* machine_memory: bytes that can be taken without swapping: the smallest of MemAvailable and what every cgroup limit above this process (v2 and v1) leaves; UINT64_MAX if nothing can be read. */
uint64_t machine_memory(void);
/* machine_has_feature: whether /proc/cpuinfo lists `name` among the first processor's flags (x86) or Features (Arm). */
int machine_has_feature(const char *name);
