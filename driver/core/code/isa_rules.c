#include "core/code/isa_rules.h"

#include <string.h>

#include "base/path.h"

int isa_rules_new(const struct tables *t, struct arena *a, const struct isa_rules **ret, struct err *e)
{
	struct isa_rules *r = arena_alloc(a, sizeof(*r));
	if (extensions_new(t, a, &r->extensions, e) < 0 ||
	    decoder_check(r->extensions, path_join(a, t->dir, "extensions.yaml"), e) < 0 ||
	    dispatch_new(t, r->extensions, a, &r->dispatch, e) < 0)
		return -1;
	for (unsigned m = 0; m < EXTENSION_MACHINES; m++)
		r->decoders[m] = decoder_new(r->extensions, (enum extension_machine)m, a);
	*ret = r;
	return 0;
}

void isa_rules_allowed(const struct isa_rules *r, const struct isa_row *isa, uint64_t ret[EXTENSION_MACHINES])
{
	for (unsigned m = 0; m < EXTENSION_MACHINES; m++)
		ret[m] = EXTENSION_BASELINE;
	if (!isa)
		return;
	enum extension_machine m = strncmp(isa->platform, "aarch64", 7) == 0 ? EXTENSION_AARCH64 : EXTENSION_X86_64;
	for (unsigned i = 0; i < isa->cpuinfo_count; i++)
		ret[m] |= extensions_with(r->extensions, m, extensions_bit(r->extensions, m, isa->cpuinfo[i]));
}
