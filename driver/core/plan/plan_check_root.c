/* What a plan for CUDA needs of the root's own toolkit,
 * which can have less than its version promises. */

#include "core/plan/plan.h"

static int check_there(const struct plan *p, const struct toolkits *l, struct arena *a,
		       struct err *e)
{
	if (toolkit_find(l, p->cuda))
		return 0;
	err_set(e, l->count ? ERR_POLICY : ERR_SYSTEM, "no CUDA %s in the root; there is: %s",
		p->cuda, toolkit_list(l, a));
	return err_hint(e, "install it there, name its directory with --cuda-home, or pass --cuda "
			   "for one that is "
			   "there; or name another root with --root");
}

void plan_nvcc_targets(const struct plan *p, struct arena *a, struct strlist *ret)
{
	for (size_t i = 0; i < p->gpu.count; i++) {
		struct strlist parts = {0};
		const char *capability = p->gpu.items[i]; /* "9.0a", "12.0+PTX" */
		strlist_split(&parts, a, arena_strndup(a, capability, strcspn(capability, "+")),
			      ".");
		strlist_ref(ret, a, strlist_join(&parts, a, ""));
	}
}

static int check_targets(const struct plan *p, const struct toolkit *k, struct arena *a,
			 struct err *e)
{
	struct strlist asked = {0}, missing = {0};

	plan_nvcc_targets(p, a, &asked);
	for (size_t i = 0; i < asked.count; i++)
		if (!strlist_contains(&k->targets, asked.items[i]))
			strlist_addf(&missing, a, "sm%s", asked.items[i]);
	if (!missing.count)
		return 0;
	err_set(e, ERR_POLICY, "'%s' (CUDA %s) does not compile for %s", k->nvcc, k->release,
		strlist_join(&missing, a, ", "));
	return err_hint(e, "it knows %s: use a toolkit that has it (ptbuild list --gpus)",
			strlist_join(&k->targets, a, " "));
}

static int check_compiler(const struct toolkit *k, struct err *e)
{
	if (k->cc && k->cxx)
		return 0;
	err_set(e, ERR_POLICY, "nvcc %s accepts GCC up to %u, and the root has %s%s", k->version,
		k->gcc_max, *k->gcc ? "GCC " : "no GCC", k->gcc);
	return err_hint(e,
			"install gcc-%u and g++-%u in the root; ptbuild then uses them with nvcc",
			k->gcc_max, k->gcc_max);
}

/* "--without cudnn" of USE_CUDNN; PyTorch does not build without the others. */
static const char *give_up(const char *toggle, struct arena *a)
{
	const char *at = strstr(toggle, "USE_");

	if (strcmp(toggle, "USE_CUDA") == 0)
		return ": PyTorch does not build without";
	char *text = arena_printf(a, ", or give it up with --without %s", at ? at + 4 : toggle);
	for (char *p = strrchr(text, ' '); *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return text;
}

/* A library beside nvcc that the environment turns on. A cuDNN that
 * is newer than the last one for a GPU would build, and fail there. */
static int check_part(const struct plan *p, const struct toolkit *k,
		      const struct toolkit_part *part, struct arena *a, struct err *e)
{
	const struct part_row *row = part->row;
	const struct setting *s = settings_get(&p->env, row->toggle);

	if (!part->header) {
		err_set(e, ERR_POLICY,
			"%s=%s (%s), but CUDA %s in '%s' comes without %s: no header '%s'", s->name,
			s->value, settings_origin(s, a), k->version, k->where, row->name,
			row->header);
		return err_hint(e, "install it%s%s%s%s", *row->debian ? " (Debian's package " : "",
				row->debian, *row->debian ? ")" : "", give_up(row->toggle, a));
	}

	for (size_t i = 0; strcmp(row->name, "cudnn") == 0 && *part->version && i < p->gpu.count;
	     i++) {
		const struct gpu_row *gpu = p->runs_on.gpu_rows[i];
		if (!gpu || !*gpu->cudnn_max || version_cmp(part->version, gpu->cudnn_max) <= 0)
			continue;
		err_set(e, ERR_POLICY, "cuDNN %s has no code for sm%s: %s was the last",
			part->version, gpu->sm, gpu->cudnn_max);
		return err_hint(e, "install cuDNN %s, or give it up with --without cudnn",
				gpu->cudnn_max);
	}

	return 0;
}

size_t plan_root_needs(const struct plan *p, const struct toolkits *l, struct arena *a,
		       struct plan_need **ret)
{
	const struct toolkit *k = toolkit_find(l, p->cuda);
	struct plan_need *n = *ret = arena_array(a, 3 + (k ? k->parts_count : 0), sizeof(*n));

	n->name = "nvcc";
	if (check_there(p, l, a, &n->why) < 0 || !k)
		return 1;
	n->text =
		arena_printf(a, "%s %s (%s)", k->nvcc, k->release, toolkit_layout_name(k->layout));
	(++n)->name = "nvcc-host";
	if (check_compiler(k, &n->why) == 0)
		n->text = arena_printf(a, "%s (%s); nvcc accepts GCC up to %u", k->cxx, k->cc_id,
				       k->gcc_max);
	(++n)->name = "targets";
	n += check_targets(p, k, a, &n->why) < 0;
	for (size_t i = 0; i < k->parts_count; i++) {
		const struct toolkit_part *part = &k->parts[i];
		if (strcmp(part->row->package, p->package) != 0 ||
		    !settings_on(&p->env, part->row->toggle))
			continue;
		n->name = part->row->name;
		if (check_part(p, k, part, a, &n->why) == 0)
			n->text = arena_printf(a, "%s%s%s", part->header, *part->version ? " " : "",
					       part->version);
		n++;
	}

	return (size_t)(n - *ret);
}
