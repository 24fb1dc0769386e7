#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/compile/build_parts.h"

/* A package whose setup.py does what the test wants,
 * built in the real sandbox on the host's root. */
struct world {
	struct arena arena;
	struct root root;
	struct package_row row;
	struct plan plan;
	struct tool ccache;
	struct toolchain chain;
	struct build_request q;
};

static struct setting env[] = {{.name = "CC", .value = "gcc"},
			       {.name = "CXX", .value = "g++"},
			       {.name = "MARK", .value = "of the plan"},
			       {.name = "PATH", .value = "/usr/bin:/bin"}};

static void open_world(struct world *w, const char *setup_py)
{
	struct err e = {0};

	memset(w, 0, sizeof(*w));
	assert_ok(root_open("/", &w->arena, &w->root, &e), &e);
	w->row = (struct package_row){.backend = "setuptools"};
	w->plan = (struct plan){.package = "torchvision",
				.variant = "v",
				.package_row = &w->row,
				.env = {.items = env, .count = ARRAY_LEN(env)}};
	w->ccache = (struct tool){.name = "ccache"};
	w->chain = (struct toolchain){.tools = &w->ccache, .count = 1};
	w->q = (struct build_request){.run = test_run(),
				      .plan = &w->plan,
				      .root = &w->root,
				      .kind = SANDBOX_BWRAP,
				      .toolchain = &w->chain,
				      .build_dir = arena_strdup(&w->arena, test_dir()),
				      .jobs = 3};
	test_write(test_path("src/setup.py"), setup_py);
}

/* What every well-behaved setup.py of these tests
 * does: the proof of what was compiled, and a wheel. */
#define HONEST                                                                                     \
	"import os\n"                                                                              \
	"os.makedirs('build', exist_ok=True)\n"                                                    \
	"open('build/build.ninja', 'w').write('cflags = -O2\\nbuild a.o: compile a.cpp\\n')\n"     \
	"open('/ptbuild/out/toy-1-cp313-cp313-linux_x86_64.whl', 'w').write('x')\n"

static void test_a_wheel_comes_out(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, HONEST "print('hello from the build')\n");
	assert_ok(build_run(&w.q, &w.arena, &r, &e), &e);
	assert_string_equal(path_base(r.raw_wheel), "toy-1-cp313-cp313-linux_x86_64.whl");
	assert_true(fs_exists(TRUSTED, r.raw_wheel));
	assert_int_equal(r.jobs, 3);
	assert_int_equal(r.checked.host_units, 1);
	assert_false(r.resumed);
	char *log = test_read(r.log);
	assert_contains(log, "hello from the build");
	free(log);
	arena_release(&w.arena);
}

static void test_the_build_sees_the_plans_environment_only(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	assert_int_equal(setenv("SECRET_OF_THE_HOST", "1", 1), 0);
	open_world(&w, HONEST "for k in sorted(os.environ): print('env', k, "
			      "os.environ[k])\nprint('cwd', os.getcwd())\n");
	assert_ok(build_run(&w.q, &w.arena, &r, &e), &e);
	char *log = test_read(r.log);
	assert_contains(log, "env MARK of the plan\n");
	assert_contains(log, "env MAX_JOBS 3\n");
	assert_contains(log, "cwd /ptbuild/src\n");
	assert_not_contains(log, "SECRET_OF_THE_HOST");
	free(log);
	arena_release(&w.arena);
}

/* With a compiler cache, and one job of which a compiler takes this much. */
static void use_cache(struct world *w, const char *compile)
{
	struct memory_row *memory = arena_alloc(&w->arena, sizeof(*memory));
	struct heavy_row *heavy = arena_alloc(&w->arena, sizeof(*heavy));

	*heavy = (struct heavy_row){.units = "none", .bytes = compile};
	*memory = (struct memory_row){
		.compile = compile, .link = "1M", .heavy = heavy, .heavy_count = 1};
	w->row.memory = memory;
	w->ccache.path = "/usr/bin/ccache";
	w->q.ccache_dir = path_join(&w->arena, w->q.build_dir, "cache");
	w->q.jobs = 1;
}

