#include "core/machine/detect.h"

#include "core/plan/plan.h"
#include "core/variant/variant.h"
#include "core/world/world.h"

struct detecting {
	const struct tables *t;
	const struct hardware_facts *f;
	const struct hardware *h;
	const char *workload;
	const char *release; /* asked for; NULL: any */
	struct arena *a;
	struct detected *d;
	struct gpu_target *targets; /* of the GPUs, ascending, each once */
	unsigned target_count;
};

/* ---- which instruction sets run, and which of them to take ---- */

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
static const char *why_not(const struct detecting *c, const struct isa_row *row,
			   const struct processors *p)
{
	struct strlist needs = {0};

	hardware_closure(c->f, row->cpuinfo, row->cpuinfo_count, c->a, &needs);
	const char *missing = hardware_lacks(c->f, c->h, &needs, c->a);
	if (missing)
		return missing;
	for (size_t i = 0; i < needs.count; i++) {
		const struct processor_row *r = distrusted(p, needs.items[i]);
		if (r)
			return arena_printf(c->a, "%s: %s", needs.items[i],
					    *r->note ? r->note : r->name);
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
	if (*name && *kind)
		strlist_addf(&c->d->reasons, c->a, "the processor is %s (%s)", name, kind);
	else if (*name || *kind)
		strlist_addf(&c->d->reasons, c->a, "the processor is %s", *name ? name : kind);
	for (size_t i = 0; i < p->count; i++)
		if (*p->rows[i]->note && !p->rows[i]->distrust_count)
			strlist_ref(&c->d->reasons, c->a, p->rows[i]->note);
}

/* Whether a row that runs is made for the workload. */
static bool is_served(const struct detecting *c)
{
	for (size_t i = 0; i < c->d->isa_count; i++)
		if (!c->d->isas[i].missing &&
		    strings_contain(c->d->isas[i].row->workloads,
				    c->d->isas[i].row->workloads_count, c->workload))
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
		const char *lowest =
			!d->isa_count ? ""
				      : arena_printf(c->a, "; the lowest, %s, lacks %s",
						     d->isas[0].row->name, d->isas[0].missing);
		strlist_addf(&d->reasons, c->a, "no instruction set in the tables runs here%s",
			     lowest);
		if (strlist_contains(&c->h->cpu.flags, "hypervisor"))
			strlist_ref(&d->warnings, c->a,
				    "this is a virtual machine, whose hypervisor may hide what the "
				    "processor has: let it "
				    "show the host's (QEMU: -cpu host)");
		return;
	}

	struct strlist needs = {.items = best->cpuinfo, .count = best->cpuinfo_count};
	strlist_addf(&d->reasons, c->a, "%s: the processor has %s", best->name,
		     strlist_join(&needs, c->a, " "));
	explain_refused(c, best);
	bool asked = strcmp(c->workload, "general") != 0 && strcmp(c->workload, "training") != 0;
	if (asked && !is_served(c))
		strlist_addf(&d->reasons, c->a,
			     "no instruction set that runs here is meant for %s: this is the one "
			     "for general use",
			     c->workload);
	if (strcmp(c->workload, "training") == 0)
		strlist_ref(&d->reasons, c->a,
			    "training uses float32 on a CPU and any type on a GPU; for bfloat16 on "
			    "the CPU use "
			    "--workload bf16");
}

static void detect_cpu(struct detecting *c)
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
		bool wanted = row->workloads_count == 0 ||
			      strings_contain(row->workloads, row->workloads_count, c->workload);
		if (!missing && wanted && (!best || row->rank >= best->rank))
			best = row;
	}

	d->isa = best ? best->name : NULL;
	explain_processor(c, &p);
	explain_choice(c, best);
}

/* ---- the targets for the GPUs, and the toolkits that the driver can run ---- */

/* The row of a capability, or of the one whose code its GPUs run; else the highest one
 * below it, of the same major number, whose code it runs, or (any) of all; else NULL. */
