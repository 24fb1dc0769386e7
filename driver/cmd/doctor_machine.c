/* The machine that builds: sandbox, host programs, processor, disk, memory. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/machine.h"
#include "base/path.h"
#include "cmd/doctor.h"

#define GIB (1024.0 * 1024 * 1024)
#define JOB_BYTES (2.3 * GIB) /* largest compiler process of a PyTorch build without CUDA */

int doctor_sandbox(struct doctor *d, struct err *e)
{
	struct err why = {0};
	if (cmd_sandbox(d->c) == SANDBOX_NONE) {
		doctor_warn(d, "sandbox", "none: the build sees the whole machine, and its wheel may depend on it",
			    "leave --sandbox none out");
	} else if (sandbox_probe(d->root, d->c->run, &why) == 0) {
		doctor_ok(d, "sandbox", "bubblewrap works");
	} else if (why.kind == ERR_INTERRUPTED) {
		*e = why;
		return -1;
	} else {
		doctor_fail_err(d, "sandbox", &why);
	}
	return 0;
}

static void check_host_program(struct doctor *d, const char *name, const char *what)
{
	const char *path = proc_find(d->c->arena, name);
	if (path)
		doctor_ok(d, name, path);
	else
		doctor_fail(d, ERR_SYSTEM, name, DOCTOR_TEXT(d, "not in PATH: %s", what), DOCTOR_TEXT(d, "install %s", name));
}

static void check_cpu(struct doctor *d)
{
	struct strlist missing = {0};
	const struct isa_row *isa = d->plan ? d->plan->isa_row : NULL;
	if (!isa)
		return;
	for (unsigned i = 0; i < isa->cpuinfo_count; i++)
		if (!machine_has_feature(isa->cpuinfo[i]))
			strlist_ref(&missing, d->c->arena, isa->cpuinfo[i]);
	if (missing.count)
		doctor_warn(d, "cpu",
			    DOCTOR_TEXT(d, "this processor cannot run %s (no %s): the wheel is built but not tried", isa->name,
					strlist_join(&missing, d->c->arena, ", ")),
			    "");
	else
		doctor_ok(d, "cpu", DOCTOR_TEXT(d, "runs %s", isa->name));
}

static double parse_disk(const char *text)
{
	char *end;
	double n = strtod(text, &end);
	return *end == 'T' ? n * 1024 * GIB : *end == 'M' ? n * GIB / 1024 : n * GIB;
}

/* The file system that the store is, or will be, on. */
static void check_disk(struct doctor *d)
{
	const char *dir;
	struct err why = {0};
	uint64_t bytes;
	if (cmd_cache_dir(d->c, &dir, &why) < 0) {
		doctor_fail_err(d, "disk", &why);
		return;
	}
	while (!fs_exists(dir) && strcmp(dir, "/") != 0)
		dir = path_dir(d->c->arena, dir);
	if (fs_free_bytes(dir, &bytes, &why) < 0) {
		doctor_fail_err(d, "disk", &why);
		return;
	}
	bool torch = !d->plan || strcmp(d->plan->package, "pytorch") == 0;
	double need = torch && *d->release->disk ? parse_disk(d->release->disk) : 0;
	const char *text = DOCTOR_TEXT(d, "%.1f GiB free at '%s'%s", (double)bytes / GIB, dir,
				       need > 0 ? DOCTOR_TEXT(d, ", a build of PyTorch %s needs %.0f", d->release->name, need / GIB) : "");
	if ((double)bytes < need)
		doctor_fail(d, ERR_SYSTEM, "disk", text, "make room, or name another place with --cache DIR");
	else
		doctor_ok(d, "disk", text);
}

static void check_memory(struct doctor *d)
{
	double bytes = (double)machine_memory();
	unsigned processors = machine_processors(), jobs = d->c->global->jobs ? d->c->global->jobs : processors;
	const char *text = DOCTOR_TEXT(d, "%.1f GiB for %u processors", bytes / GIB, processors);
	if (bytes < JOB_BYTES)
		doctor_fail(d, ERR_SYSTEM, "memory",
			    DOCTOR_TEXT(d, "%s: the largest compiler process alone takes %.1f GiB", text, JOB_BYTES / GIB),
			    "use a machine or a container with more memory");
	else if (bytes < JOB_BYTES * jobs)
		doctor_warn(d, "memory", DOCTOR_TEXT(d, "%s: heavy files will be compiled with fewer than %u jobs", text, jobs), "");
	else
		doctor_ok(d, "memory", text);
}

void doctor_machine(struct doctor *d)
{
	check_host_program(d, "patch", "patches cannot be applied");
	check_host_program(d, "patchelf", "libraries cannot be taken into the wheel");
	check_cpu(d);
	check_disk(d);
	check_memory(d);
}
