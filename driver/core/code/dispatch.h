/* Families of functions that are called only on processors that have what they need: the table
 * profiles/dispatch.yaml. */
#pragma once
#include "core/code/code_map.h"
#include "core/code/extensions.h"

struct dispatch_row {
	const char *library; /* glob of the file's base name */
	const char *symbol;  /* glob of the mangled name; NULL: any, also none */
	const char *unit;    /* glob of the source file; NULL: any, also none */
	/* the name itself says the instruction set, so a copy that the linker chose is one of its
	 * own kind */
	bool carries;
	const char *why;
	uint64_t extensions[EXTENSION_MACHINES];
};

struct dispatch {
	struct dispatch_row *rows;
	size_t count;
};

/* dispatch_load: `dir`/dispatch.yaml. ERR_CONFIG "file:line: ..." for an extension that the other
 * table does not have. */
int dispatch_load(const char *dir, const struct extensions *x, struct arena *a, const struct dispatch **ret,
		  struct err *e) MUST_CHECK;
/* dispatch_excuses: the extensions that a function of a library may use because something else
 * looks at the processor first; 0 if no row fits. A weak function is excused only by rows whose
 * names carry the instruction set; what initialisers do is for the caller to refuse. *ret_why: that
 * of the first row, unchanged when none fits. */
uint64_t dispatch_excuses(const struct dispatch *d, enum extension_machine m, const char *library,
			  const struct code_range *r, const char **ret_why);
