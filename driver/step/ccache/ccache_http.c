#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "step/ccache/ccache_resp.h"
#include "step/ccache/ccache_server.h"

enum { CONNECT_SECONDS = 5, STALL_SECONDS = 10, STALL_BYTES = 1024 };

struct body {
	struct buf *out;  /* NULL: only the status is asked for */
	const char *data; /* what is sent */
	size_t left;
	bool replace;
};

static size_t on_body(char *data, size_t unit, size_t count, void *user)
{
	struct body *b = user;
	size_t len = unit * count;
	if (b->out->len + len > RESP_MAX_VALUE)
		return len ? 0 : 1;
	buf_add(b->out, data, len);
	return len;
}

static size_t on_send(char *to, size_t unit, size_t count, void *user)
{
	struct body *b = user;
	size_t n = unit * count < b->left ? unit * count : b->left;
	memcpy(to, b->data, n);
	b->data += n;
	b->left -= n;
	return n;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct ccache_server *s = user;
	struct pollfd p = {.fd = s->stop, .events = POLLIN};
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return poll(&p, 1, 0) > 0;
}

static int request(struct ccache_client *c, const char *name, struct body *body, long *ret_status, struct err *e)
{
	AUTO_BUF struct buf url = {0};
	char words[CURL_ERROR_SIZE] = "";
	if (!c->curl && !(c->curl = curl_easy_init()))
		abort(); /* only memory can be missing */
	CURL *h = c->curl;
	curl_easy_reset(h);
	buf_printf(&url, "%s/%s", c->server->url, name);
	curl_easy_setopt(h, CURLOPT_URL, buf_cstr(&url));
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, words);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "ptbuild/" PTBUILD_VERSION);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
	curl_easy_setopt(h, CURLOPT_TIMEOUT, (long)CCACHE_EXCHANGE_SECONDS);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, c->server);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, body);
	if (!body->out)
		curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
	struct curl_slist *headers = NULL;
	if (body->data) {
		if (!body->replace && !(headers = curl_slist_append(NULL, "If-None-Match: *")))
			abort();
		curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(h, CURLOPT_READFUNCTION, on_send);
		curl_easy_setopt(h, CURLOPT_READDATA, body);
		curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)body->left);
	}
	CURLcode rc = curl_easy_perform(h);
	curl_slist_free_all(headers);
	if (rc != CURLE_OK)
		return err_set(e, ERR_NETWORK, "compiler cache: '%s': %s", c->server->shown,
			       words[0] ? words : curl_easy_strerror(rc));
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, ret_status);
	return 0;
}

int ccache_http_get(struct ccache_client *c, const char *name, struct buf *out, bool *ret_found, struct err *e)
{
	AUTO_BUF struct buf bytes = {0};
	struct body body = {.out = out ? &bytes : NULL};
	long status = 0;
	if (request(c, name, &body, &status, e) < 0)
		return -1;
	if (status != 200 && status != 404 && status != 410)
		return err_set(e, ERR_NETWORK, "compiler cache: http status %ld from '%s'", status, c->server->shown);
	if (status == 200 && out)
		buf_add(out, bytes.data, bytes.len);
	*ret_found = status == 200;
	return 0;
}

int ccache_http_put(struct ccache_client *c, const char *name, const void *data, size_t len, bool replace,
		    struct err *e)
{
	AUTO_BUF struct buf ignored = {0};
	struct body body = {.out = &ignored, .data = data, .left = len, .replace = replace};
	long status = 0;
	if (request(c, name, &body, &status, e) < 0)
		return -1;
	if ((status < 200 || status > 299) && status != 412)
		return err_set(e, ERR_NETWORK, "compiler cache: http status %ld from '%s'", status, c->server->shown);
	return 0;
}
