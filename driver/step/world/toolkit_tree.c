#include "step/world/toolkit_tree.h"

#include <elf.h>
#include <strings.h>

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/tar.h"
#include "core/elf/elf.h"
#include "core/zip/zip.h"

/* Some six times the largest toolkit there is. */
#define TOOLKIT_TREE_MAX_BYTES (UINT64_C(64) << 30)

struct toolkit_tree {
	const struct toolkit_rules *rules;
	const char *platform; /* "x86_64-linux" */
	const char *target;   /* "x86_64-linux", "sbsa-linux" */
	const char *dir;
	struct tree *tree; /* of it */
	const struct run *run;
	uint64_t bytes;                  /* unpacked so far */
	const struct toolkit_file *file; /* that is unpacked now */
	struct tar *tar;                 /* of it; not of a wheel */
};

/* ERR_INTEGRITY once all files together are too large. */
static int account(struct toolkit_tree *t, uint64_t bytes, struct err *e)
{
	if (bytes > TOOLKIT_TREE_MAX_BYTES - t->bytes)
		return err_set(e, ERR_INTEGRITY, "the toolkit has more than %u GiB",
			       (unsigned)(TOOLKIT_TREE_MAX_BYTES >> 30));
	t->bytes += bytes;
	return 0;
}

static int check_free(const struct toolkit_tree *t, const char *path, struct err *e)
{
	return fs_exists(t->dir, path)
		       ? err_set(e, ERR_INTEGRITY, "has '%s', which another component has as well",
				 path)
		       : 0;
}

/* What the rules add. */
static int add_link(struct toolkit_tree *t, const char *path, const char *to, struct err *e)
{
	return tree_symlink(t->tree, path, to, (struct timespec){0}, e) < 0
		       ? err_wrap(e, "'%s'", path)
		       : 0;
}

static int add_tar_entry(struct toolkit_tree *t, const struct tar_entry *en, const char *below,
			 struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *path = toolkit_rules_map(t->rules, t->target, t->file->name, below, &a);
	uint64_t size;

	if (!path || en->type == S_IFDIR)
		return 0;
	if (en->hard)
		return err_set(e, ERR_INTEGRITY, "is a hard link");
	if (en->type == S_IFLNK && (strchr(en->target, '/') || !path_is_safe_relative(en->target)))
		return err_set(e, ERR_INTEGRITY, "is a link to another directory");
	if (en->type != S_IFLNK && en->type != S_IFREG)
		return err_set(e, ERR_INTEGRITY, "is a special file");
	if (check_free(t, path, e) < 0)
		return -1;
	if (en->type == S_IFLNK)
		return tree_symlink(t->tree, path, en->target, en->mtime, e);
	return tar_extract(t->tar, en, t->tree, path, NULL, &size, e) < 0 ? -1
									  : account(t, size, e);
}

static int unpack_archive(struct toolkit_tree *t, const struct toolkit_file *f, struct err *e)
{
	const struct tar_limits limits = {.max_bytes = TOOLKIT_TREE_MAX_BYTES - t->bytes};
	AUTO_ARENA struct arena a = {0};
	AUTO_TAR struct tar *tar = NULL;
	const char *top = NULL;
	struct tar_entry en;
	int got;

	if (tar_open(f->path, &limits, t->run, &tar, e) < 0)
		return -1;
	t->file = f;
	t->tar = tar;
	while ((got = tar_next(tar, &en, e)) > 0) {
		/* All files are below one top directory, which the first entry names. */
		size_t first = strcspn(en.name, "/");
		top = top ? top : arena_strndup(&a, en.name, first);
		int rc = 0;
		if (strlen(top) != first || strncmp(top, en.name, first) != 0)
			rc = err_set(e, ERR_INTEGRITY, "is not below '%s'", top);
		else if (en.name[first])
			rc = add_tar_entry(t, &en, en.name + first + 1, e);
		if (rc < 0)
			return tar_deny(tar, e);
	}

	return got < 0 || top ? got : err_set(e, ERR_INTEGRITY, "is empty");
}

