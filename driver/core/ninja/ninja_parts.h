/* Reading and rewriting a build.ninja: what only ninja_*.c share. */
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
};

/* ninja_split: the statements of a text, without what an earlier run added; `o` weighs the compiled
 * outputs. Errors as ninja_text's. */
int ninja_split(const char *text, size_t len, const char *name, const struct ninja_options *o, struct arena *a,
		struct ninja_pieces *ret, struct err *e) MUST_CHECK;
/* Lines as ninja's own lexer reads them: "\n" or "\r\n" ends one; any other return is an error, but
 * in a comment.
 * ninja_line_end: behind the end of the line at `p`; a '$' before it joins the next line.
 * ninja_comment_end: of a comment, which a '$' does not go on. ninja_next_line: of either.
 * ninja_eol: where the end of the line begins that stands before `next`; `next` if none does.
 * ninja_line_fault: what ninja does not read in the line of `next` = ninja_next_line(p), and where;
 * NULL: nothing. */
const char *ninja_line_end(const char *p, const char *end);
const char *ninja_comment_end(const char *p, const char *end);
const char *ninja_next_line(const char *p, const char *end);
const char *ninja_eol(const char *p, const char *next);
const char *ninja_line_fault(const char *p, const char *next, const char **ret_at);
/* ninja_take_word: one word of a build statement into `out`, without escapes and joined lines; it
 * ends before a blank, ':' or '|'. *ret_plain: it holds no variable (those stay as written) and no
 * NUL. Both functions give where they stopped. */
const char *ninja_take_word(const char *p, const char *end, struct buf *out, bool *ret_plain);
const char *ninja_skip_blanks(const char *p, const char *end);
/* ninja_take_paths: paths up to ':', "||", "|@" or the end: the first, and the first plain one;
 * NULL for none. Gives where it stopped. */
const char *ninja_take_paths(const char *p, const char *end, struct arena *a, const char **ret_first,
			     const char **ret_plain);

/* "build OUT OUT | IMPLICIT: RULE IN ..." */
struct ninja_head {
	const char *output, *plain_output; /* the first, and the first plain one (or NULL) */
	const char *rule;
	bool plain_rule;
	const char *inputs; /* behind the rule */
};

/* ninja_take_head: of the build statement at `p`; false when output or rule is missing. */
bool ninja_take_head(const char *p, const char *end, struct arena *a, struct ninja_head *ret);
/* ninja_begins: whether more than `word` stands at `p`, and that first. */
bool ninja_begins(const char *p, const char *end, const char *word);

/* ninja_add_waits: numbers the waits of the links that take heavy units, and appends their
 * statements to `out`. ninja_head_len: how much of a build statement's first line, of `len` bytes
 * without its end, is not an earlier run's. ninja_put_wait: appends what is added to it now. */
void ninja_add_waits(struct ninja_pieces *l, struct arena *a, struct buf *out);
size_t ninja_head_len(const char *head, size_t len);
void ninja_put_wait(const struct ninja_piece *piece, struct buf *out);
