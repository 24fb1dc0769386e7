#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sys/json.h"
#include "core/zip/zip.h"
#include "step/watch/watch.h"

#define MIB (UINT64_C(1) << 20)

struct fixture {
	struct arena arena;
	struct err err;
	const char *build_dir;
	struct watch_result watched;
	struct report_units units;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){0};
	f.build_dir = arena_strdup(&f.arena, test_dir());
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	arena_release(&((struct fixture *)*state)->arena);
	return test_teardown(state);
}

/* A build that was killed after first.o, went on at
 * 1700001000 and took b.o out of the compiler cache. */
static const char ninja_log[] = "# ninja log v6\n"
				"0\t90000\t1700000000000000000\tCMakeFiles/x.dir/first.cpp.o\ta1\n"
				"0\t10000\t1700001000000000000\tCMakeFiles/x.dir/a.cpp.o\ta2\n"
				"100\t200\t1700001000100000000\tCMakeFiles/x.dir/b.cpp.o\ta3\n"
				"300\t60000\t1700001000300000000\tCMakeFiles/x.dir/k.cu.o\ta4\n"
				"60000\t61000\t1700001060000000000\tlib/libx.so\ta5\n"
				"0\t50\t1700001000000000000\tgenerated/ops.h\ta6\n";
static const char build_ninja[] = "build CMakeFiles/x.dir/first.cpp.o: CXX /ptbuild/src/first.cpp\n"
				  "build CMakeFiles/x.dir/a.cpp.o: CXX /ptbuild/src/a.cpp\n"
				  "build CMakeFiles/x.dir/b.cpp.o: CXX /ptbuild/src/b.cpp\n"
				  "build CMakeFiles/x.dir/k.cu.o: CUDA /ptbuild/src/k.cu\n"
				  "build lib/libx.so: LINK CMakeFiles/x.dir/a.cpp.o\n";
static const char ccache_log[] =
	"# /ptbuild/src/a.cpp\ncache_miss\n# /ptbuild/src/b.cpp\ndirect_cache_hit\n# "
	"/ptbuild/src/k.cu\ncache_miss\n";
static struct watch_unit seen[] = {{.path = "CMakeFiles/x.dir/a.cpp.o", .peak_bytes = 500 * MIB},
				   {.path = "lib/libx.so", .peak_bytes = 900 * MIB}};

static void collect(struct fixture *f)
{
	test_write(test_path("src/build/.ninja_log"), ninja_log);
	test_write(test_path("src/build/build.ninja"), build_ninja);
	test_write(test_path("out/ccache.stats"), ccache_log);
	f->watched = (struct watch_result){.started = 1700000999, .units = seen, .units_count = 2};
	report_units_collect(f->build_dir, &f->watched, f->watched.started, NULL, test_run(),
			     &f->arena, &f->units);
}

static const struct report_unit *unit(const struct fixture *f, const char *path)
{
	for (size_t i = 0; i < f->units.count; i++) {
		if (strcmp(f->units.units[i].path, path) == 0)
			return &f->units.units[i];
	}

	fail_msg("no unit '%s'", path);
	return NULL;
}

static void units_and_how_they_were_made(void **state)
{
	struct fixture *f = *state;

	collect(f);
	assert_int_equal(f->units.count, 5); /* a header that no statement makes is none */
	assert_int_equal(unit(f, "CMakeFiles/x.dir/first.cpp.o")->state, REPORT_BEFORE);
	assert_int_equal(unit(f, "CMakeFiles/x.dir/a.cpp.o")->state, REPORT_MADE);
	assert_int_equal(unit(f, "CMakeFiles/x.dir/a.cpp.o")->peak_bytes, 500 * MIB);
	assert_string_equal(unit(f, "CMakeFiles/x.dir/a.cpp.o")->source, "/ptbuild/src/a.cpp");
	assert_int_equal(unit(f, "CMakeFiles/x.dir/b.cpp.o")->state, REPORT_HIT);
	assert_int_equal(unit(f, "CMakeFiles/x.dir/k.cu.o")->kind, REPORT_HEAVY);
	assert_int_equal(unit(f, "lib/libx.so")->kind, REPORT_LINK);
	assert_int_equal(f->units.slots, 2);
	assert_true(unit(f, "lib/libx.so")->start == 1700001060);
}

static void logs_deeper_in_the_tree_are_found(void **state)
{
	struct fixture *f = *state;

	test_write(test_path("src/build/temp.linux/.ninja_log"),
		   "# ninja log "
		   "v5\n0\t1000\t1700001001000000000\t/ptbuild/src/build/temp.linux/y.o\tb\n"
		   "0\t2000\t1700001002000000000\tsub/z.o\tc\n");
	collect(f);
	assert_int_equal(f->units.logs, 2);
	assert_int_equal(f->units.count, 7);
	unit(f, "temp.linux/y.o");
	unit(f, "temp.linux/sub/z.o");
}

/* One command whose first output stands for all; a target
 * of CMake's own that makes nothing does not count. */
