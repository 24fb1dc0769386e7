#include "step/fetch/fetch_place.h"

struct request {
	const char *url;
	bool any; /* any answer will do, also that there is no such file */
	CURL *easy;
	char message[CURL_ERROR_SIZE];
	bool reached;
	const char *why;
};

struct probe {
	const struct fetch_options *o;
	const struct run *run;
	struct arena *a;
	CURLM *multi;
	struct request **requests; /* each URL once */
	size_t count, cap;
	struct fetch_shared shared; /* what is known of archives and the index */
};

/* The places of one source. */
struct places {
	struct probe *p;
	bool reached; /* a file of this machine */
	size_t *requests;
	size_t count, cap;
	struct strlist said;
};

/* The headers of the answer are enough. */
static size_t on_body(char *data, size_t unit, size_t count, void *user)
{
	(void)data;
	(void)unit;
	(void)count;
	(void)user;
	return CURL_WRITEFUNC_ERROR;
}

static size_t begin(struct probe *p, const char *url, bool any)
{
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->requests[i]->url, url) == 0)
			return i;
	struct request *r = arena_alloc(p->a, sizeof(*r));
	*r = (struct request){
		.url = url, .any = any, .easy = curl_easy_init(), .why = "no answer in time"};
	if (!r->easy)
		abort();
	transfer_options(r->easy, url, r->message);
	curl_easy_setopt(r->easy, CURLOPT_PRIVATE, r);
	curl_easy_setopt(r->easy, CURLOPT_RANGE, "0-0");
	curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (long)FETCH_PROBE_MS);
	/* A resolver that says nothing is not waited for: its thread ends later. */
	curl_easy_setopt(r->easy, CURLOPT_QUICK_EXIT, 1L);
	curl_multi_add_handle(p->multi, r->easy);
	p->requests =
		arena_room(p->a, p->requests, p->count, &p->cap, 16, sizeof(struct request *));
	p->requests[p->count] = r;
	return p->count++;
}

/* An http or https URL is asked; a file is there or not. */
static void add(struct places *l, const char *place, bool any)
{
	struct arena *a = l->p->a;
	const char *rest;

	if (fetch_place_kind(place, &rest) == PLACE_HTTP) {
		if (l->p->o->offline) {
			strlist_ref(&l->said, a, "--offline forbids it");
			return;
		}

		l->requests =
			arena_room(a, l->requests, l->count, &l->cap, 4, sizeof(*l->requests));
		l->requests[l->count++] = begin(l->p, place, any);
		return;
	}

	const char *path = strncmp(rest, "file://", 7) == 0 ? fetch_file_url(a, rest) : rest;
	if (path && access(path, R_OK) == 0)
		l->reached = true;
	else
		strlist_addf(&l->said, a, "'%s' is not there", place);
}

static int add_archive(struct places *l, const char *archive, const char *path, struct err *e)
{
	struct probe *p = l->p;
	struct fetch_archive *known;

	if (fetch_addresses(&p->shared, archive, p->run, &known, e) < 0)
		return -1;
	for (size_t i = 0; i < known->count; i++) {
		const char *url = known->items[i].url;
		add(l, path_join(p->a, url, *url == 'h' ? transfer_escaped(path, p->a) : path),
		    true);
	}

	return (int)known->count;
}

static int add_deb(struct places *l, const char *place, struct err *e)
{
	struct deb_place d;

	if (deb_place_parse(place, l->p->a, &d, e) < 0)
		return -1;
	int own = add_archive(l, d.archive, d.path, e);
	int old = own < 0 ? -1 : add_archive(l, archives_snapshots(d.archive, l->p->a), d.path, e);
	return old < 0 ? -1 : own + old ? 0 : archives_unknown(d.archive, e);
}

static int add_wheel(struct places *l, const char *place, struct err *e)
{
	struct probe *p = l->p;
	struct wheel_place w;
	const char *index = NULL;

	if (wheel_place_parse(place, p->a, &w, e) < 0 ||
	    fetch_index(&p->shared, p->run, &index, e) < 0 ||
	    (!index && wheel_index_default(p->run, p->a, &index, e) < 0))
		return -1;
	add(l, wheel_page_url(index, w.name, p->a), false);
	return 0;
}

