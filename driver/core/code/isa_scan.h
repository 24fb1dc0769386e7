/* The instruction sets that the functions of an ELF file use: every executable byte decoded, on all
 * processors, what is beyond a promise attributed to its function. */
#pragma once
#include <stdatomic.h>

#include "base/run.h"
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
	size_t functions; /* ranges that a name or a frame description tells of */
	size_t unknown;   /* of them, those with bytes that the decoder does not know */
	uint64_t skipped; /* bytes between functions that hold something else than instructions */
};

/* Processors that nobody uses right now, shared by those who scan several files at a time. */
struct isa_spare {
	atomic_int processors;
};

/* isa_scan_machine: whether the code of this ELF machine can be examined. */
bool isa_scan_machine(unsigned elf_machine, enum extension_machine *ret);
/* isa_scan_file: `decoders` by machine, `allowed` likewise. Takes processors from `spare` while
 * there are any (NULL: one thread). What it finds does not depend on how many. The result points
 * into `m` and `a`. ERR_INTEGRITY for a file whose tables are broken, ERR_INTERRUPTED. */
int isa_scan_file(struct elf_map *m, const struct decoder *const decoders[EXTENSION_MACHINES],
		  const uint64_t allowed[EXTENSION_MACHINES], struct isa_spare *spare, const struct run *run,
		  struct arena *a, struct isa_scan *ret, struct err *e) MUST_CHECK;
