#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/sys/proc.h"
#include "core/ninja/ninja.h"

/* What is heavy, and how long each takes, by words in the name. */
static struct ninja_weight judge(const char *output, void *user)
{
	(void)user;
	struct ninja_weight u = {.heavy = strstr(output, "heavy") != NULL, .cost = 5};
	if (strstr(output, "slow"))
		u.cost = 50;
	if (u.heavy)
		u.cost = 100;
	return u;
}

static struct ninja_weight judge_ordinary(const char *output, void *user)
{
	(void)output;
	(void)user;
	return (struct ninja_weight){.cost = 5};
}

static const struct ninja_options options = {.compile = 4, .heavy = 2, .link = 1, .weigh = judge};

#define HEAD                                                                                       \
	"# ptbuild: pools\npool ptbuild_compile\n  depth = 4\npool ptbuild_heavy\n  depth = "      \
	"2\npool ptbuild_link\n  "                                                                 \
	"depth = 1\n"                                                                              \
	"# ptbuild: end of pools\n"

/* The result, malloc'd. */
static char *rewritten(const char *text, struct ninja_counts *c)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	struct ninja_counts counts;

	assert_ok(ninja_text(text, strlen(text), "build.ninja", &options, &a, &out, &counts, &e),
		  &e);
	if (c)
		*c = counts;
	return strdup(buf_cstr(&out));
}

static void becomes(const char *text, const char *want)
{
	char *once = rewritten(text, NULL);

	assert_string_equal(once, want);
	char *twice = rewritten(once, NULL);
	assert_string_equal(twice, want);
	free(once);
	free(twice);
}

static void each_kind_gets_its_pool(void **state)
{
	(void)state;
	becomes("ninja_required_version = 1.5\n\n"
		"build d/a.cpp.o: CXX_COMPILER__d_Release /s/a.cpp || order\n  FLAGS = -O2\n\n"
		"build d/heavy.cu.o: CUDA_COMPILER__d_Release /s/heavy.cu\n  FLAGS = -O3\n\n"
		"build lib/libd.so: CXX_SHARED_LIBRARY_LINKER__d_Release d/a.cpp.o | x\n  "
		"POST_BUILD = :\n\n"
		"build lib/libs.a: CXX_STATIC_LIBRARY_LINKER__s_Release d/a.cpp.o\n\n"
		"build gen.h: CUSTOM_COMMAND /s/gen.py\n  COMMAND = true\n\n"
		"build all: phony lib/libd.so\ndefault all\n",
		HEAD "ninja_required_version = 1.5\n\n"
		     "build d/heavy.cu.o: CUDA_COMPILER__d_Release /s/heavy.cu\n  pool = "
		     "ptbuild_heavy\n  FLAGS = -O3\n\n"
		     "build d/a.cpp.o: CXX_COMPILER__d_Release /s/a.cpp || order\n  pool = "
		     "ptbuild_compile\n  FLAGS = "
		     "-O2\n\n"
		     "build lib/libd.so: CXX_SHARED_LIBRARY_LINKER__d_Release d/a.cpp.o | x\n  "
		     "pool = ptbuild_link\n  "
		     "POST_BUILD = :\n\n"
		     "build lib/libs.a: CXX_STATIC_LIBRARY_LINKER__s_Release d/a.cpp.o\n\n"
		     "build gen.h: CUSTOM_COMMAND /s/gen.py\n  COMMAND = true\n\n"
		     "build all: phony lib/libd.so\ndefault all\n");
}

static void the_slowest_come_first_and_equals_stay(void **state)
{
	(void)state;
	becomes("build 1.o: C_COMPILER__x 1.c\nbuild 2.o: C_COMPILER__x 2.c\nbuild slow3.o: "
		"C_COMPILER__x 3.c\nbuild "
		"4.o: C_COMPILER__x "
		"4.c\n"
		"build heavy5.o: C_COMPILER__x 5.c\n",
		HEAD "build heavy5.o: C_COMPILER__x 5.c\n  pool = ptbuild_heavy\nbuild slow3.o: "
		     "C_COMPILER__x 3.c\n  "
		     "pool = ptbuild_compile\n"
		     "build 1.o: C_COMPILER__x 1.c\n  pool = ptbuild_compile\nbuild 2.o: "
		     "C_COMPILER__x 2.c\n  pool = "
		     "ptbuild_compile\n"
		     "build 4.o: C_COMPILER__x 4.c\n  pool = ptbuild_compile\n");
}

