/* Path strings. Nothing here touches the file system. */
#pragma once

#include "base/arena.h"

/* path_join: `a` + "/" + `b` without a doubled slash, also if `b` starts with one. */
char *path_join(struct arena *ar, const char *a, const char *b) __attribute__((returns_nonnull));
/* path_base: the part behind the last '/', a pointer into `path`. */
const char *path_base(const char *path) __attribute__((returns_nonnull));
/* path_dir: returns all before the last '/', "." if `path` has no '/', "/" for an entry of the
 * root. */
char *path_dir(struct arena *ar, const char *path) __attribute__((returns_nonnull));
/* path_is_safe_relative: may be created below a directory: relative, without empty, "." or ".."
 * components and control bytes. */
bool path_is_safe_relative(const char *path);
/* path_stays_inside: whether a link in directory `from` (relative, "" = top) to `target` stays
 * below the top. */
bool path_stays_inside(const char *from, const char *target);
/* path_from_here: path_absolute from the current directory. If that was removed, the path stays as
 * it is, and opening it reports the error. */
char *path_from_here(struct arena *ar, const char *path) __attribute__((returns_nonnull));
/* path_absolute: joined to `cwd` unless absolute; "." and ".." are resolved as text. */
char *path_absolute(struct arena *ar, const char *cwd, const char *path)
	__attribute__((returns_nonnull));
/* path_below: the part of `path` below directory `top`, a pointer into it; NULL: none. */
const char *path_below(const char *path, const char *top);
bool path_has_suffix(const char *path, const char *suffix);

/* Words of a command line that a person pastes into a shell. */
/* shell_quoted: the word as a POSIX shell reads it back as one, itself where nothing needs
 * quoting. shell_line: several, with blanks between them. */
const char *shell_quoted(const char *word, struct arena *a);
char *shell_line(const char *const *words, size_t count, struct arena *a)
	__attribute__((returns_nonnull));
