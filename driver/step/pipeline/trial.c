#include "step/pipeline/trial.h"

#include <string.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/code/decode.h"
#include "step/compile/backend.h"
#include "step/pipeline/make.h"

#define NAME "buildtrial"

/* ---- what was tried before ---- */

/* A file that is added or removed changes the time of its directory. */
static void add_dir(const struct root *r, const char *dir, unsigned below, struct arena *a, struct buf *out)
{
	struct strlist names = {0};
	struct stat st;
	const char *inside = root_resolve(r, dir, a);
	if (!inside || stat(root_host_path(r, inside, a), &st) < 0 || !S_ISDIR(st.st_mode))
		return;
	buf_printf(out, "%s %llu %lld.%09ld\n", dir, (unsigned long long)st.st_ino, (long long)st.st_mtim.tv_sec,
		   st.st_mtim.tv_nsec);
	if (below == 0 || root_list(r, dir, a, &names, ERR_IGNORED) < 0)
		return;
	for (size_t i = 0; i < names.count; i++)
		add_dir(r, path_join(a, dir, names.items[i]), below - 1, a, out);
}

struct digests {
	const char *top;
	struct arena *a;
	struct buf *out;
};

static int add_source(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct digests *d = user;
	char digest[DIGEST_HEX_LEN + 1];
	(void)st;
	if (digest_file(path_join(d->a, d->top, rel), digest, e) < 0)
		return -1;
	buf_printf(d->out, "%s\n", digest);
	return 0;
}

