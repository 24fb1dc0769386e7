#include "step/verify/verify_parts.h"

#include <inttypes.h>

#include "core/elf/elf.h"

/* *above: the extensions used, less the excused ones. */
static enum isa_class judge(const struct isa_found *f, const struct isa_rules *rules,
			    enum extension_machine m, const char *library, uint64_t *above,
			    const char **why)
{
	const struct code_range *r = f->range;
	const bool init = (r->flags & (CODE_INIT | CODE_INIT_PART)) && !(r->flags & CODE_ASKED);

	if (init && (r->flags & CODE_DECLARED) && f->tally.above)
		return ISA_INIT;
	uint64_t excused = r->flags & CODE_DISPATCHED
				   ? UINT64_MAX
				   : dispatch_excuses(rules->dispatch, m, library, r, why);
	if (r->flags & CODE_DISPATCHED)
		*why = "chosen by an indirect function's resolver";
	if (!(*above & ~excused))
		return ISA_DISPATCHED;
	*above &= ~excused;
	/* Behind unknown bytes, and where no function is declared, data may look like code. */
	if (!(f->tally.above & ~excused) || !r->name || !(r->flags & CODE_DECLARED))
		return ISA_UNNAMED;
	return r->flags & CODE_WEAK ? ISA_COMDAT : ISA_PLAIN;
}

/* "'f(int)' of a.cpp uses avx2 (7 instructions, the first is vpaddd at 0x1234)";
 * of what has no name the first alone, and of what is chosen at run time by what. */
static const char *line_of(enum isa_class class, const struct isa_found *f, const char *extensions,
			   const char *why, struct arena *a)
{
	const struct code_range *r = f->range;
	const char *first = arena_printf(a, "%s at 0x%" PRIx64, f->tally.mnemonic, f->tally.first);

	if (class == ISA_DISPATCHED || class == ISA_UNNAMED)
		return class == ISA_DISPATCHED ? why : first;
	const char *name =
		r->name ? arena_printf(a, "'%s'", demangle(r->name, a)) : "without a name";
	return arena_printf(a, "%s%s%s uses %s (%" PRIu64 " instruction%s, the first is %s)", name,
			    r->unit ? " of " : "", r->unit ? r->unit : "", extensions,
			    f->tally.count, f->tally.count == 1 ? "" : "s", first);
}

int verify_isa_scan(struct verifying *v, struct verify_member *member, struct elf_map *m,
		    struct arena *a, struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	const struct isa_rules *rules = v->q->code;
	const char *library = path_base(member->entry->name);
	struct library_isa *l = arena_alloc(a, sizeof(*l));
	struct isa_scan s;
	const bool known = isa_scan_machine(m->header.e_machine, &s.machine);

	if (!known && !member->elf.dynamic)
		return 0;
	member->isa = l;
	if (!known) {
		l->why_not = arena_printf(a, "is for ELF machine %u, whose code is not examined",
					  m->header.e_machine);
		return 0;
	}

	if (isa_scan_file(m,
			  &(struct isa_scan_request){rules->decoders, v->allowed, &v->idle, v->run,
						     &scratch},
			  &s, e) < 0) {
		if (e->kind != ERR_INTEGRITY)
			return -1;
		l->why_not = arena_printf(a, "its code cannot be examined: %s", e->msg);
		err_clear(e);
		return 0;
	}

	l->scan = s;
	l->scan.found = NULL;
	l->scan.map = (struct code_map){0};
	for (size_t i = 0; i < s.count; i++) {
		uint64_t above = s.found[i].tally.above | s.found[i].tally.doubtful;
		const char *why = "";
		enum isa_class class = judge(&s.found[i], rules, s.machine, library, &above, &why);
		struct isa_findings *g = &l->groups[class];
		g->above |= above;
		if (g->count < ISA_LINES_MAX)
			g->lines[g->count] = line_of(
				class, &s.found[i],
				extensions_text(rules->extensions, s.machine, above, a), why, a);
		g->count++;
	}

	return 0;
}

static const struct {
	enum verify_rule_id rule;
	const char *what, *sense;
} classes[ISA_CLASSES] = {
	[ISA_INIT] = {RULE_ISA_INIT, "the static initialiser",
		      ", and nothing checks the processor before it runs"},
	[ISA_COMDAT] = {RULE_ISA_COMDAT, "the function", " in the one copy that all units share"},
	[ISA_PLAIN] = {RULE_ISA, "the function", ""},
};

