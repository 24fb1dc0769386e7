/* A store that any web server gives out: plain files, found by their names. Part of the fetch
 * step. */
#pragma once
#include "cache/store.h"

struct fetch_store;

/* fetch_store_new: for a URL of http or https, the directory that holds the other store's
 * `objects`; nothing is asked yet. ERR_USAGE for any other URL. */
int fetch_store_new(const char *url, struct fetch_store **ret, struct err *e) MUST_CHECK;
/* fetch_store_free: NULL is fine. */
void fetch_store_free(struct fetch_store *f);
/* fetch_store_remote: what store_set_remote takes. Waits are bounded: 5 seconds for a connection,
 * 10 without a byte, and no file may come slower than 64 KiB a second for long. 401, 403, 404 and
 * 410 are an answer, absent; everything else but the wanted bytes is bad. */
struct store_remote fetch_store_remote(struct fetch_store *f);
