#include "core/variant/variant.h"

#define PYTHON "-python"
#define CUDA "cuda"
#define OLD "python" /* "python313Packages.pytorch-sm90-avx512" */
#define PACKAGES "Packages."

/* The package that a word begins with, followed by "-python"; NULL if none. */
static const char *leading_package(const char *word)
{
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		size_t n = strlen(tables_packages[i]);
		if (strncmp(word, tables_packages[i], n) == 0 &&
		    strncmp(word + n, PYTHON, strlen(PYTHON)) == 0)
			return tables_packages[i];
	}

	return NULL;
}

/* The digits of "python313Packages.": their number, 0 if the word does not begin so. */
static size_t old_digits(const char *word)
{
	if (strncmp(word, OLD, strlen(OLD)) != 0)
		return 0;
	size_t n = strspn(word + strlen(OLD), "0123456789");
	return strncmp(word + strlen(OLD) + n, PACKAGES, strlen(PACKAGES)) == 0 ? n : 0;
}

bool variant_looks_like(const char *word)
{
	return leading_package(word) != NULL || old_digits(word) != 0;
}

static int refuse_package(const char *name, struct arena *a, struct err *e)
{
	const char *first = arena_strndup(a, name, strcspn(name, "-"));
	const char *near = suggest_nearest(first, tables_packages, TABLES_PACKAGES);

	if (strings_contain(tables_packages, TABLES_PACKAGES, first)) {
		err_set(e, ERR_CONFIG, "no Python in variant '%s'", name);
		return err_hint(e, "a variant is like %s-python313-cuda12_8-sm90-avx512", first);
	}

	err_set(e, ERR_CONFIG, "unknown package '%s' in variant '%s'", first, name);
	return suggest_hint(e, near, "it is one of pytorch, torchvision or torchaudio");
}

/* A variant's name that is parsed. */
struct parsing {
	const struct tables *tables;
	const char *name;
	struct arena *arena;
	struct variant v;
};

/* "313" -> "3.13", if a release builds for it. */
static int parse_python(struct parsing *x, const char *digits, struct err *e)
{
	const struct tables *t = x->tables;
	struct arena *a = x->arena;
	struct strlist known = {0};
	struct strlist spelled = {0};

	for (unsigned i = 0; i < t->releases_count; i++)
		for (unsigned k = 0; k < t->releases[i].pythons_count; k++) {
			const char *p = t->releases[i].pythons[k];
			if (strlen(digits) > 1 && p[0] == digits[0] &&
			    strcmp(p + 2, digits + 1) == 0) {
				x->v.python = p;
				return 0;
			}

			if (!strlist_contains(&known, p)) {
				strlist_ref(&known, a, p);
				strlist_addf(&spelled, a, "python%c%s", p[0], p + 2);
			}
		}
	const char *word = arena_printf(a, "python%s", digits);
	const char *near = suggest_nearest(word, spelled.items, spelled.count);
	err_set(e, ERR_CONFIG, "unknown Python '%s' in variant '%s'", word, x->name);
	/* 3.99 is not a slip for 3.9 */
	if (near && strlen(near) < strlen(word) - (strchr(word, '.') != NULL))
		near = NULL;
	return suggest_known(e, near, &spelled);
}

char *variant_toolkit_word(const char *version, struct arena *a)
{
	char *word = arena_printf(a, CUDA "%s", version);

	for (char *c = word; *c; c++)
		if (*c == '.')
			*c = '_';
	return word;
}

/* "cuda12_8" -> "12.8" */
static int parse_cuda(struct parsing *x, const char *word, struct err *e)
{
	const struct tables *t = x->tables;
	struct arena *a = x->arena;
	struct strlist known = {0};

	for (unsigned i = 0; i < t->toolkits_count; i++) {
		const char *spelled = variant_toolkit_word(t->toolkits[i].version, a);
		if (strcmp(word, spelled) == 0) {
			x->v.cuda = t->toolkits[i].version;
			return 0;
		}

		strlist_ref(&known, a, spelled);
	}

	err_set(e, ERR_CONFIG, "unknown toolkit '%s' in variant '%s'", word, x->name);
	return suggest_known(e, suggest_nearest(word, known.items, known.count), &known);
}

