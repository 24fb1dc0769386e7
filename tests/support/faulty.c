/* A preloaded library that makes the calls of a program fail, for tests/e2e/faults.py. Variables of
 * the environment say how; the children of the program do not get them.
 *
 * FAULTY_CALLS   names of calls, with commas: read write sync rename make open copy map close flush
 *                look
 * FAULTY_UNDER   directories, with colons: only files below them count
 * FAULTY_AT      the number of the call that fails, from one, over all threads; 0: none
 * FAULTY_FOR     how many fail from there on; 0: all
 * FAULTY_ERRNO   what they fail with; 0: reads and writes are short instead, which is no error
 * FAULTY_COUNT   a file that gets the number of calls at the end
 * FAULTY_CLOCK   a seed: the time of day jumps by up to ten years, forwards and backwards, each few
 *                calls */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *calls, *under, *count_file;
static long fail_at, fail_for, fail_errno;
static uint64_t clock_seed;
static atomic_long counted, asked_time;
static bool ended;

static long number(const char *name)
{
	const char *v = getenv(name);
	return v ? strtol(v, NULL, 10) : 0;
}

static const char *kept(const char *name)
{
	const char *v = getenv(name);
	return v && *v ? strdup(v) : NULL;
}

__attribute__((constructor)) static void begin(void)
{
	under = kept("FAULTY_UNDER");
	count_file = kept("FAULTY_COUNT");
	fail_at = number("FAULTY_AT");
	fail_for = number("FAULTY_FOR");
	fail_errno = number("FAULTY_ERRNO");
	clock_seed = (uint64_t)number("FAULTY_CLOCK");
	unsetenv("LD_PRELOAD");
	calls = kept("FAULTY_CALLS");
}

