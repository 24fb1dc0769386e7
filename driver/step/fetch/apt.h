/* What apt-get of this machine knows: the sites of archives. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"
#include "base/run.h"
#include "base/strlist.h"

/* apt_sites: the sites of an archive ("debian", "debian-security") by apt-get of this machine; none
 * where it has none, or knows no such archive. */
int apt_sites(const char *archive, const struct run *run, struct arena *a, struct strlist *ret,
	      struct err *e) MUST_CHECK;
