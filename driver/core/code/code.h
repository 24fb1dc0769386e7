/* Machine code: what extensions it needs, which function it is of, and what may use more. */
#pragma once
#include <stdatomic.h>

#include "core/elf/elf_map.h"
#include "core/tables/tables.h"

/* Instruction-set extensions by name, as bits of a word: the table profiles/extensions.yaml. */

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
int extensions_new(const struct tables *t, struct arena *a, const struct extensions **ret,
		   struct err *e) MUST_CHECK;
/* extensions_bit: 0 for an unknown name. */
uint64_t extensions_bit(const struct extensions *x, enum extension_machine m, const char *name);
/* extensions_with: `bits`, all that they imply, and the baseline. */
uint64_t extensions_with(const struct extensions *x, enum extension_machine m, uint64_t bits);
/* extensions_text: "avx512f, avx512vl": without the baseline and what others of them imply. */
char *extensions_text(const struct extensions *x, enum extension_machine m, uint64_t bits,
		      struct arena *a);
/* extensions_of_set: what a set of the decoder needs; 0 if no row has it. */
uint64_t extensions_of_set(const struct extensions *x, const char *set);

/* Which extensions machine code needs. */

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
	char mnemonic[96];     /* of the one at `first`; on AArch64 the table's `what` */
};

/* decoder_new: for one machine, with the table's meaning of each set. */
const struct decoder *decoder_new(const struct extensions *x, enum extension_machine m,
				  struct arena *a);
/* decoder_check: ERR_CONFIG with the names if the table `x`, read from `path`, has no row for some
 * set of the decoder: no verdict on code can be given. */
int decoder_check(const struct extensions *x, const char *path, struct err *e) MUST_CHECK;
/* decoder_id: "zydis 4.0.0", a part of the output key. */
const char *decoder_id(char ret[32]);
struct code_bytes {
	const uint8_t *data;
	size_t len;
	uint64_t address; /* of the first */
};

/* decode_run: the code, added to *t. `allowed` holds the baseline. */
void decode_run(const struct decoder *d, const struct code_bytes *code, uint64_t allowed,
		struct decode_tally *t);
/* decode_fast_math: whether a function, up to its first return, sets flush-to-zero for the thread
 * that runs it: on x86-64 a bit of MXCSR, on AArch64 FPCR. */
bool decode_fast_math(const struct decoder *d, const uint8_t *bytes, size_t len);
/* decode_asks_cpuid: whether a function asks CPUID what the processor has. */
bool decode_asks_cpuid(const struct decoder *d, const uint8_t *bytes, size_t len);
/* decode_targets: finds addresses that x86-64 code calls or jumps to directly (`calls`), or else
 * computes relative to itself; at most `max`. */
size_t decode_targets(const struct decoder *d, const uint8_t *bytes, size_t len, uint64_t address,
		      bool calls, uint64_t *ret, size_t max);

/* decode_may_start: whether x86-64 code may have an instruction that begins at `at`: one of the
 * sequences of instructions that begin a little before leads there. `bytes` begin with one. In
 * code without data among it false is sure, as one of them is the true sequence. */
bool decode_may_start(const uint8_t *bytes, size_t len, size_t at);

/* Which function each byte of an ELF file's code belongs to, by its symbols, frame descriptions
 * (.eh_frame) and initialisers. */

enum code_flag {
	/* the file states start and end; else it is between others */
	CODE_DECLARED = 1,
	CODE_STRONG = 2,      /* a global symbol that is defined once */
	CODE_WEAK = 4,        /* weak or unique symbols only: one copy of several units' */
	CODE_INIT = 8,        /* runs while the library is loaded */
	CODE_RESOLVER = 16,   /* an indirect function's resolver */
	CODE_DISPATCHED = 32, /* what such a resolver may choose (set by isa_scan) */
	CODE_INIT_PART = 64,  /* nameless and called directly by an initialiser (set by isa_scan) */
	CODE_DATA = 128,      /* a symbol calls it an object: code or data is unknown */
	CODE_ASKED = 256      /* an initialiser that asks CPUID, or its part (set by isa_scan) */
};

struct code_range {
	uint64_t start, end; /* addresses */
	const char *name;    /* mangled, NULL */
	/* source file of a local symbol, as the symbol table has it; else NULL */
	const char *unit;
	unsigned flags;
};

struct code_map {
	/* ascending, disjoint; all code, but not what marks call data */
	struct code_range *ranges;
	size_t count;
	bool full_names; /* local functions have names */
};

/* code_map_read: strings in it live as long as `m`. ERR_INTEGRITY for tables that leave the file;
 * frame descriptions that cannot be read count as absent. */
int code_map_read(struct elf_map *m, struct arena *a, struct code_map *ret,
		  struct err *e) MUST_CHECK;
/* code_map_at: the range that holds an address, NULL. */
struct code_range *code_map_at(const struct code_map *c, uint64_t address);

/* Decodes all code of an ELF file and attributes what is not allowed to its function. */

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
struct isa_scan_request {
	const struct decoder *const *decoders; /* one for each of EXTENSION_MACHINES */
	const uint64_t *allowed;               /* likewise */
	struct isa_idle *idle;                 /* NULL: no further threads */
	const struct run *run;
	struct arena *arena; /* of the result */
};

/* isa_scan_file: starts a thread for each processor that becomes idle; the result does not depend
 * on how many. It points into `m` and the arena. ERR_INTEGRITY, ERR_INTERRUPTED. */
int isa_scan_file(struct elf_map *m, const struct isa_scan_request *q, struct isa_scan *ret,
		  struct err *e) MUST_CHECK;

/* What code is judged by. */

struct isa_rules {
	const struct extensions *extensions;
	const struct dispatch *dispatch;
	const struct decoder *decoders[EXTENSION_MACHINES];
};

/* isa_rules_new: the rows of extensions.yaml and dispatch.yaml. ERR_CONFIG as for both and for
 * decoder_check. */
int isa_rules_new(const struct tables *t, struct arena *a, const struct isa_rules **ret,
		  struct err *e) MUST_CHECK;
/* isa_rules_allowed: per machine, what code for this instruction set may use (NULL: the baseline).
 * Its features without an extension of that name allow nothing. */
void isa_rules_allowed(const struct isa_rules *r, const struct isa_row *isa,
		       uint64_t ret[EXTENSION_MACHINES]);

/* Families of functions that are called only on processors that have what they need
 * (profiles/dispatch.yaml). */
struct dispatch_row {
	const struct family_row *family;
	uint64_t extensions[EXTENSION_MACHINES];
};

struct dispatch {
	struct dispatch_row *rows;
	size_t count;
};

/* dispatch_new: the rows of dispatch.yaml. ERR_CONFIG "file:line: ..." for an unknown extension. */
int dispatch_new(const struct tables *t, const struct extensions *x, struct arena *a,
		 const struct dispatch **ret, struct err *e) MUST_CHECK;
/* dispatch_excuses: the extensions that a function may use because its callers check the processor;
 * 0 if no row fits. *ret_why: of the first that fits, else unchanged. */
uint64_t dispatch_excuses(const struct dispatch *d, enum extension_machine m, const char *library,
			  const struct code_range *r, const char **ret_why);
