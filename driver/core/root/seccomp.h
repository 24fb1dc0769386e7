/* The system calls that a program in the sandbox cannot make, as a seccomp filter. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* A rule of the list, and why it is there. */
struct seccomp_call {
	const char *names; /* with blanks between */
	int error;         /* what the caller gets */
	const char *why;
};

/* seccomp_calls: those refused whatever their arguments are. */
const struct seccomp_call *seccomp_calls(size_t *ret_count);
/* seccomp_filter: the whole filter as bubblewrap reads it, as a descriptor at its
 * beginning; -1 with ERR_POLICY. */
int seccomp_filter(struct err *e) MUST_CHECK;
/* seccomp_works: whether this kernel takes filters. */
bool seccomp_works(void);
