/* The parts of proc that only proc*.c share. */
#pragma once
#include "base/sys/proc.h"

/* proc_spawn: starts `path` with the three descriptors as its standard ones and spec->fds behind
 * them, in a process group of its own under a keeper; *ret is the keeper's number and the group's.
 * Reports what failed in the child before exec. */
int proc_spawn(const struct proc_spec *spec, const char *path, int in, int out, int err, pid_t *ret,
	       struct err *e) MUST_CHECK;

/* The keeper: a process between this program and the one it runs. It adopts every orphan below it
 * and kills all of them when this program dies or sends it PROC_KEEPER_KILL. (A death signal alone
 * does not reach grandchildren: bubblewrap's child would wait for ever.) It ends as the program
 * ends. */
#define PROC_KEEPER_KILL SIGUSR1
/* proc_keeper_start: in the new child, before it forks the program; -1 when it cannot keep (errno)
 * or `parent` is gone. */
int proc_keeper_start(pid_t parent);
/* proc_keeper_run: afterwards, with all signals blocked. `alone`: of proc_spec. */
_Noreturn void proc_keeper_run(pid_t program, bool alone);
/* proc_keeper_end: ends as the program did, by exit status or signal. */
_Noreturn void proc_keeper_end(int status);
