/* Settings: what the build is told, each value with where it comes from and why. */
#pragma once
#include "base/base.h"

#define SETTING_BUILT_IN "built in"         /* `file` of what holds for every build */
#define SETTING_COMMAND_LINE "command line" /* `file` of --set, --without and --blas */

struct setting {
	const char *name;
	const char *value;
	const char *file; /* the table, or "built in", or "command line", or the user's profile */
	unsigned line;    /* 0: none */
	/* what set it: "toggle for cuda", "release 2.8.0"; NULL: `file` says it all */
	const char *rule;
	const char *why;
	const char *source; /* of this fact alone; NULL or "": what its file says of all */
	bool check;         /* compare with CMakeCache.txt */
	/* a CMake cache entry that only the generated file can set: not in the environment */
	bool cache;
	/* follows from the profile or holds for every build: no toggle that a user may set */
	bool fixed;
};

struct settings {
	struct setting *items;
	size_t count;
	size_t cap;
};

/* settings_put: adds one, or replaces the one of that name; when the value changes, `why` tells
 * what it replaces and where that came from. `check` and `cache` stay set once set. The strings are
 * kept, not copied. */
void settings_put(struct settings *s, struct arena *a, const struct setting *item);
/* settings_add: appends without looking (for lists known to hold no such name). */
void settings_add(struct settings *s, struct arena *a, const struct setting *item);
/* settings_get: NULL when there is none of that name. */
const struct setting *settings_get(const struct settings *s, const char *name);
/* settings_value: its value, NULL when there is none. */
const char *settings_value(const struct settings *s, const char *name);
/* settings_on: whether it is there and ON or 1. */
bool settings_on(const struct settings *s, const char *name);
/* settings_sort: by name, by bytes. */
void settings_sort(struct settings *s);
/* settings_origin: "gpu.yaml:42", "built in". */
char *settings_origin(const struct setting *item, struct arena *a) __attribute__((returns_nonnull));
