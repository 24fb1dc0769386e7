/* A store behind a web server: plain files, found by their names. */
#pragma once
#include "cache/store.h"

struct fetch_store;

/* fetch_store_new: `url` (http or https) is the directory that holds the other store's `objects`;
 * no request is made yet. ERR_USAGE for any other URL. */
int fetch_store_new(const char *url, struct fetch_store **ret, struct err *e) MUST_CHECK;
/* fetch_store_free: NULL is fine. */
void fetch_store_free(struct fetch_store *f);
/* fetch_store_remote: for store_set_remote. Time limits: 5 seconds to connect, 10 without a byte,
 * 64 KiB a second on average. 401, 403, 404 and 410 mean absent; anything but the wanted bytes is
 * bad. */
struct store_remote fetch_store_remote(struct fetch_store *f);