#define HEAD_POOLS                                                                                 \
	"# ptbuild: pools\npool ptbuild_compile\n  depth = 4\npool ptbuild_heavy\n  depth = "      \
	"2\npool ptbuild_link\n  "                                                                 \
	"depth = 1\n"
#define WAIT_RULE "rule ptbuild_wait\n  command = : > $out\n"
#define WAITS(n, of)                                                                               \
	"build .ptbuild-heavy/" n "-1: ptbuild_wait " of "\nbuild .ptbuild-heavy/" n               \
	"-2: ptbuild_wait .ptbuild-heavy/" n "-1\nbuild .ptbuild-heavy/" n                         \
	"-3: ptbuild_wait .ptbuild-heavy/" n "-2\nbuild .ptbuild-heavy/" n                         \
	"-4: ptbuild_wait .ptbuild-heavy/" n "-3\n"
#define HEAD_END "# ptbuild: end of pools\n"

static void links_wait_for_their_heavy_units(void **state)
{
	(void)state;
	static const char units[] = "build heavy1.o: C_COMPILER__x 1\nbuild heavy$ 2.o: "
				    "C_COMPILER__x 2\nbuild heavy3.o: C_COMPILER__x 3\n";
	static const char pooled[] =
		"build heavy1.o: C_COMPILER__x 1\n  pool = ptbuild_heavy\nbuild heavy$ 2.o: "
		"C_COMPILER__x 2\n"
		"  pool = ptbuild_heavy\nbuild heavy3.o: C_COMPILER__x 3\n  pool = ptbuild_heavy\n";
	AUTO_BUF struct buf text = {0}, want = {0};
	buf_printf(&text,
		   "%sbuild a.so: C_SHARED_LIBRARY_LINKER__a heavy1.o $\n    b.o heavy$ 2.o "
		   "heavy3.o | heavy9.o\r\n  X "
		   "= 1\n"
		   "build b.a: C_STATIC_LIBRARY_LINKER__b heavy3.o | c || gen.h\nbuild c: phony "
		   "heavy1.o\nbuild d: "
		   "C_EXECUTABLE_LINKER__d "
		   "b.o\n"
		   "build e: C_EXECUTABLE_LINKER__e heavy1.o\n",
		   units);
	buf_printf(&want,
		   "%s%sbuild a.so: C_SHARED_LIBRARY_LINKER__a heavy1.o $\n    b.o heavy$ 2.o "
		   "heavy3.o | heavy9.o || "
		   ".ptbuild-heavy/1-4\r\n"
		   "  pool = ptbuild_link\n  X = 1\n"
		   "build b.a: C_STATIC_LIBRARY_LINKER__b heavy3.o | c || gen.h "
		   ".ptbuild-heavy/2-4\nbuild c: phony "
		   "heavy1.o\n"
		   "build d: C_EXECUTABLE_LINKER__d b.o\n  pool = ptbuild_link\nbuild e: "
		   "C_EXECUTABLE_LINKER__e "
		   "heavy1.o || "
		   ".ptbuild-heavy/3-4\n  pool = ptbuild_link\n",
		   HEAD_POOLS WAIT_RULE WAITS("1", "heavy1.o heavy3.o") WAITS("2", "heavy3.o")
			   WAITS("3", "heavy1.o") HEAD_END,
		   pooled);
	becomes(buf_cstr(&text), buf_cstr(&want));
}

