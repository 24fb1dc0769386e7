#include "support.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/run.h"
#include "base/sys/fs.h"
#include "step/watch/watch.h"

#define MIB (UINT64_C(1) << 20)

struct fixture {
	struct arena arena;
	struct err err;
	const char *build_dir;
	struct watch *watch;
	struct watch_result result;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){0};
	f.build_dir = arena_strdup(&f.arena, test_dir());
	*state = &f;
	if (fs_mkdirs(TRUSTED, test_path("src/build"), &f.err) != 0)
		return -1;
	const struct watch_request q = {.build_dir = f.build_dir, .interval_s = 0.05};
	return watch_start(&q, &f.watch, &f.err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	watch_free(&f->watch);
	arena_release(&f->arena);
	return test_teardown(state);
}

static void stop(struct fixture *f)
{
	watch_stop(f->watch, &f->arena, &f->result);
	f->watch = NULL;
}

static void run_to_its_end(const char *const *argv, const char *dir)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (chdir(dir) == 0)
			execv(argv[0], (char *const *)argv);
		_exit(127);
	}

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A program of a compiler's name that holds 96 MiB for a while: the
 * shell, whose words behind its command are as good as a compiler's. */
#define HOLD "python3 -c \"import time; x = bytearray(96 << 20); time.sleep(0.6)\"; true"

static void compile(struct fixture *f, const char *compiler, const char *output)
{
	const char *path = arena_strdup(&f->arena, test_path("%s", compiler));

	assert_int_equal(symlink("/bin/sh", path), 0);
	const char *const argv[] = {path, "-c", HOLD, "-o", output, NULL};
	run_to_its_end(argv, test_path("src/build"));
}

static const struct watch_unit *unit(const struct fixture *f, const char *path)
{
	for (size_t i = 0; i < f->result.units_count; i++) {
		if (strcmp(f->result.units[i].path, path) == 0)
			return &f->result.units[i];
	}

	fail_msg("no unit '%s'", path);
	return NULL;
}

static void a_unit_and_its_memory(void **state)
{
	struct fixture *f = *state;

	watch_begin(f->watch, "build");
	compile(f, "x86_64-linux-gnu-g++-14", "CMakeFiles/a.dir/x.cpp.o");
	stop(f);
	const struct watch_unit *u = unit(f, "CMakeFiles/a.dir/x.cpp.o");
	assert_true(u->peak_bytes > 96 * MIB && u->peak_bytes < 400 * MIB);
	assert_true(u->last - u->first > 0.2);
	assert_int_equal(f->result.units_count, 1);
	assert_true(f->result.steps[0].peak_memory > 96 * MIB);
	unsigned compilers = 0;
	for (size_t i = 0; i < f->result.samples_count; i++)
		compilers = f->result.samples[i].compilers > compilers
				    ? f->result.samples[i].compilers
				    : compilers;
	assert_int_equal(compilers, 1);
}

static void a_unit_by_its_full_path_is_the_same(void **state)
{
	struct fixture *f = *state;

	compile(f, "g++", test_path("src/build/temp/y.o"));
	stop(f);
	assert_true(unit(f, "temp/y.o")->peak_bytes > 96 * MIB);
}

static void other_programs_are_no_units(void **state)
{
	struct fixture *f = *state;
	const char *const argv[] = {"/bin/sh", "-c", "sleep 0.3; true", "-o", "x.o", NULL};

	run_to_its_end(argv, f->build_dir);
	stop(f);
	assert_int_equal(f->result.units_count, 0);
}

static double used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void use_processor(double seconds)
{
	for (double from = used(); used() < from + seconds;)
		;
}

static void steps_have_times_peaks_and_sizes(void **state)
{
	struct fixture *f = *state;

	test_write(test_path("src/file"), "0123456789");
	watch_begin(f->watch, "first");
	use_processor(0.2);
	watch_end(f->watch, true);
	watch_begin(f->watch, "second");
	watch_begin(f->watch, "third");
	stop(f);
	assert_int_equal(f->result.steps_count, 3);
	const struct watch_step *s = f->result.steps;
	assert_string_equal(s[0].name, "first");
	assert_int_equal(s[0].tree_bytes, 10);
	assert_true(s[0].end > s[0].begin && s[0].cpu_seconds > 0.1 && s[0].cpu_seconds < 20);
	assert_true(s[0].peak_memory > MIB && s[0].least_disk_free > 0 && s[0].peak_processes >= 1);
	assert_string_equal(s[1].name, "second");
	assert_true(s[1].begin >= s[0].end && s[1].end <= s[2].begin && s[2].end >= s[2].begin);
	assert_int_equal(s[1].tree_bytes, 0);
}

