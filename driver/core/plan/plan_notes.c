#include "base/sys/machine.h"
#include "core/plan/plan_parts.h"

/* The last note says nothing that the user asked, or
 * what other lines of a plan say: only reasons show it. */
static void set_aside(struct plan_context *c)
{
	strlist_ref(&c->asides, c->arena, c->notes.items[c->notes.count - 1]);
}

static void note_arch_list(struct plan_context *c)
{
	const struct gpu_target *t = &c->variant.profile.targets[0];

	strlist_addf(&c->notes, c->arena, "TORCH_CUDA_ARCH_LIST is %s, not sm_%s%s",
		     buildenv_capability(t, c->arena), t->row->sm, t->suffix);
	set_aside(c);
}

/* The driver the wheel needs is the toolkit line's floor, or what the newest of its GPUs needs. */
static void note_driver(struct plan_context *c)
{
	const struct profile *p = &c->variant.profile;

	strlist_addf(
		&c->notes, c->arena,
		"needs an NVIDIA driver >= %s at run time: the floor follows CUDA %s, not the GPU",
		c->toolkit->driver_floor, c->toolkit->version);
	set_aside(c);
	for (unsigned i = 0; i < p->targets_count; i++) {
		const struct gpu_row *row = p->targets[i].row;
		if (!*row->driver_min ||
		    version_cmp(row->driver_min, c->toolkit->driver_floor) <= 0)
			continue;
		strlist_addf(&c->notes, c->arena,
			     "sm%s machines need a driver >= %s whatever the toolkit", row->sm,
			     row->driver_min);
		set_aside(c);
	}

	for (unsigned i = 0; i < p->targets_count; i++)
		if (p->targets[i].ptx) {
			strlist_addf(&c->notes, c->arena,
				     "PTX is compiled by the driver: newer GPUs need a driver >= "
				     "%s for it",
				     c->toolkit->driver);
			break;
		}
}

/* Where the wheel has CUDA's libraries from, on the machine that runs it. */
static void note_libraries(struct plan_context *c)
{
	bool system = c->request->options.cuda_libraries &&
		      strcmp(c->request->options.cuda_libraries, "system") == 0;

	if (system)
		strlist_addf(&c->notes, c->arena,
			     "CUDA's libraries are left to the loader: the machine that runs the "
			     "wheel has CUDA %s in "
			     "its library path",
			     c->toolkit->version);
	else if (c->probed && c->probed->layout == TOOLKIT_DISTRIBUTION)
		strlist_addf(&c->notes, c->arena,
			     "CUDA's libraries are system libraries in this root; the wheel still "
			     "requires the nvidia-* packages and falls back to the system's "
			     "(--cuda-libraries system drops the requirement)");
}

static void note_gpus(struct plan_context *c)
{
	const struct profile *p = &c->variant.profile;

	for (unsigned i = 0; i < p->targets_count; i++) {
		const struct gpu_row *row = p->targets[i].row;
		if (!strings_allow(row->platforms, row->platforms_count, p->platform))
			strlist_addf(&c->notes, c->arena,
				     "sm%s GPUs come in %s machines; building for %.*s as asked",
				     row->sm,
				     machine_is_arm(row->platforms[0]) ? "Arm" : row->platforms[0],
				     (int)strcspn(p->platform, "-"), p->platform);
		if (*row->note)
			strlist_ref(&c->notes, c->arena, row->note);
	}
}

