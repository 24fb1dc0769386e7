#include "support.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "step/pipeline/progress.h"

struct fixture {
	struct arena arena;
	struct history known;
	struct weights weights;
	struct eta *eta;
	double now;
};

static int setup(void **state)
{
	static struct fixture f;
	f = (struct fixture){.now = 1000, .weights = {.units = &f.known}};
	*state = &f;
	test_dir();
	return 0;
}

static int teardown(void **state)
{
	arena_release(&((struct fixture *)*state)->arena);
	return test_teardown(state);
}

/* `count` units "000.o", "001.o"... of so many seconds, the first of `first` seconds. */
static void know(struct fixture *f, unsigned count, double seconds, double first)
{
	struct history_unit *units = arena_array(&f->arena, count + 1, sizeof(*units));
	for (unsigned i = 0; i < count; i++)
		units[i] = (struct history_unit){.path = arena_printf(&f->arena, "%03u.o", i),
						 .seconds = i ? seconds : first};
	f->known = (struct history){.units = units, .count = count, .builds = 1};
	f->eta = eta_new(&f->weights, &f->arena);
}

static void ended(struct fixture *f, unsigned done, unsigned all, unsigned unit)
{
	const char *line = arena_printf(&f->arena, "Building CXX object %03u.o", unit);
	eta_count(f->eta, done, all, line, f->now, 2);
}

static void pass(struct fixture *f, unsigned seconds, const struct watch_running *making, size_t count)
{
	for (unsigned t = 0; t < seconds; t++) {
		f->now++;
		eta_update(f->eta, making, count, f->now);
	}
}

static double seconds_left(const struct fixture *f)
{
	return eta_look(f->eta).seconds_left;
}

