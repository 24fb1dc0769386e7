#include "support.h"

#include "base/arena.h"
#include "core/root/jobs.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

struct plan_case {
	uint64_t usable;
	unsigned processors, asked;
	unsigned total, compile, heavy, link;
	bool heavy_first;
};

/* A compiler takes 1 GiB, a heavy one 2.5 GiB, a link 2 GiB. */
static const struct jobs_memory need = {.compile = GIB(1), .heavy = MIB(2560), .link = GIB(2)};

/* clang-format off */
static const struct plan_case plan_cases[] = {
	/* usable     cpus asked  total compile heavy link first */
	{UINT64_MAX,   8,  0,     8, 8, 8, 8, false},
	{GIB(100),     8,  0,     8, 8, 8, 8, false},
	/* eight ordinary ones fit, no heavy one beside
	 * seven of them: the heavy first, three at once */
	{GIB(8),       8,  0,     8, 8, 3, 1, true },
	{GIB(11),      8,  0,     8, 8, 2, 3, false},  /* 2 x 2.5 + 6 x 1 = 11 */
	{GIB(20),      8,  0,     8, 8, 8, 8, false},
	{GIB(19),      8,  0,     8, 8, 7, 8, false},
	{GIB(4),       8,  0,     4, 4, 1, 1, true },
	/* 2.5 + 1 does not fit: heavy ones alone, before the others */
	{GIB(3),       2,  0,     2, 2, 1, 1, true },
	{MIB(3584),    2,  0,     2, 2, 1, 1, false},
	{GIB(5),       2,  0,     2, 2, 2, 2, false},
	{GIB(1),       8,  0,     1, 1, 1, 1, false},
	{MIB(100),     8,  0,     1, 1, 1, 1, false},
	{0,            8,  0,     1, 1, 1, 1, false},
	{GIB(100),     0,  0,     1, 1, 1, 1, false},
	/* asked for: ordinary ones are not lowered */
	{GIB(4),       2,  6,     6, 6, 1, 1, true },
	{0,            2,  3,     3, 3, 1, 1, true },
	{GIB(100),     8,  1,     1, 1, 1, 1, false},
};
/* clang-format on */

static void pools_fit_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(plan_cases) / sizeof(plan_cases[0]); i++) {
		const struct plan_case *c = &plan_cases[i];
		struct jobs_pools p = jobs_plan(c->usable, c->processors, c->asked, &need);
		if (p.total != c->total || p.compile != c->compile || p.heavy != c->heavy ||
		    p.link != c->link || p.heavy_first != c->heavy_first)
			fail_msg("case %zu: total %u compile %u heavy %u link %u first %d", i,
				 p.total, p.compile, p.heavy, p.link, p.heavy_first);
	}
}

static void what_runs_at_once_fits_or_waits(void **state)
{
	(void)state;
	for (unsigned mib = 64; mib < 40000; mib += 61) {
		for (unsigned cpus = 1; cpus <= 16; cpus += 3) {
			struct jobs_pools p = jobs_plan(MIB(mib), cpus, 0, &need);
			assert_true(p.total >= 1 && p.total <= cpus);
			assert_true(p.heavy >= 1 && p.heavy <= p.total && p.link >= 1 &&
				    p.link <= p.total && p.compile == p.total);
			if (p.total > 1)
				assert_true(p.total * need.compile <= MIB(mib));
			if (p.heavy_first)
				assert_true(p.heavy == 1 || p.heavy * need.heavy <= MIB(mib));
			else if (p.total > 1)
				assert_true(p.heavy * need.heavy +
						    (p.total - p.heavy) * need.compile <=
					    MIB(mib));
		}
	}
}

static void huge_figures_do_not_run_over(void **state)
{
	(void)state;
	const struct jobs_memory huge = {
		.compile = UINT64_MAX / 2, .heavy = UINT64_MAX, .link = UINT64_MAX};
	struct jobs_pools p = jobs_plan(UINT64_MAX, 64, 0, &huge);
	assert_int_equal(p.total, 2);
	assert_int_equal(p.heavy, 1);
	assert_true(p.heavy_first);
	const struct jobs_memory none = {0};
	p = jobs_plan(GIB(1), 64, 0, &none);
	assert_int_equal(p.total, 64);
	assert_int_equal(p.heavy, 64);
}

static void spare_memory_is_for_all_at_once(void **state)
{
	(void)state;
	struct jobs_pools p = jobs_plan(GIB(20), 8, 0, &need);
	assert_int_equal(p.heavy, 8);
	assert_true(jobs_spare(GIB(28), &p, &need, GIB(1)));
	assert_false(jobs_spare(GIB(28) - 1, &p, &need, GIB(1)));
	p = jobs_plan(GIB(11), 8, 0, &need); /* two heavy, six ordinary */
	assert_true(jobs_spare(GIB(19), &p, &need, GIB(1)));
	assert_false(jobs_spare(GIB(19) - 1, &p, &need, GIB(1)));
	p = jobs_plan(GIB(4), 8, 0, &need); /* a heavy one alone */
	assert_false(jobs_spare(GIB(4), &p, &need, GIB(1)));
	/* two links beside two compilers */
	const struct jobs_memory links = {.compile = GIB(1), .heavy = GIB(1), .link = GIB(4)};
	p = jobs_plan(GIB(10), 4, 0, &links);
	assert_int_equal(p.link, 2);
	assert_true(jobs_spare(GIB(12), &p, &links, GIB(1)));
	assert_false(jobs_spare(GIB(12) - 1, &p, &links, GIB(1)));
	p = jobs_plan(GIB(100), 2, 6, &need); /* asked for */
	assert_false(jobs_spare(GIB(4), &p, &need, 0));
	assert_false(jobs_spare(UINT64_MAX, &p,
				&(struct jobs_memory){.compile = 1, .heavy = UINT64_MAX}, 1));
}

