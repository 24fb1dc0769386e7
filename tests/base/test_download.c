#include "base/download.h"

#include "support.h"

#include <unistd.h>

struct shown {
	struct log log;
	int ends[2];
	char text[4096];
};

static void start(struct shown *s, bool tty)
{
	assert_int_equal(pipe(s->ends), 0);
	log_init(&s->log, s->ends[1], LOG_NORMAL);
	s->log.tty = tty;
}

static const char *text_of(struct shown *s)
{
	close(s->ends[1]);
	ssize_t n = read(s->ends[0], s->text, sizeof(s->text) - 1);
	assert_true(n >= 0);
	s->text[n] = '\0';
	close(s->ends[0]);
	return s->text;
}

static void begin_names_size_origins_and_directory(void **state)
{
	(void)state;
	const char *items[] = {"mirror 'm'", "the Python index"};
	const struct strlist of = {.items = items, .count = 2};
	const struct download one = {
		.name = "a.whl", .total = 1500000, .of = &of, .kept = "/store"};
	const struct download many = {.files = 3,
				      .total = 2000000,
				      .have = 500000,
				      .unknown = 1,
				      .of = &of,
				      .kept = "/s"};
	struct shown s;
	start(&s, false);
	download_begin(&s.log, &one);
	download_begin(&s.log, &many);
	const char *text = text_of(&s);
	assert_contains(text,
			"'a.whl' (1.5 MB) from mirror 'm' or the Python index, kept in '/store'\n");
	assert_contains(text, "3 files (at least 2.0 MB, resuming after 0.5 MB)");
}

static void show_without_terminal_waits_ten_seconds(void **state)
{
	(void)state;
	struct download_state now = {
		.files = 1, .received = 5000000, .total = 20000000, .seconds = 9};
	struct shown s;
	start(&s, false);
	download_show(&s.log, &now);
	now.seconds = 10;
	download_show(&s.log, &now);
	download_show(&s.log, &now);
	assert_string_equal(text_of(&s),
			    "downloading: 5.0 of 20.0 MB (25 %), 0.5 MB/s, 30 s left\n");
}

static void test_show_without_terminal_does_not_repeat_the_end(void **state)
{
	(void)state;
	struct download_state now = {
		.files = 1, .received = 20000000, .total = 20000000, .seconds = 100};
	struct shown s;
	start(&s, false);
	download_show(&s.log, &now);
	assert_string_equal(text_of(&s), "");
	start(&s, false);
	now.received = 19999999;
	download_show(&s.log, &now);
	assert_string_equal(text_of(&s),
			    "downloading: 20.0 of 20.0 MB (99 %), 0.2 MB/s, 0 s left\n");
	start(&s, false);
	now.received = 30000000;
	download_show(&s.log, &now);
	assert_string_equal(text_of(&s), "downloading: 30.0 MB, 0.3 MB/s\n");
}

static void show_on_a_terminal_is_a_bar(void **state)
{
	(void)state;
	const struct download_state now = {.files = 4,
					   .done = 1,
					   .failed = 1,
					   .received = 5000000,
					   .total = 10000000,
					   .seconds = 1};
	struct shown s;
	start(&s, true);
	download_show(&s.log, &now);
	const char *text = text_of(&s);
	assert_contains(text,
			"[############------------] 5.0 of 10.0 MB (50 %), 1 of 4 files, 1 failed");
	assert_null(strchr(text, '\n'));
}

static void quiet_shows_nothing(void **state)
{
	(void)state;
	const struct strlist none = {0};
	const struct download one = {.name = "a", .of = &none, .kept = "/s"};
	const struct download_state now = {.files = 1, .received = 1, .seconds = 60};
	struct shown s;
	start(&s, false);
	s.log.level = LOG_QUIET;
	download_begin(&s.log, &one);
	download_show(&s.log, &now);
	download_end(&s.log, &now);
	assert_string_equal(text_of(&s), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begin_names_size_origins_and_directory),
		cmocka_unit_test(show_without_terminal_waits_ten_seconds),
		cmocka_unit_test(test_show_without_terminal_does_not_repeat_the_end),
		cmocka_unit_test(show_on_a_terminal_is_a_bar),
		cmocka_unit_test(quiet_shows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
