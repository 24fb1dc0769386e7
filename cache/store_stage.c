/* Stages: directories below tmp/ that are filled and then renamed to their place, each with a lock file beside it that
 * its owner holds. */
#include <sys/file.h>

#include "base/os.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

/* The lock is tried before anything is touched, so a stage in use is never seen as dead. */
static int remove_if_dead(const char *tmp, const char *name, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *lock = path_join(&a, tmp, arena_printf(&a, "%s.lock", name));
	AUTO_FD int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", lock);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	if (fs_remove(TRUSTED, path_join(&a, tmp, name), e) < 0)
		return -1;
	if (fd >= 0)
		unlink(lock);
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

/* Until the lock is held the cleaner of another process may take the new lock file away: then a new name is tried. */
static int lock_new_stage(const char *lock, int *ret, struct err *e)
{
	AUTO_FD int fd = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	struct stat st;
	*ret = -1;
	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", lock);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
		*ret = steal_fd(&fd);
	return 0;
}

int store_stage(struct store *s, struct arena *a, const char **ret, struct err *e)
{
	for (int attempt = 0; attempt < 100; attempt++) {
		uint64_t id;
		if (os_random(&id, sizeof(id)) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot get random bytes");
		const char *path = arena_printf(a, "%s/tmp/%016llx", s->dir, (unsigned long long)id);
		const char *lock = arena_printf(a, "%s.lock", path);
		int fd;
		if (lock_new_stage(lock, &fd, e) < 0)
			return -1;
		if (fd < 0)
			continue;
		if (mkdir(path, 0755) < 0) {
			err_errno(e, ERR_SYSTEM, "cannot make '%s'", path);
			unlink(lock);
			close(fd);
			return -1;
		}
		pthread_mutex_lock(&s->mutex);
		s->stages = arena_room(&s->arena, s->stages, s->stages_count, &s->stages_cap, 8, sizeof(*s->stages));
		s->stages[s->stages_count++] = (struct stage){arena_strdup(&s->arena, path), fd};
		pthread_mutex_unlock(&s->mutex);
		*ret = path;
		return 0;
	}
	return err_set(e, ERR_SYSTEM, "cannot make a stage below '%s/tmp': every name is taken", s->dir);
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
	(void)!fs_remove(TRUSTED, stage, ERR_IGNORED); /* the next open tries again: nobody holds its lock then */
	store_forget_stage(s, stage);
}
