/* The root's Python: its headers, what makes environments and installs into them, and the modules that a finished wheel
 * imports. Each is imported: a package may be there and not work. */
#include <string.h>

#include "base/path.h"
#include "core/wheel/wheel.h"
#include "step/preflight/preflight_parts.h"

/* A line for each question, the first word of which says what kind of answer it is. */
static const char script[] = "exec python3 -I -c 'import importlib, os, sys, sysconfig\n"
			     "h = os.path.join(sysconfig.get_paths()[\"include\"], \"Python.h\")\n"
			     "print(\"ok\" if os.path.isfile(h) else \"none\", h)\n"
			     "for name in sys.argv[1:]:\n"
			     "    try:\n"
			     "        m = importlib.import_module(name)\n"
			     "        if not m.__file__: raise ModuleNotFoundError(name)\n"
			     "        print(\"ok\", m.__file__)\n"
			     "    except ModuleNotFoundError as x:\n"
			     "        print(\"none\", x)\n"
			     "    except OSError as x:\n"
			     "        import pip._vendor.certifi\n"
			     "        print(\"oserror\", pip._vendor.certifi.where(), x)\n"
			     "    except Exception as x:\n"
			     "        print(\"broken\", type(x).__name__, str(x).split(chr(10))[0])' \"$@\"";

struct question {
	const char *name;   /* of the line */
	const char *module; /* NULL: the headers */
	const char *package;
	const char *why;
	const char *wheel; /* that a build could install; NULL: none */
};

static const struct question fixed[] = {
	{"python3-dev", NULL, "python3-dev", "extensions are compiled with its headers", NULL},
	{"python3-venv", "venv", "python3-venv", "a wheel is tried in an environment of its own", NULL},
	/* The package is this; the module above is in Python's own. */
	{"python3-venv", "ensurepip", "python3-venv", "an environment for the wheel gets its pip from it", NULL},
	{"pip", "pip._internal.commands.install", "python3-pip", "it tells whether a wheel can be installed", NULL},
};

static void judge(struct preflight *d, const struct question *q, const char *answer)
{
	size_t n = strcspn(answer, " ");
	const char *rest = answer + n + strspn(answer + n, " ");
	if (strncmp(answer, "ok", n) == 0) {
		preflight_ok(d, q->name, "%s", rest);
		return;
	}
	if (strncmp(answer, "oserror", n) == 0 && q->module && strncmp(q->module, "pip.", 4) == 0) {
		/* pip 25 reads its list of authorities when it is imported, also to install a file. */
		preflight_fail(d, ERR_SYSTEM, "certificates", "pip cannot start without its CA bundle: %s", rest);
		preflight_install(d, "ca-certificates", false);
		return;
	}
	if (strncmp(answer, "none", n) == 0)
		preflight_fail(d, ERR_SYSTEM, q->name, "not in the Python of the root '%s': %s", d->q->root->dir,
			       q->why);
	else
		preflight_fail(d, ERR_SYSTEM, q->name, "%s cannot be imported in the root '%s': %s", q->module,
			       d->q->root->dir, rest);
	preflight_install(d, q->package, false);
}

/* A wheel that is taken is only tried. */
static struct question *questions(const struct preflight *d, size_t *ret_count)
{
	const struct tables *t = d->q->tables;
	const bool taken = preflight_is_taken(d);
	struct question *all = arena_array(d->arena, ARRAY_LEN(fixed) + t->needs_count, sizeof(*all));
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		if (!taken || fixed[i].module)
			all[n++] = fixed[i];
	for (unsigned i = 0; !taken && i < t->needs_count; i++) {
		const struct need_row *row = &t->needs[i];
		if (*row->module && preflight_wants(d, row))
			all[n++] = (struct question){row->module, row->module, row->debian, row->why,
						     wheel_normalize(tables_need_wheel(row), d->arena)};
	}
	*ret_count = n;
	return all;
}

static bool is_lacking(const struct question *q, const char *answer)
{
	return q->wheel && strncmp(answer, "none", 4) == 0;
}

/* What the build installs where the root's Python lacks something; asked only then, since it takes a moment. */
static int installed(const struct preflight *d, const struct question *all, const struct strlist *lines, size_t first,
		     struct strlist *ret, struct err *e)
{
	struct err why = {0};
	bool lacks = false;
	for (size_t i = first; i < lines->count; i++)
		lacks |= is_lacking(&all[i - first], lines->items[i]);
	if (!lacks || !d->q->installs || d->q->installs(d->q->user, ret, &why) == 0)
		return 0;
	*ret = (struct strlist){0};
	if (why.kind != ERR_INTERRUPTED) /* the module is missing, then */
		return 0;
	*e = why;
	return -1;
}

int preflight_python(struct preflight *d, struct err *e)
{
	struct strlist modules = {0}, lines = {0}, wheels = {0};
	struct preflight_answer got;
	size_t count;
	const struct question *all = questions(d, &count);
	const struct tool *python = d->toolchain ? toolchain_get(d->toolchain, "python3") : NULL;
	/* Its absence is told among the tools, which a wheel that is taken does not need. */
	if (!preflight_is_taken(d) && (!python || !python->path || !*python->version))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (all[i].module)
			strlist_ref(&modules, d->arena, all[i].module);
	if (preflight_ask(d, script, &modules, &got, e) < 0)
		return -1;
	strlist_split(&lines, d->arena, got.text, "\n");
	const size_t first = preflight_is_taken(d) ? 1 : 0; /* that of the headers */
	if (!got.ok || lines.count != first + count) {
		preflight_fail(d, ERR_SYSTEM, "python3", "the Python of the root '%s' does not work: %s",
			       d->q->root->dir, got.why);
		preflight_install(d, "python3", false);
		return 0;
	}
	if (installed(d, all, &lines, first, &wheels, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (is_lacking(&all[i], lines.items[first + i]) && strlist_contains(&wheels, all[i].wheel))
			preflight_ok(d, all[i].name, "the build installs it for itself");
		else
			judge(d, &all[i], lines.items[first + i]);
	return 0;
}
