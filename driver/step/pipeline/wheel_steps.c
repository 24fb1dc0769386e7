#include "step/pipeline/make.h"

#include "base/sys/json.h"
#include "core/plan/plan.h"
#include "core/plan/torch_fits.h"
#include "core/root/sandbox.h"
#include "step/compile/build_parts.h"
#include "step/source/source.h"

/* The packed wheel is verified in two ways at once: by its contents, on
 * every processor, and by use, which waits for Python most of the time. */
static int verify_contents(struct make *m, struct err *e)
{
	struct promise promise;

	promise_of_plan(m->plan, m->arena, &promise);
	struct verify_request v = {
		.run = m->run,
		.wheel = m->packed.path,
		.temp_dir = m->build_dir, /* /tmp may be small */
		.tables = m->q->tables,
		.promise = &promise,
		.code = m->code,
		.policy = m->policy,
		.provided = m->provided,
		.expect_version = plan_full_version(m->plan, m->arena),
		.expect_requires =
			m->torch ? arena_printf(m->arena, "torch==%s", m->torch->version) : NULL};
	strlist_append(&v.provided, m->arena, &m->cuda.names);
	strlist_ref(&v.build_paths, m->arena, SANDBOX_TOP);
	if (m->q->kind == SANDBOX_NONE)
		strlist_ref(&v.build_paths, m->arena, m->build_dir);
	if (companions_of_files(&m->torch_files, m->arena, &v.companions, e) < 0)
		return -1;
	if (verify_wheel(&v, m->arena, &m->verified, e) < 0)
		return -1;
	if (m->verified.errors == 0)
		return 0;
	AUTO_JSON json_t *doc = verify_json(&m->verified);
	err_set(e, ERR_POLICY, "the wheel of '%s' is not what it claims:\n%s", m->plan->variant,
		show_string(doc, verify_rows, m->arena));
	return err_hint(e, "the wheel is not kept; the build tree is '%s'",
			m->rest_dir ? m->rest_dir : m->build_dir);
}

/* By its contents and by use. */
struct both {
	struct make *m;
	struct verify_run_request q;
	struct log log; /* quiet: the messages come from the check of the contents */
	struct run run;
	struct arena arena; /* of the use */
};

static int verify_one(unsigned thread, size_t i, void *user, struct err *e)
{
	struct both *b = user;

	(void)thread;
	if (i == 0)
		return verify_contents(b->m, e);
	return fs_remove(TRUSTED, b->q.work_dir, e) < 0
		       ? -1
		       : verify_run(&b->q, &b->arena, &b->m->used, e);
}

/* Findings in the file come first: a wheel that is not what
 * it claims may well fail when it is used, which says less. */
static int step_verify(struct make *m, struct err *e)
{
	struct both b = {.m = m,
			 .q = {.plan = m->plan,
			       .root = m->q->root,
			       .kind = m->q->kind,
			       .wheel = m->packed.path,
			       .torch_wheel = m->torch ? m->torch->wheel : NULL,
			       .checks_dir = m->checks_dir ? m->checks_dir
							   : path_join(m->arena, m->q->profiles_dir,
								       "checks"),
			       .venv = m->pyenv.dir,
			       .work_dir = path_join(m->arena, m->build_dir, "check")},
			 .log = {.level = LOG_QUIET, .fd = m->run->log->fd}};

	b.run = *m->run; /* with its limits and protections */
	b.run.log = &b.log;
	b.q.run = &b.run;
	int rc = thread_items(2, 2, NULL, m->run, verify_one, &b, e);
	arena_join(m->arena, &b.arena);
	if (rc == 0 && !m->used.ran)
		log_warn(m->run->log, "%s was verified but not run: %s", m->packed.file,
			 m->used.why_not);
	return rc;
}

int shard_check(const struct plan *p, const struct toolchain *t, struct err *e)
{
	const struct backend *b;

	if (backend_find(p->package_row->backend, &b, e) < 0 ||
	    backend_shares(b, p->package, e) < 0)
		return -1;
	if (toolchain_get(t, "ccache")->path)
		return 0;
	err_set(e, ERR_SYSTEM,
		"the root has no ccache, and nothing else keeps what a shard compiles");
	return err_hint(e, "install the package 'ccache' in the root");
}

int make_fetch(struct make *m, struct fetch_source **ret, struct err *e)
{
	const struct package_row *row = m->plan->package_row;

	*ret = arena_array(m->arena, row->sources_count, sizeof(**ret));
	for (unsigned i = 0; i < row->sources_count; i++)
		(*ret)[i] = fetch_source_of(&row->sources[i], m->arena);
	return fetch_all(&(struct fetcher){m->q->store, &m->q->fetch, m->run, m->arena}, *ret,
			 row->sources_count, NULL, e);
}

