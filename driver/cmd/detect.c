#include "core/machine/detect.h"
#include "core/machine/official_fit.h"

#include "base/sys/json.h"
#include "cmd/cmd.h"

struct detect_options {
	struct cmd_globals global;
	const char *workload;
	const char *machine;
	const char *release;
};

static const char *const fit_names[] = {[DRIVER_OWN] = "own",
					[DRIVER_COMPATIBLE] = "compatible",
					[DRIVER_UNKNOWN] = "not known",
					[DRIVER_TOO_OLD] = "too new for the driver"};

JSON_FIELDS(also_fields, JSON_AS(struct kv, key, "profile"), JSON_AS(struct kv, value, "note"));

static json_t *isas_json(const struct detected *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->isa_count; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:b, s:o}", "name", d->isas[i].row->name,
						"runs", d->isas[i].missing == NULL, "missing",
						json_or_null(d->isas[i].missing)));
	return list;
}

static json_t *toolkits_json(const struct detected *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->toolkit_count; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "cuda",
						      d->toolkits[i].row->version, "fit",
						      fit_names[d->toolkits[i].fit], "driver",
						      d->toolkits[i].row->driver, "driver_floor",
						      d->toolkits[i].row->driver_floor));
	return list;
}

static const struct show rows[] = {
	SHOW("profile", "{profile|none}"),
	SHOW("build", "{command}"),
	SHOW("or", "{without_build}, the official wheel with this code alone"),
	SHOW("why", "{}", .each = "reasons"),
	SHOW("warning", "{}", .each = "warnings"),
	SHOW("also", "{profile}: {note}", .each = "also"),
	{0}};

static int run_detect(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct detect_options *o = c->options;
	const struct tables *t = c->tables;
	const struct hardware_facts *f;
	struct hardware h;
	struct detected d;
	struct official_choice official;

	(void)args;
	if (hardware_facts_load(c->profiles_dir, c->arena, &f, e) < 0)
		return -1;
	int rc = o->machine ? hardware_load(o->machine, c->arena, &h, e)
			    : hardware_read(f, true, c->run, c->arena, &h, e);
	if (rc < 0 || detect_choose(t, f, &h, o->workload, o->release, c->arena, &d, e) < 0)
		return -1;
	const struct official_query q = {.machine = &h, .release = o->release};
	if (official_for(t, &q, c->arena, &official, e) < 0)
		return -1;
	const char *slim = official.release && d.gpu
				   ? official_command(&official, d.gpu, h.platform, c->arena)
				   : NULL;
	if (cmd_show(c,
		     json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			       "s:o, s:o}",
			       "schema", 1, "profile", json_or_null(d.profile), "gpu",
			       json_or_null(d.gpu), "isa", json_or_null(d.isa), "release",
			       json_or_null(d.release), "cuda", json_or_null(d.cuda), "command",
			       json_or_null(d.command), "without_build", json_or_null(slim),
			       "workload", json_or_null(o->workload ? o->workload : "general"),
			       "reasons", json_from_strlist(&d.reasons), "warnings",
			       json_from_strlist(&d.warnings), "also",
			       json_rows(d.also.items, d.also.count, sizeof(*d.also.items),
					 also_fields),
			       "isas", isas_json(&d), "toolkits", toolkits_json(&d), "machine",
			       hardware_json(&h)),
		     rows, e) < 0)
		return -1;
	if (d.profile)
		return 0;
	err_set(e, ERR_POLICY, "no profile fits this machine");
	return err_hint(e,
			"'ptbuild list --isas' lists the instruction sets that builds can target");
}

#define DETECT(type, field) (type), offsetof(struct detect_options, field)

static const struct arg_def detect_defs[] = {
	{"workload", 0, DETECT(ARG_STRING, workload), "KIND",
	 "main use of the CPU: general (default), training, int8 or bf16", DETECT_WORKLOADS},
	{"machine", 0, DETECT(ARG_STRING, machine), "FILE",
	 "choose for the machine that a file describes, not for this one", "<file>"},
	{"release", 0, DETECT(ARG_STRING, release), "NAME", "choose for one release", "<release>"},
	{0},
};

const struct command command_detect = {
	.name = "detect",
	.summary = "recommend a profile for this machine",
	.usage = "[--workload KIND] [--machine FILE] [--release NAME] [--json]",
	.tables = {detect_defs},
	.options_size = sizeof(struct detect_options),
	.run = run_detect,
};
