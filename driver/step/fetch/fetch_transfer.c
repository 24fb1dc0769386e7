#include "step/fetch/fetch_place.h"

#include <strings.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"

struct partial {
	const char *path;
	int fd;
	struct digest *digest; /* over the first `have` bytes */
	uint64_t have;
	uint64_t max; /* the file may not grow beyond */
};

#define PARTIAL_NONE ((struct partial){.fd = -1})

enum { CHUNK = 1 << 20 };

/* Empties it. */
static int partial_restart(struct partial *p, struct err *e)
{
	if (ftruncate(p->fd, 0) < 0 || lseek(p->fd, 0, SEEK_SET) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot truncate '%s'", p->path);
	digest_reset(p->digest);
	p->have = 0;
	return 0;
}

/* Finishes the digest and compares; only restart, delete and close may follow. */
static bool partial_matches(struct partial *p, const char *sha256, char ret_got[DIGEST_HEX_LEN + 1])
{
	uint8_t raw[DIGEST_LEN];

	digest_final(p->digest, raw);
	digest_hex(raw, ret_got);
	return strcmp(ret_got, sha256) == 0;
}

/* Closes and renames a complete file. */
static enum transfer_outcome partial_finish(struct partial *p, struct err *e)
{
	return fs_close(&p->fd, p->path, e) < 0 ? TRANSFER_STOP : TRANSFER_DONE;
}

static void partial_close(struct partial *p)
{
	if (p->fd >= 0)
		close(p->fd);
	digest_free(p->digest);
	*p = PARTIAL_NONE;
}

#define AUTO_PARTIAL CLEANUP(partial_close)

/* Hashes the first p->have bytes and leaves the descriptor behind them. */
static int hash_existing(struct partial *p, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *chunk = arena_alloc(&a, CHUNK);

	digest_reset(p->digest);
	for (uint64_t done = 0; done < p->have;) {
		ssize_t n =
			fs_read_at(p->fd, chunk,
				   p->have - done < CHUNK ? (size_t)(p->have - done) : CHUNK, done);
		if (n < 0)
			return err_errno(e, ERR_SYSTEM, "cannot read '%s'", p->path);
		if (n == 0)
			return err_set(e, ERR_SYSTEM, "'%s' became shorter while it was read",
				       p->path);
		digest_update(p->digest, chunk, (size_t)n);
		done += (uint64_t)n;
		if (run_check(run, e) < 0)
			return -1;
	}

	return lseek(p->fd, (off_t)p->have, SEEK_SET) < 0
		       ? err_errno(e, ERR_SYSTEM, "cannot seek in '%s'", p->path)
		       : 0;
}

static int open_file(struct partial *p, struct err *e)
{
	struct stat st;

	p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (p->fd < 0 || fstat(p->fd, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", p->path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_SYSTEM, "not a regular file: '%s'", p->path);
	p->have = (uint64_t)st.st_size;
	return p->have > p->max ? partial_restart(p, e) : 0;
}

static uint64_t max_bytes(const struct transfer *t)
{
	return t->max_bytes ? t->max_bytes : TRANSFER_MAX_BYTES;
}

/* Opens or creates the file (links are refused), empties it if longer than `max` or if no digest is
 * wanted (NULL), and hashes it; *ret_complete: it is the wanted file. Keeps the pointer `path`. */
static int partial_open(struct partial *p, const struct transfer *t, bool *ret_complete,
			struct err *e)
{
	AUTO_PARTIAL struct partial new = {
		.path = t->path, .fd = -1, .digest = digest_new(), .max = max_bytes(t)};
	char got[DIGEST_HEX_LEN + 1];
	bool complete = false;

	if (open_file(&new, e) < 0)
		return -1;
	/* nothing to check a longer one by */
	if (new.have > 0 && !t->sha256 && partial_restart(&new, e) < 0)
		return -1;
	if (new.have > 0) {
		if (hash_existing(&new, t->run, e) < 0)
			return -1;
		complete = partial_matches(&new, t->sha256, got);
		if (!complete && hash_existing(&new, t->run, e) < 0)
			return -1;
	}

	*ret_complete = complete;
	*p = new;
	new = PARTIAL_NONE;
	return 0;
}

/* Writes and hashes; the caller checks `max`. */
static int partial_add(struct partial *p, const void *data, size_t len, struct err *e)
{
	if (fs_write_all(p->fd, data, len, p->path, e) < 0)
		return -1;
	digest_update(p->digest, data, len);
	p->have += len;
	return 0;
}

static int partial_delete(struct partial *p, struct err *e)
{
	if (unlink(p->path) < 0 && errno != ENOENT)
		return err_errno(e, ERR_SYSTEM, "cannot delete '%s'", p->path);
	return 0;
}

enum { MAX_REDIRECTS = 10, POLL_MS = 200 };

/* Why a callback stopped curl, which itself only says "write error". */
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

struct transfer_client {
	CURLM *multi; /* holds the open connections */
	CURL *easy;
};

struct attempt {
	const struct transfer *t;
	CURL *easy;
	struct partial *file;
	uint64_t start; /* bytes that were there when the request was made */
	uint64_t total; /* size of the file as the server says, 0 unknown */
	uint64_t announced;
	uint64_t received;
	bool body; /* the answer was checked */
	bool restarted;
	double alive; /* when the last byte came */
	enum stop_reason stop;
	struct curl_slist *headers;
	char message[CURL_ERROR_SIZE];
	const char *shown; /* the URL for messages */
	unsigned *retry_after;
	struct err *e;
};

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

char *transfer_escaped(const char *path, struct arena *a)
{
	struct strlist parts = {0}, out = {0};

	strlist_split(&parts, a, path, "/");
	for (size_t i = 0; i < parts.count; i++) {
		char *text = curl_easy_escape(NULL, parts.items[i], 0);
		if (!text)
			abort();
		strlist_add(&out, a, text);
		curl_free(text);
	}

	return strlist_join(&out, a, "/");
}

static enum transfer_outcome wrong_digest(const struct transfer *t, struct partial *p,
					  const char *shown, const char *got, struct err *e)
{
	if (partial_delete(p, e) < 0)
		return TRANSFER_STOP;
	err_set(e, ERR_INTEGRITY, "wrong digest from '%s': sha256 %s, expected %s", shown, got,
		t->sha256);
	return TRANSFER_WRONG;
}

/* Content-Range: "bytes 100-199/200", or "*" for the total, which is then 0. */
static bool read_range(CURL *easy, uint64_t *ret_first, uint64_t *ret_total)
{
	struct curl_header *h;

	unsigned long long first, last, total = 0;
	int end = 0;
	if (curl_easy_header(easy, "Content-Range", 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
		return false;
	if (strncasecmp(h->value, "bytes ", 6) != 0 || !isdigit((unsigned char)h->value[6]))
		return false;
	if (sscanf(h->value + 6, "%19llu-%19llu/%n", &first, &last, &end) != 2 || !end)
		return false;
	const char *size = h->value + 6 + end;
	bool known = strcmp(size, "*") != 0;
	end = 0;
	if (known && (!isdigit((unsigned char)*size) ||
		      sscanf(size, "%19llu%n", &total, &end) != 1 || size[end]))
		return false;
	*ret_first = first;
	*ret_total = total;
	return first <= last && (!known || last < total);
}

static size_t on_header(char *data, size_t unit, size_t count, void *user)
{
	struct attempt *at = user;

	(void)data;
	at->alive = log_seconds();
	return unit * count;
}

/* Judges the answer at its first body byte, before anything is written. */
static enum stop_reason check_answer(struct attempt *at)
{
	long code = 0;
	curl_off_t length = -1;

	curl_easy_getinfo(at->easy, CURLINFO_RESPONSE_CODE, &code);
	curl_easy_getinfo(at->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	if (code == 206) {
		uint64_t first = 0;
		if (at->start == 0)
			return STOP_UNASKED;
		if (!read_range(at->easy, &first, &at->total) || first != at->start)
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
		at->stop = check_answer(at);
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

/* OpenSSL and most clients obey the first variable, curl's own program the second,
 * libcurl neither. The places are those that Go's crypto/x509 looks at (root_linux.go). */
const char *transfer_authorities(void)
{
	static const char *const variables[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE"};
	static const char *const places[] = {
		/* Debian, Ubuntu, Arch, Gentoo */
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, RHEL */
		"/etc/ssl/ca-bundle.pem",                            /* openSUSE */
		"/etc/pki/tls/cacert.pem",                           /* OpenELEC */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* CentOS, RHEL 7 */
		"/etc/ssl/cert.pem",                                 /* Alpine, macOS */
	};

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *named = getenv(variables[i]);
		if (named && *named)
			return named;
	}

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (access(places[i], R_OK) == 0)
			return places[i];
	return NULL;
}

void transfer_options(CURL *c, const char *url, char message[CURL_ERROR_SIZE])
{
	bool secure = strncasecmp(url, "https:", 6) == 0;
	const char *authorities = transfer_authorities();

	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, message);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "ptbuild/" PTBUILD_VERSION);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
	if (authorities)
		curl_easy_setopt(c, CURLOPT_CAINFO, authorities);
}

static void set_options(struct attempt *at)
{
	CURL *c = at->easy;

	transfer_options(c, at->t->url, at->message);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(
		c, CURLOPT_CONNECTTIMEOUT,
		(long)(at->t->connect_seconds ? at->t->connect_seconds : at->t->stall_seconds));
	/* also refuses lengths beyond 64 bits */
	curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)at->file->max);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 512L * 1024);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, at);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, at);
	if (at->t->accept) {
		char line[128];
		snprintf(line, sizeof(line), "Accept: %s", at->t->accept);
		at->headers = curl_slist_append(NULL, line);
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, at->headers);
	}

	if (at->start > 0) {
		char range[32];
		snprintf(range, sizeof(range), "%llu-", (unsigned long long)at->start);
		curl_easy_setopt(c, CURLOPT_RANGE, range);
	}
}

