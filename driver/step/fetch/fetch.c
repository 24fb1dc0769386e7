#include "step/fetch/fetch.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store.h"
#include "step/fetch/fetch_place.h"

enum {
	DEFAULT_PARALLEL = 4,
	MAX_PARALLEL = 64,
	DEFAULT_RETRIES = 4,
	DEFAULT_BACKOFF_MS = 500,
	DEFAULT_STALL_SECONDS = 30,
	DEFAULT_SLOW_SECONDS = 300,
	MAX_WARNINGS = 3 /* about files that failed like the first */
};

struct fetch_job {
	const struct fetch_source *source;
	struct arena arena;
	const char *path; /* result */
	bool from_store, gone;
	struct err err;
};

struct fetch_pool {
	struct fetch_shared shared;
	struct fetch_job *jobs;
	size_t count;
	const struct run *run;
	/* by a fault of the machine: a full disk is full for the others, too */
	_Atomic bool stopped;
	const char *partial_dir;                       /* <store>/partial */
	struct transfer_client *clients[MAX_PARALLEL]; /* of each thread */
};

struct fetch_source fetch_source_of(const struct source_row *row, struct arena *a)
{
	struct fetch_source s = {.name = row->name, .sha256 = row->sha256};
	strlist_refs(&s.urls, a, row->urls, row->urls_count);
	return s;
}

struct fetch_source fetch_source_official(const struct official_wheel *w, struct arena *a)
{
	struct fetch_source s = {.name = w->file, .sha256 = w->sha256, .max_bytes = w->size};
	strlist_addf(&s.urls, a, "wheel:%s==%s/%s", w->name.dist, w->name.version, w->file);
	return s;
}

bool fetch_has(struct store *store, const char *sha256)
{
	AUTO_ARENA struct arena a = {0};
	const char *dir = NULL;
	return store && store_find(store, STORE_SOURCE, sha256, &a, &dir, ERR_IGNORED) == 0 && dir;
}

/* A name without a directory, that is neither hidden nor looks like an option. */
static bool is_file_name(const char *name)
{
	if (!name || !path_is_safe_relative(name) || strchr(name, '/'))
		return false;
	return *name != '.' && *name != '-';
}

static int check_source(const struct fetch_source *s, struct err *e)
{
	if (!is_file_name(s->name))
		return err_set(e, ERR_CONFIG, "not a file name: '%s'", s->name ? s->name : "");
	if (!s->sha256 || !digest_valid_hex(s->sha256))
		return err_set(e, ERR_CONFIG, "'%s' has no sha256 of 64 lower-case hex digits",
			       s->name);
	return 0;
}

/* The file in a source object. Releases may name the same
 * bytes differently: the object keeps the first name. */
