#include "wheel_fixture.h"

#include "base/sys/digest.h"

static char *member(const char *wheel, const char *name)
{
	struct zip_reader *z;
	struct buf AUTO_BUF b = {0};

	assert_ok(zip_open(wheel, &arena, &z, &err), &err);
	const struct zip_entry *en = zip_find(z, name);
	if (!en)
		fail_msg("'%s' is not in the wheel", name);
	assert_ok(zip_read(z, en, 1 << 20, &b, &err), &err);
	zip_close(z);
	return arena_strdup(&arena, buf_cstr(&b));
}

static bool has_member(const char *wheel, const char *name)
{
	struct zip_reader *z;

	assert_ok(zip_open(wheel, &arena, &z, &err), &err);
	bool found = zip_find(z, name) != NULL;
	zip_close(z);
	return found;
}

/* No temporary file is left beside the wheels. */
static void assert_out_has(size_t count)
{
	struct strlist names = {0};

	assert_ok(fs_list(TRUSTED, test_path("out"), &arena, &names, &err), &err);
	if (names.count != count)
		fail_msg("%zu files, not %zu: %s", names.count, count,
			 strlist_join(&names, &arena, " "));
}

static void assert_refused(const struct pack_request *q, enum err_kind kind, const char *want)
{
	struct pack_result r = {.file = "untouched"};

	assert_err(pack_wheel(q, &arena, &r, &err), &err, kind, want);
	assert_string_equal(r.file, "untouched");
	assert_out_has(0);
}

static void test_result(void **state)
{
	(void)state;
	char digest[65];
	struct stat st;
	make_tree();
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	assert_string_equal(r.file, "tiny_pack-1.0+cpu.avx2-py3-none-manylinux_2_17_x86_64.whl");
	assert_string_equal(r.path, test_path("out/%s", r.file));
	assert_ok(digest_file(r.path, digest, &err), &err);
	assert_string_equal(r.sha256, digest);
	assert_int_equal(stat(r.path, &st), 0);
	assert_int_equal(r.bytes, st.st_size);
	assert_int_equal(r.files, 6);
	assert_out_has(1);
	uint64_t size;
	assert_ok(fs_tree_size(test_path("tree"), &size, &err), &err);
	assert_int_equal(r.unpacked_bytes, size);
}

static void test_metadata(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	strlist_add(&q.requires, &arena, "torch==2.6.0+cpu.avx2");
	strlist_add(&q.requires, &arena, "typing-extensions");
	struct pack_result r = pack_ok(&q);
	assert_string_equal(
		member(r.path, INFO "/METADATA"),
		"Metadata-Version: 2.1\nName: Tiny.Pack\nVersion: 1.0+cpu.avx2\nSummary: a test\n"
		"Requires-Dist: numpy ; extra == 'x'\nRequires-Dist: "
		"torch==2.6.0+cpu.avx2\nRequires-Dist: "
		"typing-extensions\n\n"
		"A description\nVersion: not this one\n");
}

static void test_wheel_file(void **state)
{
	(void)state;
	make_tree();
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/WHEEL"),
		   "Wheel-Version: 1.9\nGenerator: x\nRoot-Is-Purelib: true\nBuild: "
		   "1\nTag: cp313-abi3-linux_x86_64\nTag: cp312-abi3-linux_x86_64\n");
	struct pack_request q = request();
	q.platform = "manylinux_2_17_x86_64.manylinux2014_x86_64";
	struct pack_result r = pack_ok(&q);
	assert_string_equal(r.file, "tiny_pack-1.0+cpu.avx2-cp313.cp312-abi3-manylinux_2_17_x86_64."
				    "manylinux2014_x86_64.whl");
	assert_string_equal(
		member(r.path, INFO "/WHEEL"),
		"Wheel-Version: 1.0\nGenerator: ptbuild 0.1.0\nRoot-Is-Purelib: false\nTag: "
		"cp313-abi3-manylinux_2_17_x86_64\n"
		"Tag: cp313-abi3-manylinux2014_x86_64\nTag: cp312-abi3-manylinux_2_17_x86_64\nTag: "
		"cp312-abi3-manylinux2014_x86_64\n");
}