static void the_series_is_in_order_and_says_what_it_cost(void **state)
{
	struct fixture *f = *state;

	usleep(400000);
	struct watch_now now;
	watch_now(f->watch, &now);
	assert_true(now.memory_bytes > MIB && now.processes >= 1 && now.disk_free > 0);
	stop(f);
	assert_true(f->result.samples_count >= 3);
	for (size_t i = 1; i < f->result.samples_count; i++)
		assert_true(f->result.samples[i].at > f->result.samples[i - 1].at);
	assert_true(f->result.own_cpu_seconds > 0);
	assert_true(f->result.started > 1500000000);
}

static void the_series_is_bounded(void **state)
{
	struct fixture *f = *state;

	/* Each step's begin closes a point: as many as a very long build has. */
	for (unsigned i = 0; i < WATCH_MAX_SAMPLES + 10; i++)
		watch_begin(f->watch, "x");
	stop(f);
	assert_true(f->result.samples_count > WATCH_MAX_SAMPLES / 4 &&
		    f->result.samples_count <= WATCH_MAX_SAMPLES);
	assert_true(f->result.interval_s > 0.09);
	for (size_t i = 0; i < f->result.samples_count; i++)
		assert_true(f->result.samples[i].memory_bytes > MIB);
}

static void names_of_units(void **state)
{
	struct fixture *f = *state;
	struct arena *a = &f->arena;

	assert_string_equal(watch_unit_name("/b", NULL, "a/x.o", a), "a/x.o");
	assert_string_equal(watch_unit_name("/b", "/ptbuild/src/build", "a/x.o", a), "a/x.o");
	assert_string_equal(watch_unit_name("/b", "/ptbuild/src/build/temp.linux", "a/x.o", a),
			    "temp.linux/a/x.o");
	assert_string_equal(watch_unit_name("/b", "/elsewhere", "/ptbuild/src/build/x.o", a),
			    "x.o");
	assert_string_equal(watch_unit_name("/b", "/b/src/build/sub", "../x.o", a), "x.o");
	assert_string_equal(watch_unit_name("/b", NULL, "/b/src/builder/x.o", a),
			    "/b/src/builder/x.o");
}

static const char *output_of(const char *words, size_t len)
{
	return watch_output(words, len);
}
#define OUTPUT(words) output_of(words, sizeof(words))

static void outputs_of_command_lines(void **state)
{
	(void)state;
	assert_string_equal(OUTPUT("/usr/bin/c++\0-O2\0-o\0x.o\0-c\0x.cpp"), "x.o");
	assert_string_equal(OUTPUT("ccache\0/usr/bin/g++\0-o\0x.o"), "x.o");
	assert_string_equal(OUTPUT("/usr/local/cuda/bin/nvcc\0-c\0x.cu\0-o\0x.cu.o"), "x.cu.o");
	assert_string_equal(OUTPUT("g++\0-o\0a.o\0-o\0b.o"), "b.o");
	assert_null(OUTPUT("ninja\0-o\0x.o"));
	assert_null(OUTPUT("python3\0-o\0x.o"));
	assert_null(OUTPUT("notgcc\0-o\0x.o"));
	assert_null(OUTPUT("g++\0-c\0x.cpp"));
	assert_null(OUTPUT("g++\0-o"));
	assert_null(OUTPUT("g++\0-o\0"));
	assert_null(output_of("g++\0-o\0x.o", 10)); /* cut off */
	assert_null(output_of("", 0));
}

static void a_watch_that_is_not_stopped_is_freed(void **state)
{
	struct fixture *f = *state;

	watch_begin(f->watch, "open");
	watch_free(&f->watch);
	assert_null(f->watch);
	watch_free(&f->watch);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_unit_and_its_memory),
		T(a_unit_by_its_full_path_is_the_same),
		T(other_programs_are_no_units),
		T(steps_have_times_peaks_and_sizes),
		T(the_series_is_in_order_and_says_what_it_cost),
		T(the_series_is_bounded),
		T(names_of_units),
		T(outputs_of_command_lines),
		T(a_watch_that_is_not_stopped_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
