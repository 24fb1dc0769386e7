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
