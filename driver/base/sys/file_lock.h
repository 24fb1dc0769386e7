/* Lock files: flock(2) on a file, so a lock dies with its owner. */
#pragma once

#include "base/base.h"

struct lock {
	int fd; /* -1: not held */
};

#define LOCK_NONE ((struct lock){.fd = -1})

/* lock_acquire: locks `path`, which it creates. Waits until the lock is free or run is cancelled,
 * and logs the owner once; a free lock is acquired even then, for cleaning up. A lock file that is
 * removed or replaced meanwhile is opened again. The file holds the process ID of its last
 * owner. */
int lock_acquire(struct lock *l, const char *path, bool shared, const struct run *run,
		 struct err *e) MUST_CHECK;
/* lock_try: like lock_acquire without waiting; *ret_got is false if another process holds it. */
int lock_try(struct lock *l, const char *path, bool shared, bool *ret_got,
	     struct err *e) MUST_CHECK;
void lock_release(struct lock *l);
/* lock_drop: releases an exclusive lock and removes its file, which the next owner creates again:
 * in directories that a user looks at or serves. */
void lock_drop(struct lock *l, const char *path);

#define AUTO_LOCK CLEANUP(lock_release)
