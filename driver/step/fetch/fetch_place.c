#include "step/fetch/fetch_place.h"

#include <poll.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store.h"

struct fetch_host {
	const char *name;
	double answered; /* when it last did */
	bool lost;
	struct fetch_host *next;
};

const char *fetch_hosts_name(const char *url, struct arena *a)
{
	CURLU *u = curl_url();
	char *scheme = NULL, *host = NULL, *port = NULL;
	const char *out = "(malformed)";

	if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
		bool has_port = curl_url_get(u, CURLUPART_PORT, &port, 0) == CURLUE_OK;
		out = arena_printf(a, "%s://%s%s%s", scheme, host, has_port ? ":" : "",
				   has_port ? port : "");
	}

	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(u);
	return out;
}

const char *fetch_http_host(const char *url, struct arena *a)
{
	const char *name = fetch_hosts_name(url, a);
	return strncmp(name, "http://", strlen("http://")) == 0 ? name + strlen("http://") : NULL;
}

/* The caller has the mutex. */
static struct fetch_host *host_of(struct fetch_hosts *h, const char *url)
{
	AUTO_ARENA struct arena a = {0};
	const char *name = fetch_hosts_name(url, &a);
	struct fetch_host *it = h->first;

	while (it && strcmp(it->name, name) != 0)
		it = it->next;
	if (!it) {
		it = arena_alloc(&h->arena, sizeof(*it));
		*it = (struct fetch_host){
			.name = arena_strdup(&h->arena, name), .answered = -1, .next = h->first};
		h->first = it;
	}

	return it;
}

/* It was not, in any try since `start` (log_seconds): it
 * is lost for this run, unless it answered meanwhile. */
static bool fetch_hosts_lose(struct fetch_hosts *h, const char *url, double start)
{
	pthread_mutex_lock(&h->mutex);
	struct fetch_host *it = host_of(h, url);
	bool new = !it->lost && it->answered < start;
	it->lost |= new;
	pthread_mutex_unlock(&h->mutex);
	return new;
}

static bool fetch_hosts_lost(struct fetch_hosts *h, const char *url)
{
	pthread_mutex_lock(&h->mutex);
	bool lost = host_of(h, url)->lost;
	pthread_mutex_unlock(&h->mutex);
	return lost;
}

int fetch_addresses(struct fetch_shared *f, const char *archive, const struct run *run,
		    struct fetch_archive **ret, struct err *e)
{
	struct arena *a = &f->arena;
	struct strlist urls = {0};
	int status = 0;

	pthread_mutex_lock(&f->mutex);
	struct fetch_archive *it = f->archives;
	while (it && strcmp(it->name, archive) != 0)
		it = it->next;
	if (!it && (status = archives_find(&(struct fetcher){NULL, f->o, run, a}, archive, &urls,
					   e)) == 0) {
		it = arena_alloc(a, sizeof(*it));
		*it = (struct fetch_archive){.name = arena_strdup(a, archive), .next = f->archives};
		it->items = arena_array(a, urls.count + 1, sizeof(*it->items));
		for (; it->count < urls.count; it->count++)
			it->items[it->count].url = urls.items[it->count];
		f->archives = it;
	}

	pthread_mutex_unlock(&f->mutex);
	*ret = it;
	return status;
}

struct deb_try {
	struct fetch_worker *w;
	const struct transfer *t;
	const char *path, *name; /* `name` for messages */
	struct arena *a;
	struct buf reasons; /* what each address said */
	bool wrong;
	bool unsure; /* an archive did not say for certain that it has no such file */
};

static bool is_file(const char *url)
{
	return *url == '/' || strncmp(url, "file://", 7) == 0;
}

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

const char *fetch_file_url(struct arena *a, const char *url)
{
	const char *path = url + strlen("file://");

	if (*url == '/')
		return url;
	if (starts(path, "localhost/"))
		path += strlen("localhost");
	if (*path != '/')
		return NULL;
	int len = 0;
	char *plain = curl_easy_unescape(NULL, path, 0, &len);
	const char *out = plain && strlen(plain) == (size_t)len ? arena_strdup(a, plain) : NULL;
	curl_free(plain);
	return out;
}

