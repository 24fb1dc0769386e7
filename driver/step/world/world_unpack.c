#include <strings.h>

#include "base/sys/fs.h"
#include "core/zip/zip.h"
#include "step/world/world_parts.h"

static int claim(struct unpacker *u, struct name_claim c, struct name **ret, struct err *e)
{
	c.unit = &u->work->unit;
	return names_claim(&u->m->names, &c, ret, e);
}

/* Where what was claimed is written. */
static const char *place_at(const struct name *m)
{
	return m->spare ? m->spare : m->path;
}

/* What a base has from wheels: programs and modules that are newer than its packages. */

/* Where an entry goes, "usr/local/bin/cmake"; NULL:
 * it is left out, as what is there for Python alone. */
static const char *wheel_place(const struct unpacker *u, const char *name, struct arena *a)
{
	const struct work *w = u->work;

	if (path_has_suffix(name, "/"))
		return NULL;
	for (unsigned i = 0; i < w->part->places_count; i++) {
		const struct world_wheel *p = &w->part->places[i];
		const bool all = strcmp(p->from, ".") == 0;
		const char *rest = path_below(name, p->from);
		if ((all || rest) && strcmp(p->wheel, w->entry->name) == 0)
			return path_join(a, world_part_path(p->to, u->m->q->world->platform, a),
					 all ? name : rest);
	}

	/* What of a .dist-info is kept: licences. */
	const char *slash = strchr(name, '/'), *base = path_base(name);
	if (!slash || slash - name <= 10 || strncmp(slash - 10, ".dist-info", 10) != 0)
		return NULL;
	bool licence =
		strncasecmp(base, "license", 7) == 0 || strncmp(slash, "/licenses/", 10) == 0;
	return licence ? arena_printf(a, "usr/share/doc/%s/%s", w->entry->name, base) : NULL;
}

