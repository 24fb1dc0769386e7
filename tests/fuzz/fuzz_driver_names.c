/* Any bytes as a header of the driver: the names that are found
 * are names, and a stub of them is a library that has them all. */
#include <string.h>

#include "core/elf/elf.h"
#include "core/elf/elf_map.h"
#include "fuzz.h"
#include "step/world/toolkit_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf bytes = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct strlist names = {0};
	struct err e = {0};
	uint64_t table, count;

	if (driver_names((const char *)data, size, &a, &names, &e) < 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0]);
		return 0;
	}

	for (size_t i = 0; i < names.count; i++)
		fail_unless(strncmp(names.items[i], "cu", 2) == 0 &&
			    strlen(names.items[i]) <= 205 && !strpbrk(names.items[i], " \t\n(;"));
	const struct elf_stub s = {EM_X86_64, "libcuda.so.1", &names, 34};
	fail_unless(elf_stub_put(&s, &bytes, &e) == 0);
	fail_unless(elf_map_memory(&(struct file_bytes){bytes.data, bytes.len, "stub"}, &m, &e) ==
		    0);
	fail_unless(elf_map_symbols(&m, &table, &count, &e) == 0 && count == names.count + 1);
	return 0;
}
