#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

static int64_t nanoseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

void store_print_stat(const char *rel, const struct stat *st, struct buf *ret)
{
	buf_printf(ret, "\n%s %o %llu %lld %lld %lld", rel, st->st_mode & S_IFMT,
		   (unsigned long long)st->st_ino, (long long)st->st_size,
		   (long long)nanoseconds(&st->st_mtim), (long long)nanoseconds(&st->st_ctim));
}

/* A digest of what stat(2) shows of an object; of a
 * world two, of its directories and of all its paths. */
#define PRINT_LEN (2 * DIGEST_HEX_LEN + 1)

static bool print_world(const char *object, bool whole, char ret[PRINT_LEN])
{
	for (size_t i = 0; i <= whole; i++) {
		AUTO_BUF struct buf text = {0};
		buf_printf(&text, "%s\n", object);
		if (!store_world_print(object, i == 1, &text))
			return false;
		digest_data(text.data, text.len, ret + i * DIGEST_HEX_LEN);
	}

	return true;
}

/* The digest of the object's path, its manifest, and what stat(2) shows of a written file.
 * False when something cannot be read: then the object is hashed, which finds out why. */
static bool fingerprint(const char *kind, const char *object, bool whole, char ret[PRINT_LEN])
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};

	if (strcmp(kind, STORE_WORLD) == 0)
		return print_world(object, whole, ret);
	buf_printf(&text, "%s\n", object);
	size_t start = text.len;
	if (fs_read(TRUSTED, path_join(&a, object, STORE_MANIFEST), STORE_MANIFEST_MAX, &text,
		    ERR_IGNORED) < 0)
		return false;
	AUTO_JSON json_t *doc = json_loadb(text.data + start, text.len - start, 0, NULL);
	const json_t *row;
	size_t i;
	json_array_foreach(json_object_get(doc, "files"), i, row)
	{
		const char *rel = json_member(row, "path");
		struct stat st;
		if (!rel || !path_is_safe_relative(rel) ||
		    lstat(path_join(&a, object, rel), &st) < 0)
			return false;
		store_print_stat(rel, &st, &text);
	}

	digest_data(text.data, text.len, ret);
	return i > 0;
}

static bool is_stamped(const struct store *s, const char *kind, const char *key, const char *print)
{
	AUTO_ARENA struct arena a = {0};
	char have[PRINT_LEN];
	ssize_t len = (ssize_t)strlen(print);
	AUTO_FD int fd = open(store_stamp_path(s, kind, key, &a),
			      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd >= 0 && fs_read_at(fd, have, (size_t)len, 0) == len &&
	       memcmp(have, print, (size_t)len) == 0;
}

static bool is_bad(struct store *s, const char *object)
{
	pthread_mutex_lock(&s->mutex);
	bool found = strlist_contains(&s->bad, object);
	pthread_mutex_unlock(&s->mutex);
	return found;
}

void store_stamp(struct store *s, const struct store_object *o)
{
	const char *object = o->path;
	char print[PRINT_LEN];

	/* Another object is at that path now. */
	pthread_mutex_lock(&s->mutex);
	for (size_t i = s->bad.count; i-- > 0;)
		if (strcmp(s->bad.items[i], object) == 0)
			s->bad.items[i] = s->bad.items[--s->bad.count];
	pthread_mutex_unlock(&s->mutex);
	if (fingerprint(o->kind, object, true, print)) {
		/* No sync and no rename: half a stamp is another text, and costs a hash. */
		AUTO_ARENA struct arena a = {0};
		AUTO_FD int fd = open(store_stamp_path(s, o->kind, o->key, &a),
				      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (fd >= 0)
			(void)!fs_write_all(fd, print, strlen(print), "stamp", ERR_IGNORED);
	}
}

/* A fallback store never stops a run: what it lacks is made or fetched. */
static int refuse(struct store *s, const char *object, struct err *e)
{
	bool own = path_below(object, s->dir) != NULL;

	if (e->kind == ERR_INTERRUPTED || (e->kind != ERR_INTEGRITY && own))
		return -1;
	if (!is_bad(s, object)) {
		pthread_mutex_lock(&s->mutex);
		strlist_add(&s->bad, &s->arena, object);
		pthread_mutex_unlock(&s->mutex);
		log_warn(s->run.log, "ignored: %s", e->msg);
	}

	err_clear(e);
	return 0;
}

static int hash(struct store *s, const struct store_object *o, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (strcmp(o->kind, STORE_WORLD) == 0)
		log_info(s->run.log, "checking all files of world %.12s", o->key);
	if (store_verify(o, &s->run, e) < 0) {
		(void)unlink(store_stamp_path(s, o->kind, o->key, &a));
		return refuse(s, o->path, e);
	}

	store_stamp(s, o);
	return 1;
}

int store_is_usable(struct store *s, const struct store_object *o, enum store_look look,
		    struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *object = o->path;
	bool world = strcmp(o->kind, STORE_WORLD) == 0;
	const char *manifest = path_join(&a, object, world ? STORE_WORLD_FACTS : STORE_MANIFEST);
	char print[PRINT_LEN];
	struct stat st;

	if (stat(manifest, &st) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		err_errno(e, ERR_SYSTEM, "cannot look for '%s'", manifest);
		return refuse(s, object, e);
	}

	/* Who makes a world has its lock and asks again:
	 * another process may have made it meanwhile. */
	if (is_bad(s, object) && !(world && path_below(object, s->dir)))
		return 0;
	if (look == STORE_LOOK_FACTS) {
		if (store_world_facts(o->key, object, e) == 0)
			return 1;
		if (e->kind == ERR_SYSTEM) /* only reported: nothing of it is used */
			e->kind = ERR_INTEGRITY;
		return refuse(s, object, e);
	}

	if (fingerprint(o->kind, object, look == STORE_LOOK_WHOLE, print) &&
	    is_stamped(s, o->kind, o->key, print))
		return 1;
	return hash(s, o, e);
}
