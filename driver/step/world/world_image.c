#include "step/world/world_image.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/root/sandbox.h"

#define MEDIA "application/vnd.oci.image."
#define BLOBS "blobs/sha256/"

/* One tar stream: it is hashed and counted, and written where `to` says. A layer is made twice: its
 * digest is its name in the file, and comes first. */
struct stream {
	struct archive *tar;
	struct digest *digest;
	uint64_t bytes;
	struct archive *to; /* NULL: nothing is written */
	time_t newest;
	const struct run *run;
	struct arena *arena;
	struct err *e;
};

static la_ssize_t on_bytes(struct archive *tar, void *user, const void *data, size_t len)
{
	struct stream *s = user;

	(void)tar;
	digest_update(s->digest, data, len);
	s->bytes += len;
	if (s->to && archive_write_data(s->to, data, len) != (la_ssize_t)len)
		return -1;
	return (la_ssize_t)len;
}

static int not_written(struct archive *tar, const char *name, struct err *e)
{
	const char *why = archive_error_string(tar);

	return err_set(e, ERR_SYSTEM, "cannot write '%s' into the image: %s", name,
		       why ? why : "out of memory");
}

static int put_header(struct archive *tar, struct archive_entry *entry, struct err *e)
{
	/* A warning is about a name that is not UTF-8: its bytes are written all the same. */
	return archive_write_header(tar, entry) < ARCHIVE_WARN
		       ? not_written(tar, archive_entry_pathname(entry), e)
		       : 0;
}

/* A file of root's, or with mode S_IFDIR a directory. */
static struct archive_entry *entry_new(const char *name, mode_t mode, time_t time)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_copy_pathname(entry, name);
	archive_entry_set_filetype(entry, mode & S_IFMT);
	archive_entry_set_perm(entry, mode & 07777);
	archive_entry_set_mtime(entry, time, 0);
	return entry;
}

static void entry_free(struct archive_entry **entry)
{
	archive_entry_free(*entry);
}

static int put_bytes(struct archive *tar, const char *name, const void *data, size_t len,
		     time_t time, struct err *e)
{
	CLEANUP(entry_free) struct archive_entry *entry = entry_new(name, S_IFREG | 0644, time);

	archive_entry_set_size(entry, (la_int64_t)len);
	if (put_header(tar, entry, e) < 0)
		return -1;
	return archive_write_data(tar, data, len) == (la_ssize_t)len ? 0
								     : not_written(tar, name, e);
}

static int put_file(struct stream *s, const char *path, uint64_t size)
{
	struct fs_mapping m = {0};

	if (size == 0)
		return 0;
	if (fs_map(path, &m, s->e) < 0)
		return -1;
	bool done =
		m.size == size && archive_write_data(s->tar, m.data, m.size) == (la_ssize_t)m.size;
	fs_unmap(&m);
	return done ? 0 : not_written(s->tar, path, s->e);
}

/* Directories that a container's programs write into; worlds have them as packages do. */
static mode_t mode_of(const char *rel, mode_t mode)
{
	const bool temporary = strcmp(rel, "tmp") == 0 || strcmp(rel, "var/tmp") == 0;

	return temporary ? S_IFDIR | 01777 : mode;
}

static int put_path(struct stream *s, const char *root, const char *rel, const struct stat *st)
{
	char target[PATH_MAX];
	const char *path = path_join(s->arena, root, rel);
	CLEANUP(entry_free)
	struct archive_entry *entry = entry_new(rel, mode_of(rel, st->st_mode), st->st_mtime);

	s->newest = st->st_mtime > s->newest ? st->st_mtime : s->newest;
	archive_entry_set_size(entry, S_ISREG(st->st_mode) ? st->st_size : 0);
	if (S_ISLNK(st->st_mode)) {
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			return err_errno(s->e, ERR_SYSTEM, "cannot read '%s'", path);
		target[n] = '\0';
		archive_entry_copy_symlink(entry, target);
	}

	if (put_header(s->tar, entry, s->e) < 0)
		return -1;
	return S_ISREG(st->st_mode) ? put_file(s, path, (uint64_t)st->st_size) : 0;
}

