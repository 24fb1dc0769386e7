#include "step/compile/build.h"

#include "base/sys/build_user.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "core/root/sandbox.h"
#include "step/compile/build_parts.h"

/* A precompiled header is of the very program that made it, and the compiler cache, which looks at
 * gcc alone, would hand those of an Arm machine's cc1plus to this one's, which refuses them. */
static void keep_headers_apart(const struct build_request *q, struct arena *a, struct sandbox *s)
{
	const char *headers = settings_value(&q->plan->env, "USE_PRECOMPILED_HEADERS");
	const bool on = headers && strcmp(headers, "ON") == 0;

	if (on && s->emulation && s->emulation->layer)
		kvlist_set(&s->env, a, "CCACHE_NAMESPACE", "cross");
}

/* The sandbox every command of the build runs in, its environment empty but for emulation. */
static int build_sandbox(const struct build_request *q, struct arena *a, struct sandbox *s,
			 struct err *e)
{
	if (sandbox_init(s, q->kind, q->root, a, e) < 0)
		return -1;
	static const struct {
		const char *name, *dest;
		enum sandbox_op_type type;
	} dirs[] = {{"src", SANDBOX_SRC, SANDBOX_RW},
		    {"out", SANDBOX_OUT, SANDBOX_RW},
		    {"cfg", SANDBOX_CFG, SANDBOX_RO}};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (fs_mkdirs(q->build_dir, dirs[i].name, e) < 0)
			return -1;
		sandbox_add(s, dirs[i].type, path_join(a, q->build_dir, dirs[i].name),
			    dirs[i].dest);
	}

	/* In the place TMPDIR is what it is in the sandbox. */
	if (q->kind == SANDBOX_NONE && strcmp(q->build_dir, SANDBOX_TOP) == 0)
		sandbox_add(s, SANDBOX_RW, SANDBOX_TMP, SANDBOX_TMP);
	if (q->ccache_dir) {
		if (fs_mkdirs(path_dir(a, q->ccache_dir), path_base(q->ccache_dir), e) < 0)
			return -1;
		sandbox_add(s, SANDBOX_RW, q->ccache_dir, SANDBOX_CCACHE);
	}

	if (q->torch_dir)
		sandbox_add(s, SANDBOX_RO, q->torch_dir, SANDBOX_TORCH);
	if (q->venv_dir)
		sandbox_add(s, SANDBOX_RO, q->venv_dir, SANDBOX_VENV);
	if (q->plan->torch_toolkit)
		toolkit_mount(q->plan->torch_toolkit, s);
	if (q->plan->isa_row)
		sandbox_emulate_as(s, q->plan->isa_row->qemu);
	keep_headers_apart(q, a, s);
	s->cwd = SANDBOX_SRC;
	return 0;
}

/* Makes the log's directory and gives the log's path. */
static int build_start_log(const struct build_request *q, struct arena *a, const char **ret,
			   struct err *e)
{
	if (fs_mkdirs(q->build_dir, "log", e) < 0)
		return -1;
	*ret = path_join(a, q->rest_dir ? q->rest_dir : q->build_dir, BUILD_LOG);
	return 0;
}

/* A file that the build reads, below its directory. */
struct build_file {
	const char *path, *text;
	mode_t mode;
};

/* A file that is right already keeps its time: CMake would configure again for a newer one. */
static int write_if_other(const char *build_dir, const struct build_file *f, struct err *e)
{
	AUTO_BUF struct buf have = {0};

	if (fs_read(build_dir, f->path, UINT64_C(1) << 20, &have, ERR_IGNORED) == 0 &&
	    strcmp(buf_cstr(&have), f->text) == 0)
		return 0;
	return fs_write(build_dir, f->path, f->text, strlen(f->text), f->mode, e);
}

/* The compilers' names as links to the compiler cache,
 * which finds the real ones further down the PATH. */
static int masquerade(const struct build_request *q, const char *ccache, struct arena *a,
		      struct err *e)
{
	const struct plan *p = q->plan;
	const char *dir = path_join(a, q->build_dir, "cfg/ccache");

