/* The index of one suite of a Debian archive, as its signature vouches for it. */
#pragma once
#include "base/run.h"
#include "base/strlist.h"
#include "base/sys/digest.h"
#include "core/archive/inrelease.h"
#include "core/archive/packages.h"

/* How the files of an archive come; the caller's. */
struct archive_get {
	void *user;
	/* the file `path` ("dists/trixie/InRelease") of an archive as a file of this machine: one
	 * of this digest, or what is there now (sha256 NULL), of at most `max` bytes */
	int (*get)(void *user, const char *archive, const char *path, const char *sha256, uint64_t max, struct arena *a,
		   const char **ret, struct err *e);
};

struct archive_suite {
	const char *archive;              /* "debian" */
	const char *suite;                /* "trixie" */
	const char *arch;                 /* "amd64" */
	const struct strlist *components; /* "main" */
	const char *keyring;              /* NULL: Debian's own of this machine */
	/* a date as in struct inrelease that the index may not be older than; NULL: any */
	const char *not_before;
};

struct archive_index {
	struct inrelease release;
	char sha256[DIGEST_HEX_LEN + 1];  /* of the file InRelease */
	struct archive_packages packages; /* of all components, sorted */
};

/* archive_index_read: InRelease with its signature, then the packages of each component by the
 * digests in it. ERR_INTEGRITY for a bad signature, another suite, an index that has expired or
 * is older than `not_before`; ERR_CONFIG for a component or architecture that the suite lacks;
 * what inrelease_verify, packages_parse and `get` say; of a suite without an InRelease ERR_NETWORK
 * with the hint of --archive. */
int archive_index_read(const struct archive_suite *s, const struct archive_get *get, const struct run *run,
		       struct arena *a, struct archive_index *ret, struct err *e) MUST_CHECK;
/* archive_index_get: InRelease alone, unchecked. */
int archive_index_get(const struct archive_suite *s, const struct archive_get *get, struct arena *a, const char **ret,
		      struct err *e) MUST_CHECK;
/* archive_arch: Debian's name of a platform's processor: "amd64" of "x86_64-linux"; NULL. */
const char *archive_arch(const char *platform);
