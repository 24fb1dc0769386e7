/* All wheels that the Python index has of a distribution. */
#pragma once
#include "step/fetch/fetch.h"
#include "step/fetch/wheel_page.h"

/* wheel_list: of a NAME or NAME==VERSION, whose version says nothing here; from the index that the
 * machine names, else pip's own. ERR_NETWORK as fetch_page and wheel_page_parse. */
int wheel_list(struct store *store, const char *asked, const struct fetch_options *o, const struct run *run,
	       struct arena *a, struct wheel_page *ret, struct err *e) MUST_CHECK;
