/* Archives that are not as a wheel's must be. */
#include "zip_fixture.h"

static void assert_crafted(struct craft_zip *c, const char *want)
{
	struct zip_reader *z = NULL;

	test_write_bytes(test_path("c.zip"), c->bytes.data, c->bytes.len);
	assert_err(zip_open(test_path("c.zip"), &arena, &z, &err), &err, ERR_INTEGRITY, want);
	assert_contains(err.msg, "c.zip");
	buf_release(&c->bytes);
}

static void assert_crafted_ok(struct craft_zip *c)
{
	test_write_bytes(test_path("c.zip"), c->bytes.data, c->bytes.len);
	zip_close(open_ok(test_path("c.zip")));
	buf_release(&c->bytes);
}

static void test_crafted_archive_is_fine(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	test_write_bytes(test_path("c.zip"), c.bytes.data, c.bytes.len);
	struct zip_reader *z = open_ok(test_path("c.zip"));
	assert_entry(z, "a.txt", "hello", 5);
	assert_entry(z, "d/b.txt", "world", 5);
	assert_int_equal(zip_at(z, 0)->mode, 0);
	assert_int_equal(zip_at(z, 1)->mode, S_IFREG | 0644);
	zip_close(z);
	buf_release(&c.bytes);
}

static void test_every_truncation_is_refused(void **state)
{
	(void)state;
	struct craft_zip c;
	struct zip_reader *z = NULL;
	craft_zip(&c, two, 2);
	for (size_t len = 0; len < c.bytes.len; len++) {
		test_write_bytes(test_path("c.zip"), c.bytes.data, len);
		assert_err(zip_open(test_path("c.zip"), &arena, &z, &err), &err, ERR_INTEGRITY,
			   "c.zip");
	}

	buf_release(&c.bytes);
}

static void test_trailing_bytes(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	buf_addc(&c.bytes, '\0');
	assert_crafted(&c, "1 extra bytes after its end");
}

static void test_comment(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_put16(&c, c.end + 20, 2);
	buf_addstr(&c.bytes, "hi");
	assert_crafted_ok(&c);
	craft_zip(&c, two, 2);
	craft_put16(&c, c.end + 20, 4);
	buf_add(&c.bytes, "PK\5\6", 4);
	assert_crafted(&c, "a comment that looks like an archive");
}

static void test_leading_bytes(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_insert(&c, 0, "#!", 2);
	assert_crafted(&c, "not where the end record says");
	/* and with all offsets mended */
	craft_zip(&c, two, 2);
	craft_put32(&c, c.end + 16, (uint32_t)c.central[0] + 2);
	craft_put32(&c, c.central[0] + 42, 2);
	craft_put32(&c, c.central[1] + 42, (uint32_t)c.local[1] + 2);
	craft_insert(&c, 0, "#!", 2);
	assert_crafted(&c, "bytes of no entry");
}

static void test_gap_between_entries(void **state)
{
	(void)state;
	struct craft_entry en[] = {two[0], two[1]};
	struct craft_zip c;
	en[0].behind = "gap";
	en[0].behind_len = 3;
	craft_zip(&c, en, 2);
	assert_crafted(&c, "bytes of no entry");
	en[0] = two[0];
	en[1].behind = "gap";
	en[1].behind_len = 3;
	craft_zip(&c, en, 2);
	assert_crafted(&c, "bytes of no entry");
}

static void test_local_header_differs(void **state)
{
	(void)state;
	static const struct {
		size_t at;
		const char *want;
	} cases[] = {{6, "different flags"}, {8, "different flags"}, {10, "different flags"},
		     {14, "checksum"},       {18, "different size"}, {22, "different size"},
		     {30, "different name"}, {0, "no local header"}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct craft_zip c;
		craft_zip(&c, two, 2);
		c.bytes.data[c.local[1] + cases[i].at] ^= 2;
		assert_crafted(&c, cases[i].want);
	}
}

static void test_duplicate_names(void **state)
{
	(void)state;
	const struct craft_entry en[] = {two[0], {.name = "a.txt", .data = "other"}};
	struct craft_zip c;
	craft_zip(&c, en, 2);
	assert_crafted(&c, "'a.txt' occurs twice");
}

