/* macOS has no subreaper and no death signal: the keeper watches its
 * parent with a kqueue, and kills the group, all that was started in it. */
#include <signal.h>
#include <sys/event.h>
#include <sys/wait.h>

#include "base/sys/proc_internal.h"

int proc_keeper_start(pid_t parent)
{
	return getppid() == parent ? 0 : -1;
}

static void close_all(void)
{
	for (int fd = getdtablesize(); fd-- > 0;)
		(void)close(fd);
}

static _Noreturn void kill_all(void)
{
	(void)kill(0, SIGKILL);
	_exit(1);
}

_Noreturn void proc_keeper_run(pid_t program, bool alone)
{
	pid_t parent = getppid();

	(void)alone; /* the caller kills the group; nothing reports further processes */
	close_all();
	int queue = kqueue();
	struct kevent wanted[3];
	EV_SET(&wanted[0], SIGCHLD, EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
	EV_SET(&wanted[1], PROC_KEEPER_KILL, EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
	EV_SET(&wanted[2], (uintptr_t)parent, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
	if (queue < 0 || kevent(queue, wanted, 3, NULL, 0, NULL) != 0 || getppid() != parent)
		kill_all();
	for (;;) {
		struct kevent got;
		int status;
		pid_t gone;
		while ((gone = waitpid(-1, &status, WNOHANG)) > 0)
			if (gone == program)
				proc_keeper_end(status);
		int n = kevent(queue, NULL, 0, &got, 1, NULL);
		if (n < 0 && errno != EINTR)
			kill_all();
		if (n > 0 && (got.filter == EVFILT_PROC || got.ident == PROC_KEEPER_KILL))
			kill_all();
	}
}
