#include "step/pipeline/pipeline_world.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "cache/world.h"
#include "step/pipeline/pipeline_world_files.h"
#include "step/world/world_tree.h"

/* Where it is, with the shared lock; else *ret NULL and none. Whoever makes it is waited for. */
static int find_and_hold(const struct world_request *q, const char *key, const struct run *run, struct arena *a,
			 const char **ret, struct lock *hold, struct err *e)
{
	AUTO_LOCK struct lock lock = LOCK_NONE;
	if (store_world_hold(q->store, key, run, &lock, e) < 0 ||
	    store_world_use(q->store, key, !q->look, a, ret, e) < 0)
		return -1;
	if (*ret) {
		*hold = lock;
		lock = LOCK_NONE;
	}
	return 0;
}

/* What was unpacked is what the locks say, where they say it. */
static int check_trees(const struct world *w, const struct world_tree *t, struct err *e)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct world_lock *l = &w->pieces[i].lock;
		if (!l->tree || strcmp(l->tree, t->parts[i]) == 0)
			continue;
		err_set(e, ERR_INTEGRITY, "part '%s' unpacked to the tree %s, and its lock says %s", l->part,
			t->parts[i], l->tree);
		return err_hint(e, "another ptbuild made the lock: use that one, or 'ptbuild world lock %s'", l->part);
	}
	return 0;
}

static bool has_toolkit(const struct world *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->pieces[i].part->kind, "toolkit") == 0)
			return true;
	return false;
}

static int fill(const struct world_request *q, const struct world_files *files, const char *stage,
		const struct run *run, struct arena *a, struct world_tree *ret, struct err *e)
{
	struct world_tree_request t = {.world = files->world,
				       .files = files->paths,
				       .dir = path_join(a, stage, STORE_WORLD_ROOT),
				       .jobs = q->jobs,
				       .compiled = path_join(a, stage, "compiled")};
	if (has_toolkit(files->world) && toolkit_rules_load(q->profiles, a, &t.toolkits, e) < 0)
		return -1;
	if (mkdir(t.dir, 0755) < 0 || mkdir(t.compiled, 0755) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", t.dir);
	if (world_tree_make(&t, run, a, ret, e) < 0 || fs_remove(TRUSTED, t.compiled, e) < 0)
		return -1;
	return check_trees(files->world, ret, e);
}

/* The caller has the key's lock alone. */
static int make(const struct world_request *q, const struct world_files *files, const struct run *run, struct arena *a,
		struct err *e)
{
	const struct world *w = files->world;
	struct world_tree tree = {0};
	const char *stage, *root;
	log_stage(run->log, "making the world %s for %s", w->name, w->platform);
	if (store_stage(q->store, a, &stage, e) < 0)
		return -1;
	int rc = fill(q, files, stage, run, a, &tree, e);
	if (rc == 0) {
		const struct store_world facts = {.key = w->key,
						  .name = w->name,
						  .platform = w->platform,
						  .tree = tree.digest,
						  .bytes = tree.bytes};
		rc = store_world_publish(q->store, &facts, &tree.manifest, stage, a, &root, e);
	}
	if (rc < 0)
		store_drop_stage(q->store, stage);
	buf_release(&tree.manifest);
	log_status_end(run->log);
	return rc;
}

/* Made by this process, or by another one meanwhile. */
static int make_once(const struct world_request *q, const struct world_files *files, const struct run *run,
		     struct arena *a, bool *ret_made, struct err *e)
{
	AUTO_LOCK struct lock lock = LOCK_NONE;
	const char *dir = NULL;
	if (store_lock(q->store, STORE_WORLD, files->world->key, run, &lock, e) < 0 ||
	    store_world_use(q->store, files->world->key, true, a, &dir, e) < 0)
		return -1;
	if (dir)
		return 0;
	*ret_made = true;
	return make(q, files, run, a, e);
}

int world_ensure(const struct world_request *q, const struct run *run, struct arena *a, struct world_result *ret,
		 struct err *e)
{
	struct world_result r = {.world = q->world, .key = q->world->key, .use = LOCK_NONE};
	struct world_files files = {0};
	double start = log_seconds();
	bool made = false;
	if (find_and_hold(q, r.key, run, a, &r.dir, &r.use, e) < 0)
		return -1;
	if (!r.dir) {
		if (world_files(q, run, a, &files, e) < 0)
			return err_wrap(e, "world '%s'", q->world->name);
		r.world = files.world;
		r.key = files.world->key;
		r.drift = files.drift;
		r.fetched = files.fetched;
	}
	/* Between the two locks garbage collection could take it, if the clock is wrong. */
	for (int attempt = 0; !r.dir && attempt < 3; attempt++)
		if (make_once(q, &files, run, a, &made, e) < 0 ||
		    find_and_hold(q, r.key, run, a, &r.dir, &r.use, e) < 0)
			return -1;
	if (!r.dir)
		return err_set(e, ERR_SYSTEM, "the world '%s' disappears as soon as it is made", q->world->name);
	r.hit = !made;
	r.seconds = log_seconds() - start;
	*ret = r;
	return 0;
}
