#include "step/verify/verify_isa.h"

#include <inttypes.h>
#include <string.h>

#include "core/elf/demangle.h"
#include "step/verify/verify_parts.h"

static bool is_init(const struct code_range *r)
{
	return (r->flags & (CODE_INIT | CODE_INIT_PART)) && (r->flags & CODE_DECLARED);
}

/* What it means that this function uses these extensions; *above loses those that are excused. */
static enum isa_class judge(const struct isa_found *f, const struct isa_rules *rules, enum extension_machine m,
			    const char *library, uint64_t *above, const char **why)
{
	const struct code_range *r = f->range;
	if (is_init(r) && f->tally.above)
		return ISA_INIT;
	uint64_t excused =
		r->flags & CODE_DISPATCHED ? UINT64_MAX : dispatch_excuses(rules->dispatch, m, library, r, why);
	if (r->flags & CODE_DISPATCHED)
		*why = "chosen by an indirect function's resolver";
	if (!(*above & ~excused))
		return ISA_DISPATCHED;
	*above &= ~excused;
	/* Behind bytes that are no instruction, or where nobody says that a function is, data may look like code. */
	if (!(f->tally.above & ~excused) || !r->name || !(r->flags & CODE_DECLARED))
		return ISA_UNNAMED;
	return r->flags & CODE_WEAK ? ISA_COMDAT : ISA_PLAIN;
}

static void add_found(const struct isa_found *f, const struct isa_rules *rules, const char *library, struct arena *a,
		      struct library_isa *l)
{
	uint64_t above = f->tally.above | f->tally.doubtful;
	const char *why = "";
	enum isa_class class = judge(f, rules, l->machine, library, &above, &why);
	struct isa_findings *g = &l->groups[class];
	g->above |= above;
	if (g->count < ISA_LINES_MAX) {
		g->lines[g->count] = (struct isa_line){
			.symbol = f->range->name ? demangle(f->range->name, a) : "",
			.unit = f->range->unit ? arena_strdup(a, f->range->unit) : "",
			.extensions = extensions_text(rules->extensions, l->machine, above, a),
			.mnemonic = arena_strdup(a, f->tally.mnemonic),
			.why = why,
			.first = f->tally.first,
			.count = f->tally.count,
		};
	}
	g->count++;
}

