/* What a base has from wheels: programs and modules that are newer than its packages. */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "core/zip/zip.h"
#include "step/world/world_parts.h"

/* What of a .dist-info is kept: licences. */
static const char *licence_place(const struct work *w, const char *name, struct arena *a)
{
	const char *slash = strchr(name, '/'), *base = path_base(name);
	if (!slash || slash - name <= 10 || strncmp(slash - 10, ".dist-info", 10) != 0)
		return NULL;
	bool licence = strncasecmp(base, "license", 7) == 0 || strncmp(slash, "/licenses/", 10) == 0;
	return licence ? arena_printf(a, "usr/share/doc/%s/%s", w->entry->name, base) : NULL;
}

/* Where an entry goes, "usr/local/bin/cmake"; NULL: it is left out, as what is there for Python alone. */
static const char *place_of(const struct unpacker *u, const char *name, struct arena *a)
{
	const struct work *w = u->work;
	if (path_has_suffix(name, "/"))
		return NULL;
	for (unsigned i = 0; i < w->part->places_count; i++) {
		const struct world_wheel *p = &w->part->places[i];
		const bool all = strcmp(p->from, ".") == 0;
		const char *rest = path_below(name, p->from);
		if ((all || rest) && strcmp(p->wheel, w->entry->name) == 0)
			return path_join(a, world_part_path(p->to, u->m->q->world->platform, a), all ? name : rest);
	}
	return licence_place(w, name, a);
}

static int add_entry(struct unpacker *u, const struct zip_reader *z, const struct zip_entry *en, struct err *e)
{
	const char *path = place_of(u, en->name, &u->arena);
	const struct timespec mtime = {.tv_sec = (time_t)zip_epoch(en)}, times[2] = {mtime, mtime};
	uint8_t sum[DIGEST_LEN];
	struct name *m;
	bool first;
	AUTO_FD int fd = -1;
	if (!path || world_part_excludes(u->work->part, path, false))
		return 0;
	if (en->size > WORLD_MAX_BYTES - u->bytes)
		return err_set(e, ERR_INTEGRITY, "the wheel unpacks to more than %llu GiB",
			       (unsigned long long)(WORLD_MAX_BYTES >> 30));
	u->bytes += en->size;
	if (mtime.tv_sec > u->work->newest.tv_sec)
		u->work->newest = mtime;
	if (names_claim(&u->m->names, path, NAME_FILE, &u->work->unit, mtime, &m, &first, e) < 0)
		return -1;
	m->executable = (en->mode & S_IXUSR) != 0;
	m->size = en->size;
	if (tree_create(&u->tree, first ? path : m->spare, m->executable ? 0755 : 0644, &fd, e) < 0 ||
	    zip_extract_fd(z, en, fd, sum, e) < 0)
		return -1;
	digest_hex(sum, m->sha256);
	return futimens(fd, times) < 0 ? err_errno(e, ERR_SYSTEM, "cannot set its time") : 0;
}

/* A directory that a place names and the wheel does not have is a mistake of the table. */
static int check_places(const struct unpacker *u, const struct zip_reader *z, struct err *e)
{
	for (unsigned i = 0; i < u->work->part->places_count; i++) {
		const struct world_wheel *p = &u->work->part->places[i];
		bool any = strcmp(p->wheel, u->work->entry->name) != 0;
		for (size_t j = 0; j < zip_count(z) && !any; j++)
			any = strcmp(p->from, ".") == 0 || path_below(zip_at(z, j)->name, p->from);
		if (!any)
			return err_set(e, ERR_INTEGRITY, "has nothing in '%s'", p->from);
	}
	return 0;
}

int unpack_wheel(struct unpacker *u, struct err *e)
{
	AUTO_ZIP struct zip_reader *z = NULL;
	if (zip_open(u->work->path, &u->arena, &z, e) < 0)
		return -1;
	if (check_places(u, z, e) < 0)
		return -1;
	for (size_t i = 0; i < zip_count(z); i++) {
		if (run_check(u->m->run, e) < 0 || add_entry(u, z, zip_at(z, i), e) < 0)
			return err_wrap(e, "entry '%.200s'", zip_at(z, i)->name);
	}
	return 0;
}
