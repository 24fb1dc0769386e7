#include "cmd/slim_gpus.h"

#include "base/sys/json.h"
#include "core/machine/detect.h"
#include "core/tables/gpu_runs.h"
#include "step/slim/slim_env.h"

static bool runs_any(const struct tables *t, const struct strlist *codes, const char *gpu)
{
	for (size_t i = 0; i < codes->count; i++)
		if (gpu_target_runs(t, codes->items[i], gpu, "") != GPU_RUNS_NO)
			return true;
	return false;
}

int cmd_env_warn(struct cmd_context *c, const struct slim_marker *wanted, struct err *e)
{
	const struct hardware_facts *facts;
	const struct hardware *h;

	if (cmd_machine(c, true, &facts, &h, e) < 0)
		return -1;
	for (size_t i = 0; i < h->gpu_count; i++)
		if (!runs_any(c->tables, &wanted->gpus, h->gpus[i].capability))
			log_warn(c->run->log,
				 "this machine's '%s' (compute capability %s) runs no code for %s",
				 h->gpus[i].name, h->gpus[i].capability,
				 slim_marker_names(wanted, c->arena));
	return 0;
}

static const struct show env_rows[] = {
	SHOW("{package:<44}", "{?gpu}code for {gpu}[; without {dropped:,}]", .each = "packages"),
	SHOW("{package:<44}", "{!gpu}without GPU code[; without {dropped:,}]", .each = "packages"),
	SHOW("ok", "{?runs}gpu  this machine's {name} ({capability}) runs it", .each = "machine"),
	SHOW("failure", "{!runs}gpu  this machine's {name} ({capability}) runs none of it",
	     .each = "machine"),
	{.text = "{!packages}no package in {env} was slimmed by ptbuild"},
	{0}};

static const char *names_or_null(const struct slim_marker *m, struct arena *a)
{
	return m->gpus.count ? slim_marker_names(m, a) : NULL;
}

int cmd_env_doctor(struct cmd_context *c, const char *dir, struct err *e)
{
	const struct hardware_facts *facts;
	const struct hardware *h;
	struct slim_marked *marked;
	struct slim_marker all = {0};
	size_t count;
	const char *other = NULL;

	if (cmd_open(c, OPEN_TABLES, e) < 0 ||
	    slim_env_marked(dir, c->run, c->arena, &marked, &count, e) < 0 ||
	    cmd_machine(c, true, &facts, &h, e) < 0)
		return -1;
	json_t *packages = json_array(), *machine = json_array();
	for (size_t i = 0; i < count; i++) {
		const struct slim_marker *m = &marked[i].marker;
		json_array_append_new(packages,
				      json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "package",
						marked[i].info, "release", m->release, "ptbuild",
						m->ptbuild, "gpus", json_from_strlist(&m->gpus),
						"gpu", json_or_null(names_or_null(m, c->arena)),
						"dropped", json_from_strlist(&m->dropped)));
		for (size_t k = 0; k < m->gpus.count; k++)
			strlist_once(&all.gpus, c->arena, m->gpus.items[k]);
	}

	for (size_t i = 0; i < h->gpu_count && all.gpus.count; i++) {
		const bool ok = runs_any(c->tables, &all.gpus, h->gpus[i].capability);
		other = ok || other ? other : h->gpus[i].capability;
		json_array_append_new(machine,
				      json_pack("{s:s, s:s, s:b}", "name", h->gpus[i].name,
						"capability", h->gpus[i].capability, "runs", ok));
	}

	if (cmd_show(c,
		     json_pack("{s:i, s:o, s:o, s:o}", "schema", 1, "env", json_or_null(dir),
			       "packages", packages, "machine", machine),
		     env_rows, e) < 0)
		return -1;
	if (!other)
		return 0;
	err_set(e, ERR_POLICY, "'%s' has code for %s, and a GPU here has compute capability %s",
		dir, slim_marker_names(&all, c->arena), other);
	return err_hint(e, "reinstall its packages and run ptbuild slim --env for this GPU");
}

static int no_gpu(const struct hardware *h, const struct detected *d, struct err *e)
{
	if (*h->gpu_trouble) {
		err_set(e, ERR_POLICY, "the NVIDIA driver of this machine does not work: %s",
			h->gpu_trouble);
		return err_hint(e, "fix the driver, or name the GPU that the wheel is for, for "
				   "example --gpu sm89");
	}

	if (*h->driver && !h->gpu_count) {
		err_set(e, ERR_POLICY, "no GPU responds to NVIDIA driver %s of this machine",
			h->driver);
		return err_hint(e, "give the container or virtual machine its GPU, or name one, "
				   "for example --gpu "
				   "sm89");
	}

	if (h->gpu_count)
		err_set(e, ERR_POLICY, "no GPU target is known for this machine: %s",
			d->warnings.count ? d->warnings.items[0] : h->gpus[0].name);
	else
		err_set(e, ERR_POLICY,
			"this machine has no NVIDIA GPU, so '--gpu native' has no meaning");
	return err_hint(
		e,
		"name the GPU that the wheel is for, for example --gpu sm89 for an RTX 4090 or L4; "
		"'ptbuild list --gpus' lists them");
}

int slim_native(struct cmd_context *c, const char **ret, const struct hardware **ret_machine,
		struct err *e)
{
	const struct hardware_facts *facts;
	const struct hardware *h;
	struct detected *d = arena_array(c->arena, 1, sizeof(*d));

	if (cmd_machine(c, true, &facts, &h, e) < 0)
		return -1;
	detect_gpus_only(c->tables, h, c->arena, d);
	if (!d->gpu)
		return no_gpu(h, d, e);
	log_info(c->run->log, "native is %s on this machine: %s", d->gpu, d->reasons.items[0]);
	for (size_t i = 0; i < d->warnings.count; i++)
		log_warn(c->run->log, "%s", d->warnings.items[i]);
	*ret = d->gpu;
	*ret_machine = h;
	return 0;
}

const char *slim_runs_on(const struct fatbin_file_cut *f, const struct fatbin_wanted *w,
			 struct arena *a)
{
	struct strlist listed = {0}, others = {0};

	strlist_split(&listed, a, f->cut.archs ? f->cut.archs : "", " ");
	for (size_t i = 0; i < w->count && listed.count; i++)
		if (!strlist_contains(&listed, arena_printf(a, "sm_%u", w->gpus[i].number)))
			strlist_addf(&others, a, "sm%u", w->gpus[i].number);
	return others.count ? strlist_join(&others, a, ", ") : NULL;
}
