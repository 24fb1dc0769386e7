/* One rule for the Python in all commands: the user's
 * where it is to be had, else the newest with a world. */
#include "cmd_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/machine.h"

static const char *python_of(const char *args)
{
	ptbuild(args);
	assert_int_equal(ran.status, 0);
	AUTO_JSON json_t *doc = json_out();
	return arena_strdup(&ran.arena, json_string_value(json_object_get(doc, "python")));
}

static void says(const char *python)
{
	assert_int_equal(occurrences(err_text(), "using Python"), 1);
	assert_contains(err_text(), arena_printf(&ran.arena, "using Python %s, ", python));
	assert_contains(err_text(), "--python");
}

/* What slim would fetch is in its error. */
static void slim_takes(const char *args, const char *tag)
{
	ptbuild(arena_printf(&ran.arena, "slim --gpu sm90 --offline %s", args));
	assert_int_equal(ran.status, ERR_NETWORK);
	assert_contains(err_text(), tag);
}

static void test_all_commands_follow_the_environment(void **state)
{
	(void)state;
	static const char *const plans[] = {
		"plan --profile sm90-avx512 --release 2.9.1 --json",
		"plan --profile sm90-avx512 --release 2.9.1 --cuda 12.6 --json",
		"plan --profile cpu-avx2 --release 2.9.1 --json"};
	test_python("3.12");
	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		assert_string_equal(python_of(plans[i]), "3.12");
		says("3.12");
		assert_contains(err_text(), test_path("venv"));
	}

	slim_takes("--release 2.9.1", "-cp312-cp312-");
	says("3.12");
	expect("build --profile cpu-avx2 --release 2.9.1 --offline", ERR_NETWORK,
	       "using Python 3.12, ");
	test_write(test_path("bundle.yaml"),
		   "profile: sm90-avx2\ntorch: official==2.9.1\ncompanions: [torchvision]\n");
	assert_string_equal(python_of(arena_printf(&ran.arena, "bundle %s --dry-run --json",
						   test_path("bundle.yaml"))),
			    "3.12");
	says("3.12");
	ptbuild("doctor --profile cpu-avx2 --release 2.9.1 --offline");
	says("3.12");
}

static void test_python_option_overrides_and_says_nothing(void **state)
{
	(void)state;
	test_python("3.12");
	assert_string_equal(
		python_of("plan --profile cpu-avx2 --release 2.9.1 --python 3.11 --json"), "3.11");
	assert_not_contains(err_text(), "using Python");
	slim_takes("--release 2.9.1 --python 3.11", "-cp311-cp311-");
	assert_not_contains(err_text(), "using Python");
}

static void test_python_that_the_release_lacks_gives_its_newest(void **state)
{
	(void)state;
	static const char *const others[] = {"3.6", "4.0"};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		test_python(others[i]);
		assert_string_equal(python_of("plan --profile sm90-avx512 --release 2.9.1 --json"),
				    "3.14");
		says("3.14");
		slim_takes("--release 2.9.1", "-cp314-cp314-");
		says("3.14");
	}
}

/* Debian's release has 3.13 alone, of which its world is. An official wheel is only slimmed here,
 * for the user's own Python. */
static void test_python_of_another_platform_is_not_the_machines(void **state)
{
	(void)state;
	const char *here = machine_platform(&ran.arena);
	const bool arm = strncmp(here, "aarch64", 7) == 0;
	const char *profile = arm ? "cpu-avx2" : "cpu-armv9",
		   *other = arm ? "x86_64-linux" : "aarch64-linux";
	test_python("3.11");
	assert_string_equal(
		python_of(arena_printf(&ran.arena, "plan --profile %s --release 2.9.1 --json",
				       profile)),
		"3.14");
	says("3.14");
	slim_takes(arena_printf(&ran.arena, "--release 2.9.1 --platform %s", other),
		   "-cp311-cp311-");
	says("3.11");
	assert_string_equal(python_of("plan --profile cpu-avx2 --release 2.6.0-debian --json"),
			    "3.13");
}

static const char *release_of(const char *args)
{
	ptbuild(arena_printf(&ran.arena, "plan --profile cpu-avx2 --python 3.13 --json %s", args));
	assert_int_equal(ran.status, 0);
	AUTO_JSON json_t *doc = json_out();
	return arena_strdup(&ran.arena, json_string_value(json_object_get(doc, "release")));
}

static void test_release_takes_tags_and_latest(void **state)
{
	(void)state;
	assert_string_equal(release_of("--release v2.9.1"), "2.9.1");
	assert_string_equal(release_of("--release=v2.6.0-debian"), "2.6.0-debian");
	assert_string_equal(release_of("--release latest"), release_of(""));
	expect("plan --profile cpu-avx2 --release vv2.9.1", 3, "unknown release 'vv2.9.1'");
	slim_takes("--release v2.9.1 --python 3.13", "'torch-2.9.1-cp313-");
	expect("matrix build-pytorch/main --release latest", ERR_USAGE, "--release latest");
	expect("plan --matrix build-pytorch/main --release latest", ERR_USAGE, "--release latest");
	/* the newest with these wheels: none for sm70 since CUDA 13 */
	struct strlist words = {0};
	assert_int_equal(ptbuild("completion --words official"), 0);
	strlist_split(&words, &ran.arena, out(), "\n");
	assert_true(words.count > 2); /* the releases, and then "latest" */
	slim_takes("--release latest",
		   arena_printf(&ran.arena, "'torch-%s-", words.items[words.count - 2]));
	expect("slim --gpu sm70 --release latest --offline", ERR_NETWORK, "'torch-2.10.0-");
	expect("slim --gpu sm90 --release latest --python 3.99 --offline", ERR_POLICY,
	       "Python 3.99");
}

static void test_python_of_a_root_is_its_own(void **state)
{
	(void)state;
	test_python("3.12");
	assert_string_equal(
		python_of("plan --profile cpu-avx2 --root world:debian12 --release 2.7.1 --json"),
		"3.11");
	test_write(test_path("root/usr/bin/python3.10"), "");
	chmod(test_path("root/usr/bin/python3.10"), 0755);
	assert_int_equal(symlink("python3.10", test_path("root/usr/bin/python3")), 0);
	ptbuild(arena_printf(&ran.arena,
			     "build --profile cpu-avx2 --release 2.9.1 --offline --root %s",
			     test_path("root")));
	says("3.10");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_all_commands_follow_the_environment),
		T(test_python_option_overrides_and_says_nothing),
		T(test_python_that_the_release_lacks_gives_its_newest),
		T(test_python_of_another_platform_is_not_the_machines),
		T(test_release_takes_tags_and_latest),
		T(test_python_of_a_root_is_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
