#include "core/machine/detect.h"

#include <string.h>

#include "base/suggest.h"
#include "core/machine/detect_parts.h"

static int check_workload(const char *workload, struct arena *a, struct err *e)
{
	struct strlist known = {0};
	strlist_split(&known, a, DETECT_WORKLOADS, " ");
	if (strlist_contains(&known, workload))
		return 0;
	const char *near = suggest_nearest(workload, known.items, known.count);
	err_set(e, ERR_USAGE, "unknown workload '%s'", workload);
	return err_hint(e, "%s%s%sit is one of: %s", near ? "did you mean '" : "", near ? near : "", near ? "'? " : "",
			strlist_join(&known, a, " "));
}

static bool is_mac(const struct hardware *h)
{
	return strstr(h->platform, "-darwin") != NULL;
}

static void choose_mac(struct detecting *c)
{
	struct detected *d = c->d;
	if (strcmp(c->h->platform, "aarch64-darwin") != 0) {
		strlist_ref(&d->reasons, c->a,
			    "PyTorch 2.2 was the last release for Intel Macs: no release in the tables supports them");
		return;
	}
	d->profile = "darwin-mps";
	d->gpu = "darwin";
	strlist_ref(&d->reasons, c->a,
		    "Apple silicon: PyTorch uses the GPU through Metal, and one instruction set fits all models");
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
			   row->workloads_count ? arena_printf(c->a, "for --workload %s", row->workloads[0])
						: "runs too");
	}
	if (c->target_count)
		kvlist_set(&d->also, c->a, arena_printf(c->a, "cpu-%s", d->isa), "does not use the GPU");
	for (unsigned i = 0; c->target_count == 1 && !c->targets[0].row->tegra && i < c->t->gpus_count; i++) {
		const struct gpu_row *row = &c->t->gpus[i], *own = c->targets[0].row;
		size_t major = strcspn(own->capability, ".") + 1;
		if (!row->tegra && row != own && strncmp(row->capability, own->capability, major) == 0 &&
		    strcmp(row->capability, own->capability) < 0)
			kvlist_set(&d->also, c->a, arena_printf(c->a, "sm%s-%s", row->sm, d->isa),
				   arena_printf(c->a, "code for %s runs on %s", row->capability, own->capability));
	}
}

static void add_command(struct detecting *c)
{
	struct detected *d = c->d;
	d->command = arena_printf(c->a, "ptbuild --profile %s", d->profile);
	if (d->cuda)
		d->command = arena_printf(c->a, "%s --release %s --cuda %s", d->command, d->release, d->cuda);
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
	d->gpu = detect_gpu_name(c);
	d->profile = arena_printf(c->a, "%s-%s", d->gpu, d->isa);
	add_others(c);
}

int detect_choose(const struct tables *t, const struct hardware_facts *f, const struct hardware *h,
		  const char *workload, const char *release, struct arena *a, struct detected *ret, struct err *e)
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
	if (check_workload(c.workload, a, e) < 0 || (release && tables_need_release(t, release, &known, e) < 0))
		return -1;
	if (is_mac(h))
		choose_mac(&c);
	else
		choose_linux(&c);
	if (d.profile)
		add_command(&c);
	*ret = d;
	return 0;
}

bool detect_is_native(const char *name)
{
	size_t first = strcspn(name, "-");
	return (first == 6 && strncmp(name, "native", 6) == 0) ||
	       (name[first] && strcmp(name + first + 1, "native") == 0);
}

int detect_fill_native(const struct detected *d, const char *name, struct arena *a, const char **ret, struct err *e)
{
	size_t first = strcspn(name, "-");
	const char *gpu = arena_strndup(a, name, first), *isa = name[first] ? name + first + 1 : NULL;
	if (!detect_is_native(name)) {
		*ret = name;
		return 0;
	}
	if (!d->profile) {
		err_set(e, ERR_POLICY, "no profile fits this machine: %s",
			d->reasons.count ? d->reasons.items[d->reasons.count - 1] : "");
		return err_hint(e, "'ptbuild detect' shows why; name a profile to build for another machine");
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
