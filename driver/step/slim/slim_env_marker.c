#include "step/slim/slim_env_marker.h"

#include "base/sys/fs_place.h"
#include "core/wheel/slim_marker.h"

enum { MARKER_MAX = 64 << 10 };

static struct slim_marker marker_of(const char *info, const struct fatbin_wanted *w, struct arena *a)
{
	const char *dash = strchr(info, '-'), *version = dash ? dash + 1 : "";
	const size_t n = strlen(version), end = strlen(".dist-info");
	struct slim_marker m = {.release = arena_strndup(a, version, n > end ? n - end : 0),
				.ptbuild = PTBUILD_VERSION};
	for (size_t g = 0; g < w->count; g++)
		slim_marker_gpu(&m, w->gpus[g].number, w->gpus[g].ptx, a);
	return m;
}

int slim_env_check(const struct fs_place *place, const char *info, const struct fatbin_wanted *w, struct arena *a,
		   struct err *e)
{
	const struct slim_marker wanted = marker_of(info, w, a);
	const char *label = strchr(wanted.release, '+');
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(a, info, SLIM_MARKER);
	struct slim_marker had;
	bool any = fs_place_has(place, path);
	if (any && (fs_place_read(place, path, MARKER_MAX, &text, e) < 0 ||
		    slim_marker_parse(buf_cstr(&text), text.len, path, a, &had, e) < 0))
		return err_hint(e, "reinstall that package");
	any = any || slim_marker_of_label(label ? label + 1 : "", a, &had);
	if (!any || slim_marker_same(&had, &wanted))
		return 0;
	err_set(e, ERR_POLICY, "'%s' has code for %s only", info, slim_marker_names(&had, a));
	return err_hint(e, "reinstall the slimmed packages to slim them for other GPUs");
}
