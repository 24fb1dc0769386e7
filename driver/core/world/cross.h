/* Cross parts: what runs a world of another platform on this machine. */
#pragma once
#include "core/world/world.h"

/* world_cross_names: the cross parts of a directory of tables, sorted. A table that is wrong is
 * left out: it is another build's. */
int world_cross_names(const char *profiles, struct arena *a, struct strlist *ret,
		      struct err *e) MUST_CHECK;

struct cross_query {
	const char *profiles;
	const struct strlist *names; /* that world_cross_names gave */
	const char *target, *host;   /* platforms */
	const char *suite;           /* NULL: any */
};

/* world_cross_find: the cross part with which `host` runs programs of `target`, as a world of its
 * own: of this suite, or of any, the last by name. *ret is NULL without one. */
int world_cross_find(const struct cross_query *q, struct arena *a, const struct world **ret,
		     struct err *e) MUST_CHECK;
/* world_cross_take: makes a toolkit's piece what the cross part takes of it: the wheels of its
 * `programs`, and of each these directories. It is unpacked as a part of the cross part's tree. */
void world_cross_take(const struct world_part *cross, struct world_piece *toolkit, struct arena *a);
/* world_cross_with: the cross part with the programs of the world's toolkit, "cross13+cuda13_0"; as
 * it is where the world has no toolkit, or one without such programs for the cross part's own
 * platform. */
int world_cross_with(const char *profiles, const struct world *cross, const struct world *w,
		     struct arena *a, const struct world **ret, struct err *e) MUST_CHECK;
/* world_cross_fits: whether its programs are of the same versions as those of the base that they
 * take the place of ("14.2.0-19cross1" is 14.2.0-19), so that they write the same bytes. ERR_POLICY
 * names both. */
int world_cross_fits(const struct world *cross, const struct world *w, struct err *e) MUST_CHECK;
/* world_cross_version: the emulator's own version, "10.0.13". */
char *world_cross_version(const struct world *cross, struct arena *a);
/* world_cross_slower: what programs take more; `native`: the compilers are those of this machine.
 * NULL: the part does not say. */
const struct world_slower *world_cross_slower(const struct world *cross, bool native);
