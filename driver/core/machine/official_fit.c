#include "core/machine/official_fit.h"

#include "core/tables/gpu_runs.h"
#include "core/tables/tables.h"
#include "core/variant/variant.h"
#include "core/wheel/wheel.h"

struct fitting {
	const struct tables *t;
	const struct hardware *h;
	struct arena *a;
	const struct official *o;
	int machine; /* official_machine */
};

/* How well code of the list runs on a GPU. PTX is compiled by a driver that is as new as the
 * toolkit. */
static enum gpu_runs list_runs(const struct fitting *c, const char *gpu, const char *cuda,
			       bool own)
{
	const struct strlist *targets = &c->o->gpus[c->machine];
	enum gpu_runs best = GPU_RUNS_NO;
	for (size_t i = 0; i < targets->count; i++) {
		const char *target = targets->items[i];
		if (!own)
			target = arena_strndup(c->a, target, strcspn(target, "+"));
		const enum gpu_runs runs = gpu_target_runs(c->t, target, gpu, cuda);
		best = runs > best ? runs : best;
	}
	return best;
}

static bool gpus_run(const struct fitting *c, const char *cuda)
{
	const enum driver_fit fit = driver_fit(c->t, c->h, cuda);
	if (fit != DRIVER_OWN && fit != DRIVER_COMPATIBLE)
		return false;
	for (size_t i = 0; i < c->h->gpu_count; i++)
		if (list_runs(c, c->h->gpus[i].capability, cuda, fit == DRIVER_OWN) != GPU_RUNS_YES)
			return false;
	return c->h->gpu_count > 0;
}

/* manylinux_2_28 needs glibc 2.28. */
static bool glibc_runs(const struct fitting *c, const char *platform)
{
	static const char prefix[] = "manylinux_";
	if (!*c->h->glibc && !c->h->pythons.count)
		return true; /* a description of the hardware alone */
	if (strncmp(platform, prefix, strlen(prefix)) != 0 || !*c->h->glibc)
		return false;
	const char *numbers = platform + strlen(prefix);
	char *version = arena_strndup(c->a, numbers, strspn(numbers, "0123456789_"));
	version[strcspn(version, "_")] = '.';
	version[strcspn(version, "_")] = '\0';
	return version_cmp(c->h->glibc, version) >= 0;
}

/* The newest Python of the machine that a wheel is for, "" where none is known; NULL: none. */
static const char *python_of(const struct fitting *c, const struct wheel_name *n)
{
	if (!c->h->pythons.count)
		return "";
	for (size_t i = c->h->pythons.count; i-- > 0;)
		if (wheel_name_takes(n, c->h->pythons.items[i], c->a))
			return c->h->pythons.items[i];
	return NULL;
}

/* The newest of these Pythons that has a wheel; NULL: none. */
static const char *choose_python(const struct fitting *c)
{
	const char *best = NULL;
	for (size_t i = 0; i < c->o->count; i++) {
		const struct official_wheel *w = &c->o->wheels[i];
		const bool torch = strcmp(w->name.dist, "torch") == 0;
		if (!torch || official_machine(w->name.platform) != c->machine || strcmp(w->cuda, "-") == 0)
			continue;
		const char *python = python_of(c, &w->name);
		if (!python || !glibc_runs(c, w->name.platform) || !gpus_run(c, w->cuda))
			continue;
		if (!best || version_cmp(python, best) > 0)
			best = python;
	}
	return best;
}

int official_for(const struct tables *t, const struct hardware *h, const char *wanted, struct arena *a,
		 struct official_choice *ret, struct err *e)
{
	const bool arm = strcmp(h->platform, "aarch64-linux") == 0;
	struct official_choice none = {0};
	if (!arm && strcmp(h->platform, "x86_64-linux") != 0) {
		*ret = none;
		return 0;
	}
	for (unsigned i = t->releases_count; i-- > 0;) {
		const char *release = t->releases[i].name;
		struct official o;
		if ((wanted && strcmp(release, wanted) != 0) || !official_pinned(t->dir, release, a))
			continue;
		if (official_read(t->dir, release, a, &o, e) < 0)
			return -1;
		const struct fitting c = {.t = t, .h = h, .a = a, .o = &o, .machine = arm};
		const char *python = choose_python(&c);
		if (python) {
			*ret = (struct official_choice){.release = release, .python = python};
			return 0;
		}
	}
	*ret = none;
	return 0;
}

bool official_serves(const struct tables *t, const struct official *o, const char *platform, const char *gpu)
{
	AUTO_ARENA struct arena a = {0};
	const struct fitting c = {.t = t, .o = o, .a = &a, .machine = strncmp(platform, "aarch64", 7) == 0};
	return !o->gpus[c.machine].count || list_runs(&c, gpu, "", true) != GPU_RUNS_NO;
}

int official_for_variant(const struct tables *t, const struct variant *v, struct arena *a, struct official_choice *ret,
			 struct err *e)
{
	static const char any_glibc[] = "99";
	struct hardware h = {.platform = v->profile.platform,
			     .driver = "",
			     .driver_cuda = v->cuda ? v->cuda : "",
			     .glibc = any_glibc};
	h.gpus = arena_array(a, v->profile.targets_count + 1, sizeof(*h.gpus));
	for (unsigned i = 0; i < v->profile.targets_count; i++)
		h.gpus[h.gpu_count++].capability = v->profile.targets[i].row->capability;
	strlist_ref(&h.pythons, a, v->python);
	return official_for(t, &h, NULL, a, ret, e);
}

const char *official_command(const struct official_choice *choice, const char *gpu, const char *platform,
			     struct arena *a)
{
	const bool arm = strcmp(platform, "aarch64-linux") == 0;
	return arena_printf(a, "ptbuild slim --release %s --gpu %s%s%s%s", choice->release, gpu,
			    *choice->python ? " --python " : "", choice->python,
			    arm ? " --platform aarch64-linux" : "");
}
