/* One source from its places, in order, until one gives the pinned bytes. */
#pragma once
#include <curl/curl.h>
#include <stdatomic.h>

#include "base/download.h"
#include "cache/store.h"
#include "step/fetch/fetch.h"

/* Hosts that could not be reached in this run: once is enough to find out for all their files. */

struct fetch_host;

struct fetch_hosts {
	pthread_mutex_t mutex; /* protects the rest */
	struct arena arena;
	struct fetch_host *first;
};

/* fetch_hosts_name: scheme, host and port of a URL, for messages too. */
const char *fetch_hosts_name(const char *url, struct arena *a) __attribute__((returns_nonnull));

/* One try at one place: bytes into a partial file, hashed as they come. */

/* Several times the largest source archive or wheel: an endless answer must not fill the disk. */
#define TRANSFER_MAX_BYTES (2ULL << 30)

enum transfer_outcome {
	TRANSFER_DONE,  /* the partial file has the wanted digest */
	TRANSFER_RETRY, /* the same place may work later: connection broken, server in trouble */
	TRANSFER_NEXT,  /* this place does not have it: 404, bad URL, certificate refused */
	TRANSFER_WRONG, /* it came whole with another digest; the bytes are deleted */
	TRANSFER_STOP,  /* this machine's fault or the user's wish: disk full, interrupted */
};

/* All transfers together. */
struct transfer_progress {
	_Atomic uint64_t received;
	_Atomic uint64_t expected; /* as far as servers announced sizes */
	uint64_t known;            /* of the files whose size a table or a manifest has; 0: none */
	/* for a status line, which each transfer keeps up to date; NULL: none */
	struct log *log;
	size_t files;
	_Atomic unsigned done, failed; /* of them: have their file, ended without */
	double start;
};

/* transfer_state: for what base/download.h shows. transfer_show: shows it where there is a log. */
struct download_state transfer_state(const struct transfer_progress *p);
void transfer_show(const struct transfer_progress *p);

/* Open connections, for one thread: a server is asked for its next file over the same one. */
struct transfer_client;

struct transfer {
	const char *url;    /* an absolute path for transfer_copy */
	const char *path;   /* the partial file, which may exist */
	const char *sha256; /* wanted; NULL: any, never resumed */
	const char *accept; /* media type to ask for; NULL: any */
	uint64_t max_bytes; /* 0 = TRANSFER_MAX_BYTES */
	unsigned stall_seconds;
	unsigned connect_seconds; /* 0 = stall_seconds */
	/* limit for the whole, plus a second for each `slow_rate` bytes; 0: none */
	unsigned slow_seconds;
	unsigned slow_rate;
	bool *ret_unreached;            /* no connection came about; may be NULL */
	long *ret_status;               /* the last HTTP status, 0 without an answer; may be NULL */
	struct transfer_client *client; /* NULL: a connection of its own */
	const struct run *run;
	struct transfer_progress *progress;
};

struct transfer_client *transfer_client_new(void) __attribute__((returns_nonnull));
/* transfer_client_free: closes its connections; NULL is fine. */
void transfer_client_free(struct transfer_client *c);

/* transfer_http: a complete partial file is TRANSFER_DONE without a request, else the rest is asked
 * for by Range. A wrong range, or a wrong digest after a resumed transfer, starts over.
 * Certificates are checked; at most 10 redirects, never from https to http. *ret_retry_after:
 * seconds that the server asked to wait, else untouched. Other outcomes set `e`, with the URL's
 * password left out. */
enum transfer_outcome transfer_http(const struct transfer *t, unsigned *ret_retry_after,
				    struct err *e) MUST_CHECK;
/* transfer_copy: like transfer_http, for a regular file, always from its start. */
enum transfer_outcome transfer_copy(const struct transfer *t, struct err *e) MUST_CHECK;
/* transfer_check: checks a file that came by other means: TRANSFER_DONE, TRANSFER_WRONG (deleted)
 * or TRANSFER_STOP. */
enum transfer_outcome transfer_check(const struct transfer *t, struct err *e) MUST_CHECK;
/* transfer_options: what every request has. `message` gets curl's words of a failure. */
void transfer_options(CURL *c, const char *url, char message[CURL_ERROR_SIZE]);
/* transfer_authorities: the file of certificates to check servers by: $SSL_CERT_FILE,
 * $CURL_CA_BUNDLE, else the first of the places where systems keep it; NULL: libcurl's own. */
