/* Path strings. Nothing here touches the file system. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"

/* path_join: `a` + "/" + `b`, without a doubled slash; `b` is taken as relative even if it starts
 * with '/'. */
char *path_join(struct arena *ar, const char *a, const char *b) __attribute__((returns_nonnull));
/* path_base: the part behind the last '/', a pointer into `path`. */
const char *path_base(const char *path) __attribute__((returns_nonnull));
/* path_dir: all before the last '/', "." when there is none, "/" for a root entry. */
char *path_dir(struct arena *ar, const char *path) __attribute__((returns_nonnull));
/* path_is_safe_relative: not empty, not absolute, no empty, "." or ".." component, no NUL or
 * control bytes: may be created below a directory. */
bool path_is_safe_relative(const char *path);
/* path_stays_inside: whether `target` (relative), seen from directory `from` (relative, "" = top),
 * stays below the top: for links in archives. */
bool path_stays_inside(const char *from, const char *target);
/* path_absolute: `path` itself when absolute, else joined to `cwd`; "." and ".." are resolved as
 * text. */
char *path_absolute(struct arena *ar, const char *cwd, const char *path) __attribute__((returns_nonnull));
/* path_below: what of `path` is below directory `top`, a pointer into it; NULL when it is not
 * below. By text alone. */
const char *path_below(const char *path, const char *top);
bool path_has_suffix(const char *path, const char *suffix);
