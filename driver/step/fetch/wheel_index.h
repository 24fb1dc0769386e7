/* The Python index that this machine uses, and pip, which knows it where nobody names one. */
#pragma once
#include "core/wheel/wheel.h"
#include "step/fetch/fetch.h"

struct wheel_place { /* wheel:NAME==VERSION/FILE */
	const char *name, *version, *file;
};

/* wheel_place_parse: of what follows "wheel:". ERR_CONFIG if it is none, or if the file is not of
 * that name and version. */
int wheel_place_parse(const char *place, struct arena *a, struct wheel_place *ret, struct err *e) MUST_CHECK;
/* wheel_index: the index that PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL or pip's configuration
 * names, in this order; NULL where none does, or PIP_NO_INDEX is set. */
int wheel_index(const struct run *run, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* wheel_index_default: the index that pip uses where nobody names one, as its help says.
 * ERR_NETWORK without a pip that says so. */
int wheel_index_default(const struct run *run, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* wheel_pip_download: the file of a place into `dir`, by "pip download" from pip's own default.
 * ERR_NETWORK with pip's words. */
int wheel_pip_download(const struct wheel_place *p, const char *dir, const struct run *run, struct err *e) MUST_CHECK;

/* A media type, in two parts because no host of an index may stand in the tree. */
#define WHEEL_PAGE_ACCEPT                                                                                              \
	"application/vnd.pypi"                                                                                         \
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
char *wheel_page_url(const char *index, const char *name, struct arena *a) __attribute__((returns_nonnull));
/* wheel_page_parse: the wheels and sdists of a page that came from `url`, against which its links
 * are resolved. Left out is what cannot be meant: other files, links that end in another name, that
 * are not http or https, or that lead from https to http. ERR_NETWORK for anything that does not
 * follow PEP 691, with `url` in the message. */
int wheel_page_parse(const char *text, size_t len, const char *url, struct arena *a, struct wheel_page *ret,
		     struct err *e) MUST_CHECK;
/* wheel_page_find: a wheel or an sdist by its name; NULL without it. */
const struct wheel_listed *wheel_page_find(const struct wheel_page *p, const char *name);
/* wheel_list: of a NAME or NAME==VERSION, whose version says nothing here; from the index that the
 * machine names, else pip's own. ERR_NETWORK as fetch_page and wheel_page_parse. */
int wheel_list(struct store *store, const char *asked, const struct fetch_options *o, const struct run *run,
	       struct arena *a, struct wheel_page *ret, struct err *e) MUST_CHECK;
