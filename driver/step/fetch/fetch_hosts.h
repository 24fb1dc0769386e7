/* Hosts that could not be reached in this run: once is enough to find out for all their files. */
#pragma once
#include <pthread.h>

#include "base/arena.h"

struct fetch_host;

struct fetch_hosts {
	pthread_mutex_t mutex; /* protects the rest */
	struct arena arena;
	struct fetch_host *first;
};

void fetch_hosts_open(struct fetch_hosts *h);
void fetch_hosts_close(struct fetch_hosts *h);
/* fetch_hosts_answered: the host of this URL was reached now. */
void fetch_hosts_answered(struct fetch_hosts *h, const char *url);
/* fetch_hosts_lose: it was not, in any try since `start` (log_seconds). It is lost for this run,
 * unless it answered somebody else meanwhile; true: nobody knew. */
bool fetch_hosts_lose(struct fetch_hosts *h, const char *url, double start) MUST_CHECK;
/* fetch_hosts_lost: whether it is. */
bool fetch_hosts_lost(struct fetch_hosts *h, const char *url);
/* fetch_hosts_name: scheme, host and port of a URL, for messages too. */
const char *fetch_hosts_name(const char *url, struct arena *a) __attribute__((returns_nonnull));