static void what_a_script_writes_is_a_unit(void **state)
{
	struct fixture *f = *state;

	test_write(test_path("src/build/gen/.ninja_log"),
		   "# ninja log v6\n"
		   "0\t3000\t1700001000000000000\tops.h\tb1\n"
		   "0\t3000\t1700001000000000000\tops.cpp\tb1\n"
		   "0\t3000\t1700001000000000000\ttest.util\tb2\n");
	test_write(test_path("src/build/gen/build.ninja"),
		   "build ops.h ops.cpp: CUSTOM_COMMAND gen.py\n"
		   "build test.util: CUSTOM_COMMAND\n");
	collect(f);
	assert_int_equal(f->units.count, 6);
	assert_int_equal(unit(f, "gen/ops.h")->state, REPORT_MADE);
}

static void a_log_that_cannot_be_read_is_passed_over(void **state)
{
	struct fixture *f = *state;

	test_write(test_path("src/build/deep/.ninja_log"), "something else\n");
	collect(f);
	assert_int_equal(f->units.logs, 1);
	assert_int_equal(f->units.count, 5);
}

static void without_a_tree_there_are_no_units(void **state)
{
	struct fixture *f = *state;

	report_units_collect(test_path("none"), &f->watched, 0, NULL, test_run(), &f->arena,
			     &f->units);
	assert_int_equal(f->units.count, 0);
	assert_int_equal(f->units.slots, 0);
}

static void figures_for_the_record(void **state)
{
	struct fixture *f = *state;

	collect(f);
	AUTO_JSON json_t *units = report_units_json(&f->units);
	assert_int_equal(json_integer_value(json_object_get(units, "count")), 5);
	assert_int_equal(json_integer_value(json_object_get(units, "compiled")), 3);
	assert_int_equal(json_integer_value(json_object_get(units, "from_compiler_cache")), 1);
	assert_int_equal(json_integer_value(json_object_get(units, "by_earlier_run")), 1);
	const json_t *slowest = json_object_get(units, "slowest"),
		     *largest = json_object_get(units, "largest");
	assert_string_equal(json_string_value(json_object_get(json_array_get(slowest, 0), "unit")),
			    "CMakeFiles/x.dir/first.cpp.o");
	assert_int_equal(json_array_size(largest), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(largest, 0), "unit")),
			    "lib/libx.so");
	AUTO_JSON json_t *cache = report_ccache_json(&f->units.ccache, "4.11.2", "depend", NULL);
	assert_int_equal(json_integer_value(json_object_get(cache, "hits")), 1);
	assert_int_equal(json_integer_value(json_object_get(cache, "misses")), 2);
	assert_string_equal(json_string_value(json_object_get(cache, "version")), "4.11.2");
	assert_string_equal(json_string_value(json_object_get(cache, "mode")), "depend");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(cache, "counters"),
							    "direct_cache_hit")),
			 1);
}

#define HOSTILE "</script><script>alert(1)</script><!--"

static const char *wheel(struct fixture *f)
{
	struct zip_writer *z;
	uint8_t sha256[32];
	const char *path = arena_strdup(&f->arena, test_path("x.whl"));
	AUTO_FREE char *large = calloc(1, 3000000);

	assert_non_null(large);
	uint32_t x = 1;
	for (size_t i = 0; i < 3000000; i++) { /* nothing that could be deflated */
		x = x * 1664525 + 1013904223;
		large[i] = (char)(x >> 24);
	}

	assert_ok(zip_create(&(struct zip_new){.path = path, .epoch = 0, .threads = 1, .level = 5},
			     &z, &f->err),
		  &f->err);
	assert_ok(zip_add_data(z, "torch/lib/libx.so", large, 3000000, &f->err), &f->err);
	assert_ok(zip_add_data(z, "torch/" HOSTILE ".py", large, 90000, &f->err), &f->err);
	for (unsigned i = 0; i < 30; i++)
		assert_ok(zip_add_data(z, arena_printf(&f->arena, "torch/include/%u.h", i), large,
				       50, &f->err),
			  &f->err);
	assert_ok(zip_finish(z, sha256, &f->err), &f->err);
	return path;
}

static void sizes_as_a_tree(void **state)
{
	struct fixture *f = *state;
	AUTO_JSON json_t *sizes = NULL;

	assert_ok(report_sizes(wheel(f), &sizes, &f->err), &f->err);
	assert_int_equal(json_integer_value(json_object_get(sizes, "k")), 32);
	assert_int_equal(json_integer_value(json_object_get(sizes, "r")),
			 3000000 + 90000 + 30 * 50);
	const json_t *torch = json_array_get(json_object_get(sizes, "c"), 0), *child;
	size_t i;
	json_int_t raw = 0, packed = 0;
	bool small = false;
	assert_string_equal(json_string_value(json_object_get(torch, "n")), "torch");
	json_array_foreach(json_object_get(torch, "c"), i, child)
	{
		raw += json_integer_value(json_object_get(child, "r"));
		packed += json_integer_value(json_object_get(child, "p"));
		const json_t *below = json_array_get(json_object_get(child, "c"), 0);
		small = small || (below && strcmp(json_string_value(json_object_get(below, "n")),
						  "30 small .h files") == 0);
	}

	assert_true(small);
	assert_int_equal(raw, json_integer_value(json_object_get(torch, "r")));
	assert_int_equal(packed, json_integer_value(json_object_get(torch, "p")));
}

