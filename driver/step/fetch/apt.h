/* Files of a distribution's source packages, through apt-get as the machine has it set up: no host
 * name is ours. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/run.h"

/* apt_fetch: `place` is "SUITE/COMPONENT/SOURCE=VERSION" (what follows "apt:"). Downloads the
 * source package's files with apt-get into `dir`, with private lists below `state_dir`, the sites
 * taken from the machine's own configuration; other files of the package may fail as long as `name`
 * comes. ERR_NETWORK otherwise, with apt's words. */
int apt_fetch(const char *place, const char *name, const char *state_dir, const char *dir, const struct run *run,
	      struct err *e) MUST_CHECK;
