#include "step/build.h"

#include <ctype.h>
#include <string.h>

#include "base/fs.h"
#include "base/machine.h"
#include "base/path.h"
#include "step/backend.h"

unsigned build_jobs(unsigned processors, uint64_t memory)
{
	uint64_t fit = memory / BUILD_JOB_BYTES;
	if (fit < 1)
		fit = 1;
	return fit < processors ? (unsigned)fit : processors;
}

/* Less than this left on the disk of the build tree counts as full. */
#define FULL_BYTES (UINT64_C(256) << 10)

/* What a running build tells about itself, line by line. */
struct watch {
	struct log *log;
	const char *package;
	const char *step;
	double since;
};

static void watch_line(const char *line, size_t len, void *user)
{
	struct watch *w = user;
	unsigned done, all;
	char head[64];
	snprintf(head, sizeof(head), "%.*s", (int)(len < 63 ? len : 63), line);
	if (sscanf(head, "[%u/%u]", &done, &all) == 2 && all > 0)
		log_status(w->log, "%s: %s %u/%u (%u%%), %.0f s", w->package, w->step, done, all, done * 100 / all,
			   log_seconds() - w->since);
}

/* The first line of the log, from `offset` on, that says what went wrong. */
static void first_error(const char *log_path, uint64_t offset, struct buf *out)
{
	static const char *const marks[] = {
		" error: ", "fatal error:", "CMake Error", "Error: ", "error: ", "undefined reference", "No space left"};
	AUTO_BUF struct buf log = {0};
	struct err ignored = {0};
	if (fs_read(log_path, UINT64_C(1) << 30, &log, &ignored) != 0 || offset >= log.len)
		return;
	const char *text = log.data + offset, *best = NULL;
	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		const char *at = strstr(text, marks[i]);
		/* pip wraps the reason, which stands above, in this one. */
		while (at && strncmp(at, "error: subprocess-exited", 24) == 0)
			at = strstr(at + 1, marks[i]);
		if (at && (!best || at < best))
			best = at;
	}
	const char *start = best;
	if (!best) { /* no line that looks like an error: the last one that says anything */
		size_t end = log.len;
		while (end > offset && isspace((unsigned char)log.data[end - 1]))
			end--;
		start = log.data + end;
	}
	while (start > text && start[-1] != '\n')
		start--;
	size_t n = strcspn(start, "\r\n");
	buf_add(out, start, n < 500 ? n : 500);
	const char *more = best ? start + n + strspn(start + n, "\r\n") : NULL;
	if (more && strncmp(start, "CMake Error", 11) == 0 && *more) /* CMake puts the reason on the next line */
		buf_printf(out, " %.*s", (int)strcspn(more, "\r\n"), more + strspn(more, " "));
}

static int make_sandbox(const struct build_request *q, struct arena *a, struct sandbox *s, struct err *e)
{
	if (sandbox_init(s, q->kind, q->root, a, e) != 0)
		return -1;
	static const struct {
		const char *name, *dest;
		enum sandbox_op_type type;
	} dirs[] = {{"src", SANDBOX_SRC, SANDBOX_RW}, {"out", SANDBOX_OUT, SANDBOX_RW}, {"cfg", SANDBOX_CFG, SANDBOX_RO}};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		const char *host = path_join(a, q->build_dir, dirs[i].name);
		if (fs_mkdirs(host, e) != 0)
			return -1;
		sandbox_add(s, dirs[i].type, host, dirs[i].dest);
	}
	if (q->ccache_dir) {
		if (fs_mkdirs(q->ccache_dir, e) != 0)
			return -1;
		sandbox_add(s, SANDBOX_RW, q->ccache_dir, SANDBOX_CCACHE);
	}
	if (q->torch_dir)
		sandbox_add(s, SANDBOX_RO, q->torch_dir, SANDBOX_TORCH);
	if (q->venv_dir)
		sandbox_add(s, SANDBOX_RO, q->venv_dir, SANDBOX_VENV);
	s->cwd = SANDBOX_SRC;
	return 0;
}

