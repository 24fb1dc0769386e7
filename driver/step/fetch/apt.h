/* What apt-get of this machine knows: the sites of archives, and files of source packages. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"
#include "base/run.h"
#include "base/strlist.h"

/* apt_fetch: `place` is "SUITE/COMPONENT/SOURCE=VERSION". Downloads the source package into `dir`
 * with apt-get, private lists below `state_dir` and the sites of the machine's configuration.
 * ERR_NETWORK with apt's words unless `name` comes; other files of the package may fail. */
int apt_fetch(const char *place, const char *name, const char *state_dir, const char *dir, const struct run *run,
	      struct err *e) MUST_CHECK;
/* apt_sites: the sites of an archive ("debian", "debian-security") by apt-get of this machine; none
 * where it has none, or knows no such archive. */
int apt_sites(const char *archive, const struct run *run, struct arena *a, struct strlist *ret,
	      struct err *e) MUST_CHECK;
