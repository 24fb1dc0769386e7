/* Compare: what differs between two wheels, down to the archive's member, the ELF section and the
 * symbol. */
#pragma once
#include <jansson.h>

#include "base/arena.h"
#include "base/run.h"

struct difference {
	const char *member; /* "" for the archive itself */
	/* "section .text", "symbol foo", "line 12", "mode"; "" for the whole member */
	const char *where;
	const char *what;
};

struct comparison {
	bool same; /* the same bytes: nothing else was looked at */
	char sha256[2][65];
	/* in the order of the members' names; details of one member are cut after
	 * COMPARE_DETAILS */
	struct difference *items;
	size_t count, cap;
	size_t members; /* that differ in their contents */
};

enum { COMPARE_DETAILS = 20 };

/* compare_wheels: -1 only for a wheel that cannot be read. Two archives of different bytes always
 * have at least one difference. */
int compare_wheels(const char *one, const char *other, const struct run *run, struct arena *a, struct comparison *ret,
		   struct err *e) MUST_CHECK;
/* compare_json: a new reference. compare_text: a line a difference, "" when the same. */
json_t *compare_json(const struct comparison *c);
char *compare_text(const struct comparison *c, struct arena *a);
