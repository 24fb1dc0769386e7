#include "step/fetch/fetch_place.h"

#include <curl/curl.h>

struct fetch_host {
	const char *name;
	double answered; /* when it last did */
	bool lost;
	struct fetch_host *next;
};

const char *fetch_hosts_name(const char *url, struct arena *a)
{
	CURLU *u = curl_url();
	char *scheme = NULL, *host = NULL, *port = NULL;
	const char *out = "(malformed)";
	if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
		bool has_port = curl_url_get(u, CURLUPART_PORT, &port, 0) == CURLUE_OK;
		out = arena_printf(a, "%s://%s%s%s", scheme, host, has_port ? ":" : "", has_port ? port : "");
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(u);
	return out;
}

/* The caller has the mutex. */
static struct fetch_host *host_of(struct fetch_hosts *h, const char *url)
{
	AUTO_ARENA struct arena a = {0};
	const char *name = fetch_hosts_name(url, &a);
	struct fetch_host *it = h->first;
	while (it && strcmp(it->name, name) != 0)
		it = it->next;
	if (!it) {
		it = arena_alloc(&h->arena, sizeof(*it));
		*it = (struct fetch_host){.name = arena_strdup(&h->arena, name), .answered = -1, .next = h->first};
		h->first = it;
	}
	return it;
}

void fetch_hosts_answered(struct fetch_hosts *h, const char *url)
{
	pthread_mutex_lock(&h->mutex);
	host_of(h, url)->answered = log_seconds();
	pthread_mutex_unlock(&h->mutex);
}

bool fetch_hosts_lose(struct fetch_hosts *h, const char *url, double start)
{
	pthread_mutex_lock(&h->mutex);
	struct fetch_host *it = host_of(h, url);
	bool new = !it->lost && it->answered < start;
	it->lost |= new;
	pthread_mutex_unlock(&h->mutex);
	return new;
}

bool fetch_hosts_lost(struct fetch_hosts *h, const char *url)
{
	pthread_mutex_lock(&h->mutex);
	bool lost = host_of(h, url)->lost;
	pthread_mutex_unlock(&h->mutex);
	return lost;
}