#define assert_near(x, want, by)                                                                                       \
	do {                                                                                                           \
		double x_ = (x);                                                                                       \
		if (!(x_ > (want) - (by) && x_ < (want) + (by)))                                                       \
			fail_msg("%s is %g, not %g +- %g", #x, x_, (double)(want), (double)(by));                      \
	} while (0)

static void a_known_build_is_estimated_at_once(void **state)
{
	struct fixture *f = *state;
	know(f, 100, 10, 10);
	ended(f, 1, 100, 0);
	eta_update(f->eta, NULL, 0, f->now);
	assert_near(seconds_left(f), 990 / 2.0, 60); /* two jobs */
	assert_false(eta_look(f->eta).about);
}

static void weight_counts_not_number(void **state)
{
	struct fixture *f = *state;
	know(f, 100, 1, 901); /* one unit is nine tenths of all */
	for (unsigned i = 1; i < 100; i++) {
		ended(f, i, 100, i);
		pass(f, 1, NULL, 0);
	}
	struct eta_view v = eta_look(f->eta);
	assert_near(v.percent, 9.9, 0.5);
	assert_true(v.seconds_left > 400);
	ended(f, 100, 100, 0);
	pass(f, 1, NULL, 0);
	assert_near(eta_look(f->eta).percent, 100, 0.01);
	assert_near(seconds_left(f), 0, 0.01);
}

/* Ten minutes without a line, while one long unit is made: the estimate goes down with the clock and does not grow. */
static void one_long_unit_does_not_spoil_the_estimate(void **state)
{
	struct fixture *f = *state;
	know(f, 11, 10, 700);
	for (unsigned i = 1; i < 11; i++) {
		const struct watch_running making = {.path = "000.o", .age = 10.0 * i};
		pass(f, 10, &making, 1);
		ended(f, i, 11, i);
	}
	double before = seconds_left(f);
	assert_near(before, 350, 250);
	for (unsigned age = 100; age < 600; age++) {
		const struct watch_running making = {.path = "000.o", .age = age};
		pass(f, 1, &making, 1);
		assert_true(seconds_left(f) < 700 && seconds_left(f) >= 0);
	}
	assert_near(seconds_left(f), 100, 50);
}

static void a_warm_cache_is_noticed(void **state)
{
	struct fixture *f = *state;
	know(f, 1000, 10, 10);
	for (unsigned i = 0; i < 500; i++) { /* 20 a second instead of one in five */
		ended(f, i + 1, 1000, i);
		if (i % 20 == 19)
			pass(f, 1, NULL, 0);
	}
	assert_near(seconds_left(f), 25, 60);
}

/* Another GPU on the same processor: everything in C++ comes from the compiler cache at once, the kernels do not. */
static void a_warm_cache_of_one_kind_says_nothing_of_the_others(void **state)
{
	struct fixture *f = *state;
	struct ninja_edge edges[1000];
	know(f, 1000, 10, 10);
	for (unsigned i = 0; i < 1000; i++)
		edges[i] = (struct ninja_edge){.output = arena_printf(&f->arena, "%03u.o", i),
					       .rule = i < 900 ? "CXX_COMPILER__a" : "CUDA_COMPILER__b"};
	eta_plan(f->eta, edges, 1000, NULL, true);
	for (unsigned i = 0; i < 800; i++) {
		ended(f, i + 1, 1000, i);
		if (i % 20 == 19)
			pass(f, 1, NULL, 0);
	}
	for (unsigned i = 900; i < 910; i += 2) {
		for (unsigned age = 1; age <= 10; age++) {
			const struct watch_running making[] = {{.path = edges[i].output, .age = age},
							       {.path = edges[i + 1].output, .age = age}};
			pass(f, 1, making, 2);
		}
		ended(f, i - 99, 1000, i);
		ended(f, i - 98, 1000, i + 1);
	}
	pass(f, 1, NULL, 0);
	/* 90 of 10 s on two processors, and 100 of no time. */
	assert_near(seconds_left(f), 450 + 5, 30);
}

static void a_machine_that_slept_was_not_slow(void **state)
{
	struct fixture *f = *state;
	know(f, 1000, 10, 10);
	for (unsigned i = 0; i < 60; i++) {
		pass(f, 5, NULL, 0);
		ended(f, i + 1, 1000, i);
	}
	double before = seconds_left(f);
	f->now += 8 * 3600;
	pass(f, 1, NULL, 0);
	assert_near(seconds_left(f), before, before / 10);
}

static void without_earlier_builds_it_is_by_number_and_about(void **state)
{
	struct fixture *f = *state;
	know(f, 0, 0, 0);
	ended(f, 1, 100, 0);
	pass(f, 1, NULL, 0);
	assert_true(seconds_left(f) < 0); /* too early to say */
	for (unsigned i = 2; i <= 50; i++) {
		ended(f, i, 100, i);
		pass(f, 2, NULL, 0);
	}
	struct eta_view v = eta_look(f->eta);
	assert_true(v.about);
	assert_near(v.percent, 50, 0.01);
	assert_near(v.seconds_left, 100, 15);
}

static void what_an_earlier_run_made_is_not_left(void **state)
{
	struct fixture *f = *state;
	know(f, 100, 10, 10);
	const struct ninja_edge edges[] = {{.output = "000.o", .rule = "CXX"},
					   {.output = "001.o", .rule = "CXX"},
					   {.output = "002.o", .rule = "CXX"}};
	struct ninja_entry entries[] = {{.output = "000.o"}};
	const struct ninja_log made = {.entries = entries, .count = 1};
	eta_plan(f->eta, edges, 3, &made, true);
	ended(f, 1, 2, 1);
	eta_update(f->eta, NULL, 0, f->now);
	assert_near(eta_look(f->eta).percent, 50, 0.01);
	assert_near(seconds_left(f), 10, 2); /* one command does not go on two processors */
}

/* A build with CUDA after one without: the units that are new take 60 s each, not the 5 of the others, and that is
 * noticed when the first of them is made. */
static void what_is_new_counts_as_others_of_its_kind(void **state)
{
	struct fixture *f = *state;
	static const struct ninja_edge edges[] = {
		{.output = "000.o", .rule = "CXX_COMPILER__a"},   {.output = "001.o", .rule = "CXX_COMPILER__a"},
		{.output = "a.cu.o", .rule = "CUDA_COMPILER__a"}, {.output = "b.cu.o", .rule = "CUDA_COMPILER__b"},
		{.output = "c.cu.o", .rule = "CUDA_COMPILER__b"}, {.output = "new.o", .rule = "CXX_COMPILER__b"}};
	know(f, 2, 5, 5);
	eta_plan(f->eta, edges, 6, &(struct ninja_log){0}, true);
	ended(f, 1, 6, 0);
	eta_update(f->eta, NULL, 0, f->now);
	assert_near(eta_look(f->eta).percent, 100.0 / 6, 0.1); /* as yet all are alike */
	for (unsigned age = 1; age <= 60; age++) {
		const struct watch_running making = {.path = "a.cu.o", .age = age};
		pass(f, 1, &making, 1);
	}
	eta_count(f->eta, 2, 6, "Building CUDA object a.cu.o", f->now, 1);
	pass(f, 1, NULL, 0);
	assert_near(eta_look(f->eta).percent, 100.0 * (5 + 60) / (5 + 60 + 5 + 60 + 60 + 5), 0.5);
	/* One from the compiler cache was never seen being made: it says nothing of what the next takes. */
	eta_count(f->eta, 3, 6, "Building CUDA object b.cu.o", f->now, 1);
	pass(f, 1, NULL, 0);
	assert_near(eta_look(f->eta).percent, 100.0 * (5 + 60 + 60) / (5 + 60 + 5 + 60 + 60 + 5), 0.5);
}

/* A build that no plan is known of, and no earlier one: what is being made shows how long such take. */
static void what_nobody_knows_takes_what_it_takes(void **state)
{
	struct fixture *f = *state;
	know(f, 0, 0, 0);
	eta_count(f->eta, 1, 17, "x/000.o", f->now, 2);
	for (unsigned age = 1; age <= 20; age++) {
		const struct watch_running making[] = {{.path = "x/001.o", .age = age},
						       {.path = "x/002.o", .age = age}};
		pass(f, 1, making, 2);
	}
	eta_count(f->eta, 2, 17, "x/001.o", f->now, 2);
	eta_count(f->eta, 3, 17, "x/002.o", f->now, 2);
	pass(f, 1, NULL, 0);
	assert_near(seconds_left(f), 14 * 20 / 2.0, 50);
	assert_true(eta_look(f->eta).about);
}

/* When the first command ends nobody has looked yet, or the others have not begun. */
static void the_most_jobs_at_once_count(void **state)
{
	struct fixture *f = *state;
	const struct watch_running making[] = {
		{.path = "001.o", .age = 1}, {.path = "002.o", .age = 1}, {.path = "003.o", .age = 1}};
	know(f, 100, 10, 10);
	eta_count(f->eta, 1, 100, "Building CXX object 000.o", f->now, 0);
	eta_update(f->eta, NULL, 0, f->now);
	assert_near(seconds_left(f), 990, 200);
	eta_update(f->eta, making, 3, f->now);
	assert_near(seconds_left(f), 987 / 3.0, 60);
	eta_count(f->eta, 2, 100, "Building CXX object 001.o", f->now, 5);
	assert_near(seconds_left(f), 980 / 5.0, 40);
}

static void what_is_new_and_made_already_is_not_left(void **state)
{
	struct fixture *f = *state;
	static const struct ninja_edge edges[] = {{.output = "a.cu.o", .rule = "CUDA"},
						  {.output = "b.cu.o", .rule = "CUDA"},
						  {.output = "c.o", .rule = "CXX"}};
	struct ninja_entry entries[] = {{.output = "b.cu.o"}, {.output = "b.cu.o"}};
	know(f, 0, 0, 0);
	eta_plan(f->eta, edges, 3, &(struct ninja_log){.entries = entries, .count = 2}, true);
	eta_count(f->eta, 1, 2, "Building CUDA object a.cu.o", f->now, 1);
	eta_update(f->eta, NULL, 0, f->now);
	assert_near(eta_look(f->eta).percent, 50, 0.1);
	assert_true(eta_look(f->eta).about);
}

static void more_known_units_than_commands_do_not_count(void **state)
{
	struct fixture *f = *state;
	know(f, 1000, 10, 10); /* of another variant, say */
	ended(f, 1, 10, 0);
	eta_update(f->eta, NULL, 0, f->now);
	assert_near(seconds_left(f), 45, 10);
}

static void a_count_that_begins_anew_is_a_new_run(void **state)
{
	struct fixture *f = *state;
	know(f, 100, 10, 10);
	ended(f, 5, 6, 90);
	ended(f, 1, 95, 0);
	eta_update(f->eta, NULL, 0, f->now);
	assert_near(eta_look(f->eta).percent, 1, 1);
	ended(f, 1, 95, 0); /* the same line again changes nothing */
	eta_update(f->eta, NULL, 0, f->now);
	assert_near(eta_look(f->eta).percent, 1, 1);
}

/* Two extensions, each with a ninja of its own: the second's commands are left from the start. */
static void what_later_runs_make_is_left(void **state)
{
	struct fixture *f = *state;
	struct ninja_edge edges[10];
	know(f, 20, 10, 10);
	f->weights.table = &f->known;
	for (unsigned i = 0; i < 10; i++)
		edges[i] = (struct ninja_edge){.output = f->known.units[i].path, .rule = "compile"};
	eta_plan(f->eta, edges, 10, NULL, false);
	ended(f, 1, 10, 0);
	pass(f, 1, NULL, 0);
	assert_near(eta_look(f->eta).percent, 5, 0.1);
	assert_near(seconds_left(f), 95, 10);
	for (unsigned i = 1; i < 10; i++) {
		pass(f, 5, NULL, 0);
		ended(f, i + 1, 10, i);
	}
	ended(f, 1, 10, 10);
	pass(f, 1, NULL, 0);
	assert_near(eta_look(f->eta).percent, 55, 0.1);
	assert_near(seconds_left(f), 45, 10);
}

/* Lines that name nothing of the plan: the estimate is by number, as without a plan. */
static void a_plan_of_other_names_is_given_up(void **state)
{
	struct fixture *f = *state;
	struct ninja_edge edges[100];
	know(f, 100, 10, 10);
	for (unsigned i = 0; i < 100; i++)
		edges[i] = (struct ninja_edge){.output = f->known.units[i].path, .rule = "CXX"};
	f->weights.elsewhere = true;
	eta_plan(f->eta, edges, 100, NULL, true);
	for (unsigned i = 1; i <= 50; i++) {
		const struct watch_running making[] = {{.path = "other/x.o", .age = 5},
						       {.path = "other/y.o", .age = 5}};
		eta_count(f->eta, i, 100, "Building CXX object other/x.o", f->now, 2);
		pass(f, 5, making, 2);
	}
	assert_near(seconds_left(f), 250, 80);
}

static void it_never_is_nonsense(void **state)
{
	struct fixture *f = *state;
	unsigned seed = 7;
	know(f, 200, 0, 3000);
	for (unsigned i = 1; i <= 200; i++) {
		seed = seed * 1103515245 + 12345;
		const struct watch_running making[] = {
			{.path = "000.o", .age = i}, {.path = "unknown.o", .age = 1e9}, {.path = "199.o", .age = -5}};
		if (i == 100)
			f->now -= 50; /* a clock that jumps */
		ended(f, i, 200, seed % 250);
		pass(f, seed % 7, making, 3);
		struct eta_view v = eta_look(f->eta);
		assert_true(v.percent >= 0 && v.percent <= 100);
		assert_true(v.seconds_left <= 200 * 3000.0);
		assert_true(v.seconds_left >= 0 || v.seconds_left == -1);
	}
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
		progress_duration(text, sizeof(text), durations[i].seconds);
		assert_string_equal(text, durations[i].text);
	}
	progress_bytes(text, sizeof(text), 812ULL << 20);
	assert_string_equal(text, "812 MiB");
	progress_bytes(text, sizeof(text), 3174ULL << 20);
	assert_string_equal(text, "3.1 GiB");
}

