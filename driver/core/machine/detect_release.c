/* The newest release that can be built for the machine. plan_resolve decides what can, so no rule is written twice. */
#include <string.h>

#include "base/version.h"
#include "core/machine/detect_parts.h"

static bool can_plan(const struct detecting *c, const struct release_row *r, const char *cuda,
		     const struct gpu_target *targets, unsigned count)
{
	AUTO_ARENA struct arena scratch = {0};
	struct variant v = {.package = "pytorch", .python = r->pythons[r->pythons_count - 1], .cuda = cuda};
	const struct plan *p;
	struct err ignored = {0};
	bool mac = strcmp(c->h->platform, "aarch64-darwin") == 0;
	v.profile = (struct profile){.name = "detected", .file = "", .platform = c->h->platform};
	v.profile.gpu = mac ? GPU_MPS : cuda ? GPU_CUDA : GPU_CPU;
	v.profile.isa = mac ? NULL : tables_isa(c->t, c->d->isa);
	v.profile.targets = (struct gpu_target *)targets;
	v.profile.targets_count = cuda ? count : 0;
	const struct plan_request q = {.variant = &v, .release = r->name};
	return plan_resolve(c->t, &q, &scratch, &p, &ignored) == 0;
}

static enum detect_fit fit_of(const struct detected *d, const char *cuda)
{
	for (size_t i = 0; i < d->toolkit_count; i++)
		if (strcmp(d->toolkits[i].row->version, cuda) == 0)
			return d->toolkits[i].fit;
	return DETECT_UNKNOWN;
}

/* Without --release, only upstream's own releases count. */
static bool considered(const struct detecting *c, const struct release_row *r)
{
	return r->pytorch && r->pythons_count &&
	       (c->release ? strcmp(r->name, c->release) == 0 : strcmp(r->name, r->base) == 0);
}

static const char *floor_of(const struct detecting *c, const char *cuda)
{
	const struct toolkit_row *row = tables_toolkit(c->t, cuda);
	return row ? row->driver_floor : "";
}

/* The first toolkit of a release with this fit that has all targets; of those too new for the driver, the one with the
 * lowest requirement. */
static bool try_release(struct detecting *c, const struct release_row *r, enum detect_fit fit,
			const struct gpu_target *targets, unsigned count)
{
	const char *best = NULL;
	for (unsigned k = 0; k < r->toolkits_count; k++) {
		const char *cuda = r->toolkits[k];
		bool better = !best || (fit == DETECT_TOO_NEW && version_cmp(floor_of(c, cuda), floor_of(c, best)) < 0);
		if (better && fit_of(c->d, cuda) == fit && can_plan(c, r, cuda, targets, count))
			best = cuda;
	}
	if (!best)
		return false;
	c->d->release = r->name;
	c->d->cuda = best;
	return true;
}

/* The newest release first; in it, a toolkit that the driver fully supports before one by compatibility. */
static bool find(struct detecting *c, const struct gpu_target *targets, unsigned count, enum detect_fit worst)
{
	for (unsigned i = c->t->releases_count; i-- > 0;) {
		const struct release_row *r = &c->t->releases[i];
		for (enum detect_fit fit = DETECT_OWN; considered(c, r) && fit <= worst; fit++)
			if (try_release(c, r, fit, targets, count))
				return true;
	}
	return false;
}

static void find_without_gpu(struct detecting *c)
{
	for (unsigned i = c->t->releases_count; i-- > 0;)
		if (considered(c, &c->t->releases[i]) && can_plan(c, &c->t->releases[i], NULL, NULL, 0)) {
			c->d->release = c->t->releases[i].name;
			return;
		}
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

static void drop_oldest(struct detecting *c)
{
	strlist_addf(&c->d->warnings, c->a,
		     "no release has one toolkit for all of these GPUs: sm%s is left out and needs a build of its own",
		     c->targets[0].row->sm);
	c->targets++;
	c->target_count--;
}

void detect_release(struct detecting *c)
{
	struct detected *d = c->d;
	while (c->target_count) {
		if (find(c, c->targets, c->target_count, DETECT_UNKNOWN))
			break;
		if (find(c, c->targets, c->target_count, DETECT_TOO_NEW)) {
			strlist_addf(
				&d->warnings, c->a,
				"driver %s is too old for every toolkit that supports %s: update it to %s or newer",
				*c->h->driver ? c->h->driver : c->h->driver_cuda, detect_gpu_name(c), lowest_floor(c));
			break;
		}
		drop_oldest(c);
	}
	if (!c->target_count)
		find_without_gpu(c);
	if (!d->release)
		strlist_ref(&d->warnings, c->a,
			    c->release ? arena_printf(c->a, "release %s cannot be built for this machine", c->release)
				       : "no release in the tables can be built for this machine");
	else if (d->cuda)
		strlist_addf(&d->reasons, c->a, "release %s with CUDA %s is the newest for %s", d->release, d->cuda,
			     fit_of(d, d->cuda) == DETECT_TOO_NEW ? "these GPUs" : "this driver and these GPUs");
	else
		strlist_addf(&d->reasons, c->a, "release %s is the newest", d->release);
}
