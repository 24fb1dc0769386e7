/* What the files of the compare step share. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "step/verify/compare.h"

struct compare_bytes {
	const uint8_t *data;
	size_t len;
};

struct comparing {
	struct arena *a;
	struct comparison *c;
	const char *member; /* that is looked at */
	size_t details;     /* of it, so far */
};

/* compare_note: one more difference of the member. */
void compare_note(struct comparing *x, const char *where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* compare_elf: sections and symbols; false when one of the two is no ELF file that libelf reads, or
 * no section differs. */
bool compare_elf(struct comparing *x, const struct compare_bytes *one, const struct compare_bytes *other);
