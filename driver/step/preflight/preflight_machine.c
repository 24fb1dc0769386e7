/* The machine that builds: platform, sandbox,
 * processor, directories, disk, memory, its programs. */
#include <ifaddrs.h>
#include <net/if.h>

#include "base/os.h"
#include "base/sys/machine.h"
#include "core/code/code.h"
#include "core/plan/runs_on.h"
#include "core/root/jobs.h"
#include "core/world/cross.h"
#include "step/preflight/preflight.h"

#define GIB (1024.0 * 1024 * 1024)
/* A unit with torch/extension.h needs more. */
#define LEAST_BYTES (UINT64_C(512) << 20)
#define TEMP_BYTES (64.0 * 1024 * 1024)

/* Whether programs of the plan's platform can be run here: the root's, or a world's to be made. */
static bool is_emulated(const struct preflight *d)
{
	const struct preflight_request *q = d->q;
	const struct world *cross = NULL;
	struct strlist names;

	if (q->kind == SANDBOX_NONE)
		return false;
	if (!q->not_made)
		return q->root->emulation && strcmp(q->root->platform, q->plan->platform) == 0;
	const struct cross_query look = {.profiles = q->tables->dir,
					 .names = &names,
					 .target = q->plan->platform,
					 .host = machine_platform(d->arena)};
	return world_cross_names(look.profiles, d->arena, &names, ERR_IGNORED) == 0 &&
	       world_cross_find(&look, d->arena, &cross, ERR_IGNORED) == 0 && cross;
}

/* A build runs its platform's own compilers, as they are or emulated.
 * What this machine lacks for another one is of no use. */
int preflight_platform(struct preflight *d, struct err *e)
{
	const struct plan *p = d->q->plan;
	struct err why = {0};

	if (!p)
		return 0;
	const char *here = machine_platform(d->arena);
	if (strcmp(here, p->platform) == 0)
		return 0;
	d->emulated = is_emulated(d);
	d->stop = !d->emulated || emulation_check(p->platform, &why) < 0;
	if (*why.msg)
		return preflight_err(d, "platform", &why, e);
	if (d->stop)
		preflight_fail(
			d, ERR_POLICY, "platform",
			strstr(p->platform, "-darwin")
				? "ptbuild plans it, on any machine, and does not build it"
				: "build it on such a machine; a plan of it can be made anywhere",
			"%s is for %s, and this machine is %s", p->variant, p->platform, here);
	return 0;
}

/* How programs of another platform are run. */
int preflight_emulation(struct preflight *d, struct err *e)
{
	const struct emulation *m = d->q->root->emulation;

	(void)e;
	if (d->no_root || !m)
		return 0;
	if (m->layer)
		preflight_ok(d, "emulation", "%s by %s, compilers of this machine", m->platform,
			     m->name);
	else
		preflight_warn(
			d, "emulation", "leave --root out, or name a world: --root world:debian13",
			"%s by %s; the root's compilers are emulated too%s", m->platform, m->name,
			m->percent ? arena_printf(d->arena, ", and take about %u times as long",
						  (m->percent + 50) / 100)
				   : "");
	return 0;
}

/* ---- the sandbox, or none ---- */

/* The kind of a character that build tools do not cope with, in words. */
static const char *character_kind(char c, struct arena *a)
{
	if (c == ' ')
		return "spaces";
	if (c & 0x80)
		return "letters beyond ASCII";
	return c > ' ' ? arena_printf(a, "'%c'", c) : "control characters";
}

/* Without a sandbox the trial, and where no place can be had the build, lies
 * at the store's own path, which CMake files, scripts and search paths mangle. */
static void check_path(struct preflight *d)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,+=@%~/-";
	const char *dir = d->q->store_dir, *at = dir + strspn(dir, plain);

	if (*at)
		preflight_fail(d, ERR_POLICY, "store",
			       "leave --sandbox none out, in the sandbox all paths are plain; or "
			       "use another directory with --cache DIR",
			       "no build without a sandbox in '%s': build tools do not cope with "
			       "%s in paths",
			       dir, character_kind(*at, d->arena));
}

