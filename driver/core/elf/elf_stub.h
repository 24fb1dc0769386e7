/* A shared library that only linkers use: it names functions of a library that is elsewhere. */
#pragma once

#include "base/base.h"

struct elf_stub {
	unsigned machine;   /* EM_X86_64 or EM_AARCH64 */
	const char *soname; /* "libcuda.so.1" */
	const struct strlist *functions;
	uint16_t answer; /* what every function returns, for whoever runs it after all */
};

/* elf_stub_put: its bytes, appended to `out`. The same request gives the same bytes. ERR_CONFIG for
 * another machine, ERR_INTEGRITY if it would have more than 16 MiB. */
int elf_stub_put(const struct elf_stub *s, struct buf *out, struct err *e) MUST_CHECK;
