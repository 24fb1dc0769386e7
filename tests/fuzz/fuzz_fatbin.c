/* Any bytes as a file with GPU code: every entry is listed, its contents looked into. */
#include <stdlib.h>
#include <string.h>

#include "core/fatbin/fatbin.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct fatbin_summary s;
	struct err e = {0};
	/* An allocation of exactly this size: the sanitizer sees a byte too far. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	if (fatbin_summarize(&(struct file_bytes){copy, size, "input"}, &a, &s, &e) == 0) {
		size_t sets = 0;
		for (size_t i = 0; i < s.sets_count; i++)
			sets += s.sets[i].containers;
		if (sets != s.containers || (s.count == 0) != (s.containers == 0))
			abort();
	} else if (!*e.msg) {
		abort();
	}

	free(copy);
	return 0;
}
