#include "step/pipeline/make_world.h"

#include "base/sys/fs.h"
#include "cache/store.h"
#include "step/fetch/fetch_place.h"
#include "step/lock/lock_make.h"
#include "step/world/world_tree.h"

/* Small files: a connection waits more than it carries. */
enum { PARALLEL = 16 };

/* The sources of a world, and of each entry the one
 * that it is: two parts may have the same file. */
struct wanted {
	struct fetch_source *sources;
	size_t count;
	size_t **of; /* for each piece, for each entry: an index into sources */
};

static struct fetch_source source_of(const struct world_lock *l, const struct world_entry *f,
				     struct arena *a)
{
	struct fetch_source s = {
		.name = path_base(f->place), .sha256 = f->sha256, .max_bytes = f->size};

	switch (f->kind) {
	case WORLD_DEB:
		strlist_addf(&s.urls, a, "deb:%s/%s", l->archive, f->place);
		break;
	case WORLD_WHEEL:
		strlist_addf(&s.urls, a, "wheel:%s==%s/%s", f->name, f->version, f->place);
		break;
	case WORLD_FILE:
		strlist_ref(&s.urls, a, f->place);
		break;
	}

	return s;
}

static size_t add_source(struct wanted *w, const struct fetch_source *s)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->sources[i].sha256, s->sha256) == 0)
			return i;
	w->sources[w->count] = *s;
	return w->count++;
}

static struct wanted list_sources(const struct world *w, struct arena *a)
{
	size_t max = 1;

	for (size_t i = 0; i < w->count; i++)
		max += w->pieces[i].lock.count;
	struct wanted out = {.sources = arena_array(a, max, sizeof(*out.sources)),
			     .of = arena_array(a, w->count + 1, sizeof(*out.of))};
	for (size_t i = 0; i < w->count; i++) {
		const struct world_lock *l = &w->pieces[i].lock;
		out.of[i] = arena_array(a, l->count + 1, sizeof(*out.of[i]));
		for (size_t k = 0; k < l->count; k++) {
			const struct fetch_source s = source_of(l, &l->entries[k], a);
			out.of[i][k] = add_source(&out, &s);
		}
	}

	return out;
}

/* A world on the way: what is asked for, and what was found. */
struct making {
	const struct world_request *q;
	const struct run *run;
	struct arena *arena;
	struct world_files files;
};

static int fetch(struct making *m, struct wanted *files, struct err *e)
{
	const struct world_request *q = m->q;
	struct fetch_stats *stats = &m->files.fetched;
	struct fetch_options o = q->fetch;
	struct fetch_stats now = {0};

	o.parallel = o.parallel ? o.parallel : PARALLEL;
	/* Of hundreds of files that --offline forbids, one line is enough: the error's. */
	struct log quiet = {.level = LOG_QUIET, .fd = m->run->log->fd};
	struct run quietly = *m->run;
	if (o.offline)
		quietly.log = &quiet;
	if (fetch_all(&(struct fetcher){q->store, &o, &quietly, m->arena}, files->sources,
		      files->count, &now, e) < 0) {
		if (o.offline && e->kind == ERR_NETWORK)
			return err_hint(e, "run the same once without --offline");
		return -1;
	}

	stats->downloaded += now.downloaded;
	stats->from_store = now.from_store;
	stats->bytes += now.bytes;
	stats->seconds += now.seconds;
	return 0;
}

uint64_t world_missing(struct store *store, const struct world *w, struct arena *a,
		       struct strlist *archives, unsigned *ret_unknown)
{
	const struct wanted files = list_sources(w, a);
	bool *seen = arena_array(a, files.count + 1, sizeof(*seen));
	uint64_t bytes = 0;

	*ret_unknown = 0;
	for (size_t i = 0; i < w->count; i++)
		for (size_t k = 0; k < w->pieces[i].lock.count; k++) {
			const size_t at = files.of[i][k];
			const struct world_lock *l = &w->pieces[i].lock;
			const struct world_entry *entry = &l->entries[k];
			if (!seen[at] && !fetch_has(store, entry->sha256)) {
				if (entry->kind == WORLD_DEB)
					strlist_once(archives, a, l->archive);
				bytes += entry->size;
				*ret_unknown += !entry->size;
			}

			seen[at] = true;
		}
	return bytes;
}

