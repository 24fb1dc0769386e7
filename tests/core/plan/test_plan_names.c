/* One file name has one content: of all that `plan` accepts with the shipped tables, no two
 * plans with different output keys have one wheel name. With PTBUILD_ALL_NAMES=1 every GPU
 * target with every instruction set, which takes minutes. */
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/fs.h"
#include "core/plan/plan.h"
#include "plan_fixture.h"

struct name {
	const char *wheel, *key, *what;
};

static struct name *names;
static size_t count, cap;

/* The torch that a package is built against. */
struct torch_case {
	/* NULL: ptbuild's own of the variant; "": the version has none */
	const char *identity, *label;
};

static const struct torch_case torches[] = {
	{NULL, NULL},       {"sha256:00", ""}, {"sha256:11", "cu128"}, {"sha256:22", "cu128.sm90"},
	{"root", "debian"},
};

static void add_plan(const struct plan *p, const char *what)
{
	char python[8];

	snprintf(python, sizeof(python), "cp3%s", p->python + 2);
	names = arena_room(&shared, names, count, &cap, 4096, sizeof(*names));
	names[count++] =
		(struct name){arena_printf(&shared, "%s-%s-%s-%s", p->distribution,
					   plan_full_version(p, &shared), python, p->platform),
			      arena_strdup(&shared, p->output_key),
			      arena_printf(&shared, "%s: %s%s", p->release, p->variant, what)};
}

/* Whose CUDA libraries it uses changes METADATA. */
static void add_with_libraries(const struct release_row *r, const struct variant *v)
{
	static const char *const libraries[] = {"packages", "system"};

	for (size_t i = 0; v->cuda && i < ARRAY_LEN(libraries); i++) {
		AUTO_ARENA struct arena a = {0};
		const struct plan *p = NULL;
		const struct plan_request q = {.variant = v,
					       .release = r->name,
					       .options = {.cuda_libraries = libraries[i]}};
		if (plan_resolve(tables, &q, &a, &p, ERR_IGNORED) == 0)
			add_plan(p, arena_printf(&a, " with CUDA of %s", libraries[i]));
	}
}

static void add_variant(const struct release_row *r, const struct variant *v)
{
	for (size_t i = 0; i < ARRAY_LEN(torches) && (i == 0 || !package_is_torch(v->package));
	     i++) {
		AUTO_ARENA struct arena a = {0};
		const struct torch_case *torch = &torches[i];
		const struct plan *p = NULL;
		struct plan_request q = {.variant = v, .release = r->name};
		if (torch->identity) {
			q.torch = torch->identity;
			q.torch_version = arena_printf(&a, "%s%s%s", r->base,
						       *torch->label ? "+" : "", torch->label);
		}

		if (plan_resolve(tables, &q, &a, &p, ERR_IGNORED) == 0)
			add_plan(p, torch->identity
					    ? arena_printf(&a, " with torch %s", q.torch_version)
					    : "");
	}

	add_with_libraries(r, v);
}

static void add_profile(const struct release_row *r, struct variant *v, const char *profile)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};

	assert_ok(profile_load(tables, profile, &a, &v->profile, &e), &e);
	if (v->profile.gpu != GPU_CUDA) {
		add_variant(r, v);
		return;
	}

	for (unsigned i = 0; i < r->toolkits_count; i++) {
		v->cuda = r->toolkits[i];
		add_variant(r, v);
	}

	v->cuda = NULL;
}

/* Every instruction set without a GPU, every GPU with one
 * instruction set of each platform, or with all of them. */
static void list_profiles(struct arena *a, struct strlist *ret)
{
	static const char *const few[] = {"avx2", "armv8_2"};
	const bool all = getenv("PTBUILD_ALL_NAMES") != NULL;
	struct strlist examples = {0};
	struct err e = {0};

	for (unsigned i = 0; i < tables->isas_count; i++) {
		const char *isa = tables->isas[i].name;
		strlist_addf(ret, a, "cpu-%s", isa);
		for (unsigned g = 0; g < tables->gpus_count; g++) {
			const struct gpu_row *row = &tables->gpus[g];
			if (!all && !strings_contain(few, ARRAY_LEN(few), isa))
				continue;
			strlist_addf(ret, a, "sm%s-%s", row->sm, isa);
			for (unsigned s = 0; s < row->suffixes_count; s++)
				strlist_addf(ret, a, "sm%s%s-%s", row->sm, row->suffixes[s].suffix,
					     isa);
		}
	}

	for (size_t i = 0; i < ARRAY_LEN(few); i++)
		strlist_addf(ret, a, "sm90+ptx-%s", few[i]);
	strlist_ref(ret, a, "sm80+sm90-avx2");
	strlist_ref(ret, a, "darwin-mps");
	assert_ok(fs_list(TRUSTED, PROFILES_DIR "/examples", a, &examples, &e), &e);
	for (size_t i = 0; i < examples.count; i++)
		strlist_ref(ret, a,
			    arena_strndup(a, examples.items[i], strcspn(examples.items[i], ".")));
}

