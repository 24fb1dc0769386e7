#include "store_fixture.h"

#include <math.h>
#include <sys/wait.h>

#include "cache/history.h"

#define MIB (UINT64_C(1) << 20)

static const struct history *load(struct fixture *f)
{
	return history_load(f->store, "pytorch", "2.6.0-debian", test_run(), &f->arena);
}

static void merge(struct fixture *f, const struct history_unit *units, size_t count)
{
	assert_ok(history_merge(f->store, "pytorch", "2.6.0-debian", units, count, test_run(), &f->err), &f->err);
}

static void merge_one(struct fixture *f, const char *path, double seconds, uint64_t peak)
{
	const struct history_unit u = {.path = path, .seconds = seconds, .peak_bytes = peak};
	merge(f, &u, 1);
}

static void without_a_file_nothing_is_known(void **state)
{
	const struct history *h = load(*state);
	assert_int_equal(h->count, 0);
	assert_int_equal(h->builds, 0);
	assert_null(history_find(h, "a.o"));
	assert_int_equal(history_peak(h, HISTORY_COMPILE, 100), 0);
}

static void what_was_merged_is_found(void **state)
{
	const struct history_unit units[] = {
		{.path = "z dir/b.cpp.o", .seconds = 2.5, .peak_bytes = 300 * MIB},
		{.path = "a.cu.o", .seconds = 70.25, .peak_bytes = 4000 * MIB, .kind = HISTORY_HEAVY},
		{.path = "lib/libtorch_cpu.so", .seconds = 4, .peak_bytes = 2000 * MIB, .kind = HISTORY_LINK},
	};
	merge(*state, units, 3);
	const struct history *h = load(*state);
	assert_int_equal(h->count, 3);
	assert_int_equal(h->builds, 1);
	const struct history_unit *u = history_find(h, "a.cu.o");
	assert_non_null(u);
	assert_true(u->seconds == 70.25 && u->peak_bytes == 4000 * MIB && u->kind == HISTORY_HEAVY && u->seen == 1);
	assert_non_null(history_find(h, "z dir/b.cpp.o"));
	assert_int_equal(history_find(h, "lib/libtorch_cpu.so")->kind, HISTORY_LINK);
	assert_null(history_find(h, "b.cpp.o"));
	assert_string_equal(h->units[0].path, "a.cu.o");
}

static void packages_and_releases_are_apart(void **state)
{
	struct fixture *f = *state;
	merge_one(f, "a.o", 1, 1);
	assert_int_equal(history_load(f->store, "pytorch", "2.7.1", test_run(), &f->arena)->count, 0);
	assert_int_equal(history_load(f->store, "torchvision", "2.6.0-debian", test_run(), &f->arena)->count, 0);
}

static void seconds_are_the_mean_and_peaks_the_largest(void **state)
{
	merge_one(*state, "a.o", 10, 500);
	merge_one(*state, "a.o", 20, 400);
	const struct history_unit *u = history_find(load(*state), "a.o");
	assert_true(u->seconds == 15);
	assert_int_equal(u->peak_bytes, 500);
	assert_int_equal(u->seen, 2);
}

static void what_is_not_known_leaves_what_was(void **state)
{
	merge_one(*state, "a.o", 10, 500);
	merge_one(*state, "a.o", 0, 0);
	const struct history_unit *u = history_find(load(*state), "a.o");
	assert_true(u->seconds == 10);
	assert_int_equal(u->peak_bytes, 500);
}

static void one_path_twice_in_a_build_is_one_unit(void **state)
{
	const struct history_unit units[] = {
		{.path = "a.o", .seconds = 1}, {.path = "b.o", .seconds = 5}, {.path = "a.o", .peak_bytes = 7}};
	merge(*state, units, 3);
	const struct history *h = load(*state);
	assert_int_equal(h->count, 2);
	assert_true(history_find(h, "a.o")->seconds == 1);
	assert_int_equal(history_find(h, "a.o")->peak_bytes, 7);
}

