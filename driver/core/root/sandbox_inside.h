/* The second wall, put up inside the sandbox: the kernel's Landlock. It forbids mounts, so nothing
 * before bubblewrap's last one can put it up: a small program of ptbuild's does, which then becomes
 * the build's. It is linked statically, since the root may have another C library. */
#pragma once
#include <stddef.h>

/* Where the sandbox shows it. */
#define SANDBOX_INSIDE "/ptbuild/inside"

/* What it writes to a descriptor when it cannot go on. */
struct sandbox_inside_failure {
	enum { SANDBOX_INSIDE_WALL = 1, SANDBOX_INSIDE_EXEC } what;
	int error; /* errno */
};

/* The program's bytes; its main is sandbox_inside. */
extern const unsigned char sandbox_inside_program[];
extern const size_t sandbox_inside_program_size;

/* sandbox_inside: words are a descriptor, then "rw" or "dev" with a path each, "--", and a command
 * line. Everything may be read and executed; below "rw" all but devices may be made and changed,
 * below "dev" files that are there may be written; no mount can be changed. Processes that do not
 * descend from this one get no signals and are not read. Becomes the command; returns an exit
 * status when it cannot, with a sandbox_inside_failure in the descriptor. */
int sandbox_inside(char *const *words);
/* sandbox_landlock: the version of the kernel's Landlock; 0: none, or too old for what compilers
 * do. */
int sandbox_landlock(void);
