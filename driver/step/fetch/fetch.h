/* Fetch: sources into the store. The only step that uses the network. */
#pragma once
#include "core/tables/tables.h"
#include "core/wheel/wheel.h"

struct store;

struct fetch_source {
	const char *name; /* file name */
	const char *sha256;
	/* its size where that is known: more than that is not read; 0: TRANSFER_MAX_BYTES */
	uint64_t max_bytes;
	struct strlist urls; /* in order */
	const char *path;    /* result: the file in the store */
	/* result, also of a failure: every place said for certain that it has no such file */
	bool gone;
};

/* fetch_source_of: a source of a package's table. */
struct fetch_source fetch_source_of(const struct source_row *row, struct arena *a);
/* fetch_source_official: a wheel that is pinned by profiles/official. */
struct official_wheel; /* core/wheel/wheel.h */
struct fetch_source fetch_source_official(const struct official_wheel *w, struct arena *a);
/* fetch_has: whether the store has the file; false without a store (NULL). */
bool fetch_has(struct store *store, const char *sha256);

struct fetch_options {
	bool offline; /* only the store and file:// places */
	/* --mirror URL|DIR: as MIRROR/<sha256>/<name> and MIRROR/<name> */
	struct strlist mirrors;
	/* --archive NAME=URL, and a file of lines "NAME URL", '#' begins a comment; NULL, or not
	 * there: none */
	struct strlist archives;
	const char *archives_file;
	bool any_site;          /* of apt_sites */
	unsigned parallel;      /* 0 = 4 */
	unsigned retries;       /* per place; 0 = 4 */
	unsigned backoff_ms;    /* first pause, doubled each time, at most 30 s; 0 = 500 */
	unsigned stall_seconds; /* without a byte until the connection counts as broken; 0 = 30 */
	/* for the whole, plus a second for each 4 KiB; 0 = 300 */
	unsigned slow_seconds;
};

/* Who fetches, and where to. */
struct fetcher {
	struct store *store; /* NULL where only addresses are asked for */
	const struct fetch_options *o;
	const struct run *run;
	struct arena *arena; /* of what is returned */
};

/* A file whose digest is not known before. */
struct fetch_page {
	const char *place;
	const char *accept; /* media types; NULL: any */
	uint64_t max;       /* bytes */
};

struct fetch_stats {
	unsigned from_store, downloaded;
	uint64_t bytes;
	double seconds;
};

/* fetch_all: puts every source into the store, several at once, and sets `path`.
 * - Tries locations in order, mirrors first: https:, http:, file:, an absolute path,
 *   wheel:NAME==VERSION/FILE (the Python index that the machine names, else pip's own),
 *   deb:ARCHIVE/PATH (the addresses of archives_find, those of ARCHIVE-snapshot last).
 * - Bytes are hashed as they come into <store>/partial/<sha256>, which a later run resumes.
 * - Retries a location after a broken or silent connection, 408, 429 and 5xx.
 * - Deletes bytes with another digest: a warning if a later location has the right ones, else
 *   ERR_INTEGRITY with both digests. ERR_NETWORK with each location's error if none has the file.
 * - A host that gave no connection in any try of a file is not asked again.
 * - A failure does not stop the other sources; the first one is the error, others are warnings, of
 *   which the first few are printed.
 * - Two processes that want the same file download it once.
 * ERR_CONFIG for a bad file name or digest. */
int fetch_all(const struct fetcher *by, struct fetch_source *sources, size_t count,
	      struct fetch_stats *ret, struct err *e) MUST_CHECK;
/* fetch_origin: describes the location from which fetch_all would get a file that the store (NULL:
 * none) lacks, without network access. ERR_NETWORK like fetch_all when offline. */
int fetch_origin(const struct fetcher *by, const struct fetch_source *s, const char **ret,
		 struct err *e) MUST_CHECK;
/* fetch_latest: a file whose digest nobody knows as it is now, in the store by its digest:
 * ARCHIVE/PATH of a Debian archive, or a page at a URL, which is soon given up (retries: 0 = 1).
 * ERR_NETWORK offline, and as fetch_all. */
int fetch_latest(const struct fetcher *by, const struct fetch_page *page, const char **ret,
		 struct err *e) MUST_CHECK;

/* Whether what is to be downloaded can be had: one small request to each of its places, all at
 * once, before anything long. */

enum { FETCH_PROBE_MS = 3000 }; /* for all of them together */

/* fetch_probe: ret_why[i] is NULL where a place of sources[i], or a mirror, answers or has the
 * file; else what each said. A server that says that it has no such file does not have it, but for
 * a Debian archive, whose files come and go. Nothing is kept. -1 only when interrupted. */
int fetch_probe(const struct fetch_source *sources, size_t count, const struct fetch_options *o,
		const struct run *run, struct arena *a, const char **ret_why,
		struct err *e) MUST_CHECK;

/* Where Debian archives are, as the user or the machine names them. The tree has no address. */

struct deb_place { /* deb:ARCHIVE/PATH */
	const char *archive, *path;
};

/* deb_place_parse: parses the text after "deb:". ERR_CONFIG if it is malformed. */
int deb_place_parse(const char *place, struct arena *a, struct deb_place *ret,
		    struct err *e) MUST_CHECK;
/* archives_word: whether a word of --archive is "NAME=URL" with an http, https or file URL or an
 * absolute path; else ERR_USAGE. */
