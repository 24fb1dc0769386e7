/* Cleanup attributes: a handle is released where its scope ends, so no function needs a ladder of
 * labels. And what all files have of the C library. */
#pragma once
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

/* What a scope ends with may be a call's errno, which the caller reads: these three leave it
 * alone. */
static inline void cleanup_fd(const int *fd)
{
	int saved = errno;
	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void cleanup_file(FILE **f)
{
	int saved = errno;
	if (*f)
		fclose(*f);
	errno = saved;
}

static inline void cleanup_dir(DIR **d)
{
	int saved = errno;
	if (*d)
		closedir(*d);
	errno = saved;
}

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define AUTO_FREE CLEANUP(cleanup_free)
#define AUTO_FD CLEANUP(cleanup_fd)
#define AUTO_FILE CLEANUP(cleanup_file)
#define AUTO_DIR CLEANUP(cleanup_dir)
#define MUST_CHECK __attribute__((warn_unused_result))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* steal_fd: hands the descriptor out of its cleanup scope. */
static inline int steal_fd(int *fd)
{
	int v = *fd;
	*fd = -1;
	return v;
}
