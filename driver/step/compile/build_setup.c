#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/compile/build_parts.h"
#include "step/compile/build_tree.h"

int build_sandbox(const struct build_request *q, struct arena *a, struct sandbox *s, struct err *e)
{
	if (sandbox_init(s, q->kind, q->root, a, e) < 0)
		return -1;
	static const struct {
		const char *name, *dest;
		enum sandbox_op_type type;
	} dirs[] = {
		{"src", SANDBOX_SRC, SANDBOX_RW}, {"out", SANDBOX_OUT, SANDBOX_RW}, {"cfg", SANDBOX_CFG, SANDBOX_RO}};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (fs_mkdirs(q->build_dir, dirs[i].name, e) < 0)
			return -1;
		sandbox_add(s, dirs[i].type, path_join(a, q->build_dir, dirs[i].name), dirs[i].dest);
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
	if (q->plan->toolkit)
		toolkit_mount(q->plan->toolkit, s);
	s->cwd = SANDBOX_SRC;
	return 0;
}

int build_start_log(const struct build_request *q, struct arena *a, const char **ret, struct err *e)
{
	if (fs_mkdirs(q->build_dir, "log", e) < 0)
		return -1;
	*ret = path_join(a, q->rest_dir ? q->rest_dir : q->build_dir, BUILD_LOG);
	return 0;
}

/* A file that is right already keeps its time: CMake would configure again for a newer one. */
static int write_if_other(const char *build_dir, const char *rel, const char *text, mode_t mode, struct err *e)
{
	AUTO_BUF struct buf have = {0};
	if (fs_read(build_dir, rel, UINT64_C(1) << 20, &have, ERR_IGNORED) == 0 && strcmp(buf_cstr(&have), text) == 0)
		return 0;
	return fs_write(build_dir, rel, text, strlen(text), mode, e);
}

/* The compilers' names as links to the compiler cache, which finds the real ones further down the PATH. */
static int masquerade(const struct build_request *q, const char *ccache, struct arena *a, struct err *e)
{
	const struct plan *p = q->plan;
	const char *dir = path_join(a, q->build_dir, "cfg/ccache");
	if (fs_remove(q->build_dir, "cfg/ccache", e) < 0 || fs_mkdirs(q->build_dir, "cfg/ccache", e) < 0)
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

int build_set_up(const struct build_request *q, const struct backend *b, unsigned jobs, struct arena *a,
		 struct sandbox *s, struct build_result *r, struct err *e)
{
	const struct tool *ccache = toolchain_get(q->toolchain, "ccache");
	struct backend_options o = {.jobs = jobs,
				    .linker = backend_linker(q->plan, q->toolchain),
				    .ccache = q->ccache_dir ? ccache->path : NULL,
				    .ccache_size = q->ccache_size,
				    .torch = q->torch_dir ? SANDBOX_TORCH : NULL,
				    .venv = q->venv_dir ? SANDBOX_VENV : NULL};
	if (build_start_log(q, a, &r->log, e) < 0 || fs_remove(q->build_dir, "out", e) < 0 ||
	    build_sandbox(q, a, s, e) < 0)
		return -1;
	const char *entries = backend_cache_file(q->plan, a);
	if (q->kind == SANDBOX_NONE)
		entries = sandbox_host_text(s, entries, a);
	if (b->cmake && write_if_other(q->build_dir, "cfg/entries.cmake", entries, 0644, e) < 0)
		return -1;
	if (o.ccache && b->cmake &&
	    write_if_other(q->build_dir, path_join(a, "cfg", path_base(BACKEND_NVCC_LAUNCHER)),
			   backend_nvcc_launcher(q->plan, o.ccache, a), 0755, e) < 0)
		return -1;
	if (o.ccache &&
	    write_if_other(q->build_dir, path_join(a, "cfg", path_base(BACKEND_HEAP)), backend_heap(a), 0755, e) < 0)
		return -1;
	if (o.ccache && !b->cmake && masquerade(q, o.ccache, a, e) < 0)
		return -1;
	backend_env(q->plan, b, &o, a, &s->env);
	/* The official torch has NVIDIA's libraries in packages that are not here; the toolkit has them too. */
	if (q->torch_dir && q->plan->toolkit)
		toolkit_run(q->plan->toolkit, s);
	if (o.ccache)
		kvlist_set(&s->env, a, "CCACHE_STATSLOG", SANDBOX_OUT "/ccache.stats");
	if (build_tree_save(q->build_dir, q->plan, s, e) < 0)
		return -1;
	/* After build_tree_save: the socket lives no longer than this run, a shell has no use for it. */
	if (o.ccache && q->ccache_remote_dir) {
		sandbox_add(s, SANDBOX_RO, q->ccache_remote_dir, BACKEND_CCACHE_REMOTE);
		kvlist_set(&s->env, a, "CCACHE_REMOTE_STORAGE", "redis+unix:" BACKEND_CCACHE_REMOTE "/s");
	}
	return 0;
}
