#include "wheel_fixture.h"

#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "step/index/index.h"

#define AVX2 "tiny_pack-1.0+cpu.avx2-py3-none-manylinux_2_17_x86_64.whl"
#define AVX512 "tiny_pack-1.0+cpu.avx512-py3-none-manylinux_2_17_x86_64.whl"
#define PLAIN "tiny_pack-1.0-py3-none-manylinux_2_17_x86_64.whl"

static struct index_request site(void)
{
	return (struct index_request){.run = test_run(),
				      .dir = arena_strdup(&arena, test_path("out"))};
}

/* Metadata that could break out of an attribute, were it not escaped. */
static void make_wheel(const char *version)
{
	test_write(test_path("tree/tiny/__init__.py"), INIT);
	shell("rm -rf '%s'/*.dist-info", test_path("tree"));
	test_write(test_path("tree/tiny_pack-0.dist-info/METADATA"),
		   "Metadata-Version: 2.1\nName: Tiny.Pack\nVersion: 0\nRequires-Python: >=3.9, "
		   "<\"4\"\n\nText\n");
	test_write(test_path("tree/tiny_pack-0.dist-info/WHEEL"), WHEEL);
	mkdir(test_path("out"), 0755);
	struct pack_request q = request();
	q.version = version;
	pack_ok(&q);
}

static struct index_result index_ok(const struct index_request *q)
{
	struct index_result r = {0};
	assert_ok(index_write(q, &arena, &r, &err), &err);
	return r;
}

static char *page(const char *name)
{
	char *text = test_read(test_path("out/%s", name));

	if (!text)
		fail_msg("there is no page '%s'", name);
	char *copy = arena_strdup(&arena, text);
	free(text);
	return copy;
}

static json_t *json_page(const char *name)
{
	json_t *j = NULL;
	assert_ok(json_read(TRUSTED, test_path("out/%s", name), &j, &err), &err);
	return j;
}

static const char *digest_of(const char *name)
{
	char digest[65];
	assert_ok(digest_file(test_path("out/%s", name), digest, &err), &err);
	return arena_strdup(&arena, digest);
}

static const char *tree_digest(void)
{
	shell("cd '%s' && find . -type f -print0 | sort -z | xargs -0 sha256sum "
	      ">../sums",
	      test_path("out"));
	char digest[65];
	assert_ok(digest_file(test_path("sums"), digest, &err), &err);
	return arena_strdup(&arena, digest);
}

static void test_project_page(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	struct index_result r = index_ok(&q);
	assert_int_equal(r.wheels, 1);
	assert_int_equal(r.projects, 1);
	assert_int_equal(access(test_path("out/.ptbuild-index.lock"), F_OK), -1);
	const char *html = page("cpu-avx2/tiny-pack/index.html");
	assert_contains(html, "<!DOCTYPE html>");
	assert_contains(html, "<meta name=\"pypi:repository-version\" content=\"1.");
	assert_contains(
		html,
		arena_printf(
			&arena,
			"<a "
			"href=\"../../"
			"tiny_pack-1.0%%2Bcpu.avx2-py3-none-manylinux_2_17_x86_64.whl#sha256=%s\" "
			"data-requires-python=\"&#62;=3.9, &#60;&#34;4&#34;\" "
			"data-core-metadata=\"sha256=%s\">" AVX2 "</a>",
			digest_of(AVX2), digest_of(AVX2 ".metadata")));
	/* pip 23.0, which knows that name alone, then refuses
	 * a wheel of "Tiny.Pack" that is asked for otherwise. */
	assert_not_contains(html, "dist-info-metadata");
	assert_contains(html, "<title>tiny-pack, cpu-avx2</title>");
	const char *all = page("simple/tiny-pack/index.html");
	assert_contains(all, "<title>tiny-pack</title>");
	assert_string_equal(strstr(all, "</h1>"), strstr(html, "</h1>"));
	assert_contains(page("simple/index.html"), "<a href=\"tiny-pack/\">tiny-pack</a>");
}

static void test_directory_page_has_title_and_install_line(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	(void)index_ok(&q);
	const char *html = page("cpu-avx2/index.html");
	assert_contains(html, "<h1>Wheels for cpu-avx2</h1>");
	assert_contains(
		html,
		"<code>pip install --extra-index-url <span class=\"url\" data-at=\"./\">URL</span> "
		"tiny-pack==1.0+cpu.avx2</code>");
	assert_not_contains(page("simple/index.html"), "pip install");
}

