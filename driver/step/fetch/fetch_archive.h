/* The index files of a Debian archive, for core/archive. */
#pragma once
#include "core/archive/index.h"
#include "step/fetch/fetch.h"

struct fetch_archive_user {
	struct store *store;
	const struct fetch_options *options;
	const struct run *run;
};

/* fetch_archive: through deb: places into the store by digest, where a later run finds what is
 * pinned. `user` must outlive the result. */
struct archive_get fetch_archive(struct fetch_archive_user *user);