/* One command of the build, its output in the log. */
static int run_logged(const struct sandbox *s, const char *const *argv, const char *log_path, struct watch *w, const struct run *run,
		      struct proc_result *res, struct err *e)
{
	AUTO_BUF struct buf why = {0};
	struct stat st;
	uint64_t free_bytes;
	uint64_t offset = stat(log_path, &st) == 0 ? (uint64_t)st.st_size : 0;
	struct proc_spec spec = {.log_path = log_path, .on_line = watch_line, .user = w};
	w->since = log_seconds();
	int r = sandbox_run(s, argv, &spec, run, res, e);
	log_status_end(run->log);
	if (r != 0)
		return err_wrap(e, "%s: %s", w->package, w->step);
	if (res->status == 0)
		return 0;
	/* A full disk is told as one, whatever words the build had for it: often it could not even write them down. */
	struct err ignored = {0};
	if (fs_free_bytes(log_path, &free_bytes, &ignored) == 0 && free_bytes < FULL_BYTES) {
		err_set(e, ERR_SYSTEM, "%s: %s failed with status %d: no space is left where '%s' lies", w->package, w->step, res->status,
			log_path);
		return err_hint(e, "make room, or name another place with --cache; the tree is kept, the same command goes on from there");
	}
	first_error(log_path, offset, &why);
	err_set(e, ERR_BUILD, "%s: %s failed with status %d: %s", w->package, w->step, res->status, buf_cstr(&why));
	return err_hint(e, "the whole log is '%s'; the tree is kept, the same command goes on from there", log_path);
}

static int start_log(const struct build_request *q, struct arena *a, const char **ret, struct err *e)
{
	const char *dir = path_join(a, q->build_dir, "log");
	if (fs_mkdirs(dir, e) != 0)
		return -1;
	*ret = path_join(a, dir, "build.log");
	return 0;
}

int build_prepare(const struct build_request *q, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct sandbox s;
	const char *log;
	const struct package_row *row = q->plan->package_row;
	if (start_log(q, &a, &log, e) != 0 || make_sandbox(q, &a, &s, e) != 0)
		return -1;
	kvlist_set(&s.env, &a, "PATH", "/usr/bin:/bin");
	kvlist_set(&s.env, &a, "LC_ALL", "C.UTF-8");
	for (unsigned i = 0; i < row->prepare_count; i++) {
		struct strlist argv = {0};
		struct proc_result res;
		struct watch w = {.log = run->log, .package = q->plan->package};
		for (unsigned k = 0; k < row->prepare[i].argv_count; k++)
			strlist_add(&argv, &a, row->prepare[i].argv[k]);
		w.step = arena_printf(&a, "prepare (%s)", strlist_join(&argv, &a, " "));
		s.cwd = path_join(&a, SANDBOX_SRC, row->prepare[i].dir);
		if (run_logged(&s, strlist_argv(&argv, &a), log, &w, run, &res, e) != 0)
			return -1;
	}
	return 0;
}

/* ccache's log of statistics: a line per compilation that names the counter. */
static void count_cache(const char *path, struct build_result *r)
{
	AUTO_BUF struct buf text = {0};
	struct err ignored = {0};
	if (!fs_exists(path) || fs_read(path, UINT64_C(256) << 20, &text, &ignored) != 0)
		return;
	char *next = NULL;
	for (char *line = text.len ? text.data : NULL; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strcmp(line, "direct_cache_hit") == 0 || strcmp(line, "preprocessed_cache_hit") == 0)
			r->cache_hits++;
		else if (strcmp(line, "cache_miss") == 0)
			r->cache_misses++;
	}
}

static int one_wheel(const char *dir, struct arena *a, const char **ret, struct err *e)
{
	struct strlist names = {0};
	const char *found = NULL;
	if (fs_list(dir, a, &names, e) != 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (!path_has_suffix(names.items[i], ".whl"))
			continue;
		if (found)
			return err_set(e, ERR_BUILD, "the build left more than one wheel in '%s': '%s' and '%s'", dir, found,
				       names.items[i]);
		found = names.items[i];
	}
	if (!found)
		return err_set(e, ERR_BUILD, "the build ended well but left no wheel in '%s'", dir);
	*ret = path_join(a, dir, found);
	return 0;
}

