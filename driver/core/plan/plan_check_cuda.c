#include "core/plan/plan_parts.h"

static char *target_name(const struct gpu_target *t, struct arena *a)
{
	return arena_printf(a, "sm%s%s", t->row->sm, t->suffix);
}

static const struct gpu_suffix *find_suffix(const struct gpu_target *t)
{
	return text_search(t->suffix, t->row->suffixes, t->row->suffixes_count,
			   sizeof(*t->row->suffixes));
}

/* Whether nvcc of a toolkit has the target. */
static bool nvcc_takes(const struct gpu_target *t, const char *cuda)
{
	const struct gpu_row *row = t->row;

	if (version_cmp(cuda, row->cuda_min) < 0 ||
	    (*row->cuda_max && version_cmp(cuda, row->cuda_max) > 0))
		return false;
	if (!*t->suffix)
		return true;
	const struct gpu_suffix *s = find_suffix(t);
	return s && version_cmp(cuda, s->cuda_min) >= 0;
}

/* Whether the toolkit for Arm servers does not make code for it: a Jetson before its CUDA. */
static bool lacks_sbsa(const struct gpu_row *row, const char *cuda)
{
	return *row->sbsa && version_cmp(cuda, row->sbsa) < 0;
}

static const struct gpu_target *first_tegra(const struct profile *p, const char *cuda)
{
	if (!p->targets || strcmp(p->platform, "aarch64-linux") != 0)
		return NULL;
	for (unsigned i = 0; i < p->targets_count; i++)
		if (lacks_sbsa(p->targets[i].row, cuda))
			return &p->targets[i];
	return NULL;
}

static const struct gpu_target *first_unknown(const struct profile *p, const char *cuda)
{
	for (unsigned i = 0; i < p->targets_count; i++)
		if (!nvcc_takes(&p->targets[i], cuda))
			return &p->targets[i];
	return NULL;
}

static const struct gpu_target *first_refused(const struct profile *p, const char *cuda)
{
	const struct gpu_target *t = first_unknown(p, cuda);
	return t ? t : first_tegra(p, cuda);
}

/* The first PyTorch that has the target; "" = all in the tables. */
static const char *first_torch(const struct gpu_target *t)
{
	const struct gpu_suffix *s = *t->suffix ? find_suffix(t) : NULL;
	return s && version_cmp(s->torch_min, t->row->torch_min) > 0 ? s->torch_min
								     : t->row->torch_min;
}

/* The first toolkit of a release whose nvcc has
 * every target, the release's default before others. */
static const char *working_toolkit(const struct profile *p, const struct release_row *r)
{
	for (unsigned i = 0; i < r->toolkits_count; i++)
		if (!first_refused(p, r->toolkits[i]))
			return r->toolkits[i];
	return NULL;
}

/* Targets that PyTorch had once, and its extensions can no longer be built for. */
static bool is_gone(const struct gpu_row *row, const struct release_row *r, const char *package)
{
	return !package_is_torch(package) && *row->extensions_until &&
	       version_cmp(r->base, row->extensions_until) >= 0;
}

/* torch.utils.cpp_extension, which builds torchvision and
 * the newer torchaudio, knows no family targets ("12.0f"). */
static bool is_no_extension(const struct gpu_target *t, const struct release_row *r,
			    const char *package)
{
	return !buildenv_uses_cmake(tables_package(r, package)->backend) &&
	       (t->row->no_extensions || strcmp(t->suffix, "f") == 0);
}

bool plan_takes_target(const struct release_row *r, const char *package, const char *cuda,
		       const struct gpu_target *t)
{
	const char *min = first_torch(t);

	if (*min && version_cmp(r->base, min) < 0)
		return false;
	if (is_gone(t->row, r, package) || is_no_extension(t, r, package))
		return false;
	return !cuda || (nvcc_takes(t, cuda) && !lacks_sbsa(t->row, cuda));
}

/* A target that PyTorch cannot be built for together with another of the profile; NULL: none. */
static const struct gpu_row *excluding(const struct profile *p, const struct gpu_row **ret_other)
{
	for (unsigned i = 0; i < p->targets_count; i++)
		for (unsigned k = 0; k < p->targets_count; k++) {
			const struct gpu_row *row = p->targets[i].row, *other = p->targets[k].row;
			if (!strings_contain(row->not_with, row->not_with_count, other->sm))
				continue;
			*ret_other = other;
			return row;
		}
	return NULL;
}

