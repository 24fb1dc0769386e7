/* macOS. Written against its manual pages and compiled for it; it has not run yet. */
#include <mach-o/dyld.h>
#include <math.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <time.h>

#include "base/os.h"

/* A handler can reach nothing but a variable of the file. */
static int stop_end = -1;

static void on_stop(int sig)
{
	int saved = errno;

	(void)sig;
	(void)!write(stop_end, "", 1);
	errno = saved;
}

int os_open_cancel(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction a = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
	int ends[2];

	if (os_pipe(ends) < 0)
		return -1;
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
	stop_end = ends[1];
	sigemptyset(&a.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (sigaction(signals[i], &a, NULL) < 0)
			return -1;
	return ends[0];
}

int os_program_path(char *ret, size_t size)
{
	uint32_t room = (uint32_t)size;

	if (_NSGetExecutablePath(ret, &room) == 0)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

int os_random(void *data, size_t len)
{
	return getentropy(data, len);
}

/* Without setlocale(3), which is never called, these are constant strings. */
const char *os_errno_text(int number)
{
	return number >= 0 && number < sys_nerr ? sys_errlist[number] : "unknown error";
}

int os_pipe(int ends[2])
{
	if (pipe(ends) < 0)
		return -1;
	(void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	(void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	return 0;
}

int os_memory_file(void)
{
	char path[] = "/tmp/ptbuild-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

ssize_t os_copy(int in, off_t *in_at, int out, size_t len)
{
	(void)in;
	(void)in_at;
	(void)out;
	(void)len;
	errno = ENOSYS;
	return -1;
}

int os_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
	return renameatx_np(from_dir, from, to_dir, to, RENAME_EXCL);
}

int os_rename_swap(const char *from, const char *to)
{
	return renameatx_np(AT_FDCWD, from, AT_FDCWD, to, RENAME_SWAP);
}

int os_open_beneath(int dir, const char *path, int flags)
{
	(void)dir;
	(void)path;
	(void)flags;
	errno = ENOSYS;
	return -1;
}

void os_will_read(int fd)
{
	(void)fcntl(fd, F_RDAHEAD, 1);
}

void os_begin_writing(int fd, off_t at, off_t len)
{
	(void)fd;
	(void)at;
	(void)len;
}

int os_chmod_beside(int dir, const char *name, mode_t mode)
{
	return fchmodat(dir, name, mode, AT_SYMLINK_NOFOLLOW);
}

int os_sync_disk(int fd)
{
	(void)fd;
	sync();
	return 0;
}

int os_process_fd(pid_t pid)
{
	(void)pid;
	return -1;
}

int os_die_with_parent(void)
{
	return 0;
}

int os_close_on_exec_from(int first)
{
	(void)first;
	return -1;
}

int os_user_outside(uid_t user, uid_t *ret)
{
	*ret = user;
	return 0;
}

static uint64_t number_of(const char *name)
{
	uint64_t n = 0;
	size_t len = sizeof(n);
	return sysctlbyname(name, &n, &len, NULL, 0) == 0 && len <= sizeof(n) ? n : 0;
}

unsigned os_processors(void)
{
	uint64_t n = number_of("hw.activecpu");
	return n > 0 ? (unsigned)n : 1;
}

unsigned os_list_processors(unsigned *ret, unsigned max)
{
	(void)ret;
	(void)max;
	return 0;
}

uint64_t os_memory(void)
{
	uint64_t n = number_of("hw.memsize");
	return n > 0 ? n : UINT64_MAX;
}

void os_cond_init(pthread_cond_t *c)
{
	pthread_cond_init(c, NULL);
}

void os_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, double seconds)
{
	double whole = floor(seconds);
	const struct timespec left = {.tv_sec = (time_t)whole,
				      .tv_nsec = (long)((seconds - whole) * 1e9)};

	pthread_cond_timedwait_relative_np(c, m, &left);
}

void os_boot_id(char *ret, size_t size)
{
	ret[0] = '\0';
	if (sysctlbyname("kern.bootsessionuuid", ret, &size, NULL, 0) < 0)
		ret[0] = '\0';
}
