/* Build logs: finds what went wrong in the output of compilers, linkers, CMake and ninja. */
#pragma once
#include "base/arena.h"

struct build_log {
	/* the first line that says what went wrong, of the first unit that failed if there is one;
	 * cut at 500 bytes; "" for an empty log */
	const char *error;
	const char *unit; /* the first output that ninja says has failed, NULL */
	/* the first line that says that memory ran out or a compiler was killed, NULL */
	const char *killed;
};

/* build_log_killed: the first line that says that a signal ended a program, in any of the logs that
 * CMake keeps of its checks too; NULL. */
const char *build_log_killed(const char *text, struct arena *a);
/* build_log_read: reads the output of one command (pure); `text` ends with a NUL at text[len]. */
void build_log_read(const char *text, size_t len, struct arena *a, struct build_log *ret);