/* The prefix that the compiler cache is given where a compiler takes this much, with one job. */
static void see_prefix(const char *compile, const char *prefix)
{
	struct world w;
	struct err e = {0};
	struct build_result r = {0};

	open_world(&w, HONEST "print('prefix', os.environ.get('CCACHE_PREFIX'))\n"
			      "print('script', os.access('/ptbuild/cfg/ccache-heap', os.X_OK))\n");
	use_cache(&w, compile);
	assert_ok(build_run(&w.q, &w.arena, &r, &e), &e);
	char *log = test_read(r.log);
	assert_contains(log, arena_printf(&w.arena, "prefix %s\nscript True\n", prefix));
	free(log);
	arena_release(&w.arena);
}

static void test_compilers_have_a_larger_heap_where_memory_is_left(void **state)
{
	(void)state;
	/* it takes 1 GiB more, which every machine of a build has */
	see_prefix("1M", "/ptbuild/cfg/ccache-heap");
}

static void test_compilers_have_no_larger_heap_where_memory_is_short(void **state)
{
	(void)state;
	see_prefix("9000G", "");
}

static void test_a_failure_tells_the_first_error(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, "import sys\nprint('x.cpp:3:1: error: expected a "
		       "declaration')\nprint('y.cpp:9:9: error: a "
		       "later one')\nsys.exit(1)\n");
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD,
		   "torchvision: build failed with status 1: x.cpp:3:1: error: expected a "
		   "declaration");
	assert_contains(e.hint, "build.log");
	arena_release(&w.arena);
}

static void test_a_failure_without_an_error_line_tells_the_last(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, "import sys\nprint('one')\nprint('this is the end')\nsys.exit(4)\n");
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD, "status 4: this is the end");
	arena_release(&w.arena);
}

static void test_the_error_of_an_earlier_run_is_not_told_again(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, "import sys\nprint('a: error: old')\nsys.exit(1)\n");
	assert_int_equal(build_run(&w.q, &w.arena, &r, &e), -1);
	test_write(test_path("src/setup.py"), "import sys\nprint('b: error: new')\nsys.exit(1)\n");
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD, "b: error: new");
	assert_not_contains(e.msg, "old");
	arena_release(&w.arena);
}

static void test_no_wheel_is_a_failure(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, HONEST "os.remove('/ptbuild/out/toy-1-cp313-cp313-linux_x86_64.whl')\n");
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD, "left no wheel");
	arena_release(&w.arena);
}

static void test_two_wheels_are_a_failure(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, HONEST "open('/ptbuild/out/other.whl', 'w')\n");
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD, "more than one wheel");
	arena_release(&w.arena);
}

static void test_flags_that_were_not_used_are_a_failure(void **state)
{
	(void)state;
	static const char *flag[] = {"-mavx2", NULL};
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, HONEST);
	w.plan.cpu_flags = (struct strlist){.items = flag, .count = 1};
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_POLICY,
		   "is compiled without '-mavx2'");
	arena_release(&w.arena);
}

static void test_an_unknown_back_end_runs_nothing(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, "open('ran', 'w')\n");
	w.row.backend = "bazel";
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_CONFIG, "bazel");
	assert_false(fs_exists(TRUSTED, test_path("src/ran")));
	arena_release(&w.arena);
}

static void test_prepare_runs_in_its_directory(void **state)
{
	(void)state;
	static const char *argv[] = {"sh", "-c", "pwd > where; echo prepared"};
	struct command_row command = {
		.dir = "sub/dir", .argv = argv, .argv_count = 3, .why = "test"};
	struct world w;
	struct err e = {0};
	open_world(&w, "");
	test_write(test_path("src/sub/dir/x"), "");
	w.row.prepare = &command;
	w.row.prepare_count = 1;
	assert_ok(build_prepare(&w.q, test_run(), &e), &e);
	char *where = test_read(test_path("src/sub/dir/where"));
	assert_string_equal(where, "/ptbuild/src/sub/dir\n");
	free(where);
	arena_release(&w.arena);
}

