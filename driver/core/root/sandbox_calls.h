/* The system calls that a program in the sandbox cannot make, as a seccomp filter. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* A rule of the list, and why it is there. */
struct sandbox_call {
	const char *names; /* with blanks between */
	int error;         /* what the caller gets */
	const char *why;
};

/* sandbox_calls: those refused whatever their arguments are. */
const struct sandbox_call *sandbox_calls(size_t *ret_count);
/* sandbox_calls_filter: the whole filter as bubblewrap reads it, as a descriptor at its
 * beginning; -1 with ERR_POLICY. */
int sandbox_calls_filter(struct err *e) MUST_CHECK;
/* sandbox_calls_work: whether this kernel takes filters. */
bool sandbox_calls_work(void);
