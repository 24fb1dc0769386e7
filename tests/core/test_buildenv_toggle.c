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
	kvlist_set(&f->toggles, &f->a, "USE_NNPACK", "OFF");
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
	kvlist_set(&f->toggles, &f->a, "USE_NNPACK", "OFF");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG, "'USE_FBGEMM=ON' needs USE_NNPACK, which is OFF");
	assert_contains(f->e.msg, "my.yaml:7");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_needs_a_toggle_that_is_off_is_off),
		TEST(what_needs_a_toggle_that_is_on_stays),
		TEST(asking_for_one_without_what_it_needs_is_refused),
	};
	return cmocka_run_group_tests_name("buildenv_toggle", tests, NULL, NULL);
}
