#include "zip_fixture.h"

#include <zlib.h>

#include "core/zip/zip_parts.h"

static void assert_same_file(const char *one, const char *other)
{
	char x[DIGEST_HEX_LEN + 1], y[DIGEST_HEX_LEN + 1];

	assert_ok(digest_file(test_path("%s", one), x, &err), &err);
	assert_ok(digest_file(test_path("%s", other), y, &err), &err);
	assert_string_equal(x, y);
}

static void test_empty_archive(void **state)
{
	(void)state;
	finish(create(test_path("e.zip"), 1, 6));
	struct zip_reader *z = open_ok(test_path("e.zip"));
	assert_int_equal(zip_count(z), 0);
	assert_null(zip_find(z, "a"));
	zip_close(z);
}

static void test_data_round_trip(void **state)
{
	(void)state;
	struct zip_writer *w = create(test_path("a.zip"), 2, 6);
	assert_ok(zip_add_data(w, "empty", "", 0, &err), &err);
	assert_ok(zip_add_data(w, "d/short", "x", 1, &err), &err);
	assert_ok(zip_add_data(w, "d/long", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 46,
			       &err),
		  &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_int_equal(zip_count(z), 3);
	assert_string_equal(zip_at(z, 1)->name, "d/short");
	assert_entry(z, "empty", "", 0);
	assert_entry(z, "d/short", "x", 1);
	assert_entry(z, "d/long", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 46);
	zip_close(z);
}

static void test_what_does_not_shrink_is_stored(void **state)
{
	(void)state;
	struct zip_writer *w = create(test_path("a.zip"), 1, 6);
	assert_ok(zip_add_data(w, "stored", "x", 1, &err), &err);
	assert_ok(zip_add_data(w, "deflated", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 46,
			       &err),
		  &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_int_equal(zip_find(z, "stored")->method, 0);
	assert_int_equal(zip_find(z, "deflated")->method, 8);
	assert_true(zip_find(z, "deflated")->packed < 46);
	zip_close(z);
}

/* What an archive shares with one before it is copied
 * out of it: the bytes are those that it has alone. */
static void test_shared_chunks(void **state)
{
	(void)state;
	const struct zip_mark marks[] = {
		{1000, 1 << 20}, {1000 + ZIP_CHUNK + 70000, 9 << 20}, {3 * ZIP_CHUNK, 0}};
	const size_t len = 3 * ZIP_CHUNK + 300000;
	char *AUTO_FREE data = noise(len, 20);
	struct zip_chunks *chunks = zip_chunks_new();
	/* the third and the fourth differ, in spite of what an origin promises */
	for (int i = 0; i < 4; i++) {
		uint8_t sha256[32];
		uint64_t size;
		struct zip_writer *w = create(test_path("%d.zip", i), 3, 5);
		if (i < 3)
			zip_share(w, chunks);
		data[10] = data[2000] = data[len - 10] = (char)(i / 2);
		test_write_bytes(test_path("data"), data, len);
		assert_ok(zip_add_parts(w, "a", test_path("data"), marks, ARRAY_LEN(marks), sha256,
					&size, &err),
			  &err);
		assert_ok(zip_add_parts(w, "b", test_path("data"), NULL, 0, sha256, &size, &err),
			  &err);
		finish(w);
		struct zip_reader *z = open_ok(test_path("%d.zip", i));
		assert_entry(z, "a", data, len);
		assert_entry(z, "b", data, len);
		zip_close(z);
	}

	zip_chunks_free(chunks);
	assert_same_file("0.zip", "1.zip");
	assert_same_file("2.zip", "3.zip");
}

/* One that is being written shares already, and one that was given up shares still. */
static void test_chunks_of_an_archive_that_is_not_finished(void **state)
{
	(void)state;
	const struct zip_mark mark = {0, 1 << 20};
	const size_t len = 4 * ZIP_CHUNK;
	uint8_t sha256[32];
	uint64_t size;
	char *AUTO_FREE data = noise(len, 20);
	struct zip_chunks *chunks = zip_chunks_new();
	struct zip_writer *all[4];
	test_write_bytes(test_path("data"), data, len);
	for (int i = 0; i < 4; i++) {
		all[i] = create(test_path("%d.zip", i), 2, 5);
		if (i < 3)
			zip_share(all[i], chunks);
		assert_ok(zip_add_parts(all[i], "a", test_path("data"), &mark, 1, sha256, &size,
					&err),
			  &err);
		if (i == 1)
			zip_abort(all[0]);
	}

	for (int i = 3; i > 0; i--)
		finish(all[i]);
	zip_chunks_free(chunks);
	assert_same_file("1.zip", "3.zip");
	assert_same_file("2.zip", "3.zip");
}

static void test_level_zero_stores(void **state)
{
	(void)state;
	char *AUTO_FREE data = calloc(1, ZIP_CHUNK + 5);
	struct zip_writer *w = create(test_path("a.zip"), 2, 0);
	assert_ok(zip_add_data(w, "big", data, ZIP_CHUNK + 5, &err), &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_int_equal(zip_at(z, 0)->method, 0);
	assert_entry(z, "big", data, ZIP_CHUNK + 5);
	zip_close(z);
}

static void test_file_gives_digest_size_and_mode(void **state)
{
	(void)state;
	uint8_t sha256[32];
	uint64_t size;
	char hex[65], want[65];
	test_write(test_path("plain"), "hello");
	test_write(test_path("prog"), "#!/bin/sh\n");
	chmod(test_path("plain"), 0600);
	chmod(test_path("prog"), 0700);
	struct zip_writer *w = create(test_path("a.zip"), 1, 6);
	assert_ok(zip_add_parts(w, "p/plain", test_path("plain"), NULL, 0, sha256, &size, &err),
		  &err);
	assert_int_equal(size, 5);
	digest_hex(sha256, hex);
	digest_data("hello", 5, want);
	assert_string_equal(hex, want);
	assert_ok(zip_add_parts(w, "p/prog", test_path("prog"), NULL, 0, sha256, &size, &err),
		  &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_int_equal(zip_find(z, "p/plain")->mode, S_IFREG | 0644);
	assert_int_equal(zip_find(z, "p/prog")->mode, S_IFREG | 0755);
	zip_close(z);
}

static void test_time_is_the_epoch_in_utc(void **state)
{
	(void)state;
	setenv("TZ", "Asia/Tokyo", 1);
	struct zip_writer *w = create(test_path("a.zip"), 1, 6);
	assert_ok(zip_add_data(w, "a", "a", 1, &err), &err);
	finish(w);
	unsetenv("TZ");
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_int_equal(zip_at(z, 0)->dos_time,
			 (2023u - 1980) << 25 | 11 << 21 | 14 << 16 | 22 << 11 | 13 << 5 | 20 / 2);
	zip_close(z);
}

static void assert_clamped(uint64_t epoch, uint32_t want)
{
	struct zip_writer *w;

	unlink(test_path("c.zip"));
	assert_ok(zip_create(&(struct zip_new){.path = test_path("c.zip"),
					       .epoch = epoch,
					       .threads = 1,
					       .level = 6},
			     &w, &err),
		  &err);
	assert_ok(zip_add_data(w, "a", "a", 1, &err), &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("c.zip"));
	assert_int_equal(zip_at(z, 0)->dos_time, want);
	zip_close(z);
}

static void test_time_is_clamped(void **state)
{
	(void)state;
	assert_clamped(0, 1 << 21 | 1 << 16);
	assert_clamped(315532800, 1 << 21 | 1 << 16);
	assert_clamped(UINT64_MAX, 127u << 25 | 12 << 21 | 31 << 16 | 23 << 11 | 59 << 5 | 29);
}

/* All chunks differ in nature, so that final blocks of every kind must be joined. */
static char *mixed(size_t len)
{
	char *data = noise(len, 20);

	memset(data + ZIP_CHUNK - 400000, 0, 400000); /* ends in zeros */
	memset(data + ZIP_CHUNK, 'A', ZIP_CHUNK);     /* one letter only */
	uint32_t seed = 1;                            /* noise that does not shrink */
	for (size_t i = 2 * ZIP_CHUNK; i < 3 * ZIP_CHUNK; i++)
		data[i] = (char)next_random(&seed);
	return data;
}

static void write_mixed(const char *path, const char *data, size_t len, unsigned threads,
			uint8_t sha256[32])
{
	struct zip_writer *w = create(path, threads, 3);

	for (unsigned i = 0; i < 3; i++) {
		char name[] = "small0";
		name[5] = (char)('0' + i);
		assert_ok(zip_add_data(w, name, data, 1000, &err), &err);
	}

	assert_ok(zip_add_data(w, "big", data, len, &err), &err);
	assert_ok(zip_add_data(w, "last", data, 3000, &err), &err);
	assert_ok(zip_finish(w, sha256, &err), &err);
}

static void test_bytes_do_not_depend_on_threads(void **state)
{
	(void)state;
	size_t len = 3 * ZIP_CHUNK + 100000;
	char *AUTO_FREE data = mixed(len);
	uint8_t one[32], four[32], of_file[65], hex[65];
	write_mixed(test_path("1.zip"), data, len, 1, one);
	write_mixed(test_path("4.zip"), data, len, 4, four);
	assert_memory_equal(one, four, 32);
	/* and the digest is that of the file */
	assert_ok(digest_file(test_path("4.zip"), (char *)of_file, &err), &err);
	digest_hex(four, (char *)hex);
	assert_string_equal((char *)of_file, (char *)hex);
	/* and the same whoever compiled ptbuild: other
	 * versions may give others, and have another key */
	if (strcmp(zip_writer_id(), "4 libdeflate 1.23") == 0 ||
	    strcmp(zip_writer_id(), "4 libdeflate 1.14") == 0)
		assert_string_equal(
			(char *)hex,
			"de19902881fe5997373d86ea0f96de5f833296a73f2694be0670843c40074dd7");
	struct zip_reader *z = open_ok(test_path("4.zip"));
	assert_entry(z, "big", data, len);
	assert_entry(z, "last", data, 3000);
	zip_close(z);
}

static void test_exact_chunk_sizes(void **state)
{
	(void)state;
	char *AUTO_FREE data = noise(2 * ZIP_CHUNK, 5);
	struct zip_writer *w = create(test_path("a.zip"), 2, 1);
	assert_ok(zip_add_data(w, "one", data, ZIP_CHUNK, &err), &err);
	assert_ok(zip_add_data(w, "two", data, 2 * ZIP_CHUNK, &err), &err);
	assert_ok(zip_add_data(w, "more", data, ZIP_CHUNK + 1, &err), &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_entry(z, "one", data, ZIP_CHUNK);
	assert_entry(z, "two", data, 2 * ZIP_CHUNK);
	assert_entry(z, "more", data, ZIP_CHUNK + 1);
	zip_close(z);
}

/* Two chunks of the same bytes, joined, inflate to them twice. */
static void assert_joins(struct zip_deflater *d, const char *raw, size_t len)
{
	size_t made = 2 * len;

	char *AUTO_FREE back = malloc(2 * len);
	unsigned char *AUTO_FREE packed = malloc(2 * zip_deflate_bound(len));
	struct zip_slot first = {.raw = (uint8_t *)(uintptr_t)raw, .raw_len = len, .out = packed};
	assert_ok(zip_deflate_chunk(d, &first), &first.err);
	struct zip_slot second = first;
	second.out = packed + first.out_len;
	second.last = true;
	assert_ok(zip_deflate_chunk(d, &second), &second.err);
	z_stream s = {.next_in = packed,
		      .avail_in = (unsigned)(first.out_len + second.out_len),
		      .next_out = (unsigned char *)back,
		      .avail_out = (unsigned)made};
	assert_int_equal(inflateInit2(&s, -15), Z_OK);
	assert_int_equal(inflate(&s, Z_FINISH), Z_STREAM_END);
	assert_int_equal(s.avail_in, 0);
	assert_int_equal(s.total_out, made);
	inflateEnd(&s);
	assert_memory_equal(back, raw, len);
	assert_memory_equal(back + len, raw, len);
}

/* Joined chunks of many sizes and kinds inflate to what they were made of. */
static void test_chunks_join(void **state)
{
	(void)state;
	static const size_t sizes[] = {1,     2,     100,    4999,   5000,
				       10000, 70000, 300000, 310000, 1000000};
	struct zip_deflater *d = zip_deflater_new(5);
	for (unsigned entropy = 0; entropy <= 100; entropy += 25) {
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			char *AUTO_FREE raw = noise(sizes[i], entropy);
			assert_joins(d, raw, sizes[i]);
		}
	}

	zip_deflater_free(d);
}

/* A final stored block behind a packed one begins at any bit. */
static void test_chunks_that_end_in_noise_join(void **state)
{
	(void)state;
	static const size_t tails[] = {900, 1000, 5000, 65535, 65536, 66536, 131070, 200000};
	struct zip_deflater *d = zip_deflater_new(5);
	for (size_t text = 20000; text < 20040; text++) {
		const size_t tail = tails[text % ARRAY_LEN(tails)], len = text + tail;
		char *AUTO_FREE easy = noise(text, 25), *AUTO_FREE hard = noise(tail, 100);
		char *AUTO_FREE raw = malloc(len);
		memcpy(raw, easy, text);
		memcpy(raw + text, hard, tail);
		assert_joins(d, raw, len);
	}

	zip_deflater_free(d);
}

static void test_entropy(void **state)
{
	(void)state;
	char *AUTO_FREE random = noise(1 << 20, 100), *AUTO_FREE zeros = calloc(1, 1 << 20);
	char *AUTO_FREE small = noise(60000, 30), *AUTO_FREE large = noise(1 << 20, 30);
	assert_int_equal(zip_entropy("", 0), 0);
	assert_int_equal(zip_entropy(zeros, 1 << 20), 0);
	assert_int_equal(zip_entropy("abababab", 8), 256);
	assert_int_equal(zip_entropy("abcdefgh", 8), 3 * 256);
	assert_in_range(zip_entropy(random, 1 << 20), 8 * 256 - 16, 8 * 256);
	/* a large one is sampled, and comes out like a small one */
	assert_in_range(zip_entropy(small, 60000) + 64 - zip_entropy(large, 1 << 20), 32, 96);
}

/* What cannot shrink is not searched hard, and a chunk of it in the
 * middle of an entry does not grow it by more than deflate's own frames. */
static void test_packed_data_stays(void **state)
{
	(void)state;
	size_t len = 3 * ZIP_CHUNK;
	char *AUTO_FREE data = noise(len, 100);
	struct zip_writer *w = create(test_path("a.zip"), 2, 5);
	assert_ok(zip_add_data(w, "big", data, len, &err), &err);
	assert_ok(zip_add_data(w, "small", data, 1000, &err), &err);
	finish(w);
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_true(zip_find(z, "big")->packed < len + len / 5000);
	assert_int_equal(zip_find(z, "small")->method, 0);
	assert_entry(z, "big", data, len);
	zip_close(z);
}

static struct zip_reader *three_entries(const char *path)
{
	char *AUTO_FREE data = noise(ZIP_CHUNK + 7, 40);
	struct zip_writer *w = create(path, 2, 5);
	assert_ok(zip_add_data(w, "one", "1", 1, &err), &err);
	assert_ok(zip_add_data(w, "two", data, ZIP_CHUNK + 7, &err), &err);
	assert_ok(zip_add_data(w, "three", "3", 1, &err), &err);
	finish(w);
	return open_ok(path);
}

static void test_copied_entries_are_the_same(void **state)
{
	(void)state;
	char old[65], new[65];
	uint8_t sha256[32];
	struct zip_reader *z = three_entries(test_path("a.zip"));
	struct zip_writer *w = create(test_path("b.zip"), 2, 5);
	assert_int_equal(zip_epoch(zip_at(z, 0)), EPOCH);
	assert_ok(zip_add_data(w, "one", "1", 1, &err), &err);
	assert_ok(zip_copy(w, z, 1, 1, &err), &err);
	assert_ok(zip_copy(w, z, 2, 0, &err), &err);
	assert_ok(zip_add_data(w, "three", "3", 1, &err), &err);
	assert_ok(zip_finish(w, sha256, &err), &err);
	zip_close(z);
	assert_ok(digest_file(test_path("a.zip"), old, &err), &err);
	assert_ok(digest_file(test_path("b.zip"), new, &err), &err);
	assert_string_equal(old, new);
	digest_hex(sha256, new);
	assert_string_equal(old, new);
}

static void test_copying_refuses_doubles_and_other_times(void **state)
{
	(void)state;
	struct zip_reader *z = three_entries(test_path("a.zip"));
	struct zip_writer *w = create(test_path("b.zip"), 1, 5);
	assert_ok(zip_add_data(w, "two", "", 0, &err), &err);
	assert_err(zip_copy(w, z, 0, 3, &err), &err, ERR_INTEGRITY, "'two' is in");
	zip_abort(w);
	assert_ok(zip_create(&(struct zip_new){.path = test_path("c.zip"),
					       .epoch = EPOCH + 100,
					       .threads = 1,
					       .level = 5},
			     &w, &err),
		  &err);
	assert_err(zip_copy(w, z, 0, 1, &err), &err, ERR_INTEGRITY, "unexpected header");
	zip_abort(w);
	zip_close(z);
}

static void test_non_ascii_names(void **state)
{
	(void)state;
	struct zip_writer *w = create(test_path("a.zip"), 1, 6);
	assert_ok(zip_add_data(w, "\xc3\xa4.py", "a", 1, &err), &err);
	assert_ok(zip_add_data(w, "b.py", "a", 1, &err), &err);
	finish(w);
	char *AUTO_FREE bytes = test_read(test_path("a.zip"));
	assert_int_equal(bytes[7], 8); /* bit 11 */
	struct zip_reader *z = open_ok(test_path("a.zip"));
	assert_entry(z, "\xc3\xa4.py", "a", 1);
	zip_close(z);
}

static void test_writer_refuses_bad_names(void **state)
{
	(void)state;
	static const char *const names[] = {"",    "/abs", "../up", "a/../b", "a//b",
					    "./a", "a\\b", "a\nb",  "dir/"};
	struct zip_writer *w = create(test_path("a.zip"), 1, 6);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_err(zip_add_data(w, names[i], "", 0, &err), &err, ERR_INTEGRITY,
			   "unsafe name");
	assert_ok(zip_add_data(w, "twice", "", 0, &err), &err);
	assert_err(zip_add_data(w, "twice", "", 0, &err), &err, ERR_INTEGRITY, "already");
	zip_abort(w);
}

static void test_writer_refuses_what_is_no_file(void **state)
{
	(void)state;
	uint8_t sha256[32];
	uint64_t size;
	struct zip_writer *w = create(test_path("a.zip"), 1, 6);
	test_write(test_path("real"), "x");
	assert_int_equal(symlink("real", test_path("link")), 0);
	assert_int_equal(mkfifo(test_path("fifo"), 0600), 0);
	assert_err(zip_add_parts(w, "a", test_path("absent"), NULL, 0, sha256, &size, &err), &err,
		   ERR_SYSTEM, "absent");
	assert_err(zip_add_parts(w, "b", test_path("link"), NULL, 0, sha256, &size, &err), &err,
		   ERR_SYSTEM, "link");
	assert_err(zip_add_parts(w, "c", test_path("fifo"), NULL, 0, sha256, &size, &err), &err,
		   ERR_INTEGRITY, "not a regular file");
	assert_err(zip_add_parts(w, "d", test_dir(), NULL, 0, sha256, &size, &err), &err,
		   ERR_INTEGRITY, "not a regular file");
	zip_abort(w);
}

static void test_create_wants_a_new_file_and_a_level(void **state)
{
	(void)state;
	struct zip_writer *w = NULL;
	test_write(test_path("there.zip"), "mine");
	assert_err(zip_create(&(struct zip_new){.path = test_path("there.zip"),
						.epoch = 0,
						.threads = 1,
						.level = 6},
			      &w, &err),
		   &err, ERR_SYSTEM, "there.zip");
	char *AUTO_FREE text = test_read(test_path("there.zip"));
	assert_string_equal(text, "mine");
	assert_err(zip_create(&(struct zip_new){.path = test_path("n.zip"),
						.epoch = 0,
						.threads = 1,
						.level = 10},
			      &w, &err),
		   &err, ERR_USAGE, "level 10");
	assert_int_equal(access(test_path("n.zip"), F_OK), -1);
}

static void test_abort_removes_the_file(void **state)
{
	(void)state;
	struct zip_writer *w = create(test_path("a.zip"), 2, 6);
	char *AUTO_FREE data = noise(2 * ZIP_CHUNK, 10);
	assert_ok(zip_add_data(w, "a", data, 2 * ZIP_CHUNK, &err), &err);
	zip_abort(w);
	assert_int_equal(access(test_path("a.zip"), F_OK), -1);
	zip_abort(NULL);
}

static void test_full_disk_is_an_error(void **state)
{
	(void)state;
	struct zip_writer *w = NULL;
	uint8_t sha256[32];
	char *AUTO_FREE data = noise(100000, 100);
	int limit = open("/dev/full", O_WRONLY);
	assert_true(limit >= 0);
	w = create(test_path("a.zip"), 1, 6);
	/* The writer's descriptor becomes /dev/full: the newest one but ours. */
	assert_int_equal(dup2(limit, limit + 1), limit + 1);
	close(limit);
	assert_ok(zip_add_data(w, "a", data, 100000, &err), &err);
	assert_err(zip_finish(w, sha256, &err), &err, ERR_SYSTEM, "a.zip");
	assert_int_equal(access(test_path("a.zip"), F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_empty_archive),
		TEST(test_data_round_trip),
		TEST(test_what_does_not_shrink_is_stored),
		TEST(test_shared_chunks),
		TEST(test_chunks_of_an_archive_that_is_not_finished),
		TEST(test_level_zero_stores),
		TEST(test_file_gives_digest_size_and_mode),
		TEST(test_time_is_the_epoch_in_utc),
		TEST(test_time_is_clamped),
		TEST(test_bytes_do_not_depend_on_threads),
		TEST(test_exact_chunk_sizes),
		TEST(test_chunks_join),
		TEST(test_chunks_that_end_in_noise_join),
		TEST(test_entropy),
		TEST(test_packed_data_stays),
		TEST(test_copied_entries_are_the_same),
		TEST(test_copying_refuses_doubles_and_other_times),
		TEST(test_non_ascii_names),
		TEST(test_writer_refuses_bad_names),
		TEST(test_writer_refuses_what_is_no_file),
		TEST(test_create_wants_a_new_file_and_a_level),
		TEST(test_abort_removes_the_file),
		TEST(test_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