/* A path of the wheel's .dist-info: its licence, or nothing to keep. */
static const char *dist_info(const char *component, const char *path, struct arena *a)
{
	const char *name = path_base(path);

	return strncasecmp(name, "license", 7) == 0
		       ? arena_printf(a, "share/doc/%s/%s", component, name)
		       : NULL;
}

/* Where an entry goes: NULL with *ret_known: it is left out. */
static const char *place_of(const struct toolkit_tree *t, const char *name, bool *ret_known,
			    struct arena *a)
{
	const char *slash = strchr(name, '/');

	*ret_known = true;
	if (slash && slash - name > 10 && strncmp(slash - 10, ".dist-info", 10) == 0)
		return dist_info(t->file->name, name, a);
	for (unsigned i = 0; i < t->rules->wheel_dirs_count; i++) {
		const char *rest = path_below(name, t->rules->wheel_dirs[i]);
		if (rest)
			return toolkit_rules_map(t->rules, t->target, t->file->name, rest, a);
	}

	*ret_known = path_has_suffix(name, "/__init__.py");
	return NULL;
}

static int add_zip_entry(struct toolkit_tree *t, const struct zip_reader *z,
			 const struct zip_entry *en, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	bool known;

	if (path_has_suffix(en->name, "/"))
		return 0;
	const char *path = place_of(t, en->name, &known, &a);
	if (!path && known)
		return 0;
	if (!path) {
		err_set(e, ERR_INTEGRITY,
			"has '%s', for which toolkit_tree.yaml has no install path", en->name);
		return err_hint(e, "its directory is not among 'wheel_dirs'");
	}

	AUTO_FD int fd = -1;
	if (account(t, en->size, e) < 0 || check_free(t, path, e) < 0 ||
	    tree_create(t->tree, path, en->mode & S_IXUSR ? 0755 : 0644, &fd, e) < 0)
		return -1;
	return zip_extract_fd(z, en, fd, NULL, e);
}

static int unpack_wheel(struct toolkit_tree *t, const struct toolkit_file *f, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ZIP struct zip_reader *z = NULL;

	if (zip_open(f->path, &a, &z, e) < 0)
		return -1;
	t->file = f;
	for (size_t i = 0; i < zip_count(z); i++)
		if (run_check(t->run, e) < 0 || add_zip_entry(t, z, zip_at(z, i), e) < 0)
			return -1;
	return 0;
}

#define MAX_HEADER (UINT64_C(16) << 20)

/* Reads the names in existing headers. */
static int read_names(const struct toolkit_tree *t, const struct toolkit_stub *s, struct arena *a,
		      struct strlist *ret, struct err *e)
{
	for (unsigned i = 0; i < s->headers_count; i++) {
		AUTO_BUF struct buf text = {0};
		const char *path = toolkit_rules_fill(s->headers[i], t->target, a);
		if (!fs_exists(t->dir, path))
			continue;
		if (fs_read(t->dir, path, MAX_HEADER, &text, e) < 0 ||
		    driver_names(buf_cstr(&text), text.len, a, ret, e) < 0)
			return err_wrap(e, "header '%s'", path);
	}

	/* Sorted, each once, without those that the row leaves out. */
	size_t kept = 0;
	strlist_sort(ret);
	for (size_t i = 0; i < ret->count; i++) {
		const char *name = ret->items[i];
		if ((kept == 0 || strcmp(ret->items[kept - 1], name) != 0) &&
		    !strings_contain(s->leave, s->leave_count, name))
			ret->items[kept++] = name;
	}

	ret->count = kept;
	return 0;
}

static int make_stub(struct toolkit_tree *t, const struct toolkit_stub *s, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf bytes = {0};
	struct strlist names = {0};
	const char *path = toolkit_rules_fill(s->path, t->target, &a);
	const char *first = toolkit_rules_fill(s->headers[0], t->target, &a);
	const unsigned machine = strcmp(t->platform, "aarch64-linux") == 0 ? EM_AARCH64 : EM_X86_64;
	struct elf_stub stub = {machine, s->soname, &names, s->answer};

	if (fs_exists(t->dir, path) || !fs_exists(t->dir, first))
		return 0;
	if (read_names(t, s, &a, &names, e) < 0)
		return -1;
	if (names.count == 0)
		return err_set(e, ERR_INTEGRITY,
			       "the header '%s' declares no function, so '%s' cannot be made",
			       first, path);
	if (elf_stub_put(&stub, &bytes, e) < 0 || account(t, bytes.len, e) < 0)
		return -1;
	AUTO_FD int fd = -1;
	if (tree_create(t->tree, path, 0644, &fd, e) < 0 ||
	    fs_write_all(fd, bytes.data, bytes.len, path, e) < 0)
		return err_wrap(e, "'%s'", path);
	return 0;
}