static bool same_bytes(const char *x, const char *y, uint64_t size)
{
	struct fs_mapping m = {0}, n = {0};
	bool same = size == 0;

	if (!same && fs_map(x, &m, ERR_IGNORED) == 0) {
		same = fs_map(y, &n, ERR_IGNORED) == 0 && m.size == n.size &&
		       memcmp(m.data, n.data, m.size) == 0;
		fs_unmap(&n);
		fs_unmap(&m);
	}

	return same;
}

static bool same_link(const char *x, const char *y)
{
	char one[PATH_MAX], other[PATH_MAX];
	ssize_t n = readlink(x, one, sizeof(one)), k = readlink(y, other, sizeof(other));

	return n >= 0 && n == k && memcmp(one, other, (size_t)n) == 0;
}

/* Whether the layer below has the same at that path. */
static bool is_below(struct arena *a, const char *base, const char *path, const char *rel,
		     const struct stat *st)
{
	const char *other = base ? path_join(a, base, rel) : NULL;
	struct stat has;

	if (!other || lstat(other, &has) < 0 || has.st_mode != st->st_mode)
		return false;
	if (S_ISDIR(st->st_mode))
		return true;
	if (S_ISLNK(st->st_mode))
		return same_link(path, other);
	return has.st_size == st->st_size && has.st_mtime == st->st_mtime &&
	       same_bytes(path, other, (uint64_t)st->st_size);
}

