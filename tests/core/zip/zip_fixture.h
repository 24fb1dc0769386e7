/* What the test programs of the archive share. */
#pragma once
#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/digest.h"
#include "core/zip/zip.h"
#include "craft_zip.h"

enum { EPOCH = 1700000000 }; /* 2023-11-14 22:13:20 UTC */

static struct arena arena;
static struct err err;

static inline int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	return 0;
}

static inline int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

/* ---- making and opening ---- */

static inline struct zip_writer *create(const char *path, unsigned threads, int level)
{
	struct zip_writer *w = NULL;
	assert_ok(zip_create(
			  &(struct zip_new){
				  .path = path, .epoch = EPOCH, .threads = threads, .level = level},
			  &w, &err),
		  &err);
	return w;
}

static inline void finish(struct zip_writer *w)
{
	uint8_t sha256[32];
	assert_ok(zip_finish(w, sha256, &err), &err);
}

static inline struct zip_reader *open_ok(const char *path)
{
	struct zip_reader *z = NULL;
	assert_ok(zip_open(path, &arena, &z, &err), &err);
	return z;
}

static inline uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Something like machine code: words that repeat, with noise between. */
static inline char *noise(size_t len, unsigned entropy)
{
	char *data = malloc(len + 1);
	assert_non_null(data);
	uint32_t seed = 12345;
	for (size_t i = 0; i < len; i++)
		data[i] = next_random(&seed) % 100 < entropy ? (char)next_random(&seed)
							     : (char)(i % 61);
	return data;
}

static inline void assert_entry(const struct zip_reader *z, const char *name, const char *data,
				size_t len)
{
	struct buf AUTO_BUF out = {0};
	const struct zip_entry *en = zip_find(z, name);
	assert_non_null(en);
	assert_int_equal(en->size, len);
	assert_ok(zip_read(z, en, len, &out, &err), &err);
	assert_int_equal(out.len, len);
	assert_memory_equal(buf_cstr(&out), data, len);
}

static const struct craft_entry two[] = {
	{.name = "a.txt", .data = "hello"},
	{.name = "d/b.txt", .data = "world", .mode = S_IFREG | 0644}};

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