/* From an absolute path or a file URL; *ret_absent: there is certainly no such file. */
static enum transfer_outcome from_file(const struct transfer *t, const char *place,
				       bool *ret_absent, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct transfer copy = *t;

	copy.url = fetch_file_url(&a, place);
	if (!copy.url) {
		err_set(e, ERR_NETWORK, "unsupported URL '%s': a file of another machine", place);
		return TRANSFER_NEXT;
	}

	*ret_absent = access(copy.url, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
	return transfer_copy(&copy, e);
}

/* What an address says of a file. */
struct address_answer {
	long status; /* of HTTP; 0: none */
	bool absent; /* it certainly has no such file */
};

static enum transfer_outcome from_address(struct deb_try *d, const struct archive_address *at,
					  struct address_answer *ret, struct err *e)
{
	struct transfer t = *d->t;

	t.ret_status = &ret->status;
	if (is_file(at->url))
		return from_file(&t, path_join(d->a, at->url, d->path), &ret->absent, e);
	t.url = path_join(d->a, at->url, transfer_escaped(d->path, d->a));
	enum transfer_outcome out = fetch_http(d->w, &t, d->name, e);
	ret->absent = out == TRANSFER_NEXT && (ret->status == 404 || ret->status == 410);
	return out;
}

static size_t count_alive(const struct fetch_archive *known)
{
	size_t n = 0;

	for (size_t i = 0; i < known->count; i++)
		n += !atomic_load(&known->items[i].silent);
	return n;
}

/* The addresses of one archive are mirrors of it: one that answers speaks for one
 * that is silent, which is not asked again in this run while there are others. */
static enum transfer_outcome from_archive(struct deb_try *d, const char *archive, size_t *ret_known,
					  struct err *e)
{
	struct fetch_archive *known;
	bool answered = false, silent = false;

	if (fetch_addresses(d->w->shared, archive, d->w->run, &known, e) < 0)
		return TRANSFER_STOP;
	*ret_known += known->count;
	for (size_t i = 0; i < known->count; i++) {
		struct archive_address *at = &known->items[i];
		struct err said = {0};
		struct address_answer answer = {0};
		if ((d->w->shared->o->offline && !is_file(at->url)) ||
		    (atomic_load(&at->silent) && count_alive(known) > 0)) {
			silent = true;
			continue;
		}

		enum transfer_outcome out = from_address(d, at, &answer, &said);
		if (out == TRANSFER_DONE || out == TRANSFER_STOP) {
			*e = said;
			return out;
		}

		buf_printf(&d->reasons, "%s%s", d->reasons.len ? "; " : "", said.msg);
		d->wrong |= out == TRANSFER_WRONG;
		answered |= answer.absent;
		d->unsure |= !answer.absent && answer.status != 0;
		if (!answer.absent && answer.status == 0) {
			silent = true;
			atomic_store(&at->silent, true);
		}
	}

	d->unsure |= silent && !answered;
	return TRANSFER_NEXT;
}

enum transfer_outcome fetch_deb(struct fetch_worker *w, const struct transfer *t, const char *name,
				bool *ret_absent, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf reasons = {0};
	struct deb_place p;
	size_t known = 0;

	if (deb_place_parse(t->url, &a, &p, e) < 0)
		return TRANSFER_NEXT;
	struct deb_try d = {.w = w, .t = t, .path = p.path, .name = name, .a = &a};
	enum transfer_outcome out = from_archive(&d, p.archive, &known, e);
	if (out == TRANSFER_NEXT)
		out = from_archive(&d, archives_snapshots(p.archive, &a), &known, e);
	reasons = d.reasons;
	if (out != TRANSFER_NEXT) {
		if (out == TRANSFER_DONE && d.wrong)
			log_warn(w->run->log, "downloaded '%s' after other URLs failed: %s", name,
				 buf_cstr(&reasons));
		return out;
	}

	if (!known) {
		archives_unknown(p.archive, e);
		return TRANSFER_NEXT;
	}

	*ret_absent = !d.unsure && !d.wrong;
	err_set(e, d.wrong ? ERR_INTEGRITY : ERR_NETWORK, "%s", buf_cstr(&reasons));
	return d.wrong ? TRANSFER_WRONG : TRANSFER_NEXT;
}

int fetch_index(struct fetch_shared *f, const struct run *run, const char **ret, struct err *e)
{
	int status = 0;

	pthread_mutex_lock(&f->mutex);
	if (!f->index_known)
		status = wheel_index(run, &f->arena, &f->index, e);
	if (status == 0) {
		f->index_known = true;
		*ret = f->index;
	}

	pthread_mutex_unlock(&f->mutex);
	return status;
}

/* A wheel of the Python index that is fetched. */
struct wheel_try {
	struct fetch_worker *w;
	const struct transfer *t;
	struct wheel_place place;
	const char *index; /* NULL: pip's own */
	struct arena *arena;
};

/* The page of a distribution, read and deleted. */
static enum transfer_outcome get_page(const struct wheel_try *x, const char *url,
				      struct wheel_page *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct transfer t = *x->t;

	t.url = url;
	t.path = arena_printf(x->arena, "%s.page", x->t->path);
	t.sha256 = NULL;
	t.accept = WHEEL_PAGE_ACCEPT;
	t.max_bytes = WHEEL_PAGE_MAX;
	enum transfer_outcome out = fetch_http(x->w, &t, url, e);
	if (out == TRANSFER_DONE && fs_read(TRUSTED, t.path, WHEEL_PAGE_MAX, &text, e) < 0)
		out = TRANSFER_STOP;
	if (unlink(t.path) < 0 && errno != ENOENT && out == TRANSFER_DONE) {
		err_errno(e, ERR_SYSTEM, "cannot delete '%s'", t.path);
		return TRANSFER_STOP;
	}

	if (out == TRANSFER_DONE &&
	    wheel_page_parse(&(struct file_bytes){text.data, text.len, url}, x->arena, ret, e) < 0)
		return TRANSFER_RETRY; /* of another kind: pip may read it */
	return out;
}

static enum transfer_outcome from_index(const struct wheel_try *x, struct err *e)
{
	const struct transfer *t = x->t;
	const struct wheel_place *p = &x->place;
	struct wheel_page page = {0};
	const char *url = wheel_page_url(x->index, p->name, x->arena),
		   *shown = transfer_shown_url(x->arena, url);
	enum transfer_outcome out = get_page(x, url, &page, e);

	if (out != TRANSFER_DONE)
		return out;
	const struct wheel_listed *file = wheel_page_find(&page, p->file);
	if (!file) {
		err_set(e, ERR_NETWORK, "'%s' does not list '%s'", shown, p->file);
		return TRANSFER_NEXT;
	}

	if (*file->sha256 && strcmp(file->sha256, t->sha256) != 0) {
		err_set(e, ERR_INTEGRITY, "'%s' lists '%s' with sha256 %s, expected %s", shown,
			p->file, file->sha256, t->sha256);
		return TRANSFER_WRONG;
	}

	struct transfer copy = *t;
	copy.url = file->url;
	return fetch_http(x->w, &copy, p->file, e);
}

static uint64_t file_size(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* By pip into an empty directory, and from there into the place of the partial file. */
static enum transfer_outcome by_pip(const struct wheel_try *x, const char *dir, struct err *e)
{
	const struct transfer *t = x->t;
	const char *file = path_join(x->arena, dir, x->place.file);

	if (wheel_pip_download(&x->place, dir, t->max_bytes, t->run, t->progress, e) < 0)
		return e->kind == ERR_SYSTEM || e->kind == ERR_INTERRUPTED ? TRANSFER_STOP
									   : TRANSFER_NEXT;
	if (rename(file, t->path) < 0) {
		err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", file, t->path);
		return TRANSFER_STOP;
	}

	atomic_fetch_add(&t->progress->received, file_size(t->path));
	return transfer_check(t, e);
}

/* From the Python index: t->url is "NAME==VERSION/FILE". */
static enum transfer_outcome fetch_wheel(struct fetch_worker *w, const struct transfer *t,
					 struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct wheel_try x = {.w = w, .t = t, .arena = &a};

	if (wheel_place_parse(t->url, &a, &x.place, e) < 0)
		return TRANSFER_NEXT;
	if (fetch_index(w->shared, w->run, &x.index, e) < 0)
		return TRANSFER_STOP;
	/* pip runs what is in an sdist before it gives it. */
	const bool sdist = path_has_suffix(x.place.file, WHEEL_SDIST);
	if (sdist && !x.index && wheel_index_default(w->run, &a, &x.index, e) < 0)
		return TRANSFER_NEXT;
	enum transfer_outcome out = x.index ? from_index(&x, e) : TRANSFER_RETRY;
	if (out != TRANSFER_RETRY || sdist)
		return out == TRANSFER_RETRY ? TRANSFER_NEXT : out;
	/* The index has no JSON: pip reads the older pages of HTML as well. */
	if (x.index)
		log_verbose(w->run->log, "fetch: '%s' by pip: %s", x.place.file, e->msg);
	err_clear(e);
	const char *dir;
	if (store_stage(w->shared->store, &a, &dir, e) < 0)
		return TRANSFER_STOP;
	out = by_pip(&x, dir, e);
	store_drop_stage(w->shared->store, dir);
	return out;
}

enum { MAX_PAUSE_MS = 30000, MAX_RETRY_AFTER_S = 60 };

/* After so many more bytes the connection works: failures count from zero again. */
#define PROGRESS_BYTES (1 << 20)

void fetch_mirror_places(struct strlist *places, struct arena *a, const char *mirror,
			 const struct fetch_source *s)
{
	bool is_url = strstr(mirror, "://") != NULL;
	char *escaped = is_url ? curl_easy_escape(NULL, s->name, 0) : NULL;
	const char *name = escaped ? escaped : s->name;
	const char *top = path_join(a, mirror, "");

	if (!is_url)
		top = path_from_here(a, top);
	strlist_addf(places, a, "%s/%s/%s", top, s->sha256, name);
	strlist_addf(places, a, "%s/%s", top, name);
	curl_free(escaped);
}

/* Doubled each time, plus up to a quarter that depends on
 * digest and attempt: clients spread, runs are repeatable. */
static unsigned pause_ms(const struct fetch_options *o, const char *sha256, unsigned attempt)
{
	uint64_t pause = o->backoff_ms;

	for (unsigned i = 0; i < attempt && pause < MAX_PAUSE_MS; i++)
		pause *= 2;
	if (pause > MAX_PAUSE_MS)
		pause = MAX_PAUSE_MS;
	char start[9];
	snprintf(start, sizeof(start), "%.8s", sha256 ? sha256 : "");
	uint64_t seed = strtoul(start, NULL, 16) + 2654435761U * (uint64_t)attempt;
	return (unsigned)(pause + seed % (pause / 4 + 1));
}

static int wait_ms(const struct run *run, unsigned ms, struct err *e)
{
	double end = log_seconds() + ms / 1000.0;

	for (double left; (left = end - log_seconds()) > 0;) {
		struct pollfd p = {.fd = run->cancel_fd, .events = POLLIN};
		if (poll(&p, run->cancel_fd >= 0 ? 1 : 0, (int)(left * 1000) + 1) < 0 &&
		    errno != EINTR)
			break;
		if (run_check(run, e) < 0)
			return -1;
	}

	return 0;
}

static bool is_lost(struct fetch_worker *w, const char *url, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (!fetch_hosts_lost(&w->shared->hosts, url))
		return false;
	err_set(e, ERR_NETWORK, "'%s' cannot be reached", fetch_hosts_name(url, &a));
	return true;
}

enum transfer_outcome fetch_http(struct fetch_worker *w, const struct transfer *t, const char *name,
				 struct err *e)
{
	bool unreached = false;
	struct transfer once = *t;
	double start = log_seconds();

	once.ret_unreached = &unreached;
	for (unsigned failures = 0;;) {
		unsigned retry_after = 0;
		uint64_t before = file_size(t->path);
		if (is_lost(w, t->url, e))
			return TRANSFER_NEXT;
		enum transfer_outcome out = transfer_http(&once, &retry_after, e);
		if (!unreached) {
			/* It was reached now. */
			pthread_mutex_lock(&w->shared->hosts.mutex);
			host_of(&w->shared->hosts, t->url)->answered = log_seconds();
			pthread_mutex_unlock(&w->shared->hosts.mutex);
		}

		if (out != TRANSFER_RETRY)
			return out;
		if (file_size(t->path) >= before + PROGRESS_BYTES)
			failures = 0;
		if (retry_after > MAX_RETRY_AFTER_S) {
			err_wrap(e, "asked to wait %u seconds", retry_after);
			return TRANSFER_NEXT;
		}

		if (failures >= w->shared->o->retries) {
			/* The last of the tries since `start`. */
			AUTO_ARENA struct arena a = {0};
			if (unreached && fetch_hosts_lose(&w->shared->hosts, t->url, start))
				log_warn(w->run->log,
					 "'%s' cannot be reached and is not asked again",
					 fetch_hosts_name(t->url, &a));
			return TRANSFER_NEXT;
		}

		unsigned ms = pause_ms(w->shared->o, t->sha256, failures++);
		if (ms < retry_after * 1000)
			ms = retry_after * 1000;
		log_verbose(w->run->log, "fetch: '%s' again in %.1f s: %s", name, ms / 1000.0,
			    e->msg);
		if (wait_ms(w->run, ms, e) < 0)
			return TRANSFER_STOP;
	}
}

/* A folder of the user's, packed into the place of the partial file. */
static enum transfer_outcome from_folder(const struct transfer *t, const struct fetch_source *s,
					 struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char hex[DIGEST_HEX_LEN + 1];
	AUTO_FD int fd = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		err_errno(e, ERR_SYSTEM, "cannot write '%s'", t->path);
	if (fd < 0 ||
	    folder_pack(t->url, arena_strndup(&a, s->name, strcspn(s->name, "-")), fd, hex, e) < 0)
		return TRANSFER_STOP;
	if (strcmp(hex, s->sha256) == 0)
		return transfer_check(t, e);
	err_set(e, ERR_INTEGRITY, "the folder '%s' has changed since the plan was made", t->url);
	err_hint(e, "all of it is the source, but for build, dist, .git and environments: write "
		    "logs and wheels elsewhere");
	return TRANSFER_STOP;
}

enum place_kind fetch_place_kind(const char *place, const char **ret_rest)
{
	static const struct {
		const char *prefix;
		enum place_kind kind;
		bool whole;
	} known[] = {{"https://", PLACE_HTTP, true},  {"http://", PLACE_HTTP, true},
		     {"wheel:", PLACE_WHEEL, false},  {"deb:", PLACE_DEB, false},
		     {"file://", PLACE_FILE, true},   {"/", PLACE_FILE, true},
		     {"folder:", PLACE_FOLDER, false}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (starts(place, known[i].prefix)) {
			*ret_rest = place + (known[i].whole ? 0 : strlen(known[i].prefix));
			return known[i].kind;
		}
	*ret_rest = place;
	return PLACES;
}

/* A source that is fetched, from one place after the other. */
struct source_try {
	struct fetch_worker *w;
	const struct fetch_source *source;
	const char *partial; /* the file that it is written to */
	struct buf reasons;  /* what each place said */
	bool wrong;          /* one had other bytes */
	bool skipped;        /* one was left out by --offline */
	size_t absent;       /* places that said for certain that they have no such file */
	char hint[1024];     /* the first hint a place gave */
};

/* *ret_absent: the place said for certain that it has no such file. */
static enum transfer_outcome from_place(struct source_try *x, const char *place, bool *ret_absent,
					struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct fetch_worker *w = x->w;
	const struct fetch_source *s = x->source;
	const struct fetch_options *o = w->shared->o;
	enum transfer_outcome out;
	long status = 0;
	struct transfer t = {.path = x->partial,
			     .ret_status = &status,
			     .sha256 = s->sha256,
			     .max_bytes = s->max_bytes,
			     .stall_seconds = o->stall_seconds,
			     .slow_seconds = o->slow_seconds,
			     .slow_rate = FETCH_SLOW_RATE,
			     .client = w->client,
			     .run = w->run,
			     .progress = &w->shared->amount};
	enum place_kind kind = fetch_place_kind(place, &t.url);

	x->skipped |= o->offline && kind < PLACE_FILE;
	if (o->offline && kind < PLACE_DEB)
		return TRANSFER_NEXT;
	switch (kind) {
	case PLACE_HTTP:
		out = fetch_http(w, &t, s->name, e);
		*ret_absent = out == TRANSFER_NEXT && (status == 404 || status == 410);
		return out;
	case PLACE_WHEEL:
		return fetch_wheel(w, &t, e);
	case PLACE_DEB:
		return fetch_deb(w, &t, s->name, ret_absent, e);
	case PLACE_FILE:
		return from_file(&t, t.url, ret_absent, e);
	case PLACE_FOLDER:
		return from_folder(&t, s, e);
	case PLACES:
		break;
	}

	err_set(e, ERR_NETWORK,
		"unsupported URL '%s' (https:, http:, file:, wheel:, deb: or an absolute path)",
		transfer_shown_url(&a, place));
	return TRANSFER_NEXT;
}

int fetch_forbidden(const struct fetch_source *s, const char *reasons, struct err *e)
{
	err_set(e, ERR_NETWORK,
		"'%s' (sha256 %s) is not in the store and --offline forbids fetching it%s%s",
		s->name, s->sha256, *reasons ? ": " : "", reasons);
	return err_hint(e, "run the same once without --offline, or give the directory that holds "
			   "it with --mirror DIR");
}

static int try_places(struct source_try *x, const struct strlist *places, struct err *e)
{
	const struct fetch_source *s = x->source;

	for (size_t i = 0; i < places->count; i++) {
		struct err said = {0};
		bool absent = false;
		enum transfer_outcome out = from_place(x, places->items[i], &absent, &said);
		x->absent += absent;
		if (out == TRANSFER_STOP) {
			*e = said;
			return -1;
		}

		if (out != TRANSFER_DONE) {
			if (said.kind != ERR_NONE) {
				buf_printf(&x->reasons, "%s%s", x->reasons.len ? "; " : "",
					   said.msg);
				x->wrong |= out == TRANSFER_WRONG;
				if (!x->hint[0])
					snprintf(x->hint, sizeof(x->hint), "%s", said.hint);
			}

			continue;
		}

		AUTO_ARENA struct arena a = {0};
		if (x->wrong)
			log_warn(x->w->run->log,
				 "downloaded '%s' from '%s' after other URLs failed: %s", s->name,
				 transfer_shown_url(&a, places->items[i]), buf_cstr(&x->reasons));
		else if (x->reasons.len)
			log_verbose(x->w->run->log, "fetch: '%s': %s", s->name,
				    buf_cstr(&x->reasons));
		return 0;
	}

	const char *reasons = buf_cstr(&x->reasons);
	if (x->wrong) {
		err_set(e, ERR_INTEGRITY, "wrong bytes for '%s': %s", s->name, reasons);
		return err_hint(e, "the file was changed at its source or on the way; put the "
				   "right one into a directory and use --mirror DIR");
	}

	if (x->skipped)
		return fetch_forbidden(s, reasons, e);
	err_set(e, ERR_NETWORK, "cannot fetch '%s': %s", s->name,
		*reasons ? reasons : "no URL is known for it");
	if (x->hint[0])
		return err_hint(e, "%s", x->hint);
	return err_hint(e,
			"check the network and its proxy variables, or give the directory that "
			"holds it with "
			"--mirror DIR (sha256 %s)",
			s->sha256);
}

int fetch_places(struct fetch_worker *w, const struct fetch_source *s, const char *partial,
		 bool *ret_gone, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist places = {0};
	struct source_try x = {.w = w, .source = s, .partial = partial};

	for (size_t i = 0; i < w->shared->o->mirrors.count; i++)
		fetch_mirror_places(&places, &a, w->shared->o->mirrors.items[i], s);
	strlist_append(&places, &a, &s->urls);
	int status = try_places(&x, &places, e);
	*ret_gone = status != 0 && places.count > 0 && x.absent == places.count;
	buf_release(&x.reasons);
	return status;
}
