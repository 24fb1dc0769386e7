/* The toolchain of a root: what is there and which version, found by running it in the sandbox. */
#pragma once
#include "core/sandbox.h"

struct tool {
	const char *name;    /* "gcc", "g++", "cmake", "ninja", "python3", "ccache", "nvcc", "patchelf"... */
	const char *path;    /* inside the root; NULL: absent */
	const char *version; /* "14.2.0"; "" if absent */
	const char *id;      /* the full first line it prints, for the record and the key */
};

struct toolchain {
	struct tool *tools;
	size_t count;
	const char *text;        /* "gcc: 14.2.0 (Debian 14.2.0-19)\n..." sorted: what goes into the compile key */
	const char *root_id;     /* root.id */
	const char *fingerprint; /* of the root */
};

/* toolchain_probe: runs each known tool once. An absent tool is not an error: it is in the list with path NULL. */
int toolchain_probe(const struct root *root, enum sandbox_kind kind, const struct run *run, struct arena *a, const struct toolchain **ret,
		    struct err *e) MUST_CHECK;
/* toolchain_get: never NULL for a known tool name. */
const struct tool *toolchain_get(const struct toolchain *t, const char *name);