/* A wheel that pins a torch, by a bill that says what this torch was. */
static size_t missing_with(const char *torch_hashes)
{
	make_wheel("1.0+cpu.avx2");
	shell("rm -rf '%s'/*.dist-info '%s'/*.whl", test_path("tree"), test_path("out"));
	test_write(test_path("tree/tiny_pack-0.dist-info/WHEEL"), WHEEL);
	test_write(test_path("tree/tiny_pack-0.dist-info/METADATA"),
		   "Metadata-Version: 2.1\nName: Tiny.Pack\nVersion: 0\nRequires-Dist: "
		   "torch==2.6.0+debian\n\nText\n");
	test_write(test_path("tree/tiny_pack-0.dist-info/sboms/tiny_pack.cdx.json"),
		   arena_printf(&arena,
				"{\"components\": [{\"name\": \"torch\", \"properties\": "
				"[{\"name\": \"ptbuild:kind\", \"value\": \"built against\"}]%s}]}",
				torch_hashes));
	struct pack_request q = request();
	q.version = "1.0+cpu.avx2";
	pack_ok(&q);
	struct index_request s = site();
	struct index_result r = index_ok(&s);
	assert_int_equal(r.count, 2);
	shell("rm '%s'/*.whl", test_path("out"));
	return r.subs[1].missing.count;
}

static void test_torch_of_a_root_is_not_missing(void **state)
{
	(void)state;
	assert_int_equal(missing_with(""), 0);
	assert_int_equal(missing_with(", \"hashes\": []"), 1);
}

static void test_start_page_lists_profiles_and_spares_another(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	make_wheel("1.0+cpu.avx512");
	struct index_request q = site();
	(void)index_ok(&q);
	const char *html = page("index.html");
	static const char *const wanted[] = {
		"<title>Wheels by profile</title>", "2 wheels of 1 project;",
		"<a href=\"cpu-avx2/\">cpu-avx2</a>", "1 wheel with the label cpu.avx512",
		"data-at=\"cpu-avx512/\">URL/cpu-avx512/</span> tiny-pack==1.0+cpu.avx512"};
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		assert_contains(html, wanted[i]);
	assert_int_equal(unlink(test_path("out/" AVX2)), 0);
	(void)index_ok(&q);
	assert_not_contains(page("index.html"), "cpu-avx2");
	test_write(test_path("out/index.html"), "<p>mine</p>");
	(void)index_ok(&q);
	assert_string_equal(page("index.html"), "<p>mine</p>");
}

static void test_project_json(void **state)
{
	(void)state;
	struct stat st;
	make_wheel("1.0+cpu.avx2");
	make_wheel("1.1+cpu.avx2");
	struct index_request q = site();
	index_ok(&q);
	AUTO_JSON json_t *j = json_page("cpu-avx2/tiny-pack/index.json"),
			 *root = json_page("cpu-avx2/index.json");
	const char *name, *version, *version2, *url, *file, *sha256, *metadata, *python;
	json_int_t size;
	int yanked = 1;
	assert_int_equal(json_unpack(j,
				     "{s:s, s:[s,s!], s:[{s:s, s:s, s:{s:s}, s:I, s:{s:s}, s:s, "
				     "s:b}, {}], s:{s:s}}",
				     "name", &name, "versions", &version, &version2, "files",
				     "filename", &file, "url", &url, "hashes", "sha256", &sha256,
				     "size", &size, "core-metadata", "sha256", &metadata,
				     "requires-python", &python, "yanked", &yanked, "meta",
				     "api-version", &(const char *){NULL}),
			 0);
	assert_string_equal(name, "tiny-pack");
	assert_string_equal(version, "1.0+cpu.avx2");
	assert_string_equal(version2, "1.1+cpu.avx2");
	assert_string_equal(file, AVX2);
	assert_string_equal(url,
			    "../../tiny_pack-1.0%2Bcpu.avx2-py3-none-manylinux_2_17_x86_64.whl");
	assert_string_equal(sha256, digest_of(AVX2));
	assert_string_equal(metadata, digest_of(AVX2 ".metadata"));
	assert_string_equal(python, ">=3.9, <\"4\"");
	assert_int_equal(stat(test_path("out/" AVX2), &st), 0);
	assert_int_equal(size, st.st_size);
	assert_int_equal(yanked, 0);
	const char *project;
	assert_int_equal(json_unpack(root, "{s:[{s:s}!], s:{s:s}}", "projects", "name", &project,
				     "meta", "api-version", &name),
			 0);
	assert_string_equal(project, "tiny-pack");
}

