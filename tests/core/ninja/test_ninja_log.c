#include "support.h"

#include <string.h>

#include "core/ninja/ninja.h"

struct fixture {
	struct arena arena;
	struct err err;
	struct ninja_log log;
	struct ninja_unit *units;
	size_t count;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){0};
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	arena_release(&((struct fixture *)*state)->arena);
	return 0;
}

static void parse(struct fixture *f, const char *text)
{
	assert_ok(ninja_log_parse(&(struct file_bytes){text, strlen(text), "x/.ninja_log"},
				  &f->arena, &f->log, &f->err),
		  &f->err);
	ninja_log_units(&f->log, &f->arena, &f->units, &f->count);
}

static const struct ninja_unit *unit(const struct fixture *f, const char *path)
{
	for (size_t i = 0; i < f->count; i++) {
		if (strcmp(f->units[i].path, path) == 0)
			return &f->units[i];
	}

	fail_msg("no unit '%s'", path);
	return NULL;
}

static void versions_5_6_7(void **state)
{
	struct fixture *f = *state;

	for (unsigned v = 5; v <= 7; v++) {
		const char *text = arena_printf(
			&f->arena,
			"# ninja log v%u\n10\t2010\t1700000000000000000\ta b.o\tf00dfeed\n", v);
		parse(f, text);
		assert_int_equal(f->log.version, v);
		assert_int_equal(f->count, 1);
		assert_string_equal(f->units[0].path, "a b.o");
		assert_true(f->units[0].end - f->units[0].start > 1.999 &&
			    f->units[0].end - f->units[0].start < 2.001);
		assert_int_equal(f->log.entries[0].hash, 0xf00dfeed);
	}
}

static void other_files_and_versions_are_refused(void **state)
{
	struct fixture *f = *state;
	const char *const bad[] = {"",
				   "# ninja log v",
				   "# ninja log v6",
				   "# ninja log v4\n",
				   "# ninja log v8\n",
				   "# ninja log vX\n",
				   "something\n"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct ninja_log log;
		assert_err(ninja_log_parse(
				   &(struct file_bytes){bad[i], strlen(bad[i]), "x/.ninja_log"},
				   &f->arena, &log, &f->err),
			   &f->err, ERR_INTEGRITY, "x/.ninja_log:1");
	}
}

static void what_a_kill_left_is_passed_over(void **state)
{
	struct fixture *f = *state;

	parse(f, "# ninja log v6\n"
		 "0\t10\t1000\ta.o\t1\n"
		 "10\t25\t10\n"
		 "20\t10\t1000\tbackwards.o\t1\n"
		 "x\t10\t1000\tletters.o\t1\n"
		 "1\t10\t1000\t\t1\n"
		 "1\t10\t1000\tnohash.o\t\n"
		 "1\t99999999999999999999\t1000\tlong.o\t1\n"
		 "12\t20\t1000\tb.o\t1\n"
		 "30\t40\t1000\tc.o\t2"); /* the last line is not complete */
	assert_int_equal(f->log.count, 2);
	assert_int_equal(f->log.skipped, 7);
	assert_int_equal(f->count, 2);
}

static void the_last_entry_of_an_output_counts(void **state)
{
	struct fixture *f = *state;

	parse(f,
	      "# ninja log "
	      "v6\n0\t10000\t1700000000000000000\ta.o\t1\n0\t3000\t1700000100000000000\ta.o\t2\n");
	assert_int_equal(f->count, 1);
	assert_true(f->units[0].end - f->units[0].start == 3);
}

static void outputs_of_one_command_are_one_unit(void **state)
{
	struct fixture *f = *state;

	parse(f, "# ninja log "
		 "v6\n0\t100\t5\tops/b.h\t7\n0\t100\t6\tops/a.h\t7\n0\t100\t9\tops/c.h\t8\n");
	assert_int_equal(f->count, 2);
	assert_int_equal(unit(f, "ops/b.h")->outputs, 2);
	assert_int_equal(unit(f, "ops/c.h")->outputs, 1);
}

/* The first run began at 1700000000 and was killed, the second at 1700001000: both
 * count from 0. Out of order, as ninja leaves them when it writes the log anew. */
static void runs_are_told_apart_by_time_stamps(void **state)
{
	struct fixture *f = *state;

	parse(f, "# ninja log v6\n"
		 "500\t9000\t1700001000500000000\tsecond.o\t1\n"
		 "100\t50000\t1700000000100000000\tfirst.o\t1\n"
		 "50000\t90000\t1700000050000000000\tfirst2.o\t1\n"
		 "9000\t9500\t1700001009400000000\tlib.so\t1\n");
	assert_int_equal(f->count, 4);
	assert_int_equal(unit(f, "first.o")->run, 0);
	assert_int_equal(unit(f, "first2.o")->run, 0);
	assert_int_equal(unit(f, "second.o")->run, 1);
	assert_int_equal(unit(f, "lib.so")->run, 1);
	assert_true(unit(f, "second.o")->start > 1700001000.4 &&
		    unit(f, "second.o")->start < 1700001000.6);
	assert_string_equal(f->units[0].path, "first.o");
	assert_string_equal(f->units[3].path, "lib.so");
}