	if (fs_remove(q->build_dir, "cfg/ccache", e) < 0 ||
	    fs_mkdirs(q->build_dir, "cfg/ccache", e) < 0)
		return -1;
	for (size_t i = 0; i < p->env.count; i++) {
		const struct setting *s = &p->env.items[i];
		if (strcmp(s->name, "CC") != 0 && strcmp(s->name, "CXX") != 0)
			continue;
		const char *link = path_join(a, dir, path_base(s->value));
		if (symlink(ccache, link) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot make the link '%s'", link);
	}

	return 0;
}

/* Directories, generated files, sandbox and environment,
 * all that the package's build needs. Fills r->log. */
static int build_set_up(const struct build_request *q, const struct backend *b, unsigned jobs,
			struct arena *a, struct sandbox *s, struct build_result *r, struct err *e)
{
	const struct tool *ccache = toolchain_get(q->toolchain, "ccache");
	struct backend_options o = {.jobs = jobs,
				    .linker = backend_linker(q->plan, q->toolchain),
				    .ccache_size = q->ccache_size,
				    .torch = q->torch_dir ? SANDBOX_TORCH : NULL,
				    .venv = q->venv_dir ? SANDBOX_VENV : NULL};

	if (q->ccache_dir)
		o.ccache = ccache->path;
	if (build_start_log(q, a, &r->log, e) < 0 || fs_remove(q->build_dir, "out", e) < 0 ||
	    build_sandbox(q, a, s, e) < 0)
		return -1;
	const char *entries = backend_cache_file(q->plan, a);
	if (q->kind == SANDBOX_NONE)
		entries = sandbox_host_text(s, entries, a);
	const struct build_file cache = {"cfg/entries.cmake", entries, 0644};
	if (b->cmake && write_if_other(q->build_dir, &cache, e) < 0)
		return -1;
	if (o.ccache && (b->cmake || q->plan->toolkit)) {
		const struct build_file launcher = {
			path_join(a, "cfg", path_base(BACKEND_NVCC_LAUNCHER)),
			backend_nvcc_launcher(q->plan, o.ccache, a), 0755};
		if (write_if_other(q->build_dir, &launcher, e) < 0)
			return -1;
	}

	if (o.ccache) {
		const struct build_file heap = {path_join(a, "cfg", path_base(BACKEND_HEAP)),
						backend_heap(a), 0755};
		if (write_if_other(q->build_dir, &heap, e) < 0)
			return -1;
	}

	/* What compiles the units of several modules at once. */
	if (!b->cmake) {
		const struct kv files[] = {
			{"ptbuild_modules.py",
			 arena_strndup(a, (const char *)modules_program, modules_program_size)},
			{"ptbuild_modules-1.dist-info/METADATA",
			 "Metadata-Version: 2.1\nName: ptbuild-modules\nVersion: 1\n"},
			{"ptbuild_modules-1.dist-info/entry_points.txt",
			 "[setuptools.finalize_distribution_options]\nptbuild = "
			 "ptbuild_modules:modules\n"}};
		for (size_t i = 0; i < ARRAY_LEN(files); i++) {
			const char *rel = arena_printf(a, "cfg/%s/%s", path_base(BACKEND_MODULES),
						       files[i].key);
			if (fs_mkdirs(q->build_dir, path_dir(a, rel), e) < 0 ||
			    write_if_other(q->build_dir,
					   &(struct build_file){rel, files[i].value, 0644}, e) < 0)
				return -1;
		}
	}

	if (o.ccache && !b->cmake && masquerade(q, o.ccache, a, e) < 0)
		return -1;
	backend_env(q->plan, b, &o, a, &s->env);
	/* The official torch has NVIDIA's libraries in packages
	 * that are not here; the toolkit has them too. */
	if (q->torch_dir && q->plan->torch_toolkit)
		toolkit_run(q->plan->torch_toolkit, s);
	if (o.ccache)
		kvlist_set(&s->env, a, "CCACHE_STATSLOG", SANDBOX_OUT "/ccache.stats");
	if (build_tree_save(q->build_dir, q->plan, s, e) < 0)
		return -1;
	/* After build_tree_save: the socket lives no
	 * longer than this run, a shell has no use for it. */
	if (o.ccache && q->ccache_relay_dir) {
		sandbox_add(s, SANDBOX_RO, q->ccache_relay_dir, BACKEND_CCACHE_REMOTE);
		kvlist_set(&s->env, a, "CCACHE_REMOTE_STORAGE",
			   "redis+unix:" BACKEND_CCACHE_REMOTE "/s");
	}

