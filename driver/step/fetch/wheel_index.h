/* The Python index that this machine uses, and pip, which knows it where nobody names one. */
#pragma once
#include "base/run.h"
#include "base/strlist.h"

struct wheel_place { /* wheel:NAME==VERSION/FILE */
	const char *name, *version, *file;
};

/* wheel_place_parse: of what follows "wheel:". ERR_CONFIG if it is none, or if the file is not of
 * that name and version. */
int wheel_place_parse(const char *place, struct arena *a, struct wheel_place *ret, struct err *e) MUST_CHECK;
/* wheel_index: the index that PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL or pip's configuration
 * names, in this order; NULL where none does, or PIP_NO_INDEX is set. */
int wheel_index(const struct run *run, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* wheel_index_default: the index that pip uses where nobody names one, as its help says.
 * ERR_NETWORK without a pip that says so. */
int wheel_index_default(const struct run *run, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* wheel_pip_download: the file of a place into `dir`, by "pip download" from pip's own default.
 * ERR_NETWORK with pip's words. */
int wheel_pip_download(const struct wheel_place *p, const char *dir, const struct run *run, struct err *e) MUST_CHECK;
