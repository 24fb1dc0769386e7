/* What ninja keeps about a build, cut back to what is whole after a kill or a loss of power
 * (pure). */
#pragma once
#include <stddef.h>

/* ninja_mend_log: how much of a .ninja_log is whole lines without a NUL byte, which a file
 * system leaves where data was lost. A torn last line would be joined with the next one that
 * ninja writes. */
size_t ninja_mend_log(const char *text, size_t len);
/* ninja_mend_deps: how much of a .ninja_deps (version 4, ninja 1.10 to 1.13) is whole records:
 * sizes in bounds, numbers of paths in their order, no number of a path that is not there. A file
 * of another version, or that is none, is left to ninja: `len`. */
size_t ninja_mend_deps(const char *data, size_t len);
