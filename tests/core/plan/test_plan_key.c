#include "support.h"

#include "base/path.h"
#include "base/sys/digest.h"
#include "core/root/toolkit.h"
#include "plan_fixture.h"

static void keys_are_digests_of_their_texts(void **state)
{
	struct fixture *f = *state;
	const struct plan *p = resolve(f);
	char digest[65];

	digest_data(p->compile_text, strlen(p->compile_text), digest);
	assert_string_equal(p->compile_key, digest);
	digest_data(p->output_text, strlen(p->output_text), digest);
	assert_string_equal(p->output_key, digest);
	assert_contains(p->output_text, p->compile_key);
	assert_contains(p->compile_text, "toolchain: not probed\n");
	assert_contains(p->compile_text, "source 01: " SHA_A " into ''\n");
}

static void key_texts_are_sorted_lines(void **state)
{
	struct fixture *f = *state;
	const char *texts[] = {resolve(f)->compile_text, f->p->output_text};

	for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
		struct strlist lines = {0};
		strlist_split(&lines, &f->a, texts[k], "\n");
		assert_true(lines.count > 5);
		for (size_t i = 0; i < lines.count; i++) {
			assert_non_null(strstr(lines.items[i], ": "));
			if (i)
				assert_true(strcmp(lines.items[i - 1], lines.items[i]) <= 0);
		}
	}
}

static void the_same_request_has_the_same_keys(void **state)
{
	struct fixture *f = *state;
	const struct plan *first = resolve(f);
	const struct plan *again = resolve(f);

	assert_string_equal(first->compile_key, again->compile_key);
	assert_string_equal(first->output_key, again->output_key);
}

static void the_order_of_inputs_does_not_matter(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->q.options.toggles, &f->a, "USE_MPI", "ON");
	kvlist_set(&f->q.options.toggles, &f->a, "USE_NNPACK", "OFF");
	const struct plan *first = resolve(f);
	f->q.options.toggles.count = 0;
	kvlist_set(&f->q.options.toggles, &f->a, "USE_NNPACK", "0");
	kvlist_set(&f->q.options.toggles, &f->a, "USE_MPI", "true");
	struct toggle_row row = f->s.toggles[0];
	f->s.toggles[0] = f->s.toggles[5];
	f->s.toggles[5] = row;
	assert_string_equal(resolve(f)->compile_key, first->compile_key);
}

static void where_a_value_comes_from_is_not_in_the_keys(void **state)
{
	struct fixture *f = *state;
	const struct plan *first = resolve(f);

	for (unsigned i = 0; i < f->s.t.toggles_count; i++) {
		f->s.toggles[i].line += 100;
		f->s.toggles[i].why = "for another reason";
	}

	kvlist_set(&f->q.options.toggles, &f->a, "USE_CUDA", "ON");
	f->v.profile.name = "a-name-of-the-users";
	f->s.sources[0].name = "renamed.tar.gz";
	assert_string_equal(resolve(f)->compile_key, first->compile_key);
}

/* Each change below is one input; the compile key must differ from the one before it. */
static void change_python(struct fixture *f)
{
	f->v.python = "3.12";
}

static void change_toolkit(struct fixture *f)
{
	f->v.cuda = "12.9";
}

static void change_target(struct fixture *f)
{
	use_gpu(f, 1, "");
}

static void change_suffix(struct fixture *f)
{
	use_gpu(f, 2, "a");
}

static void change_ptx(struct fixture *f)
{
	f->targets[0].ptx = true;
}

static void change_isa(struct fixture *f)
{
	f->v.profile.isa = &f->s.isas[1];
}

static void change_blas(struct fixture *f)
{
	f->q.options.blas = "mkl";
}

static void change_toggle(struct fixture *f)
{
	kvlist_set(&f->q.options.toggles, &f->a, "USE_MPI", "ON");
}

static void change_cache_entry(struct fixture *f)
{
	kvlist_set(&f->q.options.toggles, &f->a, "CXX_AVX2_FOUND", "OFF");
}

static void change_cflags(struct fixture *f)
{
	strlist_add(&f->v.profile.extra_cflags, &f->a, "-O3");
}

static void change_package(struct fixture *f)
{
	f->v.package = "torchvision";
}

static void change_release(struct fixture *f)
{
	f->q.release = "2.9.1";
}

static void change_sandbox(struct fixture *f)
{
	f->q.sandbox = SANDBOX_NONE;
}

static void change_paths(struct fixture *f)
{
	f->q.elsewhere = true;
}

static void change_source(struct fixture *f)
{
	f->s.sources[0].sha256 = SHA_B;
}

static void change_place_of_source(struct fixture *f)
{
	f->s.sources[0].into = "third_party";
}

static void change_backend(struct fixture *f)
{
	f->s.packages[0].backend = "setup-py-cmake-env";
}