struct download_state transfer_state(const struct transfer_progress *p)
{
	const uint64_t expected = atomic_load(&p->expected);

	return (struct download_state){.files = p->files,
				       .done = atomic_load(&p->done),
				       .failed = atomic_load(&p->failed),
				       .received = atomic_load(&p->received),
				       .total = p->known > expected ? p->known : expected,
				       .seconds = log_seconds() - p->start};
}

void transfer_show(const struct transfer_progress *p)
{
	const struct download_state now = transfer_state(p);
	if (p->log)
		download_show(p->log, &now);
}

/* Runs the transfer until it ends, is cancelled or stalls. curl's own low-speed limit averages
 * over seconds, and its progress callback would notice a cancellation only after a second. */
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
		if (curl_multi_poll(multi, &extra, run->cancel_fd >= 0 ? 1 : 0, POLL_MS, NULL) !=
		    CURLM_OK)
			return CURLE_FAILED_INIT;
		transfer_show(at->t->progress);
		if (run_cancelled(run)) {
			at->stop = STOP_CANCEL;
			return CURLE_ABORTED_BY_CALLBACK;
		}

		if (log_seconds() - at->alive > at->t->stall_seconds) {
			at->stop = STOP_STALL;
			return CURLE_OPERATION_TIMEDOUT;
		}

		if (at->t->slow_seconds &&
		    log_seconds() - began >
			    at->t->slow_seconds + (double)at->received / (double)at->t->slow_rate) {
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
	static const CURLcode temporary[] = {
		CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
		CURLE_OPERATION_TIMEDOUT,   CURLE_PARTIAL_FILE,          CURLE_RECV_ERROR,
		CURLE_SEND_ERROR,           CURLE_GOT_NOTHING,           CURLE_HTTP2,
		CURLE_HTTP2_STREAM,         CURLE_SSL_CONNECT_ERROR,
	};

	for (size_t i = 0; i < ARRAY_LEN(temporary); i++)
		if (temporary[i] == code)
			return true;
	return false;
}

