#include "verify_fixture.h"

/* ---- a good wheel ---- */

static void test_good_wheel(void **state)
{
	(void)state;
	char digest[65];
	make_tree();
	const char *wheel = packed();
	struct verify_report r = verify(wheel);
	assert_clean(&r);
	assert_ok(digest_file(wheel, digest, &err), &err);
	assert_string_equal(r.sha256, digest);
	assert_string_equal(r.file, "tiny_pack-1.0+cpu.avx2-py3-none-manylinux_2_17_x86_64.whl");
	assert_string_equal(r.name.dist, "tiny_pack");
	assert_string_equal(r.name.version, "1.0+cpu.avx2");
	assert_int_equal(r.members, 6);
	assert_int_equal(r.elf_files, 1);
	assert_int_equal(r.metadata_rev, 1);
	assert_string_equal(r.tag, "manylinux_2_17_x86_64");
	assert_string_equal(r.requires_torch, "torch (==2.6.0)");
	assert_true(r.bytes > 1000);
}

static void test_directory_entries_are_no_members(void **state)
{
	(void)state;
	const struct craft_entry en[] = {{.name = "d/", .data = "", .mode = S_IFDIR | 0755},
					 {.name = "d/a.py", .data = ""}};
	struct craft_zip c;
	craft_zip(&c, en, 2);
	test_write_bytes(test_path("d-1-py3-none-any.whl"), c.bytes.data, c.bytes.len);
	buf_release(&c.bytes);
	struct verify_report r = verify(test_path("d-1-py3-none-any.whl"));
	assert_int_equal(r.members, 1);
	assert_found(&r, FINDING_ERROR, "metadata", "", "has 0 .dist-info directories");
}

static void test_what_cannot_be_examined(void **state)
{
	(void)state;
	struct verify_report r = {.members = 77};
	const struct verify_request q = {.run = test_run(),
					 .wheel = test_path("absent-1-py3-none-any.whl")};
	assert_err(verify_wheel(&q, &arena, &r, &err), &err, ERR_SYSTEM, "absent");
	assert_int_equal(r.members, 77);
}

static void test_interruption(void **state)
{
	(void)state;
	int fds[2];
	make_tree();
	struct verify_request q = {.wheel = packed()};
	struct verify_report r;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	const struct run stopped = {.log = test_run()->log, .cancel_fd = fds[0]};
	q.run = &stopped;
	assert_err(verify_wheel(&q, &arena, &r, &err), &err, ERR_INTERRUPTED, "interrupted");
	close(fds[0]);
	close(fds[1]);
}

static void test_no_temporary_file_is_left(void **state)
{
	(void)state;
	make_tree();
	const char *wheel = packed();
	mkdir(test_path("tmp"), 0755);
	char *AUTO_FREE before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
	setenv("TMPDIR", test_path("tmp"), 1);
	struct verify_report r = verify(wheel);
	if (before)
		setenv("TMPDIR", before, 1);
	else
		unsetenv("TMPDIR");
	assert_clean(&r);
	assert_int_equal(rmdir(test_path("tmp")), 0);
}

/* ---- the archive ---- */

static void test_no_archive(void **state)
{
	(void)state;
	test_write(test_path("a-1-py3-none-any.whl"),
		   "this is text, and long enough for an end record");
	struct verify_report r = verify(test_path("a-1-py3-none-any.whl"));
	assert_only_error(&r, "zip", "", "no end record");
	assert_string_equal(r.name.dist, "a");
}

static void assert_crafted(const struct craft_entry *en, size_t count, const char *want)
{
	struct craft_zip c;

	craft_zip(&c, en, count);
	test_write_bytes(test_path("a-1-py3-none-any.whl"), c.bytes.data, c.bytes.len);
	buf_release(&c.bytes);
	struct verify_report r = verify(test_path("a-1-py3-none-any.whl"));
	assert_only_error(&r, "zip", "", want);
}

