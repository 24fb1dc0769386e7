#include "support.h"

#include "core/wheel/requirement.h"

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

/* Ascending; PEP 440 has most of them as its examples. */
static void test_versions_ascend(void **state)
{
	(void)state;
	static const char *const versions[] = {
		"none",         "1.dev0",
		"1.0.dev456",   "1.0a1",
		"1.0a2.dev456", "1.0a12.dev456",
		"1.0a12",       "1.0b1",
		"1.0rc1",       "1.0",
		"1.0+abc.5",    "1.0+abc.7",
		"1.0+5",        "1.0.post456.dev34",
		"1.0.post456",  "1.1.dev1",
		"1.2",          "2.6.0+cpu",
		"2.6.0+cu124",  "2.6.0+cu124.1",
		"1!0.1",
	};
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		for (size_t k = 0; k < ARRAY_LEN(versions); k++) {
			const int want = (i > k) - (i < k),
				  got = pep440_cmp(versions[i], versions[k], &arena);
			if ((got > 0) - (got < 0) != want)
				fail_msg("%s, %s: %d", versions[i], versions[k], got);
		}
	assert_int_equal(pep440_cmp("1.0", "v1.0.0", &arena), 0);
	assert_int_equal(pep440_cmp("1rc.", "1.0C0", &arena), 0);
}

