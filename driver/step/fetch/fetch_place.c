#include "step/fetch/fetch_place.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store.h"
#include "step/fetch/folder.h"

enum { MAX_PAUSE_MS = 30000, MAX_RETRY_AFTER_S = 60 };

/* After so many more bytes the connection works: failures count from zero again. */
#define PROGRESS_BYTES (1 << 20)

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

const char *fetch_file_url(struct arena *a, const char *url)
{
	const char *path = url + strlen("file://");
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

void fetch_mirror_places(struct strlist *places, struct arena *a, const char *mirror, const struct fetch_source *s)
{
	bool is_url = strstr(mirror, "://") != NULL;
	char *escaped = is_url ? curl_easy_escape(NULL, s->name, 0) : NULL;
	const char *name = escaped ? escaped : s->name;
	size_t len = strlen(mirror);
	while (len > 1 && mirror[len - 1] == '/')
		len--;
	const char *top = arena_strndup(a, mirror, len);
	if (!is_url && *top != '/') {
		AUTO_FREE char *cwd = getcwd(NULL, 0);
		top = path_absolute(a, cwd ? cwd : "/", top);
	}
	strlist_addf(places, a, "%s/%s/%s", top, s->sha256, name);
	strlist_addf(places, a, "%s/%s", top, name);
	curl_free(escaped);
}

/* Doubled each time, plus up to a quarter that depends on digest and attempt: clients spread, runs are repeatable. */
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
		if (poll(&p, run->cancel_fd >= 0 ? 1 : 0, (int)(left * 1000) + 1) < 0 && errno != EINTR)
			break;
		if (run_check(run, e) < 0)
			return -1;
	}
	return 0;
}

static uint64_t file_size(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool is_lost(struct fetch_worker *w, const char *url, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	if (!fetch_hosts_lost(&w->shared->hosts, url))
		return false;
	err_set(e, ERR_NETWORK, "'%s' cannot be reached", fetch_hosts_name(url, &a));
	return true;
}

/* The last of the tries since `start`. */
static void give_up(struct fetch_worker *w, const char *url, bool unreached, double start)
{
	AUTO_ARENA struct arena a = {0};
	if (unreached && fetch_hosts_lose(&w->shared->hosts, url, start))
		log_warn(&w->log, "'%s' cannot be reached and is not asked again", fetch_hosts_name(url, &a));
}

enum transfer_outcome fetch_http(struct fetch_worker *w, const struct transfer *t, const char *name, struct err *e)
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
		if (!unreached)
			fetch_hosts_answered(&w->shared->hosts, t->url);
		if (out != TRANSFER_RETRY)
			return out;
		if (file_size(t->path) >= before + PROGRESS_BYTES)
			failures = 0;
		if (retry_after > MAX_RETRY_AFTER_S) {
			err_wrap(e, "asked to wait %u seconds", retry_after);
			return TRANSFER_NEXT;
		}
		if (failures >= w->shared->o->retries) {
			give_up(w, t->url, unreached, start);
			return TRANSFER_NEXT;
		}
		unsigned ms = pause_ms(w->shared->o, t->sha256, failures++);
		if (ms < retry_after * 1000)
			ms = retry_after * 1000;
		log_verbose(&w->log, "fetch: '%s' again in %.1f s: %s", name, ms / 1000.0, e->msg);
		if (wait_ms(&w->run, ms, e) < 0)
			return TRANSFER_STOP;
	}
}

int fetch_place_dir(struct fetch_worker *w, struct arena *a, const char *place, const char **ret, struct err *e)
{
	char hex[DIGEST_HEX_LEN + 1];
	int status = 0;
	pthread_mutex_lock(&w->shared->mutex);
	if (!w->shared->stage_dir)
		status = store_stage(w->shared->store, &w->shared->arena, &w->shared->stage_dir, e);
	pthread_mutex_unlock(&w->shared->mutex);
	if (status != 0)
		return -1;
	digest_data(place, strlen(place), hex);
	*ret = arena_printf(a, "%s/%.16s", w->shared->stage_dir, hex);
	return fs_mkdirs(TRUSTED, *ret, e);
}

enum transfer_outcome fetch_take(const struct transfer *t, const char *file, struct err *e)
{
	if (unlink(t->path) < 0 && errno != ENOENT) {
		err_errno(e, ERR_SYSTEM, "cannot delete '%s'", t->path);
		return TRANSFER_STOP;
	}
	if (link(file, t->path) < 0) {
		err_errno(e, ERR_SYSTEM, "cannot link '%s' to '%s'", file, t->path);
		return TRANSFER_STOP;
	}
	atomic_fetch_add(&t->progress->received, file_size(t->path));
	return transfer_check(t, e);
}

