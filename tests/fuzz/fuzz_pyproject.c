/* Any bytes as a pyproject.toml: read to the end, or refused with file and line. */
#include <string.h>

#include "core/wheel/wheel.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct pyproject p = {0};
	struct err e = {0};

	if (pyproject_read(&(struct file_bytes){(const char *)data, size, "fuzz"}, &a, &p, &e) <
	    0) {
		fail_unless(e.kind == ERR_INTEGRITY && strncmp(e.msg, "'fuzz':", 7) == 0 &&
			    !p.name);
		return 0;
	}

	fail_unless(p.name && p.version && p.requires_python);
	for (size_t i = 0; i < p.requires.count; i++)
		fail_unless(p.requires.items[i] != NULL);
	return 0;
}
