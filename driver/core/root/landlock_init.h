/* The second protection, set up inside the sandbox: the kernel's Landlock. It forbids mounts, so
 * nothing before bubblewrap's last mount can set it up: a small program of ptbuild's does, which
 * then becomes the build's. It is linked statically, since the root may have another C library. */
#pragma once
#include <stddef.h>

/* Where the sandbox shows it. */
#define LANDLOCK_INIT "/ptbuild/inside"

/* What it writes to a descriptor when it cannot go on. */
struct landlock_init_failure {
	enum { LANDLOCK_INIT_RULES = 1, LANDLOCK_INIT_EXEC } what;
	int error; /* errno */
};

/* The program's bytes; its main is landlock_init. */
extern const unsigned char landlock_init_program[];
extern const size_t landlock_init_program_size;

/* landlock_init: words are a descriptor, then "rw" or "dev" with a path each, "--", and a command
 * line. Everything may be read and executed; below "rw" all but devices may be made and changed,
 * below "dev" files that are there may be written; no mount can be changed. Processes that do not
 * descend from this one get no signals and are not read. Becomes the command; returns an exit
 * status when it cannot, with a landlock_init_failure in the descriptor. */
int landlock_init(char *const *words);
/* landlock_version: the version of the kernel's Landlock; 0: none, or too old for what compilers
 * do. */
int landlock_version(void);
