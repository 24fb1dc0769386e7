/* The line with which an installer takes the wheels of an index. */
#pragma once
#include "base/strlist.h"

/* install_url: of a directory on this machine, "file:///srv/dist/cpu-avx2/". */
char *install_url(struct arena *a, const char *dir, const char *name) __attribute__((returns_nonnull));
/* install_argv: adds the words for pip, or uv. The versions are named, so that no other index that
 * the installer looks into can give a newer one; everything else comes from there. */
void install_argv(const char *python, bool uv, const char *url, const struct strlist *wanted, struct arena *a,
		  struct strlist *ret);
