#include "step/fetch/fetch_transfer.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "step/fetch/fetch_partial.h"

enum { CHUNK = 1 << 20, MAX_REDIRECTS = 10, POLL_MS = 200, SLOW_RATE = 65536 };

/* Why a callback stopped curl: what curl itself says then is only "write error". */
enum stop_reason {
	STOP_NONE,
	STOP_STATUS,
	STOP_RANGE,
	STOP_UNASKED,
	STOP_TOO_BIG,
	STOP_LOCAL,
	STOP_STALL,
	STOP_SLOW,
	STOP_CANCEL
};

struct attempt {
	const struct transfer *t;
	CURL *easy;
	struct partial *file;
	uint64_t start; /* bytes that were there when the request was made */
	uint64_t total; /* of the whole file as the server says, 0 unknown */
	uint64_t announced;
	uint64_t received;
	bool body; /* the first byte of the body was looked at */
	bool restarted;
	double alive; /* when the last byte came */
	enum stop_reason stop;
	char range[128]; /* value of Content-Range */
	char words[CURL_ERROR_SIZE];
	const char *shown; /* the URL for messages */
	unsigned *retry_after;
	struct err *e;
};

static uint64_t max_bytes(const struct transfer *t)
{
	return t->max_bytes ? t->max_bytes : TRANSFER_MAX_BYTES;
}

/* A URL may carry the password of a mirror; messages and logs must not. */
char *transfer_shown_url(struct arena *a, const char *url)
{
	CURLU *u = curl_url();
	char *out = NULL;
	if (u && curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK) {
		char *text = NULL;
		curl_url_set(u, CURLUPART_USER, NULL, 0);
		curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
		if (curl_url_get(u, CURLUPART_URL, &text, 0) == CURLUE_OK)
			out = arena_strdup(a, text);
		curl_free(text);
	}
	curl_url_cleanup(u);
	return out ? out : arena_strdup(a, strchr(url, '@') ? "(malformed)" : url);
}

static enum transfer_outcome wrong_digest(const struct transfer *t, struct partial *p, const char *shown,
					  const char *got, struct err *e)
{
	if (partial_delete(p, e) < 0)
		return TRANSFER_STOP;
	err_set(e, ERR_INTEGRITY, "wrong digest from '%s': sha256 %s, pinned is %s", shown, got, t->sha256);
	return TRANSFER_WRONG;
}

/* "bytes 100-199/200" or with "*" for the total. */
static bool parse_range(const char *text, uint64_t *first, uint64_t *last, uint64_t *total)
{
	uint64_t *const part[] = {first, last, total};
	static const char behind[] = {'-', '/', '\0'};
	if (strncasecmp(text, "bytes ", 6) != 0)
		return false;
	text += 6;
	for (size_t i = 0; i < ARRAY_LEN(part); i++) {
		if (i == 2 && strcmp(text, "*") == 0) {
			*total = 0;
			return *first <= *last;
		}
		char *end;
		errno = 0;
		if (!isdigit((unsigned char)*text))
			return false;
		*part[i] = strtoull(text, &end, 10);
		if (errno || *end != behind[i])
			return false;
		text = end + 1;
	}
	return *first <= *last && *last < *total;
}

static size_t on_header(char *data, size_t unit, size_t count, void *user)
{
	struct attempt *at = user;
	size_t len = unit * count;
	static const char name[] = "content-range:";
	at->alive = log_seconds();
	if (len >= 5 && memcmp(data, "HTTP/", 5) == 0)
		at->range[0] = '\0'; /* a redirect's headers are not those of the answer */
	if (len < sizeof(name) - 1 || strncasecmp(data, name, sizeof(name) - 1) != 0)
		return len;
	const char *value = data + sizeof(name) - 1;
	const char *end = data + len;
	while (value < end && isspace((unsigned char)*value))
		value++;
	while (end > value && isspace((unsigned char)end[-1]))
		end--;
	if ((size_t)(end - value) < sizeof(at->range)) {
		memcpy(at->range, value, (size_t)(end - value));
		at->range[end - value] = '\0';
	}
	return len;
}

