#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "step/world/deb.h"
#include "step/world/world_parts.h"

#define MAX_ENTRIES 1000000U
#define READ_SIZE (1U << 18)

static const char *const merged[] = {"bin", "sbin", "lib", "lib64"};

const char *world_place(const char *path, struct buf *out)
{
	size_t n = strcspn(path, "/");
	buf_reset(out);
	for (size_t i = 0; i < ARRAY_LEN(merged); i++)
		if (strlen(merged[i]) == n && strncmp(path, merged[i], n) == 0)
			buf_addstr(out, "usr/");
	buf_addstr(out, path);
	return buf_cstr(out);
}

/* A relative link may not climb over the top; an absolute one is from the top. */
static int check_target(const char *path, const char *target, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *from = strchr(path, '/') ? path_dir(&a, path) : "";
	if (tree_check_bytes(target, e) < 0)
		return err_wrap(e, "its target");
	if (!*target)
		return err_set(e, ERR_INTEGRITY, "is a link with an empty target");
	if (*target != '/' && !path_stays_inside(from, target))
		return err_set(e, ERR_INTEGRITY, "is a link that leaves the tree, to '%s'", target);
	return 0;
}

static struct timespec entry_time(struct unpacker *u, struct archive_entry *en)
{
	/* whole seconds: what a tar archive has, and every file system keeps */
	struct timespec t = {.tv_sec = archive_entry_mtime(en)};
	if (t.tv_sec > u->work->newest.tv_sec)
		u->work->newest = t;
	return t;
}

static int copy_data(struct unpacker *u, struct archive *r, int fd, const char *path, struct name *m, struct err *e)
{
	AUTO_DIGEST struct digest *d = digest_new();
	uint8_t sum[DIGEST_LEN];
	const void *data;
	size_t len;
	la_int64_t at;
	for (int rc; (rc = archive_read_data_block(r, &data, &len, &at)) != ARCHIVE_EOF;) {
		if (rc != ARCHIVE_OK)
			return deb_damaged(r, e);
		if (at < 0 || (uint64_t)at != m->size)
			return err_set(e, ERR_INTEGRITY, "has holes");
		u->bytes += len;
		if (u->bytes > WORLD_MAX_BYTES)
			return err_set(e, ERR_INTEGRITY, "unpacks to more than %llu GiB",
				       (unsigned long long)(WORLD_MAX_BYTES >> 30));
		digest_update(d, data, len);
		if (run_check(u->m->run, e) < 0 || fs_write_all(fd, data, len, path, e) < 0)
			return -1;
		m->size += len;
	}
	digest_final(d, sum);
	digest_hex(sum, m->sha256);
	return 0;
}

static int add_file(struct unpacker *u, struct archive *r, struct archive_entry *en, const char *path, struct err *e)
{
	const struct timespec mtime = entry_time(u, en), times[2] = {mtime, mtime};
	struct name *m;
	bool first;
	AUTO_FD int fd = -1;
	if (names_claim(&u->m->names, path, NAME_FILE, &u->work->unit, mtime, &m, &first, e) < 0)
		return -1;
	m->executable = (archive_entry_perm(en) & 0111) != 0;
	if (tree_create(&u->tree, first ? path : m->spare, m->executable ? 0755 : 0644, &fd, e) < 0 ||
	    copy_data(u, r, fd, path, m, e) < 0)
		return -1;
	if (archive_entry_size_is_set(en) && (uint64_t)archive_entry_size(en) != m->size)
		return err_set(e, ERR_INTEGRITY, "has %llu bytes, not the %lld of its header",
			       (unsigned long long)m->size, (long long)archive_entry_size(en));
	return futimens(fd, times) < 0 ? err_errno(e, ERR_SYSTEM, "cannot set its time") : 0;
}

static int add_link(struct unpacker *u, struct archive_entry *en, const char *path, struct err *e)
{
	const char *target = archive_entry_symlink(en);
	struct timespec mtime = entry_time(u, en);
	struct name *m;
	bool first;
	if (check_target(path, target ? target : "", e) < 0 ||
	    names_claim(&u->m->names, path, NAME_LINK, &u->work->unit, mtime, &m, &first, e) < 0)
		return -1;
	m->target = arena_strdup(&u->arena, target);
	return tree_symlink(&u->tree, first ? path : m->spare, target, mtime, e);
}

