/* There is no Landlock on macOS. */
#include "core/root/sandbox_inside.h"

const unsigned char sandbox_inside_program[1] = {0};
const size_t sandbox_inside_program_size = 0;

int sandbox_inside(char *const *words)
{
	(void)words;
	return 126;
}

int sandbox_landlock(void)
{
	return 0;
}
