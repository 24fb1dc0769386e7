#include "step/source/source.h"

#define DEFAULT_BYTES (8ULL << 30)
#define DEFAULT_RATIO 200U
#define DEFAULT_ENTRIES 500000U

struct unpacker {
	bool strip_top;
	struct arena arena;
	const char *top; /* the shared top directory; NULL: not known yet */
	struct tar *tar;
	struct tree tree;
};

/* The path without the top directory, which the first entry names. */
static int strip(struct unpacker *u, const char **path, bool is_dir, struct err *e)
{
	if (!u->strip_top || !**path)
		return 0;
	size_t n = strcspn(*path, "/");
	if (!u->top)
		u->top = arena_strndup(&u->arena, *path, n);
	if (n != strlen(u->top) || memcmp(*path, u->top, n) != 0)
		return err_set(e, ERR_INTEGRITY,
			       "is not below '%s', the top directory of the entries before it",
			       u->top);
	if (!(*path)[n] && !is_dir)
		return err_set(e, ERR_INTEGRITY,
			       "is not below the one top directory that was expected");
	*path += (*path)[n] ? n + 1 : n;
	return 0;
}

/* A symbolic link stays inside if its ".." come first and are no more than the
 * directories above it, which are real. After a name, ".." depends on what that name is. */
static int check_target(const char *path, const char *target, struct err *e)
{
	size_t depth = 0, up = 0;
	bool names = false;
	AUTO_ARENA struct arena a = {0};

	for (const char *p = path; *p; p++)
		depth += *p == '/';
	if (!*target || target[0] == '/')
		return err_set(e, ERR_INTEGRITY, "is a link with %s target",
			       *target ? "an absolute" : "an empty");
	for (const char *p = target; *p;) {
		size_t n = strcspn(p, "/");
		bool dots = n == 2 && p[0] == '.' && p[1] == '.';
		if (dots && names)
			return err_set(e, ERR_INTEGRITY,
				       "is a link with '..' after a name in its target '%s'",
				       target);
		up += dots;
		bool dot = n == 1 && p[0] == '.';
		names = names || (n > 0 && !dot && !dots);
		p += n + (p[n] == '/');
	}

	const char *from = depth > 0 ? path_dir(&a, path) : "";
	if (up > depth || (names && !path_stays_inside(from, target)))
		return err_set(e, ERR_INTEGRITY, "is a link that leaves the tree, to '%s'", target);
	return 0;
}

static int unpack_entry(struct unpacker *u, const struct tar_entry *en, struct err *e)
{
	const char *path = en->name, *hard = en->hard;
	uint64_t size;

	if (strip(u, &path, en->type == S_IFDIR, e) < 0)
		return -1;
	if (hard && strip(u, &hard, false, e) < 0)
		return err_wrap(e, "the target of its hard link");
	if (hard)
		return tree_hardlink(&u->tree, path, hard, e);
	switch (en->type) {
	case S_IFREG:
		return tar_extract(u->tar, en, &u->tree, path, NULL, &size, e);
	case S_IFDIR:
		return *path ? tree_mkdir(&u->tree, path, en->mtime, e) : 0;
	case S_IFLNK:
		return check_target(path, en->target, e) < 0
			       ? -1
			       : tree_symlink(&u->tree, path, en->target, en->mtime, e);
	default:
		return err_set(e, ERR_INTEGRITY, "is a device, fifo or socket");
	}
}

static int unpack_all(struct unpacker *u, struct err *e)
{
	struct tar_entry en;
	int got, count = 0;

	while ((got = tar_next(u->tar, &en, e)) > 0) {
		if (unpack_entry(u, &en, e) < 0)
			return tar_deny(u->tar, e);
		count = 1;
	}

	if (got == 0 && count == 0)
		return err_set(e, ERR_INTEGRITY, "is empty");
	return got < 0 ? -1 : tree_finish(&u->tree, e);
}

int unpack_archive(const char *archive, const char *dir, bool strip_top,
		   const struct tar_limits *limits, const struct run *run, struct err *e)
{
	struct unpacker u = {.strip_top = strip_top, .tree = {.top = -1}};
	struct tar_limits l = limits ? *limits : (struct tar_limits){0};

	l.max_bytes = l.max_bytes ? l.max_bytes : DEFAULT_BYTES;
	l.max_ratio = l.max_ratio ? l.max_ratio : DEFAULT_RATIO;
	l.max_entries = l.max_entries ? l.max_entries : DEFAULT_ENTRIES;
	int rc = tar_open(archive, &l, run, &u.tar, e) < 0 || tree_open(&u.tree, dir, e) < 0 ||
				 unpack_all(&u, e) < 0
			 ? -1
			 : 0;
	tar_close(u.tar);
	tree_close(&u.tree);
	arena_release(&u.arena);
	return rc < 0 ? err_wrap(e, "archive '%s'", archive) : 0;
}
