/* Reading and rewriting a build.ninja: what ninja_pools.c and ninja_share.c share. */
#pragma once
#include "core/ninja/ninja.h"

#define NINJA_PREFIX "ptbuild_"
#define NINJA_HEAD_BEGIN "# ptbuild: pools\n"
#define NINJA_HEAD_END "# ptbuild: end of pools\n"

enum ninja_kind { KIND_OTHER, KIND_COMPILE, KIND_HEAVY, KIND_LINK };

/* One statement with the indented lines below it, or one line between statements (a comment, or an
 * empty line). */
struct ninja_piece {
	const char *at;
	size_t len;
	bool build;
	bool border; /* nothing moves past it */
	bool movable;
	enum ninja_kind kind;
	double cost;
	const char *output;
	/* of a build statement: its first line as CMake wrote it, without the end of the line */
	size_t head_len;
	const char *inputs; /* of a build statement: behind its rule */
	bool links;         /* its rule makes a library (static or shared) or a program */
	unsigned wait;      /* number of the wait it gets, 0 for none */
	bool order_only;    /* of one that waits: it waits for something else as well */
};

struct ninja_pieces {
	struct ninja_piece *items;
	size_t count, cap;
	struct arena *arena; /* of the items */
};

/* ninja_split: the statements of a text, without what an earlier run added; `o` weighs the compiled
 * outputs. Errors as ninja_text's. */
int ninja_split(const struct file_bytes *in, const struct ninja_options *o,
		struct ninja_pieces *ret, struct err *e) MUST_CHECK;
/* ninja_take_word: one word of a build statement into `out`, without escapes and joined lines; it
 * ends before a blank, ':' or '|'. *ret_plain: it holds no variable (those stay as written) and no
 * NUL. Both functions give where they stopped. */
const char *ninja_take_word(const char *p, const char *end, struct buf *out, bool *ret_plain);
const char *ninja_skip_blanks(const char *p, const char *end);
