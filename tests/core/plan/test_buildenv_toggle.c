/* Toggles that need other toggles. */
#include "support.h"

#include "buildenv_fixture.h"

/* USE_MPI needs USE_FBGEMM, USE_FBGEMM needs USE_NNPACK. */
static void use_needs(struct fixture *f)
{
	f->s.toggles[2].needs = "USE_NNPACK";
	f->s.toggles[4].needs = "USE_FBGEMM";
	f->s.toggles[4].cpu = "ON";
}

static void what_needs_a_toggle_that_is_off_is_off(void **state)
{
	struct fixture *f = *state;

	use_needs(f);
	kvlist_set(&f->options.toggles, &f->a, "USE_NNPACK", "OFF");
	resolve(f);
	want_env(f, "USE_FBGEMM", "OFF");
	want_env(f, "USE_MPI", "OFF");
	const struct setting *s = settings_get(&f->env.env, "USE_FBGEMM");
	assert_string_equal(s->file, "toggles.yaml");
	assert_int_equal(s->line, 3);
	assert_contains(s->why, "needs USE_NNPACK, which is OFF (command line)");
}

static void what_needs_a_toggle_that_is_on_stays(void **state)
{
	struct fixture *f = *state;

	use_needs(f);
	resolve(f);
	want_env(f, "USE_FBGEMM", "ON");
	want_env(f, "USE_MPI", "ON");
}

static void asking_for_one_without_what_it_needs_is_refused(void **state)
{
	struct fixture *f = *state;

	use_needs(f);
	use_user_toggle(f, "USE_FBGEMM", "ON");
	kvlist_set(&f->options.toggles, &f->a, "USE_NNPACK", "OFF");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
		   "'USE_FBGEMM=ON' needs USE_NNPACK, which is OFF");
	assert_contains(f->e.msg, "my.yaml:7");
}

static void a_gpu_may_imply_a_toggle(void **state)
{
	struct fixture *f = *state;
	struct table_setting s = {SETTING("USE_MPI", "ON", "for the test", 33)};

	use_cuda(f, 2, "", false);
	f->s.gpus[2].settings = &s;
	f->s.gpus[2].settings_count = 1;
	resolve(f);
	want_env(f, "USE_MPI", "ON");
	const struct setting *got = settings_get(&f->env.env, "USE_MPI");
	assert_string_equal(got->file, "gpu.yaml");
	assert_int_equal(got->line, 33);
}

/* USE_GENAI is there from 2.9 on; the request is for 2.8.0. */
static void an_implied_toggle_of_another_release_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct table_setting s = {SETTING("USE_GENAI", "ON", "for the test", 33)};

	use_cuda(f, 2, "", false);
	f->s.gpus[2].settings = &s;
	f->s.gpus[2].settings_count = 1;
	resolve(f);
	assert_null(settings_get(&f->env.env, "USE_GENAI"));
}

static void a_setting_begins_with_its_release(void **state)
{
	struct fixture *f = *state;

	f->profile.isa = &f->s.isas[0];
	f->s.avx[0].since = "2.9";
	resolve(f);
	want_env(f, "USE_FBGEMM", "ON");
	f->s.avx[0].since = "2.8";
	resolve(f);
	want_env(f, "USE_FBGEMM", "OFF");
}

/* USE_NNPACK as static MKL has it: the BLAS switches it on over the table of toggles. */
static void use_blas_that_needs_nnpack(struct fixture *f)
{
	static struct table_setting fixed = {SETTING("USE_NNPACK", "ON", "it is linked in", 12),
					     .fixed = true};

	f->s.blas[1].settings = &fixed;
	f->s.blas[1].settings_count = 1;
	f->q.blas = &f->s.blas[1];
}

static void assert_refused(struct fixture *f, const char *says)
{
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG, says);
}

static void a_blas_settles_a_toggle(void **state)
{
	struct fixture *f = *state;

	use_blas_that_needs_nnpack(f);
	kvlist_set(&f->options.toggles, &f->a, "USE_NNPACK", "1");
	resolve(f);
	want_env(f, "USE_NNPACK", "ON");
	assert_true(settings_get(&f->env.env, "USE_NNPACK")->fixed);
}

static void what_a_blas_needs_cannot_be_set_otherwise(void **state)
{
	struct fixture *f = *state;

	use_blas_that_needs_nnpack(f);
	kvlist_set(&f->options.toggles, &f->a, "USE_NNPACK", "OFF");
	assert_refused(f, "'USE_NNPACK=OFF' does not go with this plan, which needs ON");
	assert_contains(f->e.hint, "blas.yaml:12 (implied by mkl): it is linked in");
}

/* Also after a profile that asks for the value that it has. */
static void not_even_after_one_that_agrees(void **state)
{
	struct fixture *f = *state;

	use_blas_that_needs_nnpack(f);
	use_user_toggle(f, "USE_NNPACK", "ON");
	strlist_ref(&f->options.without, &f->a, "nnpack");
	assert_refused(f, "'USE_NNPACK=OFF' does not go with this plan");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_needs_a_toggle_that_is_off_is_off),
		TEST(what_needs_a_toggle_that_is_on_stays),
		TEST(a_gpu_may_imply_a_toggle),
		TEST(an_implied_toggle_of_another_release_is_left_out),
		TEST(a_setting_begins_with_its_release),
		TEST(asking_for_one_without_what_it_needs_is_refused),
		TEST(a_blas_settles_a_toggle),
		TEST(what_a_blas_needs_cannot_be_set_otherwise),
		TEST(not_even_after_one_that_agrees),
	};

	return cmocka_run_group_tests_name("buildenv_toggle", tests, NULL, NULL);
}
