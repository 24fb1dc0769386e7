#include "step/verify/verify.h"

#include <signal.h>

#include "base/sys/build_user.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "core/wheel/wheel.h"

#define WHEELS SANDBOX_TOP "/wheels"
#define TORCH_WHEELS SANDBOX_TOP "/torch-wheels"
#define CHECKS SANDBOX_TOP "/checks"
#define VENV (SANDBOX_OUT "/venv")
#define TIME_LIMIT_S 900.0

/* The features of the processor that programs in the sandbox see. */
static int emulated_features(const struct sandbox *s, const struct run *run, struct arena *a,
			     struct strlist *ret, struct err *e)
{
	static const char *const argv[] = {"sh", "-c", "cat /proc/cpuinfo", NULL};
	AUTO_BUF struct buf text = {0};

	if (sandbox_capture(s, argv, run, &text, e) < 0)
		return -1;
	const char *line = strstr(buf_cstr(&text), "Features");
	const char *words = line ? strchr(line, ':') : NULL;
	if (words)
		strlist_split(ret, a, arena_strndup(a, words + 1, strcspn(words + 1, "\n")), " ");
	return 0;
}

/* What the emulated processor lacks to run the plan's code; NULL: nothing. */
static int cannot_emulate(const struct plan *p, const struct sandbox *s, const struct run *run,
			  struct arena *a, const char **ret, struct err *e)
{
	const struct isa_row *isa = p->isa_row;
	struct strlist features = {0};

	*ret = NULL;
	if (isa && !*isa->qemu) {
		*ret = arena_printf(a, "no processor of %s runs %s alone", s->emulation->name,
				    isa->name);
		return 0;
	}

	if (emulated_features(s, run, a, &features, e) < 0)
		return -1;
	for (unsigned i = 0; isa && i < isa->cpuinfo_count && !*ret; i++)
		if (!strlist_contains(&features, isa->cpuinfo[i]))
			*ret = arena_printf(a, "%s as %s has no %s", s->emulation->name, isa->qemu,
					    isa->cpuinfo[i]);
	return 0;
}

/* NULL, or what this machine lacks to run the plan's code. */
static const char *cannot_run(const struct plan *p, const struct root *root, struct arena *a)
{
	if (root->emulation && strcmp(p->platform, root->platform) == 0)
		return NULL;
	if (strcmp(p->platform, machine_platform(a)) != 0)
		return arena_printf(a, "the wheel is for %s", p->platform);
	for (unsigned i = 0; p->isa_row && i < p->isa_row->cpuinfo_count; i++) {
		if (!machine_has_feature(p->isa_row->cpuinfo[i]))
			return arena_printf(a, "this processor has no %s", p->isa_row->cpuinfo[i]);
	}

	return NULL;
}

/* What the check script compares with, as its argument. */
static char *expectation(const struct plan *p, struct arena *a)
{
	static const struct {
		const char *key, *variable;
	} flags[] = {{"mkldnn", "USE_MKLDNN"},       {"distributed", "USE_DISTRIBUTED"},
		     {"gloo", "USE_GLOO"},           {"tensorpipe", "USE_TENSORPIPE"},
		     {"kineto", "USE_KINETO"},       {"xnnpack", "USE_XNNPACK"},
		     {"openmp", "USE_OPENMP"},       {"qnnpack", "USE_PYTORCH_QNNPACK"},
		     {"png", "TORCHVISION_USE_PNG"}, {"jpeg", "TORCHVISION_USE_JPEG"}};
	AUTO_JSON json_t *j = json_pack(
		"{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "distribution", p->distribution, "version",
		plan_full_version(p, a), "torch", p->torch_version, "cpu_flags",
		json_from_strlist(&p->cpu_flags), "cuda", json_or_null(p->cuda), "gpu",
		json_from_strlist(&p->gpu), "blas_info",
		json_or_null(p->blas_row && *p->blas_row->info ? p->blas_row->info : NULL));

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		const char *v = settings_value(&p->env, flags[i].variable);
		if (v)
			json_object_set_new(
				j, flags[i].key,
				json_boolean(strcmp(v, "ON") == 0 || strcmp(v, "1") == 0));
	}

	json_t *settings = json_object();
	for (size_t i = 0; i < p->cmake.count; i++)
		json_object_set_new(settings, p->cmake.items[i].name,
				    json_string(p->cmake.items[i].value));
	json_object_set_new(j, "settings", settings);
	AUTO_FREE char *text = json_dumps(j, JSON_COMPACT);
	return arena_strdup(a, text ? text : "{}");
}