/* To a file of the same package, which must be the one that is there. */
static int add_hard_link(struct unpacker *u, const char *path, const char *to, struct err *e)
{
	struct name *m;
	bool first;
	pthread_mutex_lock(&u->m->names.mutex);
	const struct name *from = names_find(&u->m->names, to);
	while (from && from->unit != &u->work->unit)
		from = from->rival;
	pthread_mutex_unlock(&u->m->names.mutex);
	if (!from || from->kind != NAME_FILE)
		return err_set(e, ERR_INTEGRITY, "is a hard link to '%s', which is not a file of it before", to);
	if (names_claim(&u->m->names, path, NAME_FILE, &u->work->unit, from->mtime, &m, &first, e) < 0)
		return -1;
	m->executable = from->executable;
	m->size = from->size;
	memcpy(m->sha256, from->sha256, sizeof(m->sha256));
	return tree_hardlink(&u->tree, first ? path : m->spare, from->spare ? from->spare : to, e);
}

static int add_dir(struct unpacker *u, struct archive_entry *en, const char *path, struct err *e)
{
	struct timespec mtime = entry_time(u, en);
	struct name *m;
	bool first;
	if (names_claim(&u->m->names, path, NAME_DIR, &u->work->unit, mtime, &m, &first, e) < 0)
		return -1;
	return tree_mkdir(&u->tree, path, mtime, e);
}

/* An entry at its place in the tree. */
static int add_entry(struct unpacker *u, struct archive *r, struct archive_entry *en, const char *path,
		     const char *hard_link, struct err *e)
{
	if (strcmp(path, NAMES_SPARE) == 0 || path_below(path, NAMES_SPARE))
		return err_set(e, ERR_INTEGRITY, "has a name that ptbuild reserves");
	if (hard_link)
		return add_hard_link(u, path, hard_link, e);
	switch (archive_entry_filetype(en)) {
	case AE_IFREG:
		return add_file(u, r, en, path, e);
	case AE_IFDIR:
		return add_dir(u, en, path, e);
	case AE_IFLNK:
		return add_link(u, en, path, e);
	default:
		return err_set(e, ERR_INTEGRITY, "is a device, fifo or socket");
	}
}

/* The four links of a merged /usr, which are made anyhow. */
static bool is_merged_link(const char *path, struct archive_entry *en)
{
	const char *to = archive_entry_filetype(en) == AE_IFLNK ? archive_entry_symlink(en) : NULL;
	for (size_t i = 0; to && i < ARRAY_LEN(merged); i++)
		if (strcmp(path, merged[i]) == 0)
			return path_has_suffix(to, merged[i]) && strncmp(to + (*to == '/'), "usr/", 4) == 0;
	return false;
}

static int deb_entry(struct unpacker *u, struct archive *r, struct archive_entry *en, const char *name, struct err *e)
{
	AUTO_BUF struct buf place = {0}, hard_place = {0};
	const char *hard = archive_entry_hardlink(en);
	if (tree_normal_name(name, &u->path, e) < 0)
		return -1;
	if (u->path.len == 0)
		return archive_entry_filetype(en) == AE_IFDIR && !hard ? 0 : err_set(e, ERR_INTEGRITY, "has no name");
	buf_printf(&u->work->list, "/%s\n", u->path.data);
	if (is_merged_link(u->path.data, en))
		return 0;
	const char *path = world_place(u->path.data, &place);
	if (world_part_excludes(u->work->part, path, archive_entry_filetype(en) == AE_IFLNK))
		return 0;
	if (hard && tree_normal_name(hard, &u->other, e) < 0)
		return err_wrap(e, "the target of its hard link");
	return add_entry(u, r, en, path, hard ? world_place(buf_cstr(&u->other), &hard_place) : NULL, e);
}

/* Puts the entry in front of the error. */
static int deny(const char *entry, struct err *e)
{
	char name[256];
	return err_wrap(e, "entry '%s'", tree_printable(entry, name, sizeof(name)));
}

static int check_control(const struct work *w, const struct deb_control *k, struct err *e)
{
	const struct world_entry *t = w->entry;
	if (strcmp(k->name, t->name) == 0 && strcmp(k->version, t->version) == 0 && strcmp(k->arch, t->arch) == 0)
		return 0;
	return err_set(e, ERR_INTEGRITY, "its control file says %.100s %.100s %.40s, the lock %s %s %s", k->name,
		       k->version, k->arch, t->name, t->version, t->arch);
}

