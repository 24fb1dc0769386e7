/* Families of functions that are called only on processors that have what they need
 * (profiles/dispatch.yaml). */
#pragma once
#include "core/code/code_map.h"
#include "core/code/extensions.h"

struct dispatch_row {
	const struct family_row *family;
	uint64_t extensions[EXTENSION_MACHINES];
};

struct dispatch {
	struct dispatch_row *rows;
	size_t count;
};

/* dispatch_new: the rows of dispatch.yaml. ERR_CONFIG "file:line: ..." for an unknown extension. */
int dispatch_new(const struct tables *t, const struct extensions *x, struct arena *a, const struct dispatch **ret,
		 struct err *e) MUST_CHECK;
/* dispatch_excuses: the extensions that a function may use because its callers check the processor;
 * 0 if no row fits. *ret_why: of the first that fits, else unchanged. */
uint64_t dispatch_excuses(const struct dispatch *d, enum extension_machine m, const char *library,
			  const struct code_range *r, const char **ret_why);
