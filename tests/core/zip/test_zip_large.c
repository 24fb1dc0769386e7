/* What does not fit into 16 and 32 bits. */
#include "zip_fixture.h"

static void make_sparse(const char *path, uint64_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pwrite(fd, "end", 3, (off_t)size - 3), 3);
	close(fd);
}

static void test_many_entries_need_zip64(void **state)
{
	(void)state;
	struct zip_writer *w = create(test_path("a.zip"), 2, 0);
	char name[16];
	for (unsigned i = 0; i < 65536; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_ok(zip_add_data(w, name, "", 0, &err), &err);
	}

	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_int_equal(zip_count(z), 65536);
	assert_non_null(zip_find(z, "65535"));
	zip_close(z);
}

static void test_file_over_4_gib_needs_zip64(void **state)
{
	(void)state;
	const uint64_t size = 0x100000000 + 12345;
	uint8_t sha256[32];
	uint64_t got;
	make_sparse(test_path("big"), size);
	struct zip_writer *w = create(test_path("a.zip"), 2, 6);
	assert_ok(zip_add_parts(w, "big", test_path("big"), NULL, 0, sha256, &got, &err), &err);
	assert_ok(zip_add_data(w, "small", "s", 1, &err), &err);
	assert_int_equal(got, size);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_int_equal(zip_find(z, "big")->size, size);
	assert_true(zip_find(z, "big")->packed < 64 << 20);
	assert_entry(z, "small", "s", 1);
	/* taken over with its zip64 fields */
	char first[65], second[65];
	w = create(test_path("b.zip"), 1, 6);
	assert_ok(zip_copy(w, z, 0, 2, &err), &err);
	finish(w);
	zip_close(z);
	assert_ok(digest_file(test_path("a.zip"), first, &err), &err);
	assert_ok(digest_file(test_path("b.zip"), second, &err), &err);
	assert_string_equal(first, second);
}

/* Stored and sparse: the offset behind it, and the size, need 64 bits; nothing is deflated. */
static void test_offsets_over_4_gib(void **state)
{
	(void)state;
	struct craft_zip c;
	const struct craft_entry en = {.name = "last", .data = "L"};
	craft_zip(&c, &en, 1);
	const uint64_t size = 0x100000010, at = 30 + 3 + 20 + size;
	unsigned char head[] = {'P',  'K',  3,    4,    45,   0, 0,  0,    0,    0,    0,
				0,    33,   0,    0,    0,    0, 0,  0xff, 0xff, 0xff, 0xff,
				0xff, 0xff, 0xff, 0xff, 3,    0, 20, 0,    'b',  'i',  'g',
				1,    0,    16,   0,    0x10, 0, 0,  0,    1,    0,    0,
				0,    0x10, 0,    0,    0,    1, 0,  0,    0};
	unsigned char central[] = {'P',  'K',  1,    2,    45, 0,    45, 0, 0,    0,    0,    0,
				   0,    0,    33,   0,    0,  0,    0,  0, 0xff, 0xff, 0xff, 0xff,
				   0xff, 0xff, 0xff, 0xff, 3,  0,    20, 0, 0,    0,    0,    0,
				   0,    0,    0,    0,    0,  0,    0,  0, 0,    0,    'b',  'i',
				   'g',  1,    0,    16,   0,  0x10, 0,  0, 0,    1,    0,    0,
				   0,    0x10, 0,    0,    0,  1,    0,  0, 0};
	unsigned char far[] = {1, 0, 8, 0, 0x45, 0, 0, 0, 1, 0, 0, 0};
	far[4] = (unsigned char)at;
	struct buf AUTO_BUF tail = {0};
	buf_add(&tail, c.bytes.data, c.central[0]);
	uint64_t dir = at + tail.len;
	buf_add(&tail, central, sizeof(central));
	size_t last = tail.len;
	buf_add(&tail, c.bytes.data + c.central[0], c.end - c.central[0]);
	tail.data[last + 30] = sizeof(far);
	memset(tail.data + last + 42, 0xff, 4);
	buf_add(&tail, far, sizeof(far));
	uint64_t end = at + tail.len, dir_len = end - dir;
	unsigned char records[56 + 20 + 22] = {'P', 'K', 6, 6, 44, 0, 0,  0,
					       0,   0,   0, 0, 45, 3, 45, 0};
	records[24] = records[32] = 2;
	memcpy(records + 40, &dir_len, 8);
	memcpy(records + 48, &dir, 8);
	memcpy(records + 56, "PK\6\7\0\0\0\0", 8);
	memcpy(records + 64, &end, 8);
	records[72] = 1;
	memcpy(records + 76, "PK\5\6\0\0\0\0\2\0\2\0", 12);
	memcpy(records + 88, &dir_len, 4);
	memset(records + 92, 0xff, 4);
	buf_add(&tail, records, sizeof(records));
	int fd = open(test_path("far.zip"), O_WRONLY | O_CREAT, 0644);
	assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, tail.data, tail.len, (off_t)at), tail.len);
	close(fd);
	struct zip_reader *z = open_ok(test_path("far.zip"));
	assert_int_equal(zip_find(z, "big")->size, size);
	assert_int_equal(zip_find(z, "last")->offset, at);
	assert_entry(z, "last", "L", 1);
	zip_close(z);
	buf_release(&c.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_many_entries_need_zip64),
		TEST(test_file_over_4_gib_needs_zip64),
		TEST(test_offsets_over_4_gib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
