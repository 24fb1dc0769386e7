#include "step/fetch/fetch_archive.h"

#include <string.h>

#include "step/fetch/archives.h"

enum { RELEASE_MAX = 16 << 20 };

int fetch_archive(struct store *store, const char *archive, const char *suite, const struct fetch_options *o,
		  const struct run *run, struct arena *a, struct strlist *ret, struct err *e)
{
	struct strlist all[2] = {0};
	const char *place = arena_printf(a, "%s/dists/%s/InRelease", archive, suite), *file;
	if (fetch_latest(store, place, RELEASE_MAX, o, run, a, &file, e) < 0) {
		if (e->kind != ERR_NETWORK || e->hint[0]) /* a reason of its own: --offline, no address known */
			return err_wrap(e, "no index of '%s'", suite);
		err_wrap(e, "no index of '%s': what is named as '%s' is not an archive of Debian, or cannot be reached",
			 suite, archive);
		return err_hint(e, "name the URL or directory that has 'dists' and 'pool': --archive %s=URL", archive);
	}
	if (archives_find(archive, o, run, a, &all[0], e) < 0 ||
	    archives_find(archives_snapshots(archive, a), o, run, a, &all[1], e) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < all[i].count; k++)
			if (!o->offline || *all[i].items[k] == '/' || strncmp(all[i].items[k], "file:", 5) == 0)
				strlist_ref(ret, a, all[i].items[k]);
	return 0;
}
