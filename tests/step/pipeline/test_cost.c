/* What a build takes, from made-up tables. */
#include "support.h"

#include <string.h>

#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "cache/store.h"
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

static struct cost cost(struct fixture *f, const char *release, unsigned gpus,
			const struct store *s)
{
	const struct cost_request q = {.profiles = test_path("p"),
				       .package = "pytorch",
				       .release = release,
				       .gpus = gpus,
				       .store = s};
	struct cost c = cost_of(&q, test_run(), &f->arena);

	c.processors = 4;
	return c;
}

static const char *text(struct fixture *f, const struct cost *c, unsigned jobs)
{
	return cost_text(c, jobs, &f->arena);
}

static void a_table_says_about_how_long(void **state)
{
	struct fixture *f = *state;

	test_write(test_path("p/weights/pytorch-2.8.0.tsv"), "after 60\n3600\ta.o\n7200\tb.o\n");
	struct cost c = cost(f, "2.8.0", 0, NULL);
	assert_true(c.units == 10800 && cost_seconds(&c, 2) == 5460 && c.gpu == COST_GPU_NONE &&
		    !c.here);
	assert_string_equal(text(f, &c, 2), "about 1 h 31 min with 2 jobs (3 h 0 min of CPU time)");
	assert_string_equal(text(f, &c, 1), "about 3 h 1 min with 1 job (3 h 0 min of CPU time)");
	/* More jobs than processors are no faster. */
	assert_string_equal(text(f, &c, 1000),
			    "about 46 min with 1000 jobs (3 h 0 min of CPU time)");
	c = cost(f, "2.9.1", 0, NULL);
	assert_string_equal(text(f, &c, 2), "about 1 h 31 min with 2 jobs (3 h 0 min of CPU time); "
					    "estimated from release 2.8.0");
}

static void what_nobody_measured_is_not_known(void **state)
{
	struct fixture *f = *state;
	const struct cost c = cost(f, "2.8.0", 1, NULL);
	const struct cost_downloads d = {0};

	assert_true(cost_seconds(&c, 2) == 0);
	assert_string_equal(text(f, &c, 2), "unknown: no build of pytorch was measured; an "
					    "estimate appears once some units are compiled");
	AUTO_JSON json_t *j = cost_json(&c, &d, 2);
	static const char *const none[] = {"seconds", "processor_seconds", "gpu_code", "by",
					   "emulated"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_true(json_is_null(json_object_get(j, none[i])));
	assert_int_equal(json_integer_value(json_object_get(j, "jobs")), 2);
}

static void gpu_code_is_told_apart(void **state)
{
	struct fixture *f = *state;

	test_write(test_path("p/weights/pytorch-2.8.0.tsv"), "100\ta.o\n");
	struct cost c = cost(f, "2.8.0", 2, NULL);
	assert_true(c.gpu == COST_GPU_UNKNOWN && c.units == 100);
	assert_string_equal(text(f, &c, 1),
			    "more than 2 min with 1 job (2 min of CPU time); without GPU code");
	test_write(test_path("p/weights/pytorch-2.8.0.tsv"),
		   "class 20 40 CUDA_COMPILER\nunits 9 CUDA_COMPILER\n100\ta.o\n");
	c = cost(f, "2.8.0", 2, NULL);
	assert_true(c.gpu == COST_GPU_GUESSED && c.units == 1000);
	assert_contains(text(f, &c, 1), "; GPU code estimated");
	test_write(test_path("p/weights/pytorch-2.8.0.tsv"),
		   "50\ta.o\n300\ttorch_cuda.dir/b.cu.o\n");
	c = cost(f, "2.8.0", 2, NULL);
	assert_true(c.gpu == COST_GPU_MEASURED && c.units == 350);
	assert_string_equal(text(f, &c, 1), "about 6 min with 1 job (6 min of CPU time)");
	c = cost(f, "2.8.0", 0, NULL); /* without CUDA its units are not compiled */
	assert_true(c.gpu == COST_GPU_NONE && c.units == 50);
}

static void test_cost_size_of_wheel(void **state)
{
	struct fixture *f = *state;

	test_write(test_path("p/weights/pytorch-2.8.0.tsv"),
		   "wheel 95000000 324000000\n100\ta.o\n");
	struct cost c = cost(f, "2.8.0", 0, NULL);
	assert_string_equal(cost_size_text(&c, 0, &f->arena), "about 95 MB, 324 MB unpacked");
	assert_false(cost_guessed(&c));
	c = cost(f, "2.9.1", 0, NULL);
	assert_contains(cost_size_text(&c, 0, &f->arena), "estimated from release 2.8.0");
	assert_true(cost_guessed(&c));
	c = cost(f, "2.8.0", 1, NULL);
	assert_contains(cost_size_text(&c, 900000000, &f->arena), "more than 95 MB");
	assert_contains(cost_size_text(&c, 900000000, &f->arena), "official wheel is 900 MB");
	assert_true(cost_guessed(&c));
	test_write(test_path("p/weights/pytorch-2.8.0.tsv"), "100\ta.o\n");
	c = cost(f, "2.8.0", 0, NULL);
	assert_null(cost_size_text(&c, 0, &f->arena));
}

/* This machine is twice as slow, as an earlier build said. */
static void an_earlier_build_sets_the_scale(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};
	struct store *s;

	assert_ok(store_open(test_path("store"), test_run(), &s, &e), &e);
	test_write(test_path("p/weights/pytorch-2.8.0.tsv"), "1\ta.o\n4\tb.o\n5\tc.o\n");
	test_write(test_path("store/stamps/speed-pytorch"), "2.0\n");
	const struct cost c = cost(f, "2.8.0", 0, s);
	assert_true(c.here && c.units == 20);
	const struct cost_downloads d = {0};
	AUTO_JSON json_t *j = cost_json(&c, &d, 4);
	assert_string_equal(json_string_value(json_object_get(j, "by")), "2.8.0");
	assert_true(json_number_value(json_object_get(j, "seconds")) == 5);
	store_close(s);
}

