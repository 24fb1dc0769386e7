/* Errors: owned by the caller; a kind (which is the exit code), a message and a hint.
 *
 * Convention of the whole program: int f(in..., out *ret_x, struct err *e) returns 0, or -1 with
 * `e` set and the outputs untouched. Messages: lower case, no full stop, the error first, the
 * subject in single quotes. The hint says what to do next. */
#pragma once

enum err_kind {
	ERR_NONE = 0,
	ERR_USAGE = 2,         /* wrong command line */
	ERR_CONFIG = 3,        /* tables, profiles, names */
	ERR_NETWORK = 4,       /* a file could not be fetched */
	ERR_INTEGRITY = 5,     /* hash, archive, wheel: bytes are not what they must be */
	ERR_BUILD = 6,         /* a compiler or build tool failed */
	ERR_POLICY = 7,        /* an option not obeyed, an unsupported pair, no sandbox */
	ERR_SYSTEM = 8,        /* the machine: disk, memory, permissions, a missing tool */
	ERR_INTERRUPTED = 130, /* the user stopped it */
};

/* Replaced by one that names the file system, where the program ends (cmd/disk.c). */
#define ERR_DISK_HINT "free some space, or point --cache, --out and TMPDIR to another file system"

struct err {
	enum err_kind kind;
	char msg[2048];
	char hint[1024];
};

/* Where it does not matter why something fails. */
#define ERR_IGNORED (&(struct err){0})

/* All return -1, for `return err_set(e, ...)`. Text that does not fit is cut. */
/* err_set: replaces what `e` held; clears the hint. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* err_errno: like err_set, then adds ": " and the text of errno. With an errno of a full disk the
 * kind is ERR_SYSTEM, whatever `kind` says, and the hint is ERR_DISK_HINT. */
int err_errno(struct err *e, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* err_wrap: puts "context: " in front of the message; kind and hint stay. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* err_hint: sets the hint line. */
int err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* err_disk: the errno of a full disk that a text names: ENOSPC, EDQUOT (a quota) or EFBIG (a limit
 * of a file's size); 0 if it names none. */
int err_disk(const char *words);
/* err_words_killed: where the output of another program says that signal 9 ended one; NULL. */
const char *err_words_killed(const char *words);
/* err_kind_of_words: ERR_SYSTEM when the output of another program names a fault of the machine
 * (err_disk, a broken disk, no memory, a program killed), else `otherwise`. */
enum err_kind err_kind_of_words(const char *words, enum err_kind otherwise);
/* err_take: becomes a copy of another error. */
int err_take(struct err *e, const struct err *other);
/* err_clear: back to ERR_NONE with empty texts. */
void err_clear(struct err *e);

#ifdef __clang_analyzer__
/* The analyzer reads one file at a time: this declares that these functions always return -1. */
static inline int err_is_minus_one(int ignored)
{
	(void)ignored;
	return -1;
}
#define err_set(...) err_is_minus_one(err_set(__VA_ARGS__))
#define err_errno(...) err_is_minus_one(err_errno(__VA_ARGS__))
#define err_wrap(...) err_is_minus_one(err_wrap(__VA_ARGS__))
#define err_hint(...) err_is_minus_one(err_hint(__VA_ARGS__))
#define err_take(...) err_is_minus_one(err_take(__VA_ARGS__))
#endif