/* cuDNN drops old GPUs: then it is off, or has to stay at a version that still has them. */
static void note_cudnn(struct plan_context *c, const struct buildenv *env)
{
	const struct profile *p = &c->variant.profile;
	const struct setting *s = settings_get(&env->env, "USE_CUDNN");

	if (!s)
		return;
	const struct gpu_target *t = buildenv_cudnn_dropped(p);
	bool on = strcmp(s->value, "ON") == 0;
	if (t && !on && strcmp(s->file, "gpu.yaml") == 0)
		strlist_addf(&c->notes, c->arena, "USE_CUDNN=OFF: %s",
			     buildenv_cudnn_reason(t, c->package, c->arena));
	for (unsigned i = 0; on && i < p->targets_count; i++) {
		const struct gpu_row *row = p->targets[i].row;
		if (!*row->cudnn_max)
			continue;
		strlist_addf(&c->notes, c->arena,
			     "sm%s needs cuDNN %s or older to build and to run: newer versions "
			     "dropped it",
			     row->sm, row->cudnn_max);
		break;
	}
}

static void note_cpu(struct plan_context *c)
{
	const struct profile *p = &c->variant.profile;

	if (p->isa && *p->isa->note)
		strlist_ref(&c->notes, c->arena, p->isa->note);
	if (!c->blas)
		return;
	if (p->gpu == GPU_CUDA) {
		strlist_addf(&c->notes, c->arena,
			     "BLAS=%s applies to the CPU; on the GPU PyTorch uses cuBLAS, which "
			     "comes with CUDA",
			     c->blas->cmake);
		set_aside(c);
	}

	if (*c->blas->note)
		strlist_ref(&c->notes, c->arena, c->blas->note);
}

static bool concerns_gpu(const struct correction_row *row, const struct profile *p)
{
	for (unsigned i = 0; i < p->targets_count; i++)
		if (strings_allow(row->gpus, row->gpus_count, p->targets[i].row->sm))
			return true;
	return row->gpus_count == 0;
}

static bool in_range(const char *version, const char *range)
{
	bool in;
	return !*range || (version && version_in(version, range, &in, ERR_IGNORED) == 0 && in);
}

/* Whether a correction is about this plan's variant and release. */
static bool is_about_plan(const struct correction_row *row, const struct plan_context *c)
{
	static const char *const kinds[] = {
		[GPU_CPU] = "cpu", [GPU_CUDA] = "cuda", [GPU_MPS] = "mps"};
	const struct profile *p = &c->variant.profile;

	if (!strings_allow(row->packages, row->packages_count, c->variant.package))
		return false;
	if (!strings_allow(row->kinds, row->kinds_count, kinds[p->gpu]))
		return false;
	if (!strings_allow(row->isas, row->isas_count, p->isa ? p->isa->name : ""))
		return false;
	if (!concerns_gpu(row, p))
		return false;
	if (!strings_allow(row->releases, row->releases_count, c->release->name))
		return false;
	if (!in_range(c->package->version, row->versions))
		return false;
	return in_range(c->variant.cuda, row->cuda) && in_range(c->variant.python, row->pythons);
}

static void note_corrections(struct plan_context *c)
{
	for (unsigned i = 0; i < c->tables->corrections_count; i++) {
		const struct correction_row *row = &c->tables->corrections[i];
		if (!is_about_plan(row, c))
			continue;
		strlist_ref(&c->notes, c->arena, row->note);
		if (!row->limits)
			set_aside(c);
	}
}

/* The nearest newer release with the package that no
 * advisory is of; one that is only for who asks for it last. */
static const char *without_advisories(const struct plan_context *c)
{
	const struct tables *t = c->tables;

	for (unsigned asked = 0; asked < 2; asked++)
		for (unsigned i = 0; i < t->releases_count; i++) {
			const struct release_row *r = &t->releases[i];
			const struct package_row *p = tables_package(r, c->variant.package);
			bool clean = p && (asked ? *r->asked != '\0' : tables_offered(r)) &&
				     version_cmp(r->base, c->release->base) > 0;
			for (unsigned k = 0; clean && k < t->advisories_count; k++)
				clean = !tables_affects(&t->advisories[k],
							tables_distribution(c->variant.package),
							p->version);
			if (clean)
				return r->name;
		}
	return "";
}