/* Before version 6 the stamp is the output's own, so of the end. */
static void in_version_5_the_stamp_is_of_the_end(void **state)
{
	struct fixture *f = *state;

	parse(f, "# ninja log v5\n"
		 "0\t60000\t1700000060000000000\ta.o\t1\n"
		 "60000\t61000\t1700000061000000000\tb.o\t1\n");
	assert_int_equal(unit(f, "a.o")->run, unit(f, "b.o")->run);
	assert_true(unit(f, "a.o")->start == 1700000000);
	assert_true(unit(f, "b.o")->end == 1700000061);
}

static void without_stamps_there_is_one_run(void **state)
{
	struct fixture *f = *state;

	parse(f, "# ninja log v6\n1000\t2000\t0\ta.o\t1\n0\t500\t0\tb.o\t2\n");
	assert_true(unit(f, "a.o")->start == 1 && unit(f, "a.o")->end == 2);
	assert_string_equal(f->units[0].path, "b.o");
}

static void an_empty_log_has_no_units(void **state)
{
	struct fixture *f = *state;

	parse(f, "# ninja log v7\n");
	assert_int_equal(f->count, 0);
	assert_int_equal(ninja_slots(f->units, 0, NULL), 0);
}

static void slots_never_overlap_and_are_as_few_as_possible(void **state)
{
	struct fixture *f = *state;

	parse(f, "# ninja log v6\n"
		 "0\t100\t0\ta.o\t1\n0\t50\t0\tb.o\t2\n50\t80\t0\tc.o\t3\n90\t120\t0\td."
		 "o\t4\n100\t110\t0\te.o\t5\n");
	unsigned slots[5];
	assert_int_equal(ninja_slots(f->units, f->count, slots), 2);
	for (size_t i = 0; i < 5; i++) {
		for (size_t k = 0; k < i; k++)
			assert_false(slots[i] == slots[k] && f->units[k].end > f->units[i].start);
	}
}

static const struct ninja_edge *edges_of(struct fixture *f, const char *text, size_t *count)
{
	struct ninja_edge *edges;
	ninja_build_parse(text, strlen(text), &f->arena, &edges, count);
	return edges;
}

static void statements_of_cmake(void **state)
{
	size_t n;
	const struct ninja_edge *e = edges_of(
		*state,
		"# comment\nninja_required_version = 1.5\n"
		"build c10/a.cpp.o: CXX_COMPILER__c10 /src/c10/a.cpp | /src/pch.h || order\n"
		"  DEFINES = build no: statement x\n"
		"build lib/x.so | ${cmake_ninja_workdir}lib/x.so: LINK a.o $\n    b.o\n"
		"build all: phony a b\n"
		"build ${cmake_ninja_workdir}gen.h gen.cpp: CUSTOM || order\n",
		&n);

	assert_int_equal(n, 3);
	assert_string_equal(e[0].output, "c10/a.cpp.o");
	assert_string_equal(e[0].rule, "CXX_COMPILER__c10");
	assert_string_equal(e[0].input, "/src/c10/a.cpp");
	assert_string_equal(e[1].output, "gen.cpp");
	assert_string_equal(e[1].input, "");
	assert_string_equal(e[2].output, "lib/x.so");
	assert_string_equal(e[2].input, "a.o");
	assert_ptr_equal(text_find("gen.cpp", e, n, sizeof(*e)), &e[1]);
	assert_null(text_find("gen.h", e, n, sizeof(*e)));
}

static void escapes_of_paths(void **state)
{
	size_t n;
	const struct ninja_edge *e =
		edges_of(*state, "build a$ b$:c$$d.o $\n  other: rule x$ y.cpp\n", &n);

	assert_int_equal(n, 1);
	assert_string_equal(e[0].output, "a b:c$d.o");
	assert_string_equal(e[0].input, "x y.cpp");
}

static void broken_statements_are_passed_over(void **state)
{
	size_t n;

	edges_of(*state,
		 "build \nbuild a\nbuild a:\nbuild : rule x\nbuild $a: rule x\nbuild a: $rule "
		 "x\nbuild a $",
		 &n);
	assert_int_equal(n, 0);
	edges_of(*state, "", &n);
	assert_int_equal(n, 0);
	assert_null(text_find("a", NULL, 0, sizeof(struct ninja_edge)));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(versions_5_6_7),
		T(other_files_and_versions_are_refused),
		T(what_a_kill_left_is_passed_over),
		T(the_last_entry_of_an_output_counts),
		T(outputs_of_one_command_are_one_unit),
		T(runs_are_told_apart_by_time_stamps),
		T(in_version_5_the_stamp_is_of_the_end),
		T(without_stamps_there_is_one_run),
		T(an_empty_log_has_no_units),
		T(slots_never_overlap_and_are_as_few_as_possible),
		T(statements_of_cmake),
		T(escapes_of_paths),
		T(broken_statements_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
