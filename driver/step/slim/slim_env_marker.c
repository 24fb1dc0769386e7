#include "step/slim/slim_env_marker.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/wheel/slim_marker.h"
#include "core/wheel/wheel.h"
#include "step/slim/slim_env.h"

enum { MARKER_MODE = 0644, MARKER_MAX = 64 << 10 };

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

int slim_env_check(const char *place, const char *info, const struct fatbin_wanted *w, struct arena *a, struct err *e)
{
	const struct slim_marker wanted = marker_of(info, w, a);
	const char *label = strchr(wanted.release, '+');
	struct slim_marker had;
	bool any;
	if (slim_marker_read(place, info, a, &had, &any, e) < 0)
		return err_hint(e, "reinstall that package");
	any = any || slim_marker_of_label(label ? label + 1 : "", a, &had);
	if (!any || slim_marker_same(&had, &wanted))
		return 0;
	err_set(e, ERR_POLICY, "'%s' has code for %s only", info, slim_marker_names(&had, a));
	return err_hint(e, "reinstall the slimmed packages to slim them for other GPUs");
}

static struct wheel_record_row *row_of(struct slim_package *p, const char *path, struct arena *a)
{
	for (size_t i = 0; i < p->rows_count; i++)
		if (strcmp(p->rows[i].path, path) == 0)
			return &p->rows[i];
	struct wheel_record_row *rows = arena_array(a, p->rows_count + 1, sizeof(*rows));
	memcpy(rows, p->rows, p->rows_count * sizeof(*rows));
	p->rows = rows;
	p->rows[p->rows_count] = (struct wheel_record_row){.path = path, .digest = "", .size = -1};
	return &p->rows[p->rows_count++];
}

int slim_env_mark(struct slim_package *p, const struct fatbin_wanted *w, struct arena *a, bool *ret_changed,
		  struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(a, p->info, SLIM_MARKER);
	if (fs_exists(p->place, path)) {
		if (fs_read(p->place, path, MARKER_MAX, &text, e) < 0)
			return -1;
	} else {
		const struct slim_marker m = marker_of(p->info, w, a);
		buf_addstr(&text, slim_marker_text(&m, a));
		if (fs_write(p->place, path, text.data, text.len, MARKER_MODE, e) < 0)
			return -1;
	}
	char digest[DIGEST_RECORD_MAX];
	struct wheel_record_row *row = row_of(p, path, a);
	digest_record("sha256", text.data, text.len, digest);
	if (strcmp(row->digest, digest) == 0 && row->size == (int64_t)text.len)
		return 0;
	row->digest = arena_strdup(a, digest);
	row->size = (int64_t)text.len;
	*ret_changed = true;
	return 0;
}