/* A build's life as the observer hears of it. */
static void act(struct fixture *f, struct log *log)
{
	const struct run run = {.log = log, .cancel_fd = -1};
	const struct progress_request q = {
		.package = "pytorch", .build_dir = test_path("tree"), .weights = &f->weights};
	struct progress *p = progress_new(&q, &run, &f->arena);
	const struct build_observer *o = progress_observer(p);
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
		int n = snprintf(line, sizeof(line), "[%u/60] Building CXX object %03u.o", i, i - 1);
		log->status_at -= 2.5; /* so much time passes */
		o->line(line, (size_t)n, o->user);
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
	know(f, 60, 10, 10);
	log_init(&log, fd, LOG_NORMAL);
	act(f, &log);
	close(fd);
	char *said = test_read(test_path("said"));
	assert_int_equal(count_of(said, "pytorch: unpack\n"), 1);
	assert_int_equal(count_of(said, "pytorch: build\n"), 1);
	assert_int_equal(count_of(said, "pytorch: configure\n"), 1);
	assert_int_equal(count_of(said, "\n"), 3 + 2); /* 60 commands in 150 seconds */
	assert_contains(said, "pytorch: build 24/60, 40%, ");
	assert_contains(said, " left\n");
	assert_int_equal(count_of(said, "\033"), 0);
	free(said);
}

