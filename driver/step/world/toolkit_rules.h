/* profiles/toolkit_tree.yaml: where the files of CUDA's components go. */
#pragma once
#include "base/arena.h"
#include "base/err.h"

struct toolkit_target {
	const char *platform, *target;
};

struct toolkit_move {
	const char *from, *to;
};

struct toolkit_link {
	const char *path, *to, *why;
};

/* A library of the driver, for linkers: every function that the headers declare. */
struct toolkit_stub {
	const char *path, *soname, *why;
	const char **headers, **leave;
	unsigned headers_count, leave_count;
	uint16_t answer; /* what each function returns */
};

struct toolkit_rules {
	const char *sources;
	struct toolkit_target *platforms;
	const char **wheel_dirs, **drop;
	struct toolkit_move *moves;
	struct toolkit_link *links;
	struct toolkit_stub *stubs;
	unsigned platforms_count, wheel_dirs_count, drop_count, moves_count, links_count, stubs_count;
	const char *digest; /* sha256 of what a tree depends on: for keys */
};

/* toolkit_rules_load: ERR_CONFIG with file:line. */
int toolkit_rules_load(const char *profiles_dir, struct arena *a, const struct toolkit_rules **ret,
		       struct err *e) MUST_CHECK;
/* toolkit_rules_target: "sbsa-linux" of "aarch64-linux"; NULL for an unknown platform. */
const char *toolkit_rules_target(const struct toolkit_rules *r, const char *platform);
/* toolkit_rules_map: where a path below a component's directory goes in the tree; NULL: it is
 * left out. */
const char *toolkit_rules_map(const struct toolkit_rules *r, const char *target, const char *component,
			      const char *path, struct arena *a);
/* toolkit_rules_fill: a path of the table with its '@' replaced. */
const char *toolkit_rules_fill(const char *path, const char *target, struct arena *a);
