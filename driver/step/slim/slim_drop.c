#include "step/slim/slim_drop.h"

#include <fnmatch.h>

struct slim_kind *slim_drops_kind(const struct slim_drops *d, const struct drop_row *row)
{
	return row ? text_search(row->name, d->kinds, d->count, sizeof(*d->kinds)) : NULL;
}

static bool names(const struct strlist *list, const char *kind)
{
	return strlist_contains(list, kind) || strlist_contains(list, "all");
}

static int check_names(const struct slim_drops *d, const char *option, const struct strlist *list,
		       struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0};

	for (size_t i = 0; i < d->count; i++)
		strlist_ref(&known, &a, d->kinds[i].name);
	for (size_t i = 0; i < list->count; i++) {
		const char *name = list->items[i];
		if (strcmp(name, "all") == 0 || strlist_contains(&known, name))
			continue;
		err_set(e, ERR_USAGE, "option '--%s': unknown kind '%s'", option, name);
		return err_hint(e, "use all or some of: %s", strlist_join(&known, &a, ", "));
	}

	return 0;
}

int slim_drops_choose(const struct tables *t, const struct strlist *drop,
		      const struct strlist *keep, struct arena *a, struct slim_drops *ret,
		      struct err *e)
{
	struct slim_drops d = {.rows = t->drops, .rows_count = t->drops_count};

	d.kinds = arena_array(a, d.rows_count + 1, sizeof(*d.kinds));
	for (size_t i = 0; i < d.rows_count; i++) {
		const struct drop_row *row = &d.rows[i];
		struct slim_kind *k = slim_drops_kind(&d, row);
		if (!k) {
			k = &d.kinds[d.count++];
			*k = (struct slim_kind){.name = row->name, .by_default = row->by_default};
			k->chosen =
				(row->by_default || names(drop, k->name)) && !names(keep, k->name);
		}

		if (!k->chosen)
			continue;
		d.strip |= strcmp(row->strip, "debug") == 0 ? ELF_STRIP_DEBUG : 0;
		d.strip |= strcmp(row->strip, "symbols") == 0 ? ELF_STRIP_SYMBOLS : 0;
		d.same = d.same || row->same;
	}

	if (check_names(&d, "drop", drop, e) < 0 || check_names(&d, "keep", keep, e) < 0)
		return -1;
	*ret = d;
	return 0;
}

/* "torch-2.15.0.dist-info" is of "torch" with "2.15.0". A malformed version is of no range. */
static bool is_of(const struct drop_row *row, const char *info)
{
	char name[256], version[128];
	const char *dash = strrchr(path_base(info), '-'), *end = strstr(info, ".dist-info");
	struct err why = {0};
	bool in = true;

	for (const char *p = info; end && (p = strchr(p, '-')) && p < end; p++)
		dash = p; /* not the one of the suffix */
	if (!end || !dash || dash > end)
		return false;
	if ((size_t)(dash - info) >= sizeof(name) || (size_t)(end - dash) >= sizeof(version))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(dash - info), info);
	snprintf(version, sizeof(version), "%.*s", (int)(end - dash - 1), dash + 1);
	if (*row->package && fnmatch(row->package, name, 0) != 0)
		return false;
	return !*row->versions || (version_in(version, row->versions, &in, &why) == 0 && in);
}

/* PTX is for later GPUs, of which nothing is known. */
static bool fits_gpus(const struct drop_row *row, const struct fatbin_wanted *w)
{
	const unsigned below = (unsigned)strtoul(row->gpus_below, NULL, 10);
	const unsigned from = (unsigned)strtoul(row->gpus_from, NULL, 10);

	for (size_t g = 0; g < w->count; g++)
		if ((below && (w->gpus[g].number >= below || w->gpus[g].ptx)) ||
		    w->gpus[g].number < from)
			return false;
	return true;
}

/* The number in the place of the pattern's '*'; 0 if the path is another. */
static unsigned number_in(const char *glob, const char *path)
{
	const size_t before = strcspn(glob, "*");
	char *end;

	if (fnmatch(glob, path, 0) != 0 || strncmp(glob, path, before) != 0)
		return 0;
	const unsigned long n = strtoul(path + before, &end, 10);
	return end > path + before && strcmp(end, glob + before + 1) == 0 && n < 10000 ? (unsigned)n
										       : 0;
}

/* The highest of the files that is not above the GPU; UINT_MAX where none is: then all stay. */
static unsigned taken_by(const struct fatbin_gpu *g, const char *glob,
			 const struct wheel_record_row *rows, size_t count)
{
	unsigned best = 0;

	for (size_t i = 0; i < count; i++) {
		const unsigned n = number_in(glob, rows[i].path);
		if (n > best && (n <= g->number || g->ptx))
			best = n;
	}

	return best ? best : UINT32_MAX;
}

/* A file of an installed package, among all of its files. */
struct installed_file {
	const struct fatbin_wanted *wanted;
	const char *info; /* the package's .dist-info */
	const struct wheel_record_row *rows;
	size_t count;
	const char *path;
};

static bool other_target(const char *glob, const struct installed_file *f)
{
	const unsigned own = number_in(glob, f->path);

	if (!own)
		return false;
	for (size_t g = 0; g < f->wanted->count; g++) {
		const unsigned best = taken_by(&f->wanted->gpus[g], glob, f->rows, f->count);
		if (best == own || best == UINT32_MAX)
			return false;
	}

	return true;
}

static bool removes(const struct drop_row *row, const struct installed_file *f)
{
	bool match = strings_match(row->files, row->files_count, f->path);

	for (unsigned k = 0; k < row->targets_count && !match; k++)
		match = other_target(row->targets[k], f);
	return match && fits_gpus(row, f->wanted) && is_of(row, f->info);
}

const struct drop_row *slim_drops_row(const struct slim_drops *d, const struct fatbin_wanted *w,
				      const char *info, const struct wheel_record_row *rows,
				      size_t count, size_t i)
{
	const struct installed_file f = {
		.wanted = w, .info = info, .rows = rows, .count = count, .path = rows[i].path};
	const struct drop_row *found = NULL;

	if (!path_is_safe_relative(rows[i].path) || strstr(rows[i].path, ".dist-info/"))
		return NULL;
	for (size_t k = 0; k < d->rows_count; k++) {
		const struct drop_row *row = &d->rows[k];
		if (!removes(row, &f))
			continue;
		if (slim_drops_kind(d, row)->chosen)
			return row;
		found = found ? found : row;
	}

	return found;
}

bool slim_drops_by_gpu(const struct drop_row *row)
{
	return row->targets_count || *row->gpus_below || *row->gpus_from;
}

const struct drop_row *slim_drops_strip(const struct slim_drops *d, const char *what)
{
	for (size_t i = 0; i < d->rows_count; i++)
		if (strcmp(d->rows[i].strip, what) == 0)
			return &d->rows[i];
	return NULL;
}

const struct drop_row *slim_drops_same(const struct slim_drops *d)
{
	for (size_t i = 0; i < d->rows_count; i++)
		if (d->rows[i].same)
			return &d->rows[i];
	return NULL;
}

void slim_drops_add(const struct slim_drops *d, const struct drop_row *row, uint64_t bytes,
		    struct arena *a)
{
	struct slim_kind *k = slim_drops_kind(d, row);

	if (!k || !bytes)
		return;
	k->bytes += bytes;
	k->files++;
	strlist_once(&k->lost, a, row->lost);
}
