#include "wheel_fixture.h"

#include "base/sys/digest.h"
#include "step/pack/pack.h"

#define NAME "tiny_pack-1.0+cpu.avx2-"
#define TAGS "py3-none-manylinux_2_17_x86_64.whl"

static struct repack_request again(const char *wheel, unsigned rev)
{
	return (struct repack_request){.run = test_run(),
				       .wheel = wheel,
				       .metadata_rev = rev,
				       .generator = "ptbuild 0.1.0",
				       .level = PACK_LEVEL,
				       .out_dir = arena_strdup(&arena, test_path("out"))};
}

static struct pack_result repack_ok(const struct repack_request *q)
{
	struct pack_result r = {0};
	assert_ok(repack_wheel(q, &arena, &r, &err), &err);
	return r;
}

static void assert_refused(const struct repack_request *q, enum err_kind kind, const char *want)
{
	struct pack_result r = {.file = "untouched"};
	struct strlist before = {0}, after = {0};

	assert_ok(fs_list(TRUSTED, q->out_dir, &arena, &before, &err), &err);
	assert_err(repack_wheel(q, &arena, &r, &err), &err, kind, want);
	assert_string_equal(r.file, "untouched");
	assert_ok(fs_list(TRUSTED, q->out_dir, &arena, &after, &err), &err);
	assert_int_equal(before.count, after.count);
}

/* More than a chunk of code-like bytes, text, an empty file,
 * a script, and what lies behind WHEEL in the dist-info. */
static void make_large_tree(void)
{
	make_tree();
	shell("head -c 9000000 /dev/urandom | od -An -v -tx1 | head -c 20000000 >'%s'",
	      test_path("tree/tiny/data.txt"));
	test_write(test_path("tree/tiny/empty.py"), "");
	test_write(test_path("tree/tiny/run.sh"), "#!/bin/sh\n");
	chmod(test_path("tree/tiny/run.sh"), 0755);
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/licenses/LICENSE"), "free");
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/top_level.txt"), "tiny\n");
}

static void test_same_bytes_as_packing_anew(void **state)
{
	(void)state;
	make_large_tree();
	struct pack_request q = request();
	q.metadata_rev = 1;
	struct pack_result first = pack_ok(&q);
	struct repack_request r = again(first.path, 7);
	struct pack_result copied = repack_ok(&r);
	assert_string_equal(copied.file, NAME "7-" TAGS);
	char *copy = arena_strdup(&arena, test_path("copy.whl"));
	assert_int_equal(rename(copied.path, copy), 0);
	q.metadata_rev = 7;
	struct pack_result anew = pack_ok(&q);
	shell("cmp '%s' '%s'", copy, anew.path);
	assert_string_equal(copied.sha256, anew.sha256);
	assert_int_equal(copied.bytes, anew.bytes);
	assert_int_equal(copied.files, anew.files);
	assert_int_equal(copied.unpacked_bytes, anew.unpacked_bytes);
}

static void test_a_variant_has_no_label(void **state)
{
	(void)state;
	make_large_tree();
	shell("sed -i '1aRequires-Dist: torch==2.6.0+cpu.avx2\\nRequires-Dist: a "
	      "(==1.0+x)\\nRequires-Dist: b' '%s'",
	      test_path("tree/tiny_pack-1.0+raw.dist-info/METADATA"));
	struct pack_request q = request();
	q.metadata_rev = 1;
	struct pack_result first = pack_ok(&q);
	const struct repack_variant variant = {"cpu.avx2", "{}\n"};
	struct repack_request r = again(first.path, 1);
	r.variant = &variant;
	struct pack_result made = repack_ok(&r);
	assert_string_equal(made.file, "tiny_pack-1.0-py3-none-manylinux_2_17_x86_64-cpu.avx2.whl");
	assert_int_equal(made.files, first.files + 1);
	shell("cd '%s' && unzip -q '%s' -d one && unzip -q '%s' -d two && diff -r one/tiny "
	      "two/tiny && cd "
	      "two/tiny_pack-1.0.dist-info && printf '{}\\n' | cmp variant.json - && grep -qx "
	      "'Version: 1.0' METADATA "
	      "&& "
	      "grep -qx 'Requires-Dist: torch==2.6.0' METADATA && grep -qx 'Requires-Dist: a "
	      "(==1.0)' METADATA && "
	      "cmp licenses/LICENSE ../../one/*.dist-info/licenses/LICENSE && cmp WHEEL "
	      "../../one/*.dist-info/WHEEL",
	      test_path("."), first.path, made.path);
}

static void test_back_to_the_first_revision(void **state)
{
	(void)state;
	make_large_tree();
	struct pack_request q = request();
	q.metadata_rev = 1;
	struct pack_result first = pack_ok(&q);
	struct repack_request up = again(first.path, 2);
	struct pack_result second = repack_ok(&up);
	struct repack_request down = again(second.path, 1);
	struct pack_result third = repack_ok(&down);
	assert_string_equal(third.sha256, first.sha256);
	assert_string_equal(third.path, first.path);
}

/* From whatever revision it is made, with a header file
 * whose last line has no end, or an empty line behind. */
static void test_by_way_of_another_revision(void **state)
{
	(void)state;
	static const char *const ends[] = {"", "\n", "\n\n"};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		test_dir();
		make_tree();
		test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/WHEEL"),
			   arena_printf(
				   &arena,
				   "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: "
				   "py3-none-linux_x86_64%s",
				   ends[i]));
		struct pack_request q = request();
		struct repack_request two = again(pack_ok(&q).path, 2);
		struct repack_request three = again(repack_ok(&two).path, 3);
		char *sha256 = arena_strdup(&arena, repack_ok(&three).sha256);
		q.metadata_rev = 3;
		shell("rm '%s'", test_path("out/" NAME "3-" TAGS));
		assert_string_equal(pack_ok(&q).sha256, sha256);
	}
}

