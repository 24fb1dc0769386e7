#include <poll.h>

#include "base/os.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

enum { MAX_THREADS = 16, STATUS_MS = 100 };

struct verifier {
	struct store *s;
	const struct store_object *objects;
	struct err **wrong; /* one for each object, NULL: fine */
	size_t count;
	_Atomic size_t next, done;
	struct run run;
	int stop; /* the other end of run.cancel_fd: closed, it stops all; -1: closed already */
};

static void *work(void *user)
{
	struct verifier *v = user;
	for (size_t i; (i = atomic_fetch_add(&v->next, 1)) < v->count;) {
		struct err *e = calloc(1, sizeof(*e));
		if (!e)
			abort();
		if (store_verify(&v->objects[i], &v->run, e) < 0) {
			v->wrong[i] = e;
			e = NULL;
		}
		free(e);
		atomic_fetch_add(&v->done, 1);
	}
	return NULL;
}

static unsigned start(struct verifier *v, pthread_t *ids, unsigned wanted)
{
	unsigned started = 0;
	while (started < wanted && thread_start(&ids[started], work, v) == 0)
		started++;
	return started;
}

/* Checked again under the lock: somebody may have replaced it since. */
static int move_away(struct store *s, const struct store_object *o, const struct run *run, enum store_fate *ret,
		     struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	struct err again = {0};
	bool got = false;
	if (lock_try(&lock, store_lock_path(s, o->kind, o->key, &a), false, &got, e) < 0)
		return -1;
	if (!got) {
		*ret = STORE_WRONG_BUSY;
		return 0;
	}
	*ret = STORE_WRONG_MOVED;
	if (store_verify(o, run, &again) == 0 || !fs_exists(TRUSTED, o->path))
		return 0;
	if (again.kind != ERR_INTEGRITY) {
		*e = again;
		return -1;
	}
	return store_quarantine(s, o, e);
}

static int collect(struct verifier *v, bool move, const struct run *run, struct arena *a, struct store_checks *ret,
		   struct err *e)
{
	struct store_checks r = {.items = arena_array(a, v->count + 1, sizeof(*r.items))};
	for (size_t i = 0; i < v->count; i++) {
		const struct store_object *o = &v->objects[i];
		const struct err *why = v->wrong[i];
		if (why && why->kind == ERR_INTERRUPTED) {
			*e = *why;
			return -1;
		}
		if (why && !fs_exists(TRUSTED, o->path))
			continue;
		r.checked++;
		r.bytes += o->bytes;
		if (!why)
			continue;
		struct store_check *k = &r.items[r.wrong++];
		*k = (struct store_check){.object = *o, .why = *why};
		if (move && why->kind == ERR_INTEGRITY && move_away(v->s, o, run, &k->fate, e) < 0)
			return -1;
	}
	*ret = r;
	return 0;
}

int store_verify_all(struct store *s, bool move, unsigned threads, const struct run *run, struct arena *a,
		     struct store_checks *ret, struct err *e)
{
	struct store_object *objects;
	struct log quiet = {.level = LOG_QUIET, .fd = run->log->fd};
	pthread_t ids[MAX_THREADS];
	int ends[2];
	if (run_check(run, e) < 0)
		return -1;
	if (os_pipe(ends) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make a pipe");
	AUTO_FD int cancel = ends[0];
	struct verifier v = {.s = s, .run = {.log = &quiet, .cancel_fd = cancel}, .stop = ends[1]};
	if (store_list(s, a, &objects, &v.count, e) < 0) {
		close(v.stop);
		return -1;
	}
	v.objects = objects;
	v.wrong = arena_array(a, v.count + 1, sizeof(struct err *));
	unsigned wanted = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
	unsigned started = start(&v, ids, wanted < v.count ? wanted : (unsigned)v.count);
	if (started == 0)
		(void)work(&v);
	int pause = 1;
	for (size_t done; (done = atomic_load(&v.done)) < v.count; pause = pause < STATUS_MS ? pause * 2 : STATUS_MS) {
		/* A signal may be pending for this thread alone, so the others have a descriptor of their own. */
		if (v.stop >= 0 && run_cancelled(run)) {
			close(v.stop);
			v.stop = -1;
		}
		log_status(run->log, "checking: %zu of %zu objects", done, v.count);
		(void)poll(NULL, 0, pause);
	}
	log_status_end(run->log);
	for (unsigned i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
	if (v.stop >= 0)
		close(v.stop);
	int rc = collect(&v, move, run, a, ret, e);
	for (size_t i = 0; i < v.count; i++)
		free(v.wrong[i]);
	return rc;
}
