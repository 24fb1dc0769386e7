#include "support.h"

#include "step/test/test.h"

static struct arena arena;
static struct err err;

static int setup(void **state)
{
	(void)state;
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

#define HEAD "sources: seen\npackages:\n  - package: pytorch\n    dir: test\n    files:\n"

static int load(const char *text, const struct test_package **ret)
{
	const char *dir = test_dir();

	test_write(test_path("tests/1.yaml"), text);
	return test_table_load(dir, "1", "pytorch",
			       "torch-2.6.0+cpu.avx2-cp313-cp313-linux_x86_64.whl", &arena, ret,
			       &err);
}

static void test_rows(void **state)
{
	(void)state;
	const struct test_package *p;
	assert_ok(load(HEAD
		       "      - {file: test_a.py, levels: [smoke], select: ['*x*'], sample: 4}\n"
		       "      - {file: d/test_b.py, levels: [core, smoke], parts: 3, limit: 5, "
		       "minutes: 1}\n"
		       "    expected:\n"
		       "      - {test: 'test_a.py::T.*', reason: why, source: where}\n",
		       &p),
		  &err);
	assert_int_equal(p->files_count, 2);
	assert_int_equal(p->files[0].line, 6);
	assert_int_equal(p->files[0].sample, 4);
	assert_int_equal(p->files[1].parts, 3);
	assert_true(test_row_in(&p->files[0], "smoke") && !test_row_in(&p->files[0], "core"));
	assert_true(test_row_in(&p->files[0], "full") && test_row_in(&p->files[1], "core"));
	assert_string_equal(test_expected(p, "test_a.py::T.x")->reason, "why");
	assert_null(test_expected(p, "test_b.py::T.x"));
}

/* A failure of one wheel, as of the torch that Debian built, is none of another. */
static void test_rows_of_some_wheels(void **state)
{
	(void)state;
	const struct test_package *p;
	static const char *const rows[][2] = {{"'torch-*+debian-*'", NULL},
					      {"root, 'torch-*+cpu.avx2-*'", "why"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_ok(load(arena_printf(&arena,
					    HEAD "      - {file: test_a.py, levels: [smoke]}\n"
						 "    expected:\n"
						 "      - {test: 'test_a.py::T.x', wheels: [%s], "
						 "reason: why, source: where}\n"
						 "      - {test: 'test_a.py::T.y', reason: always, "
						 "source: where}\n",
					    rows[i][0]),
			       &p),
			  &err);
		const struct test_expected_row *x = test_expected(p, "test_a.py::T.x");
		assert_string_equal(x ? x->reason : "none", rows[i][1] ? rows[i][1] : "none");
		assert_string_equal(test_expected(p, "test_a.py::T.y")->reason, "always");
	}
}

static void test_refusals(void **state)
{
	(void)state;
	const struct test_package *p;
	assert_err(load(HEAD "      - {file: ../test_a.py, levels: [core]}\n", &p), &err,
		   ERR_CONFIG, "1.yaml:6: '../test_a.py' is not a file of tests");
	assert_err(load(HEAD "      - {file: test_a.py, levels: [huge]}\n", &p), &err, ERR_CONFIG,
		   "1.yaml:6: unknown level 'huge'");
	assert_err(load(HEAD "      - {file: test_a.py, levels: [core]}\n      - {file: test_a.py, "
			     "levels: [core]}\n",
			&p),
		   &err, ERR_CONFIG, "1.yaml:7: 'test_a.py' is in the level twice");
	assert_ok(load(HEAD "      - {file: test_a.py, levels: [core]}\n", &p), &err);
	assert_err(test_table_load(test_path("."), "1", "torchvision", "root", &arena, &p, &err),
		   &err, ERR_POLICY, "has no tests of torchvision");
	assert_err(test_table_load(test_path("."), "2", "pytorch", "root", &arena, &p, &err), &err,
		   ERR_POLICY, "no table says which tests of release '2' to run");
}

/* What is shipped can be read, and every failure that it expects has a reason. */
static void test_the_shipped_table(void **state)
{
	(void)state;
	const struct test_package *p;
	static const char own[] = "torch-2.6.0+cpu.avx2-cp313-cp313-manylinux_2_39_x86_64.whl";
	static const char debian[] = "torch-2.6.0+debian-cp313-cp313-manylinux_2_39_x86_64.whl";
	static const char dot[] = "test_linalg.py::TestLinalgCPU.test_dot_vs_numpy_cpu_complex64";
	assert_ok(test_table_load(PROFILES_DIR, "2.6.0-debian", "pytorch", own, &arena, &p, &err),
		  &err);
	assert_true(p->files_count > 0);
	assert_null(test_expected(p, dot));
	assert_ok(
		test_table_load(PROFILES_DIR, "2.6.0-debian", "pytorch", debian, &arena, &p, &err),
		&err);
	assert_non_null(test_expected(p, dot));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_of_some_wheels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_shipped_table, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
