/* What stands between a build and the machine, each wall by a name of its own. */
#pragma once

#include "core/root/sandbox.h"

enum sandbox_wall {
	WALL_USER,     /* never user 0 of the machine */
	WALL_SECCOMP,  /* the system calls of seccomp.h */
	WALL_KEYRING,  /* a session keyring of its own */
	WALL_PROC,     /* /proc and /dev read-only */
	WALL_SETUID,   /* no setuid file of a build stays */
	WALL_LIMITS,   /* processes, memory, disk, output, time */
	WALL_LANDLOCK, /* the kernel's own list of what may be written: landlock_init.h */
	WALL_PACKAGES, /* libraries in the wheel are from the root's packages */
	SANDBOX_WALLS
};

/* sandbox_wall: whether it is to stand: the user did not take it away. */
bool sandbox_wall(const struct run *run, enum sandbox_wall wall);
/* sandbox_walls_parse: names to bits; ERR_USAGE lists the names. */
int sandbox_walls_parse(const struct strlist *names, unsigned *ret, struct err *e) MUST_CHECK;
/* sandbox_text: what keys and records say: "bubblewrap", "bubblewrap without seccomp", "none". */
const char *sandbox_text(enum sandbox_kind kind, unsigned without, struct arena *a);

struct sandbox_wall_state {
	const char *name;
	bool stands;
	const char *text; /* what it is, or why it does not stand */
};

/* sandbox_walls_look: each wall on this machine; bubblewrap's own come first. */
size_t sandbox_walls_look(enum sandbox_kind kind, const struct run *run, struct arena *a,
			  const struct sandbox_wall_state **ret);
/* sandbox_walls_json: the same as an object of names and states (new reference). */
json_t *sandbox_walls_json(enum sandbox_kind kind, const struct run *run);