static void change_epoch(struct fixture *f)
{
	f->s.releases[0].source_date_epoch++;
}

static void change_series(struct fixture *f)
{
	f->s.packages[0].series = "debian/patches/series";
}

static void change_skipped(struct fixture *f)
{
	static const char *skip[] = {"x.patch"};
	f->s.packages[0].skip_patches = skip;
	f->s.packages[0].skip_patches_count = 1;
}

static void change_prepare(struct fixture *f)
{
	static const char *argv[] = {"true"};
	static struct command_row command = {
		.dir = "", .argv = argv, .argv_count = 1, .why = "for the test"};

	f->s.packages[0].prepare = &command;
	f->s.packages[0].prepare_count = 1;
}

static void change_toolchain(struct fixture *f)
{
	static const struct toolchain tc = {.text = "gcc: 14.2.0\nninja: 1.12\n",
					    .fingerprint = SHA_A};
	f->q.toolchain = &tc;
}

static void change_root(struct fixture *f)
{
	static const struct toolchain tc = {.text = "gcc: 14.2.0\nninja: 1.12\n",
					    .fingerprint = SHA_B};
	f->q.toolchain = &tc;
}

static void change_patches(struct fixture *f)
{
	test_dir();
	test_write(test_path("patches/pytorch/2.8.0/series"), "a.patch\n");
	test_write(test_path("patches/pytorch/2.8.0/a.patch"), "a");
	f->q.patches_dir = arena_strdup(&f->a, test_path("patches"));
}

static void change_requirements(struct fixture *f)
{
	test_dir();
	test_write(test_path("requirements/lock.txt"), "numpy==2.0 --hash=sha256:0\n");
	f->s.t.dir = arena_strdup(&f->a, test_path("%s", "."));
	f->s.packages[0].requirements = "lock.txt";
}

static const struct {
	const char *what;
	void (*change)(struct fixture *);
} changes[] = {
	{"python", change_python},
	{"toolkit", change_toolkit},
	{"target", change_target},
	{"suffix", change_suffix},
	{"ptx", change_ptx},
	{"isa", change_isa},
	{"blas", change_blas},
	{"toggle", change_toggle},
	{"cache entry", change_cache_entry},
	{"cflags", change_cflags},
	{"package", change_package},
	{"release", change_release},
	{"sandbox", change_sandbox},
	{"source", change_source},
	{"place of source", change_place_of_source},
	{"backend", change_backend},
	{"epoch", change_epoch},
	{"series", change_series},
	{"skipped", change_skipped},
	{"prepare", change_prepare},
	{"toolchain", change_toolchain},
	{"paths", change_paths},
	{"root", change_root},
	{"patches", change_patches},
	{"requirements", change_requirements},
};

static void each_input_changes_the_compile_key(void **state)
{
	struct fixture *base = *state;
	struct strlist seen = {0};

	strlist_ref(&seen, &base->a, resolve(base)->compile_key);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		void *fresh = NULL;
		setup(&fresh);
		struct fixture *f = fresh;
		changes[i].change(f);
		const struct plan *p = resolve(f);
		if (strlist_contains(&seen, p->compile_key))
			fail_msg("a change of %s does not change the compile key", changes[i].what);
		strlist_add(&seen, &base->a, p->compile_key);
		teardown(&fresh);
	}
}

/* MKL in a directory of the root that no package has. */
static void the_files_of_a_blas_count(void **state)
{
	static const char *files[] = {"lib/own.a"};
	static struct table_setting place = {SETTING("OWN_DIR", "/own", "it is there", 12),
					     .cache = true};
	struct fixture *f = *state;

	test_dir();
	struct root root = {.dir = arena_strdup(&f->a, test_path("root"))};
	struct toolchain tc = {.root = &root, .text = "gcc: 14.2.0\n", .fingerprint = SHA_A};
	const char *file = path_join(&f->a, root.dir, "own/lib/own.a");
	f->s.blas[1].place = "OWN_DIR";
	f->s.blas[1].files = files;
	f->s.blas[1].files_count = 1;
	f->s.blas[1].settings = &place;
	f->s.blas[1].settings_count = 1;
	f->q.options.blas = "mkl";
	f->q.toolchain = &tc;
	const struct plan *none = resolve(f);
	assert_contains(none->compile_text, "blas file: lib/own.a: absent\n");
	test_write(file, "one");
	const struct plan *one = resolve(f);
	assert_contains(one->compile_text, "blas file: lib/own.a: 3 bytes, ");
	assert_string_equal(resolve(f)->compile_key, one->compile_key);
	test_write(file, "two");
	const struct plan *two = resolve(f);
	assert_string_not_equal(one->compile_key, none->compile_key);
	assert_string_not_equal(one->compile_key, two->compile_key);
	f->q.options.blas = "openblas";
	assert_not_contains(resolve(f)->compile_text, "blas file");
}

