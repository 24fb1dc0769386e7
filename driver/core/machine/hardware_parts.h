/* The pieces of hardware_read. What differs by operating system is in hardware_linux.c and
 * hardware_darwin.c, of which the build takes one. */
#pragma once
#include "core/machine/hardware.h"

/* hardware_read_cpu: platform and processor as the operating system shows them. */
int hardware_read_cpu(const struct hardware_facts *f, struct arena *a, struct hardware *h, struct err *e) MUST_CHECK;
/* hardware_kernel_driver: the version of NVIDIA's driver as the kernel tells it; "" if it does
 * not. */
const char *hardware_kernel_driver(struct arena *a);
/* hardware_parse_cpuinfo: the first processor of /proc/cpuinfo, and for Arm each kind of core.
 * Anything may stand in it; what is not understood is passed over. */
void hardware_parse_cpuinfo(const char *text, struct arena *a, struct hardware_cpu *cpu);
/* hardware_parse_driver: the version in /proc/driver/nvidia/version; "". */
const char *hardware_parse_driver(const char *text, struct arena *a);
/* hardware_is_capability: "9.0"; no other number of digits behind the dot. */
bool hardware_is_capability(const char *text);
/* hardware_read_gpus: NVIDIA's GPUs through libcuda, else NVML, else nvidia-smi, all of the machine
 * whatever CUDA_VISIBLE_DEVICES says. libcuda and NVML run in a child, so that one that hangs or
 * dies does no harm. */
int hardware_read_gpus(const struct run *run, struct arena *a, struct hardware *h, struct err *e) MUST_CHECK;
/* hardware_ask_child: runs `child` in a process of its own and takes its answers; one that dies, or
 * is silent for `patience_ms`, is told in gpu_trouble. */
int hardware_ask_child(void (*child)(int fd), int patience_ms, const struct run *run, struct arena *a,
		       struct hardware *h, struct err *e) MUST_CHECK;
/* hardware_gpu_child: what the child runs: answers as lines ("gpu NAME<TAB>9.0<TAB>BYTES", "driver
 * 570.86.15", "cuda 12.8", "source libcuda", "trouble ..."). */
void hardware_gpu_child(int fd);
/* hardware_take_answers: those lines. hardware_take_smi: nvidia-smi's, name, capability, MiB,
 * driver, with commas between. What is malformed is passed over. */
void hardware_take_answers(const char *text, struct arena *a, struct hardware *h);
void hardware_take_smi(const char *text, struct arena *a, struct hardware *h);
