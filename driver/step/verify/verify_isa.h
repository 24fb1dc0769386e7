/* What the code of one library uses beyond the promise, sorted by what it means. */
#pragma once
#include "core/code/isa_rules.h"

enum isa_class {
	/* run while the library is loaded: fails at import on a smaller processor */
	ISA_INIT,
	ISA_COMDAT,     /* one copy for all units: any caller may get it */
	ISA_PLAIN,      /* an ordinary function */
	ISA_UNNAMED,    /* nothing says which function, or whether it is code at all */
	ISA_DISPATCHED, /* called only where the processor has it */
	ISA_CLASSES
};

enum { ISA_LINES_MAX = 20 }; /* of one class of one library that are told one by one */

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
	const char *why_not; /* when not examined and it should be; NULL */
	enum extension_machine machine;
	uint64_t bytes;
	size_t functions, unknown;
	struct isa_findings groups[ISA_CLASSES];
};

/* verify_isa_scan: scans an ELF file and sorts what it finds. `library` is its base name. Only
 * ERR_INTERRUPTED and what the machine refuses is an error. */
int verify_isa_scan(const char *path, const char *library, const struct isa_rules *rules,
		    const uint64_t allowed[EXTENSION_MACHINES], struct isa_spare *spare, const struct run *run,
		    struct arena *a, struct library_isa **ret, struct err *e) MUST_CHECK;
