#include "step/fetch/fetch_room.h"

#include <sys/stat.h>

#include "base/sys/fs.h"
#include "cache/store.h"

/* A directory that is written to. */
struct room {
	const char *dir;
	uint64_t need;
	const char *what;   /* "the download" */
	const char *option; /* that names another */
};

static double megabytes(uint64_t bytes)
{
	return (double)bytes / 1e6;
}

/* Bytes of a source that neither the store nor an earlier run's partial file has. What cannot be
 * fetched at all, the fetch itself refuses. */
static uint64_t missing_bytes(const struct fetcher *by, const struct fetch_source *s)
{
	const char *origin, *partial = path_join(by->arena, store_dir(by->store), "partial");
	struct stat st;

	if (fetch_has(by->store, s->sha256) || fetch_origin(by, s, &origin, ERR_IGNORED) < 0)
		return 0;
	if (stat(path_join(by->arena, partial, s->sha256), &st) < 0 ||
	    (uint64_t)st.st_size > s->max_bytes)
		return s->max_bytes;
	return s->max_bytes - (uint64_t)st.st_size;
}

static bool is_one_disk(const char *x, const char *y)
{
	struct stat of_x, of_y;

	return stat(x, &of_x) == 0 && stat(y, &of_y) == 0 && of_x.st_dev == of_y.st_dev;
}

static int check_room(const struct room *r, struct err *e)
{
	uint64_t have;

	/* where nobody can say, the first write does */
	if (fs_free_bytes(r->dir, &have, ERR_IGNORED) < 0 || have >= r->need)
		return 0;
	err_set(e, ERR_SYSTEM, "too little space left in '%s': %.1f MB free, and %s needs %.1f MB",
		r->dir, megabytes(have), r->what, megabytes(r->need));
	return err_hint(e, "free some space there, or name a directory on another disk with %s",
			r->option);
}

int fetch_room_check(const struct fetcher *by, const struct fetch_room *q, struct err *e)
{
	const char *store = store_dir(by->store);
	uint64_t download = 0;

	for (size_t i = 0; i < q->count; i++)
		download += missing_bytes(by, &q->sources[i]);
	if (!download)
		return 0;
	const struct room of_store = {store, download, "the download", "--cache"};
	const struct room of_out = {q->out_dir, q->made, "the output", "--out"};
	const struct room both = {q->out_dir, download + q->made, "the output with the download",
				  "--cache or --out"};
	if (is_one_disk(store, q->out_dir))
		return check_room(&both, e);
	return check_room(&of_store, e) < 0 ? -1 : check_room(&of_out, e);
}