/* What both forms end in: "[cuda12_8-]PROFILE". */
static int parse_rest(struct parsing *x, const char *rest, bool old, struct err *e)
{
	struct variant *v = &x->v;
	struct arena *a = x->arena;
	const char *name = x->name;
	const char *dash = strchr(rest, '-');

	if (strncmp(rest, CUDA, strlen(CUDA)) == 0 && dash) {
		if (parse_cuda(x, arena_strndup(a, rest, (size_t)(dash - rest)), e) < 0)
			return -1;
		rest = dash + 1;
	}

	if (strchr(rest, '/') || path_has_suffix(rest, ".yaml")) {
		err_set(e, ERR_CONFIG, "a %s cannot be in variant '%s'",
			strchr(rest, '/') ? "path" : "file", name);
		return err_hint(e, "give the file with --profile");
	}

	if (profile_load(x->tables, rest, a, &v->profile, e) < 0)
		return err_wrap(e, "variant '%s'", name);
	if (v->profile.gpu == GPU_CUDA && !v->cuda && !old) {
		err_set(e, ERR_CONFIG, "no toolkit in variant '%s'", name);
		return err_hint(e, "write it before the GPU target: %s-python%c%s-cuda12_8-%s",
				v->package, v->python[0], v->python + 2, v->profile.name);
	}

	if (v->profile.gpu != GPU_CUDA && v->cuda) {
		err_set(e, ERR_CONFIG, "toolkit '%s' without a GPU target in variant '%s'", v->cuda,
			name);
		struct variant without = *v;
		without.cuda = NULL;
		return err_hint(e, "did you mean '%s'?", variant_name(&without, a));
	}

	return 0;
}

static int no_profile(const char *name, const char *package, struct err *e)
{
	err_set(e, ERR_CONFIG, "no profile in variant '%s'", name);
	return err_hint(
		e, "a variant is like %s-python313-cuda12_8-sm90-avx512 or %s-python313-cpu-avx2",
		package, package);
}

/* "python313Packages.pytorch-sm90-avx512", as the
 * first instructions of the recipe projects wrote it. */
static int parse_old(struct parsing *x, struct err *e)
{
	struct arena *a = x->arena;
	const char *name = x->name;
	size_t digits = old_digits(name);
	const char *package = name + strlen(OLD) + digits + strlen(PACKAGES);
	const char *word = arena_strndup(a, package, strcspn(package, "-"));
	const size_t rank = tables_package_rank(word);

	if (rank == TABLES_PACKAGES)
		return refuse_package(package, a, e);
	x->v.package = tables_packages[rank];
	if (parse_python(x, arena_strndup(a, name + strlen(OLD), digits), e) < 0)
		return -1;
	package += strlen(word);
	return *package ? parse_rest(x, package + 1, true, e) : no_profile(name, x->v.package, e);
}

static int parse_exact(struct parsing *x, struct err *e)
{
	const char *package = x->v.package = leading_package(x->name);

	if (!package)
		return refuse_package(x->name, x->arena, e);
	const char *python = x->name + strlen(package) + strlen(PYTHON);
	const char *rest = strchr(python, '-');
	if (!rest)
		return no_profile(x->name, package, e);
	if (parse_python(x, arena_strndup(x->arena, python, (size_t)(rest - python)), e) < 0)
		return -1;
	return parse_rest(x, rest + 1, false, e);
}

int variant_parse(const struct tables *t, const char *name, struct arena *a, struct variant *ret,
		  struct err *e)
{
	struct parsing x = {.tables = t, .name = name, .arena = a};

	if ((old_digits(name) ? parse_old(&x, e) : parse_exact(&x, e)) < 0)
		return -1;
	*ret = x.v;
	return 0;
}

char *variant_spell(const char *package, const char *python, const char *cuda, const char *profile,
		    struct arena *a)
{
	const char *toolkit = cuda ? arena_printf(a, "%s-", variant_toolkit_word(cuda, a)) : "";
	return arena_printf(a, "%s" PYTHON "%c%s-%s%s", package, python[0], python + 2, toolkit,
			    profile);
}

char *variant_name(const struct variant *v, struct arena *a)
{
	if (v->profile.gpu == GPU_CUDA && !v->cuda)
		return arena_printf(a, OLD "%c%s" PACKAGES "%s-%s", v->python[0], v->python + 2,
				    v->package, v->profile.name);
	return variant_spell(v->package, v->python, v->cuda, v->profile.name, a);
}