static int by_wheel(const void *x, const void *y)
{
	const struct name *left = x, *right = y;
	const int order = strcmp(left->wheel, right->wheel);
	return order ? order : strcmp(left->key, right->key);
}

static size_t count_shared(void)
{
	size_t wrong = 0;

	qsort(names, count, sizeof(*names), by_wheel);
	for (size_t i = 1; i < count; i++) {
		if (strcmp(names[i - 1].wheel, names[i].wheel) != 0 ||
		    strcmp(names[i - 1].key, names[i].key) == 0)
			continue;
		if (wrong++ < 10)
			print_error("%s: of '%s' and of '%s'\n", names[i].wheel, names[i - 1].what,
				    names[i].what);
	}

	return wrong;
}

static void test_wheel_name_of_two_plans_differs(void **state)
{
	(void)state;
	struct strlist profiles = {0};
	list_profiles(&shared, &profiles);
	for (unsigned i = 0; i < tables->releases_count; i++) {
		const struct release_row *r = &tables->releases[i];
		for (size_t k = 0; k < TABLES_PACKAGES; k++) {
			struct variant v = {.package = tables_packages[k]};
			for (unsigned n = 0; n < r->pythons_count; n++) {
				v.python = r->pythons[n];
				add_profile(r, &v, "cpu-avx2");
				add_profile(r, &v, "sm90-avx2");
			}

			v.python = "3.13";
			for (size_t n = 0; n < profiles.count; n++)
				add_profile(r, &v, profiles.items[n]);
		}
	}

	print_message("           %zu plans\n", count);
	assert_true(count > 10000);
	const size_t wrong = count_shared();
	if (wrong)
		fail_msg("%zu of %zu plans have the wheel name of another one", wrong, count);
}

/* The release does not show in the version of an extension. */
static void test_wheel_name_of_extension_says_its_torch(void **state)
{
	(void)state;
	const struct tables *shipped = tables;
	count = 0;
	for (unsigned x = 0; x < shipped->torch_extensions_count; x++) {
		const struct package_row *row = &shipped->torch_extensions[x];
		tables = tables_extend(shipped, row, 1, &shared);
		for (unsigned i = 0; i < tables->releases_count; i++) {
			struct variant v = {.package = row->name, .python = "3.12"};
			add_profile(&tables->releases[i], &v, "cpu-avx2");
			add_profile(&tables->releases[i], &v, "sm90-avx2");
		}
	}

	tables = shipped;
	assert_true(count > 100);
	assert_int_equal(count_shared(), 0);
}

/* One name, one content: the label says which torch, unless the versions do. */
static void test_label_says_torch_that_version_does_not(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *package, *release, *torch, *version, *label;
	} cases[] = {
		{"torchaudio", "2.8.0", NULL, NULL, "cu128.sm90.avx512"},
		{"torchaudio", "2.9.1", NULL, NULL, "cu128.sm90.avx512.torch291"},
		{"torchaudio", "2.8.0", "sha256:00", "2.8.0", "cu128.sm90.avx512.torch280plain"},
		{"torchaudio", "2.8.0", "sha256:00", "2.8.0+cu128",
		 "cu128.sm90.avx512.torch280cu128"},
		{"torchaudio", "2.8.0", "sha256:00", "2.8.0+cu128.sm90.avx512",
		 "cu128.sm90.avx512"},
		{"torchvision", "2.9.1", NULL, NULL, "cu128.sm90.avx512"},
		{"pytorch", "2.9.1", NULL, NULL, "cu128.sm90.avx512"},
	};

	f->s.releases[1].torchaudio = f->s.releases[0].torchaudio;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		f->v.package = cases[i].package;
		f->q.release = cases[i].release;
		f->q.torch = cases[i].torch;
		f->q.torch_version = cases[i].version;
		assert_string_equal(resolve(f)->local_label, cases[i].label);
	}
}

static void test_label_of_release_is_that_of_its_torch(void **state)
{
	struct fixture *f = *state;

	f->s.releases[0].label = "distro";
	f->v.package = "torchvision";
	const struct plan *p = resolve(f);
	assert_string_equal(p->local_label, "cu128.sm90.avx512.distro");
	assert_string_equal(p->torch_version, "2.8.0+cu128.sm90.avx512.distro");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wheel_name_of_two_plans_differs),
		cmocka_unit_test(test_wheel_name_of_extension_says_its_torch),
		TEST(test_label_says_torch_that_version_does_not),
		TEST(test_label_of_release_is_that_of_its_torch),
	};

	return cmocka_run_group_tests_name("plan_names", tests, load, unload);
}