/* The "libX.so" of "libX.so.12" and "libX.so.12.1"; NULL for other names. */
static const char *linker_name(const char *name, struct arena *a)
{
	const char *so = strstr(name, ".so.");

	if (strncmp(name, "lib", 3) != 0 || !so || !so[4])
		return NULL;
	for (const char *p = so + 4; *p; p++)
		if (!isdigit((unsigned char)*p) && *p != '.')
			return NULL;
	return arena_strndup(a, name, (size_t)(so - name) + 3);
}

static int make_linker_names(struct toolkit_tree *t, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	const char *lib = arena_printf(&a, "targets/%s/lib", t->target);

	if (!fs_exists(t->dir, lib))
		return 0;
	if (fs_list(t->dir, lib, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = linker_name(names.items[i], &a);
		const char *path = name ? path_join(&a, lib, name) : NULL;
		if (path && !fs_exists(t->dir, path) && add_link(t, path, names.items[i], e) < 0)
			return -1;
	}

	return 0;
}

/* "sbsa-linux" of "aarch64-linux"; NULL for an unknown platform. */
static const char *toolkit_rules_target(const struct toolkit_rules *r, const char *platform)
{
	for (unsigned i = 0; i < r->platforms_count; i++)
		if (strcmp(r->platforms[i].platform, platform) == 0)
			return r->platforms[i].target;
	return NULL;
}

int toolkit_tree_make(const struct toolkit_rules *r, const struct toolkit_file *files, size_t count,
		      const char *platform, const char *dir, const struct run *run, struct err *e)
{
	CLEANUP(tree_close) struct tree tree = {.top = -1};
	struct toolkit_tree t = {.rules = r,
				 .dir = dir,
				 .tree = &tree,
				 .run = run,
				 .platform = platform,
				 .target = toolkit_rules_target(r, platform)};
	if (!t.target)
		return err_set(e, ERR_CONFIG,
			       "toolkit_tree.yaml has no target for the platform '%s'", platform);
	if (tree_open(&tree, dir, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		bool wheel = path_has_suffix(files[i].file, ".whl");
		if ((wheel ? unpack_wheel : unpack_archive)(&t, &files[i], e) < 0)
			return err_wrap(e, "'%s'", files[i].file);
	}

	if (make_linker_names(&t, e) < 0)
		return -1;
	for (unsigned i = 0; i < t.rules->links_count; i++) {
		AUTO_ARENA struct arena a = {0};
		const struct toolkit_link *l = &t.rules->links[i];
		if (fs_exists(t.dir, l->path))
			continue;
		if (add_link(&t, l->path, toolkit_rules_fill(l->to, t.target, &a), e) < 0)
			return -1;
	}

	/* Make the stubs of the rules that do not exist yet and whose first header exists.
	 * ERR_INTEGRITY for headers that declare nothing, or that cannot be read (driver_names). */
	for (unsigned i = 0; i < t.rules->stubs_count; i++)
		if (make_stub(&t, &t.rules->stubs[i], e) < 0)
			return -1;
	AUTO_JSON json_t *all = json_object();
	for (size_t i = 0; i < count; i++) {
		bool whole = strcmp(files[i].name, "cuda-toolkit") == 0;
		json_object_set_new(all, whole ? "cuda" : files[i].name,
				    json_pack("{s:s, s:s}", "name",
					      whole ? "CUDA SDK" : files[i].name, "version",
					      files[i].version));
	}

	AUTO_FREE char *text = json_dumps(all, JSON_INDENT(2) | JSON_SORT_KEYS);
	if (!text)
		return err_set(e, ERR_CONFIG, "a component's name or version is not UTF-8");
	return fs_write(t.dir, "version.json", text, strlen(text), 0644, e);
}
