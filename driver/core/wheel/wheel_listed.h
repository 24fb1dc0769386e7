/* A wheel that an index lists. */
#pragma once
#include <stdint.h>

struct wheel_listed {
	const char *name;   /* of the file */
	const char *url;    /* absolute, http or https */
	const char *sha256; /* "" if the index does not say */
	uint64_t size;      /* 0 likewise */
};
