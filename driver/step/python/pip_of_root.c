#include "base/sys/fs.h"
#include "base/sys/proc.h"
#include "step/python/pyenv_parts.h"

/* pip's options choose files for another Python, but markers and Requires-Python are those of the
 * Python that runs it. Arguments: pip's directory ("": that Python's own), the environment of
 * markers, and pip's own. */
static const char script[] =
	"import json, sys\n"
	"if sys.argv[1]:\n"
	"    sys.path.insert(0, sys.argv[1])\n"
	"import pip\n"
	"try:\n"
	"    from pip._internal.cli.req_command import RequirementCommand\n"
	"    from pip._vendor.packaging import markers\n"
	"    env = json.loads(sys.argv[2])\n"
	"    version = tuple(int(n) for n in env['python_version'].split('.'))\n"
	"    version += (int(env['python_full_version'].split('.')[2].split('+')[0]),)\n"
	"    made = RequirementCommand.make_resolver.__func__\n"
	"    if 'py_version_info' not in made.__code__.co_varnames:\n"
	"        raise AttributeError('py_version_info')\n"
	"    def make(cls, *args, **kw):\n"
	"        return made(cls, *args, **dict(kw, py_version_info=version))\n"
	"    markers.default_environment.__call__\n"
	"    RequirementCommand.make_resolver = classmethod(make)\n"
	"    markers.default_environment = lambda: dict(env)\n"
	"except (AttributeError, ImportError, LookupError, ValueError) as why:\n"
	"    print('" PIP_IS_OTHER " (%s): %s' % (pip.__version__, why), file=sys.stderr)\n"
	"sys.argv = ['pip'] + sys.argv[3:]\n"
	"from pip._internal.cli.main import main\n"
	"sys.exit(main())\n";

/* "pip 23.2.1 from /usr/lib/python3/dist-packages/pip (python 3.11)": the directory that pip is in,
 * and a Python of that version. */
static bool read_place(const char *text, struct arena *a, const char **dir, const char **python)
{
	const char *from = strstr(text, " from "), *end = strstr(text, "/pip (python 3.");

	if (!from || !end || end < from)
		return false;
	from += strlen(" from ");
	const char *version = end + strlen("/pip (python ");
	*dir = arena_strndup(a, from, (size_t)(end - from));
	*python =
		proc_find(a, arena_printf(a, "python%.*s", (int)strcspn(version, ")\n"), version));
	if (!*python)
		*python = proc_find(a, "python3");
	return *python && fs_is_dir(TRUSTED, *dir);
}

int python_start_pip(const struct python *p, const struct pyenv_wanted *w, struct strlist *argv,
		     struct err *e)
{
	struct arena *a = p->arena;
	const char *dir = "", *python = p->program;
	struct strlist plain = {0}, ask = {0};
	AUTO_BUF struct buf version = {0};

	if (python_find_pip(p, &plain, e) < 0)
		return -1;
	strlist_append(&ask, a, &plain);
	strlist_ref(&ask, a, "--version");
	if (!p->root->host &&
	    (proc_capture(strlist_argv(&ask, a), p->run, &version, ERR_IGNORED) < 0 ||
	     !read_place(buf_cstr(&version), a, &dir, &python))) {
		strlist_append(argv, a, &plain); /* which says what is wrong with it */
		return 0;
	}

	strlist_ref(argv, a, python);
	strlist_split(argv, a, "-I -c", " ");
	strlist_ref(argv, a, script);
	strlist_ref(argv, a, dir);
	strlist_ref(argv, a, w->environment);
	return 0;
}
