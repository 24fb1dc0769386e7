/* Any bytes as a library with GPU code, cut: refused, or cut
 * and proved, and never read or written beyond its ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "core/fatbin/fatbin.h"
#include "fuzz.h"

static void cut(const uint8_t *copy, size_t size, struct arena *a)
{
	static const struct fatbin_gpu gpus[] = {{90, true}, {103, false}};
	static const unsigned alone[] = {87};
	static const struct fatbin_wanted w = {gpus, 2, alone, 1};
	AUTO_ELF_MAP struct elf_map before = {0};
	AUTO_ELF_MAP struct elf_map after = {0};
	AUTO_FD int fd = os_memory_file();
	struct elf_cut c = {.map = &before, .a = a};
	struct fatbin_cut done;
	struct err e = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0)
		abort();
	int rc = elf_map_memory(&(struct file_bytes){copy, size, "libtorch_input"}, &before, &e);
	if (rc == 0)
		rc = fatbin_cut_plan(&c, &w, &done, &e);
	if (rc == 0 && c.count)
		rc = elf_cut_write(&c, fd, path, &e) < 0 || elf_map_open(path, &after, &e) < 0
			     ? -1
			     : fatbin_cut_prove(&before, &after, &w, &done, &e);
	if (rc < 0 && !*e.msg)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	/* An allocation of exactly this size: the sanitizer sees a byte too far. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	cut(copy, size, &a);
	free(copy);
	return 0;
}
