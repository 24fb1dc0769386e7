/* pip of this machine: it has the user's network settings and knows the index. */
#pragma once
#include "base/base.h"

/* pip_find: adds the words that start it. ERR_NETWORK says that there is none, and `hint` is the
 * way out. */
int pip_find(struct arena *a, struct strlist *argv, const char *hint, struct err *e) MUST_CHECK;
/* pip_reason: what its output says went wrong, its lines of errors or else the last one, in one
 * line of some 1000 bytes. */
char *pip_reason(struct arena *a, const struct buf *output) __attribute__((returns_nonnull));
