/* The program that sets up Landlock inside the sandbox; ptbuild carries it. */
#include "core/root/landlock_init.h"

int main(int argc, char **argv)
{
	return argc > 1 ? landlock_init(argv + 1) : 126;
}
