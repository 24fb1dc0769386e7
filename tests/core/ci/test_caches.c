#include "support.h"

#include "core/ci/ci_caches.h"
#include "shipped.h"

#define MIB (UINT64_C(1) << 20)

static struct ci_format_row formats[] = {
	{.name = "kept", .cache = "2G", .files = "1G", .caches = "10G"},
	{.name = "unkept", .cache = "2G", .files = "", .caches = ""}};
static const struct ci_tables rows = {.formats = formats, .formats_count = 2};

static struct ci_job job(const char *world, const char *key, uint64_t bytes)
{
	return (struct ci_job){.release = "2.10.0", .files = {world, key, bytes}};
}

static void test_first_job_of_world_keeps_its_files(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct ci_job jobs[] = {job("debian12+python3_12", "0123456789abcdef0", 400 * MIB),
				job("debian12+python3_12", "0123456789abcdef1", 400 * MIB),
				job("debian12+python3_12", "f123456789abcdef0", 400 * MIB),
				job(NULL, NULL, 0)};
	struct ci_plan p = {.tables = &rows, .jobs = jobs, .count = ARRAY_LEN(jobs)};

	jobs[0].makes_cpu = jobs[0].makes_gpu = jobs[2].makes_cpu = true;
	ci_keep_files(&p, "kept", &a);
	assert_true(p.keeps_files);
	assert_string_equal(jobs[0].files_cache,
			    "ptbuild-files-2.10.0-debian12-python3_12-0123456789abcdef");
	/* The name has no more of the key. */
	assert_string_equal(jobs[1].files_cache, jobs[0].files_cache);
	assert_string_not_equal(jobs[2].files_cache, jobs[0].files_cache);
	assert_string_equal(jobs[3].files_cache, "");
	assert_true(jobs[0].keeps_files && !jobs[1].keeps_files);
	assert_true(jobs[2].keeps_files && !jobs[3].keeps_files);

	struct ci_kept k = ci_kept(&p, "kept");
	assert_int_equal(k.compiled, 3);
	assert_true(k.compiled_bytes == 6144 * MIB);
	assert_int_equal(k.worlds, 2);
	assert_true(k.worlds_bytes == 800 * MIB);
	p.remote = "redis://cache";
	k = ci_kept(&p, "kept");
	assert_true(k.compiled == 0 && k.compiled_bytes == 0 && k.worlds == 2);
}

static void test_large_worlds_are_not_kept(void **state)
{
	(void)state;
	static const struct {
		const char *format;
		uint64_t bytes;
		bool kept;
	} cases[] = {{"kept", 1024 * MIB, true},
		     {"kept", 1024 * MIB + 1, false},
		     {"unkept", 1, false},
		     {"none", 1, false}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct ci_job one = job("debian13", "0123456789abcdef0", cases[i].bytes);
		struct ci_plan p = {.tables = &rows, .jobs = &one, .count = 1};
		ci_keep_files(&p, cases[i].format, &a);
		assert_int_equal(p.keeps_files, cases[i].kept);
		assert_int_equal(one.keeps_files, cases[i].kept);
		assert_int_equal(*one.files_cache != '\0', cases[i].kept);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_job_of_world_keeps_its_files),
		cmocka_unit_test(test_large_worlds_are_not_kept),
	};

	return cmocka_run_group_tests_name("core/ci/caches", tests, NULL, NULL);
}
