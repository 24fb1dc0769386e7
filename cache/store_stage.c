#include "base/os.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

/* Stages: directories below tmp/ that are filled and then renamed to
 * their place, each with a lock file beside it that its owner holds. */
/* The lock is tried before anything is touched, so a stage in use is never seen as dead. */
static int remove_if_dead(const char *tmp, const char *name, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	const char *path = path_join(&a, tmp, arena_printf(&a, "%s.lock", name));
	bool got = false;

	if (lock_try(&lock, path, false, &got, e) < 0 ||
	    (got && fs_remove(TRUSTED, path_join(&a, tmp, name), e) < 0))
		return -1;
	if (got)
		unlink(path);
	return 0;
}

int store_remove_dead_stages(const char *dir, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *tmp = path_join(&a, dir, "tmp");
	struct strlist names = {0};

	if (fs_list(TRUSTED, tmp, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (run_check(run, e) < 0)
			return -1;
		const char *name = names.items[i];
		if (path_has_suffix(name, ".lock"))
			name = arena_strndup(&a, name, strlen(name) - strlen(".lock"));
		if (remove_if_dead(tmp, name, e) < 0)
			return -1;
	}

	return 0;
}

int store_stage(struct store *s, struct arena *a, const char **ret, struct err *e)
{
	/* The cleaner of another process may have the new lock: then a new name is tried. */
	for (int attempt = 0; attempt < 100; attempt++) {
		AUTO_LOCK struct lock held = LOCK_NONE;
		bool got = false;
		uint64_t id;
		if (os_random(&id, sizeof(id)) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot get random bytes");
		const char *path =
			arena_printf(a, "%s/tmp/%016llx", s->dir, (unsigned long long)id);
		const char *lock = arena_printf(a, "%s.lock", path);
		if (lock_try(&held, lock, false, &got, e) < 0)
			return -1;
		if (!got)
			continue;
		if (mkdir(path, 0755) < 0) {
			err_errno(e, ERR_SYSTEM, "cannot make '%s'", path);
			unlink(lock);
			return -1;
		}

		pthread_mutex_lock(&s->mutex);
		s->stages = arena_room(&s->arena, s->stages, s->stages_count, &s->stages_cap, 8,
				       sizeof(*s->stages));
		s->stages[s->stages_count++] =
			(struct stage){arena_strdup(&s->arena, path), steal_fd(&held.fd)};
		pthread_mutex_unlock(&s->mutex);
		*ret = path;
		return 0;
	}

	return err_set(e, ERR_SYSTEM, "cannot make a stage below '%s/tmp': every name is taken",
		       s->dir);
}

void store_forget_stage(struct store *s, const char *stage)
{
	struct stage found = {NULL, -1};

	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < s->stages_count && !found.path; i++) {
		if (strcmp(s->stages[i].path, stage) != 0)
			continue;
		found = s->stages[i];
		s->stages[i] = s->stages[--s->stages_count];
	}

	pthread_mutex_unlock(&s->mutex);
	if (!found.path)
		return;
	AUTO_ARENA struct arena a = {0};
	unlink(arena_printf(&a, "%s.lock", found.path));
	close(found.fd);
}

void store_drop_stage(struct store *s, const char *stage)
{
	/* the next open tries again: nobody holds its lock then */
	(void)!fs_remove(TRUSTED, stage, ERR_IGNORED);
	store_forget_stage(s, stage);
}