/* "deb:debian", "wheel:", or scheme and host. */
static const char *server_of(const char *place, struct arena *a)
{
	if (strncmp(place, "wheel:", 6) == 0)
		return "wheel:";
	return strncmp(place, "deb:", 4) == 0 ? arena_strndup(a, place, strcspn(place, "/"))
					      : fetch_hosts_name(place, a);
}

size_t world_places(struct store *store, const struct world *w, struct arena *a,
		    struct fetch_source **ret)
{
	const struct wanted files = list_sources(w, a);
	struct strlist servers = {0};

	*ret = arena_array(a, files.count + 1, sizeof(**ret));
	for (size_t i = 0; i < files.count; i++) {
		const char *server = server_of(files.sources[i].urls.items[0], a);
		if (strlist_contains(&servers, server) || fetch_has(store, files.sources[i].sha256))
			continue;
		(*ret)[servers.count] = files.sources[i];
		strlist_ref(&servers, a, server);
	}

	return servers.count;
}

static int refuse_drift(const struct world_lock *l, const struct strlist *gone, struct arena *a,
			struct err *e)
{
	err_set(e, ERR_NETWORK,
		"%zu package%s of '%s' no longer in the archive, and --no-drift forbids others: %s",
		gone->count, plural(gone->count), l->part, strlist_join(gone, a, ", "));
	return err_hint(e,
			"name a URL that has them (--mirror, --archive %s-snapshot=URL), or make a "
			"new lock: ptbuild world lock %s --platform %s",
			l->archive, l->part, l->platform);
}

/* The locks of a world's pieces as the archive is
 * now, and what of each must have another version. */
struct resolving {
	struct making *m;
	struct world_lock *locks;
	struct strlist *gone;
};

static int resolve_piece(const struct resolving *r, size_t piece, struct err *e)
{
	const struct world_request *q = r->m->q;
	const struct run *run = r->m->run;
	struct arena *a = r->m->arena;
	struct world_lock *locks = r->locks;
	const struct strlist *gone = &r->gone[piece];
	struct strlist *said = &r->m->files.drift;
	const struct world_piece *p = &q->world->pieces[piece];
	struct strlist addresses = {0};

	/* An address that is no archive has no packages either: that is not drift. */
	if (fetch_archive(&(struct fetcher){q->store, &q->fetch, run, a}, p->lock.archive,
			  p->lock.suite, &addresses, e) < 0)
		return err_wrap(e, "packages of '%s' cannot be had", p->part->part);
	if (q->no_drift)
		return refuse_drift(&p->lock, gone, a, e);
	const struct lock_request lock = {.run = run,
					  .part = p->part,
					  .platform = p->lock.platform,
					  .archive = p->lock.archive,
					  .addresses = &addresses,
					  .base = piece ? q->world->pieces[0].part : NULL,
					  .base_lock = piece ? &locks[0] : NULL,
					  .before = &p->lock,
					  .keyring = q->keyring};
	if (lock_make(&lock, a, &locks[piece], e) < 0)
		return err_wrap(e, "packages of '%s' have left the archive", p->part->part);
	for (size_t i = 0; i < locks[piece].count; i++) {
		const struct world_entry *f = &locks[piece].entries[i];
		if (!strlist_contains(gone, arena_printf(a, "%s %s", f->name, f->version)))
			continue;
		err_set(e, ERR_NETWORK,
			"'%s' %s cannot be had, and the archive's index has nothing newer", f->name,
			f->version);
		return err_hint(e,
				"the archive's address may be of an incomplete mirror: name "
				"another with --archive "
				"%s=URL",
				p->lock.archive);
	}

	/* What the archive has in the place of the locked packages. */
	AUTO_JSON json_t *diff = lock_compare(&p->lock, &locks[piece], a);
	const json_t *c;
	size_t i;
	json_array_foreach(json_object_get(diff, "changes"), i, c)
	{
		const char *name = json_text(c, "name"), *before = json_member(c, "before"),
			   *after = json_member(c, "after");
		strlist_addf(said, a, "%s %s %s", name, before ? before : "-", after ? after : "-");
		if (!before)
			log_warn(run->log, "drift: '%s' %s is needed now", name, after);
		else if (!after)
			log_warn(run->log, "drift: '%s' %s is needed no more", name, before);
		else
			log_warn(run->log, "drift: '%s' %s is no longer in the archive; using %s",
				 name, before, after);
	}

	return 0;
}

