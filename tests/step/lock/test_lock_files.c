/* Wheels as an index lists them and archives as
 * NVIDIA's manifests have them, as entries of a lock. */
#include "support.h"

#include <string.h>

#include "step/lock/lock_make.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define URL "https://cuda.invalid/redist/redistrib_12.8.1.json"

#define X86 "nvidia_toy-1.2-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
#define ARM "nvidia_toy-1.2-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl"
#define OLD "nvidia_toy-1.6-py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.whl"
#define ANY "nvidia_toy-1.3-py2.py3-none-any.whl"

static const struct wheel_listed listed[] = {
	{X86, NULL, A, 10},
	{ARM, NULL, B, 11},
	{"nvidia_toy-1.2-py3-none-win_amd64.whl", NULL, B, 12},
	{"nvidia_toy-1.2-cp313-cp313-manylinux_2_28_x86_64.whl", NULL, B, 13},
	{"nvidia_toy-1.20-py3-none-manylinux_2_17_x86_64.whl", NULL, B, 14},
	{ANY, NULL, A, 15},
	{"nvidia_toy-1.4-py3-none-any.whl", NULL, "", 0},
	{"nvidia_toy-1.5-py3-none-manylinux1_x86_64.whl", NULL, A, 16},
	{"nvidia_toy-1.5-py3-none-manylinux_2_5_x86_64.whl", NULL, A, 16},
	{"nvidia_toy-1.6-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", NULL, B, 17},
	{OLD, NULL, A, 18},
	{"nvidia_toy-1.6-py3-none-manylinux_2_28_x86_64.whl", NULL, B, 19},
	{"nvidia_toy-1.6-py3-none-musllinux_1_1_x86_64.whl", NULL, B, 20},
};

static void a_wheel_by_version_and_platform(void **state)
{
	static const struct {
		const char *asked, *platform, *file;
		uint64_t size;
	} cases[] = {
		{"nvidia-toy==1.2", "x86_64-linux", X86, 10},
		{"nvidia-toy==1.2", "aarch64-linux", ARM, 11},
		{"nvidia_toy==1.3", "aarch64-linux", ANY, 15},
		{"nvidia-toy==1.6", "x86_64-linux", OLD, 18},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct world_entry got;
		struct err e = {0};
		assert_ok(lock_wheel(cases[i].asked, "py3", "none", cases[i].platform, listed,
				     ARRAY_LEN(listed), &a, &got, &e),
			  &e);
		assert_int_equal(got.kind, WORLD_WHEEL);
		assert_string_equal(got.place, cases[i].file);
		assert_int_equal(got.size, cases[i].size);
		assert_string_equal(got.version, strstr(cases[i].asked, "==") + 2);
	}
}

static void a_wheel_for_one_python(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct world_entry got;
	struct err e = {0};
	assert_ok(lock_wheel("nvidia-toy==1.2", "cp313", "cp313", "x86_64-linux", listed,
			     ARRAY_LEN(listed), &a, &got, &e),
		  &e);
	assert_string_equal(got.place, "nvidia_toy-1.2-cp313-cp313-manylinux_2_28_x86_64.whl");
	assert_err(lock_wheel("nvidia-toy==1.2", "cp313", "cp313t", "x86_64-linux", listed,
			      ARRAY_LEN(listed), &a, &got, &e),
		   &e, ERR_NETWORK, "the index has no wheel of nvidia-toy==1.2");
	assert_err(lock_wheel("nvidia-toy==1.2", "cp312", "cp313", "x86_64-linux", listed,
			      ARRAY_LEN(listed), &a, &got, &e),
		   &e, ERR_NETWORK, "the index has no wheel of nvidia-toy==1.2");
}

