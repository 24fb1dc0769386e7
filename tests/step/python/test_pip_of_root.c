/* A pip that resolves for another Python than the one that runs it: here one that only prints by
 * what it would. */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys/proc.h"
#include "step/python/pyenv_parts.h"

static const char environment[] =
	"{\"python_version\": \"3.99\", \"python_full_version\": \"3.99.7\"}";

static void make_pip(const char *resolver)
{
	const char *script = test_path("bin/pip3");
	char text[512];

	snprintf(text, sizeof(text), "#!/bin/sh\necho 'pip 99.0 from %s/pip (python 3.0)'\n",
		 test_path("site"));
	test_write(script, text);
	assert_int_equal(chmod(script, 0755), 0);
	test_write(test_path("site/pip/__init__.py"), "__version__ = '99.0'\n");
	test_write(test_path("site/pip/_internal/__init__.py"), "");
	test_write(test_path("site/pip/_internal/cli/__init__.py"), "");
	test_write(test_path("site/pip/_vendor/__init__.py"), "");
	test_write(test_path("site/pip/_vendor/packaging/__init__.py"), "");
	test_write(test_path("site/pip/_vendor/packaging/markers.py"),
		   "def default_environment():\n    return {'python_version': 'its own'}\n");
	test_write(test_path("site/pip/_internal/cli/req_command.py"), resolver);
	test_write(test_path("site/pip/_internal/cli/main.py"),
		   "import sys\n"
		   "from pip._internal.cli.req_command import RequirementCommand\n"
		   "from pip._vendor.packaging import markers\n"
		   "def main():\n"
		   "    env = markers.default_environment()\n"
		   "    version = RequirementCommand.make_resolver(1)\n"
		   "    print(env['python_version'], version, sys.argv)\n"
		   "    return 0\n");
	snprintf(text, sizeof(text), "%s:/usr/local/bin:/usr/bin:/bin", test_path("bin"));
	setenv("PATH", text, 1);
}

/* What it prints, on both outputs. */
static const char *start(struct arena *a)
{
	const struct root root = {.dir = "/nowhere"};
	const struct python py = {.root = &root, .run = test_run(), .arena = a};
	const struct pyenv_wanted tags = {.environment = environment};
	struct strlist argv = {0};
	struct proc_result result;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};

	assert_ok(python_start_pip(&py, &tags, &argv, &e), &e);
	strlist_ref(&argv, a, "install");
	const struct proc_spec spec = {
		.argv = strlist_argv(&argv, a), .out = &out, .err = &out, .cwd = "/"};
	assert_ok(proc_run(&spec, test_run(), &result, &e), &e);
	return arena_strdup(a, buf_cstr(&out));
}

static void test_markers_and_version_are_of_the_other_python(void **state)
{
	AUTO_ARENA struct arena a = {0};

	(void)state;
	test_dir();
	make_pip("class RequirementCommand:\n"
		 "    @classmethod\n"
		 "    def make_resolver(cls, preparer, py_version_info=None):\n"
		 "        return py_version_info\n");
	assert_string_equal(start(&a), "3.99 (3, 99, 7) ['pip', 'install']\n");
}

static void test_another_pip_is_named_and_used_as_it_is(void **state)
{
	AUTO_ARENA struct arena a = {0};

	(void)state;
	test_dir();
	make_pip("class RequirementCommand:\n"
		 "    @classmethod\n"
		 "    def make_resolver(cls, preparer):\n"
		 "        return None\n");
	const char *text = start(&a);
	assert_contains(text, PIP_IS_OTHER " (99.0): py_version_info\n");
	assert_contains(text, "its own None ['pip', 'install']\n");
}

static void test_without_a_place_pip_itself_is_started(void **state)
{
	AUTO_ARENA struct arena a = {0};

	(void)state;
	test_dir();
	make_pip("");
	test_write(test_path("bin/pip3"), "#!/bin/sh\necho \"just $*\"\n");
	assert_int_equal(chmod(test_path("bin/pip3"), 0755), 0);
	assert_string_equal(start(&a), "just install\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_markers_and_version_are_of_the_other_python,
					  test_teardown),
		cmocka_unit_test_teardown(test_another_pip_is_named_and_used_as_it_is,
					  test_teardown),
		cmocka_unit_test_teardown(test_without_a_place_pip_itself_is_started,
					  test_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