static void lowering_halves_down_to_one(void **state)
{
	(void)state;
	struct jobs_pools p = {.total = 9, .compile = 9, .heavy = 3, .link = 2};
	assert_true(jobs_lower(&p));
	assert_int_equal(p.total, 4);
	assert_int_equal(p.compile, 4);
	assert_int_equal(p.heavy, 1);
	assert_int_equal(p.link, 1);
	assert_true(jobs_lower(&p));
	assert_true(jobs_lower(&p));
	assert_int_equal(p.total, 1);
	assert_int_equal(p.compile, 1);
	assert_false(jobs_lower(&p));
	assert_int_equal(p.total, 1);
}

static void one_job_needs_no_order(void **state)
{
	(void)state;
	struct jobs_pools p = {
		.total = 2, .compile = 2, .heavy = 1, .link = 1, .heavy_first = true};
	assert_true(jobs_lower(&p));
	assert_false(p.heavy_first);
}

static void a_cap_caps_all(void **state)
{
	(void)state;
	struct jobs_pools p = {.total = 8, .compile = 8, .heavy = 5, .link = 2};
	jobs_cap(&p, 3);
	assert_int_equal(p.total, 3);
	assert_int_equal(p.compile, 3);
	assert_int_equal(p.heavy, 3);
	assert_int_equal(p.link, 2);
	jobs_cap(&p, 0);
	assert_int_equal(p.total, 1);
}

static void the_table_says_what_is_heavy(void **state)
{
	(void)state;
	struct heavy_row rows[] = {{.units = "*FlashAttentionKernel.cpp*", .bytes = "2G"},
				   {.units = "*.cu.o", .bytes = "4608M"}};
	const struct memory_row row = {
		.compile = "1100M", .link = "", .heavy = rows, .heavy_count = 2};
	struct jobs_memory m = jobs_from_table(&row);
	assert_true(m.compile == MIB(1100));
	assert_true(m.heavy == MIB(4608));
	assert_true(m.link == JOBS_LINK_BYTES);
	assert_ptr_equal(
		jobs_heavy_row(
			&row,
			"caffe2/CMakeFiles/torch_cpu.dir/cpu/FlashAttentionKernel.cpp.AVX2.cpp.o"),
		&rows[0]);
	assert_ptr_equal(jobs_heavy_row(&row, "a/Sort.cu.o"), &rows[1]);
	assert_null(jobs_heavy_row(&row, "a/Sort.cpp.o"));
	assert_null(jobs_heavy_row(NULL, "a/Sort.cu.o"));
	m = jobs_from_table(NULL);
	assert_true(m.compile == JOBS_COMPILE_BYTES && m.heavy == JOBS_HEAVY_BYTES &&
		    m.link == JOBS_LINK_BYTES);
}

static void heavy_is_never_less_than_ordinary(void **state)
{
	(void)state;
	struct heavy_row rows[] = {{.units = "*a.o", .bytes = "100M"}};
	const struct memory_row row = {
		.compile = "1G", .link = "", .heavy = rows, .heavy_count = 1};
	assert_true(jobs_from_table(&row).heavy == GIB(1));
}

static void some_memory_is_not_for_compilers(void **state)
{
	(void)state;
	assert_true(jobs_usable(UINT64_MAX) == UINT64_MAX);
	assert_true(jobs_usable(GIB(24)) == GIB(24) - MIB(384));
	assert_true(jobs_usable(GIB(1)) == MIB(896));
	assert_true(jobs_usable(0) == 0);
}

static void only_lasting_pressure_counts(void **state)
{
	(void)state;
	struct jobs_pressure p = {0};
	assert_false(jobs_pressed(&p, 90, 100));
	assert_false(jobs_pressed(&p, 90, 119));
	assert_false(jobs_pressed(&p, 10, 119.5)); /* it ended */
	assert_false(jobs_pressed(&p, JOBS_PRESSURE_BOUND, 121));
	assert_false(jobs_pressed(&p, 60, 140.9));
	assert_true(jobs_pressed(&p, 60, 141));
	assert_false(jobs_pressed(&p, 0, 142));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools_fit_memory),
		cmocka_unit_test(what_runs_at_once_fits_or_waits),
		cmocka_unit_test(huge_figures_do_not_run_over),
		cmocka_unit_test(spare_memory_is_for_all_at_once),
		cmocka_unit_test(lowering_halves_down_to_one),
		cmocka_unit_test(one_job_needs_no_order),
		cmocka_unit_test(a_cap_caps_all),
		cmocka_unit_test(the_table_says_what_is_heavy),
		cmocka_unit_test(heavy_is_never_less_than_ordinary),
		cmocka_unit_test(some_memory_is_not_for_compilers),
		cmocka_unit_test(only_lasting_pressure_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
