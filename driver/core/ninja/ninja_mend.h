/* ninja's own files, cut back to what is whole after a kill or a loss of power (pure). */
#pragma once
#include <stddef.h>

/* ninja_mend_log: how much of a .ninja_log is whole lines without a NUL byte, which a file system
 * leaves where data was lost. ninja would join a torn last line with the next that it writes. */
size_t ninja_mend_log(const char *text, size_t len);
/* ninja_mend_deps: how much of a .ninja_deps (version 4, ninja 1.10 to 1.13) is whole records with
 * numbers that can be. Any other file is left to ninja: `len`. */
size_t ninja_mend_deps(const char *data, size_t len);