/* The server's answer is judged when its first body byte comes, before anything is written. */
static enum stop_reason look_at_answer(struct attempt *at)
{
	long code = 0;
	curl_off_t length = -1;
	uint64_t last = 0;
	curl_easy_getinfo(at->easy, CURLINFO_RESPONSE_CODE, &code);
	curl_easy_getinfo(at->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	if (code == 206) {
		uint64_t first = 0;
		if (at->start == 0)
			return STOP_UNASKED;
		if (!parse_range(at->range, &first, &last, &at->total) || first != at->start)
			return STOP_RANGE;
	} else if (code == 200) {
		if (at->file->have > 0 && partial_restart(at->file, at->e) < 0)
			return STOP_LOCAL;
		at->total = length > 0 ? (uint64_t)length : 0;
	} else {
		return STOP_STATUS;
	}
	if (at->total > at->file->max)
		return STOP_TOO_BIG;
	at->announced = at->total > at->file->have ? at->total - at->file->have : 0;
	atomic_fetch_add(&at->t->progress->expected, at->announced);
	return STOP_NONE;
}

static size_t on_body(char *data, size_t unit, size_t count, void *user)
{
	struct attempt *at = user;
	size_t len = unit * count;
	at->alive = log_seconds();
	if (!at->body) {
		at->body = true;
		at->stop = look_at_answer(at);
	}
	if (at->stop == STOP_NONE && at->file->have + len > at->file->max)
		at->stop = STOP_TOO_BIG;
	if (at->stop == STOP_NONE && partial_add(at->file, data, len, at->e) < 0)
		at->stop = STOP_LOCAL;
	if (at->stop != STOP_NONE)
		return len ? 0 : 1;
	at->received += len;
	atomic_fetch_add(&at->t->progress->received, len);
	return len;
}

static void set_options(struct attempt *at)
{
	CURL *c = at->easy;
	const char *url = at->t->url;
	bool secure = strncasecmp(url, "https:", 6) == 0;
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, at->words);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "ptbuild/" PTBUILD_VERSION);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT,
			 (long)(at->t->connect_seconds ? at->t->connect_seconds : at->t->stall_seconds));
	/* also refuses lengths that are no 64-bit number */
	curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)at->file->max);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 512L * 1024);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, at);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, at);
	/* The variable OpenSSL and most clients honour; libcurl alone does not. */
	const char *authorities = getenv("SSL_CERT_FILE");
	if (authorities && *authorities)
		curl_easy_setopt(c, CURLOPT_CAINFO, authorities);
	if (at->start > 0) {
		char range[32];
		snprintf(range, sizeof(range), "%llu-", (unsigned long long)at->start);
		curl_easy_setopt(c, CURLOPT_RANGE, range);
	}
}

/* Runs the transfer, watching the user's wish and the time since the last byte (curl's own low-speed limit averages
 * over seconds). */
static CURLcode drive(struct attempt *at, CURLM *multi)
{
	const struct run *run = at->t->run;
	struct curl_waitfd extra = {.fd = run->cancel_fd, .events = CURL_WAIT_POLLIN};
	int running = 1;
	double began = log_seconds();
	at->alive = began;
	while (running) {
		if (curl_multi_perform(multi, &running) != CURLM_OK)
			return CURLE_FAILED_INIT;
		if (!running)
			break;
		if (curl_multi_poll(multi, &extra, run->cancel_fd >= 0 ? 1 : 0, POLL_MS, NULL) != CURLM_OK)
			return CURLE_FAILED_INIT;
		if (run_cancelled(run)) {
			at->stop = STOP_CANCEL;
			return CURLE_ABORTED_BY_CALLBACK;
		}
		if (log_seconds() - at->alive > at->t->stall_seconds) {
			at->stop = STOP_STALL;
			return CURLE_OPERATION_TIMEDOUT;
		}
		if (at->t->slow_seconds &&
		    log_seconds() - began > at->t->slow_seconds + (double)at->received / SLOW_RATE) {
			at->stop = STOP_SLOW;
			return CURLE_OPERATION_TIMEDOUT;
		}
	}
	int left;
	for (const CURLMsg *m; (m = curl_multi_info_read(multi, &left)) != NULL;)
		if (m->msg == CURLMSG_DONE)
			return m->data.result;
	return CURLE_FAILED_INIT;
}