/* What cannot be asked for is said, as what a server says; -1 only when interrupted. */
static int add_source(struct places *l, const struct fetch_source *s, struct err *e)
{
	for (size_t i = 0; i < l->p->o->mirrors.count; i++) {
		const char *mirror = l->p->o->mirrors.items[i];
		struct strlist places = {0};
		size_t said = l->said.count;
		fetch_mirror_places(&places, l->p->a, mirror, s);
		for (size_t k = 0; k < places.count && !l->reached; k++)
			add(l, places.items[k], false);
		if (l->said.count > said) {
			l->said.count = said;
			strlist_addf(&l->said, l->p->a, "not in '%s'", mirror);
		}
	}

	for (size_t i = 0; i < s->urls.count && !l->reached; i++) {
		const char *place = s->urls.items[i];
		const char *rest;
		const enum place_kind kind = fetch_place_kind(place, &rest);
		struct err why = {0};
		int rc = 0;
		if (l->p->o->offline && kind < PLACE_FILE)
			err_set(&why, ERR_NETWORK, "--offline forbids it"),
				rc = l->said.count ? 0 : -1;
		else if (kind == PLACE_DEB)
			rc = add_deb(l, rest, &why);
		else if (kind == PLACE_WHEEL)
			rc = add_wheel(l, rest, &why);
		else
			add(l, place, false);
		if (why.kind == ERR_INTERRUPTED) {
			*e = why;
			return -1;
		}

		if (rc < 0)
			strlist_addf(&l->said, l->p->a, "%s%s%s", why.msg, *why.hint ? "; " : "",
				     why.hint);
	}

	return 0;
}

static void judge(struct request *r, CURLcode result, struct arena *a)
{
	long status = 0;

	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	r->reached = status && (r->any || (status != 404 && status != 410));
	if (result == CURLE_OPERATION_TIMEDOUT) /* with equal text, as curl counts milliseconds */
		snprintf(r->message, sizeof(r->message), "%s in time",
			 strstr(r->message, "esolving") ? "its name is not resolved" : "no answer");
	r->why = status ? arena_printf(a, "HTTP status %ld", status)
			: arena_strdup(a, *r->message ? r->message : curl_easy_strerror(result));
}

static int wait_for_all(struct probe *p, struct err *e)
{
	int running = 1, left = 0;

	while (running) {
		CURLMsg *m;
		if (curl_multi_perform(p->multi, &running) != CURLM_OK)
			break;
		while ((m = curl_multi_info_read(p->multi, &left))) {
			struct request *r = NULL;
			if (m->msg == CURLMSG_DONE &&
			    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r) == CURLE_OK)
				judge(r, m->data.result, p->a);
		}

		if (running)
			curl_multi_poll(p->multi, NULL, 0, 100, NULL);
		if (run_check(p->run, e) < 0)
			return -1;
	}

	return 0;
}

int fetch_probe(const struct fetch_source *sources, size_t count, const struct fetch_options *o,
		const struct run *run, struct arena *a, const char **ret_why, struct err *e)
{
	struct fetch_options quick = *o;
	struct probe p = {.o = &quick,
			  .run = run,
			  .a = a,
			  .multi = curl_multi_init(),
			  .shared = {.o = &quick, .mutex = PTHREAD_MUTEX_INITIALIZER}};
	struct places *all = arena_array(a, count + 1, sizeof(*all));
	int rc = 0;

	quick.any_site = true;
	if (!p.multi)
		abort();
	for (size_t i = 0; i < count && rc == 0; i++) {
		all[i].p = &p;
		rc = add_source(&all[i], &sources[i], e);
	}

	if (rc == 0)
		rc = wait_for_all(&p, e);
	for (size_t i = 0; i < count && rc == 0; i++) {
		struct places *l = &all[i];
		for (size_t k = 0; k < l->count; k++) {
			const struct request *r = p.requests[l->requests[k]];
			l->reached |= r->reached;
			const char *text =
				arena_printf(a, "'%s': %s", fetch_hosts_name(r->url, a), r->why);
			strlist_once(&l->said, a, text);
		}

		ret_why[i] = l->reached ? NULL : strlist_join(&l->said, a, "; ");
	}

	for (size_t i = 0; i < p.count; i++) {
		curl_multi_remove_handle(p.multi, p.requests[i]->easy);
		curl_easy_cleanup(p.requests[i]->easy);
	}

	curl_multi_cleanup(p.multi);
	arena_release(&p.shared.arena);
	return rc;
}