	return 0;
}

int build_prepare(const struct build_request *q, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct sandbox s;
	const char *log;
	const struct package_row *row = q->plan->package_row;

	if (build_start_log(q, &a, &log, e) < 0 || build_sandbox(q, &a, &s, e) < 0)
		return -1;
	kvlist_set(&s.env, &a, "PATH", root_build_path(q->root, &a));
	kvlist_set(&s.env, &a, "LC_ALL", "C.UTF-8");
	if (build_tree_save(q->build_dir, q->plan, &s, e) < 0)
		return -1;
	for (unsigned i = 0; i < row->prepare_count; i++) {
		struct strlist argv = {0};
		strlist_refs(&argv, &a, row->prepare[i].argv, row->prepare[i].argv_count);
		s.cwd = path_join(&a, SANDBOX_SRC, row->prepare[i].dir);
		struct build_outcome out;
		const struct build_command c = {
			.q = q,
			.sandbox = &s,
			.argv = strlist_argv(&argv, &a),
			.step = arena_printf(&a, "prepare (%s)", strlist_join(&argv, &a, " ")),
			.log = log};
		if (build_command_run(&c, false, run, &out, e) < 0)
			return -1;
		if (out.short_of_memory)
			return build_too_large(&c, out.why, machine_memory(), e);
	}

	return 0;
}

static int one_wheel(const struct build_request *q, struct arena *a, const char **ret,
		     struct err *e)
{
	struct strlist names = {0};
	const char *found = NULL;
	const char *dir = path_join(a, q->rest_dir ? q->rest_dir : q->build_dir, "out");

	if (fs_list(q->build_dir, "out", a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (!path_has_suffix(names.items[i], ".whl"))
			continue;
		if (found)
			return err_set(e, ERR_BUILD,
				       "the build left more than one wheel in '%s': '%s' and '%s'",
				       dir, utf8_printable(found, a),
				       utf8_printable(names.items[i], a));
		found = names.items[i];
	}

	if (!found)
		return err_set(e, ERR_BUILD, "the build succeeded but left no wheel in '%s'", dir);
	*ret = path_join(a, dir, found);
	return 0;
}

static int configure(struct building *b, struct err *e)
{
	const struct build_command c = building_command(b, b->backend->configure, "configure");
	struct build_outcome out;
	struct config_report early = {0};

	if (build_command_run(&c, false, b->run, &out, e) < 0)
		return -1;
	b->result.seconds += out.seconds;
	if (out.short_of_memory)
		return build_too_large(&c, out.why, b->pools.memory, e);
	/* What a program that CMake asked would have said is in its cache now, as a no. */
	if (out.kills) {
		if (fs_remove(b->q->build_dir, BUILD_TREE, e) < 0)
			return -1;
		err_set(e, ERR_SYSTEM,
			"%s: the kernel killed a process for memory while it was configured",
			b->q->plan->package);
		return err_hint(e, "the same command configures it again; give it more memory (a "
				   "limit of the container or of a cgroup counts)");
	}

	/* Checked now, before an hour of compiling the wrong thing. */
	if (check_config_tree(&(struct config_check){.plan = b->q->plan,
						     .top = b->q->build_dir,
						     .build = BUILD_TREE,
						     .log = BUILD_LOG,
						     .cmake = b->backend->cmake,
						     .report = &early},
			      e) < 0)
		return err_wrap(e, "%s", b->q->plan->package);
	return 0;
}

static int configure_and_compile(struct building *b, struct err *e)
{
	if (building_save(b, true, e) < 0)
		return -1;
	int rc = b->backend->configure ? configure(b, e) : 0;
	if (rc == 0)
		rc = building_compile(b, e);
	/* A full disk has been reported already. */
	if (building_save(b, false, rc == 0 ? e : ERR_IGNORED) < 0 && rc == 0)
		rc = -1;
	return rc;
}

/* A setuid file in the tree would be its owner's for everybody who can reach the tree. */
static int drop_bits(const struct building *b, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	size_t inside = 0, beside = 0;
	const char *dir = b->q->build_dir;

	if (!sandbox_protection(b->run, PROTECTION_SETUID))
		return 0;
	if (build_user_drop_bits(path_join(&a, dir, "src"), &inside, e) < 0 ||
	    build_user_drop_bits(path_join(&a, dir, "out"), &beside, e) < 0)
		return -1;
	if (inside + beside)
		log_warn(b->run->log,
			 "%s: the build left %zu setuid or setgid files, which are plain ones now",
			 b->q->plan->package, inside + beside);
	return 0;
}

static int build_once(struct building *b, struct err *e)
{
	const struct build_request *q = b->q;
	struct build_result *r = &b->result;
	int rc = configure_and_compile(b, e);

	if (drop_bits(b, rc == 0 ? e : ERR_IGNORED) < 0 || rc < 0)
		return -1;
	r->pools = b->pools.now;
	r->jobs = b->pools.now.total;
	if (check_config_tree(&(struct config_check){.plan = q->plan,
						     .top = q->build_dir,
						     .build = BUILD_TREE,
						     .log = BUILD_LOG,
						     .cmake = b->backend->cmake,
						     .report = &r->checked},
			      e) < 0)
		return err_wrap(e, "%s", q->plan->package);
	return !q->shard && one_wheel(q, b->arena, &r->raw_wheel, e) < 0 ? -1 : 0;
}

/* Whether it may be the tree's fault: that of a run that
 * was killed, or anything but a unit that does not compile. */
static bool cannot_go_on(const struct building *b, const struct err *e)
{
	const bool killed = b->has_last && b->last.running;
	const enum err_kind kind = e->kind;
	const bool of_build = kind == ERR_BUILD || kind == ERR_POLICY || kind == ERR_INTEGRITY;

	return of_build && (killed || !b->unit);
}

/* What was compiled is in the compiler cache. */
static int begin_anew(struct building *b, struct err *e)
{
	log_warn(b->run->log,
		 "%s; the build tree of an earlier run cannot be continued: beginning from "
		 "scratch%s",
		 e->msg, b->q->ccache_dir ? ", with the compiler cache" : "");
	err_clear(e);
	b->result.resumed = b->has_last = b->unit = false;
	b->result.checked = (struct config_report){0};
	return fs_remove(b->q->build_dir, BUILD_TREE, e) < 0 ? -1 : build_once(b, e);
}

/* From the machine, the release's table and --jobs. */
static void build_pools_plan(const struct build_request *q, struct build_pools *ret)
{
	struct build_pools p = {.need = jobs_from_table(q->plan->package_row->memory),
				.memory = machine_memory()};

	p.now = jobs_plan(jobs_usable(p.memory), machine_processors(), q->jobs, &p.need);
	*ret = p;
}

int build_run(const struct build_request *q, struct arena *a, struct build_result *ret,
	      struct err *e)
{
	struct building b = {.q = q, .run = q->run, .arena = a, .began = log_seconds()};
	struct build_result *r = &b.result;

