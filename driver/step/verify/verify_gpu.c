#include "step/verify/verify_parts.h"

/* "90a" of "9.0a+PTX". */
static char *target_of(const char *capability, struct arena *a)
{
	char *target = arena_strndup(a, capability, strcspn(capability, "+")), *to = target;

	for (const char *from = target; *from; from++)
		if (*from != '.')
			*to++ = *from;
	*to = '\0';
	return target;
}

struct targets {
	struct strlist cubins, ptx; /* promised */
	struct strlist extras;      /* cubins that PyTorch's build adds by itself */
};

static void promised(struct verifying *v, struct targets *ret)
{
	const struct promise *p = &v->report.promise;
	const struct tables *t = v->q->tables;

	for (size_t i = 0; i < p->gpu.count; i++) {
		const char *target = target_of(p->gpu.items[i], v->a);
		strlist_ref(&ret->cubins, v->a, target);
		if (strstr(p->gpu.items[i], "+PTX"))
			strlist_ref(&ret->ptx, v->a, target);
		for (unsigned k = 0;
		     t && strcmp(v->report.name.dist, "torch") == 0 && k < t->gpu_extras_count;
		     k++) {
			const struct gpu_extra_row *row = &t->gpu_extras[k];
			if (strcmp(row->base, target) == 0 &&
			    version_cmp(v->report.name.version, row->since) >= 0)
				strlist_ref(&ret->extras, v->a, row->extra);
		}
	}
}

/* PTX as text is a file of the source's, which no compiler made for the targets. */
static bool is_text(const struct verify_member *m)
{
	return m->kind == ELF_NONE && !m->gpu.containers;
}

static void check_kinds(struct verifying *v, const struct verify_member *m, const struct targets *t)
{
	const struct promise *p = &v->report.promise;

	for (size_t i = 0; i < m->gpu.count; i++) {
		const struct fatbin_count *c = &m->gpu.items[i];
		const char *what = fatbin_kind_name(c->kind, c->number, v->a);
		if (c->kind == FATBIN_OTHER)
			continue;
		if (c->kind == FATBIN_CUBIN && !strlist_contains(&t->cubins, c->target) &&
		    !strlist_contains(&t->extras, c->target))
			verify_add(v, FINDING_ERROR, RULE_GPU_EXTRA, m->entry->name,
				   "has %zu cubin%s for sm_%s, which %s does not declare",
				   c->entries, c->entries == 1 ? "" : "s", c->target, p->from);
		const bool asked = is_text(m) || strlist_contains(&t->ptx, c->target);
		if (c->kind == FATBIN_LTO || (c->kind == FATBIN_PTX && !asked))
			verify_add(v, FINDING_ERROR, RULE_GPU_PTX, m->entry->name,
				   "has %s for sm_%s (%zu), which %s does not declare", what,
				   c->target, c->entries, p->from);
	}
}

/* Kernels that exist only for targets that PyTorch adds. */
static bool only_extras(const struct fatbin_set *s, const struct targets *t)
{
	for (size_t i = 0; i < s->cubins.count; i++)
		if (!strlist_contains(&t->extras, s->cubins.items[i]))
			return false;
	return s->cubins.count > 0;
}

/* A kernel that lacks a promised target fails on that GPU only, so every fat binary is checked. */
static void check_missing(struct verifying *v, const struct verify_member *m,
			  const struct targets *t)
{
	for (size_t i = 0; i < t->cubins.count; i++) {
		size_t lacking = 0;
		const char *example = "";
		for (size_t k = 0; k < m->gpu.sets_count; k++) {
			const struct fatbin_set *s = &m->gpu.sets[k];
			if (strlist_contains(&s->cubins, t->cubins.items[i]) || only_extras(s, t))
				continue;
			lacking += s->containers;
			example = *example ? example : s->text;
		}

		if (lacking)
			verify_add(v, FINDING_ERROR, RULE_GPU_MISSING, m->entry->name,
				   "has no code for sm_%s in %zu of %zu fat binaries (one has %s), "
				   "but %s declares it",
				   t->cubins.items[i], lacking, m->gpu.containers, example,
				   v->report.promise.from);
	}
}

/* What is there is reported, promised or not. */
static void report(struct verifying *v, const struct verify_member *m)
{
	struct verify_gpu_file *f = &v->report.gpu[v->report.gpu_count++];

	*f = (struct verify_gpu_file){.file = arena_strdup(v->a, m->entry->name),
				      .fat_binaries = m->gpu.containers,
				      .code = arena_array(v->a, m->gpu.count, sizeof(*f->code)),
				      .count = m->gpu.count};
	memcpy(f->code, m->gpu.items, m->gpu.count * sizeof(*f->code));
}

/* True for torch, torchvision and torchaudio; an extension by others may be C++ alone, whatever its
 * torch. */
