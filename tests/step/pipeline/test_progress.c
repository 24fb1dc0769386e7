#include "support.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "step/pipeline/cost.h"

struct fixture {
	struct arena arena;
	struct weights weights;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.weights = {.release = ""}};
	*state = &f;
	test_dir();
	return 0;
}

static int teardown(void **state)
{
	arena_release(&((struct fixture *)*state)->arena);
	return test_teardown(state);
}

static void durations_and_sizes_for_people(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} durations[] = {{0, "1 s"},
			 {40.4, "40 s"},
			 {89.2, "89 s"},
			 {90, "2 min"},
			 {3600, "60 min"},
			 {5400, "1 h 30 min"},
			 {86400 + 120, "24 h 2 min"}};
	char text[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
		size_time(text, sizeof(text), durations[i].seconds);
		assert_string_equal(text, durations[i].text);
	}

	progress_bytes(text, sizeof(text), 812ULL << 20);
	assert_string_equal(text, "812 MiB");
	progress_bytes(text, sizeof(text), 3174ULL << 20);
	assert_string_equal(text, "3.1 GiB");
}

/* A build's life as the observer hears of it: ninja prints the line and then writes its log. */
static void act(struct fixture *f, struct log *log)
{
	const struct run run = {.log = log, .cancel_fd = -1};
	const struct progress_request q = {.package = "pytorch",
					   .build_dir = arena_strdup(&f->arena, test_path("tree")),
					   .weights = &f->weights,
					   .jobs = 2};
	struct progress *p = progress_new(&q, &run, &f->arena);
	const struct build_observer *o = progress_observer(p);
	AUTO_BUF struct buf edges = {0}, made = {0};

	buf_addstr(&made, "# ninja log v6\n");
	for (unsigned i = 0; i < 60; i++)
		buf_printf(&edges, "build %03u.o: CXX_COMPILER__x %03u.cpp\n", i, i);
	test_write(test_path("tree/src/build/build.ninja"), buf_cstr(&edges));
	progress_step(p, "unpack");
	progress_step(p, "build");
	o->begin("configure", o->user);
	o->line("-- The CXX compiler identification is GNU", 10, o->user);
	o->end(o->user);
	o->begin("build", o->user);
	o->line("[not/ninja] x", 13, o->user);
	o->line("[9/3] backwards", 15, o->user);
	for (unsigned i = 1; i <= 60; i++) {
		char line[64];
		int n = snprintf(line, sizeof(line), "[%u/60] Building CXX object %03u.o", i,
				 i - 1);
		log->status_at -= 2.5; /* so much time passes */
		o->line(line, (size_t)n, o->user);
		buf_printf(&made, "%u\t%u\t0\t%03u.o\ta\n", i * 2500 - 2500, i * 2500, i - 1);
		test_write(test_path("tree/src/build/.ninja_log"), buf_cstr(&made));
		o->tick(o->user);
	}

	o->end(o->user);
}

static size_t count_of(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

static void elsewhere_a_line_a_minute_and_a_step(void **state)
{
	struct fixture *f = *state;
	struct log log;
	int fd = open(test_path("said"), O_RDWR | O_CREAT, 0600);

	log_init(&log, fd, LOG_NORMAL);
	act(f, &log);
	close(fd);
	char *said = test_read(test_path("said"));
	assert_int_equal(count_of(said, "pytorch: unpack\n"), 1);
	assert_int_equal(count_of(said, "pytorch: build\n"), 1);
	assert_int_equal(count_of(said, "pytorch: configure\n"), 1);
	assert_int_equal(count_of(said, "\n"), 3 + 2); /* 60 commands in 150 seconds */
	assert_contains(said, "pytorch: build 24/60, 38%, ");
	assert_contains(said, " left\n");
	assert_int_equal(count_of(said, "\033"), 0);
	free(said);
}

/* torchaudio runs CMake by itself, below the tree's
 * build directory; outputs are named from there. */
static void a_build_below_the_tree_s_is_found(void **state)
{
	struct fixture *f = *state;
	struct log log;
	int fd = open(test_path("said"), O_RDWR | O_CREAT, 0600);
	const struct run run = {.log = &log, .cancel_fd = -1};
	struct weight units[] = {{"temp/0.o", 9}, {"temp/1.o", 91}};

	f->weights.units = units;
	f->weights.count = 2;
	log_init(&log, fd, LOG_NORMAL);
	test_write(test_path("tree/src/build/temp/build.ninja"),
		   "build 1.o: CXX 1.cpp\nbuild 0.o: CXX 0.cpp\n");
	test_write(test_path("tree/src/build/temp/.ninja_log"), "# ninja log v6\n");
	const struct progress_request q = {.package = "torchaudio",
					   .build_dir = arena_strdup(&f->arena, test_path("tree")),
					   .weights = &f->weights};
	const struct build_observer *o = progress_observer(progress_new(&q, &run, &f->arena));
	const char *line = "  [1/6] Building CXX object 1.o";
	o->begin("build", o->user);
	o->line(line, strlen(line), o->user);
	test_write(test_path("tree/src/build/temp/.ninja_log"),
		   "# ninja log v6\n0\t9100\t0\t1.o\ta\n");
	log.status_at -= 100;
	o->tick(o->user);
	o->end(o->user);
	close(fd);
	char *said = test_read(test_path("said"));
	assert_contains(said, "torchaudio: build 1/6, 91%");
	free(said);
}

static void quiet_says_nothing(void **state)
{
	struct fixture *f = *state;
	struct log log;
	int fd = open(test_path("said"), O_RDWR | O_CREAT, 0600);

	log_init(&log, fd, LOG_QUIET);
	act(f, &log);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	close(fd);
}

static void on_a_terminal_one_line_is_rewritten(void **state)
{
	struct fixture *f = *state;
	struct log log;
	int master, slave;
	char said[65536];
	size_t len = 0;
	struct winsize size = {.ws_col = 60, .ws_row = 24};

	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	fcntl(master, F_SETFL, O_NONBLOCK);
	setenv("TERM", "xterm", 1);
	log_init(&log, slave, LOG_NORMAL);
	assert_true(log.tty);
	/* No more than the terminal's buffer holds. */
	act(f, &log);
	for (ssize_t n; (n = read(master, said + len, sizeof(said) - 1 - len)) > 0;)
		len += (size_t)n;
	said[len] = '\0';
	close(slave);
	close(master);
	assert_int_equal(count_of(said, "\n"), 0);
	assert_contains(said, "\r\033[Kpytorch: build 60/60, 98%, ");
	for (const char *p = strstr(said, "\033[K"); p; p = strstr(p, "\033[K")) {
		p += 3;
		assert_true(strcspn(p, "\r") <= 59);
	}

	assert_string_equal(said + len - 4, "\r\033[K"); /* taken off at the end */
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(durations_and_sizes_for_people),      T(elsewhere_a_line_a_minute_and_a_step),
		T(a_build_below_the_tree_s_is_found),   T(quiet_says_nothing),
		T(on_a_terminal_one_line_is_rewritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