const char *transfer_authorities(void);
/* transfer_escaped: a path percent-encoded but for its slashes. */
char *transfer_escaped(const char *path, struct arena *a) __attribute__((returns_nonnull));

enum { FETCH_SLOW_RATE = 4096 }; /* as struct fetch_options.slow_seconds says */

/* An address of a Debian archive, and whether it gave no answer in this run. */
struct archive_address {
	const char *url;
	_Atomic bool silent;
};

struct fetch_archive {
	const char *name;
	struct archive_address *items;
	size_t count;
	struct fetch_archive *next;
};

/* What all sources of one fetch_all share. */
struct fetch_shared {
	struct store *store;
	const struct fetch_options *o;  /* defaults filled in */
	pthread_mutex_t mutex;          /* protects what is below, up to the hosts */
	const char *index;              /* the named Python index; NULL: none */
	bool index_known;               /* it was looked for */
	struct fetch_archive *archives; /* those asked for so far */
	struct arena arena;
	struct fetch_hosts hosts;
	struct transfer_progress amount; /* moved so far */
};

/* fetch_addresses, fetch_index: of an archive, and of the Python index that this machine names
 * (NULL: none), looked up once in a run: apt-get and pip take a while to say them. */
int fetch_addresses(struct fetch_shared *f, const char *archive, const struct run *run,
		    struct fetch_archive **ret, struct err *e) MUST_CHECK;
int fetch_index(struct fetch_shared *f, const struct run *run, const char **ret,
		struct err *e) MUST_CHECK;

/* One thread of it. */
struct fetch_worker {
	struct fetch_shared *shared;
	const struct run *run;
	struct transfer_client *client; /* its connections; NULL: one for each transfer */
};

/* fetch_http: transfer_http, again after a pause where that may help. `name` is for messages. A
 * host that no try of a file reached is not asked again in this run. */
enum transfer_outcome fetch_http(struct fetch_worker *w, const struct transfer *t, const char *name,
				 struct err *e) MUST_CHECK;
/* fetch_deb: from a Debian archive: t->url is "ARCHIVE/PATH". *ret_absent: there is
 * certainly no such file, as the archive and its snapshots say. */
enum transfer_outcome fetch_deb(struct fetch_worker *w, const struct transfer *t, const char *name,
				bool *ret_absent, struct err *e) MUST_CHECK;
/* fetch_place_kind: the kind of a place and what follows its prefix; PLACES for none. */
enum place_kind { PLACE_HTTP, PLACE_WHEEL, PLACE_DEB, PLACE_FILE, PLACE_FOLDER, PLACES };
enum place_kind fetch_place_kind(const char *place, const char **ret_rest);
/* fetch_file_url: the path of a file: URL, NULL if it names none on this machine; a path itself.
 * fetch_mirror_places: adds those of a source at a mirror: a URL, or a directory, which may be
 * relative. */
const char *fetch_file_url(struct arena *a, const char *url);
void fetch_mirror_places(struct strlist *places, struct arena *a, const char *mirror,
			 const struct fetch_source *s);
/* fetch_forbidden: ERR_NETWORK of --offline; `reasons`: what places said, or "". */
int fetch_forbidden(const struct fetch_source *s, const char *reasons, struct err *e);
/* fetch_places: leaves the checked bytes in `partial`. ERR_INTEGRITY when a place had other bytes
 * and none the right ones, ERR_NETWORK when none had any, with what each said; *ret_gone: each said
 * for certain that it has no such file (404, 410, no such path). */
int fetch_places(struct fetch_worker *w, const struct fetch_source *s, const char *partial,
		 bool *ret_gone, struct err *e) MUST_CHECK;

/* A store behind a web server: plain files, found by their names. */

/* fetch_store_set: gives the store a remote store; `url` (http or https) is the directory with its
 * `objects`, ERR_USAGE for any other. No request is made yet. Time limits: 5 seconds to connect, 10
 * without a byte, 64 KiB a second on average. 401, 403, 404 and 410 mean absent; anything but the
 * wanted bytes is bad. */
int fetch_store_set(struct store *s, const char *url, struct err *e) MUST_CHECK;
