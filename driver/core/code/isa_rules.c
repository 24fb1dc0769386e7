#include "core/code/code.h"

#include <fnmatch.h>

#include "base/sys/machine.h"

static const char *const machines[EXTENSION_MACHINES] = {
	[EXTENSION_X86_64] = "x86_64", [EXTENSION_AARCH64] = "aarch64"};

struct loading {
	struct extensions *x;
	const struct extension_file *f;
	const char *path;
	enum extension_machine *machines; /* of each row */
	struct arena *a;
	struct err *e; /* what all steps set */
};

/* Names of extensions in a row of the table. */
struct name_list {
	const char *const *items;
	unsigned count;
	unsigned line;
};

static int bad(const struct loading *l, unsigned line, const char *what, const char *subject)
{
	return err_set(l->e, ERR_CONFIG, "%s:%u: %s '%s'", l->path, line, what, subject);
}

uint64_t extensions_bit(const struct extensions *x, enum extension_machine m, const char *name)
{
	for (size_t i = 0; i < x->count[m]; i++) {
		if (strcmp(x->names[m][i], name) == 0)
			return 1ULL << i;
	}

	return 0;
}

/* A list of names as bits. */
static int bits_of(const struct loading *l, enum extension_machine m, struct name_list names,
		   uint64_t *ret)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < names.count; i++) {
		uint64_t bit = extensions_bit(l->x, m, names.items[i]);
		if (!bit)
			return bad(l, names.line, "no extension", names.items[i]);
		bits |= bit;
	}

	*ret = bits;
	return 0;
}

static int name_rows(const struct loading *l)
{
	for (unsigned i = 0; i < l->f->extensions_count; i++) {
		const struct extension_row *row = &l->f->extensions[i];
		unsigned m = 0;
		while (m < EXTENSION_MACHINES && strcmp(machines[m], row->machine) != 0)
			m++;
		if (m == EXTENSION_MACHINES)
			return bad(l, row->line, "unknown machine", row->machine);
		l->machines[i] = (enum extension_machine)m;
		if (extensions_bit(l->x, l->machines[i], row->name))
			return bad(l, row->line, "two rows of one name", row->name);
		if (l->x->count[m] == EXTENSIONS_MAX)
			return bad(l, row->line, "more than 64 extensions of one machine, at",
				   row->name);
		l->x->names[m][l->x->count[m]++] = row->name;
	}

	for (unsigned k = 0; k < EXTENSION_MACHINES; k++) {
		if (l->x->count[k] == 0)
			return err_set(l->e, ERR_CONFIG, "%s: no extension of %s", l->path,
				       machines[k]);
	}

	return 0;
}

/* The implications of the rows, then of these, until nothing is added. */
static int imply_rows(const struct loading *l)
{
	unsigned seen[EXTENSION_MACHINES] = {0};

	for (unsigned i = 0; i < l->f->extensions_count; i++) {
		const struct extension_row *row = &l->f->extensions[i];
		enum extension_machine m = l->machines[i];
		uint64_t bits;
		if (bits_of(l, m, (struct name_list){row->implies, row->implies_count, row->line},
			    &bits) < 0)
			return -1;
		l->x->implied[m][seen[m]] = bits | EXTENSION_BASELINE | 1ULL << seen[m];
		seen[m]++;
	}

	for (unsigned m = 0; m < EXTENSION_MACHINES; m++) {
		for (bool grown = true; grown;) {
			grown = false;
			for (size_t i = 0; i < l->x->count[m]; i++) {
				uint64_t all = extensions_with(l->x, (enum extension_machine)m,
							       l->x->implied[m][i]);
				grown = grown || all != l->x->implied[m][i];
				l->x->implied[m][i] = all;
			}
		}
	}

	return 0;
}

static void add_sets(const struct loading *l, const char *const *sets, unsigned count,
		     uint64_t needs)
{
	for (unsigned i = 0; i < count; i++)
		l->x->sets[l->x->sets_count++] = (struct extension_set){sets[i], needs};
}

static int take_sets(const struct loading *l)
{
	size_t total = 0;
	uint64_t bits;

	for (unsigned i = 0; i < l->f->extensions_count; i++)
		total += l->f->extensions[i].sets_count;
	for (unsigned i = 0; i < l->f->combined_count; i++)
		total += l->f->combined[i].sets_count;
	l->x->sets = arena_array(l->a, total, sizeof(*l->x->sets));
	for (unsigned i = 0; i < l->f->extensions_count; i++) {
		const struct extension_row *row = &l->f->extensions[i];
		enum extension_machine m = l->machines[i];
		if (m != EXTENSION_X86_64 && row->sets_count)
			return bad(l, row->line, "only x86_64 has sets, not", row->name);
		add_sets(l, row->sets, row->sets_count, extensions_bit(l->x, m, row->name));
	}

	for (unsigned i = 0; i < l->f->combined_count; i++) {
		const struct combined_row *row = &l->f->combined[i];
		if (bits_of(l, EXTENSION_X86_64,
			    (struct name_list){row->needs, row->needs_count, row->line}, &bits) < 0)
			return -1;
		add_sets(l, row->sets, row->sets_count, bits);
	}

	for (size_t i = 0; i < total; i++) {
		for (size_t k = 0; k < i; k++) {
			if (strcmp(l->x->sets[i].name, l->x->sets[k].name) == 0)
				return err_set(l->e, ERR_CONFIG, "%s: the set '%s' is in two rows",
					       l->path, l->x->sets[i].name);
		}
	}

	return 0;
}

