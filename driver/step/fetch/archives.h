/* Where Debian archives are, as the user or the machine names them. The tree has no address. */
#pragma once
#include "step/fetch/fetch.h"

struct deb_place { /* deb:ARCHIVE/PATH */
	const char *archive, *path;
};

/* deb_place_parse: of what follows "deb:". ERR_CONFIG if it is none. */
int deb_place_parse(const char *place, struct arena *a, struct deb_place *ret, struct err *e) MUST_CHECK;
/* archives_word: whether a word of --archive is "NAME=URL" with an http, https or file URL or an
 * absolute path; else ERR_USAGE. */
int archives_word(const char *word, struct err *e) MUST_CHECK;
/* archives_find: the addresses of an archive, without a slash at their ends: those of --archive,
 * else of PTBUILD_ARCHIVE_<NAME>, else of the file and then of the machine's apt-get. None: an
 * empty list. ERR_CONFIG for an address or a line that is none. */
int archives_find(const char *archive, const struct fetch_options *o, const struct run *run, struct arena *a,
		  struct strlist *ret, struct err *e) MUST_CHECK;
/* archives_snapshots: the archive of an archive's snapshots, "debian-snapshot" of "debian". */
char *archives_snapshots(const char *archive, struct arena *a) __attribute__((returns_nonnull));
/* archives_unknown: ERR_NETWORK: nothing names an address of it, and what to set. */
int archives_unknown(const char *archive, struct err *e);

/* apt_sites: the sites of an archive ("debian", "debian-security") by apt-get of this machine; none
 * where it has none, or knows no such archive. `any`: at once, with those of others that have a
 * component "main". */
int apt_sites(const char *archive, bool any, const struct run *run, struct arena *a, struct strlist *ret,
	      struct err *e) MUST_CHECK;

/* fetch_archive: fetches the suite's InRelease, unchecked, and gives the addresses of the
 * archive, those of its snapshots last; offline only directories. ERR_NETWORK, with the hint of
 * --archive, where none has it; as fetch_all offline, and for an archive without an address. */
int fetch_archive(struct store *store, const char *archive, const char *suite, const struct fetch_options *o,
		  const struct run *run, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
