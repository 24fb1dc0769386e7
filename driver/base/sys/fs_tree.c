
#include "base/sys/fs_internal.h"

#define MAX_DEPTH 512 /* each level holds a descriptor and a stack frame */

struct entry {
	const char *name;
	struct stat st;
};

struct entries {
	struct entry *items;
	size_t count;
	size_t cap;
};

/* What walk and sync share: one directory being visited. */
struct walk {
	const char *top;
	struct buf rel; /* path below top */
	fs_walk_fn fn;
	void *user;
	bool sync; /* fsync everything instead of calling fn */
	bool busy; /* others change it: what is gone when it is looked at is left out */
	bool most; /* so is what lies too deep or in directories that cannot be opened */
};

static int walk_error(const struct walk *w, const char *what, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	int why = errno;
	const char *rel = utf8_printable(buf_cstr((struct buf *)&w->rel), &a);
	errno = why;
	return err_errno(e, ERR_SYSTEM, "cannot %s '%s%s%s'", what, w->top, *rel ? "/" : "", rel);
}

/* As strcmp would order the whole paths: a directory's name ends with '/'. */
static int cmp_entries(const void *va, const void *vb)
{
	const struct entry *a = va, *b = vb;
	const unsigned char *p = (const unsigned char *)a->name, *q = (const unsigned char *)b->name;
	while (*p && *p == *q) {
		p++;
		q++;
	}
	int x = *p ? *p : S_ISDIR(a->st.st_mode) ? '/' : 0;
	int y = *q ? *q : S_ISDIR(b->st.st_mode) ? '/' : 0;
	return x - y;
}

/* The sorted entries of an open directory, whose descriptor stays the caller's. */
static int read_entries(int fd, struct arena *a, struct entries *ret, const struct walk *w, struct err *e)
{
	AUTO_DIR DIR *d = fs_open_entries(fd);
	if (!d)
		return walk_error(w, "list", e);
	for (const struct dirent *entry; (entry = fs_next_entry(d));) {
		ret->items = arena_room(a, ret->items, ret->count, &ret->cap, 32, sizeof(*ret->items));
		struct entry *it = &ret->items[ret->count];
		if (fstatat(fd, entry->d_name, &it->st, AT_SYMLINK_NOFOLLOW) == 0) {
			it->name = arena_strdup(a, entry->d_name);
			ret->count++;
		} else if (!w->busy || errno != ENOENT) {
			return walk_error(w, "list", e);
		}
	}
	if (errno)
		return walk_error(w, "list", e);
	array_sort(ret->items, ret->count, sizeof(*ret->items), cmp_entries);
	return 0;
}

static int sync_file_at(int dir, const char *name, const struct walk *w, struct err *e)
{
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fsync(fd) < 0)
		return walk_error(w, "sync", e);
	return 0;
}

static int walk_dir(struct walk *w, int fd, int depth, struct err *e);

static int walk_below(struct walk *w, int parent, const char *name, int depth, struct err *e)
{
	if (depth > MAX_DEPTH && w->most)
		return 0;
	if (depth > MAX_DEPTH)
		return err_set(e, ERR_SYSTEM, "directories nested more than %d deep below '%s'", MAX_DEPTH, w->top);
	AUTO_FD int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		return walk_dir(w, fd, depth, e);
	bool gone = w->busy && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
	return gone || w->most ? 0 : walk_error(w, "open", e);
}

static int walk_entry(struct walk *w, int dir, const struct entry *entry, int depth, struct err *e)
{
	if (S_ISDIR(entry->st.st_mode))
		return walk_below(w, dir, entry->name, depth + 1, e);
	if (!w->sync)
		return w->fn(buf_cstr(&w->rel), &entry->st, w->user, e);
	return S_ISREG(entry->st.st_mode) ? sync_file_at(dir, entry->name, w, e) : 0;
}

static int walk_dir(struct walk *w, int fd, int depth, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct entries list = {0};
	if (read_entries(fd, &a, &list, w, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		size_t before = w->rel.len;
		buf_printf(&w->rel, "%s%s", before ? "/" : "", list.items[i].name);
		int rc = walk_entry(w, fd, &list.items[i], depth, e);
		w->rel.len = before;
		if (rc)
			return rc;
	}
	if (w->sync && fsync(fd) < 0 && errno != EINVAL)
		return walk_error(w, "sync", e);
	return 0;
}

static int walk_top(struct walk w, const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = fs_open_dir(top, rel, 0);
	if (fd < 0)
		return fs_fail("open", top, rel, e);
	w.top = fs_full(top, rel, &a);
	int rc = walk_dir(&w, fd, 0, e);
	buf_release(&w.rel);
	return rc;
}

int fs_walk(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e)
{
	return walk_top((struct walk){.fn = fn, .user = user}, top, rel, e);
}

int fs_walk_busy(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e)
{
	return walk_top((struct walk){.fn = fn, .user = user, .busy = true}, top, rel, e);
}

int fs_sync_tree(const char *path, struct err *e)
{
	return walk_top((struct walk){.sync = true}, TRUSTED, path, e);
}

static int add_size(const char *rel, const struct stat *st, void *user, struct err *e)
{
	(void)rel;
	(void)e;
	if (S_ISREG(st->st_mode))
		*(uint64_t *)user += (uint64_t)st->st_size;
	return 0;
}

int fs_tree_size(const char *path, uint64_t *ret, struct err *e)
{
	uint64_t total = 0;
	if (fs_walk_busy(TRUSTED, path, add_size, &total, e) < 0)
		return -1;
	*ret = total;
	return 0;
}

int fs_tree_size_most(const char *path, uint64_t *ret, struct err *e)
{
	uint64_t total = 0;
	struct walk w = {.fn = add_size, .user = &total, .busy = true, .most = true};
	if (walk_top(w, TRUSTED, path, e) < 0)
		return -1;
	*ret = total;
	return 0;
}
