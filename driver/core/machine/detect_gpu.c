/* The targets for the GPUs, and the toolkits that the driver can run. */
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "core/machine/detect_parts.h"
#include "core/variant/profile_parts.h"

/* The row of a capability; else the highest one below it with the same major number, whose code it runs; else NULL. */
static const struct gpu_row *row_for(const struct tables *t, const char *capability)
{
	const struct gpu_row *best = NULL;
	long major = strtol(capability, NULL, 10);
	for (unsigned i = 0; i < t->gpus_count; i++) {
		const struct gpu_row *row = &t->gpus[i];
		int order = version_cmp(row->capability, capability);
		if (order == 0)
			return row;
		if (order < 0 && !row->tegra && strtol(row->capability, NULL, 10) == major &&
		    (!best || version_cmp(row->capability, best->capability) > 0))
			best = row;
	}
	return best;
}

static const struct gpu_row *newest_row(const struct tables *t)
{
	const struct gpu_row *best = NULL;
	for (unsigned i = 0; i < t->gpus_count; i++)
		if (!t->gpus[i].tegra && (!best || version_cmp(t->gpus[i].capability, best->capability) > 0))
			best = &t->gpus[i];
	return best;
}

static void add_target(struct detecting *c, const struct gpu_row *row, bool ptx)
{
	unsigned at = 0;
	while (at < c->target_count && version_cmp(c->targets[at].row->capability, row->capability) < 0)
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
	const struct gpu_row *row = row_for(c->t, g->capability), *newest = newest_row(c->t);
	if (row && version_cmp(row->capability, g->capability) == 0) {
		add_target(c, row, false);
	} else if (row) {
		add_target(c, row, false);
		strlist_addf(&c->d->warnings, c->a, "%s has %s, which is not in the tables: code for %s runs on it",
			     g->name, g->capability, row->capability);
	} else if (newest && version_cmp(g->capability, newest->capability) > 0) {
		add_target(c, newest, true);
		strlist_addf(&c->d->warnings, c->a,
			     "%s has %s, which is not in the tables: the driver compiles the PTX for %s", g->name,
			     g->capability, newest->capability);
	} else {
		strlist_addf(&c->d->warnings, c->a, "%s has %s: no toolkit in the tables compiles for it", g->name,
			     g->capability);
	}
}

void detect_gpus(struct detecting *c)
{
	struct strlist seen = {0};
	c->targets = arena_array(c->a, c->h->gpu_count + 1, sizeof(*c->targets));
	for (size_t i = 0; i < c->h->gpu_count; i++) {
		const struct hardware_gpu *g = &c->h->gpus[i];
		const char *kind = arena_printf(c->a, "%s %s", g->name, g->capability);
		if (strlist_contains(&seen, kind))
			continue;
		strlist_ref(&seen, c->a, kind);
		strlist_addf(&c->d->reasons, c->a, "%s has compute capability %s", g->name, g->capability);
		add_gpu(c, g);
	}
	if (*c->h->gpu_trouble)
		strlist_addf(&c->d->warnings, c->a, "the NVIDIA driver does not work: %s", c->h->gpu_trouble);
	if (!c->h->gpu_count)
		strlist_ref(&c->d->reasons, c->a,
			    *c->h->driver ? "there is an NVIDIA driver, but no GPU responds"
					  : "no NVIDIA GPU was found");
}

const char *detect_gpu_name(const struct detecting *c)
{
	const struct profile p = {
		.gpu = c->target_count ? GPU_CUDA : GPU_CPU, .targets = c->targets, .targets_count = c->target_count};
	return profile_gpu_name(&p, c->a);
}

static enum detect_fit fit_of(const struct hardware *h, const struct toolkit_row *row)
{
	if (*h->driver_cuda && version_cmp(row->version, h->driver_cuda) <= 0)
		return DETECT_OWN;
	if (*h->driver) {
		if (version_cmp(h->driver, row->driver) >= 0)
			return DETECT_OWN;
		return version_cmp(h->driver, row->driver_floor) >= 0 ? DETECT_COMPATIBLE : DETECT_TOO_NEW;
	}
	if (*h->driver_cuda)
		return strtol(row->version, NULL, 10) == strtol(h->driver_cuda, NULL, 10) ? DETECT_COMPATIBLE
											  : DETECT_TOO_NEW;
	return DETECT_UNKNOWN;
}

void detect_toolkits(struct detecting *c)
{
	struct detected *d = c->d;
	if (!c->h->gpu_count && !*c->h->driver)
		return;
	struct strlist by_fit[4] = {0};
	d->toolkits = arena_array(c->a, c->t->toolkits_count, sizeof(*d->toolkits));
	for (unsigned i = 0; i < c->t->toolkits_count; i++) {
		enum detect_fit fit = fit_of(c->h, &c->t->toolkits[i]);
		d->toolkits[d->toolkit_count++] = (struct detect_toolkit){&c->t->toolkits[i], fit};
		strlist_ref(&by_fit[fit], c->a, c->t->toolkits[i].version);
	}
	if (by_fit[DETECT_UNKNOWN].count) {
		strlist_ref(&d->warnings, c->a, "the driver's version is unknown, so are the toolkits that it can run");
		return;
	}
	struct strlist parts = {0};
	if (!by_fit[DETECT_OWN].count && !by_fit[DETECT_COMPATIBLE].count)
		strlist_ref(&parts, c->a, "runs no CUDA version in the tables");
	if (by_fit[DETECT_OWN].count)
		strlist_addf(&parts, c->a, "runs CUDA %s", strlist_join(&by_fit[DETECT_OWN], c->a, " "));
	if (by_fit[DETECT_COMPATIBLE].count)
		strlist_addf(&parts, c->a, "%s by minor-version compatibility (no PTX)",
			     strlist_join(&by_fit[DETECT_COMPATIBLE], c->a, " "));
	if (by_fit[DETECT_TOO_NEW].count)
		strlist_addf(&parts, c->a, "not %s", strlist_join(&by_fit[DETECT_TOO_NEW], c->a, " "));
	strlist_addf(&d->reasons, c->a, "driver %s %s",
		     *c->h->driver ? c->h->driver : arena_printf(c->a, "for CUDA %s", c->h->driver_cuda),
		     strlist_join(&parts, c->a, "; "));
}