/* A file that is as it must be keeps its time: CMake would configure again for a newer one. */
static int write_if_other(const char *path, const char *text, struct err *e)
{
	AUTO_BUF struct buf have = {0};
	struct err ignored = {0};
	if (fs_exists(path) && fs_read(path, UINT64_C(1) << 20, &have, &ignored) == 0 && strcmp(buf_cstr(&have), text) == 0)
		return 0;
	return fs_write_atomic(path, text, strlen(text), 0644, e);
}

/* The compilers' names as links to the compiler cache, which finds the real ones further down the PATH. */
static int masquerade(const struct plan *p, const char *dir, const char *ccache, struct arena *a, struct err *e)
{
	if (fs_remove_tree(dir, e) != 0 || fs_mkdirs(dir, e) != 0)
		return -1;
	for (size_t i = 0; i < p->env.count; i++) {
		const struct setting *s = &p->env.items[i];
		if (strcmp(s->name, "CC") != 0 && strcmp(s->name, "CXX") != 0)
			continue;
		const char *link = path_join(a, dir, path_base(s->value));
		if (symlink(ccache, link) != 0)
			return err_errno(e, ERR_SYSTEM, "cannot make the link '%s'", link);
	}
	return 0;
}

/* Everything that must be there before the package's own build may run. */
static int set_up(const struct build_request *q, const struct backend *b, struct arena *a, struct sandbox *s, struct build_result *r,
		  struct err *e)
{
	const struct tool *ccache = toolchain_get(q->toolchain, "ccache");
	struct backend_options o = {.jobs = q->jobs ? q->jobs : build_jobs(machine_processors(), machine_memory()),
				    .ccache = q->ccache_dir ? ccache->path : NULL,
				    .torch = q->torch_dir ? SANDBOX_TORCH : NULL,
				    .venv = q->venv_dir ? SANDBOX_VENV : NULL};
	const char *cfg = path_join(a, q->build_dir, "cfg"), *out = path_join(a, q->build_dir, "out");
	r->jobs = o.jobs;
	if (start_log(q, a, &r->log, e) != 0)
		return -1;
	if (fs_remove_tree(out, e) != 0 || fs_mkdirs(out, e) != 0 || fs_mkdirs(cfg, e) != 0)
		return -1;
	if (b->cmake && write_if_other(path_join(a, cfg, "entries.cmake"), backend_cache_file(q->plan, a), e) != 0)
		return -1;
	if (o.ccache && !b->cmake && masquerade(q->plan, path_join(a, cfg, "ccache"), o.ccache, a, e) != 0)
		return -1;
	if (make_sandbox(q, a, s, e) != 0)
		return -1;
	backend_env(q->plan, b, &o, a, &s->env);
	if (o.ccache)
		kvlist_set(&s->env, a, "CCACHE_STATSLOG", SANDBOX_OUT "/ccache.stats");
	return 0;
}

int build_run(const struct build_request *q, const struct run *run, struct arena *a, struct build_result *ret, struct err *e)
{
	struct build_result r = {0};
	struct sandbox s;
	const struct backend *b;
	struct proc_result res;
	const char *src = path_join(a, q->build_dir, "src");
	if (backend_find(q->plan->package_row->backend, &b, e) != 0 || set_up(q, b, a, &s, &r, e) != 0)
		return -1;
	r.resumed = fs_exists(path_join(a, src, "build"));
	struct watch w = {.log = run->log, .package = q->plan->package, .step = "configure"};
	if (b->configure) {
		struct asked_report early = {0};
		if (run_logged(&s, b->configure, r.log, &w, run, &res, e) != 0)
			return -1;
		r.seconds += res.seconds;
		/* An hour of compiling the wrong thing is saved by looking now. */
		if (asked_tree(q->plan, src, r.log, b->cmake, &early, e) != 0)
			return err_wrap(e, "%s", q->plan->package);
	}
	w.step = "build";
	if (run_logged(&s, b->build, r.log, &w, run, &res, e) != 0)
		return -1;
	r.seconds += res.seconds;
	if (asked_tree(q->plan, src, r.log, b->cmake, &r.asked, e) != 0)
		return err_wrap(e, "%s", q->plan->package);
	const char *out = path_join(a, q->build_dir, "out");
	if (one_wheel(out, a, &r.raw_wheel, e) != 0)
		return -1;
	count_cache(path_join(a, out, "ccache.stats"), &r);
	*ret = r;
	return 0;
}