static const struct gpu_row *row_for(const struct tables *t, const char *capability, bool any,
				     struct arena *a)
{
	const char *dot = capability + strcspn(capability, ".");
	const struct gpu_row *best = tables_gpu(
		t, arena_printf(a, "%.*s%s", (int)(dot - capability), capability, dot + !!*dot));
	long major = strtol(capability, NULL, 10);

	if (best)
		return best;
	for (unsigned i = 0; i < t->gpus_count; i++) {
		const struct gpu_row *row = &t->gpus[i];
		int order = version_cmp(row->capability, capability);
		bool same_major = strtol(row->capability, NULL, 10) == major;
		if (order >= 0 || row->tegra || (!any && !same_major))
			continue;
		if (!best || version_cmp(row->capability, best->capability) > 0)
			best = row;
	}

	return best;
}

/* Whether no row is above it. */
static bool is_newest(const struct tables *t, const char *capability)
{
	for (unsigned i = 0; i < t->gpus_count; i++)
		if (!t->gpus[i].tegra && version_cmp(t->gpus[i].capability, capability) > 0)
			return false;
	return t->gpus_count > 0;
}

static void add_target(struct detecting *c, const struct gpu_row *row, bool ptx)
{
	unsigned at = 0;

	while (at < c->target_count &&
	       version_cmp(c->targets[at].row->capability, row->capability) < 0)
		at++;
	if (at < c->target_count && c->targets[at].row == row) {
		c->targets[at].ptx |= ptx;
		return;
	}

	memmove(&c->targets[at + 1], &c->targets[at], (c->target_count - at) * sizeof(*c->targets));
	c->targets[at] = (struct gpu_target){.row = row, .suffix = "", .ptx = ptx};
	c->target_count++;
}

static void add_gpu(struct detecting *c, const struct hardware_gpu *g)
{
	const struct gpu_row *row = row_for(c->t, g->capability, false, c->a);
	bool ptx = !row && is_newest(c->t, g->capability);

	if (ptx)
		row = row_for(c->t, g->capability, true, c->a);
	if (row)
		add_target(c, row, ptx);
	if (row && version_cmp(row->capability, g->capability) == 0)
		return;
	const char *what = arena_printf(c->a, "%s has %s", g->name, g->capability);
	if (!row) {
		strlist_addf(&c->d->warnings, c->a, "%s: no toolkit in the tables compiles for it",
			     what);
		return;
	}

	what = arena_printf(c->a, "%s, which has no target in the tables", what);
	if (ptx)
		strlist_addf(&c->d->warnings, c->a, "%s: the driver compiles the PTX for %s", what,
			     row->capability);
	else
		strlist_addf(&c->d->warnings, c->a, "%s: code for %s runs on it", what,
			     row->capability);
}

static void detect_gpus(struct detecting *c)
{
	struct strlist seen = {0};

	c->targets = arena_array(c->a, c->h->gpu_count + 1, sizeof(*c->targets));
	for (size_t i = 0; i < c->h->gpu_count; i++) {
		const struct hardware_gpu *g = &c->h->gpus[i];
		const char *kind = arena_printf(c->a, "%s %s", g->name, g->capability);
		if (strlist_contains(&seen, kind))
			continue;
		strlist_ref(&seen, c->a, kind);
		strlist_addf(&c->d->reasons, c->a, "%s has compute capability %s", g->name,
			     g->capability);
		add_gpu(c, g);
	}

	if (*c->h->gpu_trouble)
		strlist_addf(&c->d->warnings, c->a, "the NVIDIA driver %s: %s",
			     c->h->gpu_count ? "does not work without errors" : "does not work",
			     c->h->gpu_trouble);
	if (!c->h->gpu_count)
		strlist_ref(&c->d->reasons, c->a,
			    *c->h->driver || *c->h->gpu_trouble
				    ? "there is an NVIDIA driver, but no GPU responds"
				    : "no NVIDIA GPU was found");
}

