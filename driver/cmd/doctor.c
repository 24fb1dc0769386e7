#include "cmd/doctor.h"

#include <string.h>

static int choose(struct doctor *d, const struct strlist *args, struct err *e)
{
	const struct cmd_select *o = &((const struct cmd_select_base *)d->c->options)->select;
	const struct tables *t;
	if (cmd_tables(d->c, &t, e) < 0)
		return -1;
	if (args->count || o->profile || o->matrix || o->only.count) {
		struct selections s;
		if (cmd_select(d->c, args, &s, e) < 0)
			return -1;
		if (s.count != 1)
			return err_set(e, ERR_USAGE, "doctor checks one build, not %zu", s.count);
		d->release = s.items->release;
		return cmd_select_plan(d->c, s.items, NULL, NULL, NULL, &d->plan, e);
	}
	if (o->release)
		return tables_need_release(t, o->release, &d->release, e);
	for (unsigned i = 0; i < t->releases_count; i++)
		if (strcmp(t->releases[i].name, t->releases[i].base) == 0)
			d->release = &t->releases[i];
	return d->release ? 0 : err_set(e, ERR_CONFIG, "the tables in '%s' have no release", t->dir);
}

static int run_doctor(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct doctor d = {.c = c};
	if (choose(&d, args, e) < 0 || cmd_root(c, &d.root, e) < 0 || doctor_sandbox(&d, e) < 0 ||
	    doctor_root(&d, e) < 0 || doctor_cuda(&d, e) < 0 || doctor_machine(&d, e) < 0 || doctor_print(&d, e) < 0)
		return -1;
	return doctor_verdict(&d, e);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check whether this machine can build it",
	.usage = "[--profile PROFILE | VARIANT] [options]",
	.text = "Makes a sandbox and asks every tool of the root for its version. Compiles and links with the flags of "
		"the profile and with its BLAS, and lets nvcc compile for its GPU targets with the compiler that it "
		"accepts. Reads the versions of cuDNN, NCCL and the other libraries from their headers, and compares "
		"free disk space and memory with what the build needs. Each line is ok, a warning or a failure, with "
		"what to do about it.\n"
		"Without a profile it checks what every build of the release needs. The exit status is 0 if nothing "
		"failed, 8 if something is missing, and 7 if what is there does not go together.",
	.tables = {cmd_select_options, cmd_plan_options},
	.arguments = {{"VARIANT", "exact name of a build, instead of --profile", "<profile>"}},
	.examples = {{"ptbuild doctor --profile cpu-avx512 --root /srv/debian13", "can it be built in that root?"},
		     {"ptbuild doctor --profile sm90-avx512 --json", "the same as data"}},
	.options_size = sizeof(struct cmd_select_base),
	.run = run_doctor,
};
