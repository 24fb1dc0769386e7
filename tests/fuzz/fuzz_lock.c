/* Any bytes as a lock: refused with a place, or written back byte for byte. */
#include <string.h>

#include "core/world/world.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	struct world_lock l;
	struct err e = {0};

	if (world_lock_parse(&(struct file_bytes){(const char *)data, size, "fuzz"}, &a, &l, &e) <
	    0) {
		fail_unless(e.kind == ERR_CONFIG && strncmp(e.msg, "fuzz:", 5) == 0);
		return 0;
	}

	world_lock_write(&l, &out);
	fail_unless(out.len == size && memcmp(buf_cstr(&out), data, size) == 0);
	return 0;
}