int archives_word(const char *word, struct err *e) MUST_CHECK;
/* archives_find: returns the addresses of an archive, without a slash at their ends: those of
 * --archive, else of PTBUILD_ARCHIVE_<NAME>, else of the file and then of the machine's apt-get.
 * Empty if all have none. ERR_CONFIG for a malformed address or line. */
int archives_find(const struct fetcher *by, const char *archive, struct strlist *ret,
		  struct err *e) MUST_CHECK;
/* archives_snapshots: the archive of an archive's snapshots, "debian-snapshot" of "debian". */
char *archives_snapshots(const char *archive, struct arena *a) __attribute__((returns_nonnull));
/* archives_unknown: ERR_NETWORK: nothing names an address of it, and what to set. */
int archives_unknown(const char *archive, struct err *e);

/* apt_sites: adds the sites of an archive ("debian", "debian-security") by apt-get of this machine;
 * none where it has none, or knows no such archive. by->o->any_site: at once, with those of others
 * that have a component "main". */
int apt_sites(const struct fetcher *by, const char *archive, struct strlist *ret,
	      struct err *e) MUST_CHECK;

/* fetch_archive: fetches the suite's InRelease, unchecked, and gives the addresses of the
 * archive, those of its snapshots last; offline only directories. ERR_NETWORK, with the hint of
 * --archive, where none has it; as fetch_all offline, and for an archive without an address. */
int fetch_archive(const struct fetcher *by, const char *archive, const char *suite,
		  struct strlist *ret, struct err *e) MUST_CHECK;

/* A folder of the user's as a source: the archive that it makes, the same for the same files. */

/* folder_pack: writes a tar of the files in `dir`, below `top` in it, to `fd` (-1: nowhere) and
 * gives its sha256. Left out are .git, build, dist and virtual environments at the top, and
 * bytecode; modes become 0644 or 0755, times the beginning of 1980. ERR_USAGE for what is no
 * folder, holds neither files nor links, or is larger than FOLDER_MAX. */
#define FOLDER_MAX (UINT64_C(2) << 30)
int folder_pack(const char *dir, const char *top, int fd, char hex[65], struct err *e) MUST_CHECK;

/* transfer_shown_url: the URL for messages, without user name and password. fetch_http_host: host
 * and port, if any, of a URL without TLS, as curl reads it; NULL for others. */
char *transfer_shown_url(struct arena *a, const char *url) __attribute__((returns_nonnull));
const char *fetch_http_host(const char *url, struct arena *a);

/* The Python index that this machine uses, and pip, which knows it where nobody names one. */

struct wheel_place { /* wheel:NAME==VERSION/FILE */
	const char *name, *version, *file;
};

/* wheel_place_parse: parses the text after "wheel:". ERR_CONFIG if it is malformed, or if the file
 * is not of that name and version. */
int wheel_place_parse(const char *place, struct arena *a, struct wheel_place *ret,
		      struct err *e) MUST_CHECK;
/* wheel_index: the index that PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL or pip's configuration
 * names, in this order; NULL where none does, or PIP_NO_INDEX is set. */
int wheel_index(const struct run *run, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* wheel_index_default: the index that pip uses where nobody names one, as its help says.
 * ERR_NETWORK without a pip that says so. */
int wheel_index_default(const struct run *run, struct arena *a, const char **ret,
			struct err *e) MUST_CHECK;
/* wheel_pip_download: the file of a place into `dir`, by "pip download" from pip's own default;
 * what is there meanwhile, at most `size` bytes (0: any), is in `progress`.
 * ERR_NETWORK with pip's words. */
struct transfer_progress; /* step/fetch/fetch_place.h */
int wheel_pip_download(const struct wheel_place *p, const char *dir, uint64_t size,
		       const struct run *run, struct transfer_progress *progress,
		       struct err *e) MUST_CHECK;

/* A media type, in two parts because the tree must not contain host names of indexes. */
#define WHEEL_PAGE_ACCEPT                                                                          \
	"application/vnd.pypi"                                                                     \
	".simple.v1+json"
#define WHEEL_SDIST ".tar.gz"
#define WHEEL_PAGE_MAX (16U << 20) /* bytes: several times the largest page there is */

struct wheel_page {
	struct wheel_listed *files;
	size_t count;
	struct wheel_listed *sdists; /* name.tar.gz */
	size_t sdists_count;
};

/* wheel_page_url: the page of a distribution on the index at `index`, by its normalised name. */
char *wheel_page_url(const char *index, const char *name, struct arena *a)
	__attribute__((returns_nonnull));
/* wheel_page_parse: the wheels and sdists of a page that came from `url`, against which its links
 * are resolved. Left out is what cannot be meant: other files, links that end in another name, that
 * are not http or https, or that lead from https to http. ERR_NETWORK for anything that does not
 * follow PEP 691, with `url` in the message. */
int wheel_page_parse(const struct file_bytes *in, struct arena *a, struct wheel_page *ret,
		     struct err *e) MUST_CHECK;
/* wheel_page_find: a wheel or an sdist by its name; NULL without it. */
const struct wheel_listed *wheel_page_find(const struct wheel_page *p, const char *name);
/* wheel_list: of a NAME or NAME==VERSION, whose version says nothing here; from the index that the
 * machine names, else pip's own. ERR_NETWORK as fetch_latest and wheel_page_parse. */
int wheel_list(const struct fetcher *by, const char *asked, struct wheel_page *ret,
	       struct err *e) MUST_CHECK;