/* Without heavy units, or with others, what was hung on is taken off again. */
static void waits_are_taken_off_again(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"build a.so: C_SHARED_LIBRARY_LINKER__a heavy1.o b.o",
		"build a.so: C_SHARED_LIBRARY_LINKER__a heavy1.o b.o | c || gen.h"};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		AUTO_ARENA struct arena a = {0};
		AUTO_BUF struct buf text = {0}, out = {0}, plain = {0};
		struct err e = {0};
		struct ninja_counts c;
		struct ninja_options none = options;
		none.weigh = judge_ordinary;
		buf_printf(&text, "build heavy1.o: C_COMPILER__x 1\n%s\n", lines[i]);
		assert_ok(ninja_text(buf_cstr(&text), text.len, "b", &none, &a, &plain, &c, &e),
			  &e);
		char *waiting = rewritten(buf_cstr(&text), NULL);
		assert_contains(waiting, " .ptbuild-heavy/1-4\n");
		assert_ok(ninja_text(waiting, strlen(waiting), "b", &none, &a, &out, &c, &e), &e);
		assert_string_equal(buf_cstr(&out), buf_cstr(&plain));
		assert_null(strstr(buf_cstr(&out), "ptbuild-heavy"));
		free(waiting);
	}
}

static void nothing_moves_past_a_variable(void **state)
{
	(void)state;
	becomes("X = 1\nbuild 1.o: C_COMPILER__x $X\nX = 2\nbuild slow.o: C_COMPILER__x $X\n",
		HEAD "X = 1\nbuild 1.o: C_COMPILER__x $X\n  pool = ptbuild_compile\nX = 2\nbuild "
		     "slow.o: C_COMPILER__x $X\n"
		     "  pool = ptbuild_compile\n");
	becomes("build 1.o: C_COMPILER__x 1\nrule r\n  command = c\nbuild slow.o: C_COMPILER__x "
		"2\n",
		HEAD "build 1.o: C_COMPILER__x 1\n  pool = ptbuild_compile\nrule r\n  command = "
		     "c\nbuild slow.o: "
		     "C_COMPILER__x 2\n"
		     "  pool = ptbuild_compile\n");
}

static void a_pool_of_its_own_is_kept(void **state)
{
	(void)state;
	becomes("build 1.o: C_COMPILER__x 1\n  pool = console\n",
		HEAD "build 1.o: C_COMPILER__x 1\n  pool = console\n");
	becomes("build 1.o: C_COMPILER__x 1\n  pool=p\n",
		HEAD "build 1.o: C_COMPILER__x 1\n  pool=p\n");
	becomes("build 1.o: C_COMPILER__x 1\n  pool_size = 3\n",
		HEAD "build 1.o: C_COMPILER__x 1\n  pool = ptbuild_compile\n  pool_size = 3\n");
}

static void names_and_lines_in_every_spelling(void **state)
{
	(void)state;
	struct ninja_counts c;
	char *out = rewritten("build a$ heavy$:1.o $\n    b.o | c.d: $\n  CXX_COMPILER__x in$ "
			      "put.cpp | dep || order "
			      "|@ v\n  F = a $\n    b\n",
			      &c);
	assert_string_equal(out, HEAD "build a$ heavy$:1.o $\n    b.o | c.d: $\n  CXX_COMPILER__x "
				      "in$ put.cpp | dep || order |@ v\n"
				      "  pool = ptbuild_heavy\n  F = a $\n    b\n");
	assert_int_equal(c.heavy, 1);
	assert_string_equal(out + strlen(HEAD), strstr(out, "build a"));
	free(out);
}

static void outputs_are_given_as_ninja_takes_them(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	struct ninja_counts c;
	const char *text = "build x$ heavy.o: C_COMPILER__x 1\nbuild ${d}/heavy2.o: C_COMPILER__x "
			   "1\nbuild 3.o: C_COMPILER__x 1\n"
			   "build l: C_EXECUTABLE_LINKER__x 3.o\n";
	assert_ok(ninja_text(text, strlen(text), "b", &options, &a, &out, &c, &e), &e);
	assert_int_equal(c.heavy, 2);
	assert_int_equal(c.compile, 1);
	assert_int_equal(c.link, 1);
	assert_true(c.changed);
	assert_int_equal(c.heavy_outputs.count, 1); /* a variable has no value here */
	assert_string_equal(c.heavy_outputs.items[0], "x heavy.o");
}

static void comments_stay_and_do_not_end_a_statement(void **state)
{
	(void)state;
	becomes("# one $\n#two\nbuild 1.o: C_COMPILER__x 1\n  # in between $\n  A = 1\n   \n# "
		"tail\r $\n",
		HEAD "# one $\n#two\nbuild 1.o: C_COMPILER__x 1\n  pool = ptbuild_compile\n  # in "
		     "between $\n  A = 1\n "
		     "  \n# tail\r $\n");
}

