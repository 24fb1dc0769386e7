#include "core/root/landlock_init.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/calls_linux.h"

/* The kernel's headers here may be older than the kernel. */
#define ACCESS_REFER (1ULL << 13)     /* version 2: files moved between directories */
#define ACCESS_TRUNCATE (1ULL << 14)  /* version 3 */
#define ACCESS_IOCTL_DEV (1ULL << 15) /* version 5 */
#define SCOPES 3ULL                   /* version 6: abstract sockets and signals */

/* Version 1 refuses every move from one directory to
 * another, as compiler caches and linkers do them. */
#define OLDEST 2

#define ACCESS_READ                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define ACCESS_OPEN                                                                                \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE |          \
	 ACCESS_IOCTL_DEV)
#define ACCESS_FILE (LANDLOCK_ACCESS_FS_EXECUTE | ACCESS_OPEN)

struct ruleset {
	uint64_t fs, net, scoped;
};

int landlock_version(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return version < OLDEST ? 0 : (int)version;
}

/* Each right of the versions that this kernel knows. */
static uint64_t rights(int version)
{
	uint64_t all = ACCESS_REFER - 1 + ACCESS_REFER;

	if (version >= 3)
		all |= ACCESS_TRUNCATE;
	if (version >= 5)
		all |= ACCESS_IOCTL_DEV;
	return all;
}

static int allow(int ruleset, int fd, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= ACCESS_FILE;
	return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int allow_path(int ruleset, const char *path, uint64_t access)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -1;
	int rc = allow(ruleset, fd, access);
	(void)close(fd);
	return rc;
}

/* Its streams can be opened again by /dev/stdin and the
 * like; what they are may lie outside of all that is shown. */
static int allow_streams(int ruleset, uint64_t all)
{
	for (int fd = 0; fd <= 2; fd++) {
		struct stat st;
		if (fstat(fd, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISREG(st.st_mode)) &&
		    allow(ruleset, fd, ACCESS_OPEN & all) < 0)
			return -1;
	}

	return 0;
}

/* Returns the first word behind the paths; NULL: it failed. */
static char *const *enter(char *const *words)
{
	int version = landlock_version();
	uint64_t all = rights(version);
	struct ruleset attr = {.fs = all, .scoped = version >= 6 ? SCOPES : 0};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr,
			      version >= 6 ? sizeof(attr) : sizeof(attr.fs), 0);

	if (fd < 0 || allow_path(fd, "/", ACCESS_READ) < 0 || allow_streams(fd, all) < 0)
		return NULL;
	while (words[0] && words[1] && strcmp(words[0], "--") != 0) {
		bool devices = strcmp(words[0], "dev") == 0;
		if (allow_path(fd, words[1], devices ? ACCESS_OPEN & all : all & ~ACCESS_DEVICES) <
		    0)
			return NULL;
		words += 2;
	}

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return NULL;
	(void)close(fd);
	return words;
}

static int fail(int fd, struct landlock_init_failure failure)
{
	return write(fd, &failure, sizeof(failure)) == sizeof(failure) ? 127 : 126;
}

int landlock_init(char *const *words)
{
	int fd = words[0] ? atoi(words[0]) : -1;

	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return 126;
	words = enter(words + 1);
	if (!words || !words[0] || !words[1])
		return fail(fd, (struct landlock_init_failure){LANDLOCK_INIT_RULES, errno});
	(void)execvp(words[1], words + 1);
	return fail(fd, (struct landlock_init_failure){LANDLOCK_INIT_EXEC, errno});
}