static const char *gpu_name(const struct detecting *c)
{
	const struct profile p = {.gpu = c->target_count ? GPU_CUDA : GPU_CPU,
				  .targets = c->targets,
				  .targets_count = c->target_count};

	return profile_gpu_name(&p, c->a);
}

static void detect_toolkits(struct detecting *c)
{
	struct detected *d = c->d;

	if (!c->h->gpu_count && !*c->h->driver)
		return;
	struct strlist by_fit[4] = {0};
	d->toolkits = arena_array(c->a, c->t->toolkits_count, sizeof(*d->toolkits));
	for (unsigned i = 0; i < c->t->toolkits_count; i++) {
		enum driver_fit fit = driver_fit(c->t, c->h, c->t->toolkits[i].version);
		d->toolkits[d->toolkit_count++] = (struct detect_toolkit){&c->t->toolkits[i], fit};
		strlist_ref(&by_fit[fit], c->a, c->t->toolkits[i].version);
	}

	if (by_fit[DRIVER_UNKNOWN].count) {
		strlist_ref(&d->warnings, c->a,
			    "the driver's version is unknown, so are the toolkits that it can run");
		return;
	}

	struct strlist parts = {0};
	if (!by_fit[DRIVER_OWN].count && !by_fit[DRIVER_COMPATIBLE].count)
		strlist_ref(&parts, c->a, "runs no CUDA version in the tables");
	if (by_fit[DRIVER_OWN].count)
		strlist_addf(&parts, c->a, "runs CUDA %s",
			     strlist_join(&by_fit[DRIVER_OWN], c->a, " "));
	if (by_fit[DRIVER_COMPATIBLE].count)
		strlist_addf(&parts, c->a, "%s%s by minor-version compatibility (no PTX)",
			     by_fit[DRIVER_OWN].count ? "" : "runs CUDA ",
			     strlist_join(&by_fit[DRIVER_COMPATIBLE], c->a, " "));
	if (by_fit[DRIVER_TOO_OLD].count)
		strlist_addf(&parts, c->a, "not %s",
			     strlist_join(&by_fit[DRIVER_TOO_OLD], c->a, " "));
	strlist_addf(&d->reasons, c->a, "driver %s %s", driver_text(c->h, c->a),
		     strlist_join(&parts, c->a, "; "));
}

/* ---- the newest release that can be built: plan_resolve
 * decides what can, so no rule is written twice ---- */

static bool can_plan(const struct detecting *c, const struct release_row *r, const char *cuda)
{
	AUTO_ARENA struct arena scratch = {0};
	struct variant v = {
		.package = PACKAGE_TORCH, .python = r->pythons[r->pythons_count - 1], .cuda = cuda};
	const struct plan *p;
	bool mac = strcmp(c->h->platform, "aarch64-darwin") == 0;
	enum gpu_kind gpu = cuda ? GPU_CUDA : GPU_CPU;

	if (mac)
		gpu = GPU_MPS;
	v.profile = (struct profile){.name = "detected",
				     .file = "",
				     .platform = c->h->platform,
				     .gpu = gpu,
				     .isa = mac ? NULL : tables_isa(c->t, c->d->isa),
				     .targets = c->targets,
				     .targets_count = cuda ? c->target_count : 0};
	const struct plan_request q = {.variant = &v, .release = r->name};
	return plan_resolve(c->t, &q, &scratch, &p, ERR_IGNORED) == 0;
}

/* Without --release, only upstream's own releases count. */
static bool considered(const struct detecting *c, const struct release_row *r)
{
	return r->pytorch && r->pythons_count &&
	       (c->release ? strcmp(r->name, c->release) == 0 : tables_offered(r));
}

