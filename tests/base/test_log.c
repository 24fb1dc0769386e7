#include "support.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"

/* A logger that writes to one end, and what came out at the other. */
struct ends {
	int in;
	int out;
	char text[65536];
};

/* A terminal hands its bytes over in its own time: at least as
 * much as is wanted, and a moment for what should not come. */
static void expect(struct ends *x, const char *want)
{
	size_t len = 0, wanted = strlen(want);
	struct pollfd p = {.fd = x->out, .events = POLLIN};

	while (len < sizeof(x->text) - 1 && poll(&p, 1, len < wanted ? 10000 : 30) > 0) {
		ssize_t n = read(x->out, x->text + len, sizeof(x->text) - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}

	x->text[len] = '\0';
	assert_string_equal(x->text, want);
}

static void open_pipe(struct ends *x)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	x->out = fds[0];
	x->in = fds[1];
}

static void open_terminal(struct ends *x, unsigned short columns)
{
	struct winsize ws = {.ws_row = 24, .ws_col = columns};
	struct termios raw;

	assert_int_equal(openpty(&x->out, &x->in, NULL, NULL, &ws), 0);
	assert_int_equal(tcgetattr(x->in, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(x->in, TCSANOW, &raw), 0);
	assert_int_equal(fcntl(x->out, F_SETFL, O_NONBLOCK), 0);
	setenv("TERM", "xterm", 1);
	unsetenv("COLUMNS");
	unsetenv("NO_COLOR");
}

static void close_ends(struct ends *x)
{
	close(x->in);
	close(x->out);
}

static void levels_decide_what_is_said(void **state)
{
	(void)state;
	struct ends x;
	open_pipe(&x);
	static const struct {
		enum log_level level;
		const char *want;
	} cases[] = {
		{LOG_QUIET, ""},
		{LOG_NORMAL, "i 1\nwarning: w 3\n"},
		{LOG_VERBOSE, "i 1\nv 2\nwarning: w 3\n"},
		{LOG_DEBUG, "i 1\nv 2\nwarning: w 3\n"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct log l;
		log_init(&l, x.in, cases[i].level);
		log_info(&l, "i %d", 1);
		log_verbose(&l, "v %d", 2);
		log_warn(&l, "w %d", 3);
		expect(&x, cases[i].want);
	}

	close_ends(&x);
}

static void long_lines_are_whole(void **state)
{
	(void)state;
	struct ends x;
	open_pipe(&x);
	struct log l;
	log_init(&l, x.in, LOG_NORMAL);
	log_info(&l, "%20000d", 7);
	char want[20002];
	snprintf(want, sizeof(want), "%20000d\n", 7);
	expect(&x, want);
	close_ends(&x);
}

static void status_off_a_terminal_is_rare_plain_lines(void **state)
{
	(void)state;
	struct ends x;
	open_pipe(&x);
	struct log l;
	log_init(&l, x.in, LOG_NORMAL);
	assert_false(l.tty);
	log_status(&l, "one");
	log_status(&l, "two");
	log_wait(&l, "a terminal's");
	log_status_end(&l);
	expect(&x, "one\n");
	l.status_at -= 61;
	log_status(&l, "three");
	expect(&x, "three\n");
	close_ends(&x);
}

static void quiet_has_no_status(void **state)
{
	(void)state;
	struct ends x;
	open_pipe(&x);
	struct log l;
	log_init(&l, x.in, LOG_QUIET);
	log_status(&l, "one");
	log_status_end(&l);
	expect(&x, "");
	close_ends(&x);
}

static void status_on_a_terminal_is_rewritten(void **state)
{
	(void)state;
	struct ends x;
	open_terminal(&x, 40);
	struct log l;
	log_init(&l, x.in, LOG_NORMAL);
	assert_true(l.tty);
	log_status(&l, "step %d", 1);
	log_status(&l, "too soon");
	expect(&x, "\r\033[Kstep 1");
	l.status_at -= 1;
	log_status(&l, "step 2");
	expect(&x, "\r\033[Kstep 2");
	log_wait(&l, "step 3");
	expect(&x, "\r\033[Kstep 3");
	log_status_end(&l);
	log_status_end(&l);
	expect(&x, "\r\033[K");
	close_ends(&x);
}

static void message_clears_the_status_first(void **state)
{
	(void)state;
	struct ends x;
	open_terminal(&x, 40);
	struct log l;
	log_init(&l, x.in, LOG_NORMAL);
	log_status(&l, "busy");
	log_warn(&l, "odd");
	expect(&x, "\r\033[Kbusy\r\033[K\033[33mwarning:\033[0m odd\n");
	log_info(&l, "next");
	expect(&x, "next\n");
	close_ends(&x);
}

static void status_is_cut_to_the_width(void **state)
{
	(void)state;
	struct ends x;
	open_terminal(&x, 10);
	struct log l;
	log_init(&l, x.in, LOG_NORMAL);
	log_status(&l, "0123456789abcdef");
	expect(&x, "\r\033[K012345678");
	l.status_at -= 1;
	log_status(&l, "0123\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
	expect(&x, "\r\033[K0123\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
	close_ends(&x);
}

static void control_bytes_do_not_reach_the_status_line(void **state)
{
	(void)state;
	struct ends x;
	open_terminal(&x, 40);
	struct log l;
	log_init(&l, x.in, LOG_NORMAL);
	log_status(&l, "a\tb\033[2Jc\nd");
	expect(&x, "\r\033[Ka b\\x1b[2Jc d");
	close_ends(&x);
}

static void dumb_terminals_are_no_terminals(void **state)
{
	(void)state;
	struct ends x;
	open_terminal(&x, 40);
	struct log l;
	setenv("TERM", "dumb", 1);
	log_init(&l, x.in, LOG_NORMAL);
	assert_false(l.tty);
	unsetenv("TERM");
	log_init(&l, x.in, LOG_NORMAL);
	assert_false(l.tty);
	close_ends(&x);
}

static void clock_goes_forward(void **state)
{
	(void)state;
	double a = log_seconds();
	usleep(2000);
	double b = log_seconds();
	assert_true(b - a >= 0.002 && b - a < 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_decide_what_is_said),
		cmocka_unit_test(long_lines_are_whole),
		cmocka_unit_test(status_off_a_terminal_is_rare_plain_lines),
		cmocka_unit_test(quiet_has_no_status),
		cmocka_unit_test(status_on_a_terminal_is_rewritten),
		cmocka_unit_test(message_clears_the_status_first),
		cmocka_unit_test(status_is_cut_to_the_width),
		cmocka_unit_test(control_bytes_do_not_reach_the_status_line),
		cmocka_unit_test(dumb_terminals_are_no_terminals),
		cmocka_unit_test(clock_goes_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
