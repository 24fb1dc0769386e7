#include <limits.h>

#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

/* The facts of a world: texts of the document. */
struct facts {
	struct store_world w;
	json_t *doc;
};

static void facts_release(struct facts *f)
{
	json_decref(f->doc);
}

/* ERR_INTEGRITY for the facts of another world. */
static int read_facts(const char *key, const char *dir, struct facts *ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = NULL;
	const char *path = path_join(&a, dir, STORE_WORLD_FACTS);
	struct store_world w = {0};
	json_int_t bytes;
	struct stat st;
	int format;

	if (lstat(path, &st) < 0)
		return err_set(e, ERR_INTEGRITY, "'%s' is missing", path);
	if (json_read(TRUSTED, path, &doc, e) < 0) {
		if (e->kind == ERR_CONFIG)
			e->kind = ERR_INTEGRITY;
		return -1;
	}

	const bool whole = json_unpack(doc, "{s:i, s:s, s:s, s:s, s:s, s:I !}", "format", &format,
				       "key", &w.key, "name", &w.name, "platform", &w.platform,
				       "tree", &w.tree, "bytes", &bytes) == 0;
	const bool is_own = whole && format == STORE_FORMAT && strcmp(w.key, key) == 0;
	if (!is_own || !digest_valid_hex(w.tree) || bytes < 0)
		return err_set(e, ERR_INTEGRITY, "'%s' is not of the world %.12s", path, key);
	w.bytes = (uint64_t)bytes;
	*ret = (struct facts){w, doc};
	doc = NULL;
	return 0;
}

bool store_world_bytes(const char *key, const char *dir, uint64_t *ret)
{
	struct facts f CLEANUP(facts_release) = {0};

	if (read_facts(key, dir, &f, ERR_IGNORED) < 0)
		return false;
	*ret = f.w.bytes;
	return true;
}

int store_world_facts(const char *key, const char *dir, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct facts f CLEANUP(facts_release) = {0};
	struct stat st;

	if (read_facts(key, dir, &f, e) < 0)
		return -1;
	bool root = lstat(path_join(&a, dir, STORE_WORLD_ROOT), &st) == 0 && S_ISDIR(st.st_mode);
	return root ? 0 : err_set(e, ERR_INTEGRITY, "'%s' has no root", dir);
}

int store_world_find(struct store *s, const char *key, enum store_look look, struct arena *a,
		     const char **ret, struct err *e)
{
	const char *dir;

	if (store_find_look(s, STORE_WORLD, key, look, a, &dir, e) < 0)
		return -1;
	*ret = dir ? path_join(a, dir, STORE_WORLD_ROOT) : NULL;
	return 0;
}

int store_world_hold(struct store *s, const char *key, const struct run *run, struct lock *ret,
		     struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	if (store_check_name(STORE_WORLD, key, e) < 0)
		return -1;
	return lock_acquire(ret, store_lock_path(s, STORE_WORLD, key, &a), true, run, e);
}

/* Manifest, then facts, then all of it to the disk. */
static int complete(const struct store_world *w, const struct buf *manifest, const char *stage,
		    struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = json_pack("{s:i, s:s, s:s, s:s, s:s, s:I}", "format", STORE_FORMAT,
					  "key", w->key, "name", w->name, "platform", w->platform,
					  "tree", w->tree, "bytes", (json_int_t)w->bytes);
	char tree[DIGEST_HEX_LEN + 1];

	digest_data(buf_cstr(manifest), manifest->len, tree);
	if (strcmp(tree, w->tree) != 0)
		return err_set(e, ERR_CONFIG, "the manifest has sha256 %s, not %s", tree, w->tree);
	if (!fs_is_dir(TRUSTED, path_join(&a, stage, STORE_WORLD_ROOT)))
		return err_set(e, ERR_CONFIG, "'%s' has no directory '%s'", stage,
			       STORE_WORLD_ROOT);
	AUTO_FD int fd = open(stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", stage);
	if (fs_write(TRUSTED, path_join(&a, stage, STORE_WORLD_MANIFEST), buf_cstr(manifest),
		     manifest->len, 0644, e) < 0 ||
	    json_write(doc, TRUSTED, path_join(&a, stage, STORE_WORLD_FACTS), e) < 0)
		return -1;
	/* One call for the whole disk: an fsync of each of fifty thousand files would be many times
	 * slower. */
	return os_sync_disk(fd) < 0
		       ? err_errno(e, ERR_SYSTEM, "cannot write '%s' to the disk", stage)
		       : 0;
}

int store_world_publish(struct store *s, const struct store_world *w, const struct buf *manifest,
			const char *stage, struct arena *a, const char **ret, struct err *e)
{
	if (store_check_name(STORE_WORLD, w->key, e) < 0)
		return -1;
	const char *to = store_object_path(s->dir, STORE_WORLD, w->key, a);
	const struct store_object o = {.kind = STORE_WORLD, .key = w->key, .path = to};
	if (complete(w, manifest, stage, e) < 0 || fs_mkdirs(TRUSTED, path_dir(a, to), e) < 0 ||
	    fs_sync_dir(s->dir, e) < 0 || store_put_in_place(s, &o, stage, e) < 0)
		return err_wrap(e, "cannot publish the world %.12s", w->key);
	*ret = path_join(a, to, STORE_WORLD_ROOT);
	return 0;
}

enum { FIELDS_MAX = 5 };

/* A line of the manifest cut at its tabs; how many fields. */
static size_t cut(char *line, const char *fields[FIELDS_MAX])
{
	size_t n = 0;

	for (char *p = line; n < FIELDS_MAX; p++) {
		fields[n++] = p;
		p += strcspn(p, "\t");
		if (!*p)
			break;
		*p = '\0';
	}

	return n;
}

static int wrong(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "'%s' %s", path, what);
}