static void wheels_that_are_not_to_be_locked(void **state)
{
	static const struct {
		const char *asked;
		enum err_kind kind;
		const char *says;
	} cases[] = {
		{"nvidia-toy", ERR_CONFIG, "not a wheel with its version: 'nvidia-toy'"},
		{"nvidia-toy==", ERR_CONFIG, "not a wheel with its version"},
		{"nvidia-toy==9", ERR_NETWORK,
		 "the index has no wheel of nvidia-toy==9 for x86_64-linux"},
		{"other==1.2", ERR_NETWORK, "the index has no wheel of other==1.2"},
		{"nvidia-toy==1.4", ERR_NETWORK,
		 "does not say sha256 and size of 'nvidia_toy-1.4-py3-none-any.whl'"},
		{"nvidia-toy==1.5", ERR_NETWORK, "has two wheels of nvidia-toy==1.5"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct world_entry got;
		struct err e = {0};
		assert_err(lock_wheel(cases[i].asked, "py3", "none", "x86_64-linux", listed,
				      ARRAY_LEN(listed), &a, &got, &e),
			   &e, cases[i].kind, cases[i].says);
	}
}

#define ARCHIVE(platform, size)                                                                    \
	"\"" platform "\": {\"relative_path\": \"cuda_nvcc/" platform "/cuda_nvcc-" platform       \
	"-12.8.93-archive.tar.xz\", \"sha256\": \"" A "\", \"md5\": \"x\", \"size\": \"" size      \
	"\"}"
#define MANIFEST                                                                                   \
	"{\"release_date\": \"2025-03-06\", \"release_label\": \"12.8.1\", \"cuda_nvcc\": "        \
	"{\"name\": \"CUDA NVCC\", "                                                               \
	"\"version\": \"12.8.93\", " ARCHIVE("linux-x86_64", "79015464") ", " ARCHIVE(             \
		"linux-sbsa", "70623544") "}, "                                                    \
					  "\"libcudla\": {\"version\": \"12.8.90\", " ARCHIVE(     \
						  "linux-aarch64", "38560") "}}"

static int redist(const char *text, const char *component, const char *platform, struct arena *a,
		  struct world_entry **ret, struct err *e)
{
	return lock_redist(text, strlen(text), URL, &component, 1, platform, a, ret, e);
}

static void archives_of_a_manifest(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct world_entry *got;
	struct err e = {0};

	(void)state;
	assert_ok(redist(MANIFEST, "cuda_nvcc", "x86_64-linux", &a, &got, &e), &e);
	assert_int_equal(got->kind, WORLD_FILE);
	assert_string_equal(got->version, "12.8.93");
	assert_string_equal(got->place, "https://cuda.invalid/redist/cuda_nvcc/linux-x86_64/"
					"cuda_nvcc-linux-x86_64-12.8.93-archive.tar.xz");
	assert_int_equal(got->size, 79015464);
	assert_ok(redist(MANIFEST, "cuda_nvcc", "aarch64-linux", &a, &got, &e), &e);
	assert_int_equal(got->size, 70623544);
	assert_contains(got->place, "/linux-sbsa/");
}

static void manifests_that_are_refused(void **state)
{
	static const struct {
		const char *text, *component, *says;
	} cases[] = {
		{"{", "cuda_nvcc", "it cannot be read"},
		{"[]", "cuda_nvcc", "it cannot be read: 'not an object'"},
		{MANIFEST, "cuda_nvcx", "it has no 'cuda_nvcx'"},
		{MANIFEST, "libcudla", "has no 'libcudla' for linux-x86_64"},
		{"{\"x\": {\"linux-x86_64\": {}}}", "x", "it has no version of 'x'"},
		{"{\"x\": {\"version\": \"1\", \"linux-x86_64\": {\"cuda12\": {}}}}", "x",
		 "it has no path of 'x'"},
		{"{\"x\": {\"version\": \"1\", \"linux-x86_64\": {\"relative_path\": \"../x\"}}}",
		 "x", "no path of"},
		{"{\"x\": {\"version\": \"1\", \"linux-x86_64\": {\"relative_path\": \"a b\"}}}",
		 "x", "no path of"},
		{"{\"x\": {\"version\": \"1\", \"linux-x86_64\": {\"relative_path\": \"x\", "
		 "\"sha256\": \"" A "\", \"size\": 5}}}",
		 "x", "it has no sha256 and size of 'x'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct world_entry *got = NULL;
		struct err e = {0};
		assert_err(redist(cases[i].text, cases[i].component, "x86_64-linux", &a, &got, &e),
			   &e, ERR_NETWORK, cases[i].says);
		assert_null(got);
	}

	AUTO_ARENA struct arena a = {0};
	struct world_entry *got;
	struct err e = {0};
	assert_err(redist(MANIFEST, "cuda_nvcc", "s390x-linux", &a, &got, &e), &e, ERR_CONFIG,
		   "'s390x-linux'");
}

static void one_kind_is_replaced(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct world_entry old[] = {{.kind = WORLD_DEB, .name = "gcc"},
				    {.kind = WORLD_WHEEL, .name = "old"}};
	const struct world_entry new[] = {{.kind = WORLD_WHEEL, .name = "one"},
					  {.kind = WORLD_WHEEL, .name = "two"}};
	struct world_lock l = {.entries = old, .count = 2};

	(void)state;
	lock_replace(&l, WORLD_WHEEL, new, 2, &a);
	assert_int_equal(l.count, 3);
	assert_string_equal(l.entries[0].name, "gcc");
	assert_string_equal(l.entries[2].name, "two");
	lock_replace(&l, WORLD_WHEEL, NULL, 0, &a);
	assert_int_equal(l.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wheel_by_version_and_platform),
		cmocka_unit_test(a_wheel_for_one_python),
		cmocka_unit_test(wheels_that_are_not_to_be_locked),
		cmocka_unit_test(archives_of_a_manifest),
		cmocka_unit_test(manifests_that_are_refused),
		cmocka_unit_test(one_kind_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
