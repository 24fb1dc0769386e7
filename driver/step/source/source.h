/* Unpack: archives into a tree, trusting nothing. */
#pragma once
#include "base/sys/tar.h"
#include "core/tables/tables.h"

/* unpack_archive: below `dir` (created if needed; regular files in it may be replaced by regular
 * files). strip_top removes the top directory that all names share. A limit of 0 is 8 GiB, a ratio
 * of 200, 500,000 entries. Modes become 0755 or 0644, times are kept. ERR_INTEGRITY (archive and
 * entry, of which nothing is left) also for links that leave the tree or have ".." after a name,
 * writing through a link, special files, an empty archive (libarchive does not check gzip's
 * checksum; the caller has checked the digest). Text after a tar's end mark is ignored. */
int unpack_archive(const char *archive, const char *dir, bool strip_top,
		   const struct tar_limits *limits, const struct run *run,
		   struct err *e) MUST_CHECK;

/* Patch: one patch through patch(1), fuzz 0. */

/* patch_apply: applies one unified patch, with git's extensions, -p1 and no fuzz; a dry run first,
 * so that a patch that fails changes nothing. ERR_INTEGRITY names patch, file and hunk. Refused:
 * paths that leave the tree, also through links in it; symbolic links; one file in two places of a
 * patch, which a dry run cannot judge. */
int patch_apply(const char *tree, const char *patch, const struct run *run,
		struct err *e) MUST_CHECK;
/* patch_scan: the files that the header lines of a unified patch name, each once, as with -p1.
 * `name` is for messages. ERR_INTEGRITY with the line for an unsafe path, a truncated hunk, a
 * symbolic link, a binary patch, a file with hunks in two places, or no change at all. */
int patch_scan(const char *name, const char *text, size_t len, struct arena *a,
	       struct strlist *ret_files, struct err *e) MUST_CHECK;
/* patch_scan_file: like patch_scan, for a file; messages have only its name. */
int patch_scan_file(const char *path, struct arena *a, struct strlist *ret_files,
		    struct err *e) MUST_CHECK;

/* What the source of an extension says of itself, read and not run: a folder, or an sdist. */

struct extension_asked {
	const char *path;
	const char *version; /* that the user gives; NULL: the source's own */
};

/* extension_read: a row for it: name and version of PKG-INFO, pyproject.toml or the literals of
 * setup.py; what its build requires but torch; the ranges of torch and Python that it takes;
 * whether it has CUDAExtension alone. A version that the user gives is in its settings, too, for
 * the tools that would ask git for it. No source is in it yet. Warns of git submodules that are
 * empty.
 * ERR_USAGE where name or version is not said, with what to write; ERR_INTEGRITY for a damaged
 * archive or file. */
int extension_read(const struct extension_asked *q, const struct run *run, struct arena *a,
		   struct package_row *ret, struct err *e) MUST_CHECK;
/* extension_requirement: "Torch[x] (>=2.1) ; extra == 'a'" as "Torch>=2.1": the name, then the
 * range; NULL where an extra asks for it. */
char *extension_requirement(const char *text, struct arena *a);

/* A source of the user's in the place of a release's. */
struct own_source {
	const char *path;    /* a folder, or an archive with one directory at its top */
	const char *package; /* "torchaudio", by its files; "": they do not say */
	const char *version; /* without a label */
	/* for people: "the git checkout 'x', commit 0123456789ab without changes" */
	const char *state;
};

/* own_read: `version` NULL: of PKG-INFO or version.txt. Warns of git submodules that are empty.
 * ERR_USAGE for a path that is not there, and without a version; ERR_INTEGRITY for a damaged
 * archive. */
int own_read(const char *path, const char *version, const struct run *run, struct arena *a,
	     struct own_source *ret, struct err *e) MUST_CHECK;
