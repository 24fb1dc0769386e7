/* There is no Landlock on macOS. */
#include "core/root/landlock_init.h"

const unsigned char landlock_init_program[1] = {0};
const size_t landlock_init_program_size = 0;

int landlock_init(char *const *words)
{
	(void)words;
	return 126;
}

int landlock_version(void)
{
	return 0;
}
