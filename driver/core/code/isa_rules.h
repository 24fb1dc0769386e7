/* Everything that code is judged by: extensions, families, decoders. */
#pragma once
#include "core/code/dispatch.h"
#include "core/code/isa_scan.h"
#include "core/tables/rows.h"

struct isa_rules {
	const struct extensions *extensions;
	const struct dispatch *dispatch;
	const struct decoder *decoders[EXTENSION_MACHINES];
};

/* isa_rules_load: extensions.yaml and dispatch.yaml of `dir`. */
int isa_rules_load(const char *dir, struct arena *a, const struct isa_rules **ret, struct err *e) MUST_CHECK;
/* isa_rules_allowed: what a wheel of this instruction set may use anywhere (NULL: the baseline),
 * per machine. Features that no extension is called by count for nothing: they allow no
 * instruction. */
void isa_rules_allowed(const struct isa_rules *r, const struct isa_row *isa, uint64_t ret[EXTENSION_MACHINES]);