static bool parse_word(const char *text, uint32_t *ret)
{
	char *end;

	errno = 0;
	unsigned long long v = strtoull(text, &end, 16);
	*ret = (uint32_t)v;
	if (strncmp(text, "0x", 2) != 0 || strlen(text) != 10)
		return false;
	return *end == '\0' && errno == 0 && v <= UINT32_MAX;
}

static int take_instructions(const struct loading *l)
{
	struct extensions *x = l->x;

	x->specials = arena_array(l->a, l->f->instructions_count, sizeof(*x->specials));
	for (unsigned i = 0; i < l->f->instructions_count; i++) {
		const struct instruction_row *row = &l->f->instructions[i];
		struct extension_special *s = &x->specials[x->specials_count++];
		s->mnemonic = row->mnemonic;
		if (bits_of(l, EXTENSION_X86_64,
			    (struct name_list){row->needs, row->needs_count, row->line},
			    &s->needs) < 0)
			return -1;
	}

	x->encodings = arena_array(l->a, l->f->encodings_count, sizeof(*x->encodings));
	for (unsigned i = 0; i < l->f->encodings_count; i++) {
		const struct encoding_row *row = &l->f->encodings[i];
		struct extension_encoding *c = &x->encodings[x->encodings_count++];
		c->what = row->what;
		if (!parse_word(row->mask, &c->mask) || !parse_word(row->value, &c->value))
			return bad(l, row->line, "not eight hexadecimal digits after 0x:",
				   parse_word(row->mask, &c->mask) ? row->value : row->mask);
		if (c->value & ~c->mask)
			return bad(l, row->line, "the mask hides bits of the value", row->value);
		if (bits_of(l, EXTENSION_AARCH64,
			    (struct name_list){row->needs, row->needs_count, row->line},
			    &c->needs) < 0)
			return -1;
	}

	return 0;
}

int extensions_new(const struct tables *t, struct arena *a, const struct extensions **ret,
		   struct err *e)
{
	struct extensions *x = arena_alloc(a, sizeof(*x));
	struct loading l = {.x = x,
			    .f = &t->extensions,
			    .path = path_join(a, t->dir, "extensions.yaml"),
			    .a = a,
			    .e = e};

	l.machines = arena_array(a, l.f->extensions_count, sizeof(*l.machines));
	if (name_rows(&l) < 0 || imply_rows(&l) < 0 || take_sets(&l) < 0 ||
	    take_instructions(&l) < 0)
		return -1;
	*ret = x;
	return 0;
}

uint64_t extensions_with(const struct extensions *x, enum extension_machine m, uint64_t bits)
{
	uint64_t all = bits | EXTENSION_BASELINE;

	for (size_t i = 0; i < x->count[m]; i++) {
		if (bits & 1ULL << i)
			all |= x->implied[m][i];
	}

	return all;
}

char *extensions_text(const struct extensions *x, enum extension_machine m, uint64_t bits,
		      struct arena *a)
{
	struct strlist names = {0};

	bits &= ~EXTENSION_BASELINE;
	for (size_t i = 0; i < x->count[m]; i++) {
		bool covered = false;
		for (size_t k = 0; k < x->count[m] && !covered; k++) {
			bool by_k = k != i && (bits & 1ULL << k) && (x->implied[m][k] & 1ULL << i);
			/* If two imply each other, name the first. */
			covered = by_k && (k < i || !(x->implied[m][i] & 1ULL << k));
		}

		if ((bits & 1ULL << i) && !covered)
			strlist_ref(&names, a, x->names[m][i]);
	}

	return strlist_join(&names, a, ", ");
}

uint64_t extensions_of_set(const struct extensions *x, const char *set)
{
	for (size_t i = 0; i < x->sets_count; i++) {
		if (strcmp(x->sets[i].name, set) == 0)
			return x->sets[i].needs;
	}

	return 0;
}

/* A name may be of either machine, or of both. */
static int take_extensions(const struct extensions *x, const struct family_row *f,
			   const char *where, struct dispatch_row *row, struct err *e)
{
	for (unsigned i = 0; i < f->extensions_count; i++) {
		bool any = strcmp(f->extensions[i], "any") == 0, found = any;
		for (unsigned m = 0; m < EXTENSION_MACHINES; m++) {
			uint64_t bit =
				extensions_bit(x, (enum extension_machine)m, f->extensions[i]);
			row->extensions[m] |=
				any ? UINT64_MAX
				    : extensions_with(x, (enum extension_machine)m, bit);
			found = found || bit;
		}

		if (!found)
			return err_set(e, ERR_CONFIG, "%s: no extension '%s'", where,
				       f->extensions[i]);
	}

	return 0;
}

int dispatch_new(const struct tables *t, const struct extensions *x, struct arena *a,
		 const struct dispatch **ret, struct err *e)
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
			return err_set(e, ERR_CONFIG,
				       "%s: 'carries' is about names, but there is no 'symbol'",
				       where);
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

int isa_rules_new(const struct tables *t, struct arena *a, const struct isa_rules **ret,
		  struct err *e)
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

void isa_rules_allowed(const struct isa_rules *r, const struct isa_row *isa,
		       uint64_t ret[EXTENSION_MACHINES])
{
	for (unsigned m = 0; m < EXTENSION_MACHINES; m++)
		ret[m] = EXTENSION_BASELINE;
	if (!isa)
		return;
	enum extension_machine m =
		machine_is_arm(isa->platform) ? EXTENSION_AARCH64 : EXTENSION_X86_64;
	for (unsigned i = 0; i < isa->cpuinfo_count; i++)
		ret[m] |= extensions_with(r->extensions, m,
					  extensions_bit(r->extensions, m, isa->cpuinfo[i]));
}
