/* Which Python the user runs, by files that lie about it, too. */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/machine/host_python.h"

static struct arena a;

static int setup(void **state)
{
	(void)state;
	test_dir();
	unsetenv("VIRTUAL_ENV");
	setenv("PATH", test_path("bin"), 1);
	struct err e = {0};
	assert_ok(fs_mkdirs(TRUSTED, test_path("bin"), &e), &e);
	return 0;
}

static int teardown(void **state)
{
	setenv("PATH", "/usr/bin:/bin", 1);
	unsetenv("VIRTUAL_ENV");
	arena_release(&a);
	return test_teardown(state);
}

static struct host_python found(void)
{
	struct host_python h;
	host_python(test_run(), &a, &h);
	return h;
}

static void expect(const char *version, const char *venv)
{
	struct host_python h = found();
	assert_string_equal(h.version ? h.version : "none", version ? version : "none");
	assert_string_equal(h.venv ? h.venv : "none", venv ? venv : "none");
}

/* python3 as a script that leaves a file when it is run. */
static void plant_python(const char *name, const char *says)
{
	const char *path = path_join(&a, test_path("bin"), name);

	test_write(path,
		   arena_printf(&a, "#!/bin/sh\necho run > %s\n[ \"$1\" = -I ] && echo '%s'\n",
				test_path("ran"), says));
	assert_int_equal(chmod(path, 0755), 0);
}

static bool was_run(void)
{
	return fs_exists(TRUSTED, test_path("ran"));
}

static void plant_venv(const char *config)
{
	struct err e = {0};

	assert_ok(fs_mkdirs(TRUSTED, test_path("venv"), &e), &e);
	if (config)
		test_write(path_join(&a, test_path("venv"), "pyvenv.cfg"), config);
	setenv("VIRTUAL_ENV", test_path("venv"), 1);
}

static void test_environment_is_read_and_nothing_run(void **state)
{
	(void)state;
	plant_python("python3", "3.9");
	plant_venv("home = /usr/bin\nversion = 3.12.4\n");
	expect("3.12", test_path("venv"));
	plant_venv("home=/usr/bin\r\nuv = 0.5\r\nversion_info=3.13.1\r\n");
	expect("3.13", test_path("venv"));
	plant_venv("prompt = version = 3.1\nversion_info = 3.11.7.final.0");
	expect("3.11", test_path("venv"));
	assert_false(was_run());
}

static void test_environment_without_version_falls_to_python3(void **state)
{
	(void)state;
	static const char *const configs[] = {NULL,
					      "",
					      "version",
					      "version = x",
					      "version = 3",
					      "version = 3.",
					      "version = 3.1234567",
					      "version = 3.11rc1",
					      "\xff\x80=\n=version"};
	plant_python("python3.10", "9.9");
	assert_int_equal(symlink("python3.10", path_join(&a, test_path("bin"), "python3")), 0);
	for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
		plant_venv(configs[i]);
		expect("3.10", NULL);
	}

	setenv("VIRTUAL_ENV", "relative", 1);
	expect("3.10", NULL);
	assert_false(was_run());
}

static void test_config_that_is_no_file_is_not_waited_for(void **state)
{
	(void)state;
	plant_venv(NULL);
	assert_int_equal(mkfifo(path_join(&a, test_path("venv"), "pyvenv.cfg"), 0644), 0);
	expect(NULL, NULL);
}

static void test_link_names_the_version(void **state)
{
	(void)state;
	const char *link = path_join(&a, test_path("bin"), "python3");
	plant_python("python3.13t", "9.9");
	assert_int_equal(symlink("python3.13t", link), 0);
	expect("3.13t", NULL);
	assert_false(was_run());
	assert_int_equal(unlink(link), 0);
	expect(NULL, NULL);
}

static void test_program_without_version_in_its_name_is_asked_isolated(void **state)
{
	(void)state;
	static const char *const answers[][2] = {
		{"3.12", "3.12"},        {"3.14t", "3.14t"}, {"", NULL},          {"3", NULL},
		{"3.12 and more", NULL}, {"no", NULL},       {"3.12\n3.13", NULL}};
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		plant_python("python3", answers[i][0]);
		expect(answers[i][1], NULL);
	}

	assert_true(was_run());
	test_write(path_join(&a, test_path("bin"), "python3"), "#!/bin/sh\nexit 3\n");
	expect(NULL, NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_environment_is_read_and_nothing_run),
		T(test_environment_without_version_falls_to_python3),
		T(test_config_that_is_no_file_is_not_waited_for),
		T(test_link_names_the_version),
		T(test_program_without_version_in_its_name_is_asked_isolated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
