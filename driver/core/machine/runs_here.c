#include "core/machine/detect.h"

#include "base/sys/json.h"
#include "core/plan/gpu_parts.h"
#include "core/tables/gpu_runs.h"

struct fitting {
	const struct runs_on *r;
	const struct hardware_facts *f;
	const struct hardware *h;
	struct arena *a;
	struct fit *out;
};

static void lack(struct fitting *c, enum fit_verdict verdict, const char *phrase)
{
	c->out->verdict = verdict > c->out->verdict ? verdict : c->out->verdict;
	strlist_ref(&c->out->lacks, c->a, phrase);
}

static bool has_python(const struct fitting *c)
{
	for (size_t i = 0; i < c->h->pythons.count; i++) {
		if (runs_on_python(c->r, c->h->pythons.items[i], c->a))
			return true;
	}

	return false;
}

static void fit_requires_python(struct fitting *c)
{
	const char *range = c->r->requires_python, *depends = NULL;

	for (size_t i = 0; range && i < c->h->pythons.count; i++) {
		const char *python = c->h->pythons.items[i];
		int fits = runs_on_python(c->r, python, c->a) ? runs_on_requires(c->r, python, c->a)
							      : 0;
		if (fits > 0)
			return;
		depends = fits < 0 ? python : depends;
	}

	if (depends)
		lack(c, FIT_PERHAPS,
		     arena_printf(c->a,
				  "whether its Python %s is one that the wheel requires (%s) "
				  "depends on the patch level",
				  depends, range));
	else if (range)
		lack(c, FIT_NO,
		     arena_printf(c->a, "it has no Python that the wheel requires (%s)", range));
}

static void fit_python(struct fitting *c)
{
	const char *own = strlist_join(&c->h->pythons, c->a, " and "), *wanted = c->r->python;

	if (has_python(c))
		fit_requires_python(c);
	else if (!*wanted)
		lack(c, FIT_NO, "no installer asks for its tags");
	else if (*own)
		lack(c, FIT_NO, arena_printf(c->a, "its Python is %s, not %s", own, wanted));
	else if (c->h->bare)
		lack(c, FIT_PERHAPS, "its description states no Pythons");
	else
		lack(c, FIT_NO, arena_printf(c->a, "it has no Python %s", wanted));
}

/* Tags that no installer asks for: "manylinux2010_aarch64", "manylinux_3_0_x86_64". */
static void fit_tag(struct fitting *c)
{
	bool taken = c->out->verdict != FIT_YES || !strstr(c->h->platform, "-linux");

	for (size_t i = 0; i < c->h->pythons.count && !taken; i++)
		taken = runs_on_installs(c->r, c->h->pythons.items[i], c->h->platform, c->h->glibc,
					 c->a);
	if (!taken)
		lack(c, FIT_NO, "no installer there supports its platform tag");
}

static void fit_glibc(struct fitting *c)
{
	const struct runs_on *r = c->r;
	const char *own = c->h->glibc;

	if (*r->musl) {
		if (*own)
			lack(c, FIT_NO, arena_printf(c->a, "its C library is glibc, not musl"));
		return;
	}

	if (!strstr(r->platform, "linux") || (!*r->glibc && !r->glibc_at_most))
		return;
	if (!*own && r->any_libc)
		return;
	if (!*own && c->h->bare)
		lack(c, FIT_PERHAPS, "its description states no glibc");
	else if (!*own)
		lack(c, FIT_NO, "it has no glibc");
	else if (!*r->glibc)
		lack(c, FIT_PERHAPS, "the root's glibc is not known without --root DIR");
	else if (version_cmp(own, r->glibc) < 0 && r->glibc_at_most)
		lack(c, FIT_PERHAPS,
		     arena_printf(c->a, "its glibc is %s, and %s may be needed", own, r->glibc));
	else if (version_cmp(own, r->glibc) < 0)
		lack(c, FIT_NO,
		     arena_printf(c->a, "its glibc is %s, older than %s", own, r->glibc));
}

static enum gpu_runs runs_at_best(const struct runs_on *r, const char *gpu)
{
	enum gpu_runs best = GPU_RUNS_NO;

