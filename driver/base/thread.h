#pragma once
#include <pthread.h>

/* thread_start: pthread_create with every signal blocked in the new thread, since signals belong to
 * the main one. 0, or the errno of the failure. */
int thread_start(pthread_t *ret, void *(*run)(void *), void *user);
