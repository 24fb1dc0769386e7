#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/calls_linux.h"
#include "base/sys/proc_internal.h"

/* All of this runs in a child of a program with
 * threads: only what is safe between fork and exec. */

#define KILL_TRIES 2000
#define PAUSE_NS 2000000

static void close_all(void)
{
	if (close_range(0, ~0U, 0) == 0)
		return;
	for (int fd = 0; fd < 65536; fd++) /* Linux before 5.9 */
		(void)close(fd);
}

/* Sends SIGKILL to each child named in the list; false when there is no list (a kernel without
 * CONFIG_PROC_CHILDREN). */
static bool kill_children(void)
{
	char text[4096];
	long pid = 0;
	int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	for (ssize_t n; (n = read(fd, text, sizeof(text))) > 0;) {
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}

			if (pid > 1)
				(void)kill((pid_t)pid, SIGKILL);
			pid = 0;
		}
	}

	(void)close(fd);
	return true;
}

/* What a killed process leaves becomes a child of the keeper, and goes next. */
static void kill_below(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (int i = 0; i < KILL_TRIES; i++) {
		pid_t gone;
		if (!kill_children())
			break;
		while ((gone = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (gone < 0 && errno == ECHILD)
			break;
		(void)nanosleep(&pause, NULL);
	}
}

static _Noreturn void kill_all(void)
{
	kill_below();
	(void)kill(0, SIGKILL);
	_exit(1);
}

int proc_keeper_start(pid_t parent)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 &&
			       prctl(PR_SET_PDEATHSIG, PROC_KEEPER_KILL) == 0 && getppid() == parent
		       ? 0
		       : -1;
}

_Noreturn void proc_keeper_run(pid_t program, bool alone)
{
	sigset_t wanted;

	close_all();
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, PROC_KEEPER_KILL);
	for (;;) {
		int status;
		pid_t gone;
		int sig = sigwaitinfo(&wanted, NULL);
		if (sig == PROC_KEEPER_KILL)
			kill_all();
		while ((gone = waitpid(-1, &status, WNOHANG)) > 0) {
			if (gone != program)
				continue;
			if (alone)
				kill_below();
			proc_keeper_end(status);
		}
	}
}
