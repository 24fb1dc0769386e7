/* What the files of the sandbox share: child setup before exec (sandbox_enter_*.c), and what a
 * program may take of the machine, watched while it runs (sandbox_limits.c). */
#pragma once
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
	/* of an emulated root (emulation.h); emulator NULL: none */
	const char *emulator, *emulator_dir, *row;
	const char *root, *layer; /* layer NULL: none */
	bool emulating;           /* what failed belongs to that */
	const char *failed;       /* what could not be done */
	int error;
	size_t at; /* with which source */
};

#define SANDBOX_STAGE "/tmp"
#define SANDBOX_BINFMT "binfmt" /* directory of it where binfmt_misc is mounted */
/* The descriptor that the row of binfmt_misc names as the emulator: no path of the machine is seen
 * by what runs inside. Above those that bubblewrap gets. */
#define SANDBOX_EMULATOR_FD 100

/* sandbox_open_space: opens a user namespace with these maps, as the kernel takes them; -1 with
 * errno. */
int sandbox_open_space(const char *uids, const char *gids);
/* sandbox_show_layer: mounts n->layer over n->root, in a mount namespace of its own. */
int sandbox_show_layer(struct sandbox_entry *n);
/* sandbox_emulator_row: emulation_row with the emulator as that descriptor. */
char *sandbox_emulator_row(const char *platform, struct arena *a);
/* sandbox_open_emulator: gives the emulator its descriptor, while its path can be seen. */
int sandbox_open_emulator(struct sandbox_entry *n);
/* sandbox_emulate: enters a user namespace in which the kernel runs programs of another platform by
 * the emulator; without another user to become with the layer, too. */
int sandbox_emulate(struct sandbox_entry *n);

/* sandbox_enter: for proc_spec.enter. */
int sandbox_enter(void *entry);
/* sandbox_way: tried once, with the user that bubblewrap runs as. `setuid`: it is setuid root. */
enum sandbox_way sandbox_way(uid_t user, bool setuid);

/* sandbox_not_created: the error of a bubblewrap that printed `words` and started nothing, with
 * what to change on this machine or in its container. */
int sandbox_not_created(const char *words, struct err *e);
/* sandbox_hint_container: names what to change in the container; for an error that `e` has. */
int sandbox_hint_container(struct err *e);
/* sandbox_hint_machine: the hint where users may not create user namespaces; returns -1. */
int sandbox_hint_machine(struct err *e);
/* sandbox_filtered: whether a filter of system calls, as a container's, was in force before
 * ptbuild started. */
bool sandbox_filtered(void);

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
	char words[512];                 /* the last message of bubblewrap, else the first line */
};

/* sandbox_watch_begin: puts the watch's functions into `spec`, which call those that are there; a
 * limit that is passed stops the program with ERR_BUILD and the option that raises it. */
void sandbox_watch_begin(struct sandbox_watch *w, const struct sandbox *s, const struct run *run,
			 struct proc_spec *spec);

/* The system calls that a program in the sandbox cannot make, as a seccomp filter. */

/* seccomp_filter: the whole filter as bubblewrap reads it, as a descriptor at its
 * beginning; -1 with ERR_POLICY. */
int seccomp_filter(struct err *e) MUST_CHECK;
/* seccomp_works: whether this kernel supports filters. */
bool seccomp_works(void);
