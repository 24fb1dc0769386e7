#include "cmd/slim_native.h"

#include "core/plan/plan.h"
#include "core/variant/variant.h"
#include "core/wheel/wheel.h"

static int no_gpu(const struct hardware *h, const struct detected *d, struct err *e)
{
	if (*h->gpu_trouble) {
		err_set(e, ERR_POLICY, "the NVIDIA driver of this machine does not work: %s", h->gpu_trouble);
		return err_hint(e, "fix the driver, or name the GPU that the wheel is for, for example --gpu sm89");
	}
	if (*h->driver && !h->gpu_count) {
		err_set(e, ERR_POLICY, "no GPU responds to NVIDIA driver %s of this machine", h->driver);
		return err_hint(e, "give the container or virtual machine its GPU, or name one, for example --gpu "
				   "sm89");
	}
	if (h->gpu_count)
		err_set(e, ERR_POLICY, "no GPU target is known for this machine: %s",
			d->warnings.count ? d->warnings.items[0] : h->gpus[0].name);
	else
		err_set(e, ERR_POLICY, "this machine has no NVIDIA GPU, so '--gpu native' has no meaning");
	return err_hint(e, "name the GPU that the wheel is for, for example --gpu sm89 for an RTX 4090 or L4; "
			   "'ptbuild list --gpus' lists them");
}

int slim_native(struct cmd_context *c, const struct detected **ret, struct err *e)
{
	const struct hardware_facts *facts;
	const struct hardware *h;
	const struct tables *t;
	struct detected *d = arena_array(c->arena, 1, sizeof(*d));
	if (cmd_tables(c, &t, e) < 0 || cmd_machine(c, true, &facts, &h, e) < 0)
		return -1;
	detect_gpus_only(t, h, c->arena, d);
	if (!d->gpu)
		return no_gpu(h, d, e);
	log_info(c->run->log, "native is %s on this machine: %s", d->gpu, d->reasons.items[0]);
	for (size_t i = 0; i < d->warnings.count; i++)
		log_warn(c->run->log, "%s", d->warnings.items[i]);
	*ret = d;
	return 0;
}

/* torch's wheel of a release for any of its Pythons, the newest first, or for the one that is named; NULL: none. */
static const struct official_wheel *find_torch(const struct official *all, const struct release_row *r,
					       const struct slim_wish *w, struct arena *a)
{
	const struct official_wheel *found;
	const char *dist = tables_distribution(PACKAGE_TORCH);
	for (unsigned i = w->python ? 1 : r->pythons_count; i-- > 0;) {
		const char *python = w->python ? w->python : r->pythons[i];
		if (official_find(all, dist, python, w->platform, w->cuda, a, &found, ERR_IGNORED) == 0)
			return found;
	}
	return NULL;
}

static bool has_targets(const struct tables *t, const struct release_row *r, const char *cuda, const char *gpus,
			struct arena *a)
{
	struct profile p;
	if (profile_parse(t, arena_printf(a, "%s-avx2", gpus), a, &p, ERR_IGNORED) < 0)
		return false;
	for (unsigned i = 0; i < p.targets_count; i++)
		if (!plan_takes_target(r, PACKAGE_TORCH, cuda, &p.targets[i]))
			return false;
	return true;
}

/* The toolkit of the release's wheel, if the wheel is one of those wished for; NULL. */
static const char *fitting_cuda(const struct tables *t, const struct release_row *r, const struct slim_wish *w,
				struct arena *a)
{
	struct official all;
	if (!tables_offered(r) || official_read(t->dir, r->name, a, &all, ERR_IGNORED) < 0)
		return NULL;
	const struct official_wheel *torch = find_torch(&all, r, w, a);
	if (!torch || strcmp(torch->cuda, "-") == 0)
		return NULL;
	if (w->native && !detect_runs(w->native, torch->cuda))
		return NULL;
	for (size_t i = 0; i < w->gpus->count; i++)
		if (!has_targets(t, r, torch->cuda, w->gpus->items[i], a))
			return NULL;
	return torch->cuda;
}

int slim_newest_release(struct cmd_context *c, const struct slim_wish *w, const char **ret, struct err *e)
{
	const struct tables *t;
	const char *gpus = strlist_join(w->gpus, c->arena, ", ");
	const char *driver = w->native ? " and the driver of this machine" : "";
	if (cmd_tables(c, &t, e) < 0)
		return -1;
	for (unsigned i = t->releases_count; i-- > 0;) {
		const char *cuda = fitting_cuda(t, &t->releases[i], w, c->arena);
		if (!cuda)
			continue;
		*ret = t->releases[i].name;
		log_info(c->run->log, "release %s with CUDA %s: the newest official torch for %s%s; --release chooses",
			 *ret, cuda, gpus, driver);
		return 0;
	}
	err_set(e, ERR_POLICY, "no official torch is for %s%s%s%s", gpus, driver, w->python ? " and Python " : "",
		w->python ? w->python : "");
	return err_hint(e, w->native ? "update the driver ('ptbuild detect' says which CUDA it runs), or choose with "
				       "--release"
				     : "choose one with --release; 'ptbuild list --releases' lists them");
}