/* What the base has and the world does not: an empty file with this name says so. */
static int put_whiteouts(struct stream *s, const char *root, const char *base, const char *rel)
{
	struct strlist names = {0};
	struct stat st;

	if (!fs_is_dir(TRUSTED, path_join(s->arena, base, rel)))
		return 0;
	if (fs_list(TRUSTED, path_join(s->arena, base, rel), s->arena, &names, s->e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *one = *rel ? path_join(s->arena, rel, names.items[i]) : names.items[i];
		if (lstat(path_join(s->arena, root, one), &st) == 0)
			continue;
		const char *gone =
			arena_printf(s->arena, "%s%s.wh.%s", rel, *rel ? "/" : "", names.items[i]);
		if (put_bytes(s->tar, gone, "", 0, 0, s->e) < 0)
			return -1;
	}

	return 0;
}

static int put_tree(struct stream *s, const char *root, const char *base, const char *rel)
{
	struct strlist names = {0};
	struct stat st;

	if (run_check(s->run, s->e) < 0)
		return -1;
	if (fs_list(TRUSTED, path_join(s->arena, root, rel), s->arena, &names, s->e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *one = *rel ? path_join(s->arena, rel, names.items[i]) : names.items[i];
		const char *path = path_join(s->arena, root, one);
		if (lstat(path, &st) < 0)
			return err_errno(s->e, ERR_SYSTEM, "cannot read '%s'", path);
		bool kind = S_ISDIR(st.st_mode) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode);
		bool new = kind && !is_below(s->arena, base, path, one, &st);
		if (new &&put_path(s, root, one, &st) < 0)
			return -1;
		if (S_ISDIR(st.st_mode) && put_tree(s, root, base, one) < 0)
			return -1;
	}

	return base ? put_whiteouts(s, root, base, rel) : 0;
}

/* A base also has the directory of builds without a sandbox. */
static int put_place(struct stream *s)
{
	CLEANUP(entry_free)
	struct archive_entry *entry = entry_new(&SANDBOX_TOP[1], S_IFDIR | 0755, s->newest);

	archive_entry_set_uid(entry, WORLD_IMAGE_USER);
	archive_entry_set_gid(entry, WORLD_IMAGE_USER);
	return put_header(s->tar, entry, s->e);
}

struct layer {
	const char *root, *base;
	char digest[DIGEST_HEX_LEN + 1];
	uint64_t bytes;
	time_t newest;
};

static void tar_free(struct archive **tar)
{
	archive_write_free(*tar);
}

static struct archive *tar_new(void)
{
	struct archive *tar = archive_write_new();

	/* Headers of pax only for names that the older form has no place for. */
	archive_write_set_format_pax_restricted(tar);
	archive_write_set_bytes_per_block(tar, 1 << 20);
	archive_write_set_bytes_in_last_block(tar, 1);
	return tar;
}

/* `to`: an archive whose present entry the layer becomes; NULL: sets its digest and size. */
static int make_layer(struct layer *l, struct archive *to, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_DIGEST struct digest *digest = digest_new();
	CLEANUP(tar_free) struct archive *tar = tar_new();
	struct stream s = {tar, digest, 0, to, 0, run, &a, e};
	uint8_t hash[DIGEST_LEN];

	if (archive_write_open(tar, &s, NULL, on_bytes, NULL) != ARCHIVE_OK)
		return not_written(tar, l->root, e);
	if (put_tree(&s, l->root, l->base, "") < 0 || (!l->base && put_place(&s) < 0))
		return -1;
	if (archive_write_close(tar) != ARCHIVE_OK)
		return not_written(tar, l->root, e);
	digest_final(digest, hash);
	digest_hex(hash, l->digest);
	l->bytes = s.bytes;
	l->newest = s.newest;
	return 0;
}

/* A blob of JSON: its text, its descriptor. */
struct blob {
	char *text;
	char digest[DIGEST_HEX_LEN + 1];
};

static struct blob blob_of(json_t *doc, struct arena *a)
{
	AUTO_FREE char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	struct blob b = {.text = arena_strdup(a, text ? text : "")};

	json_decref(doc);
	digest_data(b.text, strlen(b.text), b.digest);
	return b;
}

static json_t *descriptor(const char *media, const char *digest, uint64_t bytes)
{
	return json_pack("{s:o, s:o, s:I}", "mediaType", json_sprintf(MEDIA "%s", media), "digest",
			 json_sprintf("sha256:%s", digest), "size", (json_int_t)bytes);
}

static json_t *config_json(const struct world_image_request *q, const struct layer *layers,
			   size_t count, time_t newest)
{
	const char *arch = strcmp(q->platform, "aarch64-linux") == 0 ? "arm64" : "amd64";
	json_t *diffs = json_array(), *history = json_array();
	char created[32];
	struct tm tm;

	(void)strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&newest, &tm));
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(diffs, json_sprintf("sha256:%s", layers[i].digest));
		json_array_append_new(history, json_pack("{s:s, s:s}", "created", created,
							 "created_by", "ptbuild world image"));
	}

	json_t *env = json_pack("[s, s, s]",
				"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				"LANG=C.UTF-8", "HOME=/tmp");
	json_t *labels = json_pack("{s:s, s:s}", "ptbuild.world", q->name, "ptbuild.key", q->key);
	return json_pack("{s:s, s:s, s:s, s:{s:o, s:o, s:[s], s:o, s:s}, s:{s:s, s:o}, s:o}",
			 "created", created, "architecture", arch, "os", "linux", "config", "Env",
			 env, "User", json_sprintf("%d:%d", WORLD_IMAGE_USER, WORLD_IMAGE_USER),
			 "Cmd", "bash", "Labels", labels, "WorkingDir", "/tmp", "rootfs", "type",
			 "layers", "diff_ids", diffs, "history", history);
}

struct image {
	const struct world_image_request *q;
	const struct run *run;
	struct arena *arena;
	struct layer layers[2];
	size_t count;
	time_t newest;
	const char *name; /* with a tag */
};

static int put_blob(const struct image *im, struct archive *tar, const struct blob *b,
		    struct err *e)
{
	return put_bytes(tar, arena_printf(im->arena, BLOBS "%s", b->digest), b->text,
			 strlen(b->text), im->newest, e);
}

static int put_layer(struct image *im, struct archive *tar, struct layer *l, struct err *e)
{
	struct layer again = *l;
	CLEANUP(entry_free)
	struct archive_entry *entry = entry_new(arena_printf(im->arena, BLOBS "%s", l->digest),
						S_IFREG | 0644, im->newest);

	archive_entry_set_size(entry, (la_int64_t)l->bytes);
	if (put_header(tar, entry, e) < 0 || make_layer(&again, tar, im->run, e) < 0)
		return -1;
	if (strcmp(again.digest, l->digest) == 0)
		return 0;
	return err_set(e, ERR_INTEGRITY, "'%s' changed while it was read", l->root);
}