static size_t count_of(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

static void a_page_that_no_name_can_break(void **state)
{
	struct fixture *f = *state;
	AUTO_JSON json_t *record = json_pack("{s:s,s:s}", "wheel", HOSTILE "\"'&.whl", "variant",
					     HOSTILE),
			 *data = NULL;

	collect(f);
	f->units.units[0].path = "dir/" HOSTILE "\xff.o";
	const struct report_request q = {
		.record = record, .units = &f->units, .watched = &f->watched, .wheel = wheel(f)};
	assert_ok(report_write(&q, test_path("build.html"), &f->err), &f->err);
	char *page = test_read(test_path("build.html"));
	assert_non_null(page);
	assert_int_equal(count_of(page, "<script"), 2);
	assert_int_equal(count_of(page, "</script"), 2);
	assert_int_equal(count_of(page, "<!--"), 0);
	assert_contains(page, "<title>&#60;/script&#62;");
	for (const char *p = page; (p = strstr(p, "http")); p++) /* nothing is loaded */
		assert_true(strncmp(p, "http-equiv", 10) == 0);
	/* The document in it is whole, and says what went in. */
	char *from = strstr(page, "id=\"data\">") + strlen("id=\"data\">"),
	     *to = strstr(from, "</script>");
	data = json_loadb(from, (size_t)(to - from), 0, NULL);
	assert_non_null(data);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(data, "record"), "variant")),
		HOSTILE);
	const json_t *rows = json_object_get(data, "units");
	assert_int_equal(json_array_size(rows), 5);
	assert_contains(json_string_value(json_array_get(json_array_get(rows, 0), 0)),
			"dir/" HOSTILE);
	free(page);
}

static void a_wheel_that_is_none_is_an_error_and_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	AUTO_JSON json_t *record = json_object();

	collect(f);
	test_write(test_path("x.whl"), "no archive");
	const struct report_request q = {.record = record,
					 .units = &f->units,
					 .watched = &f->watched,
					 .wheel = test_path("x.whl")};
	assert_err(report_write(&q, test_path("build.html"), &f->err), &f->err, ERR_INTEGRITY,
		   "x.whl");
	assert_null(test_read(test_path("build.html")));
}

static void a_page_of_bars(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	static const char json[] =
		"{'wheel': {'file': 'a<b>.whl', 'torch': '1'}, 'other': {'file': 'c', 'torch': "
		"'1'}, 'pairs': 1, 'seconds': 0.3, "
		"'-device': 'CPU & more', 'sets': [{'threads': 1, 'compared': 2, 'geometric_mean': "
		"1.5, 'workloads': [{'name': "
		"'twice', '-wheel': '1 ms', '-other': '2 ms', 'ratio': 2, '-spread': '3 %', "
		"'-class': 'faster', '-left': 50, "
		"'-width': 25}, {'name': '<script>alert(1)</script>', '-wheel': '-', '-other': '1 "
		"ms', 'ratio': null, 'state': "
		"'failed', '-spread': '', '-reason': 'the wheel: `x` & <img src=y>'}]}]}";
	AUTO_BUF struct buf quoted = {0};
	for (const char *p = json; *p; p++)
		buf_addstr(&quoted, *p == '\'' ? "\"" : *p == '`' ? "\\\"" : (char[]){*p, 0});
	AUTO_JSON json_t *doc = json_loads(buf_cstr(&quoted), 0, NULL);
	assert_non_null(doc);
	report_bench(doc, &out);
	const char *text = buf_cstr(&out);
	assert_contains(text, "<i class=\"faster\" style=\"left:50.00%;width:25.00%\"></i></td><td "
			      "class=\"n\">3\u00a0%</td></tr>");
	assert_contains(text, "<td class=\"n\">failed</td><td></td><td class=\"n\"></td></tr>");
	assert_contains(text, "on the CPU &#38; more; torch 1, against torch 1. A ratio");
	assert_contains(text, "<b>1.50</b><span>other / wheel, 1 thread</span>");
	assert_contains(text, "&#60;script&#62;alert(1)");
	assert_contains(text, "<small>the wheel: &#34;x&#34; &#38; &#60;img src=y&#62;</small>");
	assert_contains(text, "<title>a&#60;b&#62;.whl against c</title>");
	assert_not_contains(text, "<script");
	assert_not_contains(text, "<img");
	assert_not_contains(text, "@SETS@");
	assert_not_contains(text, "@TITLE@");
	assert_contains(text, "</html>");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(units_and_how_they_were_made),
		T(logs_deeper_in_the_tree_are_found),
		T(what_a_script_writes_is_a_unit),
		T(a_log_that_cannot_be_read_is_passed_over),
		T(without_a_tree_there_are_no_units),
		T(figures_for_the_record),
		T(sizes_as_a_tree),
		T(a_page_that_no_name_can_break),
		T(a_wheel_that_is_none_is_an_error_and_leaves_nothing),
		T(a_page_of_bars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