	for (size_t i = 0; i < r->gpu.count; i++) {
		const char *target = r->gpu.items[i];
		const enum gpu_runs runs = gpu_target_runs(r->tables, target, gpu, r->cuda);
		best = runs > best ? runs : best;
	}

	return best;
}

/* The row of a target that is exactly this GPU; NULL. */
static const struct gpu_row *own_row(const struct runs_on *r, const char *gpu)
{
	for (size_t i = 0; i < r->gpu.count; i++)
		if (r->gpu_rows[i] && strcmp(r->gpu_rows[i]->capability, gpu) == 0)
			return r->gpu_rows[i];
	return NULL;
}

/* Code for a Jetson with an older CUDA: NVIDIA's toolkit for Arm servers makes none that it runs.
 * Another maker may have used JetPack's own toolkit. */
static void fit_tegra(struct fitting *c, const struct hardware_gpu *gpu)
{
	const struct runs_on *r = c->r;
	const struct gpu_row *row = own_row(r, gpu->capability);

	if (!row || !*row->sbsa || r->tegra || !*r->cuda)
		return;
	if (version_cmp(r->cuda, row->sbsa) >= 0)
		return;
	lack(c, r->isa_known ? FIT_NO : FIT_PERHAPS,
	     arena_printf(c->a,
			  "its %s runs code for CUDA %s only if JetPack's own toolkit made it",
			  gpu->name, r->cuda));
}

/* By what its parts have; false: a label or a plan says
 * what it has. The GPU that it runs on best counts. */
static bool fit_parts(struct fitting *c)
{
	static const enum fit_verdict verdicts[] = {[GPU_RUNS] = FIT_YES,
						    [GPU_PARTLY] = FIT_YES,
						    [GPU_PERHAPS] = FIT_PERHAPS,
						    [GPU_LACKS] = FIT_NO};
	const struct gpu_parts *p = c->r->parts;
	enum gpu_reach best = GPU_LACKS;
	const char *phrase = NULL;

	for (size_t g = 0; p && g < c->h->gpu_count; g++) {
		const struct gpu_here here = {c->h->gpus[g].capability, c->h->driver};
		struct strlist lacking = {0};
		const enum gpu_reach reach = gpu_parts_reach(p, &here, c->a, &lacking);
		if (reach >= best && phrase)
			continue;
		best = reach;
		phrase = arena_printf(
			c->a, "%s has no code for its %s (%s)%s",
			lacking.count ? lacking.items[0] : "", c->h->gpus[g].name, here.capability,
			lacking.count > 1
				? arena_printf(c->a, ", the first of %zu such files", lacking.count)
				: "");
	}

	if (!phrase || best == GPU_LACKS)
		return false;
	if (best != GPU_RUNS)
		lack(c, verdicts[best], phrase);
	return true;
}

static void fit_gpus(struct fitting *c)
{
	if (fit_parts(c))
		return;
	const struct hardware *h = c->h;
	struct strlist others = {0};
	const char *unsure = NULL;
	for (size_t g = 0; g < h->gpu_count; g++) {
		const enum gpu_runs runs =
			c->r->parts ? GPU_RUNS_NO : runs_at_best(c->r, h->gpus[g].capability);
		const char *kind =
			arena_printf(c->a, "%s (%s)", h->gpus[g].name, h->gpus[g].capability);
		if (runs == GPU_RUNS_YES) {
			fit_tegra(c, &h->gpus[g]);
			return;
		}

		unsure = runs == GPU_RUNS_PERHAPS ? kind : unsure;
		strlist_once(&others, c->a, kind);
	}

	if (!c->r->gpu.count)
		return;
	const char *all = strlist_join(&others, c->a, ", ");
	if (unsure)
		lack(c, FIT_PERHAPS,
		     arena_printf(c->a, "NVIDIA does not guarantee this code on its %s", unsure));
	else if (others.count)
		lack(c, FIT_NO, arena_printf(c->a, "it lacks code for its %s", all));
	else
		lack(c, FIT_NO, "it has no NVIDIA GPU");
}

