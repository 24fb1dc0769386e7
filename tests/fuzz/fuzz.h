/* What the fuzz targets share. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A statement about the code under test. */
static inline void fail_unless(bool ok)
{
	if (!ok)
		abort();
}