/* `ninja -v`, as Debian's series has it called for PyTorch, and its own extensions call it. */
static void a_command_names_what_it_makes(void **state)
{
	static const char *const lines[] = {"[1/10] ccache g++ -DA -o x -MF 005.o.d -o 000.o -c /ptbuild/src/000.cpp",
					    "[1/10] g++ -c /ptbuild/src/000.cpp -o /ptbuild/src/build/000.o"};
	struct fixture *f = *state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct log log;
		int fd = open(test_path("said%zu", i), O_RDWR | O_CREAT, 0600);
		const struct run run = {.log = &log, .cancel_fd = -1};
		know(f, 10, 1, 91);
		log_init(&log, fd, LOG_NORMAL);
		const struct progress_request q = {
			.package = "pytorch", .build_dir = test_path("tree"), .weights = &f->weights};
		const struct build_observer *o = progress_observer(progress_new(&q, &run, &f->arena));
		o->begin("build", o->user);
		log.status_at -= 100;
		o->line(lines[i], strlen(lines[i]), o->user);
		o->end(o->user);
		close(fd);
		char *said = test_read(test_path("said%zu", i));
		assert_contains(said, "pytorch: build 1/10, 91%");
		free(said);
	}
}

/* torchaudio runs CMake by itself, below the tree's build directory; outputs are named from there. */
static void a_build_below_the_tree_s_is_found(void **state)
{
	struct fixture *f = *state;
	struct log log;
	int fd = open(test_path("said"), O_RDWR | O_CREAT, 0600);
	const struct run run = {.log = &log, .cancel_fd = -1};
	const struct history_unit units[] = {{.path = "temp/0.o", .seconds = 9}, {.path = "temp/1.o", .seconds = 91}};
	f->known = (struct history){.units = units, .count = 2};
	log_init(&log, fd, LOG_NORMAL);
	test_write(test_path("tree/src/build/temp/build.ninja"), "build 1.o: CXX 1.cpp\nbuild 0.o: CXX 0.cpp\n");
	test_write(test_path("tree/src/build/temp/.ninja_log"), "# ninja log v6\n");
	const struct progress_request q = {
		.package = "torchaudio", .build_dir = test_path("tree"), .weights = &f->weights};
	const struct build_observer *o = progress_observer(progress_new(&q, &run, &f->arena));
	const char *line = "[1/6] Building CXX object 1.o";
	o->begin("build", o->user);
	log.status_at -= 100;
	o->line(line, strlen(line), o->user);
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
	know(f, 60, 10, 10);
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
	assert_contains(said, "\r\033[Kpytorch: build 60/60, 100%, ");
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
		T(a_known_build_is_estimated_at_once),
		T(weight_counts_not_number),
		T(one_long_unit_does_not_spoil_the_estimate),
		T(a_warm_cache_is_noticed),
		T(a_warm_cache_of_one_kind_says_nothing_of_the_others),
		T(a_machine_that_slept_was_not_slow),
		T(without_earlier_builds_it_is_by_number_and_about),
		T(what_an_earlier_run_made_is_not_left),
		T(what_is_new_counts_as_others_of_its_kind),
		T(what_nobody_knows_takes_what_it_takes),
		T(the_most_jobs_at_once_count),
		T(what_is_new_and_made_already_is_not_left),
		T(more_known_units_than_commands_do_not_count),
		T(a_count_that_begins_anew_is_a_new_run),
		T(what_later_runs_make_is_left),
		T(a_plan_of_other_names_is_given_up),
		T(it_never_is_nonsense),
		T(durations_and_sizes_for_people),
		T(elsewhere_a_line_a_minute_and_a_step),
		T(a_command_names_what_it_makes),
		T(a_build_below_the_tree_s_is_found),
		T(quiet_says_nothing),
		T(on_a_terminal_one_line_is_rewritten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