static void what_cannot_be_kept_is_left_out(void **state)
{
	struct fixture *f = *state;
	char *longer = arena_alloc(&f->arena, HISTORY_MAX_PATH + 2);
	memset(longer, 'x', HISTORY_MAX_PATH + 1);
	const struct history_unit units[] = {
		{.path = "line\nbreak.o", .seconds = 1}, {.path = "", .seconds = 1},
		{.path = longer, .seconds = 1},          {.path = "negative.o", .seconds = -1},
		{.path = "nan.o", .seconds = NAN},       {.path = "kind.o", .kind = HISTORY_KINDS},
		{.path = "good.o", .seconds = 1}};
	merge(f, units, ARRAY_LEN(units));
	const struct history *h = load(f);
	assert_int_equal(h->count, 1);
	assert_string_equal(h->units[0].path, "good.o");
}

static void peaks_by_share_of_the_measured_units(void **state)
{
	struct fixture *f = *state;
	struct history_unit units[101] = {{0}};
	for (unsigned i = 0; i < 100; i++)
		units[i] =
			(struct history_unit){.path = arena_printf(&f->arena, "%u.o", i), .peak_bytes = (i + 1) * MIB};
	units[100] = (struct history_unit){.path = "unmeasured.o", .seconds = 3};
	merge(f, units, 101);
	const struct history *h = load(f);
	assert_int_equal(history_measured(h, HISTORY_COMPILE), 100);
	assert_int_equal(history_measured(h, HISTORY_LINK), 0);
	assert_int_equal(history_peak(h, HISTORY_COMPILE, 100), 100 * MIB);
	assert_int_equal(history_peak(h, HISTORY_COMPILE, 95), 95 * MIB);
	assert_int_equal(history_peak(h, HISTORY_COMPILE, 1), MIB);
	assert_int_equal(history_peak(h, HISTORY_LINK, 95), 0);
}

static void it_is_bounded_and_the_latest_stay(void **state)
{
	struct fixture *f = *state;
	size_t count = HISTORY_MAX_UNITS - 10;
	struct history_unit *units = arena_array(&f->arena, count, sizeof(*units));
	for (size_t i = 0; i < count; i++)
		units[i] = (struct history_unit){.path = arena_printf(&f->arena, "old/%zu.o", i), .seconds = 1};
	merge(f, units, count);
	for (size_t i = 0; i < 100; i++)
		units[i].path = arena_printf(&f->arena, "new/%zu.o", i);
	merge(f, units, 100);
	const struct history *h = load(f);
	assert_int_equal(h->count, HISTORY_MAX_UNITS);
	for (size_t i = 0; i < 100; i++)
		assert_non_null(history_find(h, units[i].path));
}

static void a_damaged_file_is_ignored_and_replaced(void **state)
{
	struct fixture *f = *state;
	const char *path = in_store(f, "history/pytorch-2.6.0-debian");
	merge_one(f, "a.o", 10, 500);
	char *text = test_read(path);
	for (size_t i = 0; i < strlen(text); i++) {
		struct history h;
		char *damaged = arena_strdup(&f->arena, text);
		damaged[i] ^= 1;
		assert_err(history_parse(damaged, strlen(damaged), "x", &f->arena, &h, &f->err), &f->err, ERR_INTEGRITY,
			   "x");
		assert_err(history_parse(text, i, "x", &f->arena, &h, &f->err), &f->err, ERR_INTEGRITY, "x");
	}
	text[strlen(text) - 3] ^= 1;
	test_write(path, text);
	free(text);
	assert_int_equal(load(f)->count, 0);
	merge_one(f, "b.o", 3, 0);
	const struct history *h = load(f);
	assert_int_equal(h->count, 1);
	assert_int_equal(h->builds, 1);
	assert_string_equal(h->units[0].path, "b.o");
}