static bool takes_all(const struct profile *p, const struct release_row *r, const char *package)
{
	const struct gpu_row *other;

	for (unsigned i = 0; i < p->targets_count; i++)
		if (!plan_takes_target(r, package, NULL, &p->targets[i]))
			return false;
	return !excluding(p, &other);
}

/* The toolkit of a release whose nvcc has every target: the next newer
 * one than was asked for (may be NULL), else the release's first. */
static const char *nearest_toolkit(const struct profile *p, const struct release_row *r,
				   const char *asked)
{
	const char *best = NULL;

	for (unsigned i = 0; asked && i < r->toolkits_count; i++) {
		const char *cuda = r->toolkits[i];
		if (first_refused(p, cuda) || version_cmp(cuda, asked) < 0)
			continue;
		if (!best || version_cmp(cuda, best) < 0)
			best = cuda;
	}

	return best ? best : working_toolkit(p, r);
}

static bool any_toolkit_takes(const struct tables *t, const struct gpu_target *target)
{
	for (unsigned i = 0; i < t->toolkits_count; i++)
		if (nvcc_takes(target, t->toolkits[i].version))
			return true;
	return false;
}

/* A target that no toolkit of the tables has: the newest
 * GPU below it whose PTX a driver compiles for it. */
static int hint_ptx(const struct plan_context *c, const struct gpu_target *t, struct err *e)
{
	const struct gpu_row *best = NULL;
	struct profile one = c->variant.profile;

	for (unsigned i = 0; i < c->tables->gpus_count; i++) {
		struct gpu_target older = {.row = &c->tables->gpus[i], .suffix = ""};
		one.targets = &older;
		one.targets_count = 1;
		if (older.row->tegra || version_cmp(older.row->capability, t->row->capability) >= 0)
			continue;
		const bool newest =
			!best || version_cmp(older.row->capability, best->capability) > 0;
		if (newest && plan_takes_target(c->release, c->variant.package, NULL, &older) &&
		    working_toolkit(&one, c->release))
			best = older.row;
	}

	const char *none = target_name(t, c->arena);
	if (!best || t->row->tegra || *t->row->cuda_max)
		return err_hint(e, "leave %s out: no CUDA version in the tables compiles for it",
				none);
	return err_hint(e,
			"no CUDA version in the tables compiles for %s: use sm%s+ptx, which its "
			"driver compiles",
			none, best->sm);
}

/* A release and a toolkit of it that work, as the hint names them. */
struct working {
	const struct release_row *release;
	const char *toolkit; /* NULL: none */
};

/* A toolkit of this release; `line`: of the CUDA line
 * that was asked for, as a driver runs no later one. */
static bool try_release(const struct plan_context *c, const struct release_row *r, bool line,
			struct working *ret)
{
	const struct profile *p = &c->variant.profile;
	const char *asked = c->variant.cuda;

	if (!tables_package(r, c->variant.package) || !takes_all(p, r, c->variant.package) ||
	    !strings_contain(r->pythons, r->pythons_count, c->variant.python))
		return false;
	const char *toolkit = nearest_toolkit(p, r, asked);
	if (!toolkit || (line && asked && strtol(toolkit, NULL, 10) != strtol(asked, NULL, 10)))
		return false;
	*ret = (struct working){r, toolkit};
	return true;
}

/* This release before others; those that are only for who asks for them come last. */
static bool find_working(const struct plan_context *c, bool line, struct working *ret)
{
	const unsigned count = c->tables->releases_count;

	if (try_release(c, c->release, line, ret))
		return true;
	for (unsigned i = 2 * count; i-- > 0;) {
		const struct release_row *r = &c->tables->releases[i % count];
		if (!*r->asked == (i >= count) && try_release(c, r, line, ret))
			return true;
	}

	return false;
}