__attribute__((destructor)) static void end(void)
{
	char text[32];

	ended = true;
	int fd = count_file ? open(count_file, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
	if (fd >= 0 &&
	    write(fd, text, (size_t)snprintf(text, sizeof(text), "%ld\n", atomic_load(&counted))) <
		    0)
		perror(count_file);
}

/* The next definition of the function that this one stands for. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static bool listed(const char *call)
{
	size_t n = strlen(call);

	for (const char *p = calls; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strncmp(p, call, n) == 0 && (p[n] == ',' || !p[n]))
			return true;
	return false;
}

static bool is_under(const char *path)
{
	for (const char *p = under; p && *p;) {
		size_t n = strcspn(p, ":");
		if (strncmp(path, p, n) == 0 && (path[n] == '/' || !path[n]))
			return true;
		p += n + (p[n] == ':');
	}

	return false;
}

static bool fd_is_under(int fd)
{
	char link[40], path[4096];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return is_under(path);
}

/* Whether this is one of the calls that fail. */
static bool due(const char *call, int fd, const char *path)
{
	int saved = errno;
	char whole[8192];

	if (ended || !listed(call))
		return false;
	if (path && *path != '/') { /* relative to a directory that is open */
		char link[40];
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t n = fd >= 0 ? readlink(link, whole, 4096) : -1;
		snprintf(whole + (n > 0 ? n : 0), sizeof(whole) - 4096, "/%s", path);
		path = whole;
	}

	bool ours = path ? is_under(path) : fd_is_under(fd);
	errno = saved;
	if (!ours)
		return false;
	long n = atomic_fetch_add(&counted, 1) + 1;
	return fail_at && n >= fail_at && (!fail_for || n < fail_at + fail_for);
}

static bool fails(const char *call, int fd, const char *path)
{
	if (!due(call, fd, path) || fail_errno == 0)
		return false;
	errno = (int)fail_errno;
	return true;
}

/* How many of `len` bytes are moved: all; fewer when
 * calls are cut short; -1 with errno when they fail. */
static ssize_t room(const char *call, int fd, size_t len)
{
	if (!due(call, fd, NULL))
		return (ssize_t)len;
	if (fail_errno == 0)
		return (ssize_t)(len > 1 ? len / 2 : len);
	errno = (int)fail_errno;
	return -1;
}

#define MOVE(name, call, params, args)                                                             \
	ssize_t name params                                                                        \
	{                                                                                          \
		ssize_t n = room(call, fd, len);                                                   \
		if (n < 0)                                                                         \
			return -1;                                                                 \
		len = (size_t)n;                                                                   \
		return NEXT(name) args;                                                            \
	}

MOVE(read, "read", (int fd, void *data, size_t len), (fd, data, len))
MOVE(pread, "read", (int fd, void *data, size_t len, off_t at), (fd, data, len, at))
MOVE(pread64, "read", (int fd, void *data, size_t len, off64_t at), (fd, data, len, at))
MOVE(write, "write", (int fd, const void *data, size_t len), (fd, data, len))
MOVE(pwrite, "write", (int fd, const void *data, size_t len, off_t at), (fd, data, len, at))
MOVE(pwrite64, "write", (int fd, const void *data, size_t len, off64_t at), (fd, data, len, at))

/* A vector is cut to its first part. */
#define MOVE_VECTOR(name, call, params, args)                                                      \
	ssize_t name params                                                                        \
	{                                                                                          \
		ssize_t n = room(call, fd, 2);                                                     \
		if (n < 0)                                                                         \
			return -1;                                                                 \
		if (n < 2 && count > 1)                                                            \
			count = 1;                                                                 \
		return NEXT(name) args;                                                            \
	}

MOVE_VECTOR(readv, "read", (int fd, const struct iovec *v, int count), (fd, v, count))
MOVE_VECTOR(writev, "write", (int fd, const struct iovec *v, int count), (fd, v, count))

#define FAIL(type, bad, name, call, fd, path, params, args)                                        \
	type name params                                                                           \
	{                                                                                          \
		return fails(call, fd, path) ? (bad) : NEXT(name) args;                            \
	}

FAIL(int, -1, fsync, "sync", fd, NULL, (int fd), (fd))
FAIL(int, -1, fdatasync, "sync", fd, NULL, (int fd), (fd))
FAIL(int, -1, ftruncate, "write", fd, NULL, (int fd, off_t len), (fd, len))
FAIL(int, -1, ftruncate64, "write", fd, NULL, (int fd, off64_t len), (fd, len))
FAIL(int, -1, rename, "rename", AT_FDCWD, to, (const char *from, const char *to), (from, to))
FAIL(int, -1, renameat, "rename", at, to, (int from_at, const char *from, int at, const char *to),
     (from_at, from, at, to))
FAIL(int, -1, mkdir, "make", AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
FAIL(int, -1, mkdirat, "make", at, path, (int at, const char *path, mode_t mode), (at, path, mode))
FAIL(char *, NULL, mkdtemp, "make", AT_FDCWD, path, (char *path), (path))
FAIL(int, -1, mkostemp, "make", AT_FDCWD, path, (char *path, int flags), (path, flags))
FAIL(int, -1, symlink, "make", AT_FDCWD, path, (const char *target, const char *path),
     (target, path))
FAIL(int, -1, symlinkat, "make", at, path, (const char *target, int at, const char *path),
     (target, at, path))
FAIL(int, -1, link, "make", AT_FDCWD, path, (const char *from, const char *path), (from, path))
FAIL(int, -1, stat, "look", AT_FDCWD, path, (const char *path, struct stat *st), (path, st))
FAIL(int, -1, lstat, "look", AT_FDCWD, path, (const char *path, struct stat *st), (path, st))
FAIL(int, -1, fstatat, "look", at, path, (int at, const char *path, struct stat *st, int flags),
     (at, path, st, flags))
FAIL(ssize_t, -1, copy_file_range, "copy", out, NULL,
     (int in, off64_t *in_at, int out, off64_t *out_at, size_t len, unsigned flags),
     (in, in_at, out, out_at, len, flags))
FAIL(void *, MAP_FAILED, mmap, "map", fd, NULL,
     (void *addr, size_t len, int prot, int flags, int fd, off_t at),
     (addr, len, prot, flags, fd, at))
FAIL(void *, MAP_FAILED, mmap64, "map", fd, NULL,
     (void *addr, size_t len, int prot, int flags, int fd, off64_t at),
     (addr, len, prot, flags, fd, at))

/* A file that cannot be closed well is closed all the same.
 * "flush": of those alone that were open for writing. */
int close(int fd)
{
	const int flags = listed("flush") ? fcntl(fd, F_GETFL) : -1;
	bool bad = fails("close", fd, NULL) ||
		   (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fails("flush", fd, NULL));
	int saved = errno, rc = NEXT(close)(fd);

	if (bad) {
		errno = saved;
		return -1;
	}

	return rc;
}

#define OPEN(name, at, params, args)                                                               \
	int name params                                                                            \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
		if (flags & (O_CREAT | __O_TMPFILE)) {                                             \
			va_list ap;                                                                \
			va_start(ap, flags);                                                       \
			mode = va_arg(ap, mode_t);                                                 \
			va_end(ap);                                                                \
		}                                                                                  \
		return fails((flags & O_CREAT) ? "make" : "open", at, path) ? -1                   \
									    : NEXT(name) args;     \
	}

OPEN(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, dir, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, dir, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

/* Another jump each eighth time that somebody asks. */
static int64_t jump(void)
{
	uint64_t x = clock_seed + (uint64_t)(atomic_fetch_add(&asked_time, 1) / 8);

	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
	return (int64_t)((x >> 32) % 630720000) - 315360000;
}

/* Not the next definition: AddressSanitizer of GCC 14 asks
 * for the time while it frees, and dlsym() frees as well. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	long rc = syscall(SYS_clock_gettime, clock, ts);

	if (clock_seed && rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ts->tv_sec += jump();
	return (int)rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*tv = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