static bool must_have_code(const struct verifying *v)
{
	for (size_t i = 0; i < TABLES_PACKAGES; i++)
		if (strcmp(v->report.name.dist, tables_distribution(tables_packages[i])) == 0)
			return true;
	return false;
}

/* A file of GPU code alone, or a library whose code is known by its summary. */
static struct fatbin_look look_of(const struct verifying *v, const struct verify_member *m)
{
	struct fatbin_look l = m->look;

	if (l.containers || !m->gpu.count)
		return l;
	l.name = m->entry->name;
	l.code = true;
	l.containers = m->gpu.containers ? m->gpu.containers : 1;
	l.groups_count = 1;
	l.groups = arena_array(v->a, 1, sizeof(*l.groups));
	*l.groups = (struct fatbin_group){.containers = l.containers, .count = m->gpu.count};
	l.groups->entries = arena_array(v->a, m->gpu.count, sizeof(*l.groups->entries));
	for (size_t i = 0; i < m->gpu.count; i++) {
		struct fatbin_entry *to = &l.groups->entries[i];
		*to = (struct fatbin_entry){.kind = m->gpu.items[i].kind,
					    .number = m->gpu.items[i].number};
		memcpy(to->target, m->gpu.items[i].target, sizeof(to->target));
	}

	return l;
}

static bool found(const struct verifying *v, enum verify_rule_id rule)
{
	for (size_t i = 0; i < v->report.count; i++)
		if (v->report.findings[i].level == FINDING_ERROR &&
		    strcmp(v->report.findings[i].rule, verify_rules[rule].code) == 0)
			return true;
	return false;
}

/* A label is a promise: something in the wheel, for torch
 * its main library, must run on each GPU that it names. */
static void check_runs(struct verifying *v)
{
	const struct promise *p = &v->report.promise;
	struct fatbin_look *looks = arena_array(v->a, v->count + 1, sizeof(*looks));
	struct fatbin_gpu gpu;
	struct fatbin_wanted w = {.gpus = &gpu, .count = 1};
	struct err why = {0};

	w.alone = tables_chips(v->q->tables, v->a, &w.alone_count);
	for (size_t i = 0; i < v->count; i++)
		looks[i] = look_of(v, &v->members[i]);
	const struct fatbin_judging j = {.torch = fatbin_is_torch(v->report.name.dist),
					 .ptx = true,
					 .looks = looks,
					 .count = v->count,
					 .wanted = &w,
					 .cuda = p->cuda,
					 .tables = v->q->tables};
	for (size_t i = 0; i < p->gpu.count; i++) {
		gpu.number = (unsigned)strtoul(target_of(p->gpu.items[i], v->a), NULL, 10);
		gpu.ptx = strstr(p->gpu.items[i], "+PTX") != NULL;
		if (fatbin_judge(&j, v->a, &why) < 0)
			verify_add(v, FINDING_ERROR, RULE_GPU_MISSING, "", "%s, and %s declares it",
				   why.msg, p->from);
	}
}

void verify_gpu(struct verifying *v)
{
	const struct promise *p = &v->report.promise;
	struct targets t = {0};

	v->report.gpu = arena_array(v->a, v->count, sizeof(*v->report.gpu));
	if (p->gpu_known)
		promised(v, &t);
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (m->gpu_broken && !m->elf.unloadable)
			verify_add(v, FINDING_ERROR, RULE_GPU_CODE, m->entry->name, "%s",
				   m->gpu_broken);
		for (size_t k = 0; k < m->gpu.wrong.count; k++)
			verify_add(v, FINDING_ERROR, RULE_GPU_CODE, m->entry->name, "%s",
				   m->gpu.wrong.items[k]);
		for (size_t k = 0; k < m->gpu.count; k++) {
			const struct fatbin_count *c = &m->gpu.items[k];
			if (c->kind == FATBIN_OTHER)
				verify_add(v, FINDING_ERROR, RULE_GPU_CODE, m->entry->name,
					   "has GPU code of the unknown %s for sm_%s (%zu)",
					   fatbin_kind_name(c->kind, c->number, v->a), c->target,
					   c->entries);
		}

		if (!m->gpu.count)
			continue;
		report(v, m);
		if (!p->binding || !p->gpu_known)
			continue;
		check_kinds(v, m, &t);
		check_missing(v, m, &t);
	}

	/* GPU code that cannot be read is a finding of its
	 * own; whether code is missing is unknown then. */
	const bool promises =
		t.cubins.count && (p->binding || !v->q->promise) && !found(v, RULE_GPU_CODE);
	if (promises && !v->report.gpu_count)
		verify_add(v, must_have_code(v) || !p->binding ? FINDING_ERROR : FINDING_WARNING,
			   RULE_GPU_MISSING, "", "holds no GPU code at all, and %s declares sm_%s",
			   p->from, strlist_join(&t.cubins, v->a, ", sm_"));
	else if (promises && v->q->tables && !found(v, RULE_GPU_MISSING))
		check_runs(v);
}