static bool can_retry(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
	case CURLE_SSL_CONNECT_ERROR:
		return true;
	default:
		return false;
	}
}

static enum transfer_outcome judge_status(struct attempt *at, long code)
{
	curl_off_t wait = 0;
	curl_easy_getinfo(at->easy, CURLINFO_RETRY_AFTER, &wait);
	if (wait > 0)
		*at->retry_after = wait < 1000000 ? (unsigned)wait : 1000000;
	err_set(at->e, ERR_NETWORK, "http status %ld from '%s'", code, at->shown);
	return code == 408 || code == 429 || (code >= 500 && code != 501 && code != 505) ? TRANSFER_RETRY
											 : TRANSFER_NEXT;
}

/* Everything came: is it what is pinned? */
static enum transfer_outcome judge_bytes(struct attempt *at, bool *ret_again)
{
	char got[DIGEST_HEX_LEN + 1];
	if (at->total > at->file->have) {
		err_set(at->e, ERR_NETWORK, "only %llu of %llu bytes came from '%s'",
			(unsigned long long)at->file->have, (unsigned long long)at->total, at->shown);
		return TRANSFER_RETRY;
	}
	if (!at->t->sha256 || partial_matches(at->file, at->t->sha256, got))
		return TRANSFER_DONE;
	if (at->file->have > at->received && !at->restarted) { /* the older part may be what is wrong */
		*ret_again = true;
		return TRANSFER_RETRY;
	}
	return wrong_digest(at->t, at->file, at->shown, got, at->e);
}

static enum transfer_outcome judge(struct attempt *at, CURLcode result, bool *ret_again)
{
	long code = 0;
	curl_easy_getinfo(at->easy, CURLINFO_RESPONSE_CODE, &code);
	if (at->t->ret_status)
		*at->t->ret_status = code;
	switch (at->stop) {
	case STOP_CANCEL:
		err_set(at->e, ERR_INTERRUPTED, "interrupted");
		return TRANSFER_STOP;
	case STOP_LOCAL:
		return TRANSFER_STOP;
	case STOP_UNASKED:
		err_set(at->e, ERR_NETWORK, "a part of the file that was not asked for from '%s'", at->shown);
		return TRANSFER_NEXT;
	case STOP_STALL:
		err_set(at->e, ERR_NETWORK, "no byte for %u seconds from '%s'", at->t->stall_seconds, at->shown);
		return TRANSFER_RETRY;
	case STOP_SLOW:
		err_set(at->e, ERR_NETWORK, "too slow: %llu bytes came from '%s'", (unsigned long long)at->received,
			at->shown);
		return TRANSFER_RETRY;
	case STOP_RANGE:
		*ret_again = true;
		return TRANSFER_RETRY;
	case STOP_TOO_BIG:
	case STOP_STATUS:
	case STOP_NONE:
		break;
	}
	if (code == 416 && at->start > 0) { /* what is there is longer than the file */
		*ret_again = true;
		return TRANSFER_RETRY;
	}
	if (at->stop == STOP_TOO_BIG || result == CURLE_FILESIZE_EXCEEDED) {
		err_set(at->e, ERR_NETWORK, "more than %llu bytes from '%s'", (unsigned long long)at->file->max,
			at->shown);
		return partial_restart(at->file, at->e) < 0 ? TRANSFER_STOP : TRANSFER_NEXT;
	}
	if (result != CURLE_OK && at->stop == STOP_NONE) {
		err_set(at->e, ERR_NETWORK, "cannot get '%s': %s", at->shown,
			at->words[0] ? at->words : curl_easy_strerror(result));
		return can_retry(result) ? TRANSFER_RETRY : TRANSFER_NEXT;
	}
	if (code != 200 && code != 206)
		return judge_status(at, code);
	if (!at->body && code == 200 && at->file->have > 0 && partial_restart(at->file, at->e) < 0)
		return TRANSFER_STOP;
	return judge_bytes(at, ret_again);
}

