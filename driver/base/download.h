/* What a user sees of a download: a line before it, how far it is, and a line after it. */
#pragma once
#include "base/strlist.h"

struct log;

struct download {
	const char *name; /* of one file; NULL: there are several */
	size_t files;
	uint64_t total;           /* bytes to come, as far as sizes are known; 0: of no file */
	uint64_t have;            /* bytes that an earlier run left, not in `total` */
	size_t unknown;           /* files whose size is not known */
	const struct strlist *of; /* origins, in the order they are asked */
	const char *kept;         /* directory */
};

struct download_state {
	size_t files, done, failed;
	uint64_t received, total; /* 0: not known */
	double seconds;           /* since the beginning */
};

/* download_begin: logs what will be downloaded, its size, from where and where it is kept. */
void download_begin(struct log *l, const struct download *d);
/* download_show: how far it is: a bar on a terminal; elsewhere a line each ten seconds, the first
 * after ten seconds. */
void download_show(struct log *l, const struct download_state *s);
/* download_end: logs how much came in which time. */
void download_end(struct log *l, const struct download_state *s);