/* The directory, or its nearest parent that is there; a link
 * that leads nowhere is, and nothing can be made in it. */
static const char *nearest(const struct preflight *d, const char *dir)
{
	struct stat st;

	while (lstat(dir, &st) < 0 && strcmp(dir, "/") != 0)
		dir = path_dir(d->arena, dir);
	return dir;
}

static const char *top_of(const struct preflight *d, const struct sandbox_place *p)
{
	return p->there ? SANDBOX_TOP : path_dir(d->arena, SANDBOX_TOP);
}

static bool is_apart(const struct preflight *d, const struct sandbox_place *p)
{
	struct stat one, other;
	return stat(nearest(d, d->q->store_dir), &one) == 0 && stat(top_of(d, p), &other) == 0 &&
	       one.st_dev != other.st_dev;
}

/* The directory of a build without a sandbox decides its bytes. */
static void show_paths(struct preflight *d)
{
	struct sandbox_place p;

	sandbox_place_look(SANDBOX_TOP, d->arena, &p);
	if (!p.fine)
		preflight_warn(
			d, "paths", p.fix,
			"the build runs inside the store, so its wheel will not be byte-identical "
			"to one from the sandbox: %s",
			p.why);
	else
		preflight_ok(d, "paths", "those of the sandbox: the build runs in '%s'%s",
			     SANDBOX_TOP,
			     is_apart(d, &p) ? ", on another file system than the store: what is "
					       "stopped goes on while "
					       "that stays"
					     : "");
}

/* Returns the first interface that is up, a loopback one or one that leads out of the machine; NULL
 * if none is up. */
static const char *interface_up(bool loopback, struct arena *a)
{
	struct ifaddrs *all;
	const char *name = NULL;

	if (getifaddrs(&all) < 0)
		return "an interface that cannot be listed";
	for (const struct ifaddrs *i = all; i && !name; i = i->ifa_next)
		if ((i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK) == !loopback)
			name = arena_strdup(a, i->ifa_name);
	freeifaddrs(all);
	return name;
}

/* A new network namespace has its loopback interface down, and nothing reaches 127.0.0.1 then. The
 * checks of a built torch do that (torch.distributed), after hours; in bubblewrap it is up. */
static void check_loopback(struct preflight *d)
{
	static const char fix[] = "begin with 'ip link set lo up': unshare --net sh -c 'ip link "
				  "set lo up && exec ptbuild ...'";
	static const char text[] =
		"the loopback interface is down: a torch cannot be tried after its build";

	if (interface_up(true, d->arena))
		return;
	if (d->q->plan && package_is_torch(d->q->plan->package))
		preflight_fail(d, ERR_SYSTEM, "loopback", fix, text);
	else
		preflight_warn(d, "loopback", fix, text);
}

/* --offline binds ptbuild; without a sandbox only the machine or container
 * can bind the build. Where somebody promises that it does (a build step of
 * a Dockerfile), that is looked at and not believed. */
static void check_network(struct preflight *d)
{
	static const char fix[] =
		"run it as unshare --net sh -c 'ip link set lo up && exec ptbuild ...'; of "
		"containers, Docker obeys RUN --network=none, and buildah with --isolation chroot "
		"does not";
	static const char text[] = "'%s' is up, and a build without a sandbox has it%s";
	const char *promise = getenv("PTBUILD_NETWORK"), *up = interface_up(false, d->arena);

	if (promise && strcmp(promise, "none") == 0 && up)
		preflight_fail(d, ERR_POLICY, "network", fix, text, up,
			       ": PTBUILD_NETWORK says otherwise");
	else if (d->q->offline && up)
		preflight_warn(d, "network", fix, text, up, "");
	else if (!up && (d->q->offline || promise))
		preflight_ok(d, "network", "none: only the loopback interface is up");
}