static enum transfer_outcome judge_bytes(struct attempt *at, bool *ret_again)
{
	char got[DIGEST_HEX_LEN + 1];

	if (at->total > at->file->have) {
		err_set(at->e, ERR_NETWORK, "only %llu of %llu bytes came from '%s'",
			(unsigned long long)at->file->have, (unsigned long long)at->total,
			at->shown);
		return TRANSFER_RETRY;
	}

	if (!at->t->sha256 || partial_matches(at->file, at->t->sha256, got))
		return TRANSFER_DONE;
	if (at->file->have > at->received && !at->restarted) { /* the older part may be wrong */
		*ret_again = true;
		return TRANSFER_RETRY;
	}

	return wrong_digest(at->t, at->file, at->shown, got, at->e);
}

/* Whether the same request may succeed later: a timeout, too many requests, or trouble of the
 * server's own. 501 and 505 are about the request. */
static bool may_pass_later(long status)
{
	if (status == 408 || status == 429)
		return true;
	return status >= 500 && status != 501 && status != 505;
}

static enum transfer_outcome judge(struct attempt *at, CURLcode result, bool *ret_again)
{
	long code = 0;

	curl_easy_getinfo(at->easy, CURLINFO_RESPONSE_CODE, &code);
	if (at->t->ret_status)
		*at->t->ret_status = code;
	if (at->t->ret_unreached)
		*at->t->ret_unreached = result == CURLE_COULDNT_RESOLVE_HOST ||
					result == CURLE_COULDNT_RESOLVE_PROXY ||
					result == CURLE_COULDNT_CONNECT;
	switch (at->stop) {
	case STOP_CANCEL:
		err_set(at->e, ERR_INTERRUPTED, "interrupted");
		return TRANSFER_STOP;
	case STOP_LOCAL:
		return TRANSFER_STOP;
	case STOP_UNASKED:
		err_set(at->e, ERR_NETWORK, "a part of the file that was not asked for, from '%s'",
			at->shown);
		return TRANSFER_NEXT;
	case STOP_STALL:
		err_set(at->e, ERR_NETWORK, "no byte for %u seconds from '%s'",
			at->t->stall_seconds, at->shown);
		return TRANSFER_RETRY;
	case STOP_SLOW:
		err_set(at->e, ERR_NETWORK, "too slow: %llu bytes came from '%s'",
			(unsigned long long)at->received, at->shown);
		return TRANSFER_RETRY;
	case STOP_RANGE:
		*ret_again = true;
		return TRANSFER_RETRY;
	case STOP_TOO_BIG:
	case STOP_STATUS:
	case STOP_NONE:
		break;
	}