/* CUDA's libraries have code for the GPUs of their toolkit, and its compilers make no other. */
static void fit_libraries(struct fitting *c)
{
	const struct runs_on *r = c->r;
	const struct hardware_gpu *gpu = NULL;

	if (!r->libraries || !*r->cuda || c->out->verdict == FIT_NO)
		return;
	for (size_t g = 0; g < c->h->gpu_count; g++) {
		const struct gpu_row *row =
			tables_gpu_capability(r->tables, c->h->gpus[g].capability);
		if (!row || !*row->cuda_max || version_cmp(row->cuda_max, r->cuda) >= 0)
			return;
		gpu = &c->h->gpus[g];
	}

	if (gpu)
		lack(c, FIT_NO,
		     arena_printf(c->a, "CUDA %s has no code for its %s (%s)", r->cuda, gpu->name,
				  gpu->capability));
}

/* By its CUDA version, as 'detect' judges toolkits; then by what its GPUs need. Whose toolkit a
 * Jetson needs says fit_tegra. */
static void fit_driver(struct fitting *c)
{
	const struct runs_on *r = c->r;
	const struct hardware *h = c->h;
	const enum driver_fit fit =
		*r->cuda ? driver_fit_any(r->tables, h, r->cuda) : DRIVER_UNKNOWN;

	if (fit == DRIVER_OWN)
		return;
	if (*r->driver && *h->driver && version_cmp(h->driver, r->driver) < 0)
		lack(c, FIT_NO,
		     arena_printf(c->a, "its driver is %s, older than %s", h->driver, r->driver));
	else if (fit == DRIVER_TOO_OLD)
		lack(c, FIT_NO,
		     arena_printf(c->a, "its driver is %s, and CUDA %s is needed",
				  driver_text(h, c->a), r->cuda));
}

void fit_of(const struct runs_on *r, const struct root *root, const struct hardware_facts *f,
	    const struct hardware *h, struct arena *a, struct fit *ret)
{
	bool other = root && !root->host, able;
	struct fit out = {0};
	struct fitting c = {r, f, h, a, &out};

	if (*r->platform && !strlist_contains(&r->platforms, h->platform)) {
		lack(&c, FIT_NO, arena_printf(a, "it is %s, not %s", h->platform, r->platform));
		*ret = out;
		return;
	}

	const struct isa_row *isa = c.r->isa;
	struct strlist needs = {0};
	if (isa)
		hardware_closure(c.f, isa->cpuinfo, isa->cpuinfo_count, c.a, &needs);
	const char *missing = hardware_lacks(c.f, c.h, &needs, c.a);
	if (missing)
		lack(&c, FIT_NO, arena_printf(c.a, "no %s", missing));
	fit_gpus(&c);
	fit_libraries(&c);
	fit_driver(&c);
	able = out.verdict == FIT_YES;
	fit_python(&c);
	fit_glibc(&c);
	fit_tag(&c);
	if (r->torch_of_root && other)
		lack(&c, FIT_NO, arena_printf(a, "torch %s is the root's own", r->torch));
	out.root = other && able && out.verdict != FIT_YES ? root->dir : NULL;
	*ret = out;
}

void fit_gpu(const struct runs_on *r, const struct hardware *h, struct arena *a, struct fit *ret)
{
	struct fit out = {0};
	struct fitting c = {.r = r, .h = h, .a = a, .out = &out};

	fit_gpus(&c);
	fit_libraries(&c);
	fit_driver(&c);
	*ret = out;
}

static const char *const verdicts[] = {
	[FIT_YES] = "yes", [FIT_PERHAPS] = "perhaps", [FIT_NO] = "no"};

char *fit_text(const struct fit *f, struct arena *a)
{
	return arena_printf(a, "%s%s%s%s%s%s", verdicts[f->verdict], f->lacks.count ? ": " : "",
			    strlist_join(&f->lacks, a, "; "),
			    f->root ? "; the wheel can be used inside the root '" : "",
			    f->root ? f->root : "", f->root ? "'" : "");
}

json_t *fit_json(const struct fit *f)
{
	return json_pack("{s:s, s:o, s:o}", "runs", verdicts[f->verdict], "lacks",
			 json_from_strlist(&f->lacks), "root", json_or_null(f->root));
}
