#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, void *(*run)(void *), void *user)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(ret, NULL, run, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}
