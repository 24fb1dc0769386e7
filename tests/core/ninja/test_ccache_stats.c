#include "support.h"

#include <string.h>

#include "core/ninja/ninja.h"

static const struct ccache_source *source_of(const struct ccache_stats *s, const char *path)
{
	return text_find(path, s->sources, s->sources_count, sizeof(*s->sources));
}

static struct arena arena;

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct ccache_stats parse(const char *text)
{
	struct ccache_stats s;
	ccache_stats_parse(text, strlen(text), &arena, &s);
	return s;
}

/* As ccache 4.11 writes it in depend mode. */
static const char sample[] =
	"# "
	"/ptbuild/src/"
	"a.cpp\ncache_miss\ndirect_cache_miss\nlocal_storage_write\nlocal_storage_write\n"
	"# /ptbuild/src/b.cpp\ndirect_cache_hit\nlocal_storage_hit\n"
	"# /ptbuild/src/c.cpp\npreprocessed_cache_hit\nremote_storage_hit\n"
	"# /ptbuild/src/b.cpp\ncache_miss\n"
	"# conftest.c\ncalled_for_link\n";

static void hits_and_misses(void **state)
{
	(void)state;
	struct ccache_stats s = parse(sample);
	assert_int_equal(s.direct_hits, 1);
	assert_int_equal(s.preprocessed_hits, 1);
	assert_int_equal(s.misses, 2);
	assert_int_equal(s.remote_hits, 1);
}

static void every_counter_by_name(void **state)
{
	(void)state;
	struct ccache_stats s = parse(sample);
	assert_int_equal(s.counters_count, 8);
	for (size_t i = 1; i < s.counters_count; i++)
		assert_true(strcmp(s.counters[i - 1].name, s.counters[i].name) < 0);
	assert_string_equal(s.counters[0].name, "cache_miss");
	assert_int_equal(s.counters[0].count, 2);
	assert_string_equal(s.counters[1].name, "called_for_link");
}

static void each_source_has_its_own(void **state)
{
	(void)state;
	struct ccache_stats s = parse(sample);
	assert_int_equal(s.sources_count, 4);
	const struct ccache_source *b = source_of(&s, "/ptbuild/src/b.cpp");
	assert_non_null(b);
	assert_true(b->hits == 1 && b->misses == 1);
	assert_true(source_of(&s, "/ptbuild/src/a.cpp")->misses == 1);
	assert_true(source_of(&s, "conftest.c")->misses == 0);
	assert_null(source_of(&s, "/ptbuild/src/d.cpp"));
}

static void anything_else_is_passed_over(void **state)
{
	(void)state;
	struct ccache_stats s =
		parse("direct_cache_hit\nnot a counter\n\n#\n# \nUPPER\n# x\ncache_miss");
	assert_int_equal(s.direct_hits, 1); /* before the first source: counted, of nobody */
	assert_int_equal(s.misses, 1);
	assert_int_equal(s.counters_count, 2);
	assert_int_equal(s.sources_count, 1);
	s = parse("");
	assert_int_equal(s.counters_count + s.sources_count, 0);
	assert_null(source_of(&s, "x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(hits_and_misses, teardown),
		cmocka_unit_test_teardown(every_counter_by_name, teardown),
		cmocka_unit_test_teardown(each_source_has_its_own, teardown),
		cmocka_unit_test_teardown(anything_else_is_passed_over, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