enum transfer_outcome fetch_file(const struct transfer *t, const char *place, bool *ret_absent, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct transfer copy = *t;
	copy.url = *place == '/' ? place : fetch_file_url(&a, place);
	if (!copy.url) {
		err_set(e, ERR_NETWORK, "unsupported place '%s': a file of another machine", place);
		return TRANSFER_NEXT;
	}
	*ret_absent = access(copy.url, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
	return transfer_copy(&copy, e);
}

/* A folder of the user's, packed into the place of the partial file. */
static enum transfer_outcome from_folder(const struct transfer *t, const struct fetch_source *s, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char hex[DIGEST_HEX_LEN + 1];
	AUTO_FD int fd = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		err_errno(e, ERR_SYSTEM, "cannot write '%s'", t->path);
	if (fd < 0 || folder_pack(t->url, arena_strndup(&a, s->name, strcspn(s->name, "-")), fd, hex, e) < 0)
		return TRANSFER_STOP;
	return transfer_check(t, e);
}

enum place_kind { PLACE_HTTP, PLACE_WHEEL, PLACE_DEB, PLACE_FILE, PLACE_FOLDER, PLACES };

/* The kind of a place and what follows its prefix; PLACES for none. */
static enum place_kind place_kind(const char *place, const char **ret_rest)
{
	static const struct {
		const char *prefix;
		enum place_kind kind;
		bool whole;
	} known[] = {{"https://", PLACE_HTTP, true},  {"http://", PLACE_HTTP, true}, {"wheel:", PLACE_WHEEL, false},
		     {"deb:", PLACE_DEB, false},      {"file://", PLACE_FILE, true}, {"/", PLACE_FILE, true},
		     {"folder:", PLACE_FOLDER, false}};
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (starts(place, known[i].prefix)) {
			*ret_rest = place + (known[i].whole ? 0 : strlen(known[i].prefix));
			return known[i].kind;
		}
	*ret_rest = place;
	return PLACES;
}

/* *ret_absent: the place said for certain that it has no such file. */
static enum transfer_outcome from_place(struct fetch_worker *w, const struct fetch_source *s, const char *place,
					const char *partial, bool *skipped, bool *ret_absent, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct fetch_options *o = w->shared->o;
	enum transfer_outcome out;
	long status = 0;
	struct transfer t = {.path = partial,
			     .ret_status = &status,
			     .sha256 = s->sha256,
			     .max_bytes = s->max_bytes,
			     .stall_seconds = o->stall_seconds,
			     .slow_seconds = o->slow_seconds,
			     .slow_rate = FETCH_SLOW_RATE,
			     .client = w->client,
			     .run = &w->run,
			     .progress = &w->shared->amount};
	enum place_kind kind = place_kind(place, &t.url);
	*skipped |= o->offline && kind < PLACE_FILE;
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
		return fetch_file(&t, t.url, ret_absent, e);
	case PLACE_FOLDER:
		return from_folder(&t, s, e);
	case PLACES:
		break;
	}
	err_set(e, ERR_NETWORK, "unsupported place '%s' (https:, http:, file:, wheel:, deb: or an absolute path)",
		transfer_shown_url(&a, place));
	return TRANSFER_NEXT;
}

struct verdict {
	struct buf reasons; /* what each place said */
	bool wrong;         /* one had other bytes */
	bool skipped;       /* one was left out by --offline */
	size_t absent;      /* places that said for certain that they have no such file */
	char hint[1024];    /* the first hint a place gave */
};

static int no_place_left(const struct fetch_source *s, const struct verdict *v, struct err *e)
{
	const char *reasons = buf_cstr(&v->reasons);
	if (v->wrong) {
		err_set(e, ERR_INTEGRITY, "wrong bytes for '%s': %s", s->name, reasons);
		return err_hint(e, "the file was changed at its place or on the way; put the right one into a "
				   "directory and give that with --mirror DIR");
	}
	if (v->skipped) {
		err_set(e, ERR_NETWORK, "'%s' (sha256 %s) is not in the store and --offline forbids fetching it%s%s",
			s->name, s->sha256, *reasons ? ": " : "", reasons);
		return err_hint(e, "run the same once without --offline, or give the directory that holds it with "
				   "--mirror DIR");
	}
	err_set(e, ERR_NETWORK, "cannot fetch '%s': %s", s->name, *reasons ? reasons : "no place is known for it");
	if (v->hint[0])
		return err_hint(e, "%s", v->hint);
	return err_hint(e,
			"check the network and its proxy variables, or give the directory that holds it with "
			"--mirror DIR (sha256 %s)",
			s->sha256);
}

static void note_failure(struct verdict *v, enum transfer_outcome out, const struct err *said)
{
	if (said->kind == ERR_NONE)
		return;
	buf_printf(&v->reasons, "%s%s", v->reasons.len ? "; " : "", said->msg);
	v->wrong |= out == TRANSFER_WRONG;
	if (!v->hint[0])
		snprintf(v->hint, sizeof(v->hint), "%s", said->hint);
}

static int try_places(struct fetch_worker *w, const struct fetch_source *s, const struct strlist *places,
		      const char *partial, struct verdict *v, struct err *e)
{
	for (size_t i = 0; i < places->count; i++) {
		struct err said = {0};
		bool absent = false;
		enum transfer_outcome out = from_place(w, s, places->items[i], partial, &v->skipped, &absent, &said);
		v->absent += absent;
		if (out == TRANSFER_STOP) {
			*e = said;
			return -1;
		}
		if (out != TRANSFER_DONE) {
			note_failure(v, out, &said);
			continue;
		}
		AUTO_ARENA struct arena a = {0};
		if (v->wrong)
			log_warn(&w->log, "'%s' came from '%s' after other places failed: %s", s->name,
				 transfer_shown_url(&a, places->items[i]), buf_cstr(&v->reasons));
		else if (v->reasons.len)
			log_verbose(&w->log, "fetch: '%s': %s", s->name, buf_cstr(&v->reasons));
		return 0;
	}
	return no_place_left(s, v, e);
}

int fetch_places(struct fetch_worker *w, const struct fetch_source *s, const char *partial, bool *ret_gone,
		 struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist places = {0};
	struct verdict v = {0};
	for (size_t i = 0; i < w->shared->o->mirrors.count; i++)
		fetch_mirror_places(&places, &a, w->shared->o->mirrors.items[i], s);
	strlist_append(&places, &a, &s->urls);
	int status = try_places(w, s, &places, partial, &v, e);
	*ret_gone = status != 0 && places.count > 0 && v.absent == places.count;
	buf_release(&v.reasons);
	return status;
}
