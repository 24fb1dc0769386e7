/* The namespaces of an emulated root, entered between fork and exec. */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/calls_linux.h"
#include "core/root/sandbox_parts.h"

/* What the kernel takes as one map. */
#define MAP_MAX 4096

static int failed(struct sandbox_entry *n, const char *what)
{
	n->failed = what;
	n->error = errno;
	return -1;
}

static int write_text(const char *path, const char *text)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
	const ssize_t len = (ssize_t)strlen(text);

	return fd >= 0 && write(fd, text, (size_t)len) == len ? 0 : -1;
}

int sandbox_open_space(const char *uids, const char *gids)
{
	char path[64], byte;
	int ends[2], fd = -1, status;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		(void)close(ends[1]);
		_exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
	}

	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	bool done = pid > 0 && write_text(path, uids) == 0;
	snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	done = done && write_text(path, gids) == 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (done)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	(void)close(ends[0]);
	(void)close(ends[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return fd;
}

/* Every user of this namespace as itself. */
static int map_alike(const char *path, char out[MAP_MAX])
{
	char text[MAP_MAX], *at = text, *end;
	size_t len = 0;
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	while (*at) {
		const unsigned long first = strtoul(at, &end, 10);
		(void)strtoul(end, &end, 10); /* its number outside */
		const unsigned long count = strtoul(end, &end, 10);
		if (end == at || count == 0)
			return -1;
		len += (size_t)snprintf(out + len, MAP_MAX - len, "%lu %lu %lu\n", first, first,
					count);
		if (len >= MAP_MAX)
			return -1;
		at = end + strspn(end, " \n");
	}

	return 0;
}

int sandbox_show_layer(struct sandbox_entry *n)
{
	char options[96];
	AUTO_FD int upper = n->layer ? open(n->layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	AUTO_FD int lower = open(n->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!n->layer)
		return 0;
	if (upper < 0 || lower < 0)
		return failed(n, "cannot open the compilers of this machine");
	/* by numbers: no path needs to be quoted, and none is too long */
	snprintf(options, sizeof(options), "userxattr,lowerdir=/proc/self/fd/%d:/proc/self/fd/%d",
		 upper, lower);
	return mount("overlay", n->root, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) < 0
		       ? failed(n, "cannot mount an overlay")
		       : 0;
}

/* The kernel keeps the row while the file system is mounted, which bubblewrap's first process
 * holds. */
static int add_row(struct sandbox_entry *n, const char *place)
{
	char file[PATH_MAX];

	if (mount("binfmt_misc", place, "binfmt_misc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return failed(n, "cannot mount binfmt_misc");
	snprintf(file, sizeof(file), "%s/register", place);
	return write_text(file, n->row) < 0 ? failed(n, "cannot register the emulator") : 0;
}

char *sandbox_emulator_row(const char *platform, struct arena *a)
{
	return emulation_row(platform, arena_printf(a, "/proc/self/fd/%d", SANDBOX_EMULATOR_FD), a);
}

int sandbox_open_emulator(struct sandbox_entry *n)
{
	AUTO_FD int fd = open(n->emulator, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return failed(n, "cannot open the emulator");
	return dup3(fd, SANDBOX_EMULATOR_FD, O_CLOEXEC) < 0 ? failed(n, "cannot open the emulator")
							    : 0;
}

int sandbox_emulate(struct sandbox_entry *n)
{
	char uids[MAP_MAX], gids[MAP_MAX];
	const uid_t uid = geteuid();
	const gid_t gid = getegid();

	if (n->user) { /* root: another user follows, so that all are mapped */
		AUTO_FD int space = map_alike("/proc/self/uid_map", uids) < 0 ||
						    map_alike("/proc/self/gid_map", gids) < 0
					    ? -1
					    : sandbox_open_space(uids, gids);
		if (space < 0 || setns(space, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0)
			return failed(n, "cannot create a user namespace");
		return add_row(n, SANDBOX_STAGE "/" SANDBOX_BINFMT);
	}

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return failed(n, "cannot create a user namespace");
	/* As its user 0, to whom binfmt_misc's files belong. */
	snprintf(uids, sizeof(uids), "0 %u 1\n", uid);
	snprintf(gids, sizeof(gids), "0 %u 1\n", gid);
	if (write_text("/proc/self/setgroups", "deny") < 0 ||
	    write_text("/proc/self/uid_map", uids) < 0 ||
	    write_text("/proc/self/gid_map", gids) < 0)
		return failed(n, "cannot map the user");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return failed(n, "cannot create a mount namespace");
	/* The emulator is open, and nothing else in its directory is needed. */
	return sandbox_show_layer(n) < 0 ? -1 : add_row(n, n->emulator_dir);
}