static void test_a_failing_prepare_names_the_command(void **state)
{
	(void)state;
	static const char *argv[] = {"sh", "-c", "echo cannot generate; exit 3"};
	struct command_row command = {.dir = ".", .argv = argv, .argv_count = 3, .why = "test"};
	struct world w;
	struct err e = {0};
	open_world(&w, "");
	w.row.prepare = &command;
	w.row.prepare_count = 1;
	assert_err(build_prepare(&w.q, test_run(), &e), &e, ERR_BUILD, "cannot generate");
	assert_contains(e.msg, "prepare (sh -c");
	arena_release(&w.arena);
}

/* A compiler that dies while more than N jobs are asked for. */
#define DIES_ABOVE(n)                                                                              \
	"import os, sys\n"                                                                         \
	"open('runs', 'a').write(os.environ['MAX_JOBS'] + ' ')\n"                                  \
	"if int(os.environ['MAX_JOBS']) > " #n ":\n"                                               \
	"    print('FAILED: d/x.o \\nc++: fatal error: Killed signal terminated program "          \
	"cc1plus')\n"                                                                              \
	"    sys.exit(1)\n"

static void test_fewer_jobs_after_a_kill(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, DIES_ABOVE(2) HONEST);
	w.q.jobs = 9;
	assert_ok(build_run(&w.q, &w.arena, &r, &e), &e);
	char *runs = test_read(test_path("src/runs"));
	assert_string_equal(runs, "9 4 2 ");
	free(runs);
	assert_int_equal(r.jobs, 2);
	assert_int_equal(r.reductions_count, 2);
	assert_int_equal(r.reductions[0].from, 9);
	assert_int_equal(r.reductions[0].to, 4);
	assert_int_equal(r.reductions[1].to, 2);
	assert_string_equal(r.reductions[1].why,
			    "d/x.o: c++: fatal error: Killed signal terminated program cc1plus");
	assert_int_equal(strlen(r.reductions[0].at), strlen("2026-01-31T12:00:00Z"));
	char *log = test_read(r.log);
	assert_contains(log, "ptbuild: torchvision: memory ran short at 20");
	assert_contains(log, "from 9 jobs at once to 4: d/x.o: c++: fatal error");
	free(log);
	arena_release(&w.arena);
}

static void test_one_job_that_does_not_fit_is_an_error(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, DIES_ABOVE(0) HONEST);
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_SYSTEM,
		   "does not fit into memory even with one job at a time");
	assert_contains(e.msg, "d/x.o: c++: fatal error: Killed");
	assert_contains(e.hint, "more memory");
	char *runs = test_read(test_path("src/runs"));
	assert_string_equal(runs, "3 1 ");
	free(runs);
	arena_release(&w.arena);
}

static void test_one_job_is_tried_without_the_larger_heap(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(
		&w,
		"import os, sys\n"
		"open('runs', 'a').write(os.environ['CCACHE_PREFIX'] + ' ')\n"
		"if os.environ['CCACHE_PREFIX']:\n"
		"    print('d/x.o: c++: fatal error: Killed signal terminated program cc1plus')\n"
		"    sys.exit(1)\n" HONEST);
	use_cache(&w, "1M");
	assert_ok(build_run(&w.q, &w.arena, &r, &e), &e);
	assert_int_equal(r.reductions_count, 0);
	char *log = test_read(r.log);
	assert_contains(log, "ptbuild: torchvision: memory ran short: once more, without larger "
			     "heaps: d/x.o: c++");
	free(log);
	/* the next one remembers it */
	assert_ok(build_run(&w.q, &w.arena, &r, &e), &e);
	char *runs = test_read(test_path("src/runs"));
	assert_string_equal(runs, "/ptbuild/cfg/ccache-heap   ");
	free(runs);
	arena_release(&w.arena);
}