/* What ninja itself ends with when it reads the test directory's file. */
static int ninja_status(void)
{
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	struct proc_result r = {0};
	const struct proc_spec spec = {
		.argv = (const char *const[]){"sh", "-c", "exec ninja -n 2>&1", NULL},
		.cwd = test_path("%s", ""),
		.out = &out};

	assert_ok(proc_run(&spec, test_run(), &r, &e), &e);
	return r.status;
}

static void refused(const char *text, size_t len, const char *why)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	struct ninja_counts c;

	assert_err(ninja_text(text, len, "f.ninja", &options, &a, &out, &c, &e), &e, ERR_INTEGRITY,
		   why);
	assert_int_equal(out.len, 0);
}

#define RULE "rule C_COMPILER__x\n  command = true\n"

/* Line ends that ninja's own reader takes, each with
 * what becomes of it, and those that it refuses. */
static const struct {
	const char *text, *want; /* or, when `want` is NULL, why not */
	const char *why;
} line_ends[] = {
	{"", "", NULL},
	{"build 1.o: C_COMPILER__x\r\n  A = 2\r\n",
	 "build 1.o: C_COMPILER__x\r\n  pool = ptbuild_compile\n  A = 2\r\n", NULL},
	{"build 1.o: C_COMPILER__x $\r\n\r\n",
	 "build 1.o: C_COMPILER__x $\r\n\r\n  pool = ptbuild_compile\n", NULL},
	{"build 1.o: $\r\n  C_COMPILER__x $\n \r\n",
	 "build 1.o: $\r\n  C_COMPILER__x $\n \r\n  pool = ptbuild_compile\n", NULL},
	{"build 1.o: C_COMPILER__x\n \r\n# a\r b\r\r\n",
	 "build 1.o: C_COMPILER__x\n  pool = ptbuild_compile\n \r\n# a\r b\r\r\n", NULL},
	{"build 1.o: C_COMPILER__x", NULL, ":3: the last line does not end"},
	{"build 1.o: C_COMPILER__x\n  A = 2", NULL, ":4: the last line does not end"},
	{"build 1.o: C_COMPILER__x\n  ", NULL, ":4: the last line does not end"},
	{"build 1.o: C_COMPILER__x\n# a", NULL, ":4: the last line does not end"},
	{"build 1.o: C_COMPILER__x $\n", NULL, ":3: the last line does not end"},
	{"build 1.o: C_COMPILER__x $\r\n", NULL, ":3: the last line does not end"},
	{"build 1.o: C_COMPILER__x\r\r\n", NULL, ":3: a carriage return"},
	{"build 1.o: C_COMPILER__x \r || 1\n", NULL, ":3: a carriage return"},
	{"build 1.o: C_COMPILER__x $\r\r\n\n", NULL, ":3: a carriage return"},
	{"build 1.o: C_COMPILER__x\n  A = a $\n  b\rc\n", NULL, ":5: a carriage return"},
	{"build 1.o: C_COMPILER__x\n\r", NULL, ":4: a carriage return"},
};

static void lines_end_where_ninja_ends_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(line_ends); i++) {
		AUTO_BUF struct buf text = {0}, want = {0};
		buf_printf(&text, RULE "%s", line_ends[i].text);
		test_dir();
		test_write(test_path("build.ninja"), buf_cstr(&text));
		assert_int_equal(ninja_status(), line_ends[i].want ? 0 : 1);
		if (line_ends[i].want) {
			buf_printf(&want, HEAD RULE "%s", line_ends[i].want);
			becomes(buf_cstr(&text), buf_cstr(&want));
		} else {
			refused(buf_cstr(&text), text.len, line_ends[i].why);
		}
	}
}

static void what_is_no_ninja_file_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"  A = 1\n", "f.ninja:1: an indented line"},
		{"x = 1\n\tA\n", "f.ninja:2: an indented line"},
		{"x = 1\nbuild : C_COMPILER__x 1\n",
		 "f.ninja:2: a build statement without output or rule"},
		{"build 1.o\n", "f.ninja:1: a build statement"},
		{"build 1.o:\n", "f.ninja:1: a build statement"},
		{"# ptbuild: pools\npool x\n", "f.ninja:1: ptbuild's pools have no end mark"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].text, strlen(cases[i].text), cases[i].why);
	refused("build 1.o: r\0\n", 14, "NUL");
}

