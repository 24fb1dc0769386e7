/* Calls of Linux that this system's headers may lack: Debian 11's are of Linux 5.10 and glibc 2.31,
 * and the kernel that a release runs on is newer. The numbers are those of every machine. */
#pragma once
#include <fcntl.h>
#include <features.h>
#include <linux/close_range.h>
#include <locale.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#else
#define LANDLOCK_CREATE_RULESET_VERSION 1U
#define LANDLOCK_RULE_PATH_BENEATH 1
#define LANDLOCK_ACCESS_FS_EXECUTE (1ULL << 0)
#define LANDLOCK_ACCESS_FS_WRITE_FILE (1ULL << 1)
#define LANDLOCK_ACCESS_FS_READ_FILE (1ULL << 2)
#define LANDLOCK_ACCESS_FS_READ_DIR (1ULL << 3)
#define LANDLOCK_ACCESS_FS_MAKE_CHAR (1ULL << 6)
#define LANDLOCK_ACCESS_FS_MAKE_BLOCK (1ULL << 11)
struct landlock_path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));
#endif

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#if __GLIBC_PREREQ(2, 36)
#include <sys/pidfd.h>
#else
#define OPEN_TREE_CLONE 1U
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#define MOVE_MOUNT_F_EMPTY_PATH 4U
#define MOUNT_ATTR_RDONLY 1U
#define MOUNT_ATTR_IDMAP 0x100000U
struct mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

static inline int pidfd_open(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static inline int open_tree(int dir, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

static inline int mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attr,
				size_t size)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, size);
}

static inline int move_mount(int from, const char *from_path, int to, const char *to_path,
			     unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}
#endif

#if !__GLIBC_PREREQ(2, 32)
static inline const char *strerrordesc_np(int number)
{
	static locale_t english;
	if (!english) /* the C locale: a second one made at the same time is equal */
		english = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	return english ? strerror_l(number, english) : NULL;
}
#endif

#if !__GLIBC_PREREQ(2, 34)
static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}
#endif
