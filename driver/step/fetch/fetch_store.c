#include "step/fetch/fetch_place.h"

#include <strings.h>

enum { CONNECT_SECONDS = 5, STALL_SECONDS = 10, SLOW_SECONDS = 60, SLOW_RATE = 65536 };

static bool is_absent(long status)
{
	return status == 401 || status == 403 || status == 404 || status == 410;
}

static int get(const char *url, const struct store_want *w, const struct run *run, enum store_got *ret, struct err *e)
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
	log_status(run->log, "asking the remote store for %.60s", w->path);
	enum transfer_outcome out = transfer_http(&t, &ignored, e);
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
		err_set(e, ERR_USAGE, "not an http or https URL: --store-url '%s'", transfer_shown_url(&a, url));
		return err_hint(e, "give the URL of the directory that holds the other store's 'objects'; for a "
				   "directory of this machine use --lower-store");
	}
	store_set_remote(s, get, url);
	return 0;
}
