/* What the tests of reading and of editing ELF files share. */
#pragma once
#include "compile.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/elf/elf.h"

#define SHARED "-shared -fPIC "
#define DIGITS "01234567890123456789012345678901234567890123456789012345678901234567890123456789"
#define TOKEN "/ptbuild/rpath/" DIGITS DIGITS DIGITS
#define ANSWER "int answer(void) { return 42; }\n"

static struct arena arena;

__attribute__((unused)) static struct elf_info read_info(const char *path)
{
	struct err e = {0};
	struct elf_info info;
	assert_ok(elf_read_all(path, &arena, &info, &e), &e);
	return info;
}

__attribute__((unused)) static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

__attribute__((unused)) static char *read_bytes(const char *path, size_t *len)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	*len = (size_t)st.st_size;
	return test_read(path);
}

__attribute__((unused)) static bool file_has(const char *path, const char *text)
{
	size_t len;
	char *bytes = read_bytes(path, &len);
	bool found = memmem(bytes, len, text, strlen(text)) != NULL;
	free(bytes);
	return found;
}

__attribute__((unused)) static void put(const char *path, size_t offset, const void *data,
					size_t len)
{
	int fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, len, (off_t)offset), len);
	close(fd);
}

__attribute__((unused)) static void drop_sections(const char *path)
{
	static const uint8_t zero[8];
	put(path, offsetof(Elf64_Ehdr, e_shoff), zero, 8);
	put(path, offsetof(Elf64_Ehdr, e_shnum), zero, 4);
}
