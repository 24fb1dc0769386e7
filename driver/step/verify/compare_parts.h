/* What the compare files share. */
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
	const char *member; /* being compared */
	size_t details;     /* noted of it so far */
};

/* compare_same: whether the bytes are equal. */
bool compare_same(const struct compare_bytes *one, const struct compare_bytes *other);
/* compare_note: one more difference of the member. */
void compare_note(struct comparing *x, const char *where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* compare_elf: notes sections and symbols that differ; false when none does, or one of the two is
 * not an ELF file that libelf reads. */
bool compare_elf(struct comparing *x, const struct compare_bytes *one, const struct compare_bytes *other);