static void test_file_and_directory(void **state)
{
	(void)state;
	const struct craft_entry en[] = {{.name = "a", .data = "x"},
					 {.name = "a/b/c", .data = "y"}};
	struct craft_zip c;
	craft_zip(&c, en, 2);
	assert_crafted(&c, "'a' is a file and a directory");
}

static void test_unsafe_names(void **state)
{
	(void)state;
	static const char *const names[] = {"/etc/passwd", "../x",  "a/../../x", "a//x",
					    ".",           "a/./b", "..",        "/"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct craft_entry en = {.name = names[i], .data = ""};
		struct craft_zip c;
		craft_zip(&c, &en, 1);
		assert_crafted(&c, "unsafe name");
	}
}

static void test_control_bytes_in_names(void **state)
{
	(void)state;
	static const char *const names[] = {"a\\b", "a\nb", "a\033b", "a\177"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct craft_entry en = {.name = names[i], .data = ""};
		struct craft_zip c;
		craft_zip(&c, &en, 1);
		assert_crafted(&c, "control bytes or a backslash");
	}
}

static void test_nul_in_name(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	c.bytes.data[c.central[0] + 46 + 1] = '\0';
	c.bytes.data[c.local[0] + 30 + 1] = '\0';
	assert_crafted(&c, "NUL bytes");
}

static void test_empty_name(void **state)
{
	(void)state;
	const struct craft_entry en = {.name = "", .data = "x"};
	struct craft_zip c;
	craft_zip(&c, &en, 1);
	assert_crafted(&c, "empty name or one with NUL bytes");
}

static void test_unmarked_foreign_letters(void **state)
{
	(void)state;
	struct craft_entry en = {.name = "\xe4.py", .data = "x"};
	struct craft_zip c;
	craft_zip(&c, &en, 1);
	assert_crafted(&c, "neither ASCII nor marked");
}

static void test_symbolic_link(void **state)
{
	(void)state;
	const struct craft_entry en = {
		.name = "lib.so", .data = "/etc/passwd", .mode = S_IFLNK | 0777};
	struct craft_zip c;
	craft_zip(&c, &en, 1);
	assert_crafted(&c, "'lib.so' is a symbolic link");
}

static void test_other_kinds(void **state)
{
	(void)state;
	static const uint32_t modes[] = {S_IFIFO | 0644, S_IFCHR | 0644, S_IFSOCK | 0644,
					 S_IFDIR | 0755};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		const struct craft_entry en = {.name = "x", .data = "", .mode = modes[i]};
		struct craft_zip c;
		craft_zip(&c, &en, 1);
		assert_crafted(&c, "file type that its name contradicts");
	}
}

static void test_directories(void **state)
{
	(void)state;
	const struct craft_entry good[] = {{.name = "d/", .data = "", .mode = S_IFDIR | 0755},
					   {.name = "d/a", .data = "x"}};
	const struct craft_entry full = {.name = "d/", .data = "x"};
	struct craft_zip c;
	craft_zip(&c, good, 2);
	assert_crafted_ok(&c);
	craft_zip(&c, &full, 1);
	assert_crafted(&c, "directory with contents");
}

static void test_encryption(void **state)
{
	(void)state;
	static const unsigned flags[] = {1, 1 << 6, 1 << 13};
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		const struct craft_entry en = {.name = "x", .data = "x", .flags = flags[i]};
		struct craft_zip c;
		craft_zip(&c, &en, 1);
		assert_crafted(&c, "is encrypted");
	}
}

static void test_unknown_flags_and_methods(void **state)
{
	(void)state;
	const struct craft_entry patched = {.name = "x", .data = "x", .flags = 1 << 5};
	struct craft_zip c;
	craft_zip(&c, &patched, 1);
	assert_crafted(&c, "flags that a wheel must not have");
	craft_zip(&c, two, 2);
	craft_put16(&c, c.central[1] + 10, 93);
	craft_put16(&c, c.local[1] + 8, 93);
	assert_crafted(&c, "method other than stored and deflate");
}

static void test_stored_with_two_sizes(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_put32(&c, c.central[1] + 24, 6);
	craft_put32(&c, c.local[1] + 22, 6);
	assert_crafted(&c, "stored but has two sizes");
}