static void test_duplicate_entry(void **state)
{
	(void)state;
	const struct craft_entry en[] = {{.name = "a.py", .data = "1"},
					 {.name = "a.py", .data = "2"}};
	assert_crafted(en, 2, "'a.py' occurs twice");
}

static void test_trailing_bytes(void **state)
{
	(void)state;
	make_tree();
	const char *wheel = packed();
	shell("printf 'more than the archive' >>'%s'", wheel);
	struct verify_report r = verify(wheel);
	assert_only_error(&r, "zip", "", "21 extra bytes after its end");
}

static void test_path_escape(void **state)
{
	(void)state;
	const struct craft_entry en = {.name = "../../etc/cron.d/x", .data = "1"};
	assert_crafted(&en, 1, "unsafe name");
}

/* What the archive may have and a wheel may not; `want` NULL: nothing is found. */
static void assert_rule(const struct craft_entry *en, size_t count, const char *rule,
			const char *want)
{
	struct craft_zip c;

	craft_zip(&c, en, count);
	test_write_bytes(test_path("a-1-py3-none-any.whl"), c.bytes.data, c.bytes.len);
	buf_release(&c.bytes);
	struct verify_report r = verify(test_path("a-1-py3-none-any.whl"));
	const char *found = NULL;
	for (size_t i = 0; i < r.count; i++)
		if (strcmp(r.findings[i].rule, rule) == 0)
			found = r.findings[i].text;
	if (want)
		assert_contains(found ? found : "", want);
	else
		assert_null(found);
}

static void test_names_and_modes_that_do_harm(void **state)
{
	(void)state;
	static char longest[256], longer[257];
	memset(longest, 'a', 255);
	memset(longer, 'a', 256);
	const struct {
		const char *name, *want;
	} names[] = {{"C:/x.py", "names a drive or a stream on Windows"},
		     {"torch/x.py:hidden", "names a drive or a stream on Windows"},
		     {"torch/\xe2\x80\xaegnp.py", "characters in its name that are not seen"},
		     {"torch/\xe2\x80\x8bx.py", "characters in its name that are not seen"},
		     {longer, "longer than 255 bytes"},
		     {longest, NULL},
		     {"torch/\xc3\xa4.py", NULL}};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_rule(
			&(struct craft_entry){.name = names[i].name, .data = "1", .flags = 0x800},
			1, "name", names[i].want);
	const struct craft_entry twins[] = {{.name = "a.py", .data = "1"},
					    {.name = "A.py", .data = "2"}};
	assert_rule(twins, 2, "name", "is the same as");
	static const unsigned bad[] = {04755, 02755, 01777, 06755};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_rule(&(struct craft_entry){.name = "a.py",
						  .data = "1",
						  .mode = S_IFREG | bad[i]},
			    1, "mode", "setuid, setgid and sticky bits");
	assert_rule(&(struct craft_entry){.name = "a.py", .data = "1", .mode = S_IFREG | 0755}, 1,
		    "mode", NULL);
}

static void test_symbolic_link(void **state)
{
	(void)state;
	const struct craft_entry en = {
		.name = "a.so", .data = "/lib/libc.so.6", .mode = S_IFLNK | 0777};
	assert_crafted(&en, 1, "is a symbolic link");
}

static void test_broken_contents(void **state)
{
	(void)state;
	struct zip_reader *z;
	make_tree();
	const char *wheel = packed();
	assert_ok(zip_open(wheel, &arena, &z, &err), &err);
	const struct zip_entry *en = zip_find(z, "tiny/__init__.py");
	char byte;
	int fd = open(wheel, O_RDWR);
	off_t at = (off_t)(en->offset + 30 + strlen(en->name) + en->packed / 2);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x55;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
	zip_close(z);
	struct verify_report r = verify(wheel);
	assert_only_error(&r, "zip", "tiny/__init__.py", "");
}