/* The world as the archive has it now; *ret NULL: nothing
 * of it is gone. All parts with packages are of one moment. */
static int resolve_gone(struct making *m, const struct wanted *files, const struct world **ret,
			struct err *e)
{
	struct arena *a = m->arena;
	const struct world *w = m->q->world;
	struct world_lock *locks = arena_array(a, w->count + 1, sizeof(*locks));
	struct strlist *gone = arena_array(a, w->count + 1, sizeof(*gone));
	bool any = false;

	for (size_t i = 0; i < w->count; i++) {
		const struct world_entry *other = NULL;
		locks[i] = w->pieces[i].lock;
		/* "bash 5.2", and the first that is not a Debian package. */
		for (size_t k = 0; k < locks[i].count; k++) {
			const struct world_entry *f = &locks[i].entries[k];
			if (!files->sources[files->of[i][k]].gone)
				continue;
			strlist_addf(&gone[i], a, "%s %s", f->name, f->version);
			if (f->kind != WORLD_DEB && !other)
				other = f;
		}

		if (other)
			return err_set(e, ERR_NETWORK,
				       "'%s' %s is no longer available, and only Debian packages "
				       "can be replaced",
				       other->name, other->version);
		any |= gone[i].count > 0;
	}

	const struct resolving r = {.m = m, .locks = locks, .gone = gone};
	for (size_t i = 0; any && i < w->count; i++) {
		const bool again = gone[i].count || !m->q->no_drift;
		if (locks[i].archive && again && resolve_piece(&r, i, e) < 0)
			return -1;
	}

	*ret = any ? world_with_locks(w, locks, a) : NULL;
	return 0;
}

int world_files(const struct world_request *q, struct arena *a, struct world_files *ret,
		struct err *e)
{
	struct making m = {.q = q, .run = q->run, .arena = a, .files.world = q->world};
	struct world_files *out = &m.files;
	struct wanted files = list_sources(q->world, a);

	if (fetch(&m, &files, e) < 0) {
		struct err why = {0};
		const struct world *now = NULL;
		if (e->kind != ERR_NETWORK)
			return -1;
		if (resolve_gone(&m, &files, &now, &why) < 0)
			*e = why;
		if (!now)
			return -1;
		err_clear(e);
		out->world = now;
		files = list_sources(now, a);
		if (fetch(&m, &files, e) < 0)
			return -1;
	}

	const char *const **all = arena_array(a, out->world->count + 1, sizeof(*all));
	for (size_t i = 0; i < out->world->count; i++) {
		const struct world_lock *l = &out->world->pieces[i].lock;
		const char **paths = arena_array(a, l->count + 1, sizeof(*paths));
		/* A file is known by its digest alone: that
		 * its lock gives another size is found here. */
		for (size_t k = 0; k < l->count; k++) {
			const char *path = files.sources[files.of[i][k]].path;
			struct stat st;
			if (stat(path, &st) < 0)
				return err_errno(e, ERR_SYSTEM, "cannot look at '%s'", path);
			if (l->entries[k].size && (uint64_t)st.st_size != l->entries[k].size)
				return err_set(
					e, ERR_INTEGRITY,
					"'%s' has %lld bytes, and the lock of '%s' says %llu", path,
					(long long)st.st_size, l->part,
					(unsigned long long)l->entries[k].size);
			paths[k] = path;
		}

		all[i] = paths;
	}

	out->paths = all;
	*ret = *out;
	return 0;
}

