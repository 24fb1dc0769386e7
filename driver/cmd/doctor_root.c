/* The root: its tools, its compiler on the profile's flags, its Python, its BLAS. */
#include <string.h>

#include "base/version.h"
#include "cmd/doctor.h"

/* A program of the root, its version checked against the release's range. */
static int check_tool(struct doctor *d, const char *name, const char *range, bool needed, struct err *e)
{
	const struct tool *t = toolchain_get(d->toolchain, name);
	struct err why = {0};
	bool fits = true;
	if (!t->path || !*t->version) {
		if (t->path)
			doctor_fail(d, ERR_SYSTEM, name, "%s prints no version: is it broken?", t->path);
		else if (needed)
			doctor_fail(d, ERR_SYSTEM, name, "not in the root '%s'", d->root->dir);
		else
			doctor_warn(d, name, "not in the root '%s'", d->root->dir);
		doctor_fix(d, "install it there%s%s", *range ? ", version " : "", range);
	} else if (version_in(t->version, range, &fits, &why) < 0) {
		return doctor_fail_err(d, name, &why, e);
	} else if (!fits) {
		doctor_fail(d, ERR_POLICY, name, "%s is %s, release %s needs %s", t->path, t->version, d->release->name,
			    range);
		doctor_fix(d, "install a version in that range, or build in another root with --root DIR");
	} else {
		doctor_ok(d, name, "%s %s", t->path, t->version);
	}
	return 0;
}

/* "3.13" against "3.13.5". */
static bool is_of(const char *version, const char *minor)
{
	size_t n = strlen(minor);
	return strncmp(version, minor, n) == 0 && (version[n] == '.' || !version[n]);
}

static bool allowed(const struct release_row *r, const char *version)
{
	for (unsigned i = 0; i < r->pythons_count; i++)
		if (is_of(version, r->pythons[i]))
			return true;
	return false;
}

static int check_python(struct doctor *d, struct err *e)
{
	static const char script[] =
		"h=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()[\"include\"])')/Python.h && test -f "
		"\"$h\" && echo \"$h\"";
	const struct tool *t = toolchain_get(d->toolchain, "python3");
	const struct strlist none = {0};
	struct doctor_answer got;
	if (!t->path || !*t->version)
		return check_tool(d, "python3", "", true, e);
	if (d->plan && !is_of(t->version, d->plan->python)) {
		doctor_fail(d, ERR_POLICY, "python3", "%s is %s, the build is for %s", t->path, t->version,
			    d->plan->python);
		doctor_fix(d, "pass --python for the one that is there, or use a root that has the other");
	} else if (!allowed(d->release, t->version)) {
		doctor_fail(d, ERR_POLICY, "python3", "%s is %s, which release %s does not build for", t->path,
			    t->version, d->release->name);
		doctor_fix(d, "use a root with a Python of 'ptbuild list --releases', or another release");
	} else {
		doctor_ok(d, "python3", "%s %s", t->path, t->version);
	}
	if (doctor_ask(d, script, &none, &got, e) < 0)
		return -1;
	if (got.ok) {
		doctor_ok(d, "python3-dev", "%s", got.line);
		return 0;
	}
	doctor_fail(d, ERR_SYSTEM, "python3-dev", "the root lacks the headers of its python3");
	doctor_fix(d, "install python3-dev there");
	return 0;
}

/* Compiles and links C and C++ with the flags themselves: a version number says less. */
#define TRY_FLAGS                                                                                                      \
	"t=/tmp/ptbuild-doctor$$; trap 'rm -f $t' EXIT; "                                                              \
	"printf 'int main(void) { return 0; }' | gcc \"$@\" -x c - -o $t && printf 'int main() { return 0; }' | g++ "  \
	"\"$@\" -x c++ - -o $t"

/* The first flag that fails alone; "" if none does. */
static int find_culprit(struct doctor *d, const struct strlist *flags, const char **ret, struct err *e)
{
	*ret = "";
	for (size_t i = 0; i < flags->count; i++) {
		struct strlist one = {0};
		struct doctor_answer got;
		strlist_ref(&one, d->c->arena, flags->items[i]);
		if (doctor_ask(d, TRY_FLAGS, &one, &got, e) < 0)
			return -1;
		if (!got.ok) {
			*ret = flags->items[i];
			return 0;
		}
	}
	return 0;
}

