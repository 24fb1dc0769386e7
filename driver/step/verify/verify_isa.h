/* What the code of a library uses beyond the promise, by what that means. */
#pragma once
#include "core/code/isa_rules.h"

enum isa_class {
	ISA_INIT,       /* runs while the library is loaded: the import fails */
	ISA_COMDAT,     /* one copy for all units: any caller may get it */
	ISA_PLAIN,      /* an ordinary function */
	ISA_UNNAMED,    /* which function is not known, or whether it is code */
	ISA_DISPATCHED, /* called only on processors that have it */
	ISA_CLASSES
};

enum { ISA_LINES_MAX = 20 }; /* kept of each class of a library */

struct isa_line {
	const char *symbol; /* demangled, "" if none */
	const char *unit;   /* "" if unknown */
	const char *extensions;
	const char *mnemonic;
	const char *why; /* ISA_DISPATCHED: the family */
	uint64_t first, count;
};

struct isa_findings {
	size_t count;
	uint64_t above;
	struct isa_line lines[ISA_LINES_MAX]; /* the first ones by address */
};

struct library_isa {
	bool examined;
	const char *why_not; /* NULL if examined, or there is nothing to examine */
	enum extension_machine machine;
	uint64_t bytes, skipped, first_skipped;
	size_t functions, clean;
	bool fast_math; /* loading it sets flush-to-zero */
	struct isa_findings groups[ISA_CLASSES];
};

/* verify_isa_scan: what an ELF file (`library`: its base name) uses beyond `allowed`. Errors are
 * ERR_INTERRUPTED and those of the machine. */
int verify_isa_scan(const char *path, const char *library, const struct isa_rules *rules,
		    const uint64_t allowed[EXTENSION_MACHINES], struct isa_idle *idle, const struct run *run,
		    struct arena *a, struct library_isa **ret, struct err *e) MUST_CHECK;
