#include "base/run.h"

#include <signal.h>
#include <stdatomic.h>

enum { MAX_THREADS = 63 };

int thread_start(pthread_t *ret, void *(*run)(void *), void *user)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(ret, NULL, run, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

struct each {
	void (*work)(unsigned i, void *user);
	void *user;
	unsigned count;
	_Atomic unsigned next;
};

static void *work_on(void *arg)
{
	struct each *p = arg;
	for (unsigned i; (i = atomic_fetch_add(&p->next, 1)) < p->count;)
		p->work(i, p->user);
	return NULL;
}

void thread_each(unsigned count, void (*work)(unsigned i, void *user), void *user)
{
	struct each p = {.work = work, .user = user, .count = count};
	pthread_t ids[MAX_THREADS];
	unsigned started = 0;
	/* The caller is one of them. */
	while (started < MAX_THREADS && started + 1 < count && thread_start(&ids[started], work_on, &p) == 0)
		started++;
	(void)work_on(&p);
	while (started > 0)
		pthread_join(ids[--started], NULL);
}