int verify_isa_scan(const char *path, const char *library, const struct isa_rules *rules,
		    const uint64_t allowed[EXTENSION_MACHINES], struct isa_spare *spare, const struct run *run,
		    struct arena *a, struct library_isa **ret, struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	AUTO_ELF_MAP struct elf_map m;
	struct library_isa *l = arena_alloc(a, sizeof(*l));
	struct isa_scan s;
	if (elf_map_open(path, &m, e) < 0)
		return -1;
	if (!isa_scan_machine(m.header.e_machine, &l->machine)) {
		l->why_not =
			arena_printf(a, "is for the ELF machine %u, whose code is not examined", m.header.e_machine);
		*ret = l;
		return 0;
	}
	if (isa_scan_file(&m, rules->decoders, allowed, spare, run, &scratch, &s, e) < 0) {
		if (e->kind != ERR_INTEGRITY)
			return -1;
		l->why_not = arena_printf(a, "its code cannot be examined: %s", e->msg);
		err_clear(e);
		*ret = l;
		return 0;
	}
	l->examined = true;
	l->bytes = s.bytes;
	l->functions = s.functions;
	l->unknown = s.unknown;
	for (size_t i = 0; i < s.count; i++)
		add_found(&s.found[i], rules, library, a, l);
	*ret = l;
	return 0;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* "uses avx2 (7 instructions, the first vpaddd at 0x1234)". */
static const char *usage(struct verifying *v, const struct isa_line *l)
{
	return arena_printf(v->a, "uses %s (%" PRIu64 " instruction%s, the first is %s at 0x%" PRIx64 ")",
			    l->extensions, l->count, l->count == 1 ? "" : "s", l->mnemonic, l->first);
}

static const char *subject(struct verifying *v, const struct isa_line *l)
{
	const char *name = *l->symbol ? arena_printf(v->a, "'%s'", l->symbol) : "without a name";
	return *l->unit ? arena_printf(v->a, "%s of %s", name, l->unit) : name;
}

static const struct {
	const char *rule, *what, *sense;
} classes[ISA_CLASSES] = {
	[ISA_INIT] = {"isa-init", "the static initialiser", ", and nothing looks at the processor before it runs"},
	[ISA_COMDAT] = {"isa-comdat", "the function", " in the one copy that all units share"},
	[ISA_PLAIN] = {"isa", "the function", ""},
};

/* One by one where something was promised, else in one line. */
static void tell(struct verifying *v, const char *file, const struct isa_findings *g, enum isa_class class,
		 const char *promise)
{
	const char *rule = classes[class].rule, *what = classes[class].what;
	size_t shown = v->report.promise.binding ? g->count : g->count ? 1 : 0;
	enum finding_level level = v->report.promise.binding ? FINDING_ERROR : FINDING_NOTE;
	shown = shown < ISA_LINES_MAX ? shown : ISA_LINES_MAX;
	for (size_t i = 0; i < shown; i++) {
		const struct isa_line *l = &g->lines[i];
		const char *more = !v->report.promise.binding && g->count > 1
					   ? arena_printf(v->a, "; it is the first of %zu such functions", g->count)
					   : "";
		verify_add(v, level, rule, file, "%s %s %s beyond %s%s%s", what, subject(v, l), usage(v, l), promise,
			   classes[class].sense, more);
	}
	if (v->report.promise.binding && g->count > shown)
		verify_add(v, level, rule, file, "%zu more functions like these", g->count - shown);
}

static const char *all_of(struct verifying *v, const struct library_isa *l, const struct isa_findings *g)
{
	return extensions_text(v->q->code->extensions, l->machine, g->above, v->a);
}

static void tell_library(struct verifying *v, const char *file, const struct library_isa *l, const char *promise)
{
	const struct isa_findings *unnamed = &l->groups[ISA_UNNAMED], *dispatched = &l->groups[ISA_DISPATCHED];
	for (unsigned c = ISA_INIT; c <= ISA_PLAIN; c++)
		tell(v, file, &l->groups[c], (enum isa_class)c, promise);
	if (unnamed->count)
		verify_add(v, v->report.promise.binding ? FINDING_WARNING : FINDING_NOTE, "isa-unnamed", file,
			   "%zu function%s that nothing names use%s %s beyond %s (the first has %s at 0x%" PRIx64
			   "); who calls them cannot be told",
			   unnamed->count, plural(unnamed->count), unnamed->count == 1 ? "s" : "",
			   all_of(v, l, unnamed), promise, unnamed->lines[0].mnemonic, unnamed->lines[0].first);
	if (dispatched->count)
		verify_add(v, FINDING_NOTE, "isa-dispatched", file,
			   "%zu function%s use%s %s where the processor has it: %s", dispatched->count,
			   plural(dispatched->count), dispatched->count == 1 ? "s" : "", all_of(v, l, dispatched),
			   dispatched->lines[0].why);
	if (l->unknown)
		verify_add(v, FINDING_NOTE, "isa-unchecked", file,
			   "%zu function%s hold%s bytes that are no known instruction", l->unknown, plural(l->unknown),
			   l->unknown == 1 ? "s" : "");
}

void verify_isa(struct verifying *v)
{
	const struct promise *p = &v->report.promise;
	const char *promise = p->isa ? p->isa->name : "the baseline";
	for (size_t i = 0; i < v->count; i++) {
		const struct library_isa *l = v->members[i].isa;
		if (!l)
			continue;
		if (l->why_not)
			verify_add(v, p->binding ? FINDING_WARNING : FINDING_NOTE, "isa-unchecked",
				   v->members[i].entry->name, "%s", l->why_not);
		v->report.code_files += l->examined;
		v->report.code_bytes += l->bytes;
		v->report.code_functions += l->functions;
		if (l->examined)
			tell_library(v, v->members[i].entry->name, l, promise);
	}
}