static void note_advisories(struct plan_context *c)
{
	for (unsigned i = 0; i < c->tables->advisories_count; i++)
		if (tables_affects(&c->tables->advisories[i],
				   tables_distribution(c->variant.package), c->package->version))
			strlist_ref(&c->advisories, c->arena, c->tables->advisories[i].id);
	c->advised = c->advisories.count ? without_advisories(c) : "";
	if (c->advisories.count)
		strlist_addf(&c->notes, c->arena, "%s %s has known vulnerabilities: %s; %s%s",
			     tables_distribution(c->variant.package), c->package->version,
			     strlist_join(&c->advisories, c->arena, ", "),
			     *c->advised ? "the nearest release without any is "
					 : "every release known to ptbuild has some",
			     c->advised);
}

/* Which machines besides the named ones run the result. */
static void note_reach(struct plan_context *c)
{
	const struct profile *p = &c->variant.profile;
	struct strlist plain = {0};
	bool ptx = false;

	for (unsigned i = 0; i < p->targets_count; i++) {
		const struct gpu_target *t = &p->targets[i];
		ptx = ptx || t->ptx;
		if (!*t->suffix) {
			if (!t->row->tegra)
				strlist_addf(&plain, c->arena, "sm%s", t->row->sm);
			continue;
		}

		if (strcmp(t->suffix, "a") == 0)
			strlist_addf(&c->notes, c->arena, "sm%sa runs on exactly that GPU",
				     t->row->sm);
		else
			strlist_addf(&c->notes, c->arena, "sm%s%s runs on its family only",
				     t->row->sm, t->suffix);
		set_aside(c);
	}

	if (!plain.count || ptx)
		return;
	strlist_addf(&c->notes, c->arena,
		     "code for %s also runs on later GPUs of the same major version; newer major "
		     "versions need +ptx",
		     strlist_join(&plain, c->arena, ", "));
	set_aside(c);
}

static void note_digests(struct plan_context *c)
{
	for (unsigned i = 0; i < c->package->sources_count; i++) {
		const struct source_row *s = &c->package->sources[i];
		if (!*s->sha256)
			strlist_addf(&c->notes, c->arena,
				     "'%s' has no verified digest, so it can be planned but not "
				     "built: %s",
				     s->name, s->unproven);
		if (s->recorded)
			strlist_addf(&c->notes, c->arena,
				     "'%s' has the digest that this machine recorded on %s, and no "
				     "verified one: %s",
				     s->name, s->recorded, s->unproven);
	}
}

void plan_notes(struct plan_context *c, const struct buildenv *env)
{
	if (c->request->note)
		strlist_ref(&c->notes, c->arena, c->request->note);
	if (c->variant.profile.gpu == GPU_CUDA) {
		note_arch_list(c);
		note_driver(c);
		note_libraries(c);
		note_gpus(c);
		note_reach(c);
		note_cudnn(c, env);
	}

	if (c->request->torch_cuda && !c->variant.cuda)
		strlist_addf(&c->notes, c->arena,
			     "%s has code for the CPU alone; its torch is for CUDA %s, and brings "
			     "NVIDIA's libraries",
			     c->variant.package, c->request->torch_cuda);
	note_cpu(c);
	note_corrections(c);
	note_advisories(c);
	if (*c->release->note)
		strlist_ref(&c->notes, c->arena, c->release->note);
	if (*c->package->note)
		strlist_ref(&c->notes, c->arena, c->package->note);
	if (c->package->own_version)
		strlist_addf(&c->notes, c->arena,
			     "the source of %s %s is %s; its build options are those of release "
			     "%s, without its patches",
			     c->variant.package, c->package->own_version, c->package->own_state,
			     c->release->name);
	note_digests(c);
	strlist_append(&c->notes, c->arena, &env->notes);
	if (!package_is_torch(c->variant.package) && (!c->request->torch || !*c->request->torch)) {
		strlist_addf(
			&c->notes, c->arena,
			"the keys change once the torch wheel that %s is built against is known",
			c->variant.package);
		set_aside(c);
	}
}
