/* Which world a build stands on. */
#include "support.h"

#include "core/tables/tables.h"
#include "core/world/world.h"

#define LINUX "x86_64-linux"

static struct arena arena;
static const struct tables *tables;

static const struct release_row *release(const char *name)
{
	const struct release_row *r = NULL;
	struct err e = {0};

	assert_ok(tables_need_release(tables, name, &r, &e), &e);
	return r;
}

static void test_chosen(void **state)
{
	static const struct {
		const char *release, *platform, *cuda, *python;
		const char *world, *says; /* world NULL: none */
	} cases[] = {
		{"2.6.0-debian", "x86_64-linux", NULL, NULL, "debian13", "3.13"},
		{"2.6.0-debian", "aarch64-linux", NULL, "3.13", "debian13", "3.13"},
		{"2.6.0-debian", "x86_64-linux", "12.4", NULL, "debian13+cuda12_4", "3.13"},
		{"2.13.0", "x86_64-linux", "13.0", NULL, "debian13_lean+cuda13_0", "3.13"},
		{"2.13.0", "x86_64-linux", NULL, "3.12", "debian13_lean+python3_12", "3.12"},
		{"2.13.0", "x86_64-linux", "13.2", "3.12", "debian13_lean+python3_12+cuda13_2",
		 "3.12"},
		{"2.9.1", "x86_64-linux", "12.8", NULL, "debian12+cuda12_8", "3.11"},
		{"2.9.1", "x86_64-linux", NULL, "3.11", "debian13_lean+python3_11", "3.11"},
		{"2.6.0", "x86_64-linux", "12.4", NULL, "debian13_lean+cuda12_4", "3.13"},
		{"2.9.1", "x86_64-linux", "12.9", "3.12", "debian12+python3_12+cuda12_9", "3.12"},
		/* the release's gcc_arm refuses Debian 13's */
		{"2.9.1", "aarch64-linux", NULL, "3.14", "debian12+python3_14", "3.14"},
		{"2.10.0", "aarch64-linux", "13.0", NULL, "debian12+cuda13_0", "3.11"},
		{"2.10.0", "x86_64-linux", "13.0", NULL, "debian13_lean+cuda13_0", "3.13"},
		{"2.9.1", "aarch64-darwin", NULL, NULL, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct world_wanted want = {cases[i].platform, cases[i].cuda, cases[i].python, ""};
		struct world_choice w = {"x", "x"};
		struct err e = {0};
		assert_ok(world_choose(&(struct world_question){tables, release(cases[i].release),
								&want, &arena},
				       &w, &e),
			  &e);
		if (!cases[i].world) {
			assert_null(w.name);
			continue;
		}

		assert_string_equal(w.name, cases[i].world);
		assert_string_equal(w.python, cases[i].says);
		want.library = "mkl2026_2";
		assert_ok(world_choose(&(struct world_question){tables, release(cases[i].release),
								&want, &arena},
				       &w, &e),
			  &e);
		assert_string_equal(w.name, arena_printf(&arena, "%s+mkl2026_2", cases[i].world));
		assert_string_equal(w.python, cases[i].says);
	}
}

static void test_parts_that_are_not_there(void **state)
{
	struct release_row r = *release("2.9.1");
	struct world_choice w = {"x", "x"};
	struct err e = {0};

	(void)state;
	assert_err(
		world_choose(&(struct world_question){tables, &r,
						      &(struct world_wanted){LINUX, .cuda = "11.8"},
						      &arena},
			     &w, &e),
		&e, ERR_POLICY, "no world of release 2.9.1 has CUDA 11.8");
	assert_contains(e.hint, "--root DIR");
	assert_err(world_choose(
			   &(struct world_question){tables, &r,
						    &(struct world_wanted){LINUX, .python = "3.7"},
						    &arena},
			   &w, &e),
		   &e, ERR_POLICY, "no world of release 2.9.1 has Python 3.7");
	assert_contains(e.hint, "leave --python out, or name python313, for Python 3.13, which "
				"'debian13_lean' has");
	assert_err(world_choose(&(struct world_question){tables, &r,
							 &(struct world_wanted){LINUX,
										.library = "blis1"},
							 &arena},
				&w, &e),
		   &e, ERR_POLICY, "no world of release 2.9.1 has the part blis1");
	/* without it the part is missing all the same */
	assert_err(
		world_choose(&(struct world_question){tables, &r,
						      &(struct world_wanted){LINUX, .python = "3.7",
									     .cuda = "11.8"},
						      &arena},
			     &w, &e),
		&e, ERR_POLICY, "has Python 3.7");
	assert_contains(e.hint, "your own root with --root DIR");
	assert_null(w.name);
	r.worlds_count = 0;
	assert_ok(world_choose(&(struct world_question){tables, &r,
							&(struct world_wanted){.platform = LINUX},
							&arena},
			       &w, &e),
		  &e);
	assert_null(w.name);
}

static int check(const char *world, const char *platform, const char *name, struct err *e)
{
	const struct world *w = NULL;
	assert_ok(world_load(PROFILES_DIR, world, platform, &arena, &w, e), e);
	return world_check_tools(w, release(name), &arena, e);
}

/* The tools are those of the lock, and on Arm the compiler is held to a range of its own. */
static void test_tools_that_do_not_fit(void **state)
{
	struct err e = {0};

	(void)state;
	assert_ok(check("debian13_lean", "x86_64-linux", "2.9.1", &e), &e);
	assert_err(check("debian13_lean", "aarch64-linux", "2.9.1", &e), &e, ERR_POLICY,
		   "'debian13_lean' has gcc 14.2.0; release 2.9.1 needs on Arm >=9.3,!=14.0.*");
	assert_err(check("debian13_lean+cuda13_0", "aarch64-linux", "2.10.0", &e), &e, ERR_POLICY,
		   "has gcc 14.2.0");
	assert_ok(check("debian13_lean", "aarch64-linux", "2.13.0", &e), &e);
	assert_err(check("debian11", "aarch64-linux", "2.9.1", &e), &e, ERR_POLICY,
		   "has cmake 3.18.4");
	assert_contains(e.hint, "--root DIR");
	err_clear(&e);
	/* a wheel of the base is a tool, too */
	assert_ok(check("debian12", "aarch64-linux", "2.9.1", &e), &e);
}

static int check_parts(const char *world, const char *name, const char *cuda, const char *python,
		       struct err *e)
{
	const struct world *w = NULL;

	assert_ok(world_load(PROFILES_DIR, world, "x86_64-linux", &arena, &w, e), e);
	return world_check_parts(
		&(struct world_question){tables, release(name),
					 &(struct world_wanted){NULL, cuda, python, NULL}, &arena},
		w, e);
}

static void test_python_of_a_world(void **state)
{
	const struct world *w;
	struct err e = {0};

	(void)state;
	assert_ok(world_load(PROFILES_DIR, "debian12+python3_12", "x86_64-linux", &arena, &w, &e),
		  &e);
	assert_string_equal(world_python_part(w)->part, "python3_12");
	assert_string_equal(world_python_program(w, &arena), "/usr/local/bin/python3");
	assert_string_equal(world_python(w), "3.12");
	assert_ok(world_load(PROFILES_DIR, "debian12+cuda12_8", "x86_64-linux", &arena, &w, &e),
		  &e);
	assert_null(world_python_part(w));
	assert_null(world_python_program(w, &arena));
	assert_string_equal(world_python(w), "3.11");
}

/* A world that is named has what its parts have, and nothing else. */
static void test_parts_of_a_named_world(void **state)
{
	struct err e = {0};

	(void)state;
	assert_ok(check_parts("debian12+python3_12+cuda12_8", "2.9.1", "12.8", "3.12", &e), &e);
	assert_ok(check_parts("debian11", "2.7.1", NULL, "3.9", &e), &e);
	assert_ok(check_parts("debian13", "2.13.0", NULL, NULL, &e), &e);
	assert_err(check_parts("debian13", "2.13.0", "13.0", "3.13", &e), &e, ERR_POLICY,
		   "the world 'debian13' has no CUDA 13.0; 'debian13_lean+cuda13_0' has it");
	assert_contains(e.hint, "--root world:debian13_lean+cuda13_0");
	err_clear(&e);
	assert_err(check_parts("debian13_lean+cuda13_1", "2.13.0", "13.0", NULL, &e), &e,
		   ERR_POLICY, "no CUDA 13.0");
	err_clear(&e);
	assert_err(check_parts("debian12+python3_12", "2.9.1", NULL, "3.11", &e), &e, ERR_POLICY,
		   "the world 'debian12+python3_12' has Python 3.12, not 3.11; "
		   "'debian13_lean+python3_11' has it");
	err_clear(&e);
	assert_err(check_parts("debian12", "2.9.1", NULL, "3.7", &e), &e, ERR_POLICY,
		   "the world 'debian12' has Python 3.11, not 3.7");
	assert_contains(
		e.hint,
		"leave --python out, or name python311, for Python 3.11, which 'debian12' has");
	err_clear(&e);
	/* another Python is the answer where the rest
	 * is there, as in test_parts_that_are_not_there */
	assert_err(check_parts("debian12+cuda12_8", "2.9.1", "12.8", "3.7", &e), &e, ERR_POLICY,
		   "not 3.7");
	assert_contains(e.hint, "for Python 3.11, which 'debian12+cuda12_8' has");
	err_clear(&e);
	assert_err(check_parts("debian12", "2.9.1", "12.8", "3.7", &e), &e, ERR_POLICY, "not 3.7");
	assert_contains(e.hint, "no world of release 2.9.1 has Python 3.7");
	err_clear(&e);
	/* the release does not build for what is there */
	assert_err(check_parts("debian12", "2.6.0-debian", NULL, "3.7", &e), &e, ERR_POLICY,
		   "the world 'debian12' has Python 3.11, not 3.7");
	assert_contains(e.hint, "no world of release 2.6.0-debian has Python 3.7");
	err_clear(&e);
	assert_err(check_parts("debian12", "2.9.1", "11.8", NULL, &e), &e, ERR_POLICY,
		   "has no CUDA 11.8");
	assert_contains(e.hint, "no world of release 2.9.1 has CUDA 11.8");
}

static int check_library(const char *world, const char *name, const char *library, struct err *e)
{
	const struct world *w = NULL;

	assert_ok(world_load(PROFILES_DIR, world, LINUX, &arena, &w, e), e);
	return world_check_parts(
		&(struct world_question){tables, release(name),
					 &(struct world_wanted){.library = library}, &arena},
		w, e);
}

/* The part that the BLAS is in. */
static void test_library_of_a_named_world(void **state)
{
	struct err e = {0};

	(void)state;
	assert_ok(check_library("debian13+mkl2026_2", "2.6.0-debian", "mkl2026_2", &e), &e);
	assert_ok(check_library("debian13+mkl2026_2", "2.6.0-debian", "", &e), &e);
	assert_err(check_library("debian13", "2.6.0-debian", "mkl2026_2", &e), &e, ERR_POLICY,
		   "the world 'debian13' has no part 'mkl2026_2', which the BLAS is in; "
		   "'debian13+mkl2026_2' has it");
	err_clear(&e);
	assert_err(check_library("debian12+cuda12_8", "2.9.1", "mkl2026_2", &e), &e, ERR_POLICY,
		   "'debian13_lean+mkl2026_2' has it");
}

/* One world has one name, whether it is chosen or named. */
static void test_a_chosen_world_has_the_name_of_a_loaded_one(void **state)
{
	const struct world_wanted want = {LINUX, "13.2", "3.12", "mkl2026_2"};
	struct world_choice chosen;
	const struct world *w = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(world_choose(&(struct world_question){tables, release("2.13.0"), &want, &arena},
			       &chosen, &e),
		  &e);
	assert_ok(world_load(PROFILES_DIR, "debian13_lean+mkl2026_2+cuda13_2+python3_12", LINUX,
			     &arena, &w, &e),
		  &e);
	assert_string_equal(chosen.name, w->name);
}

/* Every base that a release names has a table, and a row for builds without CUDA comes last. */
static void test_the_releases(void **state)
{
	struct err e = {0};

	(void)state;
	for (unsigned i = 0; i < tables->releases_count; i++) {
		const struct release_row *r = &tables->releases[i];
		struct world_choice w;
		assert_true(r->worlds_count > 0);
		assert_ok(world_choose(
				  &(struct world_question){
					  tables, r, &(struct world_wanted){.platform = LINUX},
					  &arena},
				  &w, &e),
			  &e);
		assert_non_null(w.name);
		for (unsigned k = 0; k < r->worlds_count; k++) {
			const struct world_part *p;
			assert_ok(world_part_load(PROFILES_DIR, r->worlds[k].base, &arena, &p, &e),
				  &e);
			assert_string_equal(p->kind, "base");
		}

		/* what its rows and parts come to can be loaded, where there are such parts */
		for (unsigned k = 0; k < r->toolkits_count; k++) {
			const struct world *whole;
			const struct world_wanted want = {LINUX, .cuda = r->toolkits[k]};
			if (world_choose(&(struct world_question){tables, r, &want, &arena}, &w,
					 &e) < 0) {
				assert_int_equal(e.kind, ERR_POLICY);
				err_clear(&e);
				continue;
			}

			assert_ok(world_load(PROFILES_DIR, w.name, "x86_64-linux", &arena, &whole,
					     &e),
				  &e);
		}
	}
}

static int load(void **state)
{
	struct err e = {0};

	(void)state;
	assert_ok(tables_load(PROFILES_DIR, &arena, &tables, &e), &e);
	return 0;
}

static int release_all(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_parts_that_are_not_there),
		cmocka_unit_test(test_tools_that_do_not_fit),
		cmocka_unit_test(test_parts_of_a_named_world),
		cmocka_unit_test(test_library_of_a_named_world),
		cmocka_unit_test(test_python_of_a_world),
		cmocka_unit_test(test_a_chosen_world_has_the_name_of_a_loaded_one),
		cmocka_unit_test(test_the_releases),
	};

	return cmocka_run_group_tests(tests, load, release_all);
}