static void test_cost_of_emulated_build(void **state)
{
	struct fixture *f = *state;
	struct cost_request q = {.profiles = test_path("p"),
				 .package = "pytorch",
				 .release = "2.8.0",
				 .percent = 120,
				 .seconds = 100};
	const struct cost_downloads d = {0};

	test_write(test_path("p/weights/pytorch-2.8.0.tsv"), "after 60\n3000\ta.o\n");
	struct cost c = cost_of(&q, test_run(), &f->arena);
	assert_true(c.units == 3600 && c.after == 160);
	c.processors = 4;
	assert_string_equal(text(f, &c, 1),
			    "about 63 min with 1 job (60 min of CPU time); emulated: 1.2 "
			    "times a native build, and 2 min more");
	AUTO_JSON json_t *j = cost_json(&c, &d, 1);
	const json_t *more = json_object_get(j, "emulated");
	assert_int_equal(json_integer_value(json_object_get(more, "percent")), 120);
	assert_int_equal(json_integer_value(json_object_get(more, "seconds")), 100);
	q.package = "torchvision"; /* unknown stays unknown */
	c = cost_of(&q, test_run(), &f->arena);
	assert_true(c.units == 0 && c.percent == 0);
}

static void what_the_store_has_is_not_downloaded(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};
	struct store *s;
	char key[DIGEST_HEX_LEN + 1];
	const char *stage, *dir;

	digest_data("x", 1, key);
	static const char *deb[] = {"deb:debian/pool/b"}, *both[] = {"deb:x/pool/c", "https://h/c"};
	static char other[] = "00000000000000000000000000000000000000000000000000000000000000aa";
	struct source_row rows[] = {
		{.name = "a", .sha256 = key, .bytes = 5000000},
		{.name = "b", .sha256 = other, .bytes = 7000000, .urls = deb, .urls_count = 1},
		{.name = "c", .sha256 = other, .urls = both, .urls_count = 2}};
	const struct package_row row = {.sources = rows, .sources_count = 3};
	struct cost_downloads d = {0};
	cost_sources(NULL, &row, &f->arena, &d);
	assert_string_equal(cost_downloads_text(&d, &f->arena),
			    "12.0 MB of sources, 1 file of unknown size");
	/* the other has another place */
	assert_string_equal(strlist_join(&d.archives, &f->arena, " "), "debian");
	assert_ok(store_open(test_path("store"), test_run(), &s, &e), &e);
	assert_ok(store_stage(s, &f->arena, &stage, &e), &e);
	test_write(arena_printf(&f->arena, "%s/a", stage), "x");
	assert_ok(store_publish(s, STORE_SOURCE, key, stage, &f->arena, &dir, &e), &e);
	d = (struct cost_downloads){.world = 390800000, .torch = 508000000, .of_unknown = 1};
	cost_sources(s, &row, &f->arena, &d);
	assert_string_equal(cost_downloads_text(&d, &f->arena),
			    "390.8 MB for the world, 7.0 MB of sources, 508.0 MB for the torch, 2 "
			    "files of unknown size");
	d = (struct cost_downloads){0};
	assert_string_equal(cost_downloads_text(&d, &f->arena), "nothing: the store has it all");
	store_close(s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_table_says_about_how_long),     T(what_nobody_measured_is_not_known),
		T(gpu_code_is_told_apart),          T(test_cost_size_of_wheel),
		T(an_earlier_build_sets_the_scale), T(what_the_store_has_is_not_downloaded),
		T(test_cost_of_emulated_build),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
