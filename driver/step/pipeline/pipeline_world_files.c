#include "step/pipeline/pipeline_world_files.h"

#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cache/store.h"
#include "step/fetch/fetch_archive.h"
#include "step/fetch/fetch_hosts.h"
#include "step/lock/drift.h"

/* Small files: a connection waits more than it carries. */
enum { PARALLEL = 16 };

/* The sources of a world, and of each entry the one that it is: two parts may have the same file. */
struct wanted {
	struct fetch_source *sources;
	size_t count;
	size_t **of; /* for each piece, for each entry: an index into sources */
};

static struct fetch_source source_of(const struct world_lock *l, const struct world_entry *f, struct arena *a)
{
	struct fetch_source s = {.name = path_base(f->place), .sha256 = f->sha256, .max_bytes = f->size};
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

static int fetch(const struct world_request *q, struct wanted *files, const struct run *run, struct arena *a,
		 struct fetch_stats *stats, struct err *e)
{
	struct fetch_options o = q->fetch;
	struct fetch_stats now = {0};
	o.parallel = o.parallel ? o.parallel : PARALLEL;
	/* Of hundreds of files that --offline forbids, one line is enough: the error's. */
	struct log quiet = {.level = LOG_QUIET, .fd = run->log->fd};
	struct run quietly = *run;
	if (o.offline)
		quietly.log = &quiet;
	if (fetch_all(q->store, files->sources, files->count, &o, &quietly, a, &now, e) < 0) {
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

static bool has(struct store *s, const char *sha256, struct arena *a)
{
	const char *dir = NULL;
	struct err ignored = {0};
	return s && store_find(s, STORE_SOURCE, sha256, a, &dir, &ignored) == 0 && dir;
}

uint64_t world_missing(struct store *store, const struct world *w, struct arena *a, struct strlist *archives,
		       unsigned *ret_unknown)
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
			if (!seen[at] && !has(store, entry->sha256, a)) {
				if (entry->kind == WORLD_DEB && !strlist_contains(archives, l->archive))
					strlist_ref(archives, a, l->archive);
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

size_t world_places(struct store *store, const struct world *w, struct arena *a, struct fetch_source **ret)
{
	const struct wanted files = list_sources(w, a);
	struct strlist servers = {0};
	*ret = arena_array(a, files.count + 1, sizeof(**ret));
	for (size_t i = 0; i < files.count; i++) {
		const char *server = server_of(files.sources[i].urls.items[0], a);
		if (strlist_contains(&servers, server) || has(store, files.sources[i].sha256, a))
			continue;
		(*ret)[servers.count] = files.sources[i];
		strlist_ref(&servers, a, server);
	}
	return servers.count;
}

/* Which entries of a piece are gone: how many. */
static size_t list_gone(const struct wanted *files, size_t piece, size_t count, bool *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		n += ret[i] = files->sources[files->of[piece][i]].gone;
	return n;
}

/* The lock of one piece with what is there now. */
static int resolve_piece(const struct world_request *q, const struct world_piece *p, const bool *gone,
			 const struct run *run, struct arena *a, struct world_lock *ret, struct strlist *said,
			 struct err *e)
{
	struct strlist components = {0};
	struct fetch_archive_user user = {.store = q->store, .options = &q->fetch, .run = run};
	const struct archive_get get = fetch_archive(&user);
	struct archive_index *index = arena_alloc(a, sizeof(*index));
	struct drift d;
	for (unsigned i = 0; i < p->part->components_count; i++)
		strlist_ref(&components, a, p->part->components[i]);
	const struct archive_suite suite = {.archive = p->lock.archive,
					    .suite = p->lock.suite,
					    .arch = world_debian_arch(p->lock.platform),
					    .components = &components,
					    .keyring = q->keyring,
					    .not_before = p->lock.date};
	const char *file;
	/* An address that is no archive has no packages either: that is not drift. */
	if (p->lock.archive && archive_index_get(&suite, &get, a, &file, e) < 0)
		return err_wrap(e, "packages of '%s' cannot be had", p->part->part);
	if (q->no_drift)
		return drift_refuse(&p->lock, gone, e);
	if (!p->lock.archive) /* no packages: what is gone has no other version */
		return drift_resolve(&p->lock, gone, &(struct archive_index){0}, a, ret, &d, e);
	if (archive_index_read(&suite, &get, run, a, index, e) < 0)
		return err_wrap(e, "packages of '%s' have left the archive", p->part->part);
	if (drift_resolve(&p->lock, gone, index, a, ret, &d, e) < 0)
		return -1;
	for (size_t i = 0; i < d.count; i++) {
		strlist_addf(said, a, "%s %s %s", d.changes[i].name, d.changes[i].locked, d.changes[i].present);
		log_warn(run->log, "drift: '%s' %s has left the archive, %s is taken", d.changes[i].name,
			 d.changes[i].locked, d.changes[i].present);
	}
	return 0;
}

/* The world with the present versions; *ret NULL: nothing of it is gone. */
static int resolve_gone(const struct world_request *q, const struct wanted *files, const struct run *run,
			struct arena *a, const struct world **ret, struct strlist *said, struct err *e)
{
	const struct world *w = q->world;
	struct world_lock *locks = arena_array(a, w->count + 1, sizeof(*locks));
	bool any = false;
	for (size_t i = 0; i < w->count; i++) {
		const struct world_piece *p = &w->pieces[i];
		bool *gone = arena_array(a, p->lock.count + 1, sizeof(*gone));
		locks[i] = p->lock;
		if (list_gone(files, i, p->lock.count, gone) == 0)
			continue;
		any = true;
		if (resolve_piece(q, p, gone, run, a, &locks[i], said, e) < 0)
			return -1;
	}
	*ret = any ? world_with_locks(w, locks, a) : NULL;
	return 0;
}

static const char *const *const *paths_of(const struct world *w, const struct wanted *files, struct arena *a)
{
	const char *const **out = arena_array(a, w->count + 1, sizeof(*out));
	for (size_t i = 0; i < w->count; i++) {
		const char **paths = arena_array(a, w->pieces[i].lock.count + 1, sizeof(*paths));
		for (size_t k = 0; k < w->pieces[i].lock.count; k++)
			paths[k] = files->sources[files->of[i][k]].path;
		out[i] = paths;
	}
	return out;
}

/* A file is known by its digest alone: that its lock gives another size is found here. */
static int check_sizes(const struct world *w, const struct wanted *files, struct err *e)
{
	for (size_t i = 0; i < w->count; i++)
		for (size_t k = 0; k < w->pieces[i].lock.count; k++) {
			const struct world_entry *f = &w->pieces[i].lock.entries[k];
			const char *path = files->sources[files->of[i][k]].path;
			struct stat st;
			if (stat(path, &st) < 0)
				return err_errno(e, ERR_SYSTEM, "cannot look at '%s'", path);
			if (f->size && (uint64_t)st.st_size != f->size)
				return err_set(e, ERR_INTEGRITY, "'%s' has %lld bytes, and the lock of '%s' says %llu",
					       path, (long long)st.st_size, w->pieces[i].lock.part,
					       (unsigned long long)f->size);
		}
	return 0;
}

int world_files(const struct world_request *q, const struct run *run, struct arena *a, struct world_files *ret,
		struct err *e)
{
	struct world_files out = {.world = q->world};
	struct wanted files = list_sources(q->world, a);
	if (fetch(q, &files, run, a, &out.fetched, e) < 0) {
		struct err why = {0};
		const struct world *now = NULL;
		if (e->kind != ERR_NETWORK)
			return -1;
		if (resolve_gone(q, &files, run, a, &now, &out.drift, &why) < 0)
			*e = why;
		if (!now)
			return -1;
		err_clear(e);
		out.world = now;
		files = list_sources(now, a);
		if (fetch(q, &files, run, a, &out.fetched, e) < 0)
			return -1;
	}
	if (check_sizes(out.world, &files, e) < 0)
		return -1;
	out.paths = paths_of(out.world, &files, a);
	*ret = out;
	return 0;
}
