/* The user that programs in the sandbox run as where ptbuild is root, and what belongs to it. */
#pragma once

#include "base/base.h"

/* Its number, and its group's. Debian's policy reserves 65000 to 65533 and systemd leaves 65520 to
 * 65533 free, so no account has it; a container that maps 65536 numbers has it too. */
#define BUILD_USER 65525

enum build_user_state {
	BUILD_USER_SELF,    /* the user who started ptbuild, not root */
	BUILD_USER_MAPPED,  /* root of a user namespace, another user outside */
	BUILD_USER_OWN,     /* BUILD_USER */
	BUILD_USER_MISSING, /* root; this user namespace has no BUILD_USER */
};

enum build_user_state build_user_state(void);
/* build_user_give: makes a tree `user`'s, links not followed, the top last, so that a top that
 * is the user's says that all is. Setuid and setgid bits are dropped. Does nothing when the top is
 * the user's. */
int build_user_give(const char *dir, uid_t user, struct err *e) MUST_CHECK;
/* build_user_mixed: root has put files of its own below the user's `dir`: the next build_user_give
 * walks all of it again. */
int build_user_mixed(const char *dir, struct err *e) MUST_CHECK;
/* build_user_drop_bits: drops the setuid and setgid bits of all regular files below; *ret: how
 * many had any. A missing directory has none. */
int build_user_drop_bits(const char *dir, size_t *ret, struct err *e) MUST_CHECK;
/* build_user_keep: a file that root made in an open directory of the user becomes the user's. */
int build_user_keep(int fd, int dir) MUST_CHECK;