static int check_flags(struct doctor *d, struct err *e)
{
	struct strlist flags = {0};
	struct doctor_answer got;
	const char *culprit;
	if (!d->plan || d->plan->cpu_flags.count == 0 || !toolchain_get(d->toolchain, "g++")->path ||
	    !toolchain_get(d->toolchain, "gcc")->path)
		return 0;
	strlist_append(&flags, d->c->arena, &d->plan->cpu_flags);
	for (unsigned i = 0; i < d->plan->package_row->extra_cflags_count; i++)
		strlist_ref(&flags, d->c->arena, d->plan->package_row->extra_cflags[i]);
	if (doctor_ask(d, TRY_FLAGS, &flags, &got, e) < 0)
		return -1;
	const char *all = strlist_join(&flags, d->c->arena, " ");
	if (got.ok) {
		doctor_ok(d, "flags", "gcc and g++ accept %s", all);
		return 0;
	}
	if (find_culprit(d, &flags, &culprit, e) < 0)
		return -1;
	if (*culprit)
		doctor_fail(d, ERR_POLICY, "flags", "the root's compiler does not accept %s", culprit);
	else
		doctor_fail(d, ERR_POLICY, "flags", "the root's compiler does not compile with %s: %s", all, got.why);
	const struct isa_row *isa = d->plan->isa_row;
	doctor_fix(d, "use a root with GCC %s or newer, or a lower instruction set than %s", isa ? isa->gcc_min : "",
		   d->plan->isa);
	return 0;
}

static int check_blas(struct doctor *d, struct err *e)
{
	static const char link[] =
		"t=/tmp/ptbuild-doctor$$; trap 'rm -f $t' EXIT; printf 'void sgemm_(void); int main(int n, char **v) { "
		"(void)v; if (n > 9) sgemm_(); return 0; }' | gcc -x c - -o $t $(pkg-config --libs \"$1\")";
	struct strlist args = {0};
	struct doctor_answer module, linked;
	const struct blas_row *row = d->plan ? d->plan->blas_row : NULL;
	if (!row || !*row->pkgconf)
		return 0;
	strlist_ref(&args, d->c->arena, row->pkgconf);
	if (doctor_ask(d, "exec pkg-config --modversion \"$1\"", &args, &module, e) < 0 ||
	    (module.ok && doctor_ask(d, link, &args, &linked, e) < 0))
		return -1;
	if (!module.ok) {
		doctor_fail(d, ERR_SYSTEM, "blas", "pkg-config does not find '%s' in the root '%s'", row->pkgconf,
			    d->root->dir);
		doctor_fix(d, "install the development files of %s there, or choose another with --blas", row->name);
	} else if (!linked.ok) {
		doctor_fail(d, ERR_SYSTEM, "blas", "%s %s is there, but a program does not link with it: %s",
			    row->pkgconf, module.line, linked.why);
		doctor_fix(d, "install the libraries of %s there, or choose another with --blas", row->name);
	} else {
		doctor_ok(d, "blas", "%s %s, and a program links with it", row->pkgconf, module.line);
	}
	return 0;
}

int doctor_root(struct doctor *d, struct err *e)
{
	const struct release_row *r = d->release;
	struct err why = {0};
	if (toolchain_probe(d->root, cmd_sandbox(d->c), d->c->run, d->c->arena, &d->toolchain, &why) < 0)
		return doctor_fail_err(d, "tools", &why, e);
	if (check_tool(d, "gcc", r->gcc, true, e) < 0 || check_tool(d, "g++", r->gcc, true, e) < 0 ||
	    check_tool(d, "cmake", r->cmake, true, e) < 0 || check_tool(d, "ninja", r->ninja, true, e) < 0 ||
	    check_tool(d, "ccache", "", false, e) < 0 || check_tool(d, "pkg-config", "", true, e) < 0 ||
	    check_python(d, e) < 0 || check_flags(d, e) < 0)
		return -1;
	return check_blas(d, e);
}
