#include "support.h"

#include <string.h>

#include "base/sys/digest.h"
#include "core/wheel/wheel.h"

static struct arena arena;
static struct err err;

static int setup(void **state)
{
	(void)state;
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

/* ---- names ---- */

static void test_name_parts(void **state)
{
	(void)state;
	struct wheel_name n;
	assert_ok(
		wheel_name_parse("dist/torch-2.6.0+cpu.avx2-cp313-cp313-manylinux_2_41_x86_64.whl",
				 &arena, &n, &err),
		&err);
	assert_string_equal(n.dist, "torch");
	assert_string_equal(n.version, "2.6.0+cpu.avx2");
	assert_string_equal(n.build, "");
	assert_string_equal(n.python, "cp313");
	assert_string_equal(n.abi, "cp313");
	assert_string_equal(n.platform, "manylinux_2_41_x86_64");
}

static void test_label_word_of_torch(void **state)
{
	(void)state;
	static const char *const words[][3] = {
		{"2.13.0+cpu.avx2", "cpu.avx2", "torch2130"},
		{"2.13.0", "cpu.avx2", "torch2130plain"},
		{"2.13.0+cu130.sm90", "cpu.avx2", "torch2130cu130sm90"},
		{"2.12.0a0+Git_1", "cpu.avx2", "torch2120a0git1"},
	};
	static const char *const labels[][2] = {
		{"cpu.avx2.torch2130", "cpu.avx2"},
		{"cpu-avx2-torch2130plain", "cpu-avx2"},
		{"cpu.avx2", "cpu.avx2"},
		{"cpu.avx2.torch", "cpu.avx2.torch"},
		{"cpu.torch2130.avx2", "cpu.torch2130.avx2"},
		{"torch2130", "torch2130"},
		{"", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_string_equal(label_torch_word(words[i][0], words[i][1], &arena),
				    words[i][2]);
	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		assert_string_equal(label_without_torch(labels[i][0], &arena), labels[i][1]);
}

static void test_name_with_build_tag(void **state)
{
	(void)state;
	struct wheel_name n;
	assert_ok(
		wheel_name_parse("torch-2.6.0-1rc-cp313-cp313-linux_x86_64.whl", &arena, &n, &err),
		&err);
	assert_string_equal(n.build, "1rc");
	assert_string_equal(n.python, "cp313");
}

/* Names as they are in use. */
static void test_names_round_trip(void **state)
{
	(void)state;
	static const char *const names[] = {
		"torch-2.6.0+cpu.avx2-1-cp313-cp313-manylinux_2_41_x86_64.whl",
		"numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
		"six-1.17.0-py2.py3-none-any.whl",
		"PyYAML-6.0-cp310-cp310-manylinux_2_5_x86_64.manylinux1_x86_64.whl",
		"zope.interface-7.0-cp313-cp313-win_amd64.whl",
		"cryptography-50.0.2-cp311-abi3-manylinux_2_34_x86_64.whl",
		"pytz-2024.1-py2.py3-none-any.whl",
		"x-1!2.0.post1.dev3-py3-none-any.whl",
		"typing_extensions-4.16.0rc1-py3-none-any.whl",
		"pip-26.3-py3-none-macosx_11_0_arm64.whl",
		"torch-2.9.1-cp313-cp313-manylinux_2_28_x86_64-sm90_v4.whl",
		"torch-2.9.1-2-cp313-cp313-manylinux_2_28_x86_64-cu128.sm90.avx512.whl",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct wheel_name n;
		assert_ok(wheel_name_parse(names[i], &arena, &n, &err), &err);
		assert_string_equal(wheel_name_format(&n, &arena), names[i]);
	}
}

static void test_bad_names_say_which_part(void **state)
{
	(void)state;
	static const struct {
		const char *name, *want;
	} cases[] = {
		{"torch-2.6.0-cp313-cp313-linux_x86_64.zip", "does not end in .whl"},
		{".whl", "fewer than five"},
		{"torch-2.6.0-cp313-linux_x86_64.whl", "fewer than five"},
		{"a-1-1-py3-none-any-x-y.whl", "more than seven"},
		{"a-1-py3-none-any-x+y.whl", "the variant's label"},
		{"a-1-1-py3-none-any-X.whl", "the variant's label"},
		{"a-1-1-py3-none-any-.whl", "a part of it is empty"},
		{"-1-py3-none-any.whl", "distribution name"},
		{"to rch-1-py3-none-any.whl", "distribution name"},
		{"_torch-1-py3-none-any.whl", "distribution name"},
		{"t\xc3\xa4-1-py3-none-any.whl", "distribution name"},
		{"torch--py3-none-any.whl", "version"},
		{"torch-main-py3-none-any.whl", "version"},
		{"torch-1..2-py3-none-any.whl", "version"},
		{"torch-1+-py3-none-any.whl", "version"},
		{"torch-1%2Ba-py3-none-any.whl", "version"},
		{"torch-1+a+b-py3-none-any.whl", "local label"},
		{"torch-1+.a-py3-none-any.whl", "local label"},
		{"torch-1/2-py3-none-any.whl", "fewer than five"},
		{"torch-1-x1-py3-none-any.whl", "build tag must begin with a digit"},
		{"torch-1--py3-none-any.whl", "a part of it is empty"},
		{"torch-1--none-any.whl", "a part of it is empty"},
		{"torch-1-py3.-none-any.whl", "Python tag"},
		{"torch-1-py2..py3-none-any.whl", "Python tag"},
		{"torch-1-py3-no+ne-any.whl", "ABI tag"},
		{"torch-1-py3-none-.whl", "a part of it is empty"},
		{"torch-1-py3-none-an y.whl", "platform tag"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wheel_name n = {.dist = "untouched"};
		assert_err(wheel_name_parse(cases[i].name, &arena, &n, &err), &err, ERR_INTEGRITY,
			   cases[i].want);
		assert_string_equal(n.dist, "untouched");
		assert_contains(err.hint, "NAME-VERSION");
	}
}

static void test_the_pythons_of_a_name(void **state)
{
	(void)state;
	const struct {
		const char *tags, *python;
		bool takes;
	} cases[] = {
		{"cp313-cp313", "3.13", true},       {"cp313-cp313", "3.12", false},
		{"cp313-cp313", "3.14", false},      {"cp31-cp31", "3.13", false},
		{"cp39-abi3", "3.13", true},         {"cp39-abi3", "3.8", false},
		{"py3-none", "3.13", true},          {"py2.py3-none", "3.9", true},
		{"py2-none", "3.9", false},          {"py310-none", "3.13", true},
		{"py310-none", "3.9", false},        {"cp312-none", "3.13", false},
		{"cp312.cp313-cp313", "3.13", true}, {"pp310-pypy310_pp73", "3.10", false},
		{"cp313-cp313t", "3.13", false},     {"cp313-cp313t", "3.13t", true},
		{"cp313-cp313", "3.13t", false},     {"cp313-cp313t", "3.14t", false},
		{"cp39-abi3", "3.13t", false},       {"py3-none", "3.13t", true},
		{"cp313-none", "3.13t", true},       {"cp315-abi3t", "3.15t", true},
		{"cp315-abi3t", "3.16", false},      {"cp314-abi3t", "3.14t", true},
		{"cp36-cp36m", "3.6", true},         {"cp36-cp36", "3.6", false},
		{"cp38-cp38m", "3.8", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wheel_name n;
		const char *file =
			arena_printf(&arena, "torch-1-%s-linux_x86_64.whl", cases[i].tags);
		assert_ok(wheel_name_parse(file, &arena, &n, &err), &err);
		if (wheel_name_takes(&n, cases[i].python, &arena) != cases[i].takes)
			fail_msg("%s with Python %s", file, cases[i].python);
	}
}

/* Every cell of the table, which packaging.tags wrote. */
static void test_the_machines_of_a_name(void **state)
{
	struct strlist lines = {0}, pythons = {0}, platforms = {0}, columns = {0};
	size_t cells = 0;

	(void)state;
	AUTO_FREE char *text = test_read(TEST_DATA_DIR "/tag_sets.tsv");
	strlist_split(&lines, &arena, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		struct strlist row = {0};
		strlist_split(&row, &arena, lines.items[i], "\t");
		struct strlist *head = strcmp(row.items[0], "pythons") == 0     ? &pythons
				       : strcmp(row.items[0], "platforms") == 0 ? &platforms
				       : strcmp(row.items[0], "tags") == 0      ? &columns
										: NULL;
		if (head)
			*head = row;
		if (head || row.items[0][0] == '#')
			continue;
		for (size_t k = 1; k < columns.count; k++) {
			struct wheel_name n;
			const char *name = arena_printf(&arena, "t-1-%s-%s.whl", row.items[0],
							columns.items[k]);
			unsigned long want = row.count > 1 ? strtoul(row.items[k], NULL, 16) : 0,
				      got = 0, bit = 1;
			assert_ok(wheel_name_parse(name, &arena, &n, &err), &err);
			for (size_t p = 1; p < pythons.count; p++)
				for (size_t m = 1; m < platforms.count; m++, bit <<= 1) {
					struct strlist on = {0};
					strlist_split(&on, &arena, platforms.items[m], "-");
					if (wheel_name_installs(
						    &n, pythons.items[p],
						    &(struct wheel_machine){
							    on.items[0],
							    (unsigned)strtoul(on.items[1], NULL,
									      10)},
						    &arena))
						got |= bit;
				}
			if (got != want)
				fail_msg("%s: %lx, not %lx", name, got, want);
			cells++;
		}
	}

	assert_int_equal(cells, 280 * 14);
}

static void test_how_pythons_are_told(void **state)
{
	static const struct {
		const char *tags, *names;
		bool newer;
	} cases[] = {
		{"cp313-cp313-linux_x86_64", "3.13", false},
		{"cp313-none-any", "3.13", false},
		{"py313-none-any", "3.13", true},
		{"py2.py3-none-any", "2, 3", true},
		{"py2-none-any", "2", false},
		{"cp310.cp312-cp310.cp312-linux_x86_64", "3.10, 3.12", false},
		{"cp311.cp39-cp310.abi3-linux_x86_64", "3.9", true},
		{"cp313.cp312-cp313.abi3-linux_x86_64", "3.12", true},
		{"cp314-cp314t-linux_x86_64", "3.14t", false},
		{"cp311-cp311d-linux_x86_64", "3.11 built with 'd'", false},
		{"cp27-cp27mu-manylinux1_x86_64", "2.7", false},
		{"jy27-none-any", "Jython 2.7", false},
		{"pp311-pypy311_pp73-linux_x86_64", "PyPy 3.11", false},
		{"graalpy313-graalpy250_313_native-linux_x86_64", "GraalPy 3.13", false},
		{"cp3-none-any", "", false},
		{"py3-cp311-any", "", false},
		{"cp311-abi3-any", "", false},
		{"CP311-CP311-linux_x86_64", "3.11", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wheel_name n;
		bool newer;
		assert_ok(wheel_name_parse(arena_printf(&arena, "t-1-%s.whl", cases[i].tags),
					   &arena, &n, &err),
			  &err);
		assert_string_equal(wheel_name_pythons(&n, &arena, &newer), cases[i].names);
		assert_int_equal(newer, cases[i].newer);
	}
}

static void test_normalize(void **state)
{
	(void)state;
	assert_string_equal(wheel_normalize("Torch", &arena), "torch");
	assert_string_equal(wheel_normalize("zope.interface", &arena), "zope_interface");
	assert_string_equal(wheel_normalize("a-_.-B..c", &arena), "a_b_c");
	assert_string_equal(wheel_normalize("", &arena), "");
	assert_string_equal(wheel_normalize("-x-", &arena), "_x_");
}

static void test_dist_info(void **state)
{
	(void)state;
	const struct wheel_name n = {.dist = "torch", .version = "2.6.0+cpu.avx2"};
	assert_string_equal(wheel_dist_info(&n, &arena), "torch-2.6.0+cpu.avx2.dist-info");
}

/* ---- RECORD ---- */

#define DIGEST "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"

static void test_versions_that_are_the_same(void **state)
{
	(void)state;
	static const char *const keys[][2] = {
		{"1.0", "1"},
		{"v1.0.0", "1"},
		{"0", "0"},
		{"0.0", "0"},
		{"0!1.10.0", "1.10"},
		{"2!01.002", "2!1.2"},
		{"1.0-RC1", "1rc1"},
		{"1.0.preview_01", "1rc1"},
		{"1.0c", "1rc0"},
		{"1.0Beta.2", "1b2"},
		{"1.0a", "1a0"},
		{"1.0-4", "1.post4"},
		{"1.0_4", "1.post4"},
		{"1.0.rev4", "1.post4"},
		{"1.0r", "1.post0"},
		{"1.0-post-2", "1.post2"},
		{"1.0.DEV", "1.dev0"},
		{"1.0a1.post2.dev3+L_4-05.x", "1a1.post2.dev3+l.4.5.x"},
		{"2.8.0+cu12torch2.6cxx11abiTRUE", "2.8+cu12torch2.6cxx11abitrue"},
		{" 1.0 ", "1"},
	};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		assert_string_equal(wheel_version_key(keys[i][0], &arena), keys[i][1]);
	static const char *const none[] = {"",         "x",  "1.",      "1.0-debian",    "1.0+",
					   "1.0+a..b", "1!", "1.0 rc1", "1.0post1dev2x", "1.0+a+b"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (wheel_version_key(none[i], &arena))
			fail_msg("'%s' is taken as %s", none[i],
				 wheel_version_key(none[i], &arena));
	assert_true(wheel_same_version("1.0.0+CPU_avx2", "1+cpu.avx2", &arena));
	assert_false(wheel_same_version("1.0", "1.0+cpu", &arena));
	assert_false(wheel_same_version("1.0", "1.0.post0", &arena));
	assert_true(wheel_same_version("odd-one", "odd-one", &arena));
	struct wheel_name n = {.dist = "multi_res", .version = "0.1"};
	assert_true(wheel_is_dist_info(&n, "Multi.Res-0.1.0.dist-info", &arena));
	assert_false(wheel_is_dist_info(&n, "multi_res-0.2.dist-info", &arena));
	assert_false(wheel_is_dist_info(&n, "multi_res.dist-info", &arena));
}

static size_t record(const char *text, struct wheel_record_row **rows)
{
	size_t count = 99;

	assert_ok(wheel_record_parse(text, strlen(text), "RECORD", &arena, rows, &count, &err),
		  &err);
	return count;
}

static void test_record_rows(void **state)
{
	(void)state;
	struct wheel_record_row *rows;
	assert_int_equal(record("a/b.py," DIGEST ",12\r\nt.dist-info/RECORD,,\n", &rows), 2);
	assert_string_equal(rows[0].path, "a/b.py");
	assert_string_equal(rows[0].digest, DIGEST);
	assert_int_equal(rows[0].size, 12);
	assert_string_equal(rows[1].path, "t.dist-info/RECORD");
	assert_string_equal(rows[1].digest, "");
	assert_int_equal(rows[1].size, -1);
}

static void test_record_with_stronger_digests(void **state)
{
	(void)state;
	struct wheel_record_row *rows;
	char digest[DIGEST_RECORD_MAX];
	static const char *const names[] = {"sha256",   "sha384",   "sha512",  "sha3_256",
					    "sha3_384", "sha3_512", "blake2b", "blake2s"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		digest_record(names[i], "", 0, digest);
		assert_int_equal(strlen(digest),
				 strlen(names[i]) + 1 + digest_record_length(names[i]));
		assert_int_equal(record(arena_printf(&arena, "a,%s,0\n", digest), &rows), 1);
		assert_string_equal(rows[0].digest, digest);
	}

	digest_record("sha256", "", 0, digest);
	assert_string_equal(digest, DIGEST);
	digest_record("sha384", "", 0, digest);
	assert_string_equal(
		digest, "sha384=OLBgp1GsljhM2TJ-sbHjaiH9txEUvgdDTAzHv2P24donTt6_529l-9Ua0vFImLlb");
	assert_int_equal(digest_record_length("md5"), 0);
}

static void test_record_may_be_empty_or_lack_its_last_newline(void **state)
{
	(void)state;
	struct wheel_record_row *rows;
	assert_int_equal(record("", &rows), 0);
	assert_int_equal(record("x,,0", &rows), 1);
	assert_int_equal(rows[0].size, 0);
}

static void test_record_quoting_round_trips(void **state)
{
	(void)state;
	static const char *const paths[] = {"plain",      "with,comma", "with\"quote",    "\"",
					    "two\nlines", "cr\rhere",   "\xc3\xa4 space", ",\",\""};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct buf AUTO_BUF b = {0};
		struct wheel_record_row *rows;
		wheel_record_line(&b, paths[i], DIGEST, (int64_t)i);
		wheel_record_line(&b, "RECORD", "", -1);
		assert_int_equal(record(buf_cstr(&b), &rows), 2);
		assert_string_equal(rows[0].path, paths[i]);
		assert_string_equal(rows[0].digest, DIGEST);
		assert_int_equal(rows[0].size, i);
		assert_string_equal(rows[1].path, "RECORD");
	}
}

static void test_record_line_text(void **state)
{
	(void)state;
	struct buf AUTO_BUF b = {0};
	wheel_record_line(&b, "a.py", DIGEST, 7);
	wheel_record_line(&b, "t,x/RECORD", "", -1);
	assert_string_equal(buf_cstr(&b), "a.py," DIGEST ",7\n\"t,x/RECORD\",,\n");
}

static void test_bad_records_name_the_line(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"a," DIGEST ",1\nb\n", "'RECORD' line 2: fewer than three fields"},
		{"a,\n", "line 1: fewer than three"},
		{"\n", "line 1: the path is empty"},
		{",,\n", "the path is empty"},
		{"a,,,\n", "more than three fields"},
		{"a,md5=1B2M2Y8AsgTpgAmY7PhCfg,1\n", "the digest is neither sha256 nor"},
		{"a,sha224=0UoCjCo6K8lHYQK7KII0xBWisB-CjqYqxbPkLw,1\n", "neither sha256 nor"},
		{"a,sha512=abc,1\n", "not unpadded URL-safe base64"},
		{"a,47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,1\n",
		 "neither sha256 nor a stronger one"},
		{"a,sha256=,1\n", "not unpadded URL-safe base64"},
		{"a," DIGEST "=,1\n", "not unpadded URL-safe base64"},
		{"a,sha256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU,1\n",
		 "not unpadded URL-safe base64"},
		{"a," DIGEST ",-1\n", "the size is not a number"},
		{"a," DIGEST ",0x1\n", "the size is not a number"},
		{"a," DIGEST ",1 \n", "the size is not a number"},
		{"a," DIGEST ",9999999999999999999\n", "the size is not a number"},
		{"\"a,,\n", "a quote is not closed"},
		{"\"a\"b,,\n", "text after a closed quote"},
		{"a\"b,,\n", "a quote in a field that is not quoted"},
		{"a,,1\rb,,\n", "a carriage return inside"},
		{"a,,1\r\rb,,\n", "a carriage return inside"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wheel_record_row *rows = NULL;
		size_t count = 99;
		assert_err(wheel_record_parse(cases[i].text, strlen(cases[i].text), "RECORD",
					      &arena, &rows, &count, &err),
			   &err, ERR_INTEGRITY, cases[i].want);
		assert_null(rows);
		assert_int_equal(count, 99);
	}
}

static void test_record_with_nul(void **state)
{
	(void)state;
	struct wheel_record_row *rows;
	size_t count;
	assert_err(wheel_record_parse("a\0b,,\n", 6, "RECORD", &arena, &rows, &count, &err), &err,
		   ERR_INTEGRITY, "NUL");
}

/* ---- METADATA and WHEEL ---- */

static struct wheel_headers headers(const char *text)
{
	struct wheel_headers h;
	assert_ok(wheel_headers_parse(&(struct file_bytes){text, strlen(text), "METADATA"}, &arena,
				      &h, &err),
		  &err);
	return h;
}

static void assert_written(const struct wheel_headers *h, const char *want)
{
	assert_string_equal(wheel_headers_text(h, &arena), want);
}

static void test_headers_values(void **state)
{
	(void)state;
	struct wheel_headers h = headers("Name: torch\nVersion:2.6.0 \nKeywords:\nTag: a\ntag: "
					 "b\n\nThe body\n\nwith: lines\n");
	assert_int_equal(h.count, 5);
	assert_string_equal(wheel_headers_get(&h, "name"), "torch");
	assert_string_equal(wheel_headers_get(&h, "VERSION"), "2.6.0");
	assert_string_equal(wheel_headers_get(&h, "Keywords"), "");
	assert_string_equal(wheel_headers_get(&h, "Tag"), "a");
	assert_null(wheel_headers_get(&h, "with"));
	assert_string_equal(h.body, "The body\n\nwith: lines\n");
}

static void test_folded_values(void **state)
{
	(void)state;
	struct wheel_headers h = headers("License: one\n two\n\n");
	assert_string_equal(wheel_headers_get(&h, "License"), "one\n two");
	h = headers("Description: x\n\ty\n  \n z\nName: n\n");
	assert_int_equal(h.count, 2);
	assert_string_equal(wheel_headers_get(&h, "Name"), "n");
}

static void test_unchanged_headers_are_written_byte_by_byte(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"Name: n",
		"Name: n\n",
		"Name:n\n",
		"Name:   n  \t\nKeywords:\nK2: \n",
		"Name: n\n\n",
		"Name: n\n\nbody",
		"Name: n\r\nVersion: 1\r\n\r\nbody\r\n",
		"License: a\n        b\n\tc\nX: y\n\n\n\nbody",
		"\nbody only",
		"A: \xff\xfe\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct wheel_headers h = headers(texts[i]);
		assert_written(&h, texts[i]);
	}
}

static void test_set_replaces_the_first_and_drops_others(void **state)
{
	(void)state;
	struct wheel_headers h = headers("A:  1\nTag: x\nB: 2\ntag: y\n\nbody\n");
	wheel_headers_set(&h, &arena, "TAG", "z");
	assert_written(&h, "A:  1\nTag: z\nB: 2\n\nbody\n");
	wheel_headers_set(&h, &arena, "New", "n");
	assert_written(&h, "A:  1\nTag: z\nB: 2\nNew: n\n\nbody\n");
	/* the same value again leaves the line as it was */
	wheel_headers_set(&h, &arena, "A", "1");
	assert_written(&h, "A:  1\nTag: z\nB: 2\nNew: n\n\nbody\n");
}

static void test_add_goes_behind_the_last_of_its_name(void **state)
{
	(void)state;
	struct wheel_headers h = headers("Tag: x\nB: 2\nTag: y\nC: 3\n");
	wheel_headers_add(&h, &arena, "tag", "z");
	wheel_headers_add(&h, &arena, "D", "4");
	assert_written(&h, "Tag: x\nB: 2\nTag: y\ntag: z\nC: 3\nD: 4\n");
}

static void test_remove_by_prefix(void **state)
{
	(void)state;
	struct wheel_headers h = headers("R: torch\nR: numpy\nr: torchvision\nS: torch\n");
	wheel_headers_remove(&h, "R", "torch");
	assert_written(&h, "R: numpy\nS: torch\n");
	wheel_headers_remove(&h, "R", "");
	assert_written(&h, "S: torch\n");
	wheel_headers_remove(&h, "absent", "");
	assert_written(&h, "S: torch\n");
}

static void test_new_lines_have_the_ends_of_the_file(void **state)
{
	(void)state;
	struct wheel_headers h = headers("A: 1\r\n\r\nbody\r\n");
	wheel_headers_set(&h, &arena, "B", "2");
	assert_written(&h, "A: 1\r\nB: 2\r\n\r\nbody\r\n");
	h = headers("A: 1");
	wheel_headers_set(&h, &arena, "B", "2");
	assert_written(&h, "A: 1\nB: 2\n");
}

static void test_many_headers(void **state)
{
	(void)state;
	struct wheel_headers h = headers("");
	for (int i = 0; i < 500; i++)
		wheel_headers_add(&h, &arena, "Tag", arena_printf(&arena, "%d", i));
	assert_int_equal(h.count, 500);
	assert_string_equal(h.items[499].value, "499");
	struct wheel_headers back = headers(wheel_headers_text(&h, &arena));
	assert_int_equal(back.count, 500);
	assert_string_equal(back.items[123].value, "123");
}

static void test_bad_headers_name_the_line(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"Name: n\nno colon\n", "'METADATA' line 2"},
		{" starts folded\n", "line 1"},
		{": no name\n", "line 1"},
		{"Na me: x\n", "line 1"},
		{"A: 1\n b\n c\nbad", "line 4"},
		{"N\xc3\xa4me: x\n", "line 1"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wheel_headers h = {.count = 77};
		assert_err(
			wheel_headers_parse(&(struct file_bytes){cases[i].text,
								 strlen(cases[i].text), "METADATA"},
					    &arena, &h, &err),
			&err, ERR_INTEGRITY, cases[i].want);
		assert_int_equal(h.count, 77);
	}

	struct wheel_headers h;
	assert_err(wheel_headers_parse(&(struct file_bytes){"A: \0\n", 5, "METADATA"}, &arena, &h,
				       &err),
		   &err, ERR_INTEGRITY, "NUL");
}

/* ---- requirements ---- */

static void test_requirement_names(void **state)
{
	(void)state;
	assert_string_equal(wheel_requires_name("torch==2.6.0", &arena), "torch");
	assert_string_equal(
		wheel_requires_name("Typing-Extensions (>=4) ; python_version < '3.11'", &arena),
		"typing_extensions");
	assert_string_equal(wheel_requires_name(" zope.interface[x]>=1", &arena), "zope_interface");
	assert_string_equal(wheel_requires_name("torch @ file:///x", &arena), "torch");
	assert_string_equal(wheel_requires_name(">=1", &arena), "");
}

static void test_requirement_replaces_its_distribution(void **state)
{
	(void)state;
	struct wheel_headers h = headers("Name: torchvision\nRequires-Dist: numpy ; extra == "
					 "'x'\nRequires-Dist: Torch (==2.6.0)\n"
					 "Requires-Dist: torchaudio\nRequires-Dist: torch ; extra "
					 "== 'y'\nSummary: s\n\nbody");
	wheel_requires_replace(&h, &arena, "torch==2.6.0+cpu.avx2");
	assert_written(&h, "Name: torchvision\nRequires-Dist: numpy ; extra == 'x'\nRequires-Dist: "
			   "torch==2.6.0+cpu.avx2\n"
			   "Requires-Dist: torchaudio\nSummary: s\n\nbody");
}

static void test_requirement_is_added(void **state)
{
	(void)state;
	struct wheel_headers h = headers("Name: n\nRequires-Dist: numpy\nSummary: s\n");
	wheel_requires_replace(&h, &arena, "nvidia-cublas-cu12==12.8.*");
	assert_written(&h, "Name: n\nRequires-Dist: numpy\nRequires-Dist: "
			   "nvidia-cublas-cu12==12.8.*\nSummary: s\n");
	wheel_requires_replace(&h, &arena, "nvidia_cublas.cu12==12.9.*");
	assert_written(&h, "Name: n\nRequires-Dist: numpy\nRequires-Dist: "
			   "nvidia_cublas.cu12==12.9.*\nSummary: s\n");
	struct wheel_headers none = headers("Name: n\n");
	wheel_requires_replace(&none, &arena, "torch");
	assert_written(&none, "Name: n\nRequires-Dist: torch\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_name_parts),
		TEST(test_label_word_of_torch),
		TEST(test_name_with_build_tag),
		TEST(test_names_round_trip),
		TEST(test_bad_names_say_which_part),
		TEST(test_the_pythons_of_a_name),
		TEST(test_the_machines_of_a_name),
		TEST(test_how_pythons_are_told),
		TEST(test_normalize),
		TEST(test_dist_info),
		TEST(test_versions_that_are_the_same),
		TEST(test_record_rows),
		TEST(test_record_with_stronger_digests),
		TEST(test_record_may_be_empty_or_lack_its_last_newline),
		TEST(test_record_quoting_round_trips),
		TEST(test_record_line_text),
		TEST(test_bad_records_name_the_line),
		TEST(test_record_with_nul),
		TEST(test_headers_values),
		TEST(test_folded_values),
		TEST(test_unchanged_headers_are_written_byte_by_byte),
		TEST(test_set_replaces_the_first_and_drops_others),
		TEST(test_add_goes_behind_the_last_of_its_name),
		TEST(test_remove_by_prefix),
		TEST(test_new_lines_have_the_ends_of_the_file),
		TEST(test_many_headers),
		TEST(test_bad_headers_name_the_line),
		TEST(test_requirement_names),
		TEST(test_requirement_replaces_its_distribution),
		TEST(test_requirement_is_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
