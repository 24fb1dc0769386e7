/* The root's compiler on the profile's flags, and its BLAS. */
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/world/choose.h"
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

/* The world of this build that has the BLAS. */
static const char *blas_world(const struct preflight *d)
{
	const struct plan *p = d->q->plan;
	const struct world_wanted want = {p->platform, p->cuda, p->python, p->blas_row->world};
	struct world_choice w = {0};
	struct err none = {0};
	if (world_choose(d->q->tables, d->q->release, &want, d->arena, &w, &none) < 0 || !w.name)
		return arena_printf(d->arena, "WORLD+%s", p->blas_row->world);
	return w.name;
}

/* Where a BLAS that the root's packages do not have comes from. */
static void fix_blas(struct preflight *d, const struct blas_row *row)
{
	if (!*row->world) {
		preflight_install(d, row->debian, false);
		return;
	}
	const char *world = blas_world(d), *place = settings_value(&d->q->plan->cache, row->place);
	if (root_world_fix(d->q->root, d->arena)) /* the store's own, so what was set leads elsewhere */
		preflight_fix(d, "the world has it: leave out what --set or the profile says of %s and PKG_CONFIG_PATH",
			      row->place);
	else
		preflight_fix(d,
			      "the world '%s' has it: leave --root and --sandbox none out, or make a root of your own "
			      "with 'ptbuild world make %s --copy DIR'; in another root it must be in '%s'",
			      world, world, place ? place : "");
}

/* The files of a BLAS in a place of its own, and its licence, which goes into the wheel. False: one is missing. */
static bool check_blas_files(struct preflight *d, const struct blas_row *row)
{
	const char *place = *row->place ? settings_value(&d->q->plan->cache, row->place) : NULL;
	const char *texts = arena_printf(d->arena, "/usr/share/doc/%s", row->linked);
	for (unsigned i = 0; place && i < row->files_count; i++) {
		const char *path = path_join(d->arena, place, row->files[i]);
		if (*path == '/' && root_resolve(d->q->root, path, d->arena))
			continue;
		preflight_fail(d, ERR_SYSTEM, "blas", "'%s' is not in the root '%s', where %s says that %s is", path,
			       d->q->root->dir, row->place, row->name);
		fix_blas(d, row);
		return false;
	}
	struct strlist found = {0};
	struct err why = {0};
	if (!*row->linked || (root_files(d->q->root, texts, d->arena, &found, &why) == 0 && found.count))
		return true;
	preflight_fail(d, ERR_SYSTEM, "blas",
		       "no file below '%s' in the root '%s'%s%s: the texts of the licence of %s, which must go into "
		       "the wheel",
		       texts, d->q->root->dir, *why.msg ? ": " : "", why.msg, row->name);
	fix_blas(d, row);
	return false;
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
	if (!row || !*row->pkgconf || !check_blas_files(d, row))
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