/* The first revision has no build tag: nothing was given out before it. */
static void test_build_tag(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	assert_null(strstr(member(r.path, INFO "/WHEEL"), "Build"));
	q.metadata_rev = 3;
	r = pack_ok(&q);
	assert_string_equal(r.file, "tiny_pack-1.0+cpu.avx2-3-py3-none-manylinux_2_17_x86_64.whl");
	assert_contains(member(r.path, INFO "/WHEEL"), "\nBuild: 3\nTag: ");
	assert_string_equal(member(r.path, INFO "/.metadata-rev"),
			    "rev=3 tool=ptbuild 0.1.0 input=0123abcd\n");
}

/* License-File is a field of metadata 2.4: older metadata gets none. */
static void test_license_files(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	strlist_add(&q.license_files, &arena, "vendored/libx/copyright");
	struct pack_result r = pack_ok(&q);
	assert_null(strstr(member(r.path, INFO "/METADATA"), "License-File"));
	test_dir();
	make_tree();
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/METADATA"),
		   "Metadata-Version: 2.4\nName: tiny-pack\nVersion: 1\nLicense-File: LICENSE\n");
	q = request();
	strlist_add(&q.license_files, &arena, "LICENSE");
	strlist_add(&q.license_files, &arena, "vendored/libx/copyright");
	r = pack_ok(&q);
	assert_contains(member(r.path, INFO "/METADATA"),
			"\nLicense-File: LICENSE\nLicense-File: vendored/libx/copyright\n");
}

static void test_marker(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	assert_string_equal(member(r.path, INFO "/.metadata-rev"),
			    "rev=1 tool=ptbuild 0.1.0 input=0123abcd\n");
}

static void test_order_of_entries(void **state)
{
	(void)state;
	static const char *const want[] = {
		"tiny/__init__.py", "tiny/libtiny.so",  "zz/last.py",          INFO "/METADATA",
		INFO "/WHEEL",      INFO "/zz/LICENSE", INFO "/.metadata-rev", INFO "/RECORD"};
	make_tree();
	test_write(test_path("tree/zz/last.py"), "");
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/zz/LICENSE"), "free");
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	struct zip_reader *z;
	assert_ok(zip_open(r.path, &arena, &z, &err), &err);
	assert_int_equal(zip_count(z), ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_string_equal(zip_at(z, i)->name, want[i]);
		assert_true(i == 0 || zip_at(z, i)->offset > zip_at(z, i - 1)->offset);
	}

	zip_close(z);
}

static void test_record_is_exact(void **state)
{
	(void)state;
	make_tree();
	test_write(test_path("tree/tiny/with,comma.txt"), "x");
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	const char *text = member(r.path, INFO "/RECORD");
	struct wheel_record_row *rows;
	size_t count;
	assert_ok(wheel_record_parse(text, strlen(text), "RECORD", &arena, &rows, &count, &err),
		  &err);
	struct zip_reader *z;
	assert_ok(zip_open(r.path, &arena, &z, &err), &err);
	assert_int_equal(zip_count(z), count);
	for (size_t i = 0; i < count; i++) {
		uint8_t sha256[32];
		char digest[64] = "sha256=";
		assert_string_equal(rows[i].path, zip_at(z, i)->name);
		if (i + 1 == count)
			continue;
		assert_ok(zip_extract_fd(z, zip_at(z, i), -1, sha256, &err), &err);
		digest_base64url(sha256, digest + strlen(digest));
		assert_string_equal(rows[i].digest, digest);
		assert_int_equal(rows[i].size, zip_at(z, i)->size);
	}

	assert_string_equal(rows[count - 1].path, INFO "/RECORD");
	assert_string_equal(rows[count - 1].digest, "");
	assert_int_equal(rows[count - 1].size, -1);
	zip_close(z);
	char *AUTO_FREE in_tree = test_read(test_path("tree/" INFO "/RECORD"));
	assert_string_equal(in_tree, text);
}

