#include "cmd_fixture.h"

#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "cache/store.h"

#define KEY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* ---- the store's commands ---- */

static const char *put_object(const char *key, const char *text)
{
	struct store *s;
	struct err e = {0};
	const char *stage, *path;

	assert_ok(store_open(test_path("xdg/ptbuild"), test_run(), &s, &e), &e);
	assert_ok(store_stage(s, &ran.arena, &stage, &e), &e);
	test_write(arena_printf(&ran.arena, "%s/file", stage), text);
	assert_ok(store_publish(s, STORE_PYENV, key, stage, &ran.arena, &path, &e), &e);
	store_close(s);
	return arena_printf(&ran.arena, "%s/file", path);
}

static void cache_info_of_an_empty_store(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("cache info"), 0);
	assert_contains(out(), "empty");
	assert_int_equal(ptbuild("cache info --json"), 0);
	AUTO_JSON json_t *doc = json_out();
	assert_int_equal(json_array_size(json_object_get(doc, "objects")), 0);
	/* it was only looked at */
	assert_false(fs_exists(TRUSTED, json_string_value(json_object_get(doc, "dir"))));
}

/* What JSON cannot say of a path is U+FFFD, as everywhere; what was done is told. */
static void cache_in_a_directory_that_is_not_utf8(void **state)
{
	(void)state;
	const char *const lines[] = {"cache info --json", "cache verify --json",
				     "cache gc --keep-days 1 --json"};
	struct store *s;
	struct err e = {0};
	for (int made = 0; made < 2; made++) {
		for (size_t i = 0; i < (made ? ARRAY_LEN(lines) : 1); i++) {
			assert_int_equal(ptbuild(arena_printf(&ran.arena, "%s --cache '%s'",
							      lines[i], test_path("c\xff"))),
					 0);
			AUTO_JSON json_t *doc = json_out();
			assert_contains(json_string_value(json_object_get(doc, "dir")),
					"/c\xef\xbf\xbd");
		}

		assert_ok(store_open(test_path("c\xff"), test_run(), &s, &e), &e);
		store_close(s);
	}
}

static void cache_info_counts(void **state)
{
	(void)state;
	put_object(KEY, "text");
	assert_int_equal(ptbuild("cache info"), 0);
	assert_contains(out(), "pyenv      1  ");
	assert_int_equal(ptbuild("cache info --json"), 0);
	AUTO_JSON json_t *doc = json_out();
	const json_t *o = json_array_get(json_object_get(doc, "objects"), 0);
	assert_string_equal(json_string_value(json_object_get(o, "key")), KEY);
}

static void cache_verify_of_good_objects(void **state)
{
	(void)state;
	put_object(KEY, "text");
	assert_int_equal(ptbuild("cache verify"), 0);
	assert_contains(out(), "1 object checked (");
}

static void cache_verify_moves_away_what_is_wrong(void **state)
{
	(void)state;
	test_write(put_object(KEY, "text"), "tExt");
	expect("cache verify --dry-run", 5, "1 of 1 object");
	assert_contains(out(), "/file' has sha256");
	expect("cache verify --json", 5, "1 of 1 object");
	AUTO_JSON json_t *doc = json_out();
	const json_t *wrong = json_array_get(json_object_get(doc, "wrong"), 0);
	assert_true(json_is_true(json_object_get(wrong, "quarantined")));
	assert_int_equal(ptbuild("cache verify"), 0);
	assert_contains(out(), "0 objects checked (0 B), 0 wrong");
}

static void cache_verify_is_interrupted(void **state)
{
	(void)state;
	put_object(KEY, "text");
	pid_t pid = fork();
	assert_true(pid >= 0);
	/* a blocked signal that is pending stays so through exec: the program sees it at once */
	if (pid == 0) {
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGINT);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGINT);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		execl(PTBUILD_PROGRAM, "ptbuild", "cache", "verify", (char *)NULL);
		_exit(1);
	}

	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 130);
}

static void cache_gc_needs_a_rule(void **state)
{
	(void)state;
	expect("cache gc", 2, "--keep-days");
	expect(arena_printf(&ran.arena, "cache verify --cache %s", test_path("none")), 2,
	       "no store in");
	expect(arena_printf(&ran.arena, "cache gc --keep-days 1 --cache %s", test_path("none")), 2,
	       "no store in");
	assert_int_equal(access(test_path("none"), F_OK), -1);
	expect("plan --profile cpu-avx2 --max-memory 1K", 2,
	       "--max-memory 1K: no compiler fits into it");
	expect("cache gc --max-size big", 2, "not a size: 'big'");
	expect("cache gc --max-size 1X", 2, "not a size: '1X'");
	expect("cache gc --max-size -1", 2, "--max-size");
	expect("cache gc --max-size 99999999T", 2, "not a size: '99999999T'");
	expect("cache gc --keep-days soon", 2, "not a number of days");
}