/* One finding a function if something was promised, else one in all. */
static void report(struct verifying *v, const char *file, const struct isa_findings *g,
		   enum isa_class class, const char *promise)
{
	bool binding = v->report.promise.binding;
	enum finding_level level = binding ? FINDING_ERROR : FINDING_NOTE;
	size_t max = binding ? ISA_LINES_MAX : 1, shown = g->count < max ? g->count : max;
	const char *more =
		binding ? ""
			: verify_more(v, &(struct verify_some){.count = g->count}, "functions");

	for (size_t i = 0; i < shown; i++)
		verify_add(v, level, classes[class].rule, file, "%s %s beyond %s%s%s",
			   classes[class].what, g->lines[i], promise, classes[class].sense, more);
	if (binding && g->count > shown)
		verify_add(v, level, classes[class].rule, file, "%zu more functions like these",
			   g->count - shown);
}

static const char *all_of(struct verifying *v, const struct library_isa *l,
			  const struct isa_findings *g)
{
	return extensions_text(v->q->code->extensions, l->scan.machine, g->above, v->a);
}

static void report_library(struct verifying *v, const char *file, const struct library_isa *l,
			   const char *promise)
{
	const struct isa_findings *unnamed = &l->groups[ISA_UNNAMED],
				  *dispatched = &l->groups[ISA_DISPATCHED];

	for (unsigned c = ISA_INIT; c <= ISA_PLAIN; c++)
		report(v, file, &l->groups[c], (enum isa_class)c, promise);
	enum finding_level level = v->report.promise.binding ? FINDING_WARNING : FINDING_NOTE;
	if (unnamed->count)
		verify_add(v, level, RULE_ISA_UNNAMED, file,
			   "%zu function%s without a name or an end use%s %s beyond %s (the first "
			   "has %s); their callers "
			   "are not known",
			   unnamed->count, plural(unnamed->count), unnamed->count == 1 ? "s" : "",
			   all_of(v, l, unnamed), promise, unnamed->lines[0]);
	if (dispatched->count)
		verify_add(v, FINDING_NOTE, RULE_ISA_DISPATCHED, file,
			   "%zu function%s use%s %s where the processor has it: %s",
			   dispatched->count, plural(dispatched->count),
			   dispatched->count == 1 ? "s" : "", all_of(v, l, dispatched),
			   dispatched->lines[0]);
	if (l->scan.skipped)
		verify_add(v, level, RULE_ISA_UNCHECKED, file,
			   "not examined: %" PRIu64 " bytes at 0x%" PRIx64
			   " and after it, which are tables in the code or unknown instructions",
			   l->scan.skipped, l->scan.first_skipped);
}

/* The level of x86-64 that processors with the promised features have, by one of its own. */
static unsigned promised_level(const struct isa_row *isa)
{
	unsigned level = isa ? 2 : 1;

	for (unsigned i = 0; isa && i < isa->cpuinfo_count; i++)
		level = strcmp(isa->cpuinfo[i], "avx512vl") == 0            ? 4
			: strcmp(isa->cpuinfo[i], "avx2") == 0 && level < 3 ? 3
									    : level;
	return level;
}

void verify_isa(struct verifying *v)
{
	const struct promise *p = &v->report.promise;
	const char *promise = p->isa ? p->isa->name : "the baseline";
	uint64_t beyond = 0;

	for (size_t i = 0; i < v->count; i++) {
		const struct library_isa *l = v->members[i].isa;
		if (!l)
			continue;
		if (v->members[i].elf.level > promised_level(p->isa))
			verify_add(v, p->binding ? FINDING_ERROR : FINDING_WARNING, RULE_ISA,
				   v->members[i].entry->name,
				   "asks for x86-64-v%u, beyond %s: glibc does not load it on a "
				   "processor of less",
				   v->members[i].elf.level, promise);
		if (l->why_not)
			verify_add(v, p->binding ? FINDING_WARNING : FINDING_NOTE,
				   RULE_ISA_UNCHECKED, v->members[i].entry->name, "%s", l->why_not);
		v->report.code_files += !l->why_not;
		v->report.code_bytes += l->scan.bytes;
		v->report.code_functions += p->binding ? l->scan.clean : l->scan.functions;
		if (l->why_not)
			continue;
		if (l->scan.fast_math && !v->members[i].elf.program)
			verify_add(v, FINDING_WARNING, RULE_FAST_MATH, v->members[i].entry->name,
				   "switches subnormal numbers off for the thread that loads it: "
				   "every program that imports it computes with zero instead "
				   "(linked with -ffast-math?)");
		report_library(v, v->members[i].entry->name, l, promise);
		for (unsigned c = ISA_INIT; c <= ISA_PLAIN; c++)
			beyond |= l->groups[c].above;
		if (beyond)
			v->report.code_beyond = extensions_text(v->q->code->extensions,
								l->scan.machine, beyond, v->a);
	}
}
