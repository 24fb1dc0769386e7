/* Words of a command line that a person pastes into a shell. */
#pragma once
#include "base/arena.h"

/* shell_quoted: the word as a POSIX shell reads it back as one, itself where nothing needs
 * quoting. */
const char *shell_quoted(const char *word, struct arena *a);
