#include "step/compile/build.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/root/sandbox.h"

#define LOCK SANDBOX_PLACE_OWN "/lock"
#define PROBE SANDBOX_PLACE_OWN "/probe"
#define WAITING SANDBOX_PLACE_OWN "/trees" /* trees of homes on other file systems */
#define HOME_OF ".home"                    /* beside each of them: the path of its home */
#define TREE_FILE "tree.json"              /* by which a tree in the store is found */
#define PATH_BYTES 8192

/* Made for each build, beside its tree. */
static const char *const empty_dirs[] = {"home", "tmp"};

static bool is_own_dir(const char *path)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st;

	return *path == '/' && fs_stat(path_dir(&a, path), path_base(path), &st) == 0 &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* Where a tree waits below the place. */
static const char *waiting_of(const char *home, struct arena *a)
{
	char digest[DIGEST_HEX_LEN + 1];
	digest_data(home, strlen(home), digest);
	return arena_printf(a, WAITING "/%.16s", digest);
}

static int failed(const char *what, const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	return err_errno(e, ERR_SYSTEM, "cannot %s '%s'", what, path_join(&a, top, rel));
}

/* ---- moving ---- */

/* By rename, name by name: what was moved before a kill is there already. */
static int move_names(const char *from, const char *to, struct err *e)
{
	for (size_t i = 0; i < sandbox_place_names_count; i++) {
		const char *name = sandbox_place_names[i];
		if (!fs_exists(from, name))
			continue;
		if (fs_remove(to, name, e) < 0)
			return -1;
		if (fs_move(from, name, to, name) < 0)
			return failed("move a build tree to", to, name, e);
	}

	return 0;
}

static int remove_names(const char *dir, struct err *e)
{
	for (size_t i = 0; i < sandbox_place_names_count; i++)
		if (fs_remove(dir, sandbox_place_names[i], e) < 0)
			return -1;
	return 0;
}

/* Whether no rename leads from the place into the
 * home: two mounts of one file system are two as well. */
static int look_apart(const char *top, const char *home, bool *ret, struct err *e)
{
	static const char name[] = SANDBOX_PLACE_OWN "-probe";

	if (fs_write(top, PROBE, "", 0, 0644, e) < 0)
		return -1;
	bool moved = fs_move(top, PROBE, home, name) == 0;
	if (!moved && errno != EXDEV)
		return failed("move a file to", home, name, e);
	*ret = !moved;
	return moved ? fs_remove(home, name, e) : fs_remove(top, PROBE, e);
}

/* Sets where the tree of w->home rests, and makes that. */
static int find_rest(struct work_tree *w, struct arena *a, struct err *e)
{
	if (look_apart(w->top, w->home, &w->apart, e) < 0)
		return -1;
	w->rest = w->home;
	if (!w->apart)
		return 0;
	const char *waiting = waiting_of(w->home, a),
		   *home_of = arena_printf(a, "%s" HOME_OF, waiting);
	w->rest = path_join(a, w->top, waiting);
	if (fs_mkdirs(w->top, waiting, e) < 0)
		return -1;
	return fs_write(w->top, home_of, w->home, strlen(w->home), 0600, e);
}

/* Out of the place. A home on another file system gets the description of its tree. */
static int move_out(const struct work_tree *w, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	for (size_t i = 0; i < ARRAY_LEN(empty_dirs); i++)
		if (fs_remove(w->top, empty_dirs[i], e) < 0)
			return -1;
	if (move_names(w->top, w->rest, e) < 0)
		return -1;
	if (!w->apart || !fs_exists(w->rest, TREE_FILE))
		return 0;
	return fs_copy(w->rest, TREE_FILE, path_join(&a, w->home, TREE_FILE), e);
}

static int forget(const char *top, struct err *e)
{
	return fs_remove(top, SANDBOX_PLACE_TREE, e);
}

/* ---- the place ---- */

static int check(const char *top, struct arena *a, struct err *e)
{
	struct sandbox_place p;

	sandbox_place_look(top, a, &p);
	if (p.fine)
		return 0;
	err_set(e, ERR_POLICY, "the build cannot lie where the sandbox's paths are: %s", p.why);
	return err_hint(e, "%s", p.fix);
}

/* The marker comes with its directory: of two who make it one is first, and both have it. */
static int mark(const char *top, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *fresh = arena_printf(&a, SANDBOX_PLACE_OWN ".new-%ld", (long)getpid());
	const char *marker = path_join(&a, fresh, path_base(SANDBOX_PLACE_MARKER));

	if (fs_exists(top, SANDBOX_PLACE_OWN))
		return 0;
	if (fs_mkdirs(top, fresh, e) < 0)
		return -1;
	int rc = fs_write(top, marker, SANDBOX_PLACE_TEXT, strlen(SANDBOX_PLACE_TEXT), 0644, e);
	if (rc == 0 && fs_move(top, fresh, top, SANDBOX_PLACE_OWN) == 0)
		return 0;
	if (rc == 0 && errno != ENOTEMPTY && errno != EEXIST)
		rc = failed("make", top, SANDBOX_PLACE_OWN, e);
	(void)!fs_remove(top, fresh, ERR_IGNORED);
	return rc;
}

/* Looked at before anything is written, and again with the lock. */
static int enter(struct work_tree *w, const struct run *run, struct arena *a, struct err *e)
{
	const char *top = w->top;

	if (check(top, a, e) < 0 || fs_mkdirs(path_dir(a, top), path_base(top), e) < 0)
		return -1;
	if (check(top, a, e) < 0 || mark(top, e) < 0)
		return -1;
	if (lock_acquire(&w->lock, path_join(a, top, LOCK), false, run, e) < 0)
		return -1;
	if (check(top, a, e) == 0)
		return 0;
	lock_release(&w->lock);
	return -1;
}