static json_t *names_json(const struct image *im)
{
	return json_pack("{s:s, s:o}", "org.opencontainers.image.ref.name", im->name,
			 "io.containerd.image.name", json_sprintf("docker.io/%s", im->name));
}

static int put_all(struct image *im, struct archive *tar, struct err *e)
{
	json_t *layers = json_array(), *files = json_array();
	struct arena *a = im->arena;
	const struct blob config =
		blob_of(config_json(im->q, im->layers, im->count, im->newest), a);

	for (size_t i = 0; i < im->count; i++) {
		const struct layer *l = &im->layers[i];
		json_array_append_new(layers, descriptor("layer.v1.tar", l->digest, l->bytes));
		json_array_append_new(files, json_sprintf(BLOBS "%s", l->digest));
	}

	const struct blob manifest =
		blob_of(json_pack("{s:i, s:s, s:o, s:o}", "schemaVersion", 2, "mediaType",
				  MEDIA "manifest.v1+json", "config",
				  descriptor("config.v1+json", config.digest, strlen(config.text)),
				  "layers", layers),
			a);
	json_t *about = descriptor("manifest.v1+json", manifest.digest, strlen(manifest.text));
	json_object_set_new(about, "annotations", names_json(im));
	const struct blob tops[] = {
		blob_of(json_pack("{s:s}", "imageLayoutVersion", "1.0.0"), a),
		blob_of(json_pack("{s:i, s:s, s:[o]}", "schemaVersion", 2, "mediaType",
				  MEDIA "index.v1+json", "manifests", about),
			a),
		/* What 'docker load' reads without containerd's store. */
		blob_of(json_pack("[{s:o, s:[s], s:o}]", "Config",
				  json_sprintf(BLOBS "%s", config.digest), "RepoTags", im->name,
				  "Layers", files),
			a)};
	static const char *const names[] = {"oci-layout", "index.json", "manifest.json"};

	for (size_t i = 0; i < ARRAY_LEN(tops); i++)
		if (put_bytes(tar, names[i], tops[i].text, strlen(tops[i].text), im->newest, e) < 0)
			return -1;
	if (put_blob(im, tar, &config, e) < 0 || put_blob(im, tar, &manifest, e) < 0)
		return -1;
	for (size_t i = 0; i < im->count; i++)
		if (put_layer(im, tar, &im->layers[i], e) < 0)
			return -1;
	return archive_write_close(tar) == ARCHIVE_OK ? 0 : not_written(tar, im->q->to, e);
}

/* Names of images have no '+'. */
static const char *image_name(const struct world_image_request *q, struct arena *a)
{
	struct strlist parts = {0};

	strlist_split(&parts, a, q->name, "+");
	return arena_printf(a, "ptbuild-world/%s:%.12s", strlist_join(&parts, a, "-"), q->key);
}

int world_image_write(const struct world_image_request *q, struct arena *a, struct world_image *ret,
		      struct err *e)
{
	struct image im = {.q = q, .run = q->run, .arena = a, .name = image_name(q, a)};
	struct stat st;
	char *part;

	if (q->base)
		im.layers[im.count++] = (struct layer){.root = q->base};
	im.layers[im.count++] = (struct layer){.root = q->root, .base = q->base};
	for (size_t i = 0; i < im.count; i++) {
		if (make_layer(&im.layers[i], NULL, q->run, e) < 0)
			return -1;
		im.newest = im.layers[i].newest > im.newest ? im.layers[i].newest : im.newest;
	}

	AUTO_FD int fd = fs_neighbour(q->to, 0644, a, &part, e);
	if (fd < 0)
		return -1;
	CLEANUP(tar_free) struct archive *tar = tar_new();
	int rc = archive_write_open_fd(tar, fd) == ARCHIVE_OK ? put_all(&im, tar, e)
							      : not_written(tar, q->to, e);
	if (rc == 0 && fstat(fd, &st) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot read '%s'", part);
	if (rc == 0)
		rc = fs_rename(part, q->to, e);
	if (rc < 0) {
		(void)unlink(part);
		return -1;
	}

	*ret = (struct world_image){.name = im.name, .bytes = (uint64_t)st.st_size};
	for (size_t i = 0; i < im.count; i++)
		strlist_add(&ret->layers, a, im.layers[i].digest);
	return 0;
}