/* The hint of every refusal here: the first combination that works. */
static int hint_working(const struct plan_context *c, struct err *e)
{
	const struct profile *p = &c->variant.profile;
	struct working w;

	for (unsigned i = 0; i < p->targets_count; i++)
		if (!any_toolkit_takes(c->tables, &p->targets[i]))
			return hint_ptx(c, &p->targets[i], e);
	if (find_working(c, true, &w) || find_working(c, false, &w)) {
		if (w.release == c->release)
			return err_hint(e, "use CUDA %s: --cuda %s, or %s in a variant's name",
					w.toolkit, w.toolkit,
					variant_toolkit_word(w.toolkit, c->arena));
		return err_hint(e, "use CUDA %s with release %s: --cuda %s --release %s", w.toolkit,
				w.release->name, w.toolkit, w.release->name);
	}

	const struct gpu_target *tegra = p->targets_count ? first_tegra(p, "0") : NULL;
	if (tegra)
		return *tegra->row->note
			       ? err_hint(e, "%s", tegra->row->note)
			       : err_hint(e, "choose another GPU target (ptbuild list --gpus)");
	const struct gpu_row *other;
	for (unsigned i = 0; i < c->tables->toolkits_count && !excluding(p, &other); i++)
		if (!first_refused(p, c->tables->toolkits[i].version))
			return err_hint(
				e,
				"only %s has it, and no release with %s for Python %s builds with "
				"that",
				variant_toolkit_word(c->tables->toolkits[i].version, c->arena),
				c->variant.package, c->variant.python);
	if (p->targets_count < 2)
		return err_hint(e, "no known CUDA toolkit supports '%s'", p->name);
	return err_hint(e, "no CUDA toolkit supports all targets of '%s': build several variants",
			p->name);
}

/* Without a toolkit asked for: the release's first, or where
 * its nvcc lacks a target the first that has them all. */
static void default_toolkit(struct plan_context *c)
{
	const struct profile *p = &c->variant.profile;
	const char *first = c->release->toolkits[0];
	const char *working = working_toolkit(p, c->release);

	c->variant.cuda = working ? working : first;
	if (working && working != first)
		strlist_addf(&c->notes, c->arena,
			     "CUDA %s is taken instead of the release's default %s, whose nvcc has "
			     "no %s",
			     working, first, target_name(first_refused(p, first), c->arena));
}

int need_release_toolkit(struct plan_context *c, struct err *e)
{
	const struct strlist own = {.items = c->release->toolkits,
				    .count = c->release->toolkits_count};

	if (strlist_contains(&own, c->variant.cuda))
		return 0;
	const char *others = plan_releases_with(c, c->variant.python, c->variant.cuda);
	err_set(e, ERR_POLICY, "release '%s' does not build with CUDA %s", c->release->name,
		c->variant.cuda);
	return err_hint(
		e, "it builds with %s%s%s", strlist_join(&own, c->arena, " "),
		*others ? arena_printf(c->arena, "; CUDA %s is in release ", c->variant.cuda) : "",
		others);
}

/* The older GPU of the same major version, whose code runs on this one as well. */
static const struct gpu_row *older_of(const struct tables *t, const struct gpu_row *row)
{
	const struct gpu_row *older = NULL;

	for (const struct gpu_row *o = t->gpus; o < row; o++)
		if (!o->tegra &&
		    strncmp(o->capability, row->capability, strcspn(row->capability, ".") + 1) == 0)
			older = o;
	return older;
}

static int refuse_gone(const struct plan_context *c, const struct gpu_row *row, struct err *e)
{
	err_set(e, ERR_POLICY,
		"%s cannot be built for 'sm%s': torch's extension builder has no %s from %s on",
		c->variant.package, row->sm, row->capability, row->extensions_until);
	return *row->note ? err_hint(e, "%s", row->note)
			  : err_hint(e, "use a release before %s", row->extensions_until);
}

static int refuse_extension(const struct plan_context *c, const struct gpu_target *t, struct err *e)
{
	const struct gpu_row *row = t->row;

	err_set(e, ERR_POLICY, "%s cannot be built for '%s': torch's extension builder %s",
		c->variant.package, target_name(t, c->arena),
		row->no_extensions ? arena_printf(c->arena, "does not know %s", row->capability)
				   : "knows no family targets");
	const struct gpu_row *older = row->no_extensions ? older_of(c->tables, row) : NULL;
	if (older)
		return err_hint(e, "use sm%s, whose code runs on it", older->sm);
	return row->no_extensions
		       ? err_hint(e, "use another GPU target")
		       : err_hint(e, "use sm%s, or sm%sa for exactly this GPU", row->sm, row->sm);
}

/* What torch.utils.cpp_extension does not build for. */
int need_extension_targets(struct plan_context *c, struct err *e)
{
	const struct profile *p = &c->variant.profile;

	for (unsigned i = 0; i < p->targets_count; i++) {
		const struct gpu_target *t = &p->targets[i];
		if (is_gone(t->row, c->release, c->variant.package))
			return refuse_gone(c, t->row, e);
		if (is_no_extension(t, c->release, c->variant.package))
			return refuse_extension(c, t, e);
	}

	return 0;
}

