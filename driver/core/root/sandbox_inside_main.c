/* The program that puts up a wall inside the sandbox; ptbuild carries it. */
#include "core/root/sandbox_inside.h"

int main(int argc, char **argv)
{
	return argc > 1 ? sandbox_inside(argv + 1) : 126;
}
