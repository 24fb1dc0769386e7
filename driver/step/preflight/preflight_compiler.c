/* The root's compiler on the profile's flags, and its BLAS. */
#include <string.h>

#include "step/preflight/preflight_parts.h"

/* Compiles and links C and C++ with the flags themselves: a version number says less. */
#define TRY_FLAGS                                                                                                      \
	"t=/tmp/ptbuild-check$$; trap 'rm -f $t' EXIT; "                                                               \
	"printf 'int main(void) { return 0; }' | gcc \"$@\" -x c - -o $t && printf 'int main() { return 0; }' | g++ "  \
	"\"$@\" -x c++ - -o $t"

/* The first flag that fails alone; "" if none does, or if nothing is compiled without any either. */
static int find_culprit(struct preflight *d, const struct strlist *flags, struct preflight_answer *plain,
			const char **ret, struct err *e)
{
	const struct strlist none = {0};
	*ret = "";
	if (preflight_ask(d, TRY_FLAGS, &none, plain, e) < 0)
		return -1;
	for (size_t i = 0; plain->ok && i < flags->count; i++) {
		struct strlist one = {0};
		struct preflight_answer got;
		strlist_ref(&one, d->arena, flags->items[i]);
		if (preflight_ask(d, TRY_FLAGS, &one, &got, e) < 0)
			return -1;
		if (!got.ok) {
			*ret = flags->items[i];
			return 0;
		}
	}
	return 0;
}

static int check_flags(struct preflight *d, struct err *e)
{
	struct strlist flags = {0};
	struct preflight_answer got, plain;
	const char *culprit;
	if (!d->q->plan || d->q->plan->cpu_flags.count == 0 || !toolchain_get(d->toolchain, "g++")->path ||
	    !toolchain_get(d->toolchain, "gcc")->path)
		return 0;
	strlist_append(&flags, d->arena, &d->q->plan->cpu_flags);
	tables_cflags(d->q->plan->package_row, d->q->plan->platform, d->arena, &flags);
	if (preflight_ask(d, TRY_FLAGS, &flags, &got, e) < 0)
		return -1;
	const char *all = strlist_join(&flags, d->arena, " ");
	if (got.ok) {
		preflight_ok(d, "flags", "gcc and g++ accept %s", all);
		return 0;
	}
	if (find_culprit(d, &flags, &plain, &culprit, e) < 0)
		return -1;
	if (!plain.ok) {
		preflight_fail(d, ERR_SYSTEM, "flags", "the root's compiler compiles nothing: %s", plain.why);
		preflight_install(d, "g++", false);
		return 0;
	}
	if (*culprit)
		preflight_fail(d, ERR_POLICY, "flags", "the root's compiler does not accept %s", culprit);
	else
		preflight_fail(d, ERR_POLICY, "flags", "the root's compiler does not compile with %s: %s", all,
			       got.why);
	const struct isa_row *isa = d->q->plan->isa_row;
	preflight_fix(d, "use a root with GCC %s or newer, or a lower instruction set than %s", isa ? isa->gcc_min : "",
		      d->q->plan->isa);
	return 0;
}

/* Where a BLAS that the root's packages do not have comes from. */
static void fix_blas(struct preflight *d, const struct blas_row *row)
{
	const struct release_row *r = d->q->release;
	if (!*row->world) {
		preflight_install(d, row->debian, false);
		return;
	}
	/* the last row of a release is that of builds without CUDA */
	const char *base = r->worlds_count ? r->worlds[r->worlds_count - 1].base : "WORLD";
	preflight_fix(d,
		      "a world has it with the part '%s': leave --root out, or make a root of your own with 'ptbuild "
		      "world make %s+%s --copy DIR'",
		      row->world, base, row->world);
}

static int check_blas(struct preflight *d, struct err *e)
{
	/* -x none: MKL's module names the files of its archives */
	static const char link[] =
		"t=/tmp/ptbuild-check$$; trap 'rm -f $t' EXIT; export PKG_CONFIG_PATH=\"$2\"; printf 'void "
		"sgemm_(void); int main(int n, char **v) { (void)v; if (n > 9) sgemm_(); return 0; }' | gcc -x c - -o "
		"$t -x none $(pkg-config --libs \"$1\")";
	struct strlist args = {0};
	struct preflight_answer module, linked;
	const struct blas_row *row = d->q->plan ? d->q->plan->blas_row : NULL;
	if (!row || !*row->pkgconf)
		return 0;
	const char *dirs = settings_value(&d->q->plan->env, "PKG_CONFIG_PATH");
	strlist_ref(&args, d->arena, row->pkgconf);
	strlist_ref(&args, d->arena, dirs ? dirs : "");
	if (preflight_ask(d, "PKG_CONFIG_PATH=\"$2\" exec pkg-config --modversion \"$1\"", &args, &module, e) < 0 ||
	    (module.ok && preflight_ask(d, link, &args, &linked, e) < 0))
		return -1;
	if (!module.ok) {
		preflight_fail(d, ERR_SYSTEM, "blas", "pkg-config does not find '%s' in the root '%s'", row->pkgconf,
			       d->q->root->dir);
		fix_blas(d, row);
	} else if (!linked.ok) {
		preflight_fail(d, ERR_SYSTEM, "blas", "%s is there, but a program does not link with it: %s",
			       row->pkgconf, linked.why);
		fix_blas(d, row);
	} else {
		preflight_ok(d, "blas", "%s %.*s, and a program links with it", row->pkgconf,
			     (int)strcspn(module.text, "\n"), module.text);
	}
	return 0;
}

int preflight_compiler(struct preflight *d, struct err *e)
{
	return check_flags(d, e) < 0 ? -1 : check_blas(d, e);
}