/* Patches that come inside a source (a distribution's series), then ours. */
static int apply_patches(const struct make *m, const char *src, struct err *e)
{
	const struct package_row *row = m->plan->package_row;

	if (*row->series) {
		struct strlist skip = {0}, names = {0};
		const char *series = path_join(m->arena, src, row->series);
		strlist_refs(&skip, m->arena, row->skip_patches, row->skip_patches_count);
		if (series_read(series, &skip, m->arena, &names, e) < 0)
			return -1;
		for (size_t i = 0; i < names.count; i++) {
			log_status(m->run->log, "%s: patch %zu/%zu", m->plan->package, i + 1,
				   names.count);
			if (patch_apply(
				    src,
				    path_join(m->arena, path_dir(m->arena, series), names.items[i]),
				    m->run, e) < 0)
				return -1;
		}
	}

	for (size_t i = 0; i < m->plan->patches_count; i++) {
		if (patch_apply(src, m->plan->patches[i].path, m->run, e) < 0)
			return -1;
	}

	return 0;
}

static int unpack_sources(const struct make *m, const struct fetch_source *sources, const char *src,
			  struct err *e)
{
	const struct package_row *row = m->plan->package_row;

	for (unsigned i = 0; i < row->sources_count; i++) {
		const struct source_row *s = &row->sources[i];
		struct tar_limits limits = {.max_bytes = s->max_unpacked};
		const char *into = *s->into ? path_join(m->arena, src, s->into) : src;
		log_status(m->run->log, "%s: unpack %s", m->plan->package, s->name);
		if (unpack_archive(sources[i].path, into, !s->keep_top, &limits, m->run, e) < 0)
			return -1;
	}

	return 0;
}

int make_source(struct make *m, const char *src, struct err *e)
{
	struct fetch_source *sources;
	int rc = make_fetch(m, &sources, e) < 0 || unpack_sources(m, sources, src, e) < 0 ||
				 apply_patches(m, src, e) < 0
			 ? -1
			 : 0;

	log_status_end(m->run->log);
	return rc;
}

static double unit_seconds(const char *output, void *user)
{
	AUTO_ARENA struct arena a = {0};
	const struct make *m = user;
	const char *dir = path_join(&a, m->build_dir, "src/build");

	return weights_find(m->weights, watch_unit_name(m->build_dir, dir, output, &a));
}

static struct build_request build_request(const struct make *m)
{
	const bool uses_ccache = toolchain_get(m->toolchain, "ccache")->path && !m->no_ccache;
	const char *ccache_dir = NULL;

	if (uses_ccache)
		ccache_dir = path_join(m->arena, m->build_dir, COMPILED_FRONT);
	return (struct build_request){
		.run = m->run,
		.plan = m->plan,
		.root = m->q->root,
		.kind = m->q->kind,
		.toolchain = m->toolchain,
		.build_dir = m->build_dir,
		.rest_dir = m->rest_dir,
		.ccache_dir = ccache_dir,
		.ccache_relay_dir = m->compiled.dir,
		.ccache_size = m->q->options.ccache_size,
		.torch_dir = m->torch_dir,
		.venv_dir = m->pyenv.dir,
		.jobs = m->q->jobs,
		.observer = m->progress ? progress_observer(m->progress) : NULL,
		.seconds = m->weights ? unit_seconds : NULL,
		.user = (void *)(uintptr_t)m,
		.shard = m->shard,
		.shell_options = m->q->shell_options,
	};
}

static int step_fetch(struct make *m, struct err *e)
{
	return make_fetch(m, &m->sources, e) < 0 ? -1 : build_mend(m->build_dir, m->run, e);
}

static const char *source_dir(const struct make *m)
{
	return path_join(m->arena, m->build_dir, "src");
}

static int step_unpack(struct make *m, struct err *e)
{
	return fs_remove(m->build_dir, "src", e) < 0
		       ? -1
		       : unpack_sources(m, m->sources, source_dir(m), e);
}

/* A marker written last says that the tree is complete; a tree without one is replaced. */
static int step_patch(struct make *m, struct err *e)
{
	if (apply_patches(m, source_dir(m), e) < 0)
		return -1;
	struct build_request b = build_request(m);
	if (build_prepare(&b, m->run, e) < 0)
		return -1;
	log_status_end(m->run->log);
	return fs_write(m->build_dir, BUILD_SOURCE_OK, m->plan->compile_text,
			strlen(m->plan->compile_text), 0644, e);
}

/* The files of the wheel, before they are packed. */
static const char *wheel_tree(const struct make *m)
{
	return path_join(m->arena, m->build_dir, "tree");
}

static const char *libs_dir(const struct plan *p, struct arena *a)
{
	return package_is_torch(p->package) ? "torch/lib"
					    : arena_printf(a, "%s.libs", p->distribution);
}