static void cache_gc_spares_what_was_just_used(void **state)
{
	(void)state;
	put_object(KEY, "text");
	assert_int_equal(ptbuild("cache gc --max-size 0 --json"), 0);
	AUTO_JSON json_t *doc = json_out();
	assert_int_equal(json_integer_value(json_object_get(doc, "kept")), 1);
}

static void cache_gc_removes_the_old(void **state)
{
	(void)state;
	put_object(KEY, "text");
	assert_int_equal(shell("touch -d '3 days ago' "
			       "\"$XDG_CACHE_HOME\"/ptbuild/objects/pyenv/*/.manifest.json"),
			 0);
	assert_int_equal(ptbuild("cache gc --keep-days 2 --dry-run"), 0);
	assert_contains(out(), "would remove pyenv aaaaaaaaaaaaaaaa");
	assert_int_equal(ptbuild("cache gc --keep-days 4 --json"), 0);
	assert_contains(out(), "\"removed\": []");
	assert_int_equal(ptbuild("cache gc --keep-days 2"), 0);
	assert_contains(out(), "removed pyenv aaaaaaaaaaaaaaaa");
	assert_int_equal(ptbuild("cache info"), 0);
	assert_contains(out(), "empty");
}

static void full_output_is_a_system_error(void **state)
{
	(void)state;
	assert_int_equal(shell("\"$PTBUILD\" help > /dev/full"), 8);
	assert_contains(err_text(), "standard output");
	assert_int_equal(shell("\"$PTBUILD\" cache info --json > /dev/full"), 8);
}

/* The first file that is opened would get its number, and then what is printed. */
static void closed_output_is_said(void **state)
{
	static const char *const words[] = {"list", "list --json", "help --man", "completion bash",
					    "cache info"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		assert_int_equal(shell(arena_printf(&ran.arena, "\"$PTBUILD\" %s >&-", words[i])),
				 8);
		assert_contains(err_text(), "standard output is closed");
	}

	assert_int_equal(shell("\"$PTBUILD\" list <&- 2>&-"), 0);
}

/* Whoever only looks goes on without it, and says so once, however many look. */
static void a_store_that_cannot_be_looked_into(void **state)
{
	static const char told[] = "/loop': Too many levels of symbolic links\n";
	static const char *const words[] = {
		"plan --profile cpu-avx2 --release 2.6.0-debian",
		"plan --profile cpu-avx2 --package all --release 2.13.0",
		"plan pytorch-python313-cpu-avx2 pytorch-python312-cpu-avx2 --release 2.9.1"};

	(void)state;
	assert_int_equal(
		shell("mkdir -p \"$XDG_CACHE_HOME\" && ln -s loop \"$XDG_CACHE_HOME\"/loop"), 0);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const char *line =
			arena_printf(&ran.arena, "%s --cache \"$XDG_CACHE_HOME\"/loop", words[i]);
		assert_int_equal(ptbuild(line), 0);
		assert_contains(err_text(), told);
		assert_null(strstr(strstr(err_text(), told) + 1, told));
	}

	assert_int_equal(ptbuild("cache info --cache \"$XDG_CACHE_HOME\"/loop"), 8);
}

/* ---- verify, fetch, doctor ---- */

static void verify_needs_a_wheel(void **state)
{
	(void)state;
	expect("verify", 2, "needs a wheel");
	expect("verify not-a-wheel.zip", 2, "'not-a-wheel.zip' does not exist");
	test_dir();
	test_write(test_path("not-a-wheel.zip"), "x");
	ptbuild(arena_printf(&ran.arena, "verify '%s'", test_path("not-a-wheel.zip")));
	assert_int_equal(ran.status, 5);
	assert_contains(out(), "not-a-wheel.zip");
	test_write(test_path("torch-2.6.0-cp313-cp313-linux_x86_64.whl"), "x");
	ptbuild(arena_printf(&ran.arena, "verify '%s'",
			     test_path("torch-2.6.0-cp313-cp313-linux_x86_64.whl")));
	assert_int_equal(ran.status, 5);
	assert_contains(out(), "torch-2.6.0-cp313-cp313-linux_x86_64.whl");
}

