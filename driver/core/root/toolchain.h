/* The tools of a root and their versions, found by running them in the sandbox. */
#pragma once
#include "core/root/sandbox.h"

struct tool {
	const char *name;    /* as in the list of known tools, toolchain.c */
	const char *path;    /* inside the root; NULL: absent */
	const char *version; /* "14.2.0"; "" if absent, or if it prints none */
	const char *id;      /* the line it prints with the version; "" likewise */
};

struct toolchain {
	const struct root *root; /* that it is of; NULL: none, as in tests */
	struct tool *tools;
	size_t count;
	/* for the compile key: "gcc: gcc (Debian 14.2.0-19) 14.2.0\n..." sorted, of the tools that
	 * change compiled bytes; nvcc is in the toolkit's text */
	const char *text;
	const char *root_id;     /* root.id */
	const char *fingerprint; /* of the root */
	const char *glibc;       /* of the root, in no key; "" unknown */
};

/* toolchain_probe: runs each known tool once, all in one sandbox. An absent tool is in the list
 * with path NULL. */
int toolchain_probe(const struct root *root, enum sandbox_kind kind, const struct run *run, struct arena *a,
		    const struct toolchain **ret, struct err *e) MUST_CHECK;
/* toolchain_recall: what toolchain_remember wrote to the file `memo`, if root, sandbox and every
 * tool's file (place, inode, size, times) are as they were then; else NULL. */
const struct toolchain *toolchain_recall(const struct root *root, enum sandbox_kind kind, const char *memo,
					 struct arena *a);
/* toolchain_remember: for the next toolchain_recall, unless a tool printed no version. Failing to
 * write is not an error. */
void toolchain_remember(const struct toolchain *t, const struct root *root, enum sandbox_kind kind, const char *memo);
/* toolchain_get: never NULL for a known tool name. */
const struct tool *toolchain_get(const struct toolchain *t, const char *name);
/* toolchain_parse: the version in a tool's output and its line, both "" if there is none. */
void toolchain_parse(const char *output, struct arena *a, const char **ret_version, const char **ret_id);

/* Begins each answer of a script; no tool prints a record separator. */
#define TOOLCHAIN_MARK "\036"
/* toolchain_ask: runs a shell script inside, which prints marked answers; adds them to `ret`. Its
 * function "ask PROGRAM WORD..." sets text and status, tries twice what fails, and ends with
 * ERR_SYSTEM for what is killed. */
int toolchain_ask(struct sandbox *s, const char *script, const struct strlist *args, const struct run *run,
		  struct strlist *ret, struct err *e) MUST_CHECK;
