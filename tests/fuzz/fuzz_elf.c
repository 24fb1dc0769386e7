/* Any bytes as an ELF file: read, and, where that works, the search path taken out. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/elf/elf.h"
#include "core/elf/elf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Over the fuzzer's own bytes, whose end the sanitizer guards; a mapped file ends in zeroes up to its page. */
static bool walk_tables(const uint8_t *data, size_t size)
{
	AUTO_ELF_MAP struct elf_map m;
	struct err e = {0};
	struct elf_need *needs;
	uint64_t table, count, sum = 0;
	size_t needs_count, room;
	if (elf_map_memory(data, size, "input", &m, &e) != 0 || !m.dyn)
		return false;
	if (elf_map_symbols(&m, &table, &count, &e) != 0 || elf_map_needs(&m, &needs, &needs_count, &e) != 0)
		return true;
	for (uint64_t i = 0; i < count; i++)
		sum += elf_map_symbol(&m, table, i).st_name;
	if (elf_map_path_room(&m, sum % (m.strings_size + 1), &room, &e) != 0 || elf_map_loadable(&m, &e) != 0)
		return true;
	return true;
}

/* Removing never starts a program. What comes out has no search path, or the edit was refused. */
static void remove_path(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct log log = {.level = LOG_QUIET, .fd = 2};
	struct run run = {.log = &log, .cancel_fd = -1};
	struct elf_info info;
	struct err e = {0};
	char path[64];
	bool in_place = false;
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (elf_read(path, ELF_SYMBOLS, &a, &info, &e) != 0 || elf_set_rpath(path, "", &run, &in_place, &e) != 0)
		return;
	if (!in_place || elf_read(path, 0, &a, &info, &e) != 0 || info.rpath || info.runpath)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (walk_tables(data, size))
		remove_path(data, size);
	return 0;
}
