#include "base/sys/build_user.h"

#include "base/os.h"
#include "base/sys/fs_internal.h"

#define MAX_DEPTH 512
#define SET_BITS (S_ISUID | S_ISGID)
#define KEEP ((uid_t)-1) /* as for chown(2): nobody's files change hands */

enum build_user_state build_user_state(void)
{
	uid_t outside = 0, root = 0;

	if (geteuid() != 0)
		return BUILD_USER_SELF;
	if (os_user_outside(BUILD_USER, &outside) == 0)
		return BUILD_USER_OWN;
	return os_user_outside(0, &root) == 0 && root != 0 ? BUILD_USER_MAPPED : BUILD_USER_MISSING;
}

struct giving {
	const char *top;
	uid_t user;
	size_t dropped;
};

static int give_entry(struct giving *g, int dir, const char *name, const struct stat *st,
		      struct err *e)
{
	/* The owner first: chown(2) by root leaves the bits of what nobody may run. */
	if (g->user != KEEP && st->st_uid != g->user &&
	    fchownat(dir, name, g->user, (gid_t)g->user, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot give '%s' in '%s' to user %u", name, g->top,
				 g->user);
	if (!S_ISREG(st->st_mode) || !(st->st_mode & SET_BITS))
		return 0;
	g->dropped++;
	/* Opened without following, since a program of the build may still be at work. */
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int rc = fd >= 0 ? fchmod(fd, st->st_mode & 0777)
		 /* its owner may not read it */
		 : geteuid() != 0 ? fchmodat(dir, name, st->st_mode & 0777, 0)
				  : -1;
	return rc < 0 ? err_errno(e, ERR_SYSTEM, "cannot drop the setuid bit of '%s' in '%s'", name,
				  g->top)
		      : 0;
}

/* A build may have taken the owner's rights alone away, so that
 * others can still go where ptbuild cannot. -1 with errno. */
static int open_dir(const struct giving *g, int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;
	int fd = openat(dir, name, flags);

	if (g->user != KEEP || geteuid() == 0)
		return fd;
	if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(dir, name, flags);
	else if (fd >= 0 && fstat(fd, &st) == 0 && !(st.st_mode & S_IXUSR))
		(void)fchmod(fd, 0700); /* where it fails the next call says why */
	return fd;
}

/* Closes `taken`. Each level holds one descriptor:
 * with two, the 1,024 of many systems would not do. */
static int give_dir(struct giving *g, int taken, int depth, struct err *e)
{
	AUTO_FD int fd = taken;

	/* What nobody else can enter hides nothing. */
	if (depth > MAX_DEPTH && g->user == KEEP && fchmod(fd, 0700) == 0)
		return 0;
	if (depth > MAX_DEPTH)
		return err_set(e, ERR_SYSTEM, "directories nested more than %d deep below '%s'",
			       MAX_DEPTH, g->top);
	AUTO_DIR DIR *d = fs_open_entries(fd);
	if (!d)
		return err_errno(e, ERR_SYSTEM, "cannot list '%s'", g->top);
	if (fs_close(&fd, g->top, e) < 0)
		return -1;
	const int dir = dirfd(d);
	for (const struct dirent *entry; (entry = fs_next_entry(d));) {
		struct stat st;
		/* Most file systems say what it is; only what may
		 * matter is looked at when nothing changes hands. */
		if (g->user == KEEP && entry->d_type == DT_LNK)
			continue;
		if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue;
			return err_errno(e, ERR_SYSTEM, "cannot read '%s' in '%s'", entry->d_name,
					 g->top);
		}

		if (S_ISDIR(st.st_mode)) {
			const int sub = open_dir(g, dir, entry->d_name);
			if (sub < 0)
				return err_errno(e, ERR_SYSTEM, "cannot list '%s' in '%s'",
						 entry->d_name, g->top);
			if (give_dir(g, sub, depth + 1, e) < 0)
				return -1;
		}

		if (give_entry(g, dir, entry->d_name, &st, e) < 0)
			return -1;
	}

	return errno ? err_errno(e, ERR_SYSTEM, "cannot list '%s'", g->top) : 0;
}

static int walk(const char *dir, struct giving *g, struct err *e)
{
	struct stat st;
	AUTO_FD int fd = open_dir(g, AT_FDCWD, dir);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot list '%s'", dir);
	if (st.st_uid == g->user)
		return 0;
	const int top = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (top < 0)
		return err_errno(e, ERR_SYSTEM, "cannot list '%s'", dir);
	if (give_dir(g, top, 0, e) < 0)
		return -1;
	if (g->user != KEEP && fchown(fd, g->user, (gid_t)g->user) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot give '%s' to user %u", dir, g->user);
	return 0;
}

int build_user_give(const char *dir, uid_t user, struct err *e)
{
	struct giving g = {.top = dir, .user = user};
	return walk(dir, &g, e);
}

int build_user_mixed(const char *dir, struct err *e)
{
	return geteuid() == 0 && lchown(dir, 0, 0) < 0
		       ? err_errno(e, ERR_SYSTEM, "cannot take '%s' back", dir)
		       : 0;
}

int build_user_drop_bits(const char *dir, size_t *ret, struct err *e)
{
	struct giving g = {.top = dir, .user = KEEP};
	int rc = walk(dir, &g, e);

	*ret = g.dropped;
	return rc;
}

int build_user_keep(int fd, int dir)
{
	struct stat st;

	if (geteuid() != 0 || fstat(dir, &st) < 0 || st.st_uid != BUILD_USER)
		return 0;
	return fchown(fd, BUILD_USER, BUILD_USER);
}