static int check_link(const char *path, const struct stat *st, const char *target, struct err *e)
{
	char got[PATH_MAX];
	ssize_t n = S_ISLNK(st->st_mode) ? readlink(path, got, sizeof(got)) : -1;

	return n >= 0 && (size_t)n == strlen(target) && memcmp(got, target, (size_t)n) == 0
		       ? 0
		       : err_set(e, ERR_INTEGRITY, "'%s' is not a link to '%s'", path, target);
}

static int check_file(const char *path, const struct stat *st, const char *const fields[FIELDS_MAX],
		      struct err *e)
{
	char got[DIGEST_HEX_LEN + 1];
	unsigned mode = strcmp(fields[1], "755") == 0 ? 0755 : 0644;

	if (!S_ISREG(st->st_mode))
		return wrong(path, "is not a regular file", e);
	if ((st->st_mode & 07777) != mode)
		return err_set(e, ERR_INTEGRITY, "'%s' has the mode %o, not %o", path,
			       (unsigned)st->st_mode & 07777, mode);
	if (digest_file(path, got, e) < 0)
		return -1;
	if (strcmp(got, fields[3]) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' has sha256 %s and %lld bytes, not %s and %s",
			       path, got, (long long)st->st_size, fields[3], fields[2]);
	return 0;
}

/* Lines are sorted, so that a path's directory is checked before it. */
static int check_line(const char *root, const char *const fields[FIELDS_MAX], size_t count,
		      struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *rel = fields[count - 1], *path;
	struct stat st;
	size_t want = strcmp(fields[0], "dir") == 0 ? 2 : strcmp(fields[0], "link") == 0 ? 3 : 5;

	if (count != want || (count == 5 && strcmp(fields[0], "file") != 0) ||
	    !path_is_safe_relative(rel))
		return wrong(root, "has a manifest with a malformed line", e);
	path = path_join(&a, root, rel);
	if (lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? wrong(path, "is missing", e)
			       : err_errno(e, ERR_SYSTEM, "cannot look at '%s'", path);
	if (count == 2)
		return S_ISDIR(st.st_mode) ? 0 : wrong(path, "is not a directory", e);
	return count == 3 ? check_link(path, &st, fields[1], e) : check_file(path, &st, fields, e);
}

static int check_all(const char *root, char *text, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist paths = {0}; /* but of directories */

	for (char *line = text, *end; *line; line = end + 1) {
		const char *fields[FIELDS_MAX] = {0};
		end = strchr(line, '\n');
		if (!end)
			return wrong(root, "has a manifest that ends within a line", e);
		*end = '\0';
		size_t n = cut(line, fields);
		if (run_check(run, e) < 0 || check_line(root, fields, n, e) < 0)
			return -1;
		if (n != 2)
			strlist_ref(&paths, &a, fields[n - 1]);
	}

	return store_check_extra(root, &paths, e);
}

int store_world_verify(const struct store_object *o, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	struct facts f CLEANUP(facts_release) = {0};
	const char *path = path_join(&a, o->path, STORE_WORLD_MANIFEST);
	char got[DIGEST_HEX_LEN + 1];

	if (read_facts(o->key, o->path, &f, e) < 0)
		return -1;
	if (!fs_exists(TRUSTED, path))
		return wrong(path, "is missing", e);
	if (fs_read(TRUSTED, path, STORE_MANIFEST_MAX, &text, e) < 0)
		return -1;
	digest_data(buf_cstr(&text), text.len, got);
	if (strcmp(got, f.w.tree) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' has sha256 %s, not %s", path, got, f.w.tree);
	const char *root = path_join(&a, o->path, STORE_WORLD_ROOT);
	struct stat st;
	if (lstat(root, &st) < 0 || !S_ISDIR(st.st_mode))
		return wrong(root, "is not a directory", e);
	return check_all(root, arena_strdup(&a, buf_cstr(&text)), run, e);
}

/* The path is the last field of a line. A directory's
 * times change with what is added to it or taken from it. */
static bool print_path(int root, const char *rel, struct buf *out)
{
	struct stat st;

	if (fstatat(root, rel, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	store_print_stat(rel, &st, out);
	return true;
}

/* Lines of the manifest begin with the kind of what they are about. */
static bool print_line(int root, const char *line, bool whole, struct buf *out)
{
	if (!whole && strncmp(line, "dir\t", 4) != 0)
		return true;
	const char *tab = strrchr(line, '\t');
	return tab && path_is_safe_relative(tab + 1) && print_path(root, tab + 1, out);
}

bool store_world_print(const char *object, bool whole, struct buf *ret)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf manifest = {0};
	AUTO_FD int root = open(path_join(&a, object, STORE_WORLD_ROOT),
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *path = path_join(&a, object, STORE_WORLD_MANIFEST);
	struct stat st;
	const char *facts = path_join(&a, object, STORE_WORLD_FACTS);

	if (root < 0 || lstat(path, &st) < 0)
		return false;
	if (fs_read(TRUSTED, facts, STORE_MANIFEST_MAX, ret, ERR_IGNORED) < 0)
		return false;
	if (fs_read(TRUSTED, path, STORE_MANIFEST_MAX, &manifest, ERR_IGNORED) < 0)
		return false;
	if (!print_path(root, ".", ret))
		return false;
	store_print_stat(STORE_WORLD_MANIFEST, &st, ret);
	for (char *line = manifest.data, *end; line && (end = strchr(line, '\n')) != NULL;
	     line = end + 1) {
		*end = '\0';
		if (!print_line(root, line, whole, ret))
			return false;
	}

	return true;
}