static void damage_is_warned_of(void **state)
{
	struct fixture *f = *state;
	int fds[2];
	char said[512] = "";
	struct log log;
	const struct run run = {.log = &log, .cancel_fd = -1};
	test_write(in_store(f, "history/pytorch-2.6.0-debian"), "something else\n");
	assert_int_equal(pipe(fds), 0);
	log_init(&log, fds[1], LOG_NORMAL);
	assert_int_equal(history_load(f->store, "pytorch", "2.6.0-debian", &run, &f->arena)->count, 0);
	close(fds[1]);
	assert_true(read(fds[0], said, sizeof(said) - 1) > 0);
	close(fds[0]);
	assert_contains(said, "warning: ");
	assert_contains(said, "history/pytorch-2.6.0-debian");
}

/* A right digest does not make wrong lines right. */
static void assert_refused(struct fixture *f, const char *body, const char *why)
{
	char digest[DIGEST_HEX_LEN + 1];
	struct history h;
	digest_data(body, strlen(body), digest);
	const char *text = arena_printf(&f->arena, "ptbuild history 1 %s %s", digest, body);
	assert_err(history_parse(text, strlen(text), "file", &f->arena, &h, &f->err), &f->err, ERR_INTEGRITY, why);
}

static void wrong_lines_are_refused_by_number(void **state)
{
	assert_refused(*state, "1", "file:1");
	assert_refused(*state, "one\n", "file:1");
	assert_refused(*state, "1 2\n", "file:1");
	assert_refused(*state, "1\ncompile 10 5 1 a.o\nlink 3 4\n", "file:3");
	assert_refused(*state, "1\ncompiled 10 5 1 a.o\n", "file:2");
	assert_refused(*state, "1\ncompile -1 5 1 a.o\n", "file:2");
	assert_refused(*state, "1\ncompile 99999999999999 5 1 a.o\n", "file:2");
	assert_refused(*state, "1\ncompile 1 99999999999999999999999 1 a.o\n", "file:2");
	assert_refused(*state, "1\ncompile 1 5 2 a.o\n", "build number above");
	assert_refused(*state, "1\ncompile 1 5 1 b.o\ncompile 1 5 1 a.o\n", "not in order");
	assert_refused(*state, "1\ncompile 1 5 1 a.o\ncompile 1 5 1 a.o\n", "not in order");
	assert_refused(*state, "1\ncompile 1 5 1 a.o", "no end");
}

static void names_that_are_no_file_are_refused(void **state)
{
	struct fixture *f = *state;
	const struct history_unit u = {.path = "a.o", .seconds = 1};
	assert_err(history_merge(f->store, "../x", "2.6.0", &u, 1, test_run(), &f->err), &f->err, ERR_CONFIG, "../x");
	assert_int_equal(history_load(f->store, "../x", "2.6.0", test_run(), &f->arena)->count, 0);
}

static void two_builds_at_once_lose_nothing(void **state)
{
	struct fixture *f = *state;
	enum { CHILDREN = 4, ROUNDS = 10 };
	pid_t pids[CHILDREN];
	for (unsigned i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			for (unsigned k = 0; k < ROUNDS; k++) {
				const struct history_unit u = {.path = arena_printf(&f->arena, "%u/%u.o", i, k),
							       .seconds = 1};
				if (history_merge(f->store, "pytorch", "2.6.0-debian", &u, 1, test_run(), &f->err) != 0)
					_exit(1);
			}
			_exit(0);
		}
	}
	for (unsigned i = 0; i < CHILDREN; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	const struct history *h = load(f);
	assert_int_equal(h->count, CHILDREN * ROUNDS);
	assert_int_equal(h->builds, CHILDREN * ROUNDS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(without_a_file_nothing_is_known),
		T(what_was_merged_is_found),
		T(packages_and_releases_are_apart),
		T(seconds_are_the_mean_and_peaks_the_largest),
		T(what_is_not_known_leaves_what_was),
		T(one_path_twice_in_a_build_is_one_unit),
		T(what_cannot_be_kept_is_left_out),
		T(peaks_by_share_of_the_measured_units),
		T(it_is_bounded_and_the_latest_stay),
		T(a_damaged_file_is_ignored_and_replaced),
		T(damage_is_warned_of),
		T(wrong_lines_are_refused_by_number),
		T(names_that_are_no_file_are_refused),
		T(two_builds_at_once_lose_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
