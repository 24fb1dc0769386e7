/* Any bytes as the C++ files of a source: each begins with a line "=PATH". An answer is one of
 * those files, and adding one that needs no CUDA takes it back. */
#include <string.h>

#include "fuzz.h"
#include "step/source/cuda_headers.h"

static void add(struct cuda_headers *h, const char *file)
{
	const size_t n = strcspn(file, "\n");
	const char *path = arena_strndup(h->a, file, n);

	if (cuda_headers_want(path))
		cuda_headers_add(h, path, file + n + (file[n] == '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct cuda_headers h = {.a = &a};
	struct strlist files = {0};
	bool found = false;

	strlist_split(&files, &a, arena_strndup(&a, (const char *)data, size), "=");
	for (size_t i = 0; i < files.count; i++)
		add(&h, files.items[i]);
	const char *needs = cuda_headers_need(&h);
	for (size_t i = 0; i < h.count; i++)
		found = found || strcmp(h.files[i].path, needs) == 0;
	fail_unless(!*needs || found);
	cuda_headers_add(&h, "plain.cpp", "int x;\n");
	fail_unless(h.incomplete || !*cuda_headers_need(&h));
	return 0;
}
