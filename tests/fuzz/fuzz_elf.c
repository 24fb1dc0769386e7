/* Any bytes as an ELF file: read, and, where that works, the search path taken out. */
#include <sys/mman.h>
#include <unistd.h>

#include "core/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct log log = {.level = LOG_QUIET, .fd = 2};
	struct run run = {.log = &log, .cancel_fd = -1};
	struct elf_info info;
	struct err e = {0};
	char path[64];
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (elf_read(path, ELF_SYMBOLS, &a, &info, &e) != 0 || !info.dynamic)
		return 0;
	/* Removing never starts a program. What was edited may only differ from the file before in its path, or be refused. */
	bool in_place = false;
	if (elf_set_rpath(path, "", &run, &in_place, &e) == 0 && (!in_place || elf_read(path, 0, &a, &info, &e) != 0 || info.rpath))
		abort();
	return 0;
}
