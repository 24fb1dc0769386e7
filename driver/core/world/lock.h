/* The lock of a part of a world: every file of it, pinned, for one platform. docs/worlds.md has the
 * text form. */
#pragma once
#include "base/base.h"

/* The kinds in the order of the file: a Debian package, a wheel of the Python index, and any other
 * file. */
enum world_kind { WORLD_DEB, WORLD_WHEEL, WORLD_FILE };

struct world_entry {
	enum world_kind kind;
	const char *name, *version;
	const char *arch; /* of a Debian package: "amd64", "all"; else "" */
	const char *sha256;
	/* below the archive for a package ("pool/..."), the file name of a wheel, the URL of a file
	 */
	const char *place;
	uint64_t size; /* 0: not known, which only a file may be; "-" in the text */
};

struct world_lock {
	const char *part;     /* "debian13" */
	const char *platform; /* "x86_64-linux" */
	const char *asked;    /* sha256 of what the part's table asks for */
	/* where its Debian packages are: "debian", "trixie", the sha256 of the suite's
	 * InRelease and its time, "2025-01-31T12:00:00Z"; all NULL without packages */
	const char *archive, *suite, *release, *date;
	const char *tree; /* sha256 of the unpacked part's manifest; NULL: not known yet */
	struct world_entry *entries;
	size_t count;
};

/* world_lock_parse: a whole lock; the strings live in the arena. ERR_CONFIG "file:line: ..." for
 * anything that world_lock_write would not have written. `file` is for messages. */
int world_lock_parse(const char *text, size_t len, const char *file, struct arena *a, struct world_lock *ret,
		     struct err *e) MUST_CHECK;
/* world_lock_read: the same of a file of at most 4 MiB; ERR_CONFIG where it cannot be read. */
int world_lock_read(const char *path, struct arena *a, struct world_lock *ret, struct err *e) MUST_CHECK;
/* world_lock_write: its text, entries sorted, appended to `out`. */
void world_lock_write(const struct world_lock *l, struct buf *out);
/* world_lock_save: into its file, if world_lock_parse takes it: else ERR_INTEGRITY, and nothing is
 * written. */
int world_lock_save(const struct world_lock *l, const char *path, struct err *e) MUST_CHECK;
/* world_lock_find: the entry of a kind and name; NULL. */
const struct world_entry *world_lock_find(const struct world_lock *l, enum world_kind kind, const char *name);
/* world_lock_path: where the lock of a part lies below the tables' directory. */
char *world_lock_path(const char *profiles, const char *part, const char *platform, struct arena *a);
/* world_lock_bytes: what its files of known size take to download. */
uint64_t world_lock_bytes(const struct world_lock *l);
/* world_lock_key: sha256 of what the unpacked part depends on: part, platform, each entry but its
 * place, and `rules`, the text of how it is unpacked (world_part_rules). */
void world_lock_key(const struct world_lock *l, const char *rules, char ret[65]);