static const char *floor_of(const struct detecting *c, const char *cuda)
{
	const struct toolkit_row *row = tables_toolkit(c->t, cuda);
	return row ? row->driver_floor : "";
}

/* How the driver runs a toolkit on all GPUs of the machine. */
static enum driver_fit fit_of_gpus(const struct detecting *c, const char *cuda)
{
	return driver_lacks(c->t, c->h) ? DRIVER_TOO_OLD : driver_fit(c->t, c->h, cuda);
}

/* The first toolkit of a release with this fit that has all targets; of those
 * too new for the driver, the one with the lowest requirement; NULL: none. */
static const char *toolkit_for(const struct detecting *c, const struct release_row *r,
			       enum driver_fit fit)
{
	const char *best = NULL;

	for (unsigned k = 0; k < r->toolkits_count; k++) {
		const char *cuda = r->toolkits[k];
		bool better = !best || (fit == DRIVER_TOO_OLD &&
					version_cmp(floor_of(c, cuda), floor_of(c, best)) < 0);
		if (better && fit_of_gpus(c, cuda) == fit && can_plan(c, r, cuda))
			best = cuda;
	}

	return best;
}

/* The newest release first; in it, a toolkit that the
 * driver fully supports before one by compatibility. */
static bool find(struct detecting *c, enum driver_fit worst)
{
	for (unsigned i = c->t->releases_count; i-- > 0;) {
		const struct release_row *r = &c->t->releases[i];
		bool fine = considered(c, r) && !c->target_count && can_plan(c, r, NULL);
		for (enum driver_fit fit = DRIVER_OWN;
		     considered(c, r) && c->target_count && !fine && fit <= worst; fit++)
			fine = (c->d->cuda = toolkit_for(c, r, fit)) != NULL;
		if (fine) {
			c->d->release = r->name;
			return true;
		}
	}

	return false;
}

static const char *lowest_floor(const struct detecting *c)
{
	const char *floor = floor_of(c, c->d->cuda);

	for (unsigned i = 0; i < c->target_count; i++) {
		const char *own = c->targets[i].row->driver_min;
		if (*own && version_cmp(own, floor) > 0)
			floor = own;
	}

	return floor;
}

/* A driver that runs none of the toolkits for the targets. A Jetson's comes with JetPack. */
static void warn_of_driver(struct detecting *c)
{
	const char *driver = driver_text(c->h, c->a);
	const struct gpu_row *tegra = driver_tegra(c->t, c->h, "0");

	if (tegra)
		strlist_addf(&c->d->warnings, c->a,
			     "driver %s is of a JetPack with its own CUDA, for which ptbuild has "
			     "no toolkit: install "
			     "JetPack 7 (CUDA %s or newer), then use %s-%s",
			     driver, tegra->sbsa, gpu_name(c), c->d->isa);
	else
		strlist_addf(&c->d->warnings, c->a,
			     "driver %s is too old for every toolkit that supports %s: update it "
			     "to %s or newer, then "
			     "use %s-%s",
			     driver, gpu_name(c), lowest_floor(c), gpu_name(c), c->d->isa);
}

static void detect_release(struct detecting *c)
{
	struct detected *d = c->d;

	while (!find(c, DRIVER_UNKNOWN) && c->target_count) {
		if (find(c, DRIVER_TOO_OLD)) {
			warn_of_driver(c);
			d->cuda = NULL;
			d->release = NULL;
			c->target_count = 0;
			continue;
		}

		strlist_addf(&d->warnings, c->a,
			     "no release has one toolkit for all of these GPUs: sm%s is left out "
			     "and needs a build of "
			     "its own",
			     c->targets[0].row->sm);
		c->targets++;
		c->target_count--;
	}

	if (!d->release)
		strlist_ref(&d->warnings, c->a,
			    c->release ? arena_printf(c->a,
						      "release %s cannot be built for this machine",
						      c->release)
				       : "no release in the tables can be built for this machine");
	else if (d->cuda)
		strlist_addf(
			&d->reasons, c->a, "release %s, with CUDA %s, is the %s for %s", d->release,
			d->cuda, c->release ? "one asked for" : "newest default release",
			fit_of_gpus(c, d->cuda) == DRIVER_UNKNOWN ? "these GPUs"
								  : "this driver and these GPUs");
	else
		strlist_addf(&d->reasons, c->a,
			     c->release ? "release %s is the one asked for"
					: "release %s is the newest default release that builds "
					  "for this processor",
			     d->release);
}

