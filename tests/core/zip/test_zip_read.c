#include "zip_fixture.h"

static void assert_contents_bad(const char *path, const char *name, const char *want)
{
	struct buf AUTO_BUF out = {0};
	uint8_t sha256[32];
	struct zip_reader *z = open_ok(path);

	assert_err(zip_read(z, zip_find(z, name), 1 << 20, &out, &err), &err, ERR_INTEGRITY, want);
	assert_contains(err.msg, name);
	assert_int_equal(out.len, 0);
	assert_err(zip_extract_fd(z, zip_find(z, name), -1, sha256, &err), &err, ERR_INTEGRITY,
		   want);
	zip_close(z);
}

static void test_wrong_checksum(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	c.bytes.data[c.local[0] + 30 + 5] = 'H';
	test_write_bytes(test_path("c.zip"), c.bytes.data, c.bytes.len);
	assert_contents_bad(test_path("c.zip"), "a.txt", "wrong checksum");
	buf_release(&c.bytes);
}

/* An archive with one deflated entry "z" of 4000 bytes; the offsets of its headers. */
static char *deflated(size_t *len, size_t *central)
{
	char data[4000];

	memset(data, 'z', sizeof(data));
	memcpy(data + 1000, "something else", 14);
	struct zip_writer *w = create(test_path("z.zip"), 1, 6);
	assert_ok(zip_add_data(w, "z", data, sizeof(data), &err), &err);
	finish(w);
	struct stat st;
	assert_int_equal(stat(test_path("z.zip"), &st), 0);
	*len = (size_t)st.st_size;
	*central = *len - 22 - 47;
	return test_read(test_path("z.zip"));
}

static void assert_deflated_bad(const char *bytes, size_t len, const char *want)
{
	test_write_bytes(test_path("bad.zip"), bytes, len);
	assert_contents_bad(test_path("bad.zip"), "z", want);
}

static void set_size(char *bytes, size_t central, uint32_t size)
{
	memcpy(bytes + 22, &size, 4);
	memcpy(bytes + central + 24, &size, 4);
}

static void test_wrong_size(void **state)
{
	(void)state;
	size_t len, central;
	char *AUTO_FREE bytes = deflated(&len, &central);
	set_size(bytes, central, 3999);
	assert_deflated_bad(bytes, len, "is damaged: it inflates to more than its header says");
	set_size(bytes, central, 4001);
	assert_deflated_bad(bytes, len, "is damaged: it inflates to less than its header says");
}

static void test_broken_deflate(void **state)
{
	(void)state;
	size_t len, central;
	char *AUTO_FREE bytes = deflated(&len, &central);
	bytes[31] = 7; /* a final block of the reserved kind */
	assert_deflated_bad(bytes, len, "does not inflate");
	bytes[31] = 0;
	memset(bytes + 32, 0, 4);
	assert_deflated_bad(bytes, len, "does not inflate");
}

/* Bytes taken from, or put behind, the deflate stream, all sizes and offsets mended. */
static void test_deflate_stream_of_wrong_length(void **state)
{
	(void)state;
	size_t len, central;
	char *AUTO_FREE bytes = deflated(&len, &central);
	for (int by = -1; by <= 1; by += 2) {
		struct buf AUTO_BUF b = {0};
		uint32_t packed, start = (uint32_t)((long)central + by);
		memcpy(&packed, bytes + 18, 4);
		packed += (uint32_t)by;
		buf_add(&b, bytes, by < 0 ? central - 1 : central);
		if (by > 0)
			buf_addc(&b, 'x');
		buf_add(&b, bytes + central, len - central);
		memcpy(b.data + 18, &packed, 4);
		memcpy(b.data + start + 20, &packed, 4);
		memcpy(b.data + b.len - 6, &start, 4);
		assert_deflated_bad(b.data, b.len,
				    by < 0 ? "ends in the middle"
					   : "bytes after its deflate stream");
	}
}

static void test_read_has_a_limit(void **state)
{
	(void)state;
	size_t len, central;
	free(deflated(&len, &central));
	struct buf AUTO_BUF out = {0};
	buf_addstr(&out, "before ");
	struct zip_reader *z = open_ok(test_path("z.zip"));
	assert_err(zip_read(z, zip_at(z, 0), 3999, &out, &err), &err, ERR_INTEGRITY,
		   "the limit is 3999");
	assert_string_equal(buf_cstr(&out), "before ");
	assert_ok(zip_read(z, zip_at(z, 0), 4000, &out, &err), &err);
	assert_int_equal(out.len, 4007);
	zip_close(z);
}