	if (code == 416 && at->start > 0) { /* the partial file is longer than the file */
		*ret_again = true;
		return TRANSFER_RETRY;
	}

	if (at->stop == STOP_TOO_BIG || result == CURLE_FILESIZE_EXCEEDED) {
		err_set(at->e, ERR_NETWORK, "more than %llu bytes from '%s'",
			(unsigned long long)at->file->max, at->shown);
		return partial_delete(at->file, at->e) < 0 ? TRANSFER_STOP : TRANSFER_NEXT;
	}

	if (result != CURLE_OK && at->stop == STOP_NONE) {
		err_set(at->e, ERR_NETWORK, "cannot get '%s': %s", at->shown,
			at->message[0] ? at->message : curl_easy_strerror(result));
		return can_retry(result) ? TRANSFER_RETRY : TRANSFER_NEXT;
	}

	if (code != 200 && code != 206) {
		curl_off_t wait = 0;
		curl_easy_getinfo(at->easy, CURLINFO_RETRY_AFTER, &wait);
		if (wait > 0)
			*at->retry_after = wait < 1000000 ? (unsigned)wait : 1000000;
		err_set(at->e, ERR_NETWORK, "http status %ld from '%s'", code, at->shown);
		return may_pass_later(code) ? TRANSFER_RETRY : TRANSFER_NEXT;
	}

