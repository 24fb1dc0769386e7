/* The shared compiler cache: what finished builds compiled, in directories that no build is shown.
 * A place is a directory of its own for a domain and a package; an entry lies there as
 * "<two digits>/<rest of ccache's key>" and is never replaced. But ccache adds to its manifests
 * (other headers, another result), so that of a manifest there are more: "<rest>-<scope>", never
 * replaced, is what a build of that scope made; "<rest>-<group>" the newest of the group's scopes;
 * "<rest>" the first of all. A scope is what fixes all inputs of a build (its compile key), a group
 * are the builds of the same sources. */
#pragma once
#include "base/buf.h"
#include "base/run.h"
#include "base/strlist.h"

#define CCACHE_DEFAULT_DOMAIN "default"
/* The longest name of an entry in its place. */
enum { CCACHE_MAX_NAME = 192, CCACHE_TAG_LEN = 16 /* of a scope or group */ };

struct ccache_place {
	const char *dir;
	bool own;   /* of this store: the times of use are kept */
	bool plain; /* the layout of ccache's own directory; builds could write there */
};

struct ccache_shared {
	struct ccache_place *places; /* asked one after the other */
	size_t count;
	const char *scope, *group; /* NULL: none */
};

/* ccache_domain_parse: "NAME[:READ...]": what a build compiles is kept under NAME (NULL if that is
 * empty: nowhere), and read from all of `ret_read`, NAME among them. ERR_USAGE. */
int ccache_domain_parse(const char *text, struct arena *a, const char **ret_keep, struct strlist *ret_read,
			struct err *e) MUST_CHECK;
/* ccache_is_manifest: of an entry's bytes. */
bool ccache_is_manifest(const void *data, size_t len);
/* ccache_name: an entry's name in its place; `tag` is a scope, a group or NULL. */
void ccache_name(const char *key, const char *tag, char ret[CCACHE_MAX_NAME]);
/* ccache_shared_get: appends the entry to `out`; NULL if no place has it. *ret_own: it is a
 * manifest of the scope, or a result. */
const struct ccache_place *ccache_shared_get(const struct ccache_shared *s, const char *key, struct buf *out,
					     bool *ret_own);

struct ccache_promote_request {
	/* ccache's directory of one build: `front` below `top`, which it cannot replace */
	const char *top, *front;
	const char *place; /* made if missing */
	const char *scope, *group;
	/* an empty directory on the place's file system, which may be left filled */
	const char *stage;
	uint64_t max_bytes; /* what is taken at most */
};

struct ccache_promoted {
	/* of the new entries in the place, a manifest's with its scope */
	struct strlist names;
	uint64_t bytes;
	/* what is not as ccache makes it: links, FIFOs, other files under an entry's name */
	size_t refused;
};

/* ccache_promote: the entries that a build made and the place has not, into the place, each whole
 * or not at all, durably. It is for a build that is over. */
int ccache_promote(const struct ccache_promote_request *q, const struct run *run, struct arena *a,
		   struct ccache_promoted *ret, struct err *e) MUST_CHECK;
/* ccache_shared_limit: removes what was not used for longest below the directories (those that are
 * missing are left out), until they hold nine tenths of `max_bytes`, if it is more than that. */
int ccache_shared_limit(const struct strlist *dirs, uint64_t max_bytes, struct err *e) MUST_CHECK;
