/* The root: its tools, its compiler on the profile's flags, its Python, its BLAS. */
#include <string.h>

#include "base/version.h"
#include "cmd/doctor.h"

/* A program of the root and its version against the release's range. */
static void check_tool(struct doctor *d, const char *name, const char *range, bool needed)
{
	const struct tool *t = toolchain_get(d->toolchain, name);
	struct err why = {0};
	bool fits = true;
	const char *absent = DOCTOR_TEXT(d, "not in the root '%s'", d->root->dir);
	const char *fix = DOCTOR_TEXT(d, "install it there%s%s", *range ? ", version " : "", range);
	if (!t->path && needed)
		doctor_fail(d, ERR_SYSTEM, name, absent, fix);
	else if (!t->path)
		doctor_warn(d, name, absent, fix);
	else if (!*t->version)
		doctor_fail(d, ERR_SYSTEM, name, DOCTOR_TEXT(d, "%s prints no version: is it broken?", t->path), fix);
	else if (version_in(t->version, range, &fits, &why) < 0)
		doctor_fail_err(d, name, &why);
	else if (!fits)
		doctor_fail(
			d, ERR_POLICY, name,
			DOCTOR_TEXT(d, "%s is %s, release %s needs %s", t->path, t->version, d->release->name, range),
			"install a version in that range, or build in another root with --root DIR");
	else
		doctor_ok(d, name, DOCTOR_TEXT(d, "%s %s", t->path, t->version));
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
	const struct tool *t = toolchain_get(d->toolchain, "python3");
	AUTO_BUF struct buf out = {0};
	struct err why;
	bool ok;
	if (!t->path || !*t->version) {
		check_tool(d, "python3", "", true);
		return 0;
	}
	if (d->plan && !is_of(t->version, d->plan->python))
		doctor_fail(d, ERR_POLICY, "python3",
			    DOCTOR_TEXT(d, "%s is %s, the build is for %s", t->path, t->version, d->plan->python),
			    "say --python for the one that is there, or use a root that has the other");
	else if (!allowed(d->release, t->version))
		doctor_fail(d, ERR_POLICY, "python3",
			    DOCTOR_TEXT(d, "%s is %s, which release %s does not build for", t->path, t->version,
					d->release->name),
			    "use a root with a Python of 'ptbuild list --releases', or another release");
	else
		doctor_ok(d, "python3", DOCTOR_TEXT(d, "%s %s", t->path, t->version));
	const struct strlist none = {0};
	if (doctor_shell(d,
			 "h=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()[\"include\"])')/Python.h && "
			 "test -f \"$h\" && echo "
			 "\"$h\"",
			 &none, &out, &ok, &why, e) < 0)
		return -1;
	if (ok)
		doctor_ok(d, "python3-dev", arena_strndup(d->c->arena, buf_cstr(&out), strcspn(buf_cstr(&out), "\n")));
	else
		doctor_fail(d, ERR_SYSTEM, "python3-dev", "the headers of the root's python3 are not there",
			    "install python3-dev there");
	return 0;
}

/* Compiles and links with the very flags, C and C++: a compiler's version number says less. */
#define TRY_FLAGS                                                                                                      \
	"t=/tmp/ptbuild-doctor$$; trap 'rm -f $t' EXIT; "                                                              \
	"printf 'int main(void) { return 0; }' | gcc \"$@\" -x c - -o $t && printf 'int main() { return 0; }' | g++ "  \
	"\"$@\" -x c++ - -o $t"

/* The first flag that fails alone; "" when all of them pass one by one. */
static int find_culprit(struct doctor *d, const struct strlist *flags, const char **ret, struct err *e)
{
	*ret = "";
	for (size_t i = 0; i < flags->count; i++) {
		AUTO_BUF struct buf out = {0};
		struct strlist one = {0};
		struct err why;
		bool ok;
		strlist_ref(&one, d->c->arena, flags->items[i]);
		if (doctor_shell(d, TRY_FLAGS, &one, &out, &ok, &why, e) < 0)
			return -1;
		if (!ok) {
			*ret = flags->items[i];
			return 0;
		}
	}
	return 0;
}

