/* One source from its places, in order, until one gives the pinned bytes. */
#pragma once
#include "step/fetch/fetch.h"
#include "step/fetch/fetch_hosts.h"
#include "step/fetch/fetch_transfer.h"

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
	pthread_mutex_t mutex;          /* protects stage_dir and arena */
	pthread_mutex_t index_mutex;    /* protects index, index_known, archives and index_arena */
	const struct fetch_options *o;  /* defaults filled in */
	const char *stage_dir;          /* what pip downloaded; NULL before */
	const char *index;              /* the named Python index; NULL: none */
	bool index_known;               /* it was looked for */
	struct arena arena;             /* for stage_dir */
	struct fetch_archive *archives; /* those asked for so far */
	struct arena index_arena;       /* for index and archives */
	struct fetch_hosts hosts;
	struct transfer_progress amount; /* moved so far */
};

/* One thread of it. */
struct fetch_worker {
	struct fetch_shared *shared;
	struct log log; /* into a pipe that the caller's thread drains */
	struct run run;
	struct transfer_client *client; /* its connections */
};

/* fetch_http: transfer_http, again after a pause where that may help. `name` is for messages. A
 * host that no try of a file reached is not asked again in this run. */
enum transfer_outcome fetch_http(struct fetch_worker *w, const struct transfer *t, const char *name,
				 struct err *e) MUST_CHECK;
/* fetch_deb: from a Debian archive: t->url is "ARCHIVE/PATH". *ret_absent as that of fetch_file,
 * said by the archive and by its snapshots. */
enum transfer_outcome fetch_deb(struct fetch_worker *w, const struct transfer *t, const char *name, bool *ret_absent,
				struct err *e) MUST_CHECK;
/* fetch_file: from `place`, an absolute path or a file URL; *ret_absent: there is certainly no such
 * file. */
enum transfer_outcome fetch_file(const struct transfer *t, const char *place, bool *ret_absent,
				 struct err *e) MUST_CHECK;
/* fetch_file_url: the path of a file: URL, NULL if it names none on this machine.
 * fetch_mirror_places: adds those of a source at a mirror: a URL, or a directory, which may be
 * relative. */
const char *fetch_file_url(struct arena *a, const char *url);
void fetch_mirror_places(struct strlist *places, struct arena *a, const char *mirror, const struct fetch_source *s);
/* fetch_places: leaves the checked bytes in `partial`. ERR_INTEGRITY when a place had other bytes
 * and none the right ones, ERR_NETWORK when none had any, with what each said; *ret_gone: each said
 * for certain that it has no such file (404, 410, no such path). */
int fetch_places(struct fetch_worker *w, const struct fetch_source *s, const char *partial, bool *ret_gone,
		 struct err *e) MUST_CHECK;
