/* Files of Debian source packages, through apt-get and the sites that the machine knows. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"
#include "base/run.h"

/* apt_fetch: `place` is "SUITE/COMPONENT/SOURCE=VERSION". Downloads the source package into `dir`
 * with apt-get, private lists below `state_dir` and the sites of the machine's configuration.
 * ERR_NETWORK with apt's words unless `name` comes; other files of the package may fail. */
int apt_fetch(const char *place, const char *name, const char *state_dir, const char *dir, const struct run *run,
	      struct err *e) MUST_CHECK;
