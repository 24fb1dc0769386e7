/* Decodes all code of an ELF file and attributes what is not allowed to its function. */
#pragma once
#include <stdatomic.h>

#include "core/code/code_map.h"
#include "core/code/decode.h"

struct isa_found { /* a function with instructions beyond what is allowed */
	const struct code_range *range;
	struct decode_tally tally;
};

struct isa_scan {
	enum extension_machine machine;
	struct code_map map;
	struct isa_found *found; /* by address */
	size_t count;
	uint64_t bytes, instructions;
	size_t functions; /* ranges with a name or a frame description */
	size_t clean;     /* of them, examined whole and within what is allowed */
	bool fast_math;   /* an initialiser sets flush-to-zero */
	/* bytes that are no instructions: tables, or code that was not found; the first of them */
	uint64_t skipped, first_skipped;
};

/* How many processors are idle, shared by those who scan several files at a time. */
struct isa_idle {
	atomic_int processors;
};

/* isa_scan_machine: false if code of this ELF machine cannot be examined. */
bool isa_scan_machine(unsigned elf_machine, enum extension_machine *ret);
/* isa_scan_file: starts a thread for each processor that becomes idle (`idle` NULL: none); the
 * result does not depend on how many. It points into `m` and `a`. ERR_INTEGRITY,
 * ERR_INTERRUPTED. */
int isa_scan_file(struct elf_map *m, const struct decoder *const decoders[EXTENSION_MACHINES],
		  const uint64_t allowed[EXTENSION_MACHINES], struct isa_idle *idle, const struct run *run,
		  struct arena *a, struct isa_scan *ret, struct err *e) MUST_CHECK;
