/* InRelease: the signed list of an archive's index files. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/run.h"

struct inrelease_file {
	const char *path; /* below dists/SUITE */
	const char *sha256;
	uint64_t size;
};

struct inrelease {
	const char *suite, *codename; /* "" where it has none */
	const char *date;             /* YYYY-MM-DDTHH:MM:SSZ */
	const char *valid_until;      /* the same; NULL: none */
	bool by_hash;                 /* index files may be had by their digests */
	struct inrelease_file *files; /* of its field SHA256 */
	size_t count, cap;
};

/* inrelease_verify: adds the signed text to `out` (nothing that stands outside of the signature),
 * by gpgv or sqv of this machine: at least one good signature by a key of the keyring. ERR_SYSTEM
 * when there is neither program, or no keyring (NULL: Debian's, where the machine has it);
 * ERR_INTEGRITY when no signature is good. */
int inrelease_verify(const char *path, const char *keyring, const struct run *run, struct buf *out,
		     struct err *e) MUST_CHECK;
/* inrelease_parse: the signed text. ERR_INTEGRITY with file and line for what the format does not
 * allow, paths that lead elsewhere, and more than 20,000 files. */
int inrelease_parse(const char *text, size_t len, const char *file, struct arena *a, struct inrelease *ret,
		    struct err *e) MUST_CHECK;
/* inrelease_find: NULL: it lists no such file. */
const struct inrelease_file *inrelease_find(const struct inrelease *r, const char *path);
