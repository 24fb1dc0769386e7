#pragma once
#include <pthread.h>

/* thread_start: pthread_create with every signal blocked in the new thread, since signals belong to
 * the main one. 0, or the errno of the failure. */
int thread_start(pthread_t *ret, void *(*run)(void *), void *user);
/* thread_each: work(i, user) for each i below `count`, several at once in as many threads (at most
 * 64), in this one alone where none can be started; returns when all have ended. */
void thread_each(unsigned count, void (*work)(unsigned i, void *user), void *user);
