#include "core/root/sandbox_parts.h"

#include <grp.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/calls_linux.h"

static int failed(struct sandbox_entry *n, const char *what)
{
	n->failed = what;
	n->error = errno;
	return -1;
}

/* The keyring of the caller's session may hold what
 * opens its disks and its network file systems. */
static int leave_keyring(struct sandbox_entry *n)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return failed(n, "cannot make a session keyring");
	return 0;
}

/* The kernel kills the build before what else runs here; and no
 * build may lower it again, as one that had it from ptbuild could. */
static int raise_oom_score(struct sandbox_entry *n)
{
	char text[16] = "";
	AUTO_FD int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT || errno == EACCES
			       ? 0
			       : failed(n, "cannot open /proc/self/oom_score_adj");
	ssize_t got = read(fd, text, sizeof(text) - 1);
	int now = 0;
	for (ssize_t i = 0; i < got && text[0] != '-' && text[i] >= '0' && text[i] <= '9'; i++)
		now = now * 10 + (text[i] - '0');
	int len = snprintf(text, sizeof(text), "%d", now > n->oom_score ? now : n->oom_score);
	return write(fd, text, (size_t)len) == len
		       ? 0
		       : failed(n, "cannot write /proc/self/oom_score_adj");
}

static int limit(struct sandbox_entry *n, int what, uint64_t to)
{
	struct rlimit r;

	if (to == 0 || getrlimit((__rlimit_resource_t)what, &r) < 0)
		return 0;
	if (r.rlim_max == RLIM_INFINITY || to < r.rlim_max)
		r.rlim_max = to;
	if (r.rlim_cur == RLIM_INFINITY || r.rlim_cur > r.rlim_max)
		r.rlim_cur = r.rlim_max;
	return setrlimit((__rlimit_resource_t)what, &r) < 0
		       ? failed(n, "cannot set a resource limit")
		       : 0;
}

/* Opens a user namespace in which root is `user`. */
static int open_name_space(uid_t user)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %u 1\n", user);
	return sandbox_open_space(map, map);
}

/* Mounts the source so that root's files are the user's: what ptbuild shows can be read
 * whatever umask it was made with, and by nobody else. Not every kernel and file system can. */
static int mount_mapped(int source, const char *place, int space)
{
	struct mount_attr map = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY,
				 .userns_fd = (uint64_t)space};
	AUTO_FD int tree = open_tree(
		source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);

	if (tree < 0)
		return -1;
	int rc = mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &map, sizeof(map));
	return rc < 0 ? rc : move_mount(tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH);
}

/* Mounts each source where the user can reach it, even from directories of root's such as /root.
 * All are opened first, since one may be below the mount point of the others. Nobody else sees
 * these mounts. */
static int stage(struct sandbox_entry *n)
{
	char link[32];
	AUTO_FD int space = open_name_space(n->user);

	n->at = n->count;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return failed(n, "cannot create a mount namespace");
	n->emulating = n->emulator != NULL;
	if (n->emulator && sandbox_show_layer(n) < 0)
		return -1;
	n->emulating = false;
	for (n->at = 0; n->at < n->count; n->at++)
		if ((n->fds[n->at] = open(n->sources[n->at], O_PATH | O_CLOEXEC)) < 0)
			return failed(n, "cannot open");
	if (mount("tmpfs", SANDBOX_STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") < 0)
		return failed(n, "cannot mount a tmpfs on " SANDBOX_STAGE);
	if (n->emulator && mkdir(SANDBOX_STAGE "/" SANDBOX_BINFMT, 0700) < 0)
		return failed(n, "cannot make a directory for binfmt_misc");
	for (n->at = 0; n->at < n->count; n->at++) {
		struct stat st;
		int fd = n->fds[n->at];
		if (fstat(fd, &st) < 0)
			return failed(n, "cannot read");
		int rc = S_ISDIR(st.st_mode) ? mkdir(n->places[n->at], 0755)
					     : mknod(n->places[n->at], S_IFREG | 0644, 0);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (rc < 0)
			return failed(n, "cannot mount");
		if (space < 0 || !n->mapped[n->at] || st.st_uid != 0 ||
		    mount_mapped(fd, n->places[n->at], space) < 0)
			rc = mount(link, n->places[n->at], NULL, MS_BIND | MS_REC, NULL);
		if (rc < 0)
			return failed(n, "cannot mount");
		(void)close(fd);
	}

	return 0;
}

static int become(struct sandbox_entry *n)
{
	uid_t seen = n->privileged ? 0 : n->user;

	if (setgroups(0, NULL) < 0 || setresgid(n->user, n->user, n->user) < 0 ||
	    setresuid(n->user, seen, seen) < 0)
		return failed(n, "cannot become the build's user");
	for (n->at = 0; n->at < n->count; n->at++)
		if (access(n->places[n->at], R_OK) < 0)
			return failed(n, "the build's user cannot read");
	return 0;
}

int sandbox_enter(void *entry)
{
	struct sandbox_entry *n = entry;
	mode_t before = umask(0);

	if (n->keyring && leave_keyring(n) < 0)
		return -1;
	if (n->oom_score && raise_oom_score(n) < 0)
		return -1;
	n->emulating = n->emulator != NULL;
	if (n->emulator && sandbox_open_emulator(n) < 0)
		return -1;
	n->emulating = false;
	if (n->user && stage(n) < 0)
		return -1;
	n->emulating = n->emulator != NULL;
	if (n->emulator && sandbox_emulate(n) < 0)
		return -1;
	n->emulating = false;
	if (limit(n, RLIMIT_NPROC, n->tasks) < 0 || limit(n, RLIMIT_DATA, n->data) < 0)
		return -1;
	if (limit(n, RLIMIT_FSIZE, n->file) < 0)
		return -1;
	if (n->user && become(n) < 0)
		return -1;
	(void)umask(before);
	return 0;
}

/* Whether a process of that user may create a user namespace; a killed process counts as yes. */
static bool may_unshare(uid_t user)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		if (user != geteuid() &&
		    (setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0))
			_exit(1);
		_exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
	}

	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && (WIFSIGNALED(status) || status == 0);
}

enum sandbox_way sandbox_way(uid_t user, bool setuid)
{
	static int known[2] = {-1, -1}; /* of ourselves, and of another user */
	int *way = &known[user != geteuid()];

	if (*way >= 0)
		return (enum sandbox_way) * way;
	*way = SANDBOX_WAY_USER;
	if (!may_unshare(user) && (setuid || geteuid() == 0)) {
		char text[32] = "";
		int fd = open("/proc/sys/user/max_user_namespaces", O_RDONLY | O_CLOEXEC);
		bool none =
			fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || strcmp(text, "0\n") == 0;
		if (fd >= 0)
			(void)close(fd);
		*way = none || (!setuid && !may_unshare(0)) ? SANDBOX_WAY_NO_USER
							    : SANDBOX_WAY_PRIVILEGED;
	}

	return (enum sandbox_way) * way;
}

bool sandbox_filtered(void)
{
	return prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
}