static int unpack_built(const struct make *m, const char *tree, struct err *e)
{
	AUTO_ZIP struct zip_reader *z = NULL;
	struct stat st;
	const char *wheel = path_join(m->arena, "out", path_base(m->build.raw_wheel));

	if (fs_remove(m->build_dir, "tree", e) < 0)
		return -1;
	int fd = fs_open(m->build_dir, wheel, &st, e);
	if (fd < 0 || zip_open_fd(fd, m->build.raw_wheel, m->arena, &z, e) < 0)
		return -1;
	return zip_extract(z, tree, false, m->run, e);
}

/* In the place of a build: the root's own files. */
static int step_capture(struct make *m, struct err *e)
{
	m->build.log = path_join(m->arena, m->build_dir, "log/build.log");
	if (fs_remove(m->build_dir, "tree", e) < 0)
		return -1;
	return capture_write(m->captured, m->q->root, &m->plan->notes, wheel_tree(m), m->build.log,
			     m->run, m->arena, e);
}

/* What an extension was planned as is what its source
 * says of itself; what was built may say another thing. */
static int check_built(const struct make *m, struct err *e)
{
	const struct plan *p = m->plan;
	struct wheel_name n;

	if (!plan_is_extension(p) || m->shard)
		return 0;
	if (wheel_name_parse(m->build.raw_wheel, m->arena, &n, e) < 0)
		return -1;
	const char *version = arena_strndup(m->arena, n.version, strcspn(n.version, "+"));
	if (strcmp(wheel_normalize(n.dist, m->arena), p->distribution) == 0 &&
	    wheel_same_version(version, p->version, m->arena))
		return 0;
	err_set(e, ERR_POLICY, "the build made %s %s, but its source says that it is %s %s", n.dist,
		n.version, p->distribution, p->version);
	return err_hint(e, "write the same name and version into its pyproject.toml or setup.py");
}

/* Unpacks the torch that the package is built against, and checks it. */
static int make_torch(struct make *m, struct err *e)
{
	if (torch_unpack(m->torch, m->build_dir, m->run, m->arena, &m->torch_dir, e) < 0)
		return -1;
	const struct torch_asked q = {
		.plan = m->plan, .unpacked = m->torch_dir, .root = m->q->root};
	if (torch_fits(&q, TORCH_ROOT, m->arena, e) < 0)
		return -1;
	return torch_provides(m->torch, m->q->root, m->torch_dir, m->arena, &m->provided,
			      &m->torch_files, e);
}

/* An extension's own code, which may ask for more than its files say. */
static int ask_back_end(struct make *m, struct err *e)
{
	const struct package_row *row = m->plan->package_row;
	struct build_request b = build_request(m);

	if (build_asks(&b, m->run, m->arena, &m->asks, e) < 0)
		return -1;
	if (!m->asks.count)
		return 0;
	err_set(e, ERR_POLICY, "the build of %s needs %s, too, and '%s' does not have it",
		m->plan->package, strlist_join(&m->asks, m->arena, ", "), row->requirements);
	return err_hint(e, "lock it as well, or leave --requirements out");
}

static int step_python(struct make *m, struct err *e)
{
	const struct pyenv_request q = {.plan = m->plan,
					.profiles_dir = m->q->profiles_dir,
					.root = m->q->root,
					.kind = m->q->kind,
					.store = m->q->store,
					.build_dir = m->build_dir,
					.offline = m->q->fetch.offline};
	if (pyenv_prepare(&q, m->run, m->arena, &m->pyenv, e) < 0)
		return -1;
	if (m->torch && make_torch(m, e) < 0)
		return -1;
	return plan_is_extension(m->plan) && !m->no_ccache ? ask_back_end(m, e) : 0;
}

static int step_build(struct make *m, struct err *e)
{
	struct build_request b = build_request(m);

	return build_run(&b, m->arena, &m->build, e) < 0 ? -1 : check_built(m, e);
}

