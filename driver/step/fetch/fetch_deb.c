/* A file of a Debian archive, from the addresses that this machine knows. */
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "step/fetch/archives.h"
#include "step/fetch/fetch_place.h"

/* The addresses of an archive, looked up once in a run: apt-get takes a while to say them. */
static int addresses_of(struct fetch_worker *w, const char *archive, struct fetch_archive **ret, struct err *e)
{
	struct fetch_shared *f = w->shared;
	struct arena *a = &f->index_arena;
	struct strlist urls = {0};
	int status = 0;
	pthread_mutex_lock(&f->index_mutex);
	struct fetch_archive *it = f->archives;
	while (it && strcmp(it->name, archive) != 0)
		it = it->next;
	if (!it && (status = archives_find(archive, f->o, &w->run, a, &urls, e)) == 0) {
		it = arena_alloc(a, sizeof(*it));
		*it = (struct fetch_archive){.name = arena_strdup(a, archive), .next = f->archives};
		it->items = arena_array(a, urls.count + 1, sizeof(*it->items));
		for (; it->count < urls.count; it->count++)
			it->items[it->count].url = urls.items[it->count];
		f->archives = it;
	}
	pthread_mutex_unlock(&f->index_mutex);
	*ret = it;
	return status;
}

struct deb_try {
	struct fetch_worker *w;
	const struct transfer *t;
	const char *path, *name; /* `name` for messages */
	struct arena *a;
	struct buf reasons; /* what each address said */
	bool wrong;
	bool unsure; /* an archive did not say for certain that it has no such file */
};

static bool is_file(const char *url)
{
	return *url == '/' || strncmp(url, "file://", 7) == 0;
}

static enum transfer_outcome from_address(struct deb_try *d, const struct archive_address *at, long *ret_status,
					  bool *ret_absent, struct err *e)
{
	struct transfer t = *d->t;
	t.ret_status = ret_status;
	if (is_file(at->url))
		return fetch_file(&t, path_join(d->a, at->url, d->path), ret_absent, e);
	t.url = path_join(d->a, at->url, transfer_escaped(d->path, d->a));
	enum transfer_outcome out = fetch_http(d->w, &t, d->name, e);
	*ret_absent = out == TRANSFER_NEXT && (*ret_status == 404 || *ret_status == 410);
	return out;
}

static size_t count_alive(const struct fetch_archive *known)
{
	size_t n = 0;
	for (size_t i = 0; i < known->count; i++)
		n += !atomic_load(&known->items[i].silent);
	return n;
}

/* The addresses of one archive are mirrors of it: one that answers speaks for one that is silent, which is not asked
 * again in this run while there are others. */
static enum transfer_outcome from_archive(struct deb_try *d, const char *archive, size_t *ret_known, struct err *e)
{
	struct fetch_archive *known;
	bool answered = false, silent = false;
	if (addresses_of(d->w, archive, &known, e) < 0)
		return TRANSFER_STOP;
	*ret_known += known->count;
	for (size_t i = 0; i < known->count; i++) {
		struct archive_address *at = &known->items[i];
		struct err said = {0};
		bool absent = false;
		long status = 0;
		if ((d->w->shared->o->offline && !is_file(at->url)) ||
		    (atomic_load(&at->silent) && count_alive(known) > 0)) {
			silent = true;
			continue;
		}
		enum transfer_outcome out = from_address(d, at, &status, &absent, &said);
		if (out == TRANSFER_DONE || out == TRANSFER_STOP) {
			*e = said;
			return out;
		}
		buf_printf(&d->reasons, "%s%s", d->reasons.len ? "; " : "", said.msg);
		d->wrong |= out == TRANSFER_WRONG;
		answered |= absent;
		d->unsure |= !absent && status != 0;
		if (!absent && status == 0) {
			silent = true;
			atomic_store(&at->silent, true);
		}
	}
	d->unsure |= silent && !answered;
	return TRANSFER_NEXT;
}

enum transfer_outcome fetch_deb(struct fetch_worker *w, const struct transfer *t, const char *name, bool *ret_absent,
				struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf reasons = {0};
	struct deb_place p;
	size_t known = 0;
	if (deb_place_parse(t->url, &a, &p, e) < 0)
		return TRANSFER_NEXT;
	struct deb_try d = {.w = w, .t = t, .path = p.path, .name = name, .a = &a};
	enum transfer_outcome out = from_archive(&d, p.archive, &known, e);
	if (out == TRANSFER_NEXT)
		out = from_archive(&d, archives_snapshots(p.archive, &a), &known, e);
	reasons = d.reasons;
	if (out != TRANSFER_NEXT) {
		if (out == TRANSFER_DONE && d.wrong)
			log_warn(&w->log, "'%s' came after other places failed: %s", name, buf_cstr(&reasons));
		return out;
	}
	if (!known) {
		archives_unknown(p.archive, e);
		return TRANSFER_NEXT;
	}
	*ret_absent = !d.unsure && !d.wrong;
	err_set(e, d.wrong ? ERR_INTEGRITY : ERR_NETWORK, "%s", buf_cstr(&reasons));
	return d.wrong ? TRANSFER_WRONG : TRANSFER_NEXT;
}