static int object_file(const char *dir, const struct fetch_source *s, struct arena *a,
		       const char **ret, struct err *e)
{
	struct strlist names = {0};
	char *path = path_join(a, dir, s->name);

	if (fs_exists(TRUSTED, path)) {
		*ret = path;
		return 0;
	}

	if (fs_list(TRUSTED, dir, a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (*names.items[i] != '.') { /* the store's own */
			*ret = path_join(a, dir, names.items[i]);
			return 0;
		}
	err_set(e, ERR_INTEGRITY, "no file in store object '%s'", dir);
	return err_hint(e, "run 'ptbuild cache verify'");
}

static int publish(struct fetch_shared *f, struct fetch_job *j, const char *partial)
{
	const struct fetch_source *s = j->source;
	struct arena *a = &j->arena;
	struct err *e = &j->err;
	const char *stage, *dir;

	if (store_stage(f->store, a, &stage, e) < 0)
		return -1;
	const char *file = path_join(a, stage, s->name);
	if (rename(partial, file) < 0) {
		err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", partial, file);
	} else {
		if (store_publish(f->store, STORE_SOURCE, s->sha256, stage, a, &dir, e) == 0)
			return object_file(dir, s, a, &j->path, e);
		(void)!rename(file, partial); /* kept for the next run */
	}

	store_drop_stage(f->store, stage);
	return -1;
}

static int run_job(const struct fetch_pool *p, struct fetch_worker *w, struct fetch_job *j)
{
	struct fetch_shared *f = w->shared;
	const struct fetch_source *s = j->source;
	AUTO_LOCK struct lock lock = LOCK_NONE;
	const char *dir = NULL;

	if (run_check(w->run, &j->err) < 0)
		return -1;
	if (store_lock(f->store, STORE_SOURCE, s->sha256, w->run, &lock, &j->err) < 0)
		return -1;
	if (store_find(f->store, STORE_SOURCE, s->sha256, &j->arena, &dir, &j->err) < 0)
		return -1;
	if (!dir &&
	    store_pull(f->store, STORE_SOURCE, s->sha256, w->run, &j->arena, &dir, &j->err) < 0)
		return -1;
	j->from_store = dir != NULL;
	if (dir)
		return object_file(dir, s, &j->arena, &j->path, &j->err);
	char *partial = path_join(&j->arena, p->partial_dir, s->sha256);
	double start = log_seconds();
	if (fetch_places(w, s, partial, &j->gone, &j->err) < 0)
		return -1;
	/* by several threads at once: what it waits for is the disk */
	int status = publish(f, j, partial);
	if (status == 0)
		log_verbose(w->run->log, "fetched '%s' in %.1f s", s->name, log_seconds() - start);
	return status;
}

static int fetch_one(unsigned thread, size_t i, void *user, struct err *e)
{
	struct fetch_pool *p = user;
	struct fetch_job *j = &p->jobs[i];

	(void)e; /* the job has its own */
	if (p->stopped)
		return 0;
	if (!p->clients[thread])
		p->clients[thread] = transfer_client_new();
	struct fetch_worker w = {.shared = &p->shared, .run = p->run, .client = p->clients[thread]};
	bool failed = run_job(p, &w, j) != 0;
	if (failed)
		j->path = NULL;
	if (failed && j->err.kind == ERR_SYSTEM)
		p->stopped = true;
	atomic_fetch_add(failed ? &p->shared.amount.failed : &p->shared.amount.done, 1);
	return 0;
}

/* The error is an interruption, else one of the machine, else the first in the
 * order of the sources; the others become warnings, the first few of them. */
static int weight(const struct fetch_job *j)
{
	return j->err.kind == ERR_INTERRUPTED ? 2 : j->err.kind == ERR_SYSTEM;
}

static int collect(const struct fetch_pool *p, const struct run *run, struct err *e)
{
	const struct fetch_job *worst = NULL;

	for (size_t i = 0; i < p->count; i++) {
		const struct fetch_job *j = &p->jobs[i];
		if (!j->path && j->err.kind && (!worst || weight(j) > weight(worst)))
			worst = j;
	}

	if (!worst)
		return 0;
	size_t others = 0;
	for (size_t i = 0; i < p->count && worst->err.kind != ERR_INTERRUPTED; i++)
		if (!p->jobs[i].path && p->jobs[i].err.kind && &p->jobs[i] != worst &&
		    others++ < MAX_WARNINGS)
			log_warn(run->log, "%s", p->jobs[i].err.msg);
	if (others > MAX_WARNINGS)
		log_warn(run->log, "and %zu more files could not be fetched",
			 others - MAX_WARNINGS);
	*e = worst->err;
	return -1;
}

static int open_shared(struct fetch_shared *f, struct err *e)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_SYSTEM, "cannot start libcurl");
	pthread_mutex_init(&f->mutex, NULL);
	pthread_mutex_init(&f->hosts.mutex, NULL);
	return 0;
}

static void close_shared(struct fetch_shared *f)
{
	arena_release(&f->arena);
	arena_release(&f->hosts.arena);
	pthread_mutex_destroy(&f->hosts.mutex);
	pthread_mutex_destroy(&f->mutex);
	curl_global_cleanup();
}

/* How the user knows a place; NULL: it is on this machine. */
static const char *origin_of(const char *place, struct arena *a)
{
	const char *rest;

	switch (fetch_place_kind(place, &rest)) {
	case PLACE_WHEEL:
		return "the Python index";
	case PLACE_DEB:
		return arena_printf(a, "archive '%.*s'", (int)strcspn(rest, "/"), rest);
	case PLACE_HTTP:
		return "upstream";
	default:
		return NULL;
	}
}

/* A directory that has it under one of the names of a mirror. */
static bool mirror_has(const char *mirror, const struct fetch_source *s, struct arena *a)
{
	struct strlist places = {0};

	fetch_mirror_places(&places, a, mirror, s);
	for (size_t i = 0; i < places.count; i++) {
		const char *rest;
		const bool local = fetch_place_kind(places.items[i], &rest) == PLACE_FILE;
		const char *path = local ? fetch_file_url(a, rest) : NULL;
		if (path && access(path, R_OK) == 0)
			return true;
	}

	return false;
}

