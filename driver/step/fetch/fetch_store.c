#include "step/fetch/fetch_place.h"

#include <strings.h>

enum { CONNECT_SECONDS = 5, STALL_SECONDS = 10, SLOW_SECONDS = 60, SLOW_RATE = 65536 };

static bool is_absent(long status)
{
	return status == 401 || status == 403 || status == 404 || status == 410;
}

/* Smaller files are there before anybody asks how far they are. */
#define SHOWN_BYTES 4000000

/* What a download of this size is announced with; false: it is not. */
static bool announce(const struct store_want *w, const struct run *run, struct transfer_progress *p,
		     struct arena *a)
{
	struct strlist origins = {0};
	const struct download d = {.name = path_base(w->path),
				   .total = w->max_bytes,
				   .of = &origins,
				   .kept = path_dir(a, path_dir(a, path_dir(a, w->to)))};

	if (!w->sha256 || w->max_bytes < SHOWN_BYTES)
		return false;
	strlist_ref(&origins, a, "the remote store");
	download_begin(run->log, &d);
	p->log = run->log;
	p->known = w->max_bytes;
	p->start = log_seconds();
	return true;
}

static int get(const char *url, const struct store_want *w, const struct run *run,
	       enum store_got *ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct transfer_progress progress = {0};
	unsigned ignored = 0;
	long status = 0;
	const struct transfer t = {.url = path_join(&a, url, transfer_escaped(w->path, &a)),
				   .path = w->to,
				   .sha256 = w->sha256,
				   .max_bytes = w->max_bytes ? w->max_bytes : 1,
				   .stall_seconds = STALL_SECONDS,
				   .connect_seconds = CONNECT_SECONDS,
				   .slow_seconds = SLOW_SECONDS,
				   .slow_rate = SLOW_RATE,
				   .ret_status = &status,
				   .run = run,
				   .progress = &progress};
	const bool shown = announce(w, run, &progress, &a);

	if (!shown)
		log_status(run->log, "asking the remote store for %.60s", w->path);
	enum transfer_outcome out = transfer_http(&t, &ignored, e);
	const struct download_state now = transfer_state(&progress);
	if (out == TRANSFER_DONE && shown)
		download_end(run->log, &now);
	if (out == TRANSFER_STOP)
		return -1;
	if (out == TRANSFER_DONE)
		*ret = STORE_GOT;
	else
		*ret = out == TRANSFER_NEXT && is_absent(status) ? STORE_GOT_ABSENT : STORE_GOT_BAD;
	if (out == TRANSFER_DONE || *ret == STORE_GOT_ABSENT)
		err_clear(e);
	return 0;
}

int fetch_store_set(struct store *s, const char *url, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	bool known = strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
	CURLU *parsed = known ? curl_url() : NULL;
	bool good = parsed && curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK;

	curl_url_cleanup(parsed);
	if (!good || strchr(url, '?') || strchr(url, '#')) {
		err_set(e, ERR_USAGE, "not an http or https URL: --store-url '%s'",
			transfer_shown_url(&a, url));
		return err_hint(e, "give the URL of the directory that holds the other store's "
				   "'objects'; for a "
				   "directory of this machine use --lower-store");
	}

	store_set_remote(s, get, url);
	return 0;
}