static void test_specifier_takes_by_pep440(void **state)
{
	(void)state;
	static const struct {
		const char *specifier, *takes, *refuses;
	} rows[] = {
		{"", "0", "none"},
		{"==2.4", "2.4.0+cpu", "2.4.1"},
		{"==2.4.*", "2.4.9rc1", "2.40"},
		{"==2.0.*", "2.0.1", "2.4"},
		{"==1!2.*", "1!2.3", "2.3"},
		{"!=2.4.*", "2.5", "2.4.1"},
		{"==2.6.0+cpu", "2.6+CPU", "2.6.0"},
		{"==2.6.0+cpu.avx2", "2.6.0+cpu-avx2", "2.6.0+cpu"},
		{"!=2.6.0", "2.6.1", "2.6.0+cpu"},
		{">=2.6", "2.6.0+cpu", "2.6rc1"},
		{">2.6", "2.6.1", "2.6.0+cpu"},
		{">2.6", "2.7", "2.6.post1"},
		{"<2.6", "2.5.1", "2.6rc1"},
		{"<2.6rc2", "2.6rc1", "2.6"},
		{"<2.6.post1", "2.6rc1", "2.6.post1.dev0"},
		{">2.6rc1", "2.6.post1", "2.6rc1.post1"},
		{"<=2.6", "2.6.0+cpu", "2.6.1"},
		{"~=2.4.1", "2.4.9", "2.5"},
		{"~=2.4", "2.9", "3.0"},
		{"===2.6.0+cpu", "2.6.0+CPU", "2.6+cpu"},
		{">=2,<3,!=2.5.*", "2.6", "2.5.1"},
		{">= 2.4 , < 2.6 ,", "2.5", "2.6"},
		{"=2.4", "", "2.4"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (*rows[i].takes && !specifier_takes(rows[i].specifier, rows[i].takes, &arena))
			fail_msg("'%s' must take %s", rows[i].specifier, rows[i].takes);
		if (*rows[i].specifier &&
		    specifier_takes(rows[i].specifier, rows[i].refuses, &arena))
			fail_msg("'%s' must refuse %s", rows[i].specifier, rows[i].refuses);
	}
}

static void test_specifier_check_names_the_clause(void **state)
{
	(void)state;
	static const char *const bad[] = {"2.4", "=2.4",     "==",        ">=2.*", ">=2+cpu",
					  "~=2", "==2rc1.*", "==2+cpu.*", "^3.8"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *specifier = arena_printf(&arena, ">=1,%s", bad[i]);
		assert_err(specifier_check(specifier, &arena, &err), &err, ERR_INTEGRITY, bad[i]);
		err_clear(&err);
	}

	assert_ok(specifier_check(" >=1 , ===anything ,", &arena, &err), &err);
}

static void test_specifier_that_no_version_meets(void **state)
{
	(void)state;
	static const char *const some[] = {"",
					   "<1",
					   ">1",
					   ">=2.5,!=2.5",
					   ">=2.4,!=2.4.*",
					   "!=2.4.*,!=2.5.*,>=2.4",
					   ">2.5,<2.5.1",
					   ">2.5rc1,<2.5.post1",
					   ">3rc0,<3rc2",
					   ">3.dev1,<3.dev3",
					   ">3.post1,<3.post3",
					   ">=2.5a0,<2.5rc1",
					   "~=2.4.1,>2.4.5",
					   "===2.4.0,>=2.4",
					   "==2.4,==2.4.0+cpu",
					   "==1!2.*,>5",
					   ">=2.5,^3"};
	static const char *const none[] = {
		">=2.5,<2.4",      ">=2.5,<2.5",   ">2.5,<=2.5",
		"==2.4,==2.5",     "<0",           "==2.4,!=2.4.*",
		"~=2.4.1,>=2.5",   "===2.4,>=2.5", "==2.4+cpu,==2.4+cu124",
		">=2.5.dev0,<2.5", "==2.*,==1!2.*"};
	for (size_t i = 0; i < ARRAY_LEN(some); i++)
		if (!specifier_takes_some(some[i], &arena))
			fail_msg("'%s' must take some version", some[i]);
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (specifier_takes_some(none[i], &arena))
			fail_msg("'%s' must take no version", none[i]);
}

static void test_specifier_series(void **state)
{
	(void)state;
	assert_false(specifier_takes_series("==2.4", "2.6", &arena));
	assert_false(specifier_takes_series("<2.6,>=2.4", "2.6", &arena));
	assert_true(specifier_takes_series(">=2.6.3", "2.6", &arena));
	assert_true(specifier_takes_series("==2.6.0+cu124", "2.6", &arena));
	assert_true(specifier_takes_series("", "2.6", &arena));
	assert_string_equal(specifier_pin("== 2.6.0+cpu", &arena), "2.6.0+cpu");
	assert_null(specifier_pin("==2.6.*", &arena));
	assert_null(specifier_pin("==2.6,!=2.7", &arena));
	assert_null(specifier_pin(">=2.6", &arena));
}

static void test_requirement_parts(void **state)
{
	(void)state;
	struct requirement r;
	assert_ok(requirement_parse(
			  "Cuda.Toolkit [CUDART, cu-blas]\r\n  (==13.0.2, <14) ; extra == 'x'",
			  &arena, &r, &err),
		  &err);
	assert_string_equal(r.name, "cuda_toolkit");
	assert_int_equal(r.extras.count, 2);
	assert_string_equal(r.extras.items[0], "cudart");
	assert_string_equal(r.extras.items[1], "cu_blas");
	assert_string_equal(r.specifier, "==13.0.2, <14");
	assert_string_equal(r.marker, "extra == 'x'");
	assert_ok(requirement_parse("torch @ file:///home/me/torch.whl ; os_name == 'posix'",
				    &arena, &r, &err),
		  &err);
	assert_string_equal(r.url, "file:///home/me/torch.whl");
	assert_string_equal(r.specifier, "");
	assert_string_equal(r.marker, "os_name == 'posix'");
}

static void test_requirement_refused(void **state)
{
	(void)state;
	static const struct {
		const char *line, *why;
	} rows[] = {
		{"", "names nothing"},
		{">=1", "names nothing"},
		{"a[b", "no end"},
		{"a[b c]", "commas"},
		{"a[b,]", "not names"},
		{"a_", "not a version specifier"},
		{"a >=1,,<2", "is empty"},
		{"a (>=1", "has no end"},
		{"a (>=1) <2", "more than"},
		{"a >=1 <2", "not a version specifier"},
		{"a @ ; os_name == 'nt'", "URL"},
		{"a @ http://h/a b", "URL"},
		{"a ;", "not a marker"},
		{"a ; python_version > 3", "not a marker"},
		{"a ; nonsense == 'x'", "not a marker"},
		{"a ; (os_name == 'nt'", "not a marker"},
		{"a ; os_name == 'nt' and", "not a marker"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct requirement r = {.line = NULL};
		assert_err(requirement_parse(rows[i].line, &arena, &r, &err), &err, ERR_INTEGRITY,
			   rows[i].why);
		assert_null(r.line);
		err_clear(&err);
	}
}

static const struct marker_env linux_313 = {
	.python = "3.13", .platform = "x86_64-linux", .extra = ""};

static void test_marker_on_linux(void **state)
{
	(void)state;
	static const struct {
		enum holds holds;
		const char *marker;
	} rows[] = {
		{HOLDS_ALWAYS, ""},
		{HOLDS_ALWAYS, "platform_system == 'Linux' and platform_machine == \"x86_64\""},
		{HOLDS_NEVER, "platform_machine == 'aarch64' or sys_platform == 'win32'"},
		{HOLDS_ALWAYS, "python_version >= '3.9'"},
		{HOLDS_NEVER, "python_version < '3.10'"},
		{HOLDS_ALWAYS, "'3.9' < python_version"},
		{HOLDS_ALWAYS, "python_version == '3.*'"},
		{HOLDS_NEVER, "python_version in '3.8 3.9'"},
		{HOLDS_ALWAYS, "python_version not in '3.8 3.9'"},
		{HOLDS_PERHAPS, "python_full_version >= '3.13.2'"},
		{HOLDS_ALWAYS, "python_full_version < '3.14'"},
		{HOLDS_ALWAYS, "python_full_version < '3.13.2' or python_full_version >= '3.13.2'"},
		{HOLDS_NEVER, "implementation_name == 'pypy'"},
		{HOLDS_PERHAPS, "platform_release >= '5'"},
		{HOLDS_NEVER, "platform_release >= '5' and os_name == 'nt'"},
		{HOLDS_NEVER, "extra == 'test'"},
		{HOLDS_PERHAPS, "os.name == 'posix' or nonexistent == 'x'"}, /* it is no marker */
		{HOLDS_ALWAYS, "os.name == 'posix' or sys.platform == 'linux' and os_name == 'nt'"},
		{HOLDS_ALWAYS, "(os_name == 'nt' or os_name == 'posix') and python_version > '3'"},
		{HOLDS_NEVER, "os_name == 'nt' and (os_name == 'nt' or os_name == 'posix')"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (marker_eval(rows[i].marker, &linux_313, &arena) != rows[i].holds)
			fail_msg("%s", rows[i].marker);
}

static void test_marker_with_extra_or_unknown(void **state)
{
	(void)state;
	struct marker_env env = linux_313;
	env.extra = "With_CUDA";
	assert_int_equal(marker_eval("extra == 'with-cuda'", &env, &arena), HOLDS_ALWAYS);
	env.extra = NULL;
	assert_int_equal(marker_eval("extra == 'with-cuda'", &env, &arena), HOLDS_PERHAPS);
	assert_int_equal(marker_eval("extra == 'with-cuda' and os_name == 'nt'", &env, &arena),
			 HOLDS_NEVER);
	const struct marker_env none = {0};
	assert_int_equal(marker_eval("python_version < '3.10'", &none, &arena), HOLDS_PERHAPS);
	const struct marker_env full = {.python = "3.13.2"};
	assert_int_equal(marker_eval("python_full_version >= '3.13.2'", &full, &arena),
			 HOLDS_ALWAYS);
	const struct marker_env mac = {.platform = "aarch64-darwin"},
				windows = {.platform = "win_amd64"};
	assert_int_equal(marker_eval("platform_machine == 'arm64'", &mac, &arena), HOLDS_ALWAYS);
	assert_int_equal(marker_eval("sys_platform == 'win32' and platform_machine == 'AMD64'",
				     &windows, &arena),
			 HOLDS_ALWAYS);
}

static enum holds holds(const char *wheel, const char *requires_python, const char *line)
{
	struct wheel_name n;
	struct requirement r;
	struct wheel_scope s;

	assert_ok(wheel_name_parse(wheel, &arena, &n, &err), &err);
	assert_ok(requirement_parse(line, &arena, &r, &err), &err);
	wheel_scope_of(&n, requires_python, &arena, &s);
	return requirement_holds(&r, &s, "", &arena);
}

static void test_requirement_holds_for_the_tags(void **state)
{
	(void)state;
	static const char one[] = "a-1-cp313-cp313-manylinux_2_28_x86_64.whl",
			  all[] = "a-1-py3-none-any.whl";
	assert_int_equal(holds(one, NULL, "b; python_version < '3.10'"), HOLDS_NEVER);
	assert_int_equal(holds(one, NULL, "b; platform_machine == 'aarch64'"), HOLDS_NEVER);
	assert_int_equal(holds(one, NULL, "b; sys_platform == 'linux'"), HOLDS_ALWAYS);
	assert_int_equal(holds(all, NULL, "b; python_version < '3.10'"), HOLDS_PERHAPS);
	assert_int_equal(holds(all, ">=3.10", "b; python_version < '3.10'"), HOLDS_NEVER);
	assert_int_equal(holds(all, NULL, "b; sys_platform == 'linux'"), HOLDS_PERHAPS);
	assert_int_equal(
		holds("a-1-cp312.cp313-none-manylinux_2_28_x86_64.manylinux_2_28_aarch64.whl", NULL,
		      "b; platform_machine == 'aarch64'"),
		HOLDS_PERHAPS);
	assert_int_equal(holds("a-1-cp39-abi3-win_amd64.whl", NULL, "b; os_name == 'nt'"),
			 HOLDS_ALWAYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_versions_ascend, setup, teardown),
		cmocka_unit_test_setup_teardown(test_specifier_takes_by_pep440, setup, teardown),
		cmocka_unit_test_setup_teardown(test_specifier_check_names_the_clause, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_specifier_that_no_version_meets, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_specifier_series, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requirement_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requirement_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_marker_on_linux, setup, teardown),
		cmocka_unit_test_setup_teardown(test_marker_with_extra_or_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requirement_holds_for_the_tags, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