static void test_sidecar_is_the_metadata(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	index_ok(&q);
	shell("unzip -p '%s' '*.dist-info/METADATA' | cmp - '%s'", test_path("out/" AVX2),
	      test_path("out/" AVX2 ".metadata"));
}

static void test_profiles_apart(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	make_wheel("1.0+cpu.avx512");
	make_wheel("1.0");
	struct index_request q = site();
	struct index_result r = index_ok(&q);
	assert_int_equal(r.wheels, 3);
	assert_int_equal(r.count, 3);
	assert_string_equal(r.subs[0].name, "simple");
	assert_string_equal(r.subs[1].name, "cpu-avx2");
	assert_string_equal(r.subs[2].name, "cpu-avx512");
	assert_string_equal(strlist_join(&r.subs[2].install, &arena, " "),
			    "tiny-pack==1.0+cpu.avx512");
	assert_string_equal(strlist_join(&r.subs[2].wheels, &arena, " "), AVX512);
	assert_string_equal(page("cpu-avx512/constraints.txt"), "tiny-pack==1.0+cpu.avx512\n");
	assert_null(strstr(page("cpu-avx2/tiny-pack/index.html"), "avx512"));
	assert_null(strstr(page("cpu-avx512/tiny-pack/index.html"), "avx2-"));
	const char *all = page("simple/tiny-pack/index.html");
	assert_contains(all, ">" AVX2 "<");
	assert_contains(all, ">" AVX512 "<");
	assert_contains(all, ">" PLAIN "<");
}

static void test_base_url(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	q.base_url = "https://files.example.org/a&b";
	index_ok(&q);
	assert_contains(page("cpu-avx2/tiny-pack/index.html"),
			"<a href=\"https://files.example.org/a&#38;b/tiny_pack-1.0%2Bcpu.avx2-py3");
	assert_contains(page("cpu-avx2/tiny-pack/index.json"),
			"\"https://files.example.org/a&b/tiny_pack-1.0%2Bcpu.avx2-py3");
}

static void test_yanked(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	test_write(test_path("out/" AVX2 ".yanked"), "it is \"broken\" <badly>\nsecond line\n");
	struct index_request q = site();
	struct index_result r = index_ok(&q);
	assert_int_equal(r.yanked, 1);
	assert_contains(page("cpu-avx2/tiny-pack/index.html"),
			" data-yanked=\"it is &#34;broken&#34; &#60;badly&#62;\">");
	assert_contains(page("cpu-avx2/tiny-pack/index.json"),
			"\"yanked\": \"it is \\\"broken\\\" <badly>\"");
	test_write(test_path("out/" AVX2 ".yanked"), "");
	index_ok(&q);
	assert_contains(page("cpu-avx2/tiny-pack/index.html"), " data-yanked=\"\">");
	assert_contains(page("cpu-avx2/tiny-pack/index.json"), "\"yanked\": true");
	unlink(test_path("out/" AVX2 ".yanked"));
	assert_int_equal(index_ok(&q).yanked, 0);
	assert_null(strstr(page("cpu-avx2/tiny-pack/index.html"), "yanked"));
}

static void test_same_wheels_same_bytes(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	make_wheel("1.0+cpu.avx512");
	struct index_request q = site();
	index_ok(&q);
	const char *first = tree_digest();
	index_ok(&q);
	assert_string_equal(first, tree_digest());
}

static void test_what_is_gone_goes(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	index_ok(&q);
	const char *first = tree_digest();
	make_wheel("1.0+cpu.avx512");
	index_ok(&q);
	assert_true(fs_exists(TRUSTED, test_path("out/cpu-avx512/index.html")));
	assert_true(fs_exists(TRUSTED, test_path("out/" AVX512 ".metadata")));
	unlink(test_path("out/" AVX512));
	index_ok(&q);
	assert_string_equal(first, tree_digest());
}

static void test_the_last_one_goes(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	index_ok(&q);
	unlink(test_path("out/" AVX2));
	index_ok(&q);
	assert_false(fs_exists(TRUSTED, test_path("out/cpu-avx2")));
	assert_false(fs_exists(TRUSTED, test_path("out/simple/tiny-pack")));
	assert_false(fs_exists(TRUSTED, test_path("out/" AVX2 ".metadata")));
	assert_true(fs_exists(TRUSTED, test_path("out/simple/index.html")));
}

