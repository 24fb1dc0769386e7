#include "base/sys/file_lock.h"

#include <poll.h>
#include <sys/file.h>

#define RETRY_MS 100 /* flock cannot wait for a lock and for a cancellation at once */

static int open_file(const char *path, bool shared, struct err *e)
{
	int flags = O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
	int fd = open(path, O_RDWR | O_CREAT | flags, 0666);

	/* A reader of a store that it may not write can still share a lock that is there. */
	if (fd < 0 && shared && (errno == EACCES || errno == EROFS))
		fd = open(path, O_RDONLY | flags);
	struct stat st;
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1)) {
		close(fd);
		fd = -1;
		errno = ELOOP;
	}

	if (fd < 0 && errno == ELOOP) {
		err_set(e, ERR_POLICY, "lock file '%s' is a link or not a regular file", path);
		return err_hint(e, "remove it: ptbuild writes to lock files, and a link would "
				   "redirect the write");
	}

	return fd < 0 ? err_errno(e, ERR_SYSTEM, "cannot open lock '%s'", path) : fd;
}

/* A lock on a file that was removed or replaced meanwhile protects nothing. */
static bool is_current(int fd, const char *path)
{
	struct stat a, b;
	return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static long read_holder(const char *path)
{
	char text[24];
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

int lock_try(struct lock *l, const char *path, bool shared, bool *ret_got, struct err *e)
{
	for (;;) {
		AUTO_FD int fd = open_file(path, shared, e);
		if (fd < 0)
			return -1;
		int rc;
		do {
			rc = flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
		} while (rc < 0 && errno == EINTR);
		if (rc < 0 && errno == EWOULDBLOCK) {
			*ret_got = false;
			return 0;
		}

		if (rc < 0)
			return err_errno(e, ERR_SYSTEM, "cannot lock '%s'", path);
		if (!is_current(fd, path))
			continue;
		/* Only for the message of those who wait, so failures do not matter. */
		char text[24];
		int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
		if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) != n)
			(void)!ftruncate(fd, 0);
		l->fd = steal_fd(&fd);
		*ret_got = true;
		return 0;
	}
}

int lock_acquire(struct lock *l, const char *path, bool shared, const struct run *run,
		 struct err *e)
{
	for (bool said = false;; said = true) {
		bool got = false;
		if (lock_try(l, path, shared, &got, e) < 0)
			return -1;
		if (got)
			return 0;
		if (run_check(run, e) < 0)
			return -1;
		long holder = said ? 0 : read_holder(path);
		if (holder > 0)
			log_info(run->log, "waiting for '%s', held by process %ld", path, holder);
		else if (!said)
			log_info(run->log, "waiting for '%s', held by another process", path);
		struct pollfd p = {.fd = run->cancel_fd, .events = POLLIN};
		(void)poll(&p, 1, RETRY_MS);
	}
}

void lock_drop(struct lock *l, const char *path)
{
	if (l->fd >= 0)
		(void)!unlink(path);
	lock_release(l);
}

void lock_release(struct lock *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