static void the_torch_built_against_changes_the_compile_key(void **state)
{
	struct fixture *f = *state;

	f->v.package = "torchvision";
	const struct plan *unknown = resolve(f);
	f->q.torch = "sha256:" SHA_A;
	const struct plan *one = resolve(f);
	f->q.torch = "sha256:" SHA_B;
	const struct plan *other = resolve(f);
	assert_string_not_equal(unknown->compile_key, one->compile_key);
	assert_string_not_equal(one->compile_key, other->compile_key);
	assert_contains(other->compile_text, "torch: sha256:" SHA_B);
}

static void metadata_changes_only_the_output_key(void **state)
{
	struct fixture *f = *state;
	const struct plan *first = resolve(f);

	f->q.options.metadata_rev = 2;
	const struct plan *second = resolve(f);
	assert_int_equal(second->metadata_rev, 2);
	assert_string_equal(first->compile_key, second->compile_key);
	assert_string_not_equal(first->output_key, second->output_key);
	/* what both can be repacked from */
	assert_string_equal(first->pack_key, second->pack_key);
	assert_string_not_equal(first->pack_key, first->output_key);
	static const char *requires[] = {"numpy"};
	f->s.packages[0].install_requires = requires;
	f->s.packages[0].install_requires_count = 1;
	const struct plan *third = resolve(f);
	assert_string_equal(first->compile_key, third->compile_key);
	assert_string_not_equal(second->output_key, third->output_key);
	assert_string_not_equal(second->pack_key, third->pack_key);
}

static void the_platform_tag_changes_only_the_output_key(void **state)
{
	struct fixture *f = *state;
	const struct plan *first = resolve(f);

	assert_string_equal(first->platform_tag, "manylinux");
	f->q.options.platform_tag = "linux";
	const struct plan *second = resolve(f);
	assert_string_equal(first->compile_key, second->compile_key);
	assert_string_not_equal(first->output_key, second->output_key);
	assert_string_not_equal(first->pack_key, second->pack_key);
}

/* What goes into the wheel does not tell who watched over its build, but where it lay if
 * that was elsewhere; of who may have the wheel of the store it is the other way round. */
static void the_sandbox_is_not_in_the_key_of_the_bytes(void **state)
{
	struct fixture *f = *state;
	const struct plan *first = resolve(f);

	f->q.without_protections = 1;
	const struct plan *open = resolve(f);
	f->q.without_protections = 0;
	f->q.sandbox = SANDBOX_NONE;
	const struct plan *plain = resolve(f);
	f->q.elsewhere = true;
	const struct plan *elsewhere = resolve(f);
	assert_string_equal(plain->pack_key, first->pack_key);
	assert_string_equal(open->pack_key, first->pack_key);
	assert_string_not_equal(elsewhere->pack_key, first->pack_key);
	const struct plan *all[] = {first, open, plain, elsewhere};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		for (size_t k = 0; k < i; k++) {
			assert_string_not_equal(all[i]->compile_key, all[k]->compile_key);
			assert_string_not_equal(all[i]->output_key, all[k]->output_key);
		}
	}

	assert_contains(elsewhere->compile_text, "elsewhere: ");
	assert_not_contains(plain->compile_text, "elsewhere: ");
}

static void a_line_break_in_a_value_cannot_forge_an_input(void **state)
{
	struct fixture *f = *state;

	strlist_add(&f->v.profile.extra_cflags, &f->a, "-DX\nzz: forged\\n");
	assert_not_contains(resolve(f)->compile_text, "\nzz: forged");
	assert_contains(f->p->compile_text, "-DX\\nzz: forged\\\\n");
}

static void locked_requirements_that_are_missing_are_an_error(void **state)
{
	struct fixture *f = *state;

	f->s.t.dir = test_dir();
	f->s.packages[0].requirements = "gone.txt";
	refuse(f, ERR_CONFIG, "gone.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_are_digests_of_their_texts),
		TEST(key_texts_are_sorted_lines),
		TEST(the_same_request_has_the_same_keys),
		TEST(the_order_of_inputs_does_not_matter),
		TEST(where_a_value_comes_from_is_not_in_the_keys),
		TEST(each_input_changes_the_compile_key),
		TEST(the_files_of_a_blas_count),
		TEST(the_torch_built_against_changes_the_compile_key),
		TEST(metadata_changes_only_the_output_key),
		TEST(the_platform_tag_changes_only_the_output_key),
		TEST(the_sandbox_is_not_in_the_key_of_the_bytes),
		TEST(a_line_break_in_a_value_cannot_forge_an_input),
		TEST(locked_requirements_that_are_missing_are_an_error),
	};

	return cmocka_run_group_tests_name("plan_key", tests, NULL, NULL);
}
