/* Decoding machine code: which extensions the instructions of some bytes need. */
#pragma once
#include <stdbool.h>

#include "core/code/extensions.h"

struct decoder; /* immutable: any number of threads may use one */

/* What was seen in one run of bytes. */
struct decode_tally {
	uint64_t seen; /* all extensions needed */
	/* those not allowed, of instructions that are certain: before the first bytes that are
	 * none */
	uint64_t above;
	/* those not allowed behind such bytes, where data may be taken for code */
	uint64_t doubtful;
	/* address of the first instruction that is not allowed (certain ones first) */
	uint64_t first;
	uint64_t count; /* of instructions that are not allowed, doubtful ones included */
	uint64_t instructions;
	uint64_t unknown; /* bytes that are no instruction that the decoder knows */
	/* of the instruction at `first`; for AArch64 what the table says of it */
	char mnemonic[24];
};

/* decoder_new: for one machine, with the table's meaning of each set. */
const struct decoder *decoder_new(const struct extensions *x, enum extension_machine m, struct arena *a);
/* decoder_id: "zydis 4.0.0": what it knows decides which names a wheel keeps. */
const char *decoder_id(char ret[32]);
/* decode_run: from `address` on, adds to *t. `allowed` must hold the baseline. */
void decode_run(const struct decoder *d, const uint8_t *bytes, size_t len, uint64_t address, uint64_t allowed,
		struct decode_tally *t);
/* decode_targets: the addresses that x86-64 code calls or jumps to directly (calls) or takes by an
 * address relative to itself (!calls), at most `max`; how many. */
size_t decode_targets(const struct decoder *d, const uint8_t *bytes, size_t len, uint64_t address, bool calls,
		      uint64_t *ret, size_t max);
/* decoder_lacks: sets of the decoder that the table has no row for; "" if none. For the tests: a
 * new version of the decoder brings new ones. */
const char *decoder_lacks(const struct extensions *x, struct arena *a);
