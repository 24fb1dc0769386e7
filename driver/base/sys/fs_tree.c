#include "base/sys/fs_internal.h"

#include "base/os.h"
#include "base/sys/fs_place.h"

#define MAX_DEPTH 512 /* each level holds descriptors and a stack frame */
#define CHUNK ((size_t)256 * 1024)

struct entry {
	const char *name;
	struct stat st;
};

struct entries {
	struct arena *arena;
	struct entry *items;
	size_t count;
	size_t cap;
};

/* What walk, sync and copy share: one directory being visited. */
struct walk {
	const char *top;
	struct buf rel; /* path below top */
	fs_walk_fn fn;
	void *user;
	bool sync;      /* fsync everything instead of calling fn */
	const char *to; /* or copy it to this directory; NULL */
	bool busy;      /* others change it: what is gone when it is looked at is left out */
	bool most;      /* so is what lies too deep or in directories that cannot be opened */
};

/* A directory that is visited, and the one that its entries are copied to (-1: none). */
struct level {
	int in, out;
	int depth;
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
	const unsigned char *p = (const unsigned char *)a->name,
			    *q = (const unsigned char *)b->name;

	while (*p && *p == *q) {
		p++;
		q++;
	}

	int x = *p ? *p : S_ISDIR(a->st.st_mode) ? '/' : 0;
	int y = *q ? *q : S_ISDIR(b->st.st_mode) ? '/' : 0;
	return x - y;
}

