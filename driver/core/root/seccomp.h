/* The system calls that a program in the sandbox cannot make, as a seccomp filter. */
#pragma once

#include "base/base.h"

/* seccomp_filter: the whole filter as bubblewrap reads it, as a descriptor at its
 * beginning; -1 with ERR_POLICY. */
int seccomp_filter(struct err *e) MUST_CHECK;
/* seccomp_works: whether this kernel takes filters. */
bool seccomp_works(void);
