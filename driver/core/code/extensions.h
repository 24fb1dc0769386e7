/* Instruction-set extensions by name, as bits of a word: the table profiles/extensions.yaml. */
#pragma once

#include "core/tables/tables.h"

enum extension_machine { EXTENSION_X86_64, EXTENSION_AARCH64, EXTENSION_MACHINES };
enum { EXTENSIONS_MAX = 64 }; /* of one machine */

#define EXTENSION_BASELINE 1ULL /* bit 0: what every processor of a machine has */

struct extension_special { /* an instruction that needs less than its set */
	const char *mnemonic;
	uint64_t needs;
};

struct extension_encoding { /* AArch64: words with (word & mask) == value */
	uint32_t mask, value;
	uint64_t needs;
	const char *what;
};

struct extension_set { /* a set of the decoder */
	const char *name;
	uint64_t needs;
};

struct extensions {
	const char *names[EXTENSION_MACHINES][EXTENSIONS_MAX];
	/* transitive, with itself and the baseline */
	uint64_t implied[EXTENSION_MACHINES][EXTENSIONS_MAX];
	size_t count[EXTENSION_MACHINES];
	struct extension_set *sets;
	size_t sets_count;
	struct extension_special *specials;
	size_t specials_count;
	struct extension_encoding *encodings; /* the first match counts */
	size_t encodings_count;
};

/* extensions_new: the rows of extensions.yaml. ERR_CONFIG "file:line: ..." for unknown and repeated
 * names, more than 64 rows of a machine, malformed masks. */
int extensions_new(const struct tables *t, struct arena *a, const struct extensions **ret, struct err *e) MUST_CHECK;
/* extensions_bit: 0 for an unknown name. */
uint64_t extensions_bit(const struct extensions *x, enum extension_machine m, const char *name);
/* extensions_with: `bits`, all that they imply, and the baseline. */
uint64_t extensions_with(const struct extensions *x, enum extension_machine m, uint64_t bits);
/* extensions_text: "avx512f, avx512vl": without the baseline and what others of them imply. */
char *extensions_text(const struct extensions *x, enum extension_machine m, uint64_t bits, struct arena *a);
/* extensions_of_set: what a set of the decoder needs; 0 if no row has it. */
uint64_t extensions_of_set(const struct extensions *x, const char *set);
