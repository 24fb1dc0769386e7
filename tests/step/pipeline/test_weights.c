#include "support.h"

#include <string.h>

#include "step/pipeline/cost.h"

struct fixture {
	struct arena arena;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){0};
	*state = &f;
	test_dir();
	return 0;
}

static int teardown(void **state)
{
	arena_release(&((struct fixture *)*state)->arena);
	return test_teardown(state);
}

static struct weights parse(struct fixture *f, const char *text, unsigned gpus)
{
	struct weights w;
	struct err e = {0};

	assert_ok(weights_parse(text, strlen(text), "t.tsv", gpus, &f->arena, &w, &e), &e);
	return w;
}

static void a_table_is_read(void **state)
{
	struct weights w = parse(
		*state,
		"# made by hand\nwheel 1000000 3000000\nafter 12.5\nclass 10 20 CUDA_COMPILER\n"
		"1.5\ta b.o\n0.25\tx/Sort.cpp.AVX2.cpp.o\n",
		3);

	assert_true(w.after == 12.5);
	assert_true(w.wheel == 1e6 && w.unpacked == 3e6);
	assert_true(w.count == 2);
	assert_true(weights_find(&w, "a b.o") == 1.5);
}

static void bad_tables_name_the_line(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = {"# x\nx y",
					  "# x\n-1\ta.o",
					  "# x\n1e9\ta.o",
					  "# x\nnan\ta.o",
					  "# x\n1\t",
					  "# x\n1\n",
					  "# x\nafter x",
					  "# x\nwheel 5",
					  "# x\nwheel 5 4",
					  "# x\nwheel 5 6 7",
					  "# x\nwheel -5 6",
					  "# x\nwheel nan nan",
					  "# x\nclass C 1",
					  "# x\nafter 1 2",
					  "# x\nunits 3 C",
					  "class 1 1 C\nunits 3 D",
					  "class 1 1 C\nunits -3 C",
					  "class 1 1 C\nunits 100001 C",
					  "class 1 1 C\nunits 3"};
	struct err e = {0};
	struct weights w;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_err(weights_parse(bad[i], strlen(bad[i]), "t.tsv", 0, &f->arena, &w, &e), &e,
			   ERR_CONFIG, "t.tsv:2: ");
	assert_err(weights_parse("1\tb.o\n1\ta.o\n", 12, "t.tsv", 0, &f->arena, &w, &e), &e,
		   ERR_CONFIG, "not in order");
}

static void classes_count_the_gpus(void **state)
{
	struct weights w = parse(
		*state,
		"class 10 20 CUDA_COMPILER\nunits 335 CUDA_COMPILER\nclass 0.5 0 C_COMPILER\n", 3);

	assert_int_equal(w.classes_count, 2);
	assert_string_equal(w.classes[0].rule, "CUDA_COMPILER");
	assert_true(w.classes[0].seconds == 70 && w.classes[1].seconds == 0.5);
	assert_true(w.classes[0].units == 335 && w.classes[1].units == 0);
}

static void a_copy_for_another_instruction_set_takes_as_long(void **state)
{
	struct weights w = parse(
		*state,
		"7\tx/Sort.cpp.AVX2.cpp.o\n9\tx/Sort.cpp.DEFAULT.cpp.o\n1\tx/Sorter.cpp.o\n", 0);

	assert_true(weights_find(&w, "x/Sort.cpp.AVX512.cpp.o") == 7);
	assert_true(weights_find(&w, "x/Sort.cpp.DEFAULT.cpp.o") == 9);
	assert_true(weights_find(&w, "x/Sorte.cpp.AVX512.cpp.o") == 0);
	assert_true(weights_find(&w, "x/Sort.cpp.o") == 0);
}

static const struct weights *load(struct fixture *f, const char *release, const struct store *s)
{
	return weights_load(test_path("p"), "pytorch", release, 0, s, test_run(), &f->arena);
}

static void the_nearest_release_stands_in(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, "2.7.1", NULL)->count, 0);
	test_write(test_path("p/weights/pytorch-2.6.0-debian.tsv"), "26\ta.o\n");
	test_write(test_path("p/weights/pytorch-2.8.0.tsv"), "28\ta.o\n");
	test_write(test_path("p/weights/torchvision-2.7.1.tsv"), "1\ta.o\n");
	assert_true(weights_find(load(f, "2.6.0-debian", NULL), "a.o") == 26);
	assert_true(weights_find(load(f, "2.7.1", NULL), "a.o") == 26);
	assert_true(weights_find(load(f, "2.8.0", NULL), "a.o") == 28);
	assert_true(weights_find(load(f, "2.13.0", NULL), "a.o") == 28);
	assert_true(weights_find(load(f, "2.5.0", NULL), "a.o") == 26);
	assert_string_equal(load(f, "2.5.0", NULL)->release, "2.6.0-debian");
	test_write(test_path("p/weights/pytorch-2.9.1.tsv"), "damaged\n");
	assert_int_equal(load(f, "2.9.1", NULL)->count, 0); /* a warning */
}

/* A machine that took twice as long takes so for all, until another build says otherwise. */
static void an_earlier_build_sets_the_scale(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};
	struct store *s;

	assert_ok(store_open(test_path("store"), test_run(), &s, &e), &e);
	test_write(test_path("p/weights/pytorch-2.8.0.tsv"),
		   "after 3\nclass 1 0 C\n1\ta.o\n4\tb.o\n");
	const struct weights *w = load(f, "2.8.0", s);
	assert_true(w->factor == 0 && weights_find(w, "b.o") == 4);
	weights_learn(s, "pytorch", w, 10, 5, 0);
	w = load(f, "2.8.0", s);
	assert_true(w->factor == 2 && weights_find(w, "b.o") == 8 && w->after == 6 &&
		    w->classes[0].seconds == 2);
	weights_learn(s, "pytorch", w, 15, 10, 1);
	assert_true(load(f, "2.8.0", s)->factor == 3);
	assert_true(load(f, "2.8.0", NULL)->factor == 0);
	/* A machine that was busy with other things half of the time is no slower for it. */
	static const struct {
		double share, factor;
	} busy[] = {{0.5, 1}, {1, 2}, {1.5, 2}, {0, 2}, {-1, 2}};
	w = load(f, "2.8.0", NULL);
	for (size_t i = 0; i < ARRAY_LEN(busy); i++) {
		weights_learn(s, "pytorch", w, 10, 5, busy[i].share);
		assert_true(load(f, "2.8.0", s)->factor == busy[i].factor);
	}

	static const char *const nonsense[] = {"", "x", "0", "-1", "nan", "1e9"};
	for (size_t i = 0; i < ARRAY_LEN(nonsense); i++) {
		test_write(test_path("store/stamps/speed-pytorch"), nonsense[i]);
		assert_true(load(f, "2.8.0", s)->factor == 0);
	}

	store_close(s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_table_is_read),
		T(bad_tables_name_the_line),
		T(classes_count_the_gpus),
		T(a_copy_for_another_instruction_set_takes_as_long),
		T(the_nearest_release_stands_in),
		T(an_earlier_build_sets_the_scale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