static void test_payload_behind_the_metadata(void **state)
{
	(void)state;
	struct zip_writer *w;
	uint8_t sha256[32];
	const char *wheel = changed("true");
	unlink(wheel);
	assert_ok(zip_create(&(struct zip_new){.path = wheel, .epoch = 0, .threads = 1, .level = 6},
			     &w, &err),
		  &err);
	static const char *const names[] = {INFO "/METADATA",      INFO "/WHEEL",
					    INFO "/.metadata-rev", INFO "/RECORD",
					    "tiny/__init__.py",    "tiny/libtiny.so"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		uint64_t size;
		assert_ok(zip_add_parts(w, names[i], test_path("x/%s", names[i]), NULL, 0, sha256,
					&size, &err),
			  &err);
	}

	assert_ok(zip_finish(w, sha256, &err), &err);
	struct verify_report r = verify(wheel);
	assert_int_equal(r.errors, 0);
	assert_int_equal(r.warnings, 1);
	assert_found(&r, FINDING_WARNING, "zip", "tiny/libtiny.so", "after the dist-info");
}

/* ---- RECORD ---- */

static void assert_change(const char *command, const char *rule, const char *file, const char *want)
{
	struct verify_report r = verify(changed(command));
	assert_only_error(&r, rule, file, want);
}

static void test_extra_file(void **state)
{
	(void)state;
	assert_change("echo evil > tiny/evil.py", "record", "tiny/evil.py",
		      "is not listed in RECORD");
}

static void test_missing_file(void **state)
{
	(void)state;
	assert_change("rm tiny/__init__.py", "record", "tiny/__init__.py",
		      "listed in RECORD but not in the wheel");
}

static void test_wrong_digest(void **state)
{
	(void)state;
	assert_change("sed -i s/answer/ANSWER/ tiny/__init__.py", "record", "tiny/__init__.py",
		      "has the digest");
}

static void test_wrong_size(void **state)
{
	(void)state;
	assert_change("sed -i '/__init__/s/,[0-9]*$/,1/' $I/RECORD", "record", "tiny/__init__.py",
		      "RECORD says 1");
}

static void test_md5(void **state)
{
	(void)state;
	assert_change("sed -i '/__init__/s/sha256=[^,]*/md5=1B2M2Y8AsgTpgAmY7PhCfg/' $I/RECORD",
		      "record", "RECORD", "neither sha256 nor a stronger one");
}

static void test_no_digest(void **state)
{
	(void)state;
	assert_change("sed -i '/__init__/s/,.*/,,/' $I/RECORD", "record", "tiny/__init__.py",
		      "has no digest");
}

static void test_listed_twice(void **state)
{
	(void)state;
	assert_change("sed -i '/__init__/p' $I/RECORD", "record", "tiny/__init__.py",
		      "listed twice");
}

static void test_record_with_an_escape(void **state)
{
	(void)state;
	assert_change("echo '../x,,' >> $I/RECORD", "record", "../x", "not a path of a file in");
}

static void test_no_record(void **state)
{
	(void)state;
	assert_change("rm $I/RECORD", "record", "RECORD", "is missing");
}

static void test_record_without_itself(void **state)
{
	(void)state;
	assert_change("sed -i '/RECORD/d' $I/RECORD", "record", "RECORD", "is not listed");
}

static void test_size_missing_is_a_warning(void **state)
{
	(void)state;
	struct verify_report r = verify(changed("sed -i '/__init__/s/,[0-9]*$/,/' $I/RECORD"));
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "record", "tiny/__init__.py", "has no size");
}

/* ---- METADATA, WHEEL, marker ---- */

/* A change of a file of the dist-info with its row in RECORD mended. */
#define MENDED(file, change)                                                                       \
	change "; H=$(openssl dgst -sha256 -binary $I/" file                                       \
	       " | base64 | tr '+/' '-_' | tr -d '='); "                                           \
	       "sed -i \"\\\\|/" file ",|s|,.*|,sha256=$H,$(stat -c %s $I/" file ")|\" $I/RECORD"

