#include "core/machine/official_fit.h"

#include "base/sys/machine.h"
#include "core/tables/gpu_runs.h"
#include "core/tables/tables.h"
#include "core/variant/variant.h"
#include "core/wheel/wheel.h"

struct fitting {
	const struct tables *t;
	const struct official_query *q;
	struct arena *a;
	const struct official *o;
	int machine; /* official_machine */
};

/* How well code of the list runs on a GPU. PTX is compiled by a driver that is as new as the
 * toolkit. */
static enum gpu_runs list_runs(const struct fitting *c, const char *gpu, const char *cuda, bool own)
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
	const struct hardware *h = c->q->machine;

	if (strcmp(cuda, "-") == 0)
		return c->q->any_driver && !h->gpu_count;
	const enum driver_fit fit = driver_fit(c->t, h, cuda);
	if (driver_lacks(c->t, h) || fit == DRIVER_TOO_OLD)
		return false;
	if (fit == DRIVER_UNKNOWN && !c->q->any_driver)
		return false;
	for (size_t i = 0; i < h->gpu_count; i++)
		if (list_runs(c, h->gpus[i].capability, cuda, fit != DRIVER_COMPATIBLE) !=
		    GPU_RUNS_YES)
			return false;
	return h->gpu_count > 0 || c->q->any_driver;
}

/* manylinux_2_28 needs glibc 2.28. */
static bool glibc_runs(const struct fitting *c, const char *platform)
{
	static const char prefix[] = "manylinux_";

	if (!*c->q->machine->glibc && !c->q->machine->pythons.count)
		return true; /* a description of the hardware alone */
	if (strncmp(platform, prefix, strlen(prefix)) != 0 || !*c->q->machine->glibc)
		return false;
	const char *numbers = platform + strlen(prefix);
	char *version = arena_strndup(c->a, numbers, strspn(numbers, "0123456789_"));
	version[strcspn(version, "_")] = '.';
	version[strcspn(version, "_")] = '\0';
	return version_cmp(c->q->machine->glibc, version) >= 0;
}

/* The newest Python of the machine that a wheel is for, "" where none is known; NULL: none. */
static const char *python_of(const struct fitting *c, const struct wheel_name *n)
{
	if (!c->q->machine->pythons.count)
		return "";
	for (size_t i = c->q->machine->pythons.count; i-- > 0;)
		if (wheel_name_takes(n, c->q->machine->pythons.items[i], c->a))
			return c->q->machine->pythons.items[i];
	return NULL;
}

static bool is_wanted(const struct official *o, const struct official_query *q, const char *dist,
		      struct arena *a)
{
	return (q->dists && strlist_contains(q->dists, dist)) ||
	       (q->all && official_has(o, dist, a));
}

bool official_has_all(const struct official *o, const struct official_query *q, const char *python,
		      struct arena *a)
{
	const struct official_wheel *w;

	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		const char *dist = tables_distribution(tables_packages[i]);
		if (is_wanted(o, q, dist, a) && official_find(o, dist, python, q->machine->platform,
							      q->cuda, a, &w, ERR_IGNORED) < 0)
			return false;
	}

	return true;
}

/* "3.13" of the tag "cp313"; NULL of another. */
static const char *python_of_tag(const struct wheel_name *n, struct arena *a)
{
	return strncmp(n->python, "cp3", 3) == 0 && n->python[3]
		       ? arena_printf(a, "3.%s", n->python + 3)
		       : NULL;
}

/* Whether a wheel of torch is for the machine; *ret_python: for which of its Pythons. */
static bool wheel_runs(const struct fitting *c, const struct official_wheel *w,
		       const char **ret_python)
{
	if (strcmp(w->name.dist, "torch") != 0 || official_machine(w->name.platform) != c->machine)
		return false;
	if (c->q->cuda && strcmp(w->cuda, c->q->cuda) != 0)
		return false;
	*ret_python = python_of(c, &w->name);
	return *ret_python && glibc_runs(c, w->name.platform) && gpus_run(c, w->cuda);
}

/* The wheel for the newest of these Pythons that has all that are wanted; false: none. */
static bool choose_wheel(const struct fitting *c, struct official_choice *ret)
{
	struct official_choice best = {0};

	for (size_t i = 0; i < c->o->count; i++) {
		const struct official_wheel *w = &c->o->wheels[i];
		const char *python;
		if (!wheel_runs(c, w, &python))
			continue;
		const char *wheel_python = *python ? python : python_of_tag(&w->name, c->a);
		if (!wheel_python || !official_has_all(c->o, c->q, wheel_python, c->a))
			continue;
		if (!best.python || version_cmp(wheel_python, best.wheel_python) > 0)
			best = (struct official_choice){
				.python = python, .wheel_python = wheel_python, .cuda = w->cuda};
	}

	*ret = best;
	return best.python != NULL;
}

int official_for(const struct tables *t, const struct official_query *q, struct arena *a,
		 struct official_choice *ret, struct err *e)
{
	const bool arm = machine_is_arm(q->machine->platform);
	const bool known = path_has_suffix(q->machine->platform, "-linux");
	struct official_choice choice = {0};

	for (unsigned i = known ? t->releases_count : 0; i-- > 0;) {
		const char *release = t->releases[i].name;
		struct official o;
		if ((q->release && strcmp(release, q->release) != 0) ||
		    !official_pinned(t->dir, release, a))
			continue;
		if (official_read(t->dir, release, a, &o, e) < 0)
			return -1;
		const struct fitting c = {.t = t, .q = q, .a = a, .o = &o, .machine = arm};
		if (choose_wheel(&c, &choice)) {
			choice.release = release;
			break;
		}
	}

	*ret = choice;
	return 0;
}

bool official_serves(const struct tables *t, const struct official *o, const char *platform,
		     const char *gpu)
{
	AUTO_ARENA struct arena a = {0};
	const struct fitting c = {.t = t, .o = o, .a = &a, .machine = machine_is_arm(platform)};
	bool any = !o->gpus[c.machine].count;

	for (size_t i = 0; i < o->count && !any; i++) {
		const struct official_wheel *w = &o->wheels[i];
		if (strcmp(w->name.dist, "torch") == 0 &&
		    official_machine(w->name.platform) == c.machine)
			any = list_runs(&c, gpu, w->cuda, true) != GPU_RUNS_NO;
	}

	return any;
}

int official_for_variant(const struct tables *t, const struct variant *v, struct arena *a,
			 struct official_choice *ret, struct err *e)
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
	const struct official_query q = {.machine = &h};
	return official_for(t, &q, a, ret, e);
}

const char *official_command(const struct official_choice *choice, const char *gpu,
			     const char *platform, struct arena *a)
{
	return arena_printf(a, "ptbuild slim --release %s --gpu %s%s%s%s", choice->release, gpu,
			    *choice->python ? " --python " : "", choice->python,
			    machine_is_arm(platform) ? " --platform aarch64-linux" : "");
}
