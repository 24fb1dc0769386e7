#include "step/fetch/fetch_archive.h"

#include "base/path.h"

static int get(void *user, const char *archive, const char *path, const char *sha256, uint64_t max, struct arena *a,
	       const char **ret, struct err *e)
{
	const struct fetch_archive_user *u = user;
	if (!sha256)
		return fetch_latest(u->store, arena_printf(a, "%s/%s", archive, path), max, u->options, u->run, a, ret,
				    e);
	struct fetch_source s = {.name = path_base(path), .sha256 = sha256, .max_bytes = max};
	strlist_addf(&s.urls, a, "deb:%s/%s", archive, path);
	if (fetch_all(u->store, &s, 1, u->options, u->run, a, NULL, e) < 0)
		return -1;
	*ret = s.path;
	return 0;
}

struct archive_get fetch_archive(struct fetch_archive_user *user)
{
	return (struct archive_get){.get = get, .user = user};
}