static void other_depths_replace_the_old_ones(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	struct ninja_counts c;
	struct ninja_options less = options;
	char *first = rewritten("build 1.o: C_COMPILER__x 1\n", NULL);
	less.compile = 1;
	less.heavy = 1;
	assert_ok(ninja_text(first, strlen(first), "b", &less, &a, &out, &c, &e), &e);
	free(first);
	assert_true(c.changed);
	assert_string_equal(
		buf_cstr(&out),
		"# ptbuild: pools\npool ptbuild_compile\n  depth = 1\npool ptbuild_heavy\n  depth "
		"= "
		"1\npool ptbuild_link\n  depth = 1\n"
		"# ptbuild: end of pools\nbuild 1.o: C_COMPILER__x 1\n  pool = ptbuild_compile\n");
}

static void the_file_keeps_its_time_and_is_written_once(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct ninja_counts c;
	struct stat before, after;
	test_dir();
	test_write(test_path("build.ninja"), "build 1.o: C_COMPILER__x 1\n");
	const struct timespec old[2] = {{.tv_sec = 1000000000, .tv_nsec = 7},
					{.tv_sec = 1000000000, .tv_nsec = 7}};
	assert_int_equal(utimensat(AT_FDCWD, test_path("build.ninja"), old, 0), 0);
	assert_ok(ninja_file_rewrite(test_path("."), "build.ninja", &options, &a, &c, &e), &e);
	assert_true(c.changed);
	assert_int_equal(stat(test_path("build.ninja"), &before), 0);
	assert_int_equal(before.st_mtim.tv_sec, 1000000000);
	assert_int_equal(before.st_mtim.tv_nsec, 7);
	assert_ok(ninja_file_rewrite(test_path("."), "build.ninja", &options, &a, &c, &e), &e);
	assert_false(c.changed);
	assert_int_equal(stat(test_path("build.ninja"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	test_write(test_path("build.ninja"), "build x\n");
	assert_int_equal(ninja_file_rewrite(test_path("."), "build.ninja", &options, &a, &c, &e),
			 -1);
	char *left = test_read(test_path("build.ninja"));
	assert_string_equal(left, "build x\n");
	free(left);
	assert_err(ninja_file_rewrite(test_path("."), "none", &options, &a, &c, &e), &e, ERR_SYSTEM,
		   "none");
}

/* Runs ninja in the test directory; its output. */
static char *ninja(const char *more)
{
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	struct proc_result r = {0};
	char command[256];

	snprintf(command, sizeof(command), "exec ninja %s 2>&1", more);
	const struct proc_spec spec = {.argv = (const char *const[]){"sh", "-c", command, NULL},
				       .cwd = test_path("%s", ""),
				       .out = &out};
	assert_ok(proc_run(&spec, test_run(), &r, &e), &e);
	if (r.status != 0)
		fail_msg("ninja %s: %s", more, buf_cstr(&out));
	return strdup(buf_cstr(&out));
}

static const char real_file[] = "rule C_COMPILER__x\n  command = echo $out >> order && touch $out\n"
				"rule C_EXECUTABLE_LINKER__x\n  command = touch $out\n"
				"build 1.o: C_COMPILER__x in\nbuild 2.o: C_COMPILER__x in\nbuild "
				"slow3.o: C_COMPILER__x in\n"
				"build heavy4.o: C_COMPILER__x in\nbuild prog: "
				"C_EXECUTABLE_LINKER__x 1.o 2.o slow3.o heavy4.o\n";

static void ninja_starts_the_heaviest_first_and_pools_dirty_nothing(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct ninja_counts c;
	struct ninja_options o = options;
	test_dir();
	test_write(test_path("in"), "");
	test_write(test_path("build.ninja"), real_file);
	assert_ok(ninja_file_rewrite(test_path("."), "build.ninja", &o, &a, &c, &e), &e);
	free(ninja("-j1"));
	char *order = test_read(test_path("order"));
	assert_string_equal(order, "heavy4.o\nslow3.o\n1.o\n2.o\n");
	free(order);
	o.compile = o.heavy = 1;
	assert_ok(ninja_file_rewrite(test_path("."), "build.ninja", &o, &a, &c, &e), &e);
	assert_true(c.changed);
	char *out = ninja("-d explain");
	assert_contains(out, "no work to do");
	free(out);
	test_write(test_path("build.ninja"), real_file); /* as CMake would write it anew */
	out = ninja("-d explain");
	assert_contains(out, "no work to do");
	free(out);
}

/* Which of the outputs was made at which place. */
static size_t place(const char *order, const char *output)
{
	const char *at = strstr(order, output);
	size_t n = 0;

	assert_non_null(at);
	for (const char *p = order; p < at; p++)
		n += *p == '\n';
	return n;
}

/* A kernel of the upper library is ready long before the units of the lower one,
 * which wait for a header; it takes the one place of the heavy ones all the same. */
static const char two_libraries[] =
	"rule C_COMPILER__x\n  command = sleep 0.02; echo $out >> order && touch $out\n"
	"rule C_SHARED_LIBRARY_LINKER__x\n  command = touch $out\n"
	"build pch: C_COMPILER__x in\n"
	"build 1.o: C_COMPILER__x in | pch\nbuild 2.o: C_COMPILER__x in | pch\nbuild 3.o: "
	"C_COMPILER__x in | pch\n"
	"build 4.o: C_COMPILER__x in | pch\nbuild 5.o: C_COMPILER__x in | pch\nbuild 6.o: "
	"C_COMPILER__x in | pch\n"
	"build heavy1.o: C_COMPILER__x in | pch\nbuild heavy2.o: C_COMPILER__x in\nbuild heavy3.o: "
	"C_COMPILER__x in\n"
	"build low.so: C_SHARED_LIBRARY_LINKER__x 1.o 2.o 3.o 4.o 5.o 6.o heavy1.o\n"
	"build high.so: C_SHARED_LIBRARY_LINKER__x heavy2.o heavy3.o | low.so\n";

static void heavy_units_of_the_last_library_do_not_stand_in_the_way(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct ninja_counts c;
	struct ninja_options o = options;
	o.heavy = 1;
	test_dir();
	test_write(test_path("in"), "");
	test_write(test_path("build.ninja"), two_libraries);
	assert_ok(ninja_file_rewrite(test_path("."), "build.ninja", &o, &a, &c, &e), &e);
	assert_int_equal(c.heavy, 3);
	free(ninja("-j2"));
	char *order = test_read(test_path("order")), *version = ninja("--version");
	if (strcmp(version, "1.12") >= 0) {
		assert_true(place(order, "heavy1.o") < place(order, "5.o"));
		assert_true(place(order, "heavy2.o") < place(order, "6.o"));
		assert_true(place(order, "heavy3.o") < 9);
	}

	free(order);
	free(version);
	char *out = ninja("-d explain");
	assert_contains(out, "no work to do");
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_gets_its_pool),
		cmocka_unit_test(the_slowest_come_first_and_equals_stay),
		cmocka_unit_test(links_wait_for_their_heavy_units),
		cmocka_unit_test(waits_are_taken_off_again),
		cmocka_unit_test(nothing_moves_past_a_variable),
		cmocka_unit_test(a_pool_of_its_own_is_kept),
		cmocka_unit_test(names_and_lines_in_every_spelling),
		cmocka_unit_test(outputs_are_given_as_ninja_takes_them),
		cmocka_unit_test(comments_stay_and_do_not_end_a_statement),
		cmocka_unit_test(lines_end_where_ninja_ends_them),
		cmocka_unit_test(what_is_no_ninja_file_is_refused),
		cmocka_unit_test(other_depths_replace_the_old_ones),
		cmocka_unit_test_teardown(the_file_keeps_its_time_and_is_written_once,
					  test_teardown),
		cmocka_unit_test_teardown(ninja_starts_the_heaviest_first_and_pools_dirty_nothing,
					  test_teardown),
		cmocka_unit_test_teardown(heavy_units_of_the_last_library_do_not_stand_in_the_way,
					  test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
