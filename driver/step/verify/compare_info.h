/* Documents in a wheel's dist-info, compared by what they say. */
#pragma once
#include "base/sys/fs.h"

/* compare_info: adds each difference: fields of METADATA and WHEEL, entries of entry_points.txt,
 * rows of RECORD. `where` and `what` get the same number. false for another file and for one that
 * cannot be read as such. */
bool compare_info(const char *name, const struct fs_mapping files[2], struct arena *a,
		  struct strlist *where, struct strlist *what);
