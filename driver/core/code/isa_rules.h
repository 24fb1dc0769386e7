/* What code is judged by. */
#pragma once
#include "core/code/dispatch.h"
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
