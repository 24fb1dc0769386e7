/* The toolchain of a root: what is there and which version, found by running it in the sandbox. */
#pragma once
#include "core/root/sandbox.h"

struct tool {
	/* gcc g++ clang ld cmake ninja python3 nvcc ccache patchelf patch pkg-config git mold */
	const char *name;
	const char *path; /* inside the root; NULL: absent */
	/* "14.2.0"; "" if absent, or if it is there but prints none (a broken one) */
	const char *version;
	/* the line it prints that holds the version, for the record and the key; "" likewise */
	const char *id;
};

struct toolchain {
	struct tool *tools;
	size_t count;
	/* "gcc: gcc (Debian 14.2.0-19) 14.2.0\n..." sorted, of those that change compiled bytes
	 * (gcc g++ clang ld mold cmake ninja python3; nvcc is told by core/toolkit.h): what goes
	 * into the compile key */
	const char *text;
	const char *root_id;     /* root.id */
	const char *fingerprint; /* of the root */
};

/* toolchain_probe: runs each known tool once, all of them in one sandbox. An absent tool is not an
 * error: it is in the list with path NULL. */
int toolchain_probe(const struct root *root, enum sandbox_kind kind, const struct run *run, struct arena *a,
		    const struct toolchain **ret, struct err *e) MUST_CHECK;
/* toolchain_recall: what toolchain_remember wrote to the file `memo`, if root and sandbox are the
 * same and every tool's file looks as it did then (place, inode, size, times). NULL when anything
 * differs or cannot be read: then probe. The file may be deleted at any time. */
const struct toolchain *toolchain_recall(const struct root *root, enum sandbox_kind kind, const char *memo,
					 struct arena *a);
/* toolchain_remember: for the next toolchain_recall. Nothing is written of a root with a tool that
 * told no version; a file that cannot be written is passed over. */
void toolchain_remember(const struct toolchain *t, const struct root *root, enum sandbox_kind kind, const char *memo);
/* toolchain_get: never NULL for a known tool name. */
const struct tool *toolchain_get(const struct toolchain *t, const char *name);
/* toolchain_parse: version and line of a tool out of what it prints ("" both if there is no version
 * in it). */
void toolchain_parse(const char *output, struct arena *a, const char **ret_version, const char **ret_id);