static int make_sandbox(const struct verify_run_request *q, struct arena *a, struct sandbox *s,
			struct err *e)
{
	if (sandbox_init(s, q->kind, q->root, a, e) < 0 || fs_mkdirs(TRUSTED, q->work_dir, e) < 0)
		return -1;
	sandbox_add(s, SANDBOX_RW, q->work_dir, SANDBOX_OUT);
	if (q->wheel)
		sandbox_add(s, SANDBOX_RO, path_dir(a, q->wheel), WHEELS);
	if (q->torch_wheel)
		sandbox_add(s, SANDBOX_RO, path_dir(a, q->torch_wheel), TORCH_WHEELS);
	if (q->checks_dir)
		sandbox_add(s, SANDBOX_RO, q->checks_dir, CHECKS);
	if (q->venv)
		sandbox_add(s, SANDBOX_RO, q->venv, SANDBOX_VENV);
	kvlist_set(&s->env, a, "PATH", root_build_path(q->root, a));
	kvlist_set(&s->env, a, "HOME", SANDBOX_HOME);
	kvlist_set(&s->env, a, "TMPDIR", SANDBOX_TMP);
	kvlist_set(&s->env, a, "LC_ALL", "C.UTF-8");
	sandbox_emulate_as(s, q->plan && q->plan->isa_row ? q->plan->isa_row->qemu : "");
	/* Packages that the wheel requires are not installed; the toolkit has their libraries. */
	if (q->plan && q->plan->torch_toolkit)
		toolkit_run(q->plan->torch_toolkit, s);
	s->cwd = SANDBOX_OUT;
	return 0;
}

int verify_python(const struct root *root, const char *wheel, struct arena *a, struct err *e)
{
	struct wheel_name n;
	const char *own = root_python(root, a);

	if (wheel_name_parse(wheel, a, &n, e) < 0)
		return -1;
	if (!own || wheel_name_takes(&n, own, a))
		return 0;
	err_set(e, ERR_POLICY, "'%s' is for %s, but the Python of the root '%s' is %s",
		path_base(wheel), n.python, root->dir, own);
	return err_hint(e,
			"name a root that has the wheel's Python with --root, or take a wheel for "
			"Python %s",
			own);
}

/* A run of checks: what is asked, and the environment that it is in. */
struct checking {
	const struct verify_run_request *q;
	const struct sandbox *sandbox;
	const struct run *run;
	struct arena *arena;
	const char *site; /* the directory of the environment's packages */
};

/* Whether pip would install them: names, tags, metadata. */
static int ask_pip(const struct checking *c, const struct strlist *wheels, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct arena *a = c->arena;
	struct strlist argv = {0};

	/* The environment sees the root's pip: with an option for another Python it would start a
	 * second time. */
	strlist_ref(&argv, a, VERIFY_PYTHON);
	strlist_split(
		&argv, a,
		"-m pip install --dry-run --no-index --no-deps --no-cache-dir --ignore-installed "
		"--disable-pip-version-check --quiet",
		" ");
	strlist_append(&argv, a, wheels);
	if (sandbox_capture(c->sandbox, strlist_argv(&argv, a), c->run, &out, e) == 0)
		return 0;
	if (strstr(e->msg, "is not a supported wheel on this platform"))
		e->kind = ERR_POLICY; /* another ABI or platform: nothing was built wrongly */
	return err_wrap(e, "the wheel does not install");
}

