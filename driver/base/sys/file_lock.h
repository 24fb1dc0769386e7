/* Lock files: flock(2) on a file, so a lock dies with its owner. */
#pragma once

#include "base/base.h"

struct lock {
	int fd; /* -1: not held */
};

#define LOCK_NONE ((struct lock){.fd = -1})

/* lock_acquire: a lock on `path` (created). Waits, and logs once who holds it, until it has it or
 * run is cancelled; a free lock is taken even then, for those who clean up. A lock file that is
 * removed or replaced meanwhile is opened anew. The file holds the number of the last process that
 * got it. */
int lock_acquire(struct lock *l, const char *path, bool shared, const struct run *run, struct err *e) MUST_CHECK;
/* lock_try: as lock_acquire without waiting; *ret_got false when somebody holds it. */
int lock_try(struct lock *l, const char *path, bool shared, bool *ret_got, struct err *e) MUST_CHECK;
void lock_release(struct lock *l);

#define AUTO_LOCK CLEANUP(lock_release)