static void test_what_installers_write_is_dropped(void **state)
{
	(void)state;
	static const char *const stale[] = {"direct_url.json", "INSTALLER", "REQUESTED",
					    "RECORD.jws", "RECORD.p7s"};
	make_tree();
	for (size_t i = 0; i < ARRAY_LEN(stale); i++)
		test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/%s", stale[i]), "x");
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	for (size_t i = 0; i < ARRAY_LEN(stale); i++)
		assert_false(has_member(r.path, arena_printf(&arena, INFO "/%s", stale[i])));
	assert_int_equal(r.files, 6);
}

static void test_bytecode_is_dropped(void **state)
{
	(void)state;
	make_tree();
	test_write(test_path("tree/tiny/__pycache__/__init__.cpython-313.pyc"), "x");
	test_write(test_path("tree/tiny/__pycache__/other"), "x");
	test_write(test_path("tree/__pycache__/top"), "x");
	test_write(test_path("tree/tiny/old.pyc"), "x");
	test_write(test_path("tree/tiny/x__pycache__/kept.py"), "x");
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	assert_int_equal(r.files, 7);
	assert_true(has_member(r.path, "tiny/x__pycache__/kept.py"));
	assert_null(strstr(member(r.path, INFO "/RECORD"), ".pyc"));
}

static void test_data_directory_follows_the_version(void **state)
{
	(void)state;
	make_tree();
	test_write(test_path("tree/tiny_pack-1.0+raw.data/scripts/tiny"), "#!python\n");
	test_write(test_path("tree/other-1.0.data/kept"), "x");
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	assert_true(has_member(r.path, "tiny_pack-1.0+cpu.avx2.data/scripts/tiny"));
	assert_true(has_member(r.path, "other-1.0.data/kept"));
}

static void test_modes(void **state)
{
	(void)state;
	make_tree();
	chmod(test_path("tree/tiny/libtiny.so"), 0775);
	chmod(test_path("tree/tiny/__init__.py"), 0600);
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	struct zip_reader *z;
	assert_ok(zip_open(r.path, &arena, &z, &err), &err);
	assert_int_equal(zip_find(z, "tiny/libtiny.so")->mode, S_IFREG | 0755);
	assert_int_equal(zip_find(z, "tiny/__init__.py")->mode, S_IFREG | 0644);
	assert_int_equal(zip_find(z, INFO "/RECORD")->mode, S_IFREG | 0644);
	zip_close(z);
}

static void test_same_tree_same_bytes(void **state)
{
	(void)state;
	make_tree();
	shell("cp -r '%s' '%s' && mkdir '%s'", test_path("tree"), test_path("tree2"),
	      test_path("out2"));
	shell("touch -d 2001-01-01 '%s'", test_path("tree2/tiny/__init__.py"));
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	struct pack_request q2 = q;
	q2.tree = arena_strdup(&arena, test_path("tree2"));
	q2.out_dir = arena_strdup(&arena, test_path("out2"));
	q2.threads = 0;
	struct pack_result r2 = pack_ok(&q2);
	assert_string_equal(r.sha256, r2.sha256);
}

static void test_packing_again_changes_nothing(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	strlist_add(&q.requires, &arena, "torch==2.6.0+cpu.avx2");
	struct pack_result first = pack_ok(&q), second = pack_ok(&q);
	assert_string_equal(first.sha256, second.sha256);
	assert_int_equal(first.files, second.files);
	assert_out_has(1);
}

