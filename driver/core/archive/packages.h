/* The packages of a Debian archive: what its files "Packages" say. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum archive_relation {
	RELATION_PRE_DEPENDS,
	RELATION_DEPENDS,
	RELATION_CONFLICTS,
	RELATION_BREAKS,
	RELATION_PROVIDES,
	RELATIONS
};

struct archive_package {
	const char *name, *version, *arch;
	const char *path; /* below the archive's address: "pool/..." */
	const char *sha256;
	uint64_t size;
	const char *relations[RELATIONS]; /* NULL: none */
	unsigned priority;                /* 0 required, 1 important, 2 standard, 3 others */
	bool essential;
	const char *file; /* where it was read */
	unsigned line;
};

struct archive_packages {
	struct archive_package *items; /* sorted by name, version, architecture, as bytes */
	size_t count, cap;
};

/* packages_parse: adds the packages of one file for `arch` ("amd64") and "all". ERR_INTEGRITY with
 * file and line for names, versions, paths, digests and sizes that the archive's rules do not
 * allow, packages of other architectures, and more than 500,000 packages. */
int packages_parse(const char *text, size_t len, const char *file, const char *arch, struct arena *a,
		   struct archive_packages *ret, struct err *e) MUST_CHECK;
/* packages_sort: when all files are read. ERR_INTEGRITY for a package that is there twice. */
int packages_sort(struct archive_packages *p, struct err *e) MUST_CHECK;
/* packages_find: the package, NULL; `arch` NULL: any, the first. */
const struct archive_package *packages_find(const struct archive_packages *p, const char *name, const char *version,
					    const char *arch);
/* packages_of: all of one name: the first, and how many. */
const struct archive_package *packages_of(const struct archive_packages *p, const char *name, size_t *ret_count);
/* packages_unpack: a compressed file "Packages" (xz, gzip or plain) appended to `out`;
 * ERR_INTEGRITY above `max` bytes. */
int packages_unpack(const char *path, uint64_t max, struct buf *out, struct err *e) MUST_CHECK;
/* archive_name_valid, archive_version_valid: by Debian's policy. */
bool archive_name_valid(const char *s);
bool archive_version_valid(const char *s);
