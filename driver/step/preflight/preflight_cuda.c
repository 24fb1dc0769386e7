/* CUDA: the root's toolkit, its compiler, its targets, and the libraries that the options ask for. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/version.h"
#include "step/preflight/preflight_parts.h"

/* "9.0a" and "12.0+PTX" as nvcc's targets "90a" and "120". */
static char *target_of(const char *capability, struct arena *a)
{
	struct strlist parts = {0};
	strlist_split(&parts, a, arena_strndup(a, capability, strcspn(capability, "+")), ".");
	return strlist_join(&parts, a, "");
}

static bool check_targets(struct preflight *d, struct strlist *targets)
{
	struct strlist missing = {0};
	for (size_t i = 0; i < d->q->plan->gpu.count; i++) {
		const char *target = target_of(d->q->plan->gpu.items[i], d->arena);
		strlist_ref(targets, d->arena, target);
		if (!strlist_contains(&d->toolkit->targets, target))
			strlist_addf(&missing, d->arena, "sm_%s", target);
	}
	if (!missing.count)
		return true;
	preflight_fail(d, ERR_POLICY, "targets", "nvcc %s does not know %s", d->toolkit->release,
		       strlist_join(&missing, d->arena, ", "));
	preflight_fix(d, "it knows %s: use a toolkit that has it (ptbuild list --gpus)",
		      strlist_join(&d->toolkit->targets, d->arena, " "));
	return false;
}

static bool check_host_compiler(struct preflight *d)
{
	const struct toolkit *k = d->toolkit;
	if (k->cxx) {
		preflight_ok(d, "nvcc-host", "%s (%s); nvcc accepts GCC up to %u", k->cxx, k->cc_id, k->gcc_max);
		return true;
	}
	preflight_fail(d, ERR_POLICY, "nvcc-host", "nvcc %s accepts GCC up to %u, the root's is %s", k->release,
		       k->gcc_max, *k->gcc ? k->gcc : "absent");
	preflight_fix(d, "install g++-%u in the root beside it", k->gcc_max);
	preflight_fix_world(d);
	return false;
}

/* nvcc breaks its messages into lines anywhere. */
static const char *way_out(const struct preflight *d, const char *message)
{
	const struct tables *t = d->q->tables;
	struct strlist words = {0};
	strlist_split(&words, d->arena, message, " \t\r\n");
	const char *line = strlist_join(&words, d->arena, " ");
	for (unsigned i = 0; i < t->nvcc_errors_count; i++)
		if (strstr(line, t->nvcc_errors[i].text))
			return t->nvcc_errors[i].fix;
	return "read its message: the toolkit and the compiler it was given do not go together";
}

/* Compiles a kernel for every target at once, with the compiler that the build will give nvcc. */
static int compile_kernel(struct preflight *d, const struct strlist *targets, struct err *e)
{
	static const char script[] = "n=$1; c=$2; shift 2; t=$(mktemp -d /tmp/ptbuild-checkXXXXXX) && trap 'rm -rf "
				     "$t' EXIT && echo '__global__ void twice(float *x) { *x *= 2; }' >$t/k.cu && cd "
				     "$t && \"$n\" -ccbin \"$c\" \"$@\" -c k.cu -o k.o";
	struct strlist args = {0};
	struct preflight_answer got;
	struct arena *a = d->arena;
	strlist_ref(&args, a, d->toolkit->nvcc);
	strlist_ref(&args, a, d->toolkit->cxx);
	for (size_t i = 0; i < targets->count; i++)
		strlist_addf(&args, a, "-gencode=arch=compute_%s,code=sm_%s", targets->items[i], targets->items[i]);
	if (preflight_ask(d, script, &args, &got, e) < 0)
		return -1;
	const char *names = strlist_join(targets, a, ", sm_");
	if (got.ok) {
		preflight_ok(d, "targets", "nvcc %s compiles for sm_%s with %s", d->toolkit->release, names,
			     d->toolkit->cxx);
		return 0;
	}
	preflight_fail(d, ERR_POLICY, "targets", "nvcc %s does not compile a kernel for sm_%s: %s", d->toolkit->release,
		       names, got.why);
	preflight_fix(d, "%s", way_out(d, got.why));
	return 0;
}

static bool is_on(const struct preflight *d, const char *toggle)
{
	const char *value = settings_value(&d->q->plan->env, toggle);
	return value && (strcmp(value, "ON") == 0 || strcmp(value, "1") == 0);
}

/* The last cuDNN that supports all GPUs of the plan; NULL: no limit. */
static const char *last_cudnn(const struct preflight *d, const struct tables *t)
{
	const char *last = NULL;
	for (unsigned i = 0; i < t->gpus_count; i++)
		for (size_t k = 0; k < d->q->plan->gpu.count; k++) {
			const struct gpu_row *row = &t->gpus[i];
			size_t n = strlen(row->capability);
			const char *asked = d->q->plan->gpu.items[k];
			if (*row->cudnn_max && strncmp(asked, row->capability, n) == 0 &&
			    (asked[n] < '0' || asked[n] > '9') && (!last || version_cmp(row->cudnn_max, last) < 0))
				last = row->cudnn_max;
		}
	return last;
}

