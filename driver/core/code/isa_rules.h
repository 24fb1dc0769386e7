/* What code is judged by. */
#pragma once
#include "core/code/isa_scan.h"

struct isa_rules {
	const struct extensions *extensions;
	const struct dispatch *dispatch;
	const struct decoder *decoders[EXTENSION_MACHINES];
};

/* isa_rules_new: the rows of extensions.yaml and dispatch.yaml. ERR_CONFIG as for both and for
 * decoder_check. */
int isa_rules_new(const struct tables *t, struct arena *a, const struct isa_rules **ret, struct err *e) MUST_CHECK;
/* isa_rules_allowed: per machine, what code for this instruction set may use (NULL: the baseline).
 * Its features without an extension of that name allow nothing. */
void isa_rules_allowed(const struct isa_rules *r, const struct isa_row *isa, uint64_t ret[EXTENSION_MACHINES]);

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
int dispatch_new(const struct tables *t, const struct extensions *x, struct arena *a, const struct dispatch **ret,
		 struct err *e) MUST_CHECK;
/* dispatch_excuses: the extensions that a function may use because its callers check the processor;
 * 0 if no row fits. *ret_why: of the first that fits, else unchanged. */
uint64_t dispatch_excuses(const struct dispatch *d, enum extension_machine m, const char *library,
			  const struct code_range *r, const char **ret_why);