static void test_the_next_run_begins_with_what_fitted(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, DIES_ABOVE(2) "print('x: error: stop'); sys.exit(1)\n" HONEST);
	w.q.jobs = 9;
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD, "x: error: stop");
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD, "x: error: stop");
	char *runs = test_read(test_path("src/runs"));
	assert_string_equal(runs, "9 4 2 2 ");
	free(runs);
	arena_release(&w.arena);
}

static void test_other_failures_lower_nothing(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, "import os, sys\nopen('runs', 'a').write(os.environ['MAX_JOBS'] + ' "
		       "')\nsys.exit(137)\n");
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD, "status 137");
	char *runs = test_read(test_path("src/runs"));
	assert_string_equal(runs, "3 ");
	free(runs);
	arena_release(&w.arena);
}

static void test_a_failure_names_the_unit_and_how_to_repeat_it(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(
		&w,
		"import os, sys\nos.makedirs('build', exist_ok=True)\nopen('build/build.ninja', "
		"'w').write('')\n"
		"print('FAILED: d/it has.cpp.o ')\nprint('it.cpp:3:1: error: no')\nsys.exit(1)\n");
	w.q.shell_options = "--cache /somewhere";
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD,
		   "failed with status 1 in unit 'd/it': it.cpp:3:1: error: no");
	assert_contains(e.hint, "ptbuild shell v --cache /somewhere -- ninja -C build d/it\n");
	assert_contains(e.hint, "log/build.log'");
	arena_release(&w.arena);
}

static void test_a_unit_of_an_extension_is_found_by_its_path(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct build_result r = {0};
	open_world(&w, "import os, sys\nos.makedirs('build/temp.x/csrc', "
		       "exist_ok=True)\nopen('build/temp.x/build.ninja', "
		       "'w').write('')\n"
		       "print('FAILED: /ptbuild/src/build/temp.x/csrc/it.o ')\nprint('it.cpp:3:1: "
		       "error: no')\nsys.exit(1)\n");
	assert_err(build_run(&w.q, &w.arena, &r, &e), &e, ERR_BUILD,
		   "in unit '/ptbuild/src/build/temp.x/csrc/it.o'");
	assert_contains(
		e.hint,
		"ptbuild shell v -- ninja -C build/temp.x /ptbuild/src/build/temp.x/csrc/it.o\n");
	arena_release(&w.arena);
}

static void test_the_last_run_is_judged(void **state)
{
	(void)state;
	static const struct {
		struct build_state last, now;
		enum build_state_verdict verdict;
		unsigned cap;
	} cases[] = {
		/* It was killed, and so was something else, by the kernel, in this boot. */
		{{"a", 3, 1000, 6, false, true},
		 {"a", 4, 1000, 0, false, false},
		 BUILD_STATE_KILLED,
		 3},
		{{"a", 3, 1000, 6, false, true},
		 {"a", 3, 1000, 0, false, false},
		 BUILD_STATE_FINE,
		 0},
		{{"a", 3, 1000, 6, false, true},
		 {"b", 4, 1000, 0, false, false},
		 BUILD_STATE_FINE,
		 0},
		{{"a", 3, 1000, 6, false, false},
		 {"a", 4, 1000, 0, false, false},
		 BUILD_STATE_FINE,
		 0},
		{{"a", 3, 1000, 1, false, true},
		 {"a", 4, 1000, 0, false, false},
		 BUILD_STATE_KILLED,
		 1},
		/* It had to lower, and there is hardly more memory now. */
		{{"a", 3, 1000, 2, true, false},
		 {"b", 0, 1200, 0, false, false},
		 BUILD_STATE_LOWERED,
		 2},
		{{"a", 3, 1000, 2, true, true},
		 {"a", 3, 900, 0, false, false},
		 BUILD_STATE_LOWERED,
		 2},
		{{"a", 3, 1000, 2, true, false},
		 {"a", 3, 1300, 0, false, false},
		 BUILD_STATE_FINE,
		 0},
		{{"a", 3, 1000, 1, true, true},
		 {"a", 9, 1000, 0, false, false},
		 BUILD_STATE_LOWERED,
		 1},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned cap = 0;
		enum build_state_verdict v = build_state_judge(&cases[i].last, &cases[i].now, &cap);
		if (v != cases[i].verdict || cap != cases[i].cap)
			fail_msg("case %zu: verdict %d, cap %u", i, (int)v, cap);
	}
}

