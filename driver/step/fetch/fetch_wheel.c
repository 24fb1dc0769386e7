/* A wheel of the Python index. */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "cache/store.h"
#include "step/fetch/fetch_place.h"
#include "step/fetch/wheel_index.h"
#include "step/fetch/wheel_page.h"

/* Asked for once in a run: pip takes half a second to say it. */
static int named_index(struct fetch_worker *w, const char **ret, struct err *e)
{
	struct fetch_shared *f = w->shared;
	int status = 0;
	pthread_mutex_lock(&f->index_mutex);
	if (!f->index_known)
		status = wheel_index(&w->run, &f->index_arena, &f->index, e);
	if (status == 0) {
		f->index_known = true;
		*ret = f->index;
	}
	pthread_mutex_unlock(&f->index_mutex);
	return status;
}

/* The page of a distribution, read and deleted. */
static enum transfer_outcome get_page(struct fetch_worker *w, const struct transfer *of, const char *url,
				      struct arena *a, struct wheel_page *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct transfer t = *of;
	t.url = url;
	t.path = arena_printf(a, "%s.page", of->path);
	t.sha256 = NULL;
	t.accept = WHEEL_PAGE_ACCEPT;
	t.max_bytes = WHEEL_PAGE_MAX;
	enum transfer_outcome out = fetch_http(w, &t, url, e);
	if (out == TRANSFER_DONE && fs_read(TRUSTED, t.path, WHEEL_PAGE_MAX, &text, e) < 0)
		out = TRANSFER_STOP;
	if (unlink(t.path) < 0 && errno != ENOENT && out == TRANSFER_DONE) {
		err_errno(e, ERR_SYSTEM, "cannot delete '%s'", t.path);
		return TRANSFER_STOP;
	}
	if (out == TRANSFER_DONE && wheel_page_parse(text.data, text.len, url, a, ret, e) < 0)
		return TRANSFER_RETRY; /* of another kind: pip may read it */
	return out;
}

static enum transfer_outcome from_index(struct fetch_worker *w, const struct transfer *t, const struct wheel_place *p,
					const char *index, struct arena *a, struct err *e)
{
	struct wheel_page page = {0};
	const char *url = wheel_page_url(index, p->name, a), *shown = transfer_shown_url(a, url);
	enum transfer_outcome out = get_page(w, t, url, a, &page, e);
	if (out != TRANSFER_DONE)
		return out;
	const struct wheel_listed *file = wheel_page_find(&page, p->file);
	if (!file) {
		err_set(e, ERR_NETWORK, "'%s' does not list '%s'", shown, p->file);
		return TRANSFER_NEXT;
	}
	if (*file->sha256 && strcmp(file->sha256, t->sha256) != 0) {
		err_set(e, ERR_INTEGRITY, "'%s' lists '%s' with sha256 %s, expected %s", shown, p->file, file->sha256,
			t->sha256);
		return TRANSFER_WRONG;
	}
	struct transfer copy = *t;
	copy.url = file->url;
	return fetch_http(w, &copy, p->file, e);
}

static enum transfer_outcome from_pip(struct fetch_worker *w, const struct transfer *t, const struct wheel_place *p,
				      struct arena *a, struct err *e)
{
	const char *dir;
	if (fetch_place_dir(w, a, t->url, &dir, e) < 0)
		return TRANSFER_STOP;
	if (wheel_pip_download(p, dir, &w->run, e) < 0)
		return e->kind == ERR_SYSTEM || e->kind == ERR_INTERRUPTED ? TRANSFER_STOP : TRANSFER_NEXT;
	return fetch_take(t, path_join(a, dir, p->file), e);
}

enum transfer_outcome fetch_wheel(struct fetch_worker *w, const struct transfer *t, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct wheel_place p;
	const char *index = NULL;
	if (wheel_place_parse(t->url, &a, &p, e) < 0)
		return TRANSFER_NEXT;
	if (named_index(w, &index, e) < 0)
		return TRANSFER_STOP;
	/* pip runs what is in an sdist before it gives it. */
	const bool sdist = path_has_suffix(p.file, WHEEL_SDIST);
	if (sdist && !index && wheel_index_default(&w->run, &a, &index, e) < 0)
		return TRANSFER_NEXT;
	enum transfer_outcome out = index ? from_index(w, t, &p, index, &a, e) : TRANSFER_RETRY;
	if (out != TRANSFER_RETRY || sdist)
		return out == TRANSFER_RETRY ? TRANSFER_NEXT : out;
	/* The index has no JSON: pip reads the older pages of HTML as well. */
	if (index)
		log_verbose(&w->log, "fetch: '%s' by pip: %s", p.file, e->msg);
	err_clear(e);
	return from_pip(w, t, &p, &a, e);
}