static void test_other_version(void **state)
{
	(void)state;
	assert_change(MENDED("METADATA", "sed -i 's/^Version: 1.*/Version: 2.0/' $I/METADATA"),
		      "metadata", "METADATA", "has the Version '2.0'");
}

static void test_two_versions(void **state)
{
	(void)state;
	assert_change(MENDED("METADATA", "sed -i 's/^Version: .*/&\\n&/' $I/METADATA"), "metadata",
		      "METADATA", "has 2 lines Version");
}

static void test_other_name(void **state)
{
	(void)state;
	assert_change(MENDED("METADATA", "sed -i 's/^Name:.*/Name: other/' $I/METADATA"),
		      "metadata", "METADATA", "has the Name 'other'");
}

static void test_metadata_without_fields(void **state)
{
	(void)state;
	struct verify_report r =
		verify(changed(MENDED("METADATA", "echo 'Summary: x' > $I/METADATA")));
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "has no Metadata-Version");
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "has no Name");
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "has no Version");
	assert_int_equal(r.errors, 3);
}

static void test_metadata_that_is_none(void **state)
{
	(void)state;
	assert_change(MENDED("METADATA", "echo nonsense > $I/METADATA"), "metadata", "METADATA",
		      "line 1");
}

static void test_missing_info_files(void **state)
{
	(void)state;
	struct verify_report r = verify(
		changed("rm $I/METADATA $I/WHEEL; sed -i '/METADATA/d; /WHEEL/d' $I/RECORD"));
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "is missing");
	assert_found(&r, FINDING_ERROR, "metadata", "WHEEL", "is missing");
}

static void test_foreign_tag(void **state)
{
	(void)state;
	struct verify_report r = verify(changed(
		MENDED("WHEEL", "sed -i 's/^Tag:.*/Tag: cp313-cp313-linux_x86_64/' $I/WHEEL")));
	assert_found(&r, FINDING_ERROR, "metadata", "WHEEL", "which the file name does not have");
}

static void test_build_tag(void **state)
{
	(void)state;
	make_tree();
	struct pack_request q = request();
	q.metadata_rev = 2;
	struct verify_report r = verify(pack_ok(&q).path);
	assert_clean(&r);
	assert_change(MENDED("WHEEL", "sed -i 's/^Root/Build: 7\\nRoot/' $I/WHEEL"), "metadata",
		      "WHEEL", "has the Build '7', the file name ''");
}

static void test_wheel_version(void **state)
{
	(void)state;
	assert_change(MENDED("WHEEL", "sed -i 's/^Wheel-Version:.*/Wheel-Version: 2.0/' $I/WHEEL"),
		      "metadata", "WHEEL", "Wheel-Version '2.0'");
}

static void test_purelib(void **state)
{
	(void)state;
	assert_change(MENDED("WHEEL", "sed -i 's/^Root.*/Root-Is-Purelib: maybe/' $I/WHEEL"),
		      "metadata", "WHEEL", "neither true nor false");
	struct verify_report r = verify(
		changed(MENDED("WHEEL", "sed -i 's/^Root.*/Root-Is-Purelib: true/' $I/WHEEL")));
	assert_found(&r, FINDING_WARNING, "metadata", "WHEEL", "ELF files inside");
}

static void test_marker_missing(void **state)
{
	(void)state;
	assert_change("rm $I/.metadata-rev; sed -i '/metadata-rev/d' $I/RECORD", "marker",
		      ".metadata-rev", "is missing");
	/* A wheel of another tool may be so. */
	struct verify_report r = verify(changed(
		MENDED("WHEEL", "rm $I/.metadata-rev; sed -i '/metadata-rev/d' $I/RECORD; sed -i "
				"'s/^Gen.*/Generator: bdist/' $I/WHEEL")));
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_NOTE, "marker", ".metadata-rev", "is missing");
	assert_int_equal(r.metadata_rev, 0);
}

