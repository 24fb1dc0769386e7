#include "step/slim/slim_env_marker.h"

#include "base/sys/fs_place.h"
#include "core/wheel/slim_marker.h"

enum { MARKER_MAX = 64 << 10 };

static struct slim_marker marker_of(const char *info, const struct fatbin_wanted *w,
				    struct arena *a)
{
	const char *dash = strchr(info, '-'), *version = dash ? dash + 1 : "";
	const size_t n = strlen(version), end = strlen(".dist-info");
	struct slim_marker m = {.release = arena_strndup(a, version, n > end ? n - end : 0),
				.ptbuild = PTBUILD_VERSION};

	for (size_t g = 0; g < w->count; g++)
		slim_marker_gpu(&m, w->gpus[g].number, w->gpus[g].ptx, a);
	return m;
}

struct checking {
	const struct fatbin_wanted *w;
	struct arena *a;
	const char *first, *gpus; /* that has code for other GPUs, and for which */
	struct strlist names;     /* of all such distributions */
};

/* "torch" of "torch-2.15.0.dist-info" */
static char *name_of(const char *info, struct arena *a)
{
	const char *end = strstr(info, ".dist-info");
	size_t n = (size_t)(end - info);

	while (n && info[n] != '-')
		n--;
	return arena_strndup(a, info, n ? n : (size_t)(end - info));
}

static int check(struct checking *c, const struct fs_place *place, const char *info, struct err *e)
{
	const struct slim_marker wanted = marker_of(info, c->w, c->a);
	const char *label = strchr(wanted.release, '+');
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(c->a, info, SLIM_MARKER);
	struct slim_marker had;
	bool any = fs_place_has(place, path);

	if (any && (fs_place_read(place, path, MARKER_MAX, &text, e) < 0 ||
		    slim_marker_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, c->a,
				      &had, e) < 0))
		return err_hint(e, "reinstall that package");
	any = any || slim_marker_of_label(label ? label + 1 : "", c->a, &had);
	if (!any || !slim_marker_others(&had, &wanted))
		return 0;
	c->gpus = c->first ? c->gpus : slim_marker_names(&had, c->a);
	c->first = c->first ? c->first : info;
	strlist_once(&c->names, c->a, name_of(info, c->a));
	return 0;
}

static int check_place(struct checking *c, const struct fs_place *place, struct err *e)
{
	struct strlist infos = {0};

	if (fs_place_list(place, "", c->a, &infos, e) < 0)
		return -1;
	for (size_t i = 0; i < infos.count; i++) {
		const char *info = infos.items[i];
		const bool listed = path_has_suffix(info, ".dist-info") &&
				    fs_place_has(place, path_join(c->a, info, "RECORD"));
		if (listed && check(c, place, info, e) < 0)
			return -1;
	}

	return 0;
}

int slim_env_check(struct fs_place *const *places, size_t count, const struct fatbin_wanted *w,
		   struct arena *a, struct err *e)
{
	struct checking c = {.w = w, .a = a};

	for (size_t i = 0; i < count; i++)
		if (check_place(&c, places[i], e) < 0)
			return -1;
	if (!c.first)
		return 0;
	strlist_sort(&c.names);
	err_set(e, ERR_POLICY, "'%s' has code for %s only", c.first, c.gpus);
	return err_hint(e, "to slim for other GPUs, first reinstall %s",
			strlist_join(&c.names, a, ", "));
}