int preflight_sandbox(struct preflight *d, struct err *e)
{
	const struct sandbox_protection_state *w;
	struct err why = {0};

	if (d->q->kind == SANDBOX_NONE) {
		preflight_warn(
			d, "sandbox", "leave --sandbox none out",
			"none: the build sees the whole machine, and its wheel may depend on it");
		check_path(d);
		show_paths(d);
		check_loopback(d);
		check_network(d);
		return 0;
	}

	if (sandbox_probe(d->q->root, d->run, &why) < 0) {
		/* nothing can be asked of a root that no sandbox shows */
		d->no_root = true;
		return preflight_err(d, "sandbox", &why, e);
	}

	preflight_ok(d, "sandbox", "bubblewrap works");
	/* A protection that the user turned off, or that this machine lacks, is a warning: if a
	 * required one is missing, the sandbox itself fails. */
	for (size_t i = 0, n = d->q->whole
				       ? sandbox_protections_look(d->q->kind, d->run, d->arena, &w)
				       : 0;
	     i < n; i++) {
		const char *name = arena_printf(d->arena, "protection %s", w[i].name);
		if (w[i].stands)
			preflight_ok(d, name, "%s", w[i].text);
		else
			preflight_warn(d, name, "", "%s", w[i].text);
	}

	return 0;
}

/* ---- the processor ---- */

/* What of an instruction set this processor lacks: "avx512f, avx512dq", "" where nothing. */
static const char *lacking(const struct isa_row *isa, struct arena *a)
{
	struct strlist missing = {0};

	for (unsigned i = 0; i < isa->cpuinfo_count; i++)
		if (!machine_has_feature(isa->cpuinfo[i]))
			strlist_ref(&missing, a, isa->cpuinfo[i]);
	return strlist_join(&missing, a, ", ");
}

int preflight_cpu(struct preflight *d, struct err *e)
{
	const struct isa_row *isa = d->q->plan ? d->q->plan->isa_row : NULL;
	const char *missing = isa && !d->emulated ? lacking(isa, d->arena) : "";

	(void)e;
	if (isa && d->emulated && !*isa->qemu)
		preflight_warn(d, "cpu", "",
			       "no processor of qemu runs %s alone: the wheel will be "
			       "built but not run",
			       isa->name);
	else if (isa && d->emulated)
		preflight_ok(d, "cpu", "runs %s, emulated as %s", isa->name, isa->qemu);
	else if (*missing)
		preflight_warn(d, "cpu", "",
			       "this processor cannot run %s (no %s): the wheel will "
			       "be built but not run",
			       isa->name, missing);
	else if (isa)
		preflight_ok(d, "cpu", "runs %s", isa->name);
	return 0;
}

/* What is built against a torch imports it in its build, and has GPU code only where that has. */
int preflight_torch_fits(struct preflight *d, struct err *e)
{
	const struct plan *p = d->q->plan;
	const char *label = p ? strchr(p->torch_version, '+') : NULL;
	struct promise torch;

	(void)e;
	if (!label)
		return 0;
	promise_of_label(d->q->tables, label + 1, d->arena, &torch);
	if (p->cuda && torch.gpu_known && torch.gpu.count == 0)
		preflight_fail(d, ERR_POLICY, "torch",
			       "choose a profile without GPU, or a torch with CUDA",
			       "%s is to have GPU code for CUDA %s, and its torch %s has none",
			       p->package, p->cuda, p->torch_version);
	const char *missing = torch.isa && !d->emulated ? lacking(torch.isa, d->arena) : "";
	if (*missing)
		preflight_fail(d, ERR_POLICY, "torch",
			       "build it on a machine that can, or for a profile that this one can "
			       "run ('ptbuild detect')",
			       "the build of %s imports its torch, and this processor cannot run "
			       "%s (no %s)",
			       p->package, torch.isa->name, missing);
	return 0;
}

