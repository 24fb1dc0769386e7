#include "base/sys/proc.h"

#include <inttypes.h>
#include <limits.h>

#include "base/sys/fs_internal.h"

#define MAX_COMMAND ((size_t)128 << 10)

/* A growing list of processes, and of numbers still to be read. */
struct list {
	struct arena *arena;
	struct proctree_item *items;
	size_t count, cap;
};

static void list_add(struct list *l, const struct proctree_item *it)
{
	l->items = arena_room(l->arena, l->items, l->count, &l->cap, 64, sizeof(*l->items));
	l->items[l->count++] = *it;
}

/* The beginning of a file of /proc, NUL-terminated; the length, or -1. */
static ssize_t read_head(char *to, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static ssize_t read_head(char *to, size_t size, const char *fmt, ...)
{
	char path[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, to, size - 1);
	if (n >= 0)
		to[n] = '\0';
	return n;
}

/* proc(5): "pid (name) state ppid ...". The name may
 * hold anything, also ')': the last one ends it. */
static bool read_stat(pid_t pid, struct proctree_item *ret)
{
	char text[1024];

	if (read_head(text, sizeof(text), "/proc/%d/stat", (int)pid) <= 0)
		return false;
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close < open)
		return false;
	struct proctree_item it = {.pid = pid};
	size_t n = (size_t)(close - open - 1);
	memcpy(it.name, open + 1, n < sizeof(it.name) - 1 ? n : sizeof(it.name) - 1);
	int parent;
	char state;
	unsigned long utime, stime;
	long cutime, cstime, pages;
	if (sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %ld %*d "
		   "%" SCNu64 " %*u %ld",
		   &state, &parent, &utime, &stime, &cutime, &cstime, &it.threads, &it.started,
		   &pages) != 9)
		return false;
	it.parent = parent;
	it.cpu_seconds = ((double)utime + (double)stime + (double)cutime + (double)cstime) /
			 (double)sysconf(_SC_CLK_TCK);
	it.rss_bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
	*ret = it;
	return true;
}

static void add_pid(struct list *l, pid_t pid)
{
	struct proctree_item it;
	if (read_stat(pid, &it))
		list_add(l, &it);
}

/* The children that one thread has made. */
static void add_children(struct list *l, pid_t pid, long thread)
{
	char text[16384];
	char *end;

	if (read_head(text, sizeof(text), "/proc/%d/task/%ld/children", (int)pid, thread) <= 0)
		return;
	for (char *p = text; *p; p = end) {
		long child = strtol(p, &end, 10);
		if (end == p || *end != ' ') /* the end, or a number that was cut off */
			break;
		add_pid(l, (pid_t)child);
	}
}

static void add_children_of_threads(struct list *l, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	AUTO_DIR DIR *dir = opendir(path);
	const struct dirent *d;
	while (dir && (d = fs_next_entry(dir)))
		add_children(l, pid, strtol(d->d_name, NULL, 10));
}

static bool is_listed(const struct list *l, pid_t pid)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].pid == pid)
			return true;
	return false;
}

/* All processes of the machine, or those of a user. */
#define EVERYBODY ((uid_t)-1)

/* Whether an entry of /proc is a process of this user. */
static bool is_process_of(int proc, const char *name, uid_t user)
{
	struct stat st;

	if (name[0] < '1' || name[0] > '9')
		return false;
	if (user == EVERYBODY)
		return true;
	return fstatat(proc, name, &st, 0) == 0 && st.st_uid == user;
}

static void list_all(struct list *l, uid_t user)
{
	AUTO_DIR DIR *dir = opendir("/proc");
	const struct dirent *d;

	while (dir && (d = fs_next_entry(dir)))
		if (is_process_of(dirfd(dir), d->d_name, user))
			add_pid(l, (pid_t)strtol(d->d_name, NULL, 10));
}

uint64_t proctree_tasks(uid_t user)
{
	AUTO_ARENA struct arena a = {0};
	struct list all = {.arena = &a};
	uint64_t count = 0;

	list_all(&all, user);
	for (size_t i = 0; i < all.count; i++)
		count += all.items[i].threads > 0 ? (uint64_t)all.items[i].threads : 1;
	return count;
}

void proctree_scan(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count)
{
	struct list all = {.arena = a}, tree = {.arena = a};

	list_all(&all, EVERYBODY);
	for (size_t i = 0; i < all.count; i++)
		if (all.items[i].pid == root)
			list_add(&tree, &all.items[i]);
	for (size_t at = 0; at < tree.count; at++)
		for (size_t i = 0; i < all.count; i++)
			if (all.items[i].parent == tree.items[at].pid &&
			    !is_listed(&tree, all.items[i].pid))
				list_add(&tree, &all.items[i]);
	*ret = tree.items;
	*ret_count = tree.count;
}

void proctree_read(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count)
{
	struct list tree = {.arena = a};
	char none[1];

	if (read_head(none, sizeof(none), "/proc/thread-self/children") < 0) {
		proctree_scan(root, a, ret, ret_count);
		return;
	}

	add_pid(&tree, root);
	for (size_t at = 0; at < tree.count; at++) {
		pid_t pid = tree.items[at].pid;
		if (tree.items[at].threads == 1)
			add_children(&tree, pid, pid);
		else
			add_children_of_threads(&tree, pid);
	}

	*ret = tree.items;
	*ret_count = tree.count;
}

bool proctree_command(pid_t pid, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = fs_read_at(fd, buf_reserve(out, MAX_COMMAND), MAX_COMMAND, 0);
	out->len += n > 0 ? (size_t)n : 0;
	(void)buf_cstr(out);
	return true;
}

/* Reads a line of /proc/PID/status ("VmHWM:" and the like) in bytes; 0 if it is missing. */
static uint64_t status_bytes(pid_t pid, const char *name)
{
	char text[4096];
	uint64_t kib;

	if (read_head(text, sizeof(text), "/proc/%d/status", (int)pid) <= 0)
		return 0;
	const char *line = strstr(text, name);
	return line && sscanf(line + strlen(name), "%" SCNu64, &kib) == 1 ? kib * 1024 : 0;
}

uint64_t proctree_peak(pid_t pid)
{
	return status_bytes(pid, "\nVmHWM:");
}

uint64_t proctree_own(pid_t pid)
{
	return status_bytes(pid, "\nRssAnon:");
}

char *proctree_cwd(pid_t pid, struct arena *a)
{
	char path[64], target[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	ssize_t n = readlink(path, target, sizeof(target));
	return n > 0 && (size_t)n < sizeof(target) ? arena_strndup(a, target, (size_t)n) : NULL;
}
