#include "core/code/code.h"

#include <fnmatch.h>

/* A name may be of either machine, or of both. */
static int take_extensions(const struct extensions *x, const struct family_row *f, const char *where,
			   struct dispatch_row *row, struct err *e)
{
	for (unsigned i = 0; i < f->extensions_count; i++) {
		bool any = strcmp(f->extensions[i], "any") == 0, found = any;
		for (unsigned m = 0; m < EXTENSION_MACHINES; m++) {
			uint64_t bit = extensions_bit(x, (enum extension_machine)m, f->extensions[i]);
			row->extensions[m] |= any ? UINT64_MAX : extensions_with(x, (enum extension_machine)m, bit);
			found = found || bit;
		}
		if (!found)
			return err_set(e, ERR_CONFIG, "%s: no extension '%s'", where, f->extensions[i]);
	}
	return 0;
}

int dispatch_new(const struct tables *t, const struct extensions *x, struct arena *a, const struct dispatch **ret,
		 struct err *e)
{
	const char *path = path_join(a, t->dir, "dispatch.yaml");
	const struct dispatch_file *f = &t->dispatch;
	struct dispatch *d = arena_alloc(a, sizeof(*d));
	d->rows = arena_array(a, f->families_count, sizeof(*d->rows));
	for (unsigned i = 0; i < f->families_count; i++) {
		const struct family_row *from = &f->families[i];
		struct dispatch_row *row = &d->rows[d->count++];
		const char *where = arena_printf(a, "%s:%u", path, from->line);
		row->family = from;
		if (from->carries && !*from->symbol)
			return err_set(e, ERR_CONFIG, "%s: 'carries' is about names, but there is no 'symbol'", where);
		if (take_extensions(x, from, where, row, e) < 0)
			return -1;
	}
	*ret = d;
	return 0;
}

static bool fits(const struct family_row *row, const char *library, const struct code_range *r)
{
	if ((r->flags & CODE_WEAK) && !row->carries)
		return false;
	if (*row->symbol && (!r->name || fnmatch(row->symbol, r->name, 0) != 0))
		return false;
	if (*row->unit && (!r->unit || fnmatch(row->unit, r->unit, 0) != 0))
		return false;
	return fnmatch(row->library, library, 0) == 0;
}

uint64_t dispatch_excuses(const struct dispatch *d, enum extension_machine m, const char *library,
			  const struct code_range *r, const char **ret_why)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < d->count; i++) {
		if (!fits(d->rows[i].family, library, r))
			continue;
		if (!bits)
			*ret_why = d->rows[i].family->why;
		bits |= d->rows[i].extensions[m];
	}
	return bits;
}

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