static void verify_says_its_rules(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("verify --rules"), 0);
	assert_contains(out(), "exec-stack ");
	assert_int_equal(ptbuild("verify --rules --json"), 0);
	AUTO_JSON json_t *doc = json_out();
	assert_true(json_array_size(json_object_get(doc, "rules")) >= 12);
}

static void verify_against_what_does_not_exist(void **state)
{
	(void)state;
	test_dir();
	test_write(test_path("x-1-py3-none-any.whl"), "x");
	const char *wheel = test_path("x-1-py3-none-any.whl");
	expect(arena_printf(&ran.arena, "verify --against pytorch-python313-cpu-avx3 '%s'", wheel),
	       3, "--against");
	expect(arena_printf(&ran.arena, "verify --against cpu-avx3 '%s'", wheel), 3, "avx3");
	expect(arena_printf(&ran.arena, "verify --ci --json %s", wheel), 2, "--ci and --json");
}

static void verify_in_lines(void **state)
{
	(void)state;
	test_write(test_path("torch-2.6.0+cpu.avx2-cp313-cp313-linux_x86_64.whl"), "no archive");
	assert_int_equal(
		ptbuild(arena_printf(
			&ran.arena, "verify --ci --against pytorch-python312-cpu-avx512 %s",
			test_path("torch-2.6.0+cpu.avx2-cp313-cp313-linux_x86_64.whl"))),
		5);
	assert_contains(out(), "torch-2.6.0+cpu.avx2-cp313-cp313-linux_x86_64.whl: error[zip]: ");
	assert_contains(out(), ".whl: error[against]: is for the Python 'cp313', not for 3.12\n");
	assert_contains(
		out(),
		".whl: error[against]: has the label 'cpu.avx2', which says avx2, not avx512\n");
}

/* The program in ptbuild's own wheel names the sandbox's directories, and no sandbox made that. */
static void verify_takes_the_build_paths_of_ptbuilds_own_wheel(void **state)
{
	(void)state;
	static const char make[] =
		"cd '" TEST_SOURCE_DIR "/e2e' && python3 -B -c 'import sys, wheelsite\n"
		"for name in (\"ptbuild\", \"other\"):\n"
		"    wheelsite.make_wheel(sys.argv[1], name, \"1.0\", code=\"# /ptbuild/src\")' "
		"'%s'";
	assert_int_equal(shell(arena_printf(&ran.arena, make, test_path("."))), 0);
	ptbuild(arena_printf(&ran.arena, "verify '%s'", test_path("ptbuild-1.0-py3-none-any.whl")));
	assert_contains(out(), "0 errors, 0 warnings");
	assert_int_equal(ran.status, 0);
	expect(arena_printf(&ran.arena, "verify '%s'", test_path("other-1.0-py3-none-any.whl")), 5,
	       "failed verification");
	assert_contains(out(), "other/__init__.py: holds '/ptbuild/' at offset");
}

static void verify_refuses_what_is_no_archive(void **state)
{
	(void)state;
	test_write(test_path("torch-2.6.0-cp313-cp313-linux_x86_64.whl"), "this is no archive");
	expect(arena_printf(&ran.arena, "verify %s",
			    test_path("torch-2.6.0-cp313-cp313-linux_x86_64.whl")),
	       5, "1 of 1 wheel failed verification");
	assert_contains(out(), "torch-2.6.0-cp313-cp313-linux_x86_64.whl");
	expect(arena_printf(&ran.arena, "verify --json %s",
			    test_path("torch-2.6.0-cp313-cp313-linux_x86_64.whl")),
	       5, "1 of 1 wheel failed verification");
	AUTO_JSON json_t *doc = json_out();
	assert_int_equal(json_array_size(json_object_get(doc, "wheels")), 1);
}

static void fetch_offline_without_the_source_names_it(void **state)
{
	(void)state;
	expect("fetch --offline --profile cpu-avx2 --python 3.13 --package torchvision --release "
	       "2.6.0-debian",
	       4, "pytorch-vision_0.21.0.orig.tar.gz");
	assert_contains(err_text(),
			"0a4a967bbb7f9810f792cd0289a07fb98c8fb5d1303fae8b63e3a6b05d720058");
}

static json_t *find_check(const json_t *doc, const char *name)
{
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(doc, "checks"), i,
			   row) if (strcmp(json_string_value(json_object_get(row, "name")), name) ==
				    0) return row;
	fail_msg("doctor has no line '%s': %s", name, out());
	return NULL;
}

