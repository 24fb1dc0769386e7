#include <limits.h>
#include <linux/openat2.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/calls_linux.h"
#include "base/os.h"

int os_open_cancel(void)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGHUP);
	return sigprocmask(SIG_BLOCK, &stop, NULL) < 0
		       ? -1
		       : signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
}

int os_program_path(char *ret, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);

	if (n < 0)
		return -1;
	ret[n] = '\0';
	return 0;
}

int os_random(void *data, size_t len)
{
	return getrandom(data, len, 0) == (ssize_t)len ? 0 : -1;
}

const char *os_errno_text(int number)
{
	const char *text = strerrordesc_np(number);
	return text ? text : "unknown error";
}

int os_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC);
}

int os_memory_file(void)
{
	return memfd_create("ptbuild", MFD_CLOEXEC);
}

ssize_t os_copy(int in, off_t *in_at, int out, size_t len)
{
	return copy_file_range(in, in_at, out, NULL, len, 0);
}

int os_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
	return renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE);
}

int os_rename_swap(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
}

int os_open_beneath(int dir, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

void os_will_read(int fd)
{
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

void os_begin_writing(int fd, off_t at, off_t len)
{
	(void)sync_file_range(fd, at, len, SYNC_FILE_RANGE_WRITE);
}

/* Like glibc since 2.32: the system call itself has no flags. */
int os_chmod_beside(int dir, const char *name, mode_t mode)
{
	char path[64];
	struct stat st;
	AUTO_FD int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		errno = EOPNOTSUPP;
		return -1;
	}

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode);
}

int os_sync_disk(int fd)
{
	return syncfs(fd);
}

int os_process_fd(pid_t pid)
{
	return pidfd_open(pid, 0);
}

int os_die_with_parent(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int os_close_on_exec_from(int first)
{
	return close_range((unsigned)first, ~0U, CLOSE_RANGE_CLOEXEC);
}

int os_user_outside(uid_t user, uid_t *ret)
{
	unsigned long inside, outside, count;
	AUTO_FILE FILE *f = fopen("/proc/self/uid_map", "re");

	while (f && fscanf(f, "%lu %lu %lu", &inside, &outside, &count) == 3) {
		if (user < inside || user - inside >= count)
			continue;
		*ret = (uid_t)(outside + (user - inside));
		return 0;
	}

	return -1;
}

unsigned os_processors(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
							     : (int)sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

unsigned os_list_processors(unsigned *ret, unsigned max)
{
	cpu_set_t set;
	unsigned n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	for (unsigned i = 0; i < CPU_SETSIZE && n < max; i++)
		if (CPU_ISSET(i, &set))
			ret[n++] = i;
	return n;
}

uint64_t os_memory(void)
{
	return UINT64_MAX;
}

void os_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

void os_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, double seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	double whole = floor(seconds);
	until.tv_sec += (time_t)whole;
	until.tv_nsec += (long)((seconds - whole) * 1e9);
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}

	pthread_cond_timedwait(c, m, &until);
}

void os_boot_id(char *ret, size_t size)
{
	AUTO_FILE FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	ret[0] = '\0';
	if (f && fgets(ret, (int)size, f))
		ret[strcspn(ret, "\n")] = '\0';
}