/* Sets r->dir and holds the shared lock; without the world neither. Waits for who makes it. */
static int find_and_hold(const struct making *m, struct world_result *r, struct err *e)
{
	struct store *store = m->q->store;
	AUTO_LOCK struct lock lock = LOCK_NONE;

	if (store_world_hold(store, r->key, m->run, &lock, e) < 0)
		return -1;
	const enum store_look look = m->q->look ? STORE_LOOK_DIRS : STORE_LOOK_WHOLE;
	if (store_world_find(store, r->key, look, m->arena, &r->dir, e) < 0)
		return -1;
	if (r->dir) {
		r->use = lock;
		lock = LOCK_NONE;
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

static int fill(const struct making *m, const char *stage, struct world_tree *ret, struct err *e)
{
	const struct world_files *files = &m->files;
	struct arena *a = m->arena;
	struct world_tree_request t = {.run = m->run,
				       .world = files->world,
				       .files = files->paths,
				       .dir = path_join(a, stage, STORE_WORLD_ROOT),
				       .jobs = m->q->jobs,
				       .emulation = m->q->emulation,
				       .compiled = path_join(a, stage, "compiled")};

	if (has_toolkit(files->world) && toolkit_rules_load(m->q->profiles, a, &t.toolkits, e) < 0)
		return -1;
	if (mkdir(t.dir, 0755) < 0 || mkdir(t.compiled, 0755) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", t.dir);
	if (world_tree_make(&t, a, ret, e) < 0)
		return fs_disk_place(t.dir, e);
	if (fs_remove(TRUSTED, t.compiled, e) < 0)
		return -1;
	/* What was unpacked is what the locks say, where they say it. */
	for (size_t i = 0; i < files->world->count; i++) {
		const struct world_lock *l = &files->world->pieces[i].lock;
		if (!l->tree || strcmp(l->tree, ret->parts[i]) == 0)
			continue;
		err_set(e, ERR_INTEGRITY, "part '%s' unpacked to the tree %s, and its lock says %s",
			l->part, ret->parts[i], l->tree);
		return err_hint(
			e,
			"another ptbuild made the lock: use that one, or 'ptbuild world lock %s'",
			l->part);
	}

	return 0;
}

/* Made by this process, or by another one meanwhile. */
static int make_once(const struct making *m, bool *ret_made, struct err *e)
{
	AUTO_LOCK struct lock lock = LOCK_NONE;
	struct store *store = m->q->store;
	const struct world *w = m->files.world;
	const char *dir = NULL;

	if (store_lock(store, STORE_WORLD, w->key, m->run, &lock, e) < 0)
		return -1;
	if (store_world_find(store, w->key, STORE_LOOK_WHOLE, m->arena, &dir, e) < 0)
		return -1;
	if (dir)
		return 0;
	*ret_made = true;
	/* The caller has the key's lock alone. */
	struct world_tree tree = {0};
	const char *stage, *root;
	log_stage(m->run->log, "making the world %s for %s", w->name, w->platform);
	if (store_stage(store, m->arena, &stage, e) < 0)
		return -1;
	int rc = fill(m, stage, &tree, e);
	if (rc == 0) {
		const struct store_world facts = {.key = w->key,
						  .name = w->name,
						  .platform = w->platform,
						  .tree = tree.digest,
						  .bytes = tree.bytes};
		rc = store_world_publish(store, &facts, &tree.manifest, stage, m->arena, &root, e);
	}

	if (rc < 0)
		store_drop_stage(store, stage);
	buf_release(&tree.manifest);
	log_status_end(m->run->log);
	return rc;
}

int world_ensure(const struct world_request *q, struct arena *a, struct world_result *ret,
		 struct err *e)
{
	struct world_result r = {.world = q->world, .key = q->world->key, .use = LOCK_NONE};
	struct making m = {.q = q, .run = q->run, .arena = a};
	struct world_files *files = &m.files;
	double start = log_seconds();
	bool made = false;

	if (find_and_hold(&m, &r, e) < 0)
		return -1;
	if (!r.dir) {
		if (world_files(q, a, files, e) < 0)
			return err_wrap(e, "world '%s'", q->world->name);
		r.world = files->world;
		r.key = files->world->key;
		r.drift = files->drift;
		r.fetched = files->fetched;
	}

	/* Between the two locks garbage collection could take it, if the clock is wrong. */
	for (int attempt = 0; !r.dir && attempt < 3; attempt++)
		if (make_once(&m, &made, e) < 0 || find_and_hold(&m, &r, e) < 0)
			return -1;
	if (!r.dir)
		return err_set(e, ERR_SYSTEM, "the world '%s' disappears as soon as it is created",
			       q->world->name);
	r.hit = !made;
	r.seconds = log_seconds() - start;
	*ret = r;
	return 0;
}