static void doctor_reports_every_line_and_the_worst(void **state)
{
	(void)state;
	int status = ptbuild("doctor --json --release 2.6.0-debian --root /");
	AUTO_JSON json_t *doc = json_out();
	static const char *const names[] = {"sandbox", "gcc",     "g++",    "cmake",
					    "ninja",   "python3", "ccache", "patch",
					    "strip",   "disk",    "memory"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_non_null(json_object_get(find_check(doc, names[i]), "level"));
	bool failure = strcmp(json_string_value(json_object_get(doc, "worst")), "failure") == 0;
	assert_true(failure ? status == 7 || status == 8 : status == 0);
}

static void doctor_compiles_with_the_profiles_flags(void **state)
{
	(void)state;
	ptbuild("doctor --json --profile cpu-avx2 --python 3.13 --release 2.6.0-debian --sandbox "
		"none");
	AUTO_JSON json_t *doc = json_out();
	const json_t *flags = find_check(doc, "flags");
	assert_string_equal(json_string_value(json_object_get(flags, "level")), "ok");
	assert_contains(json_string_value(json_object_get(flags, "text")), "-mavx2");
	assert_string_equal(json_string_value(json_object_get(find_check(doc, "sandbox"), "level")),
			    "warning");
}

static void doctor_finds_the_missing_tool(void **state)
{
	(void)state;
	setenv("PATH", "/nowhere", 1);
	int status = ptbuild("doctor --json --release 2.6.0-debian --sandbox none");
	setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
	assert_int_equal(status, 8);
	AUTO_JSON json_t *doc = json_out();
	const json_t *row = find_check(doc, "strip");
	assert_string_equal(json_string_value(json_object_get(row, "level")), "failure");
	assert_contains(json_string_value(json_object_get(row, "fix")),
			"install what Debian calls binutils");
}

/* Before anything is installed or run. */
static void bench_on_a_gpu_needs_no_sandbox(void **state)
{
	(void)state;
	test_dir();
	test_write(test_path("torch-2.9.1+a-py3-none-any.whl"), "x");
	const char *wheel = test_path("torch-2.9.1+a-py3-none-any.whl");
	expect(arena_printf(&ran.arena, "bench '%s' --against '%s' --device cuda", wheel, wheel), 2,
	       "--device cuda: the sandbox shows no GPU");
	assert_contains(err_text(), "--sandbox none");
}

/* No world is fetched that could not be used. */
static void a_world_needs_the_sandbox(void **state)
{
	(void)state;
	const char *wheel = test_path("torch-2.9.1-py3-none-any.whl");
	test_write(wheel, "not read");
	const char *lines[] = {"fetch --profile cpu-avx2 --release 2.6.0-debian",
			       arena_printf(&ran.arena, "bench '%s' --against '%s'", wheel, wheel)};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		expect(arena_printf(&ran.arena, "%s --root world:debian13 --sandbox none --offline",
				    lines[i]),
		       7, "the root 'world:debian13' cannot be used without a sandbox");
}

static void a_page_that_cannot_be_written_is_told_at_once(void **state)
{
	(void)state;
	test_dir();
	test_write(test_path("torch-2.9.1+a-py3-none-any.whl"), "x");
	test_write(test_path("torch-2.9.1+b-py3-none-any.whl"), "x");
	const char *pair = arena_printf(&ran.arena, "'%s' --against '%s'",
					test_path("torch-2.9.1+a-py3-none-any.whl"),
					test_path("torch-2.9.1+b-py3-none-any.whl"));
	expect(arena_printf(&ran.arena, "bench %s --page '%s'", pair, test_path("none/x.html")), 8,
	       "--page: cannot write '");
	expect(arena_printf(&ran.arena, "bench %s --page '%s'", pair, test_path(".")), 8,
	       "--page: cannot write '");
	expect(arena_printf(&ran.arena, "test '%s' --junit '%s'",
			    test_path("torch-2.9.1+a-py3-none-any.whl"), test_path("none/x.xml")),
	       8, "--junit: cannot write '");
	assert_string_equal(out(), "");
}

/* A key that signs nothing must not be taken in silence. */
static void repack_of_a_wheel_refuses_what_it_does_not_use(void **state)
{
	static const char *const options[][2] = {{"", "--sign-key"},
						 {"--profile cpu-avx2", "--profile"},
						 {"--set X=1", "--set"},
						 {"--package torchvision", "--package"},
						 {"--platform linux", "--platform"}};

	(void)state;
	test_dir();
	test_write(test_path("torch-2.9.1+a-py3-none-any.whl"), "x");
	const char *wheel = arena_strdup(&ran.arena, test_path("torch-2.9.1+a-py3-none-any.whl"));
	const char *to = arena_strdup(&ran.arena, test_path("out"));
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const char *given =
			i ? options[i][0] : arena_printf(&ran.arena, "--sign-key '%s'", wheel);
		const char *line = arena_printf(
			&ran.arena, "repack '%s' --metadata-rev 2 --out '%s' %s", wheel, to, given);
		expect(line, 2,
		       arena_printf(&ran.arena, "repack of a wheel does not support %s",
				    options[i][1]));
		assert_contains(err_text(), "ptbuild repack VARIANT");
		assert_int_not_equal(access(to, F_OK), 0);
	}
}