static enum transfer_outcome request(struct attempt *at, bool *ret_again)
{
	CURLM *multi = curl_multi_init();
	at->easy = curl_easy_init();
	if (!multi || !at->easy)
		abort(); /* only memory can be missing */
	at->start = at->file->have;
	at->body = false;
	at->stop = STOP_NONE;
	at->received = 0;
	at->total = 0;
	at->announced = 0;
	at->range[0] = '\0';
	at->words[0] = '\0';
	set_options(at);
	curl_multi_add_handle(multi, at->easy);
	CURLcode result = drive(at, multi);
	enum transfer_outcome out = judge(at, result, ret_again);
	if (at->announced > at->received)
		atomic_fetch_sub(&at->t->progress->expected, at->announced - at->received);
	curl_multi_remove_handle(multi, at->easy);
	curl_easy_cleanup(at->easy);
	curl_multi_cleanup(multi);
	return out;
}

enum transfer_outcome transfer_http(const struct transfer *t, unsigned *ret_retry_after, struct err *e)
{
	AUTO_PARTIAL struct partial p = PARTIAL_NONE;
	AUTO_ARENA struct arena a = {0};
	bool complete = false;
	if (partial_open(&p, t->path, t->sha256, max_bytes(t), t->run, &complete, e) < 0)
		return TRANSFER_STOP;
	if (complete)
		return TRANSFER_DONE;
	struct attempt at = {
		.t = t, .file = &p, .shown = transfer_shown_url(&a, t->url), .retry_after = ret_retry_after, .e = e};
	for (;;) {
		bool again = false;
		enum transfer_outcome out = request(&at, &again);
		if (!again)
			return out;
		at.restarted = true;
		if (partial_restart(&p, e) < 0)
			return TRANSFER_STOP;
	}
}

enum transfer_outcome transfer_check(const struct transfer *t, struct err *e)
{
	AUTO_PARTIAL struct partial p = PARTIAL_NONE;
	bool complete = false;
	char got[DIGEST_HEX_LEN + 1];
	if (partial_open(&p, t->path, t->sha256, max_bytes(t), t->run, &complete, e) < 0)
		return TRANSFER_STOP;
	if (complete || partial_matches(&p, t->sha256, got))
		return TRANSFER_DONE;
	return wrong_digest(t, &p, t->url, got, e);
}

static enum transfer_outcome copy_bytes(const struct transfer *t, int from, struct partial *p, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *chunk = arena_alloc(&a, CHUNK);
	for (;;) {
		ssize_t n = read(from, chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_errno(e, ERR_NETWORK, "cannot read '%s'", t->url);
			return TRANSFER_NEXT;
		}
		if (n == 0)
			return TRANSFER_DONE;
		if (run_check(t->run, e) < 0 || partial_add(p, chunk, (size_t)n, e) < 0)
			return TRANSFER_STOP;
		atomic_fetch_add(&t->progress->received, (uint64_t)n);
	}
}

enum transfer_outcome transfer_copy(const struct transfer *t, struct err *e)
{
	AUTO_PARTIAL struct partial p = PARTIAL_NONE;
	AUTO_FD int from = open(t->url, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	bool complete = false;
	char got[DIGEST_HEX_LEN + 1];
	if (from < 0 || fstat(from, &st) < 0) {
		err_errno(e, ERR_NETWORK, "cannot open '%s'", t->url);
		return TRANSFER_NEXT;
	}
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max_bytes(t)) {
		err_set(e, ERR_NETWORK, S_ISREG(st.st_mode) ? "too large: '%s'" : "not a regular file: '%s'", t->url);
		return TRANSFER_NEXT;
	}
	if (partial_open(&p, t->path, t->sha256, max_bytes(t), t->run, &complete, e) < 0)
		return TRANSFER_STOP;
	if (complete)
		return TRANSFER_DONE;
	if (partial_restart(&p, e) < 0)
		return TRANSFER_STOP;
	atomic_fetch_add(&t->progress->expected, (uint64_t)st.st_size);
	enum transfer_outcome out = copy_bytes(t, from, &p, e);
	if (out != TRANSFER_DONE)
		return out;
	return partial_matches(&p, t->sha256, got) ? TRANSFER_DONE : wrong_digest(t, &p, t->url, got, e);
}