int fetch_origin(const struct fetcher *by, const struct fetch_source *s, const char **ret,
		 struct err *e)
{
	struct strlist all = {0};

	for (size_t i = 0; i < by->o->mirrors.count; i++) {
		const char *mirror = by->o->mirrors.items[i];
		const char *words = arena_printf(by->arena, "mirror '%s'",
						 transfer_shown_url(by->arena, mirror));
		if (mirror_has(mirror, s, by->arena)) {
			*ret = words;
			return 0;
		}

		if (strncmp(mirror, "http", 4) == 0)
			strlist_ref(&all, by->arena, words);
	}

	if (by->o->offline)
		return fetch_forbidden(s, "", e);
	if (by->store && store_has_remote(by->store))
		strlist_ref(&all, by->arena, "the remote store");
	for (size_t k = 0; k < s->urls.count; k++) {
		const char *origin = origin_of(s->urls.items[k], by->arena);
		if (origin)
			strlist_once(&all, by->arena, origin);
	}

	*ret = strlist_join(&all, by->arena, " or ");
	return 0;
}

static void list_origins(const struct fetch_pool *p, struct arena *a, struct strlist *ret)
{
	const struct strlist *mirrors = &p->shared.o->mirrors;
	struct strlist own = {0};

	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->jobs[i].source->urls.count; k++) {
			const char *origin = origin_of(p->jobs[i].source->urls.items[k], a);
			if (origin)
				strlist_once(&own, a, origin);
		}
	if (store_has_remote(p->shared.store))
		strlist_ref(ret, a, "the remote store");
	for (size_t i = 0; i < mirrors->count && (own.count || strstr(mirrors->items[i], "://"));
	     i++)
		strlist_addf(ret, a, "mirror '%s'", transfer_shown_url(a, mirrors->items[i]));
	strlist_append(ret, a, &own);
}

/* Logs what will be downloaded, and its size less what
 * an earlier run left. False: all is on this machine. */
static bool announce(struct fetch_pool *p, const struct run *run, struct arena *a)
{
	struct strlist origins = {0};
	struct download d = {.files = p->count, .kept = store_dir(p->shared.store), .of = &origins};

	list_origins(p, a, &origins);
	if (p->shared.o->offline || !origins.count)
		return false;
	if (p->count == 1)
		d.name = p->jobs[0].source->name;
	for (size_t i = 0; i < p->count; i++) {
		const struct fetch_source *s = p->jobs[i].source;
		struct stat st;
		const bool begun = stat(path_join(a, p->partial_dir, s->sha256), &st) == 0 &&
				   (uint64_t)st.st_size <= s->max_bytes;
		const uint64_t have = begun ? (uint64_t)st.st_size : 0;
		d.unknown += !s->max_bytes;
		d.have += have;
		d.total += s->max_bytes - have;
	}

	download_begin(run->log, &d);
	p->shared.amount.known = d.total;
	return true;
}

static int fetch_missing(struct fetch_pool *p, const struct run *run, struct arena *a,
			 struct err *e)
{
	p->partial_dir = path_join(a, store_dir(p->shared.store), "partial");
	if (fs_mkdirs(TRUSTED, p->partial_dir, e) < 0 || open_shared(&p->shared, e) < 0)
		return -1;
	p->run = run;
	const bool downloads = announce(p, run, a);
	p->shared.amount.log = downloads ? run->log : NULL;
	p->shared.amount.files = p->count;
	p->shared.amount.start = log_seconds();
	int status = thread_items(p->shared.o->parallel, p->count, NULL, run, fetch_one, p, e);
	log_status_end(run->log);
	if (status == 0)
		status = collect(p, run, e);
	const struct download_state now = transfer_state(&p->shared.amount);
	if (status == 0 && downloads)
		download_end(run->log, &now);
	for (size_t i = 0; i < MAX_PARALLEL; i++)
		transfer_client_free(p->clients[i]);
	close_shared(&p->shared);
	return status;
}

static void set_defaults(struct fetch_options *o)
{
	o->parallel = o->parallel ? o->parallel : DEFAULT_PARALLEL;
	o->parallel = o->parallel < MAX_PARALLEL ? o->parallel : MAX_PARALLEL;
	o->retries = o->retries ? o->retries : DEFAULT_RETRIES;
	o->backoff_ms = o->backoff_ms ? o->backoff_ms : DEFAULT_BACKOFF_MS;
	o->stall_seconds = o->stall_seconds ? o->stall_seconds : DEFAULT_STALL_SECONDS;
	o->slow_seconds = o->slow_seconds ? o->slow_seconds : DEFAULT_SLOW_SECONDS;
}

