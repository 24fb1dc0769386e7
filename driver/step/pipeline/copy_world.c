#include "step/pipeline/make_world.h"

#include "base/os.h"
#include "base/sys/fs.h"
#include "core/world/world.h"

static int taken(const char *to, const char *what, struct err *e)
{
	err_set(e, ERR_USAGE, "'%s' already exists, and %s", to, what);
	return err_hint(e, "remove it, or name another directory with --copy");
}

/* `path` with the links in it followed, as far as it is there. A link to nothing is an error. */
static int follow(const char *path, struct arena *a, const char **ret, struct err *e)
{
	const char *top = path, *rest;
	char *real;
	struct stat st;

	while (!(real = realpath(top, NULL)) && strcmp(top, "/") != 0) {
		if (lstat(top, &st) == 0) {
			err_set(e, ERR_USAGE, "'%s' is a link that leads nowhere", top);
			return err_hint(e, "remove it, or name another directory with --copy");
		}

		top = path_dir(a, top);
	}

	rest = path + strlen(top);
	rest += strspn(rest, "/");
	const char *start = real ? real : top;
	*ret = *rest ? path_join(a, start, rest) : arena_strdup(a, start);
	free(real);
	return 0;
}

int world_copy_place(const char *to, const char *store_dir, struct arena *a, struct err *e)
{
	const char *copy, *store;

	if (follow(to, a, &copy, e) < 0 || follow(store_dir, a, &store, e) < 0)
		return -1;
	if (strcmp(copy, store) != 0 && !path_below(copy, store))
		return 0;
	err_set(e, ERR_USAGE, "'%s' is in the store '%s'", to, store_dir);
	return err_hint(e, "name a directory of your own with --copy");
}

int world_copy_look(const char *to, const char *name, const char *key, struct arena *a,
		    bool *ret_there, struct err *e)
{
	struct world_stamp stamp;

	if (!fs_exists(TRUSTED, to)) {
		*ret_there = false;
		return 0;
	}

	int stamped = world_read_stamp(to, a, &stamp, e);
	if (stamped < 0)
		return -1;
	if (!stamped)
		return taken(to, "is not a copy of a world", e);
	if (strcmp(stamp.name, name) != 0)
		return taken(to, arena_printf(a, "is a copy of the world '%s'", stamp.name), e);
	if (key && strcmp(stamp.key, key) != 0)
		return taken(to, "is a copy of this world with other packages", e);
	*ret_there = true;
	return 0;
}

/* Needs the lock: an incomplete copy was left by a kill. */
static int copy(const char *from, const char *to, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *part = arena_printf(&a, "%s.ptbuild-part", to);

	if (fs_remove(TRUSTED, part, e) < 0 || fs_copy_tree(from, part, e) < 0)
		return -1;
	if (run_check(run, e) == 0 && fs_sync_tree(part, e) == 0 && fs_rename(part, to, e) == 0)
		return 0;
	if (fs_remove(TRUSTED, part, ERR_IGNORED) < 0)
		return err_hint(e, "remove the incomplete copy '%s'", part);
	return -1;
}

struct comparison {
	const char *to;
	struct arena *a;
	struct world_copied *copied;
};

static int compare_one(const char *rel, const struct stat *st, void *user, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct comparison *c = user;
	struct stat has;

	(void)e;
	if (lstat(path_join(&a, c->to, rel), &has) == 0 && has.st_mode == st->st_mode &&
	    has.st_size == st->st_size && has.st_mtim.tv_sec == st->st_mtim.tv_sec)
		return 0;
	if (!c->copied->differ++)
		c->copied->first = arena_strdup(c->a, rel);
	return 0;
}

int world_copy(const char *from, const char *to, const char *name, const char *key,
	       const struct run *run, struct arena *a, struct world_copied *ret, struct err *e)
{
	struct world_copied copied = {0};
	const char *lock_path = arena_printf(a, "%s.ptbuild-lock", to);
	AUTO_LOCK struct lock lock = LOCK_NONE;

	if (fs_mkdirs(TRUSTED, path_dir(a, to), e) < 0 ||
	    lock_acquire(&lock, lock_path, false, run, e) < 0)
		return -1;
	/* the previous owner of the lock may have created it */
	int rc = world_copy_look(to, name, key, a, &copied.there, e);
	if (rc == 0 && copied.there) {
		rc = fs_walk(TRUSTED, from, compare_one, &(struct comparison){to, a, &copied}, e);
	} else if (rc == 0) {
		log_stage(run->log, "copying it to %s", to);
		rc = copy(from, to, run, e);
		log_status_end(run->log);
	}

	/* while it is held: who waits for it opens a new one */
	if (unlink(lock_path) < 0 && rc == 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot remove '%s'", lock_path);
	if (rc == 0)
		*ret = copied;
	return rc;
}
