/* Any bytes as an ELF file: read, and, where that works,
 * with another search path and a longer string table. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/elf/elf.h"
#include "core/elf/elf_map.h"
#include "fuzz.h"

/* Over the fuzzer's own bytes, whose end the sanitizer
 * guards; a mapped file ends in zeroes up to its page. */
static bool walk_tables(const uint8_t *data, size_t size)
{
	AUTO_ELF_MAP struct elf_map m;
	struct err e = {0};
	struct elf_need *needs;
	uint64_t table, count, sum = 0;
	size_t needs_count, room;

	if (elf_map_memory(&(struct file_bytes){data, size, "input"}, &m, &e) != 0 || !m.dyn)
		return false;
	if (elf_map_symbols(&m, &table, &count, &e) != 0 ||
	    elf_map_needs(&m, &needs, &needs_count, &e) != 0)
		return true;
	for (uint64_t i = 0; i < count; i++)
		sum += elf_map_symbol(&m, table, i).st_name;
	if (elf_map_path_room(&m, sum % (m.strings_size + 1), &room, &e) != 0 ||
	    elf_map_loadable(&m, &e) != 0)
		return true;
	return true;
}

/* A file that the edit takes has the search path then; one
 * that it refuses may be half-edited in place, as here. */
static void set_path(const uint8_t *data, size_t size, const char *rpath)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_info info;
	struct err e = {0};
	char path[64];
	bool in_place = false;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (elf_read_all(path, &a, &info, &e) != 0 ||
	    elf_change(path, &(struct elf_change){.rpath = rpath}, &in_place, &e) != 0)
		return;
	if (!in_place || elf_read(path, &a, &info, &e) != 0 || info.runpath ||
	    !info.rpath != !*rpath)
		abort();
}

/* A longer string table: what comes out is written whole, and read again. */
static bool grow(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct elf_cut cut = {.map = &m, .a = &a};
	struct err e = {0};

	if (elf_map_memory(&(struct file_bytes){data, size, "fuzz"}, &m, &e) < 0 || !m.dyn ||
	    elf_cut_grow(&cut, 100, data[size / 2] % 8, &e) < 0)
		return false;
	AUTO_FD int fd = memfd_create("grown", MFD_CLOEXEC);
	AUTO_ELF_MAP struct elf_map after = {0};
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || elf_cut_write(&cut, fd, path, &e) < 0)
		abort();
	return elf_map_open(path, &after, &e) == 0 && elf_map_loadable(&after, &e) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (walk_tables(data, size)) {
		set_path(data, size, "");
		set_path(data, size, "$O");
		grow(data, size);
	}

	return 0;
}