int fetch_all(const struct fetcher *by, struct fetch_source *sources, size_t count,
	      struct fetch_stats *ret, struct err *e)
{
	double start = log_seconds();
	struct fetch_options options = *by->o;
	struct fetch_pool p = {.jobs = arena_array(by->arena, count, sizeof(*p.jobs))};
	const char **paths = arena_array(by->arena, count, sizeof(*paths));
	struct fetch_stats stats = {0};

	set_defaults(&options);
	p.shared.store = by->store;
	p.shared.o = &options;
	if (run_check(by->run, e) < 0)
		return -1;
	/* Sources in the store need no thread and no lock. */
	for (size_t i = 0; i < count; i++) {
		const char *dir = NULL;
		if (check_source(&sources[i], e) < 0 ||
		    store_find(by->store, STORE_SOURCE, sources[i].sha256, by->arena, &dir, e) < 0)
			return -1;
		if (dir) {
			if (object_file(dir, &sources[i], by->arena, &paths[i], e) < 0)
				return -1;
			continue;
		}

		p.jobs[p.count++].source = &sources[i];
	}

	stats.from_store = (unsigned)(count - p.count);
	int status = p.count ? fetch_missing(&p, by->run, by->arena, e) : 0;
	for (size_t i = 0; i < p.count; i++) {
		struct fetch_job *j = &p.jobs[i];
		sources[j->source - sources].gone = j->gone;
		if (status == 0) {
			paths[j->source - sources] = arena_strdup(by->arena, j->path);
			stats.from_store += j->from_store;
			stats.downloaded += !j->from_store;
		}

		arena_release(&j->arena);
	}

	if (status != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		sources[i].path = paths[i];
	stats.bytes = atomic_load(&p.shared.amount.received);
	stats.seconds = log_seconds() - start;
	if (ret)
		*ret = stats;
	return 0;
}

/* Under the digest that it turns out to have. */
static int publish_latest(struct fetch_shared *f, const char *stage, const char *file,
			  struct arena *a, const char **ret, struct err *e)
{
	char *key = arena_alloc(a, DIGEST_HEX_LEN + 1);
	const struct fetch_source s = {.name = path_base(file), .sha256 = key};
	const char *dir;

	if (digest_file(file, key, e) < 0 ||
	    store_publish(f->store, STORE_SOURCE, key, stage, a, &dir, e) < 0)
		return -1;
	return object_file(dir, &s, a, ret, e);
}

int fetch_latest(const struct fetcher *by, const struct fetch_page *page, const char **ret,
		 struct err *e)
{
	struct fetch_options options = *by->o;
	struct fetch_shared f = {.store = by->store, .o = &options};
	struct fetch_worker w = {.shared = &f, .run = by->run};
	const bool web = strstr(page->place, "://") != NULL;
	const char *stage, *name = web ? "page" : path_base(page->place),
			   *shown = transfer_shown_url(by->arena, page->place);
	bool absent = false;

	if (web && !options.retries) /* somebody waits */
		options.retries = 1;
	set_defaults(&options);
	if (run_check(by->run, e) < 0)
		return -1;
	if (by->o->offline) {
		err_set(e, ERR_NETWORK,
			"'%s' may have changed, and --offline forbids asking for it", shown);
		return err_hint(e, "run the same without --offline");
	}

	if (store_stage(by->store, by->arena, &stage, e) < 0 || open_shared(&f, e) < 0)
		return -1;
	const struct transfer t = {.url = page->place,
				   .accept = page->accept,
				   .path = path_join(by->arena, stage, name),
				   .max_bytes = page->max,
				   .stall_seconds = options.stall_seconds,
				   .slow_seconds = options.slow_seconds,
				   .slow_rate = FETCH_SLOW_RATE,
				   .run = by->run,
				   .progress = &f.amount};
	enum transfer_outcome got =
		web ? fetch_http(&w, &t, shown, e) : fetch_deb(&w, &t, name, &absent, e);
	if (web && got != TRANSFER_DONE && e->kind == ERR_NETWORK)
		err_hint(e, "look whether the address is right and a server runs there");
	int status =
		got == TRANSFER_DONE ? publish_latest(&f, stage, t.path, by->arena, ret, e) : -1;
	if (status < 0)
		store_drop_stage(by->store, stage);
	close_shared(&f);
	return status;
}
