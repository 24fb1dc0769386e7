/* Programs of a root that is for another platform, run on this machine by an emulator. Each run in
 * the sandbox gets a user namespace of its own, in which the kernel (binfmt_misc) starts the
 * emulator for them; nothing is registered on the machine, and no privilege is needed. */
#pragma once
#include "base/base.h"

struct emulation {
	const char *platform; /* of the root's programs: "aarch64-linux" */
	const char *program;  /* the emulator: a static program of this machine */
	/* a directory whose files are seen over the root's: the compilers' inner programs, built
	 * for this machine; NULL: all programs are emulated */
	const char *layer;
	const char *cpu;  /* the processor, as QEMU_CPU has it, where no profile names one */
	const char *name; /* for people: "qemu 10.0.13" */
};

/* How many times longer a compiler takes where it is emulated, too: 13 (42 units of c10, 231.7 s of
 * CPU time by qemu 10, 13.8 in a root of this machine, 21.8 with a layer; 2026-11-28). */
#define EMULATION_FACTOR 13

/* emulation_kernel: whether a kernel of this release ("6.18.44-fc", as uname has it) has
 * binfmt_misc for each user namespace: Linux 6.7 and newer. */
bool emulation_kernel(const char *release) __attribute__((pure));
/* emulation_check: whether this machine can emulate the platform. ERR_POLICY with the fix: an older
 * kernel, another system, a platform without a row. */
int emulation_check(const char *platform, struct err *e) MUST_CHECK;
/* emulation_row: what the kernel's `register` takes: programs of this platform are run by
 * `program`, which is opened at once. NULL: no such platform. */
char *emulation_row(const char *platform, const char *program, struct arena *a);