static void test_marker_malformed(void **state)
{
	(void)state;
	static const char *const texts[] = {"",
					    "rev=1",
					    "rev=0 tool=x input=y\\n",
					    "rev=-1 tool=x input=y\\n",
					    "rev=1 tool=x input=y",
					    "rev=1 tool=x input=y\\n\\n",
					    "rev=1 tool=x input=\\n",
					    "rev=1 tool= input=y\\n",
					    "rev=1 input=y tool=x\\n",
					    "rev=99999999999999999999 tool=x input=y\\n",
					    "rev=1 tool=x input=y z\\n"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *command = arena_printf(&arena, "printf '%s' > $I/.metadata-rev; %s",
						   texts[i], MENDED(".metadata-rev", "true"));
		struct verify_report r = verify(changed(command));
		assert_only_error(&r, "marker", ".metadata-rev", "is not a line");
		assert_int_equal(r.metadata_rev, 0);
	}
}

static void test_two_dist_infos(void **state)
{
	(void)state;
	struct verify_report r =
		verify(changed("mkdir a-1.dist-info; touch a-1.dist-info/METADATA"));
	assert_only_error(&r, "metadata", "", "has 2 .dist-info");
}

static void test_dist_info_of_another_name(void **state)
{
	(void)state;
	make_tree();
	const char *wheel = packed(),
		   *other = test_path("out/tiny_pack-1.1-py3-none-manylinux_2_17_x86_64.whl");
	assert_int_equal(rename(wheel, other), 0);
	struct verify_report r = verify(other);
	assert_found(&r, FINDING_ERROR, "metadata", "tiny_pack-1.0+cpu.avx2.dist-info",
		     "not named after the file");
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "but the file is named '1.1'");
	assert_int_equal(r.errors, 2);
}

static void test_file_name_of_no_wheel(void **state)
{
	(void)state;
	make_tree();
	assert_int_equal(rename(packed(), test_path("out/renamed.zip")), 0);
	struct verify_report r = verify(test_path("out/renamed.zip"));
	assert_only_error(&r, "metadata", "", "not a wheel name");
	assert_string_equal(r.name.dist, "");
	assert_int_equal(r.metadata_rev, 1);
}

static void test_expectations(void **state)
{
	(void)state;
	make_tree();
	struct verify_request q = {.wheel = packed(),
				   .expect_version = "1.0+cpu.avx2",
				   .expect_requires = "torch (==2.6.0)"};
	struct verify_report r = verify_with(q);
	assert_clean(&r);
	q.expect_version = "1.0+cpu.avx512";
	q.expect_requires = "torch==2.6.0+cpu.avx512";
	r = verify_with(q);
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "not '1.0+cpu.avx512'");
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA",
		     "does not require 'torch==2.6.0+cpu.avx512'");
	assert_int_equal(r.errors, 2);
}

/* ---- build paths ---- */

static void test_build_path(void **state)
{
	(void)state;
	make_tree();
	test_write(test_path("tree/tiny/config.py"), "flags = '-I/ptbuild/src/include'\n");
	struct verify_request q = {.wheel = packed()};
	struct verify_report r = verify_with(q);
	assert_clean(&r);
	strlist_add(&q.build_paths, &arena, "/nowhere");
	strlist_add(&q.build_paths, &arena, "/ptbuild/");
	r = verify_with(q);
	assert_only_error(&r, "build-path", "tiny/config.py", "holds '/ptbuild/' at offset 11");
}

