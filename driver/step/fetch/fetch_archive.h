/* The addresses at which an archive can be read now. */
#pragma once
#include "step/fetch/fetch.h"

/* fetch_archive: fetches the suite's InRelease, unchecked, and gives the addresses of the
 * archive, those of its snapshots last; offline only directories. ERR_NETWORK, with the hint of
 * --archive, where none has it; as fetch_all offline, and for an archive without an address. */
int fetch_archive(struct store *store, const char *archive, const char *suite, const struct fetch_options *o,
		  const struct run *run, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
