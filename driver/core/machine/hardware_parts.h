/* The pieces of hardware_read. The build takes hardware_linux.c or hardware_darwin.c. */
#pragma once
#include "core/machine/hardware.h"

/* hardware_read_cpu: platform, processor and C library as the operating system shows them. */
int hardware_read_cpu(const struct hardware_facts *f, struct arena *a, struct hardware *h, struct err *e) MUST_CHECK;
/* hardware_find_pythons: the versions of the Pythons in PATH, ascending, without running any. */
void hardware_find_pythons(struct arena *a, struct strlist *ret);
/* hardware_kernel_driver: the version of NVIDIA's driver in the kernel; "" if unknown. */
const char *hardware_kernel_driver(struct arena *a);
/* hardware_parse_cpuinfo: the first processor of /proc/cpuinfo, and for Arm each kind of core.
 * Unknown lines are skipped. */
void hardware_parse_cpuinfo(const char *text, struct arena *a, struct hardware_cpu *cpu);
/* hardware_parse_driver: the version in /proc/driver/nvidia/version, or "". */
const char *hardware_parse_driver(const char *text, struct arena *a);
/* hardware_is_capability: "9.0"; no other number of digits behind the dot. */
bool hardware_is_capability(const char *text);
/* hardware_ask_child: runs `child` in a process of its own and takes its answers. If it dies
 * twice, or is silent for `patience_ms`, gpu_trouble says so. */
typedef void (*hardware_child_fn)(int fd, const struct hardware_facts *f);
int hardware_ask_child(hardware_child_fn child, const struct hardware_facts *f, int patience_ms, const struct run *run,
		       struct arena *a, struct hardware *h, struct err *e) MUST_CHECK;
/* hardware_gpu_child: writes what libcuda, else NVML, says of all GPUs of the machine, as lines
 * ("gpu NAME<TAB>9.0<TAB>BYTES", "driver 570.86.15", "cuda 12.8", "source libcuda", "trouble
 * ...", which may come several times). It may hang or crash. */
void hardware_gpu_child(int fd, const struct hardware_facts *f);
/* hardware_take_answers: reads these lines. hardware_take_smi: reads nvidia-smi's: name,
 * capability, MiB and driver, separated by commas. Other lines are troubles. */
void hardware_take_answers(const char *text, struct arena *a, struct hardware *h);
void hardware_take_smi(const char *text, struct arena *a, struct hardware *h);