static void test_another_revision_changes_the_tail_only(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	char *AUTO_FREE before = test_read(r.path);
	struct zip_reader *z;
	assert_ok(zip_open(r.path, &arena, &z, &err), &err);
	size_t payload = zip_find(z, INFO "/METADATA")->offset;
	zip_close(z);
	assert_int_equal(unlink(r.path), 0);
	q.metadata_rev = 4;
	r = pack_ok(&q);
	char *AUTO_FREE after = test_read(r.path);
	assert_true(payload > 400);
	assert_memory_equal(before, after, payload);
	assert_contains(member(r.path, INFO "/.metadata-rev"), "rev=4 ");
}

static void test_other_bytes_under_the_same_name(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q), again = {0};
	char before[65], after[65];
	assert_ok(digest_file(r.path, before, &err), &err);
	q.input_key = "another";
	assert_err(pack_wheel(&q, &arena, &again, &err), &err, ERR_POLICY, "with other bytes");
	assert_contains(err.msg, before);
	assert_ok(digest_file(r.path, after, &err), &err);
	assert_string_equal(before, after);
	assert_out_has(1);
}

static void test_links_and_devices_are_refused(void **state)
{
	(void)state;
	make_tree();
	assert_int_equal(symlink("libtiny.so", test_path("tree/tiny/libtiny.so.1")), 0);
	struct pack_request q = request();
	assert_refused(&q, ERR_INTEGRITY, "tiny/libtiny.so.1' is not a regular file");
	assert_contains(err.hint, "symbolic link");
	unlink(test_path("tree/tiny/libtiny.so.1"));
	assert_int_equal(mkfifo(test_path("tree/tiny/fifo"), 0600), 0);
	assert_refused(&q, ERR_INTEGRITY, "tiny/fifo' is not a regular file");
}

static void test_tree_without_dist_info(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	shell("rm -r '%s'", test_path("tree/tiny_pack-1.0+raw.dist-info"));
	assert_refused(&q, ERR_INTEGRITY, "has no .dist-info directory");
	q.tree = arena_strdup(&arena, test_path("absent"));
	assert_refused(&q, ERR_SYSTEM, "absent");
}

static void test_two_dist_infos(void **state)
{
	(void)state;
	make_tree();
	test_write(test_path("tree/other-1.dist-info/METADATA"), METADATA);
	struct pack_request q = request();
	assert_refused(&q, ERR_INTEGRITY, "two .dist-info directories");
}

/* What is wrong is found before anything in the tree changes. */
static void test_broken_metadata_leaves_the_tree_alone(void **state)
{
	(void)state;
	static const struct {
		const char *file, *text, *want;
	} cases[] = {
		{"METADATA", "Version: 1\n", "has no Name"},
		{"METADATA", "Name: ../x\n", "has no Name"},
		{"METADATA", "Name: /x\n", "has no Name"},
		{"METADATA", "no colon\n", "METADATA' line 1"},
		{"METADATA", "Name: bad name!\n", "distribution name"},
		{"WHEEL", "Wheel-Version: 1.0\n", "has no Tag"},
		{"WHEEL", "Tag: cp313-cp313\n", "does not have three parts"},
		{"WHEEL", "Tag: cp313-cp313-linux-x86\n", "does not have three parts"},
		{"WHEEL", "Tag: cp3/13-cp313-any\n", "not a wheel name"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make_tree();
		test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/%s", cases[i].file),
			   cases[i].text);
		struct pack_request q = request();
		assert_refused(&q, ERR_INTEGRITY, cases[i].want);
		char *AUTO_FREE text =
			test_read(test_path("tree/tiny_pack-1.0+raw.dist-info/RECORD"));
		assert_string_equal(text, "stale,,\n");
		test_dir();
	}
}

static void test_missing_metadata_files(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	unlink(test_path("tree/tiny_pack-1.0+raw.dist-info/WHEEL"));
	assert_refused(&q, ERR_SYSTEM, "WHEEL");
	unlink(test_path("tree/tiny_pack-1.0+raw.dist-info/METADATA"));
	assert_refused(&q, ERR_SYSTEM, "METADATA");
}

