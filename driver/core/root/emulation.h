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
	/* the processor, as QEMU_CPU has it, where no profile names one: sandbox_emulate_as sets
	 * `qemu` of profiles/isa.yaml */
	const char *cpu;
	const char *name; /* for people: "qemu 10.0.13" */
	/* what it takes more than native programs: compiling in percent, and seconds for each
	 * package; 0: not known */
	unsigned percent, seconds;
	/* time of an emulated program, in percent of a native one's; 0: not known */
	unsigned programs;
};

/* emulation_kernel: whether a kernel of this release ("6.18.44-fc", as uname has it) has
 * binfmt_misc for each user namespace: Linux 6.7 and newer. */
bool emulation_kernel(const char *release) __attribute__((pure));
/* emulation_check: whether this machine can emulate the platform. ERR_POLICY with the fix: an older
 * kernel, another system, a platform without a row. */
int emulation_check(const char *platform, struct err *e) MUST_CHECK;
/* emulation_row: what the kernel's `register` takes: programs of this platform are run by
 * `program`, which is opened at once. NULL: no such platform. */
char *emulation_row(const char *platform, const char *program, struct arena *a);