static void check_part(struct preflight *d, const struct tables *t, const struct toolkit_part *p)
{
	const struct part_row *row = p->row;
	const char *last = strcmp(row->name, "cudnn") == 0 ? last_cudnn(d, t) : NULL;
	if (!is_on(d, row->toggle))
		return;
	if (!p->header) {
		preflight_fail(d, ERR_SYSTEM, row->name, "%s=ON, and no %s in the toolkit or the root", row->toggle,
			       row->header);
		preflight_fix(d, "install it in the root%s%s%s, or pass --set %s=OFF", *row->debian ? " (Debian: " : "",
			      row->debian, *row->debian ? ")" : "", row->toggle);
		preflight_fix_world(d);
	} else if (last && *p->version && version_cmp(p->version, last) > 0) {
		preflight_fail(d, ERR_POLICY, row->name,
			       "%s %s no longer supports one of the GPUs: %s is the last that does", p->header,
			       p->version, last);
		preflight_fix(d, "install %s, or pass --set %s=OFF", last, row->toggle);
	} else {
		preflight_ok(d, row->name, "%s%s%s", p->header, *p->version ? " " : "", p->version);
	}
}

/* Where CMake looks for a library of CUDA: a path inside the root, or NULL. */
static const char *find_library(const struct preflight *d, const char *name)
{
	static const char *const own[] = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
	static const char *const below[] = {"", "nvidia/current", "stubs"};
	struct strlist dirs = {0}, system = {0};
	struct err ignored = {0};
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		strlist_ref(&dirs, d->arena, path_join(d->arena, d->toolkit->where, own[i]));
	if (root_library_dirs(d->q->root, d->arena, &system, &ignored) < 0)
		err_clear(&ignored);
	/* The loader may know others, such as those of another toolkit; CMake does not. */
	for (size_t i = 0; i < system.count; i++)
		if (strncmp(system.items[i], "/usr/lib", 8) == 0 || strncmp(system.items[i], "/usr/local/lib", 14) == 0)
			strlist_ref(&dirs, d->arena, system.items[i]);
	for (size_t k = 0; k < ARRAY_LEN(below); k++)
		for (size_t i = 0; i < dirs.count; i++) {
			const char *dir = path_join(d->arena, dirs.items[i], below[k]);
			const char *path = path_join(d->arena, dir, name);
			if (root_resolve(d->q->root, path, d->arena))
				return path;
		}
	return NULL;
}

/* What is only missed when all is compiled. */
static void check_library(struct preflight *d, const struct need_row *row)
{
	const char *path = find_library(d, row->library);
	if (path) {
		preflight_ok(d, row->library, "%s", path);
		return;
	}
	preflight_fail(d, ERR_SYSTEM, row->library, "neither in the toolkit '%s' nor in the root '%s': %s",
		       d->toolkit->where, d->q->root->dir, row->why);
	if (d->toolkit->layout == TOOLKIT_DISTRIBUTION)
		preflight_install(d, row->debian, false);
	else
		preflight_fix(d, "put it there as '%s/lib64/stubs/%s', or build without --root: worlds have it",
			      d->toolkit->where, row->library);
}

int preflight_cuda(struct preflight *d, struct err *e)
{
	const struct preflight_request *q = d->q;
	const struct toolkits *all = q->toolkits;
	struct strlist targets = {0};
	struct err why = {0};
	if (!q->plan || !q->plan->cuda || !d->toolchain)
		return 0;
	if (!all && toolkit_probe(q->tables, q->root, q->kind, q->cuda_home, d->run, d->arena, &all, &why) < 0)
		return preflight_fail_err(d, "nvcc", &why, e);
	d->toolkit = toolkit_find(all, d->q->plan->cuda);
	if (!d->toolkit) {
		preflight_fail(d, ERR_SYSTEM, "nvcc", "no CUDA %s in the root '%s'; there is: %s", d->q->plan->cuda,
			       d->q->root->dir, toolkit_list(all, d->arena));
		preflight_fix(
			d,
			"install it there, name its directory with --cuda-home, or pass --cuda for one that is there");
		preflight_fix_world(d);
		return 0;
	}
	preflight_ok(d, "nvcc", "%s %s (%s)", d->toolkit->nvcc, d->toolkit->release,
		     toolkit_layout_name(d->toolkit->layout));
	bool known = check_targets(d, &targets), compiler = check_host_compiler(d);
	if (known && compiler && !q->tried && compile_kernel(d, &targets, e) < 0)
		return -1;
	for (size_t i = 0; i < d->toolkit->parts_count; i++)
		check_part(d, q->tables, &d->toolkit->parts[i]);
	for (unsigned i = 0; i < q->tables->needs_count; i++)
		if (*q->tables->needs[i].library && preflight_wants(d, &q->tables->needs[i]))
			check_library(d, &q->tables->needs[i]);
	return 0;
}