/* ---- the choice ---- */

/* Builds are for the Pythons of their release, and their
 * wheels for the glibc of the root and newer ones. */
static void check_system(struct detecting *c)
{
	const struct hardware *h = c->h;
	const struct release_row *r;
	bool fine = !h->pythons.count;

	if (!c->d->release || tables_need_release(c->t, c->d->release, &r, ERR_IGNORED) < 0)
		return;
	for (size_t i = 0; i < h->pythons.count && !fine; i++)
		fine = strings_contain(r->pythons, r->pythons_count, h->pythons.items[i]);
	if (!fine)
		strlist_addf(&c->d->warnings, c->a,
			     "release %s is for Python %s, and this machine has %s", r->name,
			     strlist_join(&(struct strlist){.items = r->pythons,
							    .count = r->pythons_count},
					  c->a, " "),
			     strlist_join(&h->pythons, c->a, " "));
	if (*r->asked)
		strlist_addf(&c->d->warnings, c->a, "release %s: %s", r->name, r->asked);
	const char *oldest = "";
	for (unsigned i = 0; i < r->worlds_count; i++) {
		const struct world_part *base;
		if (world_part_load(c->t->dir, r->worlds[i].base, c->a, &base, ERR_IGNORED) == 0 &&
		    *base->glibc && (!*oldest || version_cmp(base->glibc, oldest) < 0))
			oldest = base->glibc;
	}

	if (*h->glibc && version_cmp(h->glibc, oldest) < 0)
		strlist_addf(&c->d->warnings, c->a,
			     "its glibc is %s, and the oldest world of release %s has %s: a wheel "
			     "may need that",
			     h->glibc, r->name, oldest);
}

static void choose_mac(struct detecting *c)
{
	struct detected *d = c->d;

	if (strcmp(c->h->platform, "aarch64-darwin") != 0) {
		strlist_ref(&d->reasons, c->a,
			    "PyTorch 2.2 was the last release for Intel Macs: no release in the "
			    "tables supports them");
		return;
	}

	d->profile = "darwin-mps";
	d->gpu = "darwin";
	strlist_ref(&d->reasons, c->a,
		    "Apple silicon: PyTorch uses the GPU through Metal, and one instruction set "
		    "fits all models");
	detect_release(c);
}

/* Other instruction sets for the same GPUs, the CPU alone, and older code that the GPU runs. */
static void add_others(struct detecting *c)
{
	struct detected *d = c->d;

	for (size_t i = d->isa_count; i-- > 0;) {
		const struct isa_row *row = d->isas[i].row;
		if (d->isas[i].missing || strcmp(row->name, d->isa) == 0)
			continue;
		kvlist_set(&d->also, c->a, arena_printf(c->a, "%s-%s", d->gpu, row->name),
			   row->workloads_count
				   ? arena_printf(c->a, "for --workload %s", row->workloads[0])
				   : "runs too");
	}

	if (c->target_count)
		kvlist_set(&d->also, c->a, arena_printf(c->a, "cpu-%s", d->isa),
			   "does not use the GPU");
	/* The PTX of a target without code for the GPU says nothing of older code. */
	const bool exact = c->target_count == 1 && !c->targets[0].ptx;
	for (unsigned i = 0; exact && !c->targets[0].row->tegra && i < c->t->gpus_count; i++) {
		const struct gpu_row *row = &c->t->gpus[i], *own = c->targets[0].row;
		size_t major = strcspn(own->capability, ".") + 1;
		if (!row->tegra && row != own &&
		    strncmp(row->capability, own->capability, major) == 0 &&
		    strcmp(row->capability, own->capability) < 0)
			kvlist_set(&d->also, c->a, arena_printf(c->a, "sm%s-%s", row->sm, d->isa),
				   arena_printf(c->a, "code for %s runs on %s", row->capability,
						own->capability));
	}
}

