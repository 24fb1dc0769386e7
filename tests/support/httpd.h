/* A small HTTP server on the loopback interface, in threads of
 * the test, that can misbehave in every way a real one does. */
#pragma once
#include <stddef.h>

enum httpd_fault {
	HTTPD_OK,               /* serves the body, ranges too */
	HTTPD_STATUS,           /* answers `status` with a short text */
	HTTPD_TRUNCATE,         /* full Content-Length, `cut` bytes, then closes */
	HTTPD_STALL,            /* full Content-Length, `cut` bytes, then silence */
	HTTPD_NO_RANGE,         /* ignores Range: always 200 with everything */
	HTTPD_WRONG_RANGE,      /* 206 with a Content-Range one byte off */
	HTTPD_NO_CONTENT_RANGE, /* 206 without Content-Range */
	/* 206 for a range, but `cut` bytes of it only, correctly announced */
	HTTPD_PART,
	HTTPD_ALWAYS_PART,  /* 206 although no Range was sent */
	HTTPD_SHORT_LENGTH, /* Content-Length is `cut`, fewer than the body */
	/* no Content-Length; the body again and again until the client hangs up */
	HTTPD_ENDLESS,
	HTTPD_HUGE_LENGTH,     /* Content-Length is 2^50 */
	HTTPD_OVERFLOW_LENGTH, /* Content-Length is no 64-bit number */
	HTTPD_REDIRECT,        /* 302 to `location` */
	HTTPD_LOOP,            /* 302 to itself */
	HTTPD_GARBAGE,         /* bytes that are no HTTP */
	HTTPD_HANG_UP,         /* closes without an answer */
};

struct httpd_page {
	const char *path; /* "/file" */
	const void *body;
	size_t len;
	enum httpd_fault fault;
	unsigned times; /* the first so many requests get the fault, later ones HTTPD_OK; 0: all */
	size_t cut;
	int status;
	unsigned retry_after; /* seconds, with HTTPD_STATUS; 0: no such header */
	const char *location;
};

struct httpd;

/* httpd_start: listens on a free port of 127.0.0.1. The pages (copied
 * with their strings and bodies) answer; other paths are 404. */
struct httpd *httpd_start(const struct httpd_page *pages, size_t count);
/* httpd_start_tls: the same over TLS, with a certificate of its own that is written to `pem`. */
struct httpd *httpd_start_tls(const struct httpd_page *pages, size_t count, const char *pem);
/* httpd_stop: ends all its threads, stalled ones too. NULL is fine. */
void httpd_stop(struct httpd *h);
/* httpd_url: "http://127.0.0.1:PORT" (or https) + path, in one of 8 rotating static buffers. */
const char *httpd_url(const struct httpd *h, const char *path);
/* httpd_hits: requests for a path so far. httpd_ranges: those of
 * them with a Range header. httpd_sent: body bytes sent for it. */
unsigned httpd_hits(struct httpd *h, const char *path);
unsigned httpd_ranges(struct httpd *h, const char *path);
size_t httpd_sent(struct httpd *h, const char *path);
