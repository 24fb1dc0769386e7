/* What the Python index lists of a distribution: the page of its Simple API in JSON (PEP 691 and
 * 700). */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "core/wheel/wheel_listed.h"

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