/* Whether the tables can judge what this program's decoder finds in a wheel. */
int preflight_decoder(struct preflight *d, struct err *e)
{
	const struct isa_rules *rules;
	struct err why = {0};
	char id[32];

	if (isa_rules_new(d->q->tables, d->arena, &rules, &why) < 0) {
		why.kind = ERR_SYSTEM; /* not the tables' fault: this machine's decoder is newer */
		return preflight_err(d, "decoder", &why, e);
	}

	preflight_ok(d, "decoder", "%s, and every set of it has a row", decoder_id(id));
	return 0;
}

/* ---- directories and disk ---- */

/* Others than PyTorch take a tenth of a GiB and unpack the torch that they are built against. */
double preflight_build_bytes(const struct release_row *r, const char *package)
{
	const double whole = size_bytes(r->disk);
	return !package_is_torch(package) && whole > GIB ? GIB : whole;
}

/* Returns the disk space that a build needs beyond what an earlier run of it left. */
static double disk_need(const struct preflight *d)
{
	uint64_t have = 0;
	const struct plan *p = d->q->plan;
	double need = 0; /* of a world alone */

	if (d->q->release)
		need = preflight_build_bytes(d->q->release, p ? p->package : PACKAGE_TORCH);
	if (d->q->build_dir && fs_exists(TRUSTED, d->q->build_dir))
		(void)!fs_tree_size(d->q->build_dir, &have, ERR_IGNORED);
	need = need > (double)have ? need - (double)have : 0;
	return need + (double)d->q->world_bytes;
}

static const char *size_text(const struct preflight *d, double bytes)
{
	return bytes < GIB / 10 ? arena_printf(d->arena, "%.0f MiB", bytes * 1024 / GIB)
				: arena_printf(d->arena, "%.1f GiB", bytes / GIB);
}

/* A place that the build writes into, and what it needs of it. */
struct place {
	const char *name, *dir; /* dir NULL: not asked */
	const char *disk;       /* the name of the file system's line */
	const char *disk_dir;
	bool run; /* programs in it are run */
	double need;
	const char *fix, *fix_space;
};

static int check_space(struct preflight *d, const struct place *p, struct err *e)
{
	const char *name = p->disk, *dir = p->disk_dir, *fix = p->fix_space;
	const double need = p->need;
	uint64_t bytes;
	struct err why = {0};

	if (fs_free_bytes(dir, &bytes, &why) < 0)
		return preflight_err(d, name, &why, e);
	const char *have = size_text(d, (double)bytes), *needed = size_text(d, need);
	if ((double)bytes < need)
		preflight_fail(d, ERR_SYSTEM, name, arena_printf(d->arena, "make room, or %s", fix),
			       "too little space left in '%s': %s free, and it needs %s", dir, have,
			       needed);
	else
		preflight_ok(d, name, need > 0 ? "%s free in '%s', it needs %s" : "%s free in '%s'",
			     have, dir, needed);
	return 0;
}

/* Whether a file can be made there, and run: access(2) knows what is mounted noexec.
 * False with a line. Where this is killed here the next run removes the file. */
static bool try_place(struct preflight *d, const struct place *p)
{
	const char *name = p->name, *dir = p->dir, *fix = p->fix;
	char *made = NULL;
	struct err why = {0};

	(void)!fs_sweep(TRUSTED, dir, ERR_IGNORED);
	AUTO_FD int fd =
		fs_neighbour(path_join(d->arena, dir, "file"), 0755, d->arena, &made, &why);
	bool written = fd >= 0 && fs_write_all(fd, "#!/bin/sh\n", 10, made, &why) == 0;
	bool runs = written && (!p->run || access(made, X_OK) == 0);
	if (!written)
		preflight_fail(d, ERR_SYSTEM, name, fix, "cannot write into '%s': %s", dir,
			       why.msg);
	else if (!runs)
		preflight_fail(d, ERR_SYSTEM, name,
			       arena_printf(d->arena, "%s, or mount it with exec", fix),
			       "programs in '%s' cannot be run: %s (mounted noexec?)", dir,
			       os_errno_text(errno));
	if (made)
		(void)unlink(made);
	return runs;
}

