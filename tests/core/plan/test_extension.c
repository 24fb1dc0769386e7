/* An extension is one more package of its torch's release. */
#include "support.h"

#include "plan_fixture.h"

static struct package_row row_of(void)
{
	static const char *const requires[] = {"setuptools"};

	return (struct package_row){.name = "tiny_ext",
				    .version = "1.2",
				    .backend = TABLES_EXTENSION_BACKEND,
				    .python_requires = (const char **)(uintptr_t) requires,
				    .python_requires_count = 1,
				    .series = "",
				    .requirements = "",
				    .tried_with = "",
				    .cudnn = "",
				    .note = "",
				    .torch = "",
				    .python = ""};
}

static int resolve_with(struct fixture *f, const struct package_row *row)
{
	f->v.package = "tiny_ext";
	return plan_resolve(tables_extend(&f->s.t, row, 1, &f->a), &f->q, &f->a, &f->p, &f->e);
}

static void it_is_planned_as_a_package_of_the_release(void **state)
{
	struct fixture *f = *state;
	const struct package_row row = row_of();

	f->q.torch = "sha256:00";
	f->q.torch_version = "2.8.0+cu128";
	assert_ok(resolve_with(f, &row), &f->e);
	const struct plan *p = f->p;
	assert_string_equal(p->variant, "tiny_ext-python313-cuda12_8-sm90-avx512");
	assert_string_equal(p->distribution, "tiny_ext");
	assert_string_equal(plan_full_version(p, &f->a), "1.2+cu128.sm90.avx512.torch280cu128");
	assert_string_equal(settings_value(&p->env, "TORCH_CUDA_ARCH_LIST"), "9.0");
	assert_string_equal(settings_value(&p->env, "FORCE_CUDA"), "1");
	assert_string_equal(settings_value(&p->env, "NVCC_THREADS"), "1");
	assert_string_equal(settings_value(&p->env, "CFLAGS"), "-mavx512f -mfma");
	/* What torchvision's setup.py reads may mean another thing to this one. */
	assert_null(settings_get(&p->env, "BUILD_VERSION"));
	assert_null(settings_get(&p->env, "CMAKE_TOOLCHAIN_FILE"));
	assert_int_equal(p->cmake.count, 0);
	assert_string_equal(p->torch_version, "2.8.0+cu128");
}

static void for_the_cpu_it_is_told_so(void **state)
{
	struct fixture *f = *state;
	const struct package_row row = row_of();

	use_cpu(f);
	assert_ok(resolve_with(f, &row), &f->e);
	assert_string_equal(settings_value(&f->p->env, "FORCE_CUDA"), "0");
	assert_null(settings_get(&f->p->env, "TORCH_CUDA_ARCH_LIST"));
	assert_string_equal(f->p->local_label, "cpu.avx512.torch280");
}

static void its_author_knows_its_variables(void **state)
{
	struct fixture *f = *state;
	const struct package_row row = row_of();

	kvlist_set(&f->q.options.toggles, &f->a, "TINY_FAST", "1 2");
	assert_ok(resolve_with(f, &row), &f->e);
	assert_string_equal(settings_value(&f->p->env, "TINY_FAST"), "1 2");
	kvlist_set(&f->q.options.toggles, &f->a, "CFLAGS", "-O0");
	assert_err(resolve_with(f, &row), &f->e, ERR_CONFIG, "'CFLAGS' cannot be overridden");
}

static void another_source_or_torch_is_another_key(void **state)
{
	struct fixture *f = *state;
	struct source_row s = {.name = "tiny.tar", .sha256 = "aa", .unproven = "", .into = ""};
	struct package_row row = row_of();
	char first[65], second[65];

	row.sources = &s;
	row.sources_count = 1;
	assert_ok(resolve_with(f, &row), &f->e);
	memcpy(first, f->p->compile_key, sizeof(first));
	s.sha256 = "bb";
	assert_ok(resolve_with(f, &row), &f->e);
	memcpy(second, f->p->compile_key, sizeof(second));
	assert_string_not_equal(first, second);
	f->q.torch = "sha256:11";
	assert_ok(resolve_with(f, &row), &f->e);
	assert_string_not_equal(second, f->p->compile_key);
}

static void what_it_says_of_itself_is_held(void **state)
{
	struct fixture *f = *state;
	struct package_row row = row_of();

	row.torch = ">=2.9";
	assert_err(resolve_with(f, &row), &f->e, ERR_POLICY,
		   "tiny_ext 1.2 requires torch>=2.9, not torch 2.8.0");
	f->q.torch_version = "2.9.1+cu128";
	assert_ok(resolve_with(f, &row), &f->e);
	row = row_of();
	row.python = ">=3.14";
	assert_err(resolve_with(f, &row), &f->e, ERR_POLICY,
		   "tiny_ext 1.2 requires Python >=3.14, not 3.13");
	row = row_of();
	row.cuda_only = true;
	assert_ok(resolve_with(f, &row), &f->e);
	use_cpu(f);
	assert_err(resolve_with(f, &row), &f->e, ERR_POLICY,
		   "has GPU code alone, and profile 'cpu-avx512' has no CUDA");
	assert_contains(f->e.hint, "sm90-avx2");
}

static void torchs_builder_must_know_the_target(void **state)
{
	struct fixture *f = *state;
	const struct package_row row = row_of();

	f->s.gpus[2].no_extensions = true;
	assert_err(
		resolve_with(f, &row), &f->e, ERR_POLICY,
		"tiny_ext cannot be built for 'sm90': torch's extension builder does not know 9.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_planned_as_a_package_of_the_release),
		TEST(for_the_cpu_it_is_told_so),
		TEST(its_author_knows_its_variables),
		TEST(another_source_or_torch_is_another_key),
		TEST(what_it_says_of_itself_is_held),
		TEST(torchs_builder_must_know_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