static void test_bad_requests(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	q.version = "main";
	assert_refused(&q, ERR_INTEGRITY, "version is not well-formed");
	q = request();
	q.platform = "";
	assert_refused(&q, ERR_INTEGRITY, "a part of it is empty");
	q = request();
	q.metadata_rev = 0;
	assert_refused(&q, ERR_CONFIG, "metadata revision");
	q = request();
	q.generator = "two\nlines";
	assert_refused(&q, ERR_CONFIG, "not one line");
	q = request();
	q.input_key = "with space";
	assert_refused(&q, ERR_CONFIG, "not one line");
	q = request();
	q.level = 11;
	assert_refused(&q, ERR_USAGE, "level 11");
	q = request();
	strlist_add(&q.requires, &arena, "torch\nEvil: header");
	assert_refused(&q, ERR_CONFIG, "not one line");
}

static void test_missing_output_directory(void **state)
{
	(void)state;
	struct pack_result r;
	make_tree();
	struct pack_request q = request();
	rmdir(test_path("out"));
	assert_err(pack_wheel(&q, &arena, &r, &err), &err, ERR_SYSTEM, "cannot write");
}

static void test_interruption_leaves_no_file(void **state)
{
	(void)state;
	int fds[2];
	struct pack_result r;
	make_tree();
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	const struct run stopped = {.log = test_run()->log, .cancel_fd = fds[0]};
	struct pack_request q = request();
	q.run = &stopped;
	assert_err(pack_wheel(&q, &arena, &r, &err), &err, ERR_INTERRUPTED, "interrupted");
	assert_out_has(0);
	close(fds[0]);
	close(fds[1]);
}

/* The real installers and unpackers of the world. */
static void test_python_reads_it(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	shell("python3 -m zipfile -t '%s' >/dev/null", r.path);
	shell("unzip -tq '%s' >/dev/null", r.path);
}

static void test_pip_installs_it_and_it_imports(void **state)
{
	(void)state;
	make_tree();
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/METADATA"),
		   "Metadata-Version: 2.1\nName: tiny-pack\nVersion: 1.0\n");
	struct pack_request q = request();
	struct pack_result r = pack_ok(&q);
	shell("python3 -m pip --isolated --disable-pip-version-check install -q --no-index "
	      "--no-deps --no-cache-dir "
	      "--target '%s' '%s' "
	      "2>'%s'",
	      test_path("site"), r.path, test_path("pip.log"));
	shell("cd / && PYTHONPATH='%s' python3 -c 'import tiny; assert tiny.answer == 42; import "
	      "importlib.metadata as "
	      "m; "
	      "assert m.version(\"tiny-pack\") == \"1.0+cpu.avx2\"; "
	      "assert any(str(f).endswith(\".metadata-rev\") for f in m.files(\"tiny-pack\"))'",
	      test_path("site"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_result),
		TEST(test_metadata),
		TEST(test_wheel_file),
		TEST(test_build_tag),
		TEST(test_license_files),
		TEST(test_marker),
		TEST(test_order_of_entries),
		TEST(test_record_is_exact),
		TEST(test_what_installers_write_is_dropped),
		TEST(test_bytecode_is_dropped),
		TEST(test_data_directory_follows_the_version),
		TEST(test_modes),
		TEST(test_same_tree_same_bytes),
		TEST(test_packing_again_changes_nothing),
		TEST(test_another_revision_changes_the_tail_only),
		TEST(test_other_bytes_under_the_same_name),
		TEST(test_links_and_devices_are_refused),
		TEST(test_tree_without_dist_info),
		TEST(test_two_dist_infos),
		TEST(test_broken_metadata_leaves_the_tree_alone),
		TEST(test_missing_metadata_files),
		TEST(test_bad_requests),
		TEST(test_missing_output_directory),
		TEST(test_interruption_leaves_no_file),
		TEST(test_python_reads_it),
		TEST(test_pip_installs_it_and_it_imports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