static void test_extract_fd(void **state)
{
	(void)state;
	uint8_t sha256[32];
	char hex[65], want[65];
	char *AUTO_FREE data = noise(600000, 30);
	struct zip_writer *w = create(test_path("a.zip"), 1, 6);
	assert_ok(zip_add_data(w, "x", data, 600000, &err), &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	int AUTO_FD fd = open(test_path("out"), O_WRONLY | O_CREAT, 0644);
	assert_ok(zip_extract_fd(z, zip_at(z, 0), fd, sha256, &err), &err);
	digest_hex(sha256, hex);
	assert_ok(digest_file(test_path("out"), want, &err), &err);
	assert_string_equal(hex, want);
	digest_data(data, 600000, want);
	assert_string_equal(hex, want);
	zip_close(z);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static void test_extract_all(void **state)
{
	(void)state;
	const struct craft_entry en[] = {{.name = "d/", .data = "", .mode = S_IFDIR | 0700},
					 {.name = "d/e/plain", .data = "p", .mode = S_IFREG | 0600},
					 {.name = "d/prog", .data = "q", .mode = S_IFREG | 04777},
					 {.name = "none", .data = "r"}};
	struct craft_zip c;
	craft_zip(&c, en, 4);
	test_write_bytes(test_path("c.zip"), c.bytes.data, c.bytes.len);
	buf_release(&c.bytes);
	struct zip_reader *z = open_ok(test_path("c.zip"));
	assert_ok(zip_extract(z, test_path("out"), false, test_run(), &err), &err);
	assert_int_equal(mode_of(test_path("out/d/e/plain")), S_IFREG | 0644);
	assert_int_equal(mode_of(test_path("out/d/prog")), S_IFREG | 0755);
	assert_int_equal(mode_of(test_path("out/none")), S_IFREG | 0644);
	char *AUTO_FREE text = test_read(test_path("out/d/prog"));
	assert_string_equal(text, "q");
	assert_err(zip_extract(z, test_path("out"), false, test_run(), &err), &err, ERR_SYSTEM,
		   "File exists");
	zip_close(z);
}

/* Several wheels may have one file, as the packages of CUDA have their __init__.py. */
static void test_extract_missing(void **state)
{
	(void)state;
	struct zip_writer *w = create(test_path("a.zip"), 1, 6);
	assert_ok(zip_add_data(w, "d/there", "new", 3, &err), &err);
	assert_ok(zip_add_data(w, "d/more", "more", 4, &err), &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	test_write(test_path("out/d/there"), "old");
	assert_err(zip_extract(z, test_path("out"), false, test_run(), &err), &err, ERR_SYSTEM,
		   "d/there");
	assert_ok(zip_extract(z, test_path("out"), true, test_run(), &err), &err);
	assert_file(test_path("out/d/there"), "old");
	assert_file(test_path("out/d/more"), "more");
	zip_close(z);
}

static void test_extract_all_stops_when_told(void **state)
{
	(void)state;
	int pipe_fds[2];
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	const struct run stopped = {.log = test_run()->log, .cancel_fd = pipe_fds[0]};
	struct craft_zip c;
	craft_zip(&c, two, 2);
	test_write_bytes(test_path("c.zip"), c.bytes.data, c.bytes.len);
	buf_release(&c.bytes);
	struct zip_reader *z = open_ok(test_path("c.zip"));
	assert_err(zip_extract(z, test_path("out"), false, &stopped, &err), &err, ERR_INTERRUPTED,
		   "interrupted");
	zip_close(z);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void test_open_what_is_no_archive(void **state)
{
	(void)state;
	struct zip_reader *z = NULL;
	assert_err(zip_open(test_path("absent"), &arena, &z, &err), &err, ERR_SYSTEM, "absent");
	assert_err(zip_open(test_path("."), &arena, &z, &err), &err, ERR_INTEGRITY,
		   "not a regular file");
	test_write(test_path("text"),
		   "just a text that is long enough to hold an end record, but does not");
	assert_err(zip_open(test_path("text"), &arena, &z, &err), &err, ERR_INTEGRITY,
		   "no end record");
	assert_null(z);
	zip_close(NULL);
}

/* Every single changed byte of a small archive is
 * refused, or changes nothing but what nobody reads. */
static void test_flipped_bytes_never_change_contents(void **state)
{
	(void)state;
	struct craft_zip c;
	craft_zip(&c, two, 2);
	size_t accepted = 0;
	for (size_t i = 0; i < c.bytes.len * 8; i++) {
		struct arena AUTO_ARENA a = {0};
		struct zip_reader *z = NULL;
		struct buf AUTO_BUF out = {0};
		c.bytes.data[i / 8] ^= (char)(1 << i % 8);
		test_write_bytes(test_path("c.zip"), c.bytes.data, c.bytes.len);
		c.bytes.data[i / 8] ^= (char)(1 << i % 8);
		err_clear(&err);
		if (zip_open(test_path("c.zip"), &a, &z, &err) < 0 ||
		    zip_read(z, zip_at(z, 0), 100, &out, &err) < 0 ||
		    zip_read(z, zip_at(z, 1), 100, &out, &err) < 0) {
			assert_int_equal(err.kind, ERR_INTEGRITY);
		} else {
			accepted++;
			assert_string_equal(buf_cstr(&out), "helloworld");
			assert_string_equal(zip_at(z, 0)->name, "a.txt");
		}

		zip_close(z);
	}

	/* versions, internal and external attributes */
	assert_in_range(accepted, 1, 200);
	buf_release(&c.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wrong_checksum),
		TEST(test_wrong_size),
		TEST(test_broken_deflate),
		TEST(test_deflate_stream_of_wrong_length),
		TEST(test_read_has_a_limit),
		TEST(test_extract_fd),
		TEST(test_extract_all),
		TEST(test_extract_missing),
		TEST(test_extract_all_stops_when_told),
		TEST(test_open_what_is_no_archive),
		TEST(test_flipped_bytes_never_change_contents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