static void test_overlap(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_put32(&c, c.central[1] + 42, 0); /* both at the first local header */
	assert_crafted(&c, "overlaps the next one");
	craft_zip(&c, two, 2);
	craft_put32(&c, c.central[0] + 20, 100); /* packed size reaches into the second */
	craft_put32(&c, c.central[0] + 24, 100);
	craft_put32(&c, c.local[0] + 18, 100);
	craft_put32(&c, c.local[0] + 22, 100);
	assert_crafted(&c, "overlaps the next one");
}

static void test_offset_outside(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_put32(&c, c.central[1] + 42, 0x7fffffff);
	assert_crafted(&c, "outside the archive's data");
}

static void test_other_disks(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_put16(&c, c.end + 4, 1);
	assert_crafted(&c, "more than one disk");
	craft_zip(&c, two, 2);
	craft_put16(&c, c.central[1] + 34, 1);
	assert_crafted(&c, "on another disk");
}

static void test_wrong_counts(void **state)
{
	(void)state;
	struct craft_zip c;
	for (unsigned count = 0; count < 4; count++) {
		if (count == 2)
			continue;
		craft_zip(&c, two, 2);
		craft_put16(&c, c.end + 8, count);
		craft_put16(&c, c.end + 10, count);
		assert_crafted(&c, count < 2 ? "" : "central");
	}

	craft_zip(&c, two, 2);
	craft_put16(&c, c.end + 8, 60000);
	craft_put16(&c, c.end + 10, 60000);
	assert_crafted(&c, "more entries than");
}

static void test_central_header_that_does_not_fit(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_put16(&c, c.central[1] + 28, 60000);
	assert_crafted(&c, "truncated central header");
	craft_zip(&c, two, 2);
	c.bytes.data[c.central[1]] = 'X';
	assert_crafted(&c, "no central header");
}

static void test_entry_comment(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_put16(&c, c.central[1] + 28, 5);
	craft_put16(&c, c.central[1] + 32, 2);
	assert_crafted(&c, "has a comment");
}

static void test_extra_fields(void **state)
{
	(void)state;
	struct craft_entry en = {.name = "x",
				 .data = "x",
				 .local_extra = "UT\5\0\3abcd",
				 .local_extra_len = 9,
				 .central_extra = "ux\0\0",
				 .central_extra_len = 4};
	struct craft_zip c;
	craft_zip(&c, &en, 1);
	assert_crafted_ok(&c);
	en.local_extra_len = 8; /* says five bytes, has four */
	craft_zip(&c, &en, 1);
	assert_crafted(&c, "truncated extra field");
	en.local_extra = "up\0\0";
	en.local_extra_len = 4;
	craft_zip(&c, &en, 1);
	assert_crafted(&c, "second name");
}

static void test_superfluous_zip64(void **state)
{
	(void)state;
	static const char field[] = "\1\0\20\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0",
			  other[] = "\1\0\20\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0";
	static const char long_field[] =
		"\1\0\30\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	struct craft_entry en = {
		.name = "x", .data = "x", .central_extra = field, .central_extra_len = 20};
	struct craft_zip c;
	craft_zip(&c, &en, 1);
	assert_crafted(&c, "superfluous zip64 values");
	/* A local header may repeat its sizes, but nothing else. */
	en = (struct craft_entry){
		.name = "x", .data = "x", .local_extra = field, .local_extra_len = 20};
	craft_zip(&c, &en, 1);
	assert_crafted_ok(&c);
	en.local_extra = other;
	craft_zip(&c, &en, 1);
	assert_crafted(&c, "superfluous zip64 values");
	en.local_extra = long_field;
	en.local_extra_len = 28;
	craft_zip(&c, &en, 1);
	assert_crafted(&c, "superfluous zip64 values");
}

static void test_missing_zip64(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_put32(&c, c.central[0] + 24, 0xffffffff);
	assert_crafted(&c, "lacks a zip64 value");
	craft_zip(&c, two, 2);
	craft_put32(&c, c.local[0] + 22, 0xffffffff);
	assert_crafted(&c, "lacks a zip64 value");
	craft_zip(&c, two, 2);
	craft_put32(&c, c.end + 16, 0xffffffff);
	assert_crafted(&c, "zip64 end record is missing");
}

static void test_half_zip64_local_header(void **state)
{
	(void)state;
	static const char field[] = "\1\0\20\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0";
	const struct craft_entry en = {
		.name = "x", .data = "x", .local_extra = field, .local_extra_len = 20};
	struct craft_zip c;
	craft_zip(&c, &en, 1);
	craft_put32(&c, c.local[0] + 18, 0xffffffff);
	assert_crafted(&c, "only one of the two sizes");
}

