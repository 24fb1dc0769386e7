/* On which machines a wheel runs, by what is in it. */
#include "core/plan/runs_on.h"
#include "step/verify/verify_parts.h"

/* Libraries of which a program loads one: those that are equal but for a CUDA version in their names. */
struct group {
	const char *stem;
	struct strlist targets; /* "90a", "120+PTX": of any of them */
};

/* "liba_cuda126.so" and "liba_cuda130.so" as "liba_.so": without "cuda126" or "cu12" after an underscore or dash. */
static const char *stem_of(const char *name, struct arena *a)
{
	static const char *const words[] = {"cuda", "cu"};
	for (const char *at = name; (at = strpbrk(at, "_-")); at++)
		for (size_t i = 0; i < ARRAY_LEN(words); i++) {
			const size_t n = strlen(words[i]), digits = strspn(at + 1 + n, "0123456789");
			if (strncmp(at + 1, words[i], n) == 0 && digits)
				return arena_printf(a, "%.*s%s", (int)(at - name), name, at + 1 + n + digits);
		}
	return name;
}

static struct group *group_of(struct group *groups, size_t *count, const char *stem)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(groups[i].stem, stem) == 0)
			return &groups[i];
	groups[*count] = (struct group){.stem = stem};
	return &groups[(*count)++];
}

static size_t read_groups(const struct verifying *v, struct group *groups)
{
	const struct verify_report *r = &v->report;
	size_t count = 0;
	for (size_t k = 0; k < r->gpu_count; k++) {
		struct group *g = group_of(groups, &count, stem_of(r->gpu[k].file, v->a));
		for (size_t i = 0; i < r->gpu[k].count; i++) {
			const struct fatbin_count *c = &r->gpu[k].code[i];
			if (c->kind == FATBIN_CUBIN || c->kind == FATBIN_PTX)
				strlist_once(
					&g->targets, v->a,
					arena_printf(v->a, "%s%s", c->target, c->kind == FATBIN_PTX ? "+PTX" : ""));
		}
	}
	return count;
}

static bool all_have(const struct group *groups, size_t count, const char *target)
{
	for (size_t i = 0; i < count; i++)
		if (!strlist_contains(&groups[i].targets, target))
			return false;
	return true;
}

/* The targets that every library has, alternatives counted as one. Where there is no such target, the libraries are
 * families, one for each generation of GPUs: then all targets. */
static void find_targets(const struct verifying *v, struct strlist *ret)
{
	struct group *groups = arena_array(v->a, v->report.gpu_count + 1, sizeof(*groups));
	const size_t count = read_groups(v, groups);
	struct strlist any = {0};
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < groups[i].targets.count; k++) {
			const char *target = groups[i].targets.items[k];
			strlist_once(&any, v->a, target);
			if (all_have(groups, count, target))
				strlist_once(ret, v->a, target);
		}
	if (!ret->count)
		*ret = any;
}

const char *verify_needed_cuda(const struct verifying *v)
{
	static const char runtime[] = "libcudart.so.";
	for (size_t i = 0; i < v->count; i++)
		for (size_t k = 0; k < v->members[i].elf.needed.count; k++) {
			const char *name = v->members[i].elf.needed.items[k];
			if (strncmp(name, runtime, strlen(runtime)) == 0)
				return arena_strdup(v->a, name + strlen(runtime));
		}
	return NULL;
}

void verify_machines(struct verifying *v)
{
	struct verify_report *r = &v->report;
	struct strlist targets = {0};
	if (!v->q->tables || !v->named)
		return;
	find_targets(v, &targets);
	/* The table's first row covers all older ones. */
	const char *tag = r->tag;
	if (strcmp(tag, "manylinux_2_17_x86_64") == 0)
		tag = arena_printf(v->a, "manylinux_2_%u_x86_64", v->glibc > 5 ? v->glibc : 5);
	runs_on_of_wheel(v->q->tables, &r->name, tag, &r->promise, &targets, r->requires_torch, v->a, &r->runs_on);
	r->runs_on.requires_python = v->requires_python;
	if (v->cuda && !*r->runs_on.cuda)
		runs_on_set_cuda(v->q->tables, v->cuda, &r->runs_on);
}