	if (backend_find(q->plan->package_row->backend, &b.backend, e) < 0 ||
	    (q->shard && backend_shares(b.backend, q->plan->package, e) < 0))
		return -1;
	build_pools_plan(q, &b.pools);
	if (build_set_up(q, b.backend, b.pools.now.total, a, &b.sandbox, r, e) < 0)
		return -1;
	/* Reads what the last run left, before building_save replaces it. */
	build_state_now(&b.state);
	b.has_last = build_state_read(b.q->build_dir, &b.last);
	if (q->kind == SANDBOX_BWRAP && sandbox_protection(q->run, PROTECTION_USER) &&
	    build_user_state() == BUILD_USER_OWN)
		log_info(q->run->log,
			 "%s: builds run as user %d, not as root, and their trees are that user's",
			 q->plan->package, BUILD_USER);
	r->memory = b.pools.memory;
	r->resumed = fs_exists(q->build_dir, BUILD_TREE);
	int rc = build_once(&b, e);
	if (rc < 0 && r->resumed && cannot_go_on(&b, e))
		rc = begin_anew(&b, e);
	if (rc < 0)
		return -1;
	if (r->checked.overridden)
		log_info(q->run->log,
			 "%s: %zu of %zu units have CPU flags of their own after the "
			 "plan's, such as %s",
			 q->plan->package, r->checked.overridden, r->checked.host_units,
			 r->checked.first_overridden);
	*ret = b.result;
	return 0;
}

int build_asks(const struct build_request *q, const struct run *run, struct arena *a,
	       struct strlist *ret, struct err *e)
{
	const char *program =
		arena_strndup(a, (const char *)requires_program, requires_program_size);
	const char *const argv[] = {"python3", "-c", program, NULL};
	const struct backend *b;
	struct build_result none = {0};
	struct sandbox s;
	AUTO_BUF struct buf out = {0};
	struct err why = {0};

	if (backend_find(q->plan->package_row->backend, &b, e) < 0 ||
	    build_set_up(q, b, 1, a, &s, &none, e) < 0)
		return -1;
	if (sandbox_capture(&s, argv, run, &out, &why) < 0) {
		if (why.kind == ERR_INTERRUPTED || why.kind == ERR_SYSTEM)
			return err_take(e, &why);
		/* The build fails likewise, with all of its output in the log. */
		log_verbose(run->log, "%s: its back end names no requirements: %s",
			    q->plan->package, why.msg);
		return 0;
	}

	strlist_split(ret, a, buf_cstr(&out), "\n");
	return 0;
}
