/* The machine that builds: sandbox, host programs, processor, disk, memory. */
#include <string.h>

#include "base/path.h"
#include "base/size.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "cmd/doctor.h"
#include "core/root/jobs.h"

#define GIB (1024.0 * 1024 * 1024)

int doctor_sandbox(struct doctor *d, struct err *e)
{
	struct err why = {0};
	if (cmd_sandbox(d->c) == SANDBOX_NONE) {
		doctor_warn(d, "sandbox", "none: the build sees the whole machine, and its wheel may depend on it");
		doctor_fix(d, "leave --sandbox none out");
	} else if (sandbox_probe(d->root, d->c->run, &why) < 0) {
		return doctor_fail_err(d, "sandbox", &why, e);
	} else {
		doctor_ok(d, "sandbox", "bubblewrap works");
	}
	return 0;
}

static void check_host_program(struct doctor *d, const char *name, const char *what)
{
	const char *path = proc_find(d->c->arena, name);
	if (path) {
		doctor_ok(d, name, "%s", path);
		return;
	}
	doctor_fail(d, ERR_SYSTEM, name, "not in PATH: %s", what);
	doctor_fix(d, "install %s", name);
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
		doctor_warn(d, "cpu", "this processor cannot run %s (no %s): the wheel is built but not tried",
			    isa->name, strlist_join(&missing, d->c->arena, ", "));
	else
		doctor_ok(d, "cpu", "runs %s", isa->name);
}

/* On the file system of the store, which need not exist yet. */
static int check_disk(struct doctor *d, struct err *e)
{
	const char *dir;
	struct err why = {0};
	uint64_t bytes;
	if (cmd_cache_dir(d->c, &dir, &why) < 0)
		return doctor_fail_err(d, "disk", &why, e);
	while (!fs_exists(dir) && strcmp(dir, "/") != 0)
		dir = path_dir(d->c->arena, dir);
	if (fs_free_bytes(dir, &bytes, &why) < 0)
		return doctor_fail_err(d, "disk", &why, e);
	bool torch = !d->plan || strcmp(d->plan->package, "pytorch") == 0;
	double need = torch ? (double)size_bytes(d->release->disk) : 0;
	const char *text = arena_printf(d->c->arena, "%.1f GiB free at '%s'", (double)bytes / GIB, dir);
	if (need > 0)
		text = arena_printf(d->c->arena, "%s, a build of PyTorch %s needs %.0f", text, d->release->name,
				    need / GIB);
	if ((double)bytes < need) {
		doctor_fail(d, ERR_SYSTEM, "disk", "%s", text);
		doctor_fix(d, "make room, or name another place with --cache DIR");
	} else {
		doctor_ok(d, "disk", "%s", text);
	}
	return 0;
}

/* The job pools that the build will choose for this memory. */
static void check_memory(struct doctor *d)
{
	uint64_t bytes = machine_memory();
	unsigned processors = machine_processors();
	const struct package_row *row = d->plan ? d->plan->package_row : d->release->pytorch;
	const struct jobs_memory need = jobs_from_table(row ? row->memory : NULL);
	const struct jobs_pools p = jobs_plan(jobs_usable(bytes), processors, d->c->global->jobs, &need);
	uint64_t largest = need.heavy > need.link ? need.heavy : need.link;
	const char *text = arena_printf(d->c->arena,
					"%.1f GiB and %u processors: %u compilers at once, %u on heavy units, %u links",
					(double)bytes / GIB, processors, p.compile, p.heavy, p.link);
	if (jobs_usable(bytes) < largest) {
		doctor_fail(d, ERR_SYSTEM, "memory", "%s; one of them alone takes %.1f GiB", text,
			    (double)largest / GIB);
		doctor_fix(d, "use a machine or a container with more memory");
	} else if (p.compile < processors && !d->c->global->jobs) {
		doctor_warn(d, "memory", "%s", text);
		doctor_fix(d, "with more memory, or fewer other programs, every processor would be used");
	} else {
		doctor_ok(d, "memory", "%s", text);
	}
}

int doctor_machine(struct doctor *d, struct err *e)
{
	check_host_program(d, "patch", "patches cannot be applied");
	check_host_program(d, "patchelf", "libraries cannot be copied into the wheel");
	check_cpu(d);
	if (check_disk(d, e) < 0)
		return -1;
	check_memory(d);
	return 0;
}