	if (!at->body && code == 200 && at->file->have > 0 && partial_restart(at->file, at->e) < 0)
		return TRANSFER_STOP;
	return judge_bytes(at, ret_again);
}

struct transfer_client *transfer_client_new(void)
{
	struct transfer_client *c = calloc(1, sizeof(*c));

	if (!c || !(c->multi = curl_multi_init()) || !(c->easy = curl_easy_init()))
		abort(); /* only memory can be missing */
	return c;
}

void transfer_client_free(struct transfer_client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->easy);
	curl_multi_cleanup(c->multi);
	free(c);
}

static enum transfer_outcome request(struct attempt *at, bool *ret_again)
{
	struct transfer_client *own = at->t->client ? NULL : transfer_client_new();
	struct transfer_client *client = own ? own : at->t->client;

	at->easy = client->easy;
	at->start = at->file->have;
	curl_easy_reset(at->easy);
	set_options(at);
	curl_multi_add_handle(client->multi, at->easy);
	CURLcode result = drive(at, client->multi);
	enum transfer_outcome out = judge(at, result, ret_again);
	if (at->announced > at->received)
		atomic_fetch_sub(&at->t->progress->expected, at->announced - at->received);
	curl_multi_remove_handle(client->multi, at->easy);
	curl_easy_reset(at->easy); /* it points into `at` */
	curl_slist_free_all(at->headers);
	transfer_client_free(own);
	return out;
}

enum transfer_outcome transfer_http(const struct transfer *t, unsigned *ret_retry_after,
				    struct err *e)
{
	AUTO_PARTIAL struct partial p = PARTIAL_NONE;
	AUTO_ARENA struct arena a = {0};
	bool complete = false;

	if (partial_open(&p, t, &complete, e) < 0)
		return TRANSFER_STOP;
	if (complete)
		return TRANSFER_DONE;
	const char *shown = transfer_shown_url(&a, t->url);
	for (bool again = false, restarted = false;; restarted = true, again = false) {
		struct attempt at = {
			.t = t, .file = &p, .shown = shown, .retry_after = ret_retry_after, .e = e};
		at.restarted = restarted;
		enum transfer_outcome out = request(&at, &again);
		if (!again)
			return out == TRANSFER_DONE ? partial_finish(&p, e) : out;
		if (partial_restart(&p, e) < 0)
			return TRANSFER_STOP;
	}
}

enum transfer_outcome transfer_check(const struct transfer *t, struct err *e)
{
	AUTO_PARTIAL struct partial p = PARTIAL_NONE;
	bool complete = false;
	char got[DIGEST_HEX_LEN + 1];

	if (partial_open(&p, t, &complete, e) < 0)
		return TRANSFER_STOP;
	if (complete || partial_matches(&p, t->sha256, got))
		return TRANSFER_DONE;
	return wrong_digest(t, &p, t->url, got, e);
}

static enum transfer_outcome copy_bytes(const struct transfer *t, int from, struct partial *p,
					struct err *e)
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
		err_set(e, ERR_NETWORK,
			S_ISREG(st.st_mode) ? "too large: '%s'" : "not a regular file: '%s'",
			t->url);
		return TRANSFER_NEXT;
	}

	if (partial_open(&p, t, &complete, e) < 0)
		return TRANSFER_STOP;
	if (complete)
		return TRANSFER_DONE;
	if (partial_restart(&p, e) < 0)
		return TRANSFER_STOP;
	atomic_fetch_add(&t->progress->expected, (uint64_t)st.st_size);
	enum transfer_outcome out = copy_bytes(t, from, &p, e);
	if (out != TRANSFER_DONE)
		return out;
	if (t->sha256 && !partial_matches(&p, t->sha256, got))
		return wrong_digest(t, &p, t->url, got, e);
	return partial_finish(&p, e);
}