/* What of the plan reaches the trial: builds that differ in the rest share it. */
static void add_plan(const struct plan *p, struct buf *out)
{
	static const char *const names[] = {"CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "PATH", "PTBUILD_LINKER"};
	buf_printf(out, "%s\n%s\n%s\n%s\n%s\n", p->platform, p->python, p->sandbox, p->isa ? p->isa : "",
		   p->package_row->backend);
	for (unsigned i = 0; i < p->package_row->python_requires_count; i++)
		buf_printf(out, "%s\n", p->package_row->python_requires[i]);
	for (size_t i = 0; i < p->env.count; i++)
		if (strncmp(p->env.items[i].name, "CMAKE_", 6) == 0 ||
		    strings_contain(names, ARRAY_LEN(names), p->env.items[i].name))
			buf_printf(out, "%s=%s\n", p->env.items[i].name, p->env.items[i].value);
}

static const char *sources(const struct trial_request *t, struct arena *a)
{
	return path_join(a, t->q->profiles_dir, "trial");
}

/* The file in the store that says it passed; NULL if that cannot be told. */
static const char *memo(const struct trial_request *t, struct arena *a)
{
	const struct {
		const char *dir;
		unsigned below;
	} dirs[] = {{"/usr/bin", 0},
		    {"/usr/include", 1},
		    {"/usr/lib/gcc", 2},
		    {"/usr/libexec/gcc", 2},
		    {"/usr/lib/python3", 1},
		    {arena_printf(a, "/usr/lib/python%s", t->plan->python), 1},
		    {arena_printf(a, "/usr/local/lib/python%s", t->plan->python), 2}};
	AUTO_BUF struct buf text = {0};
	char id[32], digest[DIGEST_HEX_LEN + 1];
	const struct tables *tables = t->q->tables;
	struct digests d = {sources(t, a), a, &text};
	struct strlist libraries = {0};
	buf_printf(&text, "%s %s %d %d\n%s\n%s\n%s\n%s\n", PTBUILD_VERSION, decoder_id(id), PLAN_BUILDER, PLAN_PACKER,
		   tables->extensions_digest, tables->dispatch_digest, tables->manylinux_digest,
		   tables->threads_digest);
	add_plan(t->plan, &text);
	buf_printf(&text, "%s %s\n", t->q->root->dir, t->q->root->fingerprint);
	for (size_t i = 0; i < t->toolchain->count; i++)
		buf_printf(&text, "%s %s\n", t->toolchain->tools[i].id,
			   t->toolchain->tools[i].path ? t->toolchain->tools[i].path : "");
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		add_dir(t->q->root, dirs[i].dir, dirs[i].below, a, &text);
	if (root_library_dirs(t->q->root, a, &libraries, ERR_IGNORED) < 0 ||
	    fs_walk(TRUSTED, d.top, add_source, &d, ERR_IGNORED) < 0)
		return NULL;
	for (size_t i = 0; i < libraries.count; i++)
		add_dir(t->q->root, libraries.items[i], 0, a, &text);
	digest_data(text.data, text.len, digest);
	return arena_printf(a, "%s/stamps/trial-%s", store_dir(t->q->store), digest);
}

bool trial_passed(const struct trial_request *t, struct arena *a)
{
	const char *path = memo(t, a);
	return path && fs_exists(TRUSTED, path);
}

/* ---- the trial ---- */

/* The back end that uses what the plan's own uses: one run of setup.py, with CMake or without, or the front end. */
static const char *backend_of(const struct plan *p)
{
	const char *own = p->package_row->backend;
	if (plan_is_extension(p))
		return "setuptools";
	return strncmp(own, "setup-py-", 9) == 0 ? "setuptools-cmake" : own;
}

/* The plan's own, of another package, which has no GPU code: nvcc was asked by the preflight. */
static struct plan trial_plan(const struct plan *p, struct package_row *row, struct arena *a)
{
	struct plan t = *p;
	*row = (struct package_row){.version = "1",
				    .backend = backend_of(p),
				    .series = "",
				    .python_requires = p->package_row->python_requires,
				    .python_requires_count = p->package_row->python_requires_count,
				    .requirements = p->package_row->requirements,
				    .cudnn = ""};
	t.package_row = row;
	t.package = t.distribution = NAME;
	t.version = "1";
	t.local_label = "trial";
	t.torch = t.torch_version = t.cuda_libraries = "";
	t.cuda = NULL;
	t.toolkit = NULL;
	t.toolkit_row = NULL;
	t.gpu = t.driver_libraries = t.depends = (struct strlist){0};
	t.patches_count = 0;
	t.metadata_rev = 1;
	/* What every CMake project obeys is compared as for the package, but for what only one with GPU code has. */
	t.cmake = (struct settings){0};
	for (size_t i = 0; i < p->cmake.count; i++)
		if (strncmp(p->cmake.items[i].name, "CMAKE_", 6) == 0 &&
		    strncmp(p->cmake.items[i].name, "CMAKE_CUDA_", 11) != 0)
			settings_put(&t.cmake, a, &p->cmake.items[i]);
	return t;
}

static int make_in(const struct trial_request *t, const char *dir, const struct run *run, struct arena *a,
		   struct err *e)
{
	struct package_row row;
	const struct plan plan = trial_plan(t->plan, &row, a);
	struct pipeline_request q = *t->q;
	struct make m = {.q = &q,
			 .run = run,
			 .arena = a,
			 .plan = &plan,
			 .toolchain = t->toolchain,
			 .build_dir = path_join(a, dir, "build"),
			 .stage = path_join(a, dir, "wheel"),
			 .checks_dir = sources(t, a),
			 .no_ccache = true};
	q.jobs = 1;
	if (fs_mkdirs(TRUSTED, m.build_dir, e) < 0 || fs_mkdirs(TRUSTED, m.stage, e) < 0 ||
	    fs_copy_tree(m.checks_dir, path_join(a, m.build_dir, "src"), e) < 0)
		return -1;
	return make_wheel(&m, e);
}

/* Keeps the log and says what failed. */
static void explain(const struct trial_request *t, const char *dir, struct arena *a, struct err *e)
{
	const char *kept = arena_printf(a, "%s/stamps/trial.log", store_dir(t->q->store));
	if (e->kind == ERR_INTERRUPTED || e->kind == ERR_NETWORK)
		return;
	bool full = e->kind == ERR_SYSTEM; /* the disk, memory: that hint says more */
	if (e->kind == ERR_BUILD)
		e->kind = ERR_SYSTEM;
	err_wrap(e, "a small extension that goes the way of %s does not get through", t->plan->variant);
	if (!full && fs_copy(dir, "build/log/build.log", kept, ERR_IGNORED) == 0)
		err_hint(e, "its log is '%s'; mend what it says in the root '%s', or use another root with --root DIR",
			 kept, t->q->root->dir);
}

int trial_run(const struct trial_request *t, const struct run *run, struct arena *a, struct err *e)
{
	const char *dir, *stamp = memo(t, a);
	struct log quiet = {.level = LOG_QUIET, .fd = run->log->fd};
	const struct run silent = {
		.log = &quiet, .cancel_fd = run->cancel_fd, .limits = run->limits, .without_walls = run->without_walls};
	if (store_stage(t->q->store, a, &dir, e) < 0)
		return -1;
	int rc = make_in(t, dir, &silent, a, e);
	if (rc < 0)
		explain(t, dir, a, e);
	store_drop_stage(t->q->store, dir);
	if (rc == 0 && stamp)
		(void)!fs_write(TRUSTED, stamp, "passed\n", 7, 0644, ERR_IGNORED);
	return rc;
}
