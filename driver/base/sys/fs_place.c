#include "base/sys/fs_place.h"

#include <limits.h>

#include "base/sys/fs_internal.h"

enum { LINKS_MAX = 40 };

static int parent_of(const struct fs_place *p, const char *rel)
{
	AUTO_ARENA struct arena a = {0};

	if (path_is_safe_relative(rel))
		return fs_open_below(p->fd, path_dir(&a, rel), 0);
	errno = EINVAL;
	return -1;
}

int fs_place_open(const char *path, struct arena *a, struct fs_place *ret, struct err *e)
{
	char real[PATH_MAX];
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", path);
	*ret = (struct fs_place){.fd = fd,
				 .path = arena_strdup(a, realpath(path, real) ? real : path)};
	return 0;
}

void fs_place_close(struct fs_place *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/* ---- links that stay inside ---- */

struct way {
	const struct fs_place *top;
	enum fs_links links;
	struct arena *a;
	struct strlist done; /* names that are no links */
	const char *left;    /* of the path */
	const char *link;    /* the last that was followed, and where it leads; NULL */
	const char *target;
	size_t behind; /* bytes of `left` behind the target */
	unsigned followed;
};

static int leads_away(const struct way *w, const char *where, struct err *e)
{
	const char *top = utf8_printable(w->top->path, w->a);

	err_set(e, ERR_POLICY, "will not follow a link: '%s' points to '%s', %s '%s'",
		utf8_printable(path_join(w->a, w->top->path, w->link ? w->link : w->left), w->a),
		utf8_printable(w->target ? w->target : "..", w->a), where, top);
	return err_hint(e, "name the directory that it points to, if that is what you mean");
}

static int follow(struct way *w, const char *link, struct err *e)
{
	char text[PATH_MAX];
	AUTO_FD int dir = parent_of(w->top, link);
	ssize_t n = dir < 0 ? -1 : readlinkat(dir, path_base(link), text, sizeof(text) - 1);

	if (n < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s/%s'", w->top->path, link);
	if (++w->followed > LINKS_MAX)
		return err_set(e, ERR_POLICY, "too many links: '%s/%s'", w->top->path, link);
	text[n] = '\0';
	w->link = link;
	w->behind = strlen(w->left);
	w->target = arena_strdup(w->a, text);
	/* Made with its whole path, as old tools make lib64. */
	const char *inside =
		w->links == FS_LINKS_WITHIN ? path_below(w->target, w->top->path) : NULL;
	if (*text == '/' && w->links == FS_LINKS_WITHIN && !inside)
		return leads_away(w, "outside of", e);
	w->done.count = *text == '/' ? 0 : w->done.count - 1;
	w->left = path_join(w->a, inside ? inside : w->target, w->left);
	return 0;
}

/* One name. *ret false: nothing is there. */
static int step(struct way *w, const char *name, bool *ret, struct err *e)
{
	if (!*name || strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		if (!w->done.count && w->links == FS_LINKS_WITHIN)
			return leads_away(w, "outside of", e);
		w->done.count -= w->done.count > 0;
		return 0;
	}

	strlist_add(&w->done, w->a, name);
	const char *path = strlist_join(&w->done, w->a, "/");
	AUTO_FD int fd = fs_open_below(w->top->fd, path, 0);
	if (fd >= 0)
		return 0;
	if (errno == ELOOP)
		return follow(w, path, e);
	*ret = false;
	if (errno != ENOENT && errno != ENOTDIR)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s/%s'", w->top->path, path);
	const bool of_link = w->link && strlen(w->left) >= w->behind;
	return of_link && w->links == FS_LINKS_ROOT ? leads_away(w, "which is not inside", e) : 0;
}

int fs_place_below(const struct fs_place *top, const char *rel, enum fs_links links,
		   struct arena *a, struct fs_place *ret, bool *ret_found, struct err *e)
{
	struct way w = {.top = top, .links = links, .a = a, .left = rel};
	bool found = true;

	while (found && *w.left) {
		size_t n = strcspn(w.left, "/");
		const char *name = arena_strndup(a, w.left, n);
		w.left += n + (w.left[n] == '/');
		if (step(&w, name, &found, e) < 0)
			return -1;
	}

	*ret_found = found;
	if (!found)
		return 0;
	const char *path = strlist_join(&w.done, a, "/");
	int fd = fs_open_below(top->fd, path, 0);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s/%s'", top->path, path);
	*ret = (struct fs_place){.fd = fd,
				 .path = *path ? path_join(a, top->path, path) : top->path};
	return 0;
}

/* ---- what is read ---- */

int fs_place_file(const struct fs_place *p, const char *rel, struct stat *ret, struct err *e)
{
	AUTO_FD int parent = parent_of(p, rel);
	return parent < 0 ? fs_fail("read", p->path, rel, e)
			  : fs_file_at(parent, p->path, rel, O_RDONLY, ret, e);
}

int fs_place_stat(const struct fs_place *p, const char *rel, struct stat *ret)
{
	AUTO_FD int parent = parent_of(p, rel);
	return parent < 0 ? -1 : fstatat(parent, path_base(rel), ret, AT_SYMLINK_NOFOLLOW);
}

bool fs_place_has(const struct fs_place *p, const char *rel)
{
	struct stat st;
	return fs_place_stat(p, rel, &st) == 0;
}

int fs_place_read(const struct fs_place *p, const char *rel, uint64_t max, struct buf *out,
		  struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st = {0};
	AUTO_FD int fd = fs_place_file(p, rel, &st, e);

	return fd < 0 ? -1 : fs_read_fd(fd, fs_full(p->path, rel, &a), max, out, e);
}

/* Whether a user that is neither root nor this one may write into an open file. */
static bool others_write(const struct stat *st)
{
	const bool group = (st->st_mode & S_IWGRP) && st->st_gid != getegid();
	return (st->st_uid != 0 && st->st_uid != geteuid()) || group || (st->st_mode & S_IWOTH);
}

/* A nameless copy that this user alone can open. */
static int copy_of(const struct fs_place *p, int fd, const char *name, struct err *e)
{
	char fresh[FS_NEIGHBOUR_LEN];
	AUTO_FD int copy = fs_neighbour_at(p->fd, 0600, fresh);

	if (copy < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write into '%s'", p->path);
	if (unlinkat(p->fd, fresh, 0) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot remove '%s/%s'", p->path, fresh);
	return fs_copy_bytes(fd, copy, name, name, e) < 0 ? -1 : steal_fd(&copy);
}

int fs_place_map(const struct fs_place *p, const char *rel, struct fs_mapping *ret,
		 struct stat *ret_stat, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *name = fs_full(p->path, rel, &a);
	struct stat st = {0};
	AUTO_FD int fd = fs_place_file(p, rel, &st, e);

	if (fd < 0)
		return -1;
	if (!others_write(&st)) {
		*ret_stat = st;
		return fs_map_fd(fd, name, ret, e);
	}

	AUTO_FD int copy = copy_of(p, fd, name, e);
	if (copy < 0)
		return -1;
	*ret_stat = st;
	return fs_map_fd(copy, name, ret, e);
}

int fs_place_list(const struct fs_place *p, const char *rel, struct arena *a, struct strlist *ret,
		  struct err *e)
{
	AUTO_FD int fd = fs_open_below(p->fd, rel, 0);
	AUTO_DIR DIR *d = fd < 0 ? NULL : fs_open_entries(fd);

	if (!d)
		return fs_fail("list", p->path, rel, e);
	struct strlist names = {0};
	for (const struct dirent *entry; (entry = fs_next_entry(d));)
		strlist_add(&names, a, entry->d_name);
	if (errno)
		return fs_fail("list", p->path, rel, e);
	strlist_sort(&names);
	strlist_refs(ret, a, names.items, names.count);
	return 0;
}

/* ---- what is written ---- */

int fs_place_sweep(const struct fs_place *p, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int dir = fs_open_below(p->fd, rel, 0);

	return dir < 0 ? fs_fail("list", p->path, rel, e)
		       : fs_sweep_at(dir, fs_full(p->path, rel, &a), e);
}

int fs_place_remove(const struct fs_place *p, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FD int dir = parent_of(p, rel);

	if (dir < 0)
		return errno == ENOENT ? 0 : fs_fail("remove", p->path, rel, e);
	return fs_remove_at(dir, path_base(rel), fs_full(p->path, rel, &a), e);
}

int fs_fresh_open(const struct fs_place *p, const char *rel, struct fs_fresh *ret, struct err *e)
{
	_Static_assert(FS_NEIGHBOUR_LEN <= sizeof(ret->name), "a neighbour's name fits");
	AUTO_FD int dir = parent_of(p, rel);
	char name[FS_NEIGHBOUR_LEN];
	int fd = dir < 0 ? -1 : fs_neighbour_at(dir, 0600, name);
	if (fd < 0)
		return fs_fail("write", p->path, rel, e);
	*ret = (struct fs_fresh){.fd = fd, .dir = steal_fd(&dir), .to = rel};
	memcpy(ret->name, name, sizeof(name));
	return 0;
}

/* What has another name, or none, somebody else took hold of. */
static int be_like(int fd, const struct stat *like)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1) {
		errno = EMLINK;
		return -1;
	}

	const bool other = st.st_uid != like->st_uid || st.st_gid != like->st_gid;
	if (other && fchown(fd, like->st_uid, like->st_gid) < 0 && errno != EPERM)
		return -1;
	return fchmod(fd, like->st_mode & 0777) < 0 || fsync(fd) < 0 ? -1 : 0;
}

int fs_fresh_commit(struct fs_fresh *f, const struct stat *like, struct err *e)
{
	/* EINVAL: a file system where a directory cannot be synced loses nothing by it. */
	if (be_like(f->fd, like) < 0 || renameat(f->dir, f->name, f->dir, path_base(f->to)) < 0 ||
	    (fsync(f->dir) < 0 && errno != EINVAL))
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", f->to);
	*f->name = '\0';
	return 0;
}

void fs_fresh_close(struct fs_fresh *f)
{
	if (f->dir >= 0 && *f->name)
		(void)unlinkat(f->dir, f->name, 0);
	if (f->fd >= 0)
		close(f->fd);
	if (f->dir >= 0)
		close(f->dir);
	*f = (struct fs_fresh){.fd = -1, .dir = -1};
}

int fs_place_write(const struct fs_place *p, const char *rel, const void *data, size_t len,
		   const struct stat *like, struct err *e)
{
	AUTO_FRESH struct fs_fresh f = {.fd = -1, .dir = -1};

	if (fs_fresh_open(p, rel, &f, e) < 0 || fs_write_all(f.fd, data, len, rel, e) < 0)
		return -1;
	return fs_fresh_commit(&f, like, e);
}

/* The link gets a name that a sweep would remove, then the name of the other. */
static int link_beside(const struct fs_fresh *f, const char *from, const struct stat *same)
{
	struct stat st;

	if (unlinkat(f->dir, f->name, 0) < 0 ||
	    linkat(f->dir, path_base(from), f->dir, f->name, 0) < 0 ||
	    fstatat(f->dir, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (st.st_ino == same->st_ino && st.st_dev == same->st_dev)
		return 0;
	errno = ESTALE;
	return -1;
}

int fs_place_link(const struct fs_place *p, const char *from, const char *to,
		  const struct stat *same, bool *ret, struct err *e)
{
	AUTO_FRESH struct fs_fresh f = {.fd = -1, .dir = -1};

	*ret = false;
	if (fs_fresh_open(p, to, &f, e) < 0)
		return -1;
	if (link_beside(&f, from, same) < 0)
		return 0;
	if (renameat(f.dir, f.name, f.dir, path_base(to)) < 0 ||
	    (fsync(f.dir) < 0 && errno != EINVAL))
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", to);
	*f.name = '\0';
	*ret = true;
	return 0;
}
