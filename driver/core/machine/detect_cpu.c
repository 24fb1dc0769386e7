/* Which instruction sets run, and which of them to take. */
#include <string.h>

#include "core/machine/detect_parts.h"

struct processors {
	const struct processor_row *const *rows;
	size_t count;
};

/* The processor whose row says not to build for a feature. */
static const struct processor_row *distrusted(const struct processors *p, const char *feature)
{
	for (size_t i = 0; i < p->count; i++)
		if (strings_contain(p->rows[i]->distrust, p->rows[i]->distrust_count, feature))
			return p->rows[i];
	return NULL;
}

/* NULL if the machine has every feature of the row and those that compilers imply by it. */
static const char *why_not(const struct detecting *c, const struct isa_row *row, const struct processors *p)
{
	struct strlist needs = {0}, missing = {0};
	const char *first = NULL;
	hardware_closure(c->f, row->cpuinfo, row->cpuinfo_count, c->a, &needs);
	for (size_t i = 0; i < needs.count; i++) {
		const char *why = hardware_missing(c->f, c->h, needs.items[i], c->a);
		if (!why)
			continue;
		strlist_ref(&missing, c->a, needs.items[i]);
		first = first ? first : why;
	}
	if (missing.count)
		return arena_printf(c->a, "%s: %s", strlist_join(&missing, c->a, " "), first);
	for (size_t i = 0; i < needs.count; i++) {
		const struct processor_row *r = distrusted(p, needs.items[i]);
		if (r)
			return arena_printf(c->a, "%s: %s", needs.items[i], *r->note ? r->note : r->name);
	}
	return NULL;
}

static void explain_processor(struct detecting *c, const struct processors *p)
{
	struct strlist names = {0};
	for (size_t i = 0; i < p->count; i++)
		strlist_ref(&names, c->a, p->rows[i]->name);
	const char *kind = strlist_join(&names, c->a, " and ");
	const char *name = c->h->cpu.name;
	if (*name || *kind)
		strlist_addf(&c->d->reasons, c->a, "the processor is %s%s%s%s", *name ? name : kind,
			     *name && *kind ? " (" : "", *name ? kind : "", *name && *kind ? ")" : "");
	for (size_t i = 0; i < p->count; i++)
		if (*p->rows[i]->note && !p->rows[i]->distrust_count)
			strlist_ref(&c->d->reasons, c->a, p->rows[i]->note);
}

/* Whether a row that runs is made for the workload. */
static bool is_served(const struct detecting *c)
{
	for (size_t i = 0; i < c->d->isa_count; i++)
		if (!c->d->isas[i].missing &&
		    strings_contain(c->d->isas[i].row->workloads, c->d->isas[i].row->workloads_count, c->workload))
			return true;
	return false;
}

/* Why not the next better row, nor the one for the workload. */
static void explain_refused(struct detecting *c, const struct isa_row *best)
{
	bool said = false;
	for (size_t i = 0; i < c->d->isa_count; i++) {
		const struct isa_row *row = c->d->isas[i].row;
		bool better = row->rank > best->rank || (row->rank == best->rank && row > best);
		bool asked = strings_contain(row->workloads, row->workloads_count, c->workload);
		if (!c->d->isas[i].missing || !better || (said && !asked))
			continue;
		strlist_addf(&c->d->reasons, c->a, "not %s: %s", row->name, c->d->isas[i].missing);
		said = true;
	}
}

static void explain_choice(struct detecting *c, const struct isa_row *best)
{
	struct detected *d = c->d;
	if (!best) {
		strlist_addf(&d->reasons, c->a, "no instruction set in the tables runs here%s%s",
			     d->isa_count ? "; " : "",
			     d->isa_count ? arena_printf(c->a, "the lowest, %s, lacks %s", d->isas[0].row->name,
							 d->isas[0].missing)
					  : "");
		return;
	}
	struct strlist needs = {0};
	for (unsigned i = 0; i < best->cpuinfo_count; i++)
		strlist_ref(&needs, c->a, best->cpuinfo[i]);
	strlist_addf(&d->reasons, c->a, "%s: the processor has %s", best->name, strlist_join(&needs, c->a, " "));
	explain_refused(c, best);
	bool asked = strcmp(c->workload, "general") != 0 && strcmp(c->workload, "training") != 0;
	if (asked && !is_served(c))
		strlist_addf(&d->reasons, c->a,
			     "no instruction set that runs here is meant for %s: this is the one for general use",
			     c->workload);
	if (strcmp(c->workload, "training") == 0)
		strlist_ref(&d->reasons, c->a,
			    "training uses float32 on a CPU and any type on a GPU; for bfloat16 on the CPU use "
			    "--workload bf16");
}

void detect_cpu(struct detecting *c)
{
	struct detected *d = c->d;
	struct processors p = {0};
	const struct isa_row *best = NULL;
	p.count = hardware_processors(c->f, &c->h->cpu, c->a, &p.rows);
	d->isas = arena_array(c->a, c->t->isas_count, sizeof(*d->isas));
	for (unsigned i = 0; i < c->t->isas_count; i++) {
		const struct isa_row *row = &c->t->isas[i];
		if (strcmp(row->platform, c->h->platform) != 0)
			continue;
		const char *missing = why_not(c, row, &p);
		d->isas[d->isa_count++] = (struct detect_isa){row, missing};
		bool wanted =
			row->workloads_count == 0 || strings_contain(row->workloads, row->workloads_count, c->workload);
		if (!missing && wanted && (!best || row->rank >= best->rank))
			best = row;
	}
	d->isa = best ? best->name : NULL;
	explain_processor(c, &p);
	explain_choice(c, best);
}
