/* Errors: caller-owned, with a kind (a decision, and the exit code), a message and a hint.
 *
 * Convention of the whole program: int f(in..., out *ret_x, struct err *e) returns 0, or -1 with
 * `e` set and the outputs untouched. Messages: lower case, no full stop, the error first, the
 * subject in single quotes. The hint says what to do next. */
#pragma once

enum err_kind {
	ERR_NONE = 0,
	ERR_USAGE = 2,         /* wrong command line */
	ERR_CONFIG = 3,        /* tables, profiles, names */
	ERR_NETWORK = 4,       /* a file could not be had */
	ERR_INTEGRITY = 5,     /* hash, archive, wheel: bytes are not what they must be */
	ERR_BUILD = 6,         /* a compiler or build tool failed */
	ERR_POLICY = 7,        /* asked is not got, unsupported pair, sandbox impossible */
	ERR_SYSTEM = 8,        /* the machine: disk, memory, permissions, a missing tool */
	ERR_INTERRUPTED = 130, /* the user stopped it */
};

struct err {
	enum err_kind kind;
	char msg[2048];
	char hint[1024];
};

/* All return -1, so that `return err_set(e, ...)` reads as one thought. Text that does not fit is
 * cut, never overrun. */
/* err_set: replaces what `e` held; clears the hint. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* err_errno: as err_set, with ": " and the text of the current errno appended; ENOSPC and EDQUOT
 * add a hint of their own. */
int err_errno(struct err *e, enum err_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* err_wrap: puts "context: " in front of the message; kind and hint stay. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* err_hint: sets the hint line. */
int err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* err_kind_of_words: ERR_SYSTEM when what another program said names a fault of the machine (a full
 * disk, a broken one, no memory), else `otherwise`. */
enum err_kind err_kind_of_words(const char *words, enum err_kind otherwise);
/* err_clear: back to ERR_NONE with empty texts. */
void err_clear(struct err *e);

#ifdef __clang_analyzer__
/* The analyzer looks at one file at a time: told that these give -1, it does not go down paths on
 * which an error was set and success returned. */
static inline int err_is_minus_one(int ignored)
{
	(void)ignored;
	return -1;
}
#define err_set(...) err_is_minus_one(err_set(__VA_ARGS__))
#define err_errno(...) err_is_minus_one(err_errno(__VA_ARGS__))
#define err_wrap(...) err_is_minus_one(err_wrap(__VA_ARGS__))
#define err_hint(...) err_is_minus_one(err_hint(__VA_ARGS__))
#endif