/* Readers see the old index or the new one: never
 * none, and no page of one beside a page of the other. */
static void test_exchanged_whole(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	index_ok(&q);
	shell("cd '%s' && (while [ ! -e ../stop ]; do cat simple/tiny-pack/index.html >/dev/null "
	      "|| echo gone "
	      ">>../gone; done; : >../ended) &",
	      test_path("out"));
	for (int i = 0; i < 20; i++)
		index_ok(&q);
	test_write(test_path("stop"), "");
	shell("n=0; until [ -e '%s' ]; do sleep 0.02; n=$((n + 1)); [ $n -lt 3000 ] || exit 1; "
	      "done",
	      test_path("ended"));
	assert_false(fs_exists(TRUSTED, test_path("gone")));
}

static void assert_untouched(const struct index_request *q, enum err_kind kind, const char *want)
{
	struct index_result r = {.wheels = 77};
	const char *before = tree_digest();

	assert_err(index_write(q, &arena, &r, &err), &err, kind, want);
	assert_int_equal(r.wheels, 77);
	assert_string_equal(before, tree_digest());
	shell("! ls -a '%s' | grep -q '^\\.index-'", test_path("out"));
}

static void test_a_version_that_pip_passes_over(void **state)
{
	(void)state;
	make_wheel("1.0");
	struct index_request q = site();
	index_ok(&q);
	shell("cd '%s' && cp " PLAIN " tiny_pack-1.0_odd-py3-none-any.whl", test_path("out"));
	assert_untouched(&q, ERR_INTEGRITY, "its version '1.0_odd' is not valid");
}

static void test_a_broken_wheel_changes_nothing(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	index_ok(&q);
	test_write(test_path("out/" AVX512), "no archive");
	assert_untouched(&q, ERR_INTEGRITY, "cannot list '" AVX512 "'");
	unlink(test_path("out/" AVX512));
	test_write(test_path("out/nonsense.whl"), "no archive");
	assert_untouched(&q, ERR_INTEGRITY, "not a wheel name");
	unlink(test_path("out/nonsense.whl"));
	/* a wheel under another name */
	shell("cp '%s' '%s'", test_path("out/" AVX2), test_path("out/" AVX512));
	assert_untouched(&q, ERR_INTEGRITY,
			 "its 'tiny_pack-1.0+cpu.avx2.dist-info' is not named after the file");
}

static void test_directories_of_others_stay(void **state)
{
	(void)state;
	make_wheel("1.0+cpu.avx2");
	struct index_request q = site();
	test_write(test_path("out/cpu-avx2/mine"), "mine");
	assert_untouched(&q, ERR_POLICY, "is not an index of ptbuild");
	shell("mv '%s' '%s'", test_path("out/cpu-avx2"), test_path("out/other"));
	index_ok(&q);
	assert_string_equal(page("other/mine"), "mine");
}

static void test_the_name_of_all_is_reserved(void **state)
{
	(void)state;
	make_wheel("1.0+simple");
	struct index_request q = site();
	assert_untouched(&q, ERR_POLICY, "reserved for the index of all wheels");
}

static void test_nothing_to_list(void **state)
{
	(void)state;
	struct index_result r;
	struct index_request q = site();
	assert_err(index_write(&q, &arena, &r, &err), &err, ERR_USAGE, "not a directory");
	mkdir(test_path("out"), 0755);
	assert_err(index_write(&q, &arena, &r, &err), &err, ERR_USAGE, "no wheel in");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_project_page),
		TEST(test_directory_page_has_title_and_install_line),
		TEST(test_torch_of_a_root_is_not_missing),
		TEST(test_start_page_lists_profiles_and_spares_another),
		TEST(test_project_json),
		TEST(test_sidecar_is_the_metadata),
		TEST(test_profiles_apart),
		TEST(test_base_url),
		TEST(test_yanked),
		TEST(test_same_wheels_same_bytes),
		TEST(test_what_is_gone_goes),
		TEST(test_the_last_one_goes),
		TEST(test_exchanged_whole),
		TEST(test_a_version_that_pip_passes_over),
		TEST(test_a_broken_wheel_changes_nothing),
		TEST(test_directories_of_others_stay),
		TEST(test_the_name_of_all_is_reserved),
		TEST(test_nothing_to_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