/* What stands before the path, and whether it is one of the build. */
static void test_build_path_inside_another(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t len;
		bool found;
	} cases[] = {
#define CASE(text, found) {text, sizeof(text) - 1, found}
		CASE("the store: ~/.cache/ptbuild/objects", false),
		CASE("ptbuild/share/ptbuild/profiles", false),
		CASE("share/ptbuild/x and share/ptbuild/y", false),
		CASE("share/ptbuild/x and /ptbuild/src/y", true),
		CASE("temp.linux-x86_64-cpython-313/ptbuild/src/x.o", false),
		CASE("/ptbuild/src/a.c", true),
		CASE("x=/ptbuild/src", true),
		CASE("'/ptbuild/src'", true),
		CASE("a:/ptbuild/src", true),
		CASE("-L/ptbuild/src", true),
		CASE("-isystem/ptbuild/src/include", true),
		/* marshal: the type, the length */
		CASE("\xda\x61/ptbuild/src/torch/version.py", true),
		/* protobuf: the field, the length */
		CASE("Ba/ptbuild/src/x.proto", true),
#undef CASE
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		test_dir();
		make_tree();
		test_write_bytes(test_path("tree/tiny/text"), cases[i].text, cases[i].len);
		struct verify_request q = {.wheel = packed()};
		strlist_add(&q.build_paths, &arena, "/ptbuild/");
		struct verify_report r = verify_with(q);
		if (cases[i].found)
			assert_only_error(&r, "build-path", "tiny/text",
					  "holds '/ptbuild/' at offset");
		else
			assert_clean(&r);
	}
}

static void test_build_path_in_a_library(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY, "const char *where(void) { return \"/ptbuild/src/a.c\"; }\n", "-nostdlib");
	struct verify_request q = {.wheel = packed()};
	strlist_add(&q.build_paths, &arena, "/ptbuild/");
	struct verify_report r = verify_with(q);
	assert_only_error(&r, "build-path", "tiny/libtiny.so", "holds '/ptbuild/'");
}

/* ---- the report ---- */

static void test_text(void **state)
{
	(void)state;
	struct verify_report r = verify(changed("echo evil > tiny/evil.py"));
	const char *text = verify_text(&r, &arena);
	assert_contains(text, "error: tiny/evil.py: is not listed in RECORD [record]\n");
	assert_contains(text, "tiny_pack-1.0+cpu.avx2-py3-none-manylinux_2_17_x86_64.whl: 7 files, "
			      "1 of them ELF, fit "
			      "for manylinux_2_17_x86_64 (");
	assert_contains(text, "), metadata revision 1: 1 error, 0 warnings\n");
}

static void test_json(void **state)
{
	(void)state;
	struct verify_report r = verify(changed("echo evil > tiny/evil.py"));
	json_t *AUTO_JSON j = verify_json(&r);
	assert_non_null(j);
	assert_false(json_is_true(json_object_get(j, "ok")));
	assert_string_equal(json_string_value(json_object_get(j, "distribution")), "tiny_pack");
	assert_string_equal(json_string_value(json_object_get(j, "sha256")), r.sha256);
	assert_int_equal(json_integer_value(json_object_get(j, "metadata_rev")), 1);
	assert_int_equal(json_integer_value(json_object_get(j, "errors")), 1);
	const json_t *f = json_array_get(json_object_get(j, "findings"), 0);
	assert_string_equal(json_string_value(json_object_get(f, "level")), "error");
	assert_string_equal(json_string_value(json_object_get(f, "rule")), "record");
	assert_string_equal(json_string_value(json_object_get(f, "file")), "tiny/evil.py");
}

static void test_json_of_a_name_that_is_no_utf8(void **state)
{
	(void)state;
	static const char name[] = "a\xff.py";
	const struct craft_entry en = {.name = name, .data = "", .flags = 1 << 11};
	struct craft_zip c;
	craft_zip(&c, &en, 1);
	test_write_bytes(test_path("a-1-py3-none-any.whl"), c.bytes.data, c.bytes.len);
	buf_release(&c.bytes);
	struct verify_report r = verify(test_path("a-1-py3-none-any.whl"));
	assert_only_error(&r, "zip", "", "not UTF-8");
	json_t *AUTO_JSON j = verify_json(&r);
	assert_non_null(j);
	assert_int_equal(json_array_size(json_object_get(j, "findings")), 1);
}

