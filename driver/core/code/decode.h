/* Which extensions machine code needs. */
#pragma once

#include "core/code/extensions.h"

struct decoder; /* immutable, shared by threads */

/* What some bytes hold. */
struct decode_tally {
	uint64_t seen;     /* all extensions needed */
	uint64_t above;    /* of them not allowed, before any unknown bytes */
	uint64_t doubtful; /* the same behind unknown bytes, where data may look like code */
	/* address of the first instruction not allowed, one of `above` if any */
	uint64_t first;
	uint64_t count;        /* instructions not allowed */
	uint64_t instructions; /* all */
	uint64_t unknown;      /* bytes that are not an instruction that the decoder knows */
	char mnemonic[24];     /* of the one at `first`; on AArch64 the table's `what` */
};

/* decoder_new: for one machine, with the table's meaning of each set. */
const struct decoder *decoder_new(const struct extensions *x, enum extension_machine m, struct arena *a);
/* decoder_check: ERR_CONFIG with the names if the table `x`, read from `path`, has no row for some
 * set of the decoder: no verdict on code can be given. */
int decoder_check(const struct extensions *x, const char *path, struct err *e) MUST_CHECK;
/* decoder_id: "zydis 4.0.0", a part of the output key. */
const char *decoder_id(char ret[32]);
/* decode_run: the code from `address` on, added to *t. `allowed` holds the baseline. */
void decode_run(const struct decoder *d, const uint8_t *bytes, size_t len, uint64_t address, uint64_t allowed,
		struct decode_tally *t);
/* decode_fast_math: whether a function, up to its first return, sets flush-to-zero for the thread
 * that runs it: on x86-64 a bit of MXCSR, on AArch64 FPCR. */
bool decode_fast_math(const struct decoder *d, const uint8_t *bytes, size_t len);
/* decode_targets: where x86-64 code calls or jumps to directly (`calls`), or which addresses
 * relative to itself it takes; at most `max`. */
size_t decode_targets(const struct decoder *d, const uint8_t *bytes, size_t len, uint64_t address, bool calls,
		      uint64_t *ret, size_t max);