static int step_relocate(struct make *m, struct err *e)
{
	const char *tree = wheel_tree(m);
	struct relocate_request r = {.run = m->run,
				     .tree = tree,
				     .root = m->q->root,
				     .libs_dir = libs_dir(m->plan, m->arena),
				     .provided = m->provided,
				     .policy = m->policy,
				     .code = m->code,
				     .isa = m->plan->isa_row,
				     .root_tools = m->q->kind == SANDBOX_BWRAP,
				     .any_library =
					     !sandbox_protection(m->run, PROTECTION_PACKAGES)};

	/* Driver libraries belong to the machine that runs the wheel;
	 * all must share one OpenMP runtime, so it keeps its name. */
	strlist_ref(&r.never, m->arena, "libcuda.so.*");
	strlist_ref(&r.never, m->arena, "libnvidia-*");
	strlist_ref(&r.keep_names, m->arena, "libgomp.so.1");
	/* torch/share/cmake/<package>/<file>.cmake of some
	 * releases names the tree that it was made in. */
	const char *src =
		m->q->kind == SANDBOX_NONE ? path_join(m->arena, m->build_dir, "src") : SANDBOX_SRC;
	if (!m->torch)
		kvlist_set(&r.rewrite, m->arena, arena_printf(m->arena, "%s/torch/", src),
			   "${CMAKE_CURRENT_LIST_DIR}/../../../");
	if (m->torch)
		strlist_ref(&r.runtime_dirs, m->arena, "torch/lib");
	struct strlist needed = {0};
	if ((!m->captured && unpack_built(m, tree, e) < 0) ||
	    cuda_needed(tree, m->arena, &needed, e) < 0)
		return -1;
	cuda_needs(m->plan, &needed, m->arena, &m->cuda);
	strlist_append(&r.provided, m->arena, &m->cuda.names);
	strlist_append(&r.runtime_dirs, m->arena, &m->cuda.dirs);
	if (relocate_tree(&r, m->arena, &m->relocated, e) < 0)
		return -1;
	return write_sbom(m, tree, e);
}

static int step_pack(struct make *m, struct err *e)
{
	const char *tree = wheel_tree(m);
	char *tag;

	/* From the libraries as they will be shipped. */
	if (manylinux_tag_of_tree(m->policy, tree, m->arena, &tag, e) < 0)
		return -1;
	if (strcmp(m->plan->platform_tag, "linux") == 0)
		tag = arena_printf(m->arena, "linux_%.*s", (int)strcspn(m->plan->platform, "-"),
				   m->plan->platform);
	struct pack_request p = {.run = m->run,
				 .tree = tree,
				 .version = plan_full_version(m->plan, m->arena),
				 .platform = tag,
				 .license_files = m->licenses,
				 .metadata_rev = m->plan->metadata_rev,
				 .input_key = m->plan->pack_key,
				 .generator = "ptbuild " PTBUILD_VERSION,
				 .epoch = m->plan->release_row->source_date_epoch,
				 .level = PACK_LEVEL,
				 .out_dir = m->stage};
	strlist_append(&p.requires, m->arena, &m->plan->requires);
	strlist_append(&p.requires, m->arena, &m->cuda.requires);
	if (m->torch)
		strlist_addf(&p.requires, m->arena, "torch==%s", m->torch->version);
	return pack_wheel(&p, m->arena, &m->packed, e);
}

static bool is_built(const struct make *m)
{
	return !m->captured;
}

static bool lacks_source(const struct make *m)
{
	return !m->captured && !fs_is_file(m->build_dir, BUILD_SOURCE_OK);
}

static bool is_captured(const struct make *m)
{
	return m->captured;
}

static bool ends_in_wheel(const struct make *m)
{
	return !m->shard;
}

enum { FETCH, UNPACK, PATCH, PYTHON, BUILD, CAPTURE, RELOCATE, PACK, VERIFY };

/* The order of a build. */
static const struct {
	const char *name; /* in progress, page and record */
	bool (*applies)(const struct make *m);
	int (*run)(struct make *m, struct err *e);
	bool grows; /* writes much into the build directory, whose size is then measured */
} steps[] = {
	[FETCH] = {"fetch", is_built, step_fetch, false},
	[UNPACK] = {"unpack", lacks_source, step_unpack, true},
	[PATCH] = {"patch", lacks_source, step_patch, true},
	[PYTHON] = {"python", is_built, step_python, false},
	[BUILD] = {"build", is_built, step_build, true},
	[CAPTURE] = {"capture", is_captured, step_capture, true},
	[RELOCATE] = {"relocate", ends_in_wheel, step_relocate, true},
	[PACK] = {"pack", ends_in_wheel, step_pack, false},
	[VERIFY] = {"verify", ends_in_wheel, step_verify, false},
};

static int run_steps(struct make *m, size_t from, struct err *e)
{
	m->policy = &m->q->tables->manylinux;
	if (isa_rules_new(m->q->tables, m->arena, &m->code, e) < 0)
		return -1;
	for (size_t i = from; i < ARRAY_LEN(steps); i++) {
		if (!steps[i].applies(m))
			continue;
		if (m->watch) {
			watch_begin(m->watch, steps[i].name);
			progress_step(m->progress, steps[i].name);
		}

		if (steps[i].run(m, e) < 0)
			return -1;
		if (m->watch)
			watch_end(m->watch, steps[i].grows);
	}

	return 0;
}

int make_wheel(struct make *m, struct err *e)
{
	return run_steps(m, PYTHON, e);
}

int make_run(struct make *m, struct err *e)
{
	return run_steps(m, FETCH, e);
}
