/* What differs between two wheels, down to the member, the ELF section and the symbol. */
#pragma once
#include <jansson.h>

#include "base/arena.h"
#include "base/run.h"

struct difference {
	const char *member; /* "" for the archive itself */
	const char *where;  /* "section .text", "symbol foo", "line 12", "mode"; "" for all of it */
	const char *what;
};

struct comparison {
	bool same; /* the same bytes */
	char sha256[2][65];
	struct difference *items; /* by member, at most COMPARE_DETAILS and a line of each */
	size_t count, cap;
	size_t members; /* that differ in their contents */
};

enum { COMPARE_DETAILS = 20 };

/* compare_wheels: archives of different bytes have at least one difference. -1: cannot be read. */
int compare_wheels(const char *one, const char *other, const struct run *run, struct arena *a, struct comparison *ret,
		   struct err *e) MUST_CHECK;
/* compare_json: a new reference. */
json_t *compare_json(const struct comparison *c);

/* What the compare files share. */
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
