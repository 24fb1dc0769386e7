#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/root/sandbox.h"
#include "step/world/world_parts.h"

#define MAX_COMPILED (UINT64_C(64) << 20)

/* Every module that the world's Python finds is compiled to its place below argv[1], by argv[2] processes. Which of
 * them compiles a file, and after which others, changes no byte (tried: 1,556 files by 1, 2 and 3 processes). What is
 * no Python of this version, as some templates and tests of packages, stays as it is. */
static const char script[] =
	"import importlib.util, os, py_compile, sys\n"
	"out, parts, todo = sys.argv[1], int(sys.argv[2]), {}\n"
	"for top in filter(os.path.isdir, sys.path):\n"
	"    for at, dirs, files in os.walk(top):\n"
	"        dirs[:] = [d for d in dirs if d not in ('test', 'tests', '__pycache__')]\n"
	"        for path in (os.path.join(at, f) for f in files if f.endswith('.py')):\n"
	"            todo[path] = importlib.util.cache_from_source(path)\n"
	"part = next((i for i in range(1, parts) if os.fork() == 0), 0)\n"
	"for path in sorted(todo)[part::parts]:\n"
	"    if not os.path.lexists(todo[path]):\n"
	"        py_compile.compile(path, out + todo[path], path, quiet=2,\n"
	"                           invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n"
	"if part:\n"
	"    os._exit(0)\n"
	"for i in range(1, parts):\n"
	"    if os.wait()[1]:\n"
	"        sys.exit('a process that compiles ended early')\n";

static int run_script(const struct world_making *m, const struct root *root, struct arena *a, struct err *e)
{
	const char *jobs = arena_printf(a, "%u", m->q->jobs < 1 ? 1 : m->q->jobs);
	const char *argv[] = {"python3", "-I", "-c", script, SANDBOX_OUT, jobs, NULL};
	AUTO_BUF struct buf out = {0};
	struct sandbox s;
	if (sandbox_init(&s, SANDBOX_BWRAP, root, a, e) < 0)
		return -1;
	sandbox_add(&s, SANDBOX_RW, m->q->compiled, SANDBOX_OUT);
	kvlist_set(&s.env, a, "PATH", root_build_path(root, a));
	return sandbox_capture(&s, argv, m->run, &out, e);
}

static int add_compiled(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct world_making *m = user;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf bytes = {0};
	const char *dir = path_dir(&a, rel), *of = path_dir(&a, dir);
	const struct name *beside = names_find(&m->names, of);
	if (!S_ISREG(st->st_mode) || !path_has_suffix(rel, ".pyc") || !path_has_suffix(dir, "/__pycache__") ||
	    !beside || beside->kind != NAME_DIR)
		return err_set(e, ERR_INTEGRITY, "the world's Python wrote '%s', which compiles nothing of it", rel);
	if (fs_read(m->q->compiled, rel, MAX_COMPILED, &bytes, e) < 0 || world_add_dir(m, NULL, dir, e) < 0)
		return -1;
	return world_add_file(m, NULL, rel, bytes.data, bytes.len, e);
}

int world_compile(struct world_making *m, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct utsname u;
	struct root root;
	struct err why = {0};
	if (!m->q->compiled || uname(&u) < 0 ||
	    strcmp(m->q->world->platform, arena_printf(&a, "%s-linux", u.machine)) != 0 ||
	    root_open(m->q->dir, &a, &root, &why) < 0 || !root_find_program(&root, "python3", &a))
		return 0;
	if (run_script(m, &root, &a, &why) == 0)
		return fs_walk(TRUSTED, m->q->compiled, add_compiled, m, e);
	if (why.kind == ERR_INTERRUPTED) {
		*e = why;
		return -1;
	}
	log_warn(m->run->log,
		 "the Python files of the world stay uncompiled, and each start of Python in it is slower: %s",
		 why.msg);
	return 0;
}