static void test_brief_report_has_one_line_a_rule_and_counts_notes(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct finding findings[] = {{FINDING_NOTE, "isa", "a.so", "first note"},
				     {FINDING_WARNING, "rpath", "b.so", "first warning"},
				     {FINDING_WARNING, "rpath", "c.so", "second warning"},
				     {FINDING_NOTE, "isa", "c.so", "second note"},
				     {FINDING_ERROR, "rpath", "d.so", "an error"}};
	const struct verify_report r = {.findings = findings,
					.count = ARRAY_LEN(findings),
					.errors = 1,
					.warnings = 2,
					.file = "x.whl",
					.sha256 = "",
					.name = {.dist = "x",
						 .version = "1",
						 .python = "py3",
						 .abi = "none",
						 .platform = "any"},
					.tag = "any",
					.tag_why = "",
					.requires_torch = "",
					.promise = {.from = ""}};
	AUTO_JSON json_t *doc = verify_json(&r);
	verify_brief(doc);
	const char *text = show_string(doc, verify_brief_rows, &a);
	assert_int_equal(strncmp(text,
				 "error: d.so: an error [rpath]\nwarning: b.so: first warning "
				 "[rpath]; and 1 more\n",
				 strlen("error: d.so: an error [rpath]\nwarning: b.so: first "
					"warning [rpath]; and 1 more\n")),
			 0);
	assert_null(strstr(text, "second"));
	assert_null(strstr(text, " note\n"));
	assert_contains(text, "1 error, 2 warnings, 2 notes\n--notes");
	const char *all = show_string(doc, verify_rows, &a);
	for (size_t i = 0; i < ARRAY_LEN(findings); i++)
		assert_contains(all, findings[i].text);
	(void)show_strip(doc);
	AUTO_JSON json_t *whole = verify_json(&r);
	assert_true(json_equal(doc, whole));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_brief_report_has_one_line_a_rule_and_counts_notes),
		TEST(test_good_wheel),
		TEST(test_directory_entries_are_no_members),
		TEST(test_what_cannot_be_examined),
		TEST(test_interruption),
		TEST(test_no_temporary_file_is_left),
		TEST(test_no_archive),
		TEST(test_duplicate_entry),
		TEST(test_trailing_bytes),
		TEST(test_path_escape),
		TEST(test_names_and_modes_that_do_harm),
		TEST(test_symbolic_link),
		TEST(test_broken_contents),
		TEST(test_payload_behind_the_metadata),
		TEST(test_extra_file),
		TEST(test_missing_file),
		TEST(test_wrong_digest),
		TEST(test_wrong_size),
		TEST(test_md5),
		TEST(test_no_digest),
		TEST(test_listed_twice),
		TEST(test_record_with_an_escape),
		TEST(test_no_record),
		TEST(test_record_without_itself),
		TEST(test_size_missing_is_a_warning),
		TEST(test_other_version),
		TEST(test_two_versions),
		TEST(test_other_name),
		TEST(test_metadata_without_fields),
		TEST(test_metadata_that_is_none),
		TEST(test_missing_info_files),
		TEST(test_foreign_tag),
		TEST(test_build_tag),
		TEST(test_wheel_version),
		TEST(test_purelib),
		TEST(test_marker_missing),
		TEST(test_marker_malformed),
		TEST(test_two_dist_infos),
		TEST(test_dist_info_of_another_name),
		TEST(test_file_name_of_no_wheel),
		TEST(test_expectations),
		TEST(test_build_path),
		TEST(test_build_path_inside_another),
		TEST(test_build_path_in_a_library),
		TEST(test_text),
		TEST(test_json),
		TEST(test_json_of_a_name_that_is_no_utf8),
	};

	return cmocka_run_group_tests(tests, load_policy, NULL);
}