#define KEY_2 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_3 "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static void keep_tree(const char *key, const char *variant)
{
	const char *dir = arena_printf(&ran.arena, "xdg/ptbuild/build/%s", key);
	struct err e = {0};

	assert_ok(fs_mkdirs(TRUSTED, test_path("%s", dir), &e), &e);
	test_write(test_path("%s/tree.json", dir),
		   arena_printf(&ran.arena, "{\"variant\": \"%s\"}", variant));
}

/* These trees have no sandbox to enter: only which one is taken is looked at. */
static void shell_finds_the_tree_of_a_variant_with_an_open_toolkit(void **state)
{
	(void)state;
	put_object(KEY, "text");
	keep_tree(KEY, "pytorch-python311-cuda12_8-sm90-avx2");
	keep_tree(KEY_2, "pytorch-python311-cuda12_8-sm80-avx2");
	keep_tree(KEY_3, "pytorch-python311-gone");
	ptbuild("shell -v python311Packages.pytorch-sm90-avx2");
	assert_contains(err_text(), "/build/" KEY);
	ptbuild("shell -v python311Packages.pytorch-sm80-avx2");
	assert_contains(err_text(), "/build/" KEY_2);
	expect("shell python312Packages.pytorch-sm90-avx2", 3, "no kept build tree for");
	/* An extension's name is no variant of the tables. */
	expect("shell tiny-python313-cpu-avx2", 3,
	       "no kept build tree for 'tiny-python313-cpu-avx2'");
	assert_contains(err_text(), "--keep");
	expect("shell pytorch-python311-cuda12_6-sm90-avx2", 3, "no kept build tree for");
}

/* Its world is that of its platform; this machine's own system cannot run it. */
static void test_wheel_of_another_platform_is_tested_in_its_world(void **state)
{
	(void)state;
	struct utsname u;

	assert_int_equal(uname(&u), 0);
	const bool arm = strcmp(u.machine, "aarch64") == 0;
	const char *wheel =
		arena_printf(&ran.arena, "torch-2.6.0-cp313-cp313-manylinux_2_39_%s.whl",
			     arm ? "x86_64" : "aarch64");
	test_write(test_path("%s", wheel), "x");
	const char *args = arena_printf(&ran.arena, "test '%s' --release 2.6.0-debian --offline",
					test_path("%s", wheel));
	assert_int_not_equal(ptbuild(args), 0);
	assert_contains(err_text(), "world debian13+tests13");
	ptbuild(arena_printf(&ran.arena, "%s --root world:debian13", args));
	assert_contains(err_text(), "world debian13+tests13");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(cache_info_of_an_empty_store),
		T(cache_in_a_directory_that_is_not_utf8),
		T(cache_info_counts),
		T(cache_verify_of_good_objects),
		T(cache_verify_moves_away_what_is_wrong),
		T(cache_verify_is_interrupted),
		T(cache_gc_needs_a_rule),
		T(cache_gc_spares_what_was_just_used),
		T(cache_gc_removes_the_old),
		T(full_output_is_a_system_error),
		T(closed_output_is_said),
		T(a_store_that_cannot_be_looked_into),
		T(verify_needs_a_wheel),
		T(verify_says_its_rules),
		T(verify_against_what_does_not_exist),
		T(verify_in_lines),
		T(verify_takes_the_build_paths_of_ptbuilds_own_wheel),
		T(verify_refuses_what_is_no_archive),
		T(fetch_offline_without_the_source_names_it),
		T(doctor_reports_every_line_and_the_worst),
		T(doctor_compiles_with_the_profiles_flags),
		T(doctor_finds_the_missing_tool),
		T(bench_on_a_gpu_needs_no_sandbox),
		T(a_world_needs_the_sandbox),
		T(repack_of_a_wheel_refuses_what_it_does_not_use),
		T(a_page_that_cannot_be_written_is_told_at_once),
		T(shell_finds_the_tree_of_a_variant_with_an_open_toolkit),
		T(test_wheel_of_another_platform_is_tested_in_its_world),
	};

	return cmocka_run_group_tests_name("actions", tests, NULL, NULL);
}