/* The toolkit may be JetPack's own: the root's is, or the root was not asked yet. */
static bool may_be_tegra(const struct plan_context *c)
{
	return c->request->toolkits ? !c->probed || c->probed->tegra : c->request->own_root;
}

int need_no_cuda(struct plan_context *c, struct err *e)
{
	if (!c->variant.cuda)
		return 0;
	err_set(e, ERR_CONFIG, "CUDA %s for '%s', which has no NVIDIA GPU", c->variant.cuda,
		c->variant.profile.name);
	return err_hint(e, "leave the toolkit out, or choose a profile such as sm90-avx512");
}

int need_toolkits(struct plan_context *c, struct err *e)
{
	if (c->variant.cuda)
		return 0;
	if (!c->release->toolkits_count) {
		err_set(e, ERR_POLICY, "release '%s' builds without CUDA only", c->release->name);
		return hint_working(c, e);
	}

	default_toolkit(c);
	return 0;
}

int need_known_toolkit(struct plan_context *c, struct err *e)
{
	if (tables_need_toolkit(c->tables, c->variant.cuda, &c->toolkit, e) < 0)
		return -1;
	c->variant.cuda = c->toolkit->version;
	c->probed =
		c->request->toolkits ? toolkit_find(c->request->toolkits, c->variant.cuda) : NULL;
	return 0;
}

int need_nvcc_targets(struct plan_context *c, struct err *e)
{
	const struct gpu_target *t = first_unknown(&c->variant.profile, c->variant.cuda);

	if (!t)
		return 0;
	err_set(e, ERR_POLICY, "%s has no %s: nvcc %s knows no such target",
		variant_toolkit_word(c->variant.cuda, c->arena), target_name(t, c->arena),
		c->variant.cuda);
	return hint_working(c, e);
}

int need_torch_targets(struct plan_context *c, struct err *e)
{
	const struct profile *p = &c->variant.profile;

	for (unsigned i = 0; i < p->targets_count; i++) {
		const struct gpu_target *t = &p->targets[i];
		const char *min = first_torch(t);
		if (!*min || version_cmp(c->release->base, min) >= 0)
			continue;
		err_set(e, ERR_POLICY, "release '%s' does not know %s: PyTorch has it from %s",
			c->release->name, target_name(t, c->arena), min);
		return hint_working(c, e);
	}

	return 0;
}

int need_targets_together(struct plan_context *c, struct err *e)
{
	const struct gpu_row *other, *row = excluding(&c->variant.profile, &other);

	if (!row)
		return 0;
	err_set(e, ERR_POLICY, "PyTorch cannot be built for sm%s and sm%s together", other->sm,
		row->sm);
	return err_hint(e, "leave sm%s out, code for sm%s runs on it; or build two variants",
			row->sm, other->sm);
}

int need_sbsa_targets(struct plan_context *c, struct err *e)
{
	const struct gpu_target *t =
		may_be_tegra(c) ? NULL : first_tegra(&c->variant.profile, c->variant.cuda);

	if (!t)
		return 0;
	err_set(e, ERR_POLICY,
		"%s has no code for %s: toolkits for Arm servers (SBSA) make it from CUDA %s on, "
		"JetPack 7",
		variant_toolkit_word(c->variant.cuda, c->arena), target_name(t, c->arena),
		t->row->sbsa);
	return hint_working(c, e);
}

/* The label, the toolkit and the proof of the wheel
 * follow the profile, so what the user sets must, too. */
int plan_check_gpu_options(const struct plan_context *c, const struct buildenv *env, struct err *e)
{
	static const struct {
		const char *toggle;
		enum gpu_kind gpu;
		const char *profiles;
	} kinds[] = {
		{"USE_CUDA", GPU_CUDA, "a profile with GPU targets, such as sm90-avx2"},
		{"USE_MPS", GPU_MPS, "the profile darwin-mps"},
	};
	const struct profile *p = &c->variant.profile;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct setting *s = settings_get(&env->env, kinds[i].toggle);
		bool on = settings_on(&env->env, kinds[i].toggle);
		if (!s || on == (p->gpu == kinds[i].gpu))
			continue;
		err_set(e, ERR_POLICY, "%s=%s (%s) contradicts profile %s", s->name, s->value,
			settings_origin(s, c->arena), p->name);
		return err_hint(e, "%s%s",
				on ? "that is for "
				   : "to build without it, use a CPU profile such as ",
				on ? kinds[i].profiles : "cpu-avx2");
	}

	return 0;
}
