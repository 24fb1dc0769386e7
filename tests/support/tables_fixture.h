/* The shipped tables, loaded once for a test program. */
#pragma once
#include "support.h"

#include "core/tables/tables.h"

static struct arena shared;
static const struct tables *tables;

static inline int load(void **state)
{
	(void)state;
	struct err e = {0};
	assert_ok(tables_load(PROFILES_DIR, &shared, &tables, &e), &e);
	return 0;
}

static inline int unload(void **state)
{
	(void)state;
	arena_release(&shared);
	return 0;
}