/* The end record of zip64 and its locator in front
 * of a plain end record that does not need them. */
static void test_superfluous_zip64_end(void **state)
{
	(void)state;
	unsigned char records[76] = {'P', 'K', 6, 6, 44, 0, 0, 0, 0, 0, 0, 0, 45, 3, 45, 0};
	struct craft_zip c;
	craft_zip(&c, two, 2);
	records[24] = records[32] = 2;
	records[40] = (unsigned char)(c.end - c.central[0]);
	records[48] = (unsigned char)c.central[0];
	memcpy(records + 56, "PK\6\7\0\0\0\0", 8);
	records[64] = (unsigned char)c.end;
	records[72] = 1;
	craft_insert(&c, c.end, records, sizeof(records));
	assert_crafted(&c, "superfluous zip64 end record");
}

static void test_zip64_locator_to_nowhere(void **state)
{
	(void)state;
	unsigned char locator[20] = {'P', 'K', 6, 7, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1};
	struct craft_zip c;
	craft_zip(&c, two, 2);
	craft_insert(&c, c.end, locator, sizeof(locator));
	assert_crafted(&c, "locator has a wrong offset");
}

/* ---- data descriptors ---- */

static const char descriptor[] = "PK\7\10\x86\xa6\x10\x36\5\0\0\0\5\0\0\0"; /* of "hello" */

static void craft_streamed(struct craft_zip *c, const void *behind, size_t len)
{
	struct craft_entry en[] = {two[0], two[1]};

	en[0].flags = 1 << 3;
	en[0].behind = behind;
	en[0].behind_len = len;
	craft_zip(c, en, 2);
	memset(c->bytes.data + c->local[0] + 14, 0, 12);
}

static void test_data_descriptors(void **state)
{
	(void)state;
	static const char wide[] = "PK\7\10\x86\xa6\x10\x36\5\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0";
	struct craft_zip c;
	craft_streamed(&c, descriptor, 16);
	assert_crafted_ok(&c);
	craft_streamed(&c, descriptor + 4, 12);
	assert_crafted_ok(&c);
	craft_streamed(&c, wide, 24);
	assert_crafted_ok(&c);
	craft_streamed(&c, wide + 4, 20);
	assert_crafted_ok(&c);
}

static void test_bad_data_descriptors(void **state)
{
	(void)state;
	for (size_t at = 0; at < 16; at++) {
		char bytes[16];
		struct craft_zip c;
		memcpy(bytes, descriptor, 16);
		bytes[at] ^= 1;
		craft_streamed(&c, bytes, 16);
		assert_crafted(&c, "wrong data descriptor");
	}

	struct craft_zip c;
	craft_streamed(&c, "", 0);
	assert_crafted(&c, "wrong data descriptor");
	craft_streamed(&c, "0123456789012345678901234567890", 31);
	assert_crafted(&c, "wrong data descriptor");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_crafted_archive_is_fine),
		TEST(test_every_truncation_is_refused),
		TEST(test_trailing_bytes),
		TEST(test_comment),
		TEST(test_leading_bytes),
		TEST(test_gap_between_entries),
		TEST(test_local_header_differs),
		TEST(test_duplicate_names),
		TEST(test_file_and_directory),
		TEST(test_unsafe_names),
		TEST(test_control_bytes_in_names),
		TEST(test_nul_in_name),
		TEST(test_empty_name),
		TEST(test_unmarked_foreign_letters),
		TEST(test_symbolic_link),
		TEST(test_other_kinds),
		TEST(test_directories),
		TEST(test_encryption),
		TEST(test_unknown_flags_and_methods),
		TEST(test_stored_with_two_sizes),
		TEST(test_overlap),
		TEST(test_offset_outside),
		TEST(test_other_disks),
		TEST(test_wrong_counts),
		TEST(test_central_header_that_does_not_fit),
		TEST(test_entry_comment),
		TEST(test_extra_fields),
		TEST(test_superfluous_zip64),
		TEST(test_missing_zip64),
		TEST(test_half_zip64_local_header),
		TEST(test_superfluous_zip64_end),
		TEST(test_zip64_locator_to_nowhere),
		TEST(test_data_descriptors),
		TEST(test_bad_data_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
