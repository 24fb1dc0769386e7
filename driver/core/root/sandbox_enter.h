/* Child setup before exec: its user, its keyring, its limits. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/root/sandbox.h"

/* In memory that the child shares, so that it can say what failed. */
struct sandbox_entry {
	bool keyring;  /* joins a new session keyring */
	int oom_score; /* oom_score_adj is at least this; 0: as it is */
	/* resource limits; 0: as they are */
	uint64_t tasks, data, file;
	/* 0: nobody's. Else the user that root becomes; it can reach the sources only as `places`
	 * below SANDBOX_STAGE, where they are mounted for it. */
	uid_t user;
	bool privileged; /* bubblewrap starts as if it were setuid */
	size_t count;
	const char *const *sources;
	const char *const *places;
	const bool *mapped; /* ptbuild's own, which the user reads as root would */
	int *fds;
	const char *failed; /* what could not be done */
	int error;
	size_t at; /* with which source */
};

#define SANDBOX_STAGE "/tmp"

/* sandbox_enter: for proc_spec.enter. */
int sandbox_enter(void *entry);
/* sandbox_way: tried once, with the user that bubblewrap runs as. `setuid`: it is setuid root. */
enum sandbox_way sandbox_way(uid_t user, bool setuid);