/* The paragraph of dpkg's status: its own first line, then how it is installed. */
static const char *status_text(const struct deb_control *k, struct arena *a)
{
	return arena_printf(a, "Package: %s\nStatus: install ok installed\n%s\n", k->name, k->text);
}

static int unpack_deb(struct unpacker *u, struct err *e)
{
	AUTO_DEB struct deb *d = NULL;
	struct work *w = u->work;
	struct deb_control k;
	struct archive_entry *en;
	unsigned entries = 0;
	int got;
	if (deb_open(w->path, &u->arena, &d, &k, e) < 0 || check_control(w, &k, e) < 0)
		return -1;
	w->replaces = k.replaces;
	w->status = status_text(&k, &u->arena);
	w->list_name = k.same ? arena_printf(&u->arena, "%s:%s", k.name, k.arch) : k.name;
	buf_addstr(&w->list, "/.\n");
	while ((got = deb_next(d, &en, e)) > 0) {
		const char *name = archive_entry_pathname(en);
		if (!name || ++entries > MAX_ENTRIES)
			return err_set(e, ERR_INTEGRITY,
				       name ? "has more than %u entries" : "has a name that cannot be read",
				       MAX_ENTRIES);
		if (run_check(u->m->run, e) < 0)
			return -1;
		if (deb_entry(u, deb_data(d), en, name, e) < 0)
			return deny(name, e);
	}
	return got;
}

static void reader_free(struct archive **r)
{
	archive_read_free(*r);
}

static struct archive *open_tar(const char *path, struct err *e)
{
	struct archive *CLEANUP(reader_free) r = archive_read_new(), *ret = r;
	if (!r)
		abort();
	archive_read_support_filter_gzip(r);
	archive_read_support_filter_xz(r);
	archive_read_support_filter_zstd(r);
	archive_read_support_format_tar(r);
	if (archive_read_open_filename(r, path, READ_SIZE) != ARCHIVE_OK) {
		deb_damaged(r, e);
		return NULL;
	}
	r = NULL;
	return ret;
}

/* Goes through an archive: with `below`, what is in that directory is added to the tree; without, *ret_install says
 * whether there is a python/install. */
static int walk_python(struct unpacker *u, const char *below, bool *ret_install, struct err *e)
{
	struct archive *CLEANUP(reader_free) r = open_tar(u->work->path, e);
	struct archive_entry *en;
	size_t added = 0;
	for (int rc; r && (rc = archive_read_next_header(r, &en)) != ARCHIVE_EOF;) {
		AUTO_BUF struct buf place = {0}, to = {0};
		const char *name = rc == ARCHIVE_OK || rc == ARCHIVE_WARN ? archive_entry_pathname(en) : NULL;
		const char *hard = name ? archive_entry_hardlink(en) : NULL, *rest;
		if (!name)
			return deb_damaged(r, e);
		if (run_check(u->m->run, e) < 0)
			return -1;
		if (tree_normal_name(name, &u->path, e) < 0 || (hard && tree_normal_name(hard, &u->other, e) < 0))
			return deny(name, e);
		if (!below) {
			*ret_install |= path_below(buf_cstr(&u->path), "python/install") != NULL;
			continue;
		}
		rest = path_below(buf_cstr(&u->path), below);
		if (!rest || !*rest)
			continue;
		buf_printf(&place, "%s/%s", u->work->part->prefix, rest);
		rest = hard ? path_below(buf_cstr(&u->other), below) : "";
		buf_printf(&to, "%s/%s", u->work->part->prefix, rest ? rest : "");
		added++;
		if (add_entry(u, r, en, buf_cstr(&place), hard ? buf_cstr(&to) : NULL, e) < 0)
			return deny(name, e);
	}
	if (!r)
		return -1;
	return below && added == 0 ? err_set(e, ERR_INTEGRITY, "has no directory 'python'") : 0;
}

static int unpack_python(struct unpacker *u, struct err *e)
{
	bool install = false;
	if (walk_python(u, NULL, &install, e) < 0)
		return -1;
	return walk_python(u, install ? "python/install" : "python", NULL, e);
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
	return unpack_python(u, e);
}