/* Returns the directory of a build's tree: the store, or SANDBOX_TOP on another file system. */
static const char *place_of_tree(const struct preflight *d, const char *store)
{
	struct sandbox_place p;

	if (d->q->kind != SANDBOX_NONE)
		return store;
	sandbox_place_look(SANDBOX_TOP, d->arena, &p);
	return p.fine && is_apart(d, &p) ? top_of(d, &p) : store;
}

/* Where the build writes, and runs and loads what it has made. Without a sandbox
 * compilers write into the machine's own /tmp, too; in it, /tmp is in memory. */
int preflight_places(struct preflight *d, struct err *e)
{
	static const char other_temp[] = "leave --sandbox none out",
			  other_store[] = "use another directory with --cache DIR",
			  other_out[] = "use another directory with --out DIR";
	const char *store = nearest(d, d->q->store_dir), *tree = place_of_tree(d, store);
	const char *out = d->q->out_dir ? nearest(d, d->q->out_dir) : NULL;
	/* A wheel has at most a sixteenth of the size of its build: for the CPU 95 MB of 12 GiB. */
	const struct place rows[] = {
		{"store", store, "disk", tree, true, disk_need(d), other_store,
		 tree == store ? other_store : "mount a larger one there"},
		{"temp", d->q->kind == SANDBOX_NONE ? "/tmp" : NULL, "temp", "/tmp", true,
		 TEMP_BYTES, other_temp, other_temp},
		{"output", out, "output", out, false,
		 (disk_need(d) - (double)d->q->world_bytes) / 16, other_out, other_out},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].dir && try_place(d, &rows[i]) && check_space(d, &rows[i], e) < 0)
			return -1;
	return 0;
}

/* ---- memory ---- */

/* Returns the least memory needed: the table's measurement, of CUDA's units only with CUDA; without
 * one, that of the smallest unit that includes torch's headers. */
static uint64_t least_memory(const struct preflight *d, const struct package_row *row)
{
	const struct memory_row *m = row ? row->memory : NULL;
	uint64_t most = m && *m->compile ? size_bytes(m->compile) : LEAST_BYTES;

	if (m && *m->link && size_bytes(m->link) > most)
		most = size_bytes(m->link);
	for (unsigned i = 0; m && i < m->heavy_count; i++) {
		bool cuda = strstr(m->heavy[i].units, ".cu") != NULL;
		if ((!cuda || (d->q->plan && d->q->plan->cuda)) &&
		    size_bytes(m->heavy[i].bytes) > most)
			most = size_bytes(m->heavy[i].bytes);
	}

	return most;
}

/* The job pools that the build will choose for this memory. */
int preflight_memory(struct preflight *d, struct err *e)
{
	uint64_t bytes = machine_memory();
	unsigned processors = machine_processors();
	const struct package_row *row =
		d->q->plan ? d->q->plan->package_row : d->q->release->pytorch;
	const struct jobs_memory need = jobs_from_table(row ? row->memory : NULL);
	const struct jobs_pools p = jobs_plan(jobs_usable(bytes), processors, d->q->jobs, &need);
	uint64_t largest = least_memory(d, row);
	const char *text = arena_printf(
		d->arena,
		"%s and %u processor%s: %u compiler%s at once, %u on heavy units, %u link%s",
		machine_memory_text(bytes, d->arena), processors, plural(processors), p.compile,
		plural(p.compile), p.heavy, p.link, plural(p.link));

	(void)e;
	if (jobs_usable(bytes) < largest)
		preflight_fail(
			d, ERR_SYSTEM, "memory",
			"end other programs, or use a machine or a container with more memory",
			"%s; one of them alone needs %.1f GiB", text, (double)largest / GIB);
	else if (p.compile < processors && !d->q->jobs)
		preflight_warn(
			d, "memory",
			"with more memory, or fewer other programs, every processor would be used",
			"%s", text);
	else
		preflight_ok(d, "memory", "%s", text);
	return 0;
}