static void add_command(struct detecting *c)
{
	struct detected *d = c->d;

	d->command = arena_printf(c->a, "ptbuild %s--profile %s",
				  strcmp(d->gpu, "darwin") == 0 ? "plan " : "", d->profile);
	if (d->cuda)
		d->command = arena_printf(c->a, "%s --release %s --cuda %s", d->command, d->release,
					  d->cuda);
	else if (c->release)
		d->command = arena_printf(c->a, "%s --release %s", d->command, c->release);
}

static void choose_linux(struct detecting *c)
{
	struct detected *d = c->d;

	detect_cpu(c);
	detect_gpus(c);
	detect_toolkits(c);
	if (!d->isa)
		return;
	detect_release(c);
	d->gpu = gpu_name(c);
	d->profile = arena_printf(c->a, "%s-%s", d->gpu, d->isa);
	add_others(c);
	check_system(c);
}

int detect_choose(const struct tables *t, const struct hardware_facts *f, const struct hardware *h,
		  const char *workload, const char *release, struct arena *a, struct detected *ret,
		  struct err *e)
{
	struct detected d = {0};
	struct detecting c = {.t = t,
			      .f = f,
			      .h = h,
			      .workload = workload ? workload : "general",
			      .release = release,
			      .a = a,
			      .d = &d};
	const struct release_row *known;

	if (release && tables_need_release(t, release, &known, e) < 0)
		return -1;
	if (strstr(h->platform, "-darwin"))
		choose_mac(&c);
	else
		choose_linux(&c);
	if (d.profile)
		add_command(&c);
	*ret = d;
	return 0;
}

void detect_gpus_only(const struct tables *t, const struct hardware *h, struct arena *a,
		      struct detected *ret)
{
	struct detected d = {0};
	struct detecting c = {.t = t, .h = h, .workload = "general", .a = a, .d = &d};

	detect_gpus(&c);
	detect_toolkits(&c);
	d.gpu = c.target_count ? gpu_name(&c) : NULL;
	*ret = d;
}

bool detect_is_native(const char *name)
{
	size_t first = strcspn(name, "-");
	return (first == 6 && strncmp(name, "native", 6) == 0) ||
	       (name[first] && strcmp(name + first + 1, "native") == 0);
}

int detect_fill_native(const struct detected *d, const char *name, struct arena *a,
		       const char **ret, struct err *e)
{
	size_t first = strcspn(name, "-");
	const char *gpu = arena_strndup(a, name, first),
		   *isa = name[first] ? name + first + 1 : NULL;

	if (!detect_is_native(name)) {
		*ret = name;
		return 0;
	}

	if (!d->profile) {
		err_set(e, ERR_POLICY, "no profile fits this machine: %s",
			d->reasons.count ? d->reasons.items[d->reasons.count - 1] : "");
		return err_hint(
			e,
			"'ptbuild detect' shows why; name a profile to build for another machine");
	}

	if (!d->isa && isa) {
		err_set(e, ERR_POLICY, "'%s' has no meaning on a Mac", name);
		return err_hint(e, "use native, or %s", d->profile);
	}

	if (!isa) {
		*ret = d->profile;
		return 0;
	}

	*ret = arena_printf(a, "%s-%s", strcmp(gpu, "native") == 0 ? d->gpu : gpu,
			    strcmp(isa, "native") == 0 ? d->isa : isa);
	return 0;
}