static int add_wheel_entry(struct unpacker *u, const struct zip_reader *z,
			   const struct zip_entry *en, struct err *e)
{
	const char *path = wheel_place(u, en->name, &u->arena);
	const struct timespec mtime = {.tv_sec = (time_t)zip_epoch(en)}, times[2] = {mtime, mtime};
	uint8_t sum[DIGEST_LEN];
	struct name *m;
	AUTO_FD int fd = -1;

	if (!path || world_part_excludes(u->work->part, path, false))
		return 0;
	if (en->size > WORLD_MAX_BYTES - u->bytes)
		return err_set(e, ERR_INTEGRITY, "the wheel unpacks to more than %llu GiB",
			       (unsigned long long)(WORLD_MAX_BYTES >> 30));
	u->bytes += en->size;
	if (mtime.tv_sec > u->work->newest.tv_sec)
		u->work->newest = mtime;
	if (claim(u, (struct name_claim){path, NAME_FILE, mtime, NULL}, &m, e) < 0)
		return -1;
	m->executable = (en->mode & S_IXUSR) != 0;
	m->size = en->size;
	if (tree_create(&u->tree, place_at(m), m->executable ? 0755 : 0644, &fd, e) < 0 ||
	    zip_extract_fd(z, en, fd, sum, e) < 0)
		return -1;
	digest_hex(sum, m->sha256);
	if (futimens(fd, times) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot set its time");
	return fs_close(&fd, en->name, e);
}

static int unpack_wheel(struct unpacker *u, struct err *e)
{
	AUTO_ZIP struct zip_reader *z = NULL;

	if (zip_open(u->work->path, &u->arena, &z, e) < 0)
		return -1;
	/* A directory that a place names and the wheel does not have is a mistake of the table. */
	for (unsigned i = 0; i < u->work->part->places_count; i++) {
		const struct world_wheel *p = &u->work->part->places[i];
		bool any = strcmp(p->wheel, u->work->entry->name) != 0;
		for (size_t j = 0; j < zip_count(z) && !any; j++)
			any = strcmp(p->from, ".") == 0 || path_below(zip_at(z, j)->name, p->from);
		if (!any)
			return err_set(e, ERR_INTEGRITY, "has nothing in '%s'", p->from);
	}

	for (size_t i = 0; i < zip_count(z); i++) {
		if (run_check(u->m->run, e) < 0 || add_wheel_entry(u, z, zip_at(z, i), e) < 0)
			return err_wrap(e, "entry '%.200s'", zip_at(z, i)->name);
	}

	return 0;
}

static const struct tar_limits limits = {.max_bytes = WORLD_MAX_BYTES, .max_entries = 1000000};

static const char *const merged[] = {"bin", "sbin", "lib", "lib64"};

/* Where a path of an archive goes in a tree with a merged /usr. */
static const char *place_of(const char *path, struct buf *out)
{
	size_t n = strcspn(path, "/");

	buf_reset(out);
	for (size_t i = 0; i < ARRAY_LEN(merged); i++)
		if (strlen(merged[i]) == n && strncmp(path, merged[i], n) == 0)
			buf_addstr(out, "usr/");
	buf_addstr(out, path);
	return buf_cstr(out);
}

static int add_file(struct unpacker *u, const struct tar_entry *en, const char *path, struct err *e)
{
	struct name *m;

	if (claim(u, (struct name_claim){path, NAME_FILE, en->mtime, NULL}, &m, e) < 0)
		return -1;
	m->executable = en->executable;
	return tar_extract(u->tar, en, &u->tree, place_at(m), m->sha256, &m->size, e);
}

static int add_link(struct unpacker *u, const struct tar_entry *en, const char *path, struct err *e)
{
	struct name *m;
	/* A relative link may not climb over the top; an absolute one is from the top. */
	AUTO_ARENA struct arena a = {0};
	const char *from = strchr(path, '/') ? path_dir(&a, path) : "";

	if (!*en->target)
		return err_set(e, ERR_INTEGRITY, "is a link with an empty target");
	if (*en->target != '/' && !path_stays_inside(from, en->target))
		return err_set(e, ERR_INTEGRITY, "is a link that leaves the tree, to '%s'",
			       en->target);
	if (claim(u, (struct name_claim){path, NAME_LINK, en->mtime, NULL}, &m, e) < 0)
		return -1;
	m->target = arena_strdup(&u->arena, en->target);
	return tree_symlink(&u->tree, place_at(m), m->target, en->mtime, e);
}

/* To a file of the same package, which must be the one that is there. */
static int add_hard_link(struct unpacker *u, const char *path, const char *to, struct err *e)
{
	struct name *m;

	pthread_mutex_lock(&u->m->names.mutex);
	const struct name *from = names_find(&u->m->names, to);
	while (from && from->unit != &u->work->unit)
		from = from->rival;
	pthread_mutex_unlock(&u->m->names.mutex);
	if (!from || from->kind != NAME_FILE)
		return err_set(e, ERR_INTEGRITY,
			       "is a hard link to '%s', which is not a file of it before", to);
	if (claim(u, (struct name_claim){path, NAME_FILE, from->mtime, NULL}, &m, e) < 0)
		return -1;
	m->executable = from->executable;
	m->size = from->size;
	memcpy(m->sha256, from->sha256, sizeof(m->sha256));
	return tree_hardlink(&u->tree, place_at(m), from->spare ? from->spare : to, e);
}

static int add_dir(struct unpacker *u, const struct tar_entry *en, const char *path, struct err *e)
{
	struct name *m;

	if (claim(u, (struct name_claim){path, NAME_DIR, en->mtime, NULL}, &m, e) < 0)
		return -1;
	return tree_mkdir(&u->tree, path, en->mtime, e);
}

/* An entry at its place in the tree. */
static int add_entry(struct unpacker *u, struct tar_entry *en, const char *path, const char *hard,
		     struct err *e)
{
	en->mtime.tv_nsec = 0; /* what a tar archive has, and every file system keeps */
	if (strcmp(path, NAMES_SPARE) == 0 || path_below(path, NAMES_SPARE))
		return err_set(e, ERR_INTEGRITY, "has a name that ptbuild reserves");
	if (hard)
		return add_hard_link(u, path, hard, e);
	if (en->mtime.tv_sec > u->work->newest.tv_sec)
		u->work->newest = en->mtime;
	switch (en->type) {
	case S_IFREG:
		return add_file(u, en, path, e);
	case S_IFDIR:
		return add_dir(u, en, path, e);
	case S_IFLNK:
		return add_link(u, en, path, e);
	default:
		return err_set(e, ERR_INTEGRITY, "is a device, fifo or socket");
	}
}

/* The four links of a merged /usr, which are made anyhow. */
static bool is_merged_link(const struct tar_entry *en)
{
	for (size_t i = 0; en->type == S_IFLNK && i < ARRAY_LEN(merged); i++)
		if (strcmp(en->name, merged[i]) == 0)
			return path_has_suffix(en->target, merged[i]) &&
			       strncmp(en->target + (*en->target == '/'), "usr/", 4) == 0;
	return false;
}

static int deb_entry(struct unpacker *u, struct tar_entry *en, struct err *e)
{
	AUTO_BUF struct buf place = {0}, hard_place = {0};

	if (!*en->name)
		return 0;
	buf_printf(&u->work->list, "/%s\n", en->name);
	if (is_merged_link(en))
		return 0;
	const char *path = place_of(en->name, &place);
	if (world_part_excludes(u->work->part, path, en->type == S_IFLNK))
		return 0;
	path = world_part_move(u->work->part, path, &u->arena);
	const char *hard = en->hard ? place_of(en->hard, &hard_place) : NULL;
	if (hard)
		hard = world_part_move(u->work->part, hard, &u->arena);
	return add_entry(u, en, path, hard, e);
}

static int check_control(const struct work *w, const struct deb_control *k, struct err *e)
{
	const struct world_entry *t = w->entry;

	if (strcmp(k->name, t->name) == 0 && strcmp(k->version, t->version) == 0 &&
	    strcmp(k->arch, t->arch) == 0)
		return 0;
	return err_set(e, ERR_INTEGRITY,
		       "its control file says %.100s %.100s %.40s, the lock %s %s %s", k->name,
		       k->version, k->arch, t->name, t->version, t->arch);
}

static int unpack_deb(struct unpacker *u, struct err *e)
{
	AUTO_DEB struct deb *d = NULL;
	struct work *w = u->work;
	struct deb_control k;
	struct tar_entry en;
	int got;

	if (deb_open(w->path, &limits, u->m->run, &u->arena, &d, &k, e) < 0 ||
	    check_control(w, &k, e) < 0)
		return -1;
	w->replaces = k.replaces;
	w->status = arena_printf(&u->arena, "Package: %s\nStatus: install ok installed\n%s\n",
				 k.name, k.text);
	w->list_name = k.same ? arena_printf(&u->arena, "%s:%s", k.name, k.arch) : k.name;
	buf_addstr(&w->list, "/.\n");
	u->tar = deb_data(d);
	while ((got = tar_next(u->tar, &en, e)) > 0)
		if (deb_entry(u, &en, e) < 0)
			return tar_deny(deb_data(d), e);
	return got;
}

/* Goes through an archive: with `below`, what is in that directory is added
 * to the tree; without, *ret_install says whether there is a python/install. */
static int walk_python(struct unpacker *u, const char *below, bool *ret_install, struct err *e)
{
	AUTO_TAR struct tar *t = NULL;
	struct tar_entry en;
	size_t added = 0;
	int got;

	if (tar_open(u->work->path, &limits, u->m->run, &t, e) < 0)
		return -1;
	u->tar = t;
	while ((got = tar_next(t, &en, e)) > 0) {
		AUTO_BUF struct buf place = {0}, to = {0};
		const char *rest = below ? path_below(en.name, below) : NULL, *hard = NULL;
		if (!below)
			*ret_install |= path_below(en.name, "python/install") != NULL;
		if (!rest)
			continue;
		buf_printf(&place, "%s/%s", u->work->part->prefix, rest);
		if (en.hard && (hard = path_below(en.hard, below)))
			buf_printf(&to, "%s/%s", u->work->part->prefix, hard);
		added++;
		if (add_entry(u, &en, buf_cstr(&place), en.hard ? buf_cstr(&to) : NULL, e) < 0)
			return tar_deny(t, e);
	}

	if (got < 0)
		return -1;
	return below && added == 0 ? err_set(e, ERR_INTEGRITY, "has no directory 'python'") : 0;
}

int unpack_work(struct unpacker *u, struct work *w, struct err *e)
{
	u->work = w;
	u->bytes = 0;
	switch (w->entry->kind) {
	case WORLD_DEB:
		return unpack_deb(u, e);
	case WORLD_WHEEL:
		return unpack_wheel(u, e);
	case WORLD_FILE:
		break;
	}

	bool install = false;
	if (walk_python(u, NULL, &install, e) < 0)
		return -1;
	return walk_python(u, install ? "python/install" : "python", NULL, e);
}