/* lib/python3.13/site-packages, of the environment and of the build's own. */
static int site_packages(const char *work_dir, struct arena *a, const char **ret, struct err *e)
{
	struct strlist names = {0};

	if (fs_list(work_dir, "venv/lib", a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (strncmp(names.items[i], "python", 6) == 0) {
			*ret = arena_printf(a, "lib/%s/site-packages", names.items[i]);
			return fs_mkdirs(work_dir, path_join(a, "venv", *ret), e);
		}
	}

	return err_set(e, ERR_SYSTEM, "the environment in '%s' has no directory for packages",
		       work_dir);
}

static int unpack(const struct checking *c, const char *wheel, bool beside, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ZIP struct zip_reader *z = NULL;
	return zip_open(wheel, &a, &z, e) < 0 ? -1 : zip_extract(z, c->site, beside, c->run, e);
}

/* A Python that has no packages of its own (NumPy)
 * is tried with those that the build has installed. */
static int add_build_packages(const struct checking *c, const char *site, struct err *e)
{
	const char *line = arena_printf(c->arena, SANDBOX_VENV "/%s\n", site);
	const char *path = arena_printf(c->arena, "venv/%s/build.pth", site);

	if (c->q->kind == SANDBOX_NONE)
		line = sandbox_host_text(c->sandbox, line, c->arena);
	return fs_write(c->q->work_dir, path, line, strlen(line), 0644, e);
}

/* pip says whether it would install the wheels, but they are unpacked here, which takes a quarter
 * of its time and gives the same: these wheels have no scripts and no files for other places. */
static int install(struct checking *c, struct err *e)
{
	const struct verify_run_request *q = c->q;
	struct arena *a = c->arena;
	AUTO_BUF struct buf out = {0};
	const char *rel;
	struct strlist wheels = {0};
	/* It sees the root's packages too (numpy), behind its own. */
	const char *venv[] = {"python3",       "-m", "venv", "--system-site-packages",
			      "--without-pip", VENV, NULL};

	if (sandbox_capture(c->sandbox, venv, c->run, &out, e) < 0)
		return err_wrap(e, "cannot make a clean Python environment");
	if (q->torch_wheel)
		strlist_ref(&wheels, a, path_join(a, TORCH_WHEELS, path_base(q->torch_wheel)));
	if (q->wheel)
		strlist_ref(&wheels, a, path_join(a, WHEELS, path_base(q->wheel)));
	if (wheels.count == 0 && !q->venv)
		return 0;
	if (site_packages(q->work_dir, a, &rel, e) < 0)
		return -1;
	if (q->venv && add_build_packages(c, rel, e) < 0)
		return -1;
	if (wheels.count && ask_pip(c, &wheels, e) < 0)
		return -1;
	c->site = arena_printf(a, "%s/venv/%s", q->work_dir, rel);
	if (q->torch_wheel && unpack(c, q->torch_wheel, false, e) < 0)
		return err_wrap(e, "the wheel does not install");
	if (q->wheel && unpack(c, q->wheel, false, e) < 0)
		return err_wrap(e, "the wheel does not install");
	for (size_t i = 0; i < q->beside.count; i++)
		if (unpack(c, q->beside.items[i], true, e) < 0)
			return err_wrap(e, "'%s' does not install", path_base(q->beside.items[i]));
	return build_user_mixed(q->work_dir, e);
}

struct lines {
	const struct plan *plan;
	struct arena *arena;
	struct verify_run_result *r;
	size_t cap, failed;
	bool done;
};

static void add_line(struct lines *l, const char *line)
{
	AUTO_JSON json_t *j = json_loads(line, 0, NULL);
	const char *name = json_member(j, "check");

	if (json_is_true(json_object_get(j, "done")))
		l->done = true;
	if (!name)
		return;
	l->r->checks =
		arena_room(l->arena, l->r->checks, l->r->count, &l->cap, 32, sizeof(*l->r->checks));
	const char *detail = json_member(j, "detail");
	bool ok = json_is_true(json_object_get(j, "ok"));
	l->r->checks[l->r->count++] =
		(struct verify_run_check){.name = arena_strdup(l->arena, name),
					  .detail = arena_strdup(l->arena, detail ? detail : ""),
					  .ok = ok};
	l->failed += !ok;
}

static int judge(const struct lines *l, const char *error_text, int status, struct err *e)
{
	const struct plan *p = l->plan;

	for (size_t i = 0; i < l->r->count; i++) {
		const struct verify_run_check *c = &l->r->checks[i];
		if (!c->ok && !kvlist_get(&p->defects, c->name))
			return err_set(e, ERR_POLICY,
				       "%s does not do what it must: check '%s' failed (%s), %zu "
				       "of %zu failed",
				       p->distribution, c->name, c->detail, l->failed, l->r->count);
	}

	if (!l->done || (status != 0) != (l->failed != 0) || l->r->count == 0) {
		const char *end = error_text + strlen(error_text), *start = end;
		while (start > error_text && end - start < 600)
			start--;
		return err_set(e,
			       status == 128 + SIGKILL ? ERR_SYSTEM
						       : err_kind_of_words(start, ERR_POLICY),
			       "%s does not run to the end of its checks (status %d): %s",
			       p->distribution, status, start);
	}

	return 0;
}

static int run_checks(const struct checking *c, struct verify_run_result *r, struct err *e)
{
	const struct plan *p = c->q->plan;
	AUTO_BUF struct buf out = {0}, error = {0};
	struct proc_result res;
	struct proc_spec spec = {.out = &out, .err = &error, .timeout_s = TIME_LIMIT_S};
	const char *subject = plan_is_extension(p) ? "extension" : p->distribution;
	const char *script = arena_printf(c->arena, CHECKS "/check_%s.py", subject);
	const char *argv[] = {VERIFY_PYTHON, "-I", script, expectation(p, c->arena), NULL};
	struct lines l = {.plan = p, .arena = c->arena, .r = r};

	if (sandbox_run(c->sandbox, argv, &spec, c->run, &res, e) < 0)
		return -1;
	char *rest = out.data;
	for (char *line; out.len && (line = strsep(&rest, "\n"));)
		add_line(&l, line);
	return judge(&l, buf_cstr(&error), res.status, e);
}

int verify_environment(const struct verify_run_request *q, struct arena *a, struct sandbox *ret,
		       struct err *e)
{
	struct checking c = {.q = q, .sandbox = ret, .run = q->run, .arena = a};
	return make_sandbox(q, a, ret, e) < 0 || install(&c, e) < 0 ? -1 : 0;
}

int verify_run(const struct verify_run_request *q, struct arena *a, struct verify_run_result *ret,
	       struct err *e)
{
	struct verify_run_result r = {0};
	struct sandbox s;
	double start = log_seconds();

	r.why_not = cannot_run(q->plan, q->root, a);
	if (r.why_not) {
		*ret = r;
		return 0;
	}

	struct checking c = {.q = q, .sandbox = &s, .run = q->run, .arena = a};
	int rc = make_sandbox(q, a, &s, e);
	if (rc == 0 && s.emulation) {
		rc = cannot_emulate(q->plan, &s, q->run, a, &r.why_not, e);
		r.run_by = arena_printf(a, "%s as %s", s.emulation->name,
					kvlist_get(&s.env, "QEMU_CPU"));
	}

	const bool runs = rc == 0 && !r.why_not;
	if (runs)
		rc = install(&c, e);
	if (runs && rc == 0)
		rc = run_checks(&c, &r, e);
	if (fs_remove(TRUSTED, q->work_dir, rc < 0 ? ERR_IGNORED : e) < 0 || rc < 0)
		return -1;
	r.ran = !r.why_not;
	r.seconds = log_seconds() - start;
	*ret = r;
	return 0;
}
