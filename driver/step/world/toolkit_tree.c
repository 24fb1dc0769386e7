#include "step/world/toolkit_tree.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/world/toolkit_parts.h"

int toolkit_tree_account(struct toolkit_tree *t, uint64_t bytes, struct err *e)
{
	if (bytes > TOOLKIT_TREE_MAX_BYTES - t->bytes)
		return err_set(e, ERR_INTEGRITY, "the toolkit has more than %u GiB",
			       (unsigned)(TOOLKIT_TREE_MAX_BYTES >> 30));
	t->bytes += bytes;
	return 0;
}

/* Makes the directories above a path at which nothing stands. */
static int make_room(const struct toolkit_tree *t, const char *path, struct arena *a, struct err *e)
{
	if (fs_exists(t->dir, path))
		return err_set(e, ERR_INTEGRITY, "has '%s', which another component has as well", path);
	return strchr(path, '/') ? fs_mkdirs(t->dir, path_dir(a, path), e) : 0;
}

int toolkit_tree_add(struct toolkit_tree *t, const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	return make_room(t, path, &a, e) < 0 ? -1 : fs_append(t->dir, path, e);
}

int toolkit_tree_done(int *fd, bool executable, const char *path, struct err *e)
{
	if (fchmod(*fd, executable ? 0755 : 0644) < 0 || close(steal_fd(fd)) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", path);
	return 0;
}

int toolkit_tree_link(struct toolkit_tree *t, const char *path, const char *to, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	if (make_room(t, path, &a, e) < 0)
		return -1;
	/* make_room made its directory without following links, and nobody else writes in the tree. */
	if (symlink(to, path_join(&a, t->dir, path)) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make the link '%s' in '%s'", path, t->dir);
	return 0;
}

static int make_links(struct toolkit_tree *t, struct err *e)
{
	for (unsigned i = 0; i < t->rules->links_count; i++) {
		AUTO_ARENA struct arena a = {0};
		const struct toolkit_link *l = &t->rules->links[i];
		if (fs_exists(t->dir, l->path))
			continue;
		if (toolkit_tree_link(t, l->path, toolkit_rules_fill(l->to, t->target, &a), e) < 0)
			return -1;
	}
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
		if (path && !fs_exists(t->dir, path) && toolkit_tree_link(t, path, names.items[i], e) < 0)
			return -1;
	}
	return 0;
}

static int write_versions(const struct toolkit_tree *t, const struct toolkit_file *files, size_t count, struct err *e)
{
	AUTO_JSON json_t *all = json_object();
	for (size_t i = 0; i < count; i++) {
		bool whole = strcmp(files[i].name, "cuda-toolkit") == 0;
		json_object_set_new(all, whole ? "cuda" : files[i].name,
				    json_pack("{s:s, s:s}", "name", whole ? "CUDA SDK" : files[i].name, "version",
					      files[i].version));
	}
	AUTO_FREE char *text = json_dumps(all, JSON_INDENT(2) | JSON_SORT_KEYS);
	if (!text)
		return err_set(e, ERR_CONFIG, "a component's name or version is not UTF-8");
	return fs_write(t->dir, "version.json", text, strlen(text), 0644, e);
}

int toolkit_tree_make(const struct toolkit_rules *r, const struct toolkit_file *files, size_t count,
		      const char *platform, const char *dir, const struct run *run, struct err *e)
{
	struct toolkit_tree t = {
		.rules = r, .dir = dir, .run = run, .platform = platform, .target = toolkit_rules_target(r, platform)};
	if (!t.target)
		return err_set(e, ERR_CONFIG, "toolkit_tree.yaml has no target for the platform '%s'", platform);
	for (size_t i = 0; i < count; i++) {
		bool wheel = path_has_suffix(files[i].file, ".whl");
		if ((wheel ? toolkit_wheel_unpack : toolkit_archive_unpack)(&t, &files[i], e) < 0)
			return err_wrap(e, "'%s'", files[i].file);
	}
	if (make_linker_names(&t, e) < 0 || make_links(&t, e) < 0 || toolkit_stubs_make(&t, e) < 0)
		return -1;
	return write_versions(&t, files, count, e);
}
