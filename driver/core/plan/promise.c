#include "core/plan/plan.h"

/* "128" for "12.8". */
static const struct toolkit_row *toolkit_of(const struct tables *t, const char *digits, struct arena *a)
{
	for (unsigned i = 0; i < t->toolkits_count; i++) {
		struct strlist parts = {0};
		strlist_split(&parts, a, t->toolkits[i].version, ".");
		if (strcmp(strlist_join(&parts, a, ""), digits) == 0)
			return &t->toolkits[i];
	}
	return NULL;
}

/* How many pieces at `from` spell the name, as labels spell it: split at '_' and '.'. 0: they do not. */
static size_t spells(const struct strlist *pieces, size_t from, const char *name, struct arena *a)
{
	struct strlist words = {0};
	strlist_split(&words, a, name, "_-+.");
	if (words.count > pieces->count - from)
		return 0;
	for (size_t i = 0; i < words.count; i++) {
		if (strcmp(words.items[i], pieces->items[from + i]) != 0)
			return 0;
	}
	return words.count;
}

/* The row whose name is the longest to stand there. */
static const struct isa_row *isa_of(const struct tables *t, const struct strlist *pieces, size_t from, struct arena *a)
{
	const struct isa_row *found = NULL;
	size_t longest = 0;
	for (unsigned i = 0; i < t->isas_count; i++) {
		size_t n = spells(pieces, from, t->isas[i].name, a);
		if (n > longest) {
			longest = n;
			found = &t->isas[i];
		}
	}
	return found;
}

void promise_of_profile(const struct profile *p, const char *cuda, const char *from, struct arena *a,
			struct promise *ret)
{
	*ret = (struct promise){
		.from = from, .binding = true, .platform = p->platform, .isa = p->isa, .gpu_known = true, .cuda = cuda};
	for (unsigned i = 0; i < p->targets_count; i++)
		strlist_ref(&ret->gpu, a, buildenv_capability(&p->targets[i], a));
}

void promise_of_plan(const struct plan *p, struct arena *a, struct promise *ret)
{
	/* Code that ptbuild did not compile promises nothing: what it uses is found, and told. */
	*ret = (struct promise){.from = arena_printf(a, "the plan of '%s'", p->variant),
				.binding = !p->taken,
				.platform = p->platform,
				.isa = p->isa_row,
				.gpu_known = true,
				.gpu = p->gpu,
				.cuda = p->cuda};
}

void promise_of_label(const struct tables *t, const char *label, struct arena *a, struct promise *ret)
{
	const char *from = *label ? arena_printf(a, "its label '%s'", label) : "no label";
	struct strlist pieces = {0}, gpu = {0};
	const struct toolkit_row *toolkit = NULL;
	struct profile p;
	size_t i = 1;
	*ret = (struct promise){.from = from, .platform = ""};
	strlist_split(&pieces, a, label, ".");
	if (pieces.count && strncmp(pieces.items[0], "cu", 2) == 0)
		toolkit = toolkit_of(t, pieces.items[0] + 2, a);
	if (toolkit)
		ret->cuda = toolkit->version;
	if (pieces.count < 2)
		return;
	for (; toolkit && i < pieces.count &&
	       (strncmp(pieces.items[i], "sm", 2) == 0 || strcmp(pieces.items[i], "ptx") == 0);
	     i++)
		strlist_ref(&gpu, a, pieces.items[i]);
	if (!toolkit && strcmp(pieces.items[0], "cpu") != 0)
		return;
	const struct isa_row *isa = i < pieces.count ? isa_of(t, &pieces, i, a) : NULL;
	const bool cut = toolkit && gpu.count && i == pieces.count;
	if (!cut && (!isa || (toolkit && gpu.count == 0)))
		return;
	const char *name =
		arena_printf(a, "%s-%s", toolkit ? strlist_join(&gpu, a, "+") : "cpu", cut ? "avx2" : isa->name);
	if (profile_parse(t, name, a, &p, ERR_IGNORED) < 0)
		return;
	promise_of_profile(&p, toolkit ? toolkit->version : NULL, from, a, ret);
	if (cut) {
		ret->binding = false;
		ret->platform = "";
		ret->isa = NULL;
	}
}