static void test_a_damaged_state_file_is_no_state(void **state)
{
	(void)state;
	static const char *const texts[] = {"",
					    "{",
					    "[]",
					    "{\"boot\":1}",
					    "{\"boot\":\"x\",\"oom_kills\":-1,\"memory\":1,"
					    "\"jobs\":1,\"lowered\":true,\"running\":true}",
					    "{\"boot\":\"x\",\"oom_kills\":1,\"memory\":1,\"jobs\":"
					    "0,\"lowered\":true,\"running\":true}"};
	struct build_state s = {.jobs = 77};
	struct err e = {0};
	test_dir();
	assert_false(build_state_read(test_path("."), &s));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		test_write(test_path("state.json"), texts[i]);
		assert_false(build_state_read(test_path("."), &s));
	}

	assert_int_equal(s.jobs, 77);
	struct build_state kept = {
		.boot = "abc", .oom_kills = 3, .memory = 4, .jobs = 5, .lowered = true};
	assert_ok(build_state_write(test_path("."), &kept, &e), &e);
	assert_true(build_state_read(test_path("."), &s));
	assert_string_equal(s.boot, "abc");
	assert_true(s.oom_kills == 3 && s.memory == 4 && s.jobs == 5 && s.lowered && !s.running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_wheel_comes_out, test_teardown),
		cmocka_unit_test_teardown(test_the_build_sees_the_plans_environment_only,
					  test_teardown),
		cmocka_unit_test_teardown(test_compilers_have_a_larger_heap_where_memory_is_left,
					  test_teardown),
		cmocka_unit_test_teardown(test_compilers_have_no_larger_heap_where_memory_is_short,
					  test_teardown),
		cmocka_unit_test_teardown(test_a_failure_tells_the_first_error, test_teardown),
		cmocka_unit_test_teardown(test_a_failure_without_an_error_line_tells_the_last,
					  test_teardown),
		cmocka_unit_test_teardown(test_the_error_of_an_earlier_run_is_not_told_again,
					  test_teardown),
		cmocka_unit_test_teardown(test_no_wheel_is_a_failure, test_teardown),
		cmocka_unit_test_teardown(test_two_wheels_are_a_failure, test_teardown),
		cmocka_unit_test_teardown(test_flags_that_were_not_used_are_a_failure,
					  test_teardown),
		cmocka_unit_test_teardown(test_an_unknown_back_end_runs_nothing, test_teardown),
		cmocka_unit_test_teardown(test_prepare_runs_in_its_directory, test_teardown),
		cmocka_unit_test_teardown(test_a_failing_prepare_names_the_command, test_teardown),
		cmocka_unit_test_teardown(test_fewer_jobs_after_a_kill, test_teardown),
		cmocka_unit_test_teardown(test_one_job_that_does_not_fit_is_an_error,
					  test_teardown),
		cmocka_unit_test_teardown(test_one_job_is_tried_without_the_larger_heap,
					  test_teardown),
		cmocka_unit_test_teardown(test_the_next_run_begins_with_what_fitted, test_teardown),
		cmocka_unit_test_teardown(test_other_failures_lower_nothing, test_teardown),
		cmocka_unit_test_teardown(test_a_failure_names_the_unit_and_how_to_repeat_it,
					  test_teardown),
		cmocka_unit_test_teardown(test_a_unit_of_an_extension_is_found_by_its_path,
					  test_teardown),
		cmocka_unit_test_teardown(test_the_last_run_is_judged, test_teardown),
		cmocka_unit_test_teardown(test_a_damaged_state_file_is_no_state, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