/* The sorted entries of an open directory, whose descriptor stays the caller's. */
static int read_entries(const struct walk *w, int fd, struct entries *ret, struct err *e)
{
	AUTO_DIR DIR *d = fs_open_entries(fd);

	if (!d)
		return walk_error(w, "list", e);
	for (const struct dirent *entry; (entry = fs_next_entry(d));) {
		ret->items = arena_room(ret->arena, ret->items, ret->count, &ret->cap, 32,
					sizeof(*ret->items));
		struct entry *it = &ret->items[ret->count];
		if (fstatat(fd, entry->d_name, &it->st, AT_SYMLINK_NOFOLLOW) == 0) {
			it->name = arena_strdup(ret->arena, entry->d_name);
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
	AUTO_FD int fd =
		openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	return fd < 0 || fsync(fd) < 0 ? walk_error(w, "sync", e) : 0;
}

/* ---- copies ---- */

static int copy_error(const char *name, struct err *e)
{
	return err_errno(e, ERR_SYSTEM, "cannot copy '%s'", name);
}

/* What os_copy cannot do (other file systems, old kernels, files without a size), the plain loop
 * finishes from the current offset. */
int fs_copy_bytes(int in, int out, const char *from, const char *to, struct err *e)
{
	while (os_copy(in, NULL, out, (size_t)1 << 30) > 0)
		;
	AUTO_FREE char *chunk = malloc(CHUNK);
	if (!chunk)
		abort();
	for (;;) {
		ssize_t n = read(in, chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return copy_error(from, e);
		if (n == 0)
			return 0;
		if (fs_write_all(out, chunk, (size_t)n, to, e) < 0)
			return -1;
	}
}

/* Last, since writing changes the times, and the bits may forbid it. */
static int copy_attributes(int out, const struct stat *st, const char *path, struct err *e)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	return fchmod(out, st->st_mode & 07777) < 0 || futimens(out, times) < 0
		       ? copy_error(path, e)
		       : 0;
}

static int copy_file_at(struct level l, const char *name, const char *path, struct err *e)
{
	AUTO_FD int in =
		openat(l.in, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (in < 0 || fstat(in, &st) < 0)
		return copy_error(path, e);
	AUTO_FD int out =
		openat(l.out, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out < 0)
		return copy_error(path, e);
	if (fs_copy_bytes(in, out, path, path, e) < 0 || copy_attributes(out, &st, path, e) < 0)
		return -1;
	return fs_close(&out, path, e);
}

static int copy_link_at(struct level l, const struct entry *link, const char *path, struct err *e)
{
	const char *name = link->name;
	const struct stat *st = &link->st;
	char target[4096];
	ssize_t n = readlinkat(l.in, name, target, sizeof(target));

	if (n < 0)
		return copy_error(path, e);
	if ((size_t)n == sizeof(target)) {
		errno = ENAMETOOLONG;
		return copy_error(path, e);
	}

	target[n] = '\0';
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	if (symlinkat(target, l.out, name) < 0 ||
	    utimensat(l.out, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return copy_error(path, e);
	return 0;
}

/* ---- the walk ---- */

static int walk_dir(struct walk *w, struct level l, struct err *e);

/* Copies l.in to `name` in l.out. The copy gets its attributes last: writing changes the times, and
 * the bits may forbid it. */
static int copy_dir(struct walk *w, struct level l, const char *name, struct err *e)
{
	const char *path = buf_cstr(&w->rel);
	struct stat st;

	if (fstat(l.in, &st) < 0 || mkdirat(l.out, name, 0700) < 0)
		return copy_error(path, e);
	AUTO_FD int out = openat(l.out, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (out < 0)
		return copy_error(path, e);
	l.out = out;
	return walk_dir(w, l, e) < 0 ? -1 : copy_attributes(out, &st, buf_cstr(&w->rel), e);
}

static int walk_below(struct walk *w, struct level l, const char *name, struct err *e)
{
	const int depth = l.depth + 1;

	if (depth > MAX_DEPTH && w->most)
		return 0;
	if (depth > MAX_DEPTH)
		return err_set(e, ERR_SYSTEM, "directories nested more than %d deep below '%s'",
			       MAX_DEPTH, w->top);
	AUTO_FD int fd = openat(l.in, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	const struct level below = {.in = fd, .out = l.out, .depth = depth};
	if (fd >= 0)
		return w->to ? copy_dir(w, below, name, e) : walk_dir(w, below, e);
	bool gone = w->busy && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
	return gone || w->most ? 0 : walk_error(w, "open", e);
}

static int walk_entry(struct walk *w, struct level l, const struct entry *entry, struct err *e)
{
	const char *path = buf_cstr(&w->rel);
	const mode_t mode = entry->st.st_mode;

	if (S_ISDIR(mode))
		return walk_below(w, l, entry->name, e);
	if (w->sync)
		return S_ISREG(mode) ? sync_file_at(l.in, entry->name, w, e) : 0;
	if (!w->to)
		return w->fn(path, &entry->st, w->user, e);
	if (S_ISREG(mode))
		return copy_file_at(l, entry->name, path, e);
	if (S_ISLNK(mode))
		return copy_link_at(l, entry, path, e);
	return err_set(e, ERR_SYSTEM, "cannot copy '%s': neither file, directory nor link", path);
}

static int walk_dir(struct walk *w, struct level l, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct entries list = {.arena = &a};

	if (read_entries(w, l.in, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		size_t before = w->rel.len;
		buf_printf(&w->rel, "%s%s", before ? "/" : "", list.items[i].name);
		int rc = walk_entry(w, l, &list.items[i], e);
		w->rel.len = before;
		if (rc)
			return rc;
	}

	return w->sync && fsync(l.in) < 0 && errno != EINVAL ? walk_error(w, "sync", e) : 0;
}

static int walk_top(struct walk w, const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int fd = fs_open_dir(top, rel, 0);

	if (fd < 0)
		return fs_fail("open", top, rel, e);
	w.top = fs_full(top, rel, &a);
	const struct level first = {.in = fd, .out = w.to ? AT_FDCWD : -1};
	int rc = w.to ? copy_dir(&w, first, w.to, e) : walk_dir(&w, first, e);
	buf_release(&w.rel);
	return rc < 0 && w.to ? fs_disk_place(w.to, e) : rc; /* the names below do not say which */
}

int fs_walk(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e)
{
	return walk_top((struct walk){.fn = fn, .user = user}, top, rel, e);
}

int fs_walk_busy(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e)
{
	return walk_top((struct walk){.fn = fn, .user = user, .busy = true}, top, rel, e);
}

struct listing {
	struct arena *a;
	struct strlist *ret;
};

static int add_path(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct listing *l = user;

	(void)st;
	(void)e;
	strlist_add(l->ret, l->a, rel);
	return 0;
}

int fs_place_walk(const struct fs_place *p, fs_walk_fn fn, void *user, struct err *e)
{
	struct walk w = {.top = p->path, .fn = fn, .user = user, .busy = true};
	int rc = walk_dir(&w, (struct level){.in = p->fd, .out = -1}, e);

	buf_release(&w.rel);
	return rc;
}

int fs_list_tree(const char *top, const char *rel, struct arena *a, struct strlist *ret,
		 struct err *e)
{
	struct listing l = {a, ret};
	return fs_walk(top, rel, add_path, &l, e);
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

int fs_copy_tree(const char *from, const char *to, struct err *e)
{
	struct stat st;

	if (lstat(to, &st) == 0) {
		errno = EEXIST;
		return err_errno(e, ERR_SYSTEM, "cannot copy '%s' to '%s'", from, to);
	}

	if (walk_top((struct walk){.to = to}, TRUSTED, from, e) == 0)
		return 0;
	if (fs_remove(TRUSTED, to, ERR_IGNORED) < 0)
		err_hint(e, "remove the incomplete copy '%s'", to);
	return err_wrap(e, "copying '%s' to '%s'", from, to);
}

int fs_copy_fd(const char *top, const char *rel, int out, const char *to, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st = {0};
	AUTO_FD int in = fs_open(top, rel, &st, e);

	if (in < 0 || fs_copy_bytes(in, out, fs_full(top, rel, &a), to, e) < 0)
		return -1;
	return fchmod(out, st.st_mode & 07777) == 0
		       ? 0
		       : err_errno(e, ERR_SYSTEM, "cannot write '%s'", to);
}

int fs_copy(const char *top, const char *rel, const char *to, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *name = NULL;
	AUTO_FD int out = fs_neighbour(to, 0600, &a, &name, e);

	if (out < 0)
		return -1;
	int rc = fs_copy_fd(top, rel, out, to, e) < 0 ? -1 : fs_close(&out, to, e);
	if (rc == 0 && rename(name, to) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot write '%s'", to);
	if (rc < 0)
		unlink(name);
	return rc;
}
