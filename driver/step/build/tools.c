#include "step/build/tools.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/version.h"

struct need {
	const char *tool;
	const char *range; /* "" = any */
};

static int check_one(const struct plan *p, const struct toolchain *t, const struct root *root, const struct need *n,
		     struct err *e)
{
	const struct tool *tool = toolchain_get(t, n->tool);
	bool in = false;
	if (!tool->path) {
		err_set(e, ERR_SYSTEM, "no %s in the root '%s', which %s needs", n->tool, root->dir, p->variant);
		return err_hint(e, "install it there, or name another root with --root; 'ptbuild doctor' lists all "
				   "that is missing");
	}
	if (!*n->range)
		return 0;
	if (version_in(tool->version, n->range, &in, e) < 0)
		return -1;
	if (!in) {
		err_set(e, ERR_POLICY, "%s %s in the root '%s', but release %s builds with %s", n->tool, tool->version,
			root->dir, p->release, n->range);
		return err_hint(e, "use a root that has one in this range (--root), or another release");
	}
	return 0;
}

static int check_python(const struct plan *p, const struct toolchain *t, const struct root *root, struct err *e)
{
	const struct tool *python = toolchain_get(t, "python3");
	size_t n = strlen(p->python);
	if (strncmp(python->version, p->python, n) != 0 || (python->version[n] && python->version[n] != '.')) {
		err_set(e, ERR_POLICY, "python3 in the root '%s' is %s, but %s is for Python %s", root->dir,
			python->version, p->variant, p->python);
		return err_hint(e,
				"ask for the root's own Python (leave --python out), or name a root that has Python %s",
				p->python);
	}
	return 0;
}

/* A build runs its platform's own compilers; there is no cross build. */
static int check_platform(const struct plan *p, struct err *e)
{
	struct utsname u;
	char here[160];
	if (uname(&u) < 0)
		return err_errno(e, ERR_SYSTEM, "uname");
	bool darwin = strcmp(u.sysname, "Darwin") == 0;
	snprintf(here, sizeof(here), "%s-%s", strcmp(u.machine, "arm64") == 0 ? "aarch64" : u.machine,
		 darwin ? "darwin" : "linux");
	if (strcmp(here, p->platform) == 0)
		return 0;
	err_set(e, ERR_POLICY, "%s is for %s, and this machine is %s", p->variant, p->platform, here);
	if (strcmp(p->platform, "aarch64-darwin") == 0)
		return err_hint(
			e, "it is built on macOS 12.3 or newer with Apple silicon; a plan of it can be made anywhere");
	return err_hint(e, "build it on such a machine; a plan of it can be made anywhere");
}

int tools_check(const struct plan *p, const struct toolchain *t, const struct root *root, struct err *e)
{
	const struct release_row *r = p->release_row;
	bool cmake = strcmp(p->package_row->backend, "setuptools") != 0;
	const struct need needs[] = {{"gcc", r->gcc},
				     {"g++", r->gcc},
				     {"ninja", r->ninja},
				     {"python3", ""},
				     {"cmake", cmake ? r->cmake : ""}};
	if (check_platform(p, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(needs); i++) {
		if (check_one(p, t, root, &needs[i], e) < 0)
			return -1;
	}
	if (check_python(p, t, root, e) < 0)
		return -1;
	if (!p->cuda || p->toolkit)
		return 0;
	err_set(e, ERR_SYSTEM, "no CUDA toolkit in the root '%s', which %s needs", root->dir, p->variant);
	return err_hint(e, "install CUDA %s there, or name a root that has it with --root", p->cuda);
}