/* Reads the home of the tree in `top`; NULL: it holds no tree. */
static int read_home(const char *top, struct arena *a, const char **ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};

	*ret = NULL;
	if (!fs_exists(top, SANDBOX_PLACE_TREE))
		return 0;
	if (fs_read(top, SANDBOX_PLACE_TREE, PATH_BYTES, &text, e) < 0)
		return -1;
	*ret = arena_strdup(a, buf_cstr(&text));
	return 0;
}

/* What a killed build left. */
static int clear(const char *top, const char *home, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct work_tree before = {.top = top, .home = home, .lock = LOCK_NONE};

	if (!is_own_dir(home)) {
		log_info(run->log,
			 "removing from '%s' the build tree of '%s', which does not exist any more",
			 top, home);
		return remove_names(top, e) < 0 ? -1 : forget(top, e);
	}

	log_verbose(run->log, "the build tree that was left in '%s' goes back to '%s'", top, home);
	if (find_rest(&before, &a, e) < 0 || move_out(&before, e) < 0)
		return -1;
	return forget(top, e);
}

/* Removes files that a kill left half written, and waiting trees whose homes are gone, like the
 * store's gc. */
static int sweep(const char *top, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};

	if (fs_sweep(top, "", e) < 0 || fs_sweep(top, SANDBOX_PLACE_OWN, e) < 0 ||
	    fs_sweep(top, WAITING, e) < 0)
		return -1;
	if (!fs_exists(top, WAITING))
		return 0;
	if (fs_list(top, WAITING, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		AUTO_BUF struct buf home = {0};
		if (path_has_suffix(names.items[i], HOME_OF))
			continue;
		const char *tree = path_join(&a, WAITING, names.items[i]),
			   *of = arena_printf(&a, "%s" HOME_OF, tree);
		if (fs_read(top, of, PATH_BYTES, &home, ERR_IGNORED) == 0 &&
		    is_own_dir(buf_cstr(&home)))
			continue;
		if (fs_remove(top, tree, e) < 0 || fs_remove(top, of, e) < 0)
			return -1;
	}

	return 0;
}

/* ---- taking it and giving it back ---- */

/* A home on another file system has only the description. A tree in it, from a time when both were
 * on one file system, would have to be copied, and is built again instead. */
static int move_in(const struct work_tree *w, const struct run *run, struct err *e)
{
	if (!w->apart)
		return move_names(w->home, w->top, e);
	if (move_names(w->rest, w->top, e) < 0)
		return -1;
	if (fs_exists(w->home, "src"))
		log_info(run->log,
			 "the tree in '%s' is on another file system than '%s': building from "
			 "scratch",
			 w->home, w->top);
	return remove_names(w->home, e);
}

static int move_to_place(struct work_tree *w, const struct run *run, struct arena *a, struct err *e)
{
	const char *before;

	if (read_home(w->top, a, &before, e) < 0)
		return -1;
	const bool is_other = before && strcmp(before, w->home) != 0;
	if (is_other && clear(w->top, before, run, e) < 0)
		return -1;
	if (sweep(w->top, e) < 0 || find_rest(w, a, e) < 0)
		return -1;
	if (fs_write(w->top, SANDBOX_PLACE_TREE, w->home, strlen(w->home), 0600, e) < 0)
		return -1;
	if (move_in(w, run, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(empty_dirs); i++)
		if (fs_remove(w->top, empty_dirs[i], e) < 0 ||
		    fs_mkdirs(w->top, empty_dirs[i], e) < 0)
			return -1;
	return 0;
}

int work_tree_take(const char *top, const char *home, const struct run *run, struct arena *a,
		   struct work_tree *ret, struct err *e)
{
	struct work_tree w = {.dir = home, .rest = home, .home = home, .lock = LOCK_NONE};

	if (top) {
		w.top = w.dir = top;
		if (enter(&w, run, a, e) < 0)
			return -1;
		if (move_to_place(&w, run, a, e) < 0) {
			lock_release(&w.lock);
			return err_wrap(e, "cannot work in '%s'", top);
		}
	}

	*ret = w;
	return 0;
}

int work_tree_give_back(struct work_tree *w, struct err *e)
{
	int rc = 0;

	if (w->top)
		rc = move_out(w, e) < 0 ? -1 : forget(w->top, e);
	work_tree_release(w);
	return rc;
}

int work_tree_remove(struct work_tree *w, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	int rc = 0;

	if (w->top && (remove_names(w->top, e) < 0 || forget(w->top, e) < 0))
		rc = -1;
	if (rc == 0 && w->apart) {
		const char *waiting = waiting_of(w->home, &a);
		rc = fs_remove(w->top, waiting, e) < 0 ||
				     fs_remove(w->top, arena_printf(&a, "%s" HOME_OF, waiting), e) <
					     0
			     ? -1
			     : 0;
	}

	work_tree_release(w);
	return rc == 0 ? fs_remove(path_dir(&a, w->home), path_base(w->home), e) : rc;
}

void work_tree_release(struct work_tree *w)
{
	lock_release(&w->lock);
	w->top = NULL;
}

void work_tree_settle(const char *top, const struct run *run)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	struct sandbox_place p;
	const char *home;
	bool got = false;

	sandbox_place_look(top, &a, &p);
	if (!p.fine || !fs_exists(top, SANDBOX_PLACE_TREE))
		return;
	if (lock_try(&lock, path_join(&a, top, LOCK), false, &got, ERR_IGNORED) == 0 && got &&
	    read_home(top, &a, &home, ERR_IGNORED) == 0 && home)
		(void)!clear(top, home, run, ERR_IGNORED);
}