static void test_source_is_left_alone(void **state)
{
	(void)state;
	char before[65], after[65];
	make_tree();
	struct pack_request q = request();
	struct pack_result first = pack_ok(&q);
	assert_ok(digest_file(first.path, before, &err), &err);
	struct repack_request r = again(first.path, 9);
	repack_ok(&r);
	assert_ok(digest_file(first.path, after, &err), &err);
	assert_string_equal(before, after);
}

static void test_into_another_directory(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result first = pack_ok(&q);
	mkdir(test_path("there"), 0755);
	struct repack_request r = again(first.path, 4);
	r.out_dir = test_path("there");
	assert_string_equal(repack_ok(&r).path, test_path("there/" NAME "4-" TAGS));
}

static void test_pip_installs_it(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result first = pack_ok(&q);
	struct repack_request r = again(first.path, 12);
	struct pack_result done = repack_ok(&r);
	shell("python3 -m zipfile -t '%s' >/dev/null", done.path);
	shell("python3 -m pip --isolated --disable-pip-version-check install -q --no-index "
	      "--no-deps --no-cache-dir "
	      "--target '%s' '%s' "
	      "2>'%s'",
	      test_path("site"), done.path, test_path("pip.log"));
	shell("grep -q '^rev=12 ' '%s'/*.dist-info/.metadata-rev && grep -qx 'Build: 12' "
	      "'%s'/*.dist-info/WHEEL",
	      test_path("site"), test_path("site"));
}

static void test_a_changed_source_is_refused(void **state)
{
	(void)state;
	char digest[65];
	make_tree();
	struct pack_request q = request();
	struct pack_result first = pack_ok(&q);
	struct repack_request r = again(first.path, 2);
	digest_data("other", 5, digest);
	r.expect_sha256 = digest;
	assert_refused(&r, ERR_INTEGRITY, "has the sha256");
	r.expect_sha256 = first.sha256;
	repack_ok(&r);
}

/* Wheels of others: their headers, order or RECORD are not ours. */
static void test_foreign_wheels_are_refused(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result first = pack_ok(&q);
	const char *foreign = arena_strdup(&arena, test_path("foreign/" NAME TAGS));
	struct repack_request r = again(foreign, 2);
	shell("mkdir -p '%s' && python3 - '%s' '%s' <<'END'\n"
	      "import sys, zipfile\n"
	      "with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], 'w') as "
	      "new:\n"
	      "    for n in sorted(old.namelist()): new.writestr(n, old.read(n))\n"
	      "END",
	      test_path("foreign"), first.path, foreign);
	assert_refused(&r, ERR_INTEGRITY, "does not end with WHEEL");
	assert_contains(err.hint, "--metadata-rev 2");
	shell("python3 - '%s' '%s' <<'END'\n"
	      "import sys, zipfile\n"
	      "with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], 'w') as "
	      "new:\n"
	      "    for i in old.infolist():\n"
	      "        i.external_attr = 0o100600 << 16\n"
	      "        new.writestr(i, old.read(i.filename))\n"
	      "END",
	      first.path, foreign);
	assert_refused(&r, ERR_INTEGRITY, "has a mode other");
}

static void test_wrong_record_is_refused(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result first = pack_ok(&q);
	const char *foreign = arena_strdup(&arena, test_path("foreign/" NAME TAGS));
	struct repack_request r = again(foreign, 2);
	shell("mkdir -p '%s' && python3 - '%s' '%s' <<'END'\n"
	      "import sys, zipfile\n"
	      "with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], 'w') as "
	      "new:\n"
	      "    for i in old.infolist():\n"
	      "        b = old.read(i.filename)\n"
	      "        new.writestr(i, b.split(b'\\n', 1)[1] if i.filename.endswith('/RECORD') "
	      "else b)\n"
	      "END",
	      test_path("foreign"), first.path, foreign);
	assert_refused(&r, ERR_INTEGRITY, "RECORD does not list");
}

static void test_bad_requests(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result first = pack_ok(&q);
	struct repack_request r = again(first.path, 0);
	assert_refused(&r, ERR_CONFIG, "1 or more");
	r = again("no-wheel.zip", 2);
	assert_refused(&r, ERR_INTEGRITY, "not a wheel name");
	r = again(arena_strdup(&arena, test_path("absent/" NAME TAGS)), 2);
	assert_refused(&r, ERR_SYSTEM, "absent");
}

static void test_other_bytes_under_the_name_stay(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result first = pack_ok(&q);
	test_write(test_path("out/" NAME "5-" TAGS), "mine");
	struct repack_request r = again(first.path, 5);
	assert_refused(&r, ERR_POLICY, "exists with other bytes");
	char *AUTO_FREE text = test_read(test_path("out/" NAME "5-" TAGS));
	assert_string_equal(text, "mine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_same_bytes_as_packing_anew),
		TEST(test_back_to_the_first_revision),
		TEST(test_a_variant_has_no_label),
		TEST(test_by_way_of_another_revision),
		TEST(test_source_is_left_alone),
		TEST(test_into_another_directory),
		TEST(test_pip_installs_it),
		TEST(test_a_changed_source_is_refused),
		TEST(test_foreign_wheels_are_refused),
		TEST(test_wrong_record_is_refused),
		TEST(test_bad_requests),
		TEST(test_other_bytes_under_the_name_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
