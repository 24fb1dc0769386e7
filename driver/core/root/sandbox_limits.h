/* What a program in the sandbox may take of the machine, watched while it runs. */
#pragma once
#include "base/sys/proc.h"
#include "core/root/sandbox.h"

/* sandbox_limits: run->limits with its defaults filled in. */
struct run_limits sandbox_limits(const struct run *run);

struct sandbox_watch {
	const struct sandbox *sandbox;
	struct run_limits limits, asked;
	bool off;
	struct proc_spec caller; /* its own line and tick functions */
	double started, said, slow_at, disk_at, caller_at;
	uint64_t output;
	uint64_t free_before, keep_free; /* bytes of the disk */
	char words[512];                 /* the last message of bubblewrap */
};

/* sandbox_watch_begin: puts the watch's functions into `spec`, which call the caller's; a limit
 * that is passed stops the program with ERR_BUILD and the option that raises it.
 * sandbox_watch_end: puts the caller's back. */
void sandbox_watch_begin(struct sandbox_watch *w, const struct sandbox *s, const struct run *run,
			 struct proc_spec *spec);
void sandbox_watch_end(const struct sandbox_watch *w, struct proc_spec *spec);
