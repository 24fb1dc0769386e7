/* Temporary files that become another by rename. Their writer locks them, so that what a kill left can be told from
 * what is being written, also from inside another container. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/build_user.h"
#include "base/sys/fs.h"

#define PREFIX ".ptbuild-"
enum { DIGITS = 16, ATTEMPTS = 100 };

static bool is_neighbour(const char *name)
{
	size_t n = strlen(PREFIX);
	return strncmp(name, PREFIX, n) == 0 && strlen(name) == n + DIGITS &&
	       strspn(name + n, "0123456789abcdef") == DIGITS;
}

/* False when fs_sweep was faster. A file system without locks locks nothing, and nothing is swept there. */
static bool hold(int fd)
{
	struct stat st;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return false;
	return fstat(fd, &st) == 0 && st.st_nlink != 0;
}

/* The mode is that of open(2), less umask, which mkostemp cannot do. */
int fs_neighbour(const char *path, mode_t mode, struct arena *a, char **ret_name, struct err *e)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		uint64_t id;
		if (os_random(&id, sizeof(id)) < 0)
			break;
		char *name = arena_printf(a, "%s/" PREFIX "%016llx", path_dir(a, path), (unsigned long long)id);
		int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
		if (fd >= 0 && hold(fd) && build_user_keep(fd, path_dir(a, path)) == 0) {
			*ret_name = name;
			return fd;
		}
		if (fd < 0 && errno != EEXIST)
			break;
		if (fd >= 0)
			close(fd);
	}
	err_errno(e, ERR_SYSTEM, "cannot write '%s'", path);
	return -1;
}

int fs_sweep(const char *dir, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	if (!fs_exists(dir))
		return 0;
	if (fs_list(dir, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct stat st;
		const char *path = path_join(&a, dir, names.items[i]);
		if (!is_neighbour(names.items[i]))
			continue;
		AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (unlink(path) < 0 && errno != ENOENT)
			return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", path);
	}
	return 0;
}