static int check_flags(struct doctor *d, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct strlist flags = {0};
	struct err why;
	const char *culprit;
	bool ok;
	if (!d->plan || d->plan->cpu_flags.count == 0 || !toolchain_get(d->toolchain, "g++")->path ||
	    !toolchain_get(d->toolchain, "gcc")->path)
		return 0;
	strlist_append(&flags, d->c->arena, &d->plan->cpu_flags);
	for (unsigned i = 0; i < d->plan->package_row->extra_cflags_count; i++)
		strlist_ref(&flags, d->c->arena, d->plan->package_row->extra_cflags[i]);
	if (doctor_shell(d, TRY_FLAGS, &flags, &out, &ok, &why, e) < 0)
		return -1;
	if (ok) {
		doctor_ok(d, "flags", DOCTOR_TEXT(d, "gcc and g++ take %s", strlist_join(&flags, d->c->arena, " ")));
		return 0;
	}
	if (find_culprit(d, &flags, &culprit, e) < 0)
		return -1;
	const struct isa_row *isa = d->plan->isa_row;
	doctor_fail(d, ERR_POLICY, "flags",
		    *culprit ? DOCTOR_TEXT(d, "the root's compiler does not take %s", culprit)
			     : DOCTOR_TEXT(d, "the root's compiler does not compile with %s: %s",
					   strlist_join(&flags, d->c->arena, " "), why.msg),
		    DOCTOR_TEXT(d, "use a root with GCC %s or newer, or a lower instruction set than %s",
				isa ? isa->gcc_min : "", d->plan->isa));
	return 0;
}

static int check_blas(struct doctor *d, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct strlist args = {0};
	struct err why;
	bool ok;
	const struct blas_row *row = d->plan ? d->plan->blas_row : NULL;
	if (!row || !*row->pkgconf)
		return 0;
	strlist_ref(&args, d->c->arena, row->pkgconf);
	if (doctor_shell(d, "exec pkg-config --modversion \"$1\"", &args, &out, &ok, &why, e) < 0)
		return -1;
	if (!ok) {
		doctor_fail(
			d, ERR_SYSTEM, "blas",
			DOCTOR_TEXT(d, "pkg-config finds no module '%s' in the root '%s'", row->pkgconf, d->root->dir),
			DOCTOR_TEXT(d, "install the development files of %s there, or choose another with --blas",
				    row->name));
		return 0;
	}
	const char *version = arena_strndup(d->c->arena, buf_cstr(&out), strcspn(buf_cstr(&out), "\n"));
	if (doctor_shell(d,
			 "t=/tmp/ptbuild-doctor$$; trap 'rm -f $t' EXIT; "
			 "printf 'void sgemm_(void); int main(int n, char **v) { (void)v; if (n > 9) sgemm_(); return "
			 "0; }' | "
			 "gcc -x c - -o $t $(pkg-config --libs \"$1\")",
			 &args, &out, &ok, &why, e) < 0)
		return -1;
	if (ok)
		doctor_ok(d, "blas", DOCTOR_TEXT(d, "%s %s, and a program links with it", row->pkgconf, version));
	else
		doctor_fail(
			d, ERR_SYSTEM, "blas",
			DOCTOR_TEXT(d, "%s %s is there, but no program links with it: %s", row->pkgconf, version,
				    why.msg),
			DOCTOR_TEXT(d, "install the libraries of %s there, or choose another with --blas", row->name));
	return 0;
}

int doctor_root(struct doctor *d, struct err *e)
{
	struct err why = {0};
	if (toolchain_probe(d->root, cmd_sandbox(d->c), d->c->run, d->c->arena, &d->toolchain, &why) < 0) {
		if (why.kind == ERR_INTERRUPTED) {
			*e = why;
			return -1;
		}
		doctor_fail_err(d, "tools", &why);
		return 0;
	}
	check_tool(d, "gcc", d->release->gcc, true);
	check_tool(d, "g++", d->release->gcc, true);
	check_tool(d, "cmake", d->release->cmake, true);
	check_tool(d, "ninja", d->release->ninja, true);
	check_tool(d, "ccache", "", false);
	check_tool(d, "pkg-config", "", true);
	if (check_python(d, e) < 0 || check_flags(d, e) < 0)
		return -1;
	return check_blas(d, e);
}
