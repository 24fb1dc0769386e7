#include "step/take/take.h"

#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/fs.h"

enum { INFO_MAX = 16 << 20 };

static int write_text(const char *path, const struct buf *text, struct err *e)
{
	return fs_write(TRUSTED, path, text->data, text->len, 0644, e);
}

/* One file of the root's .egg-info, or another of the root; nothing where there is none. */
static int copy_info(const struct root *root, const char *from, const char *to, struct arena *a, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *real = root_resolve(root, from, a);
	if (!real)
		return 0;
	if (root_read(root, real, INFO_MAX, &text, e) < 0)
		return -1;
	return write_text(to, &text, e);
}

/* The .dist-info that pip would have made of an .egg-info. */
static int make_dist_info(const struct taken *t, const struct root *root, const char *dir, struct arena *a,
			  struct err *e)
{
	static const char *const names[][2] = {
		{"PKG-INFO", "METADATA"}, {"entry_points.txt", "entry_points.txt"}, {"top_level.txt", "top_level.txt"}};
	const char *package = arena_strndup(a, t->package, strcspn(t->package, "="));
	AUTO_BUF struct buf wheel = {0};
	if (fs_mkdirs(TRUSTED, dir, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (copy_info(root, path_join(a, t->info, names[i][0]), path_join(a, dir, names[i][1]), a, e) < 0)
			return -1;
	if (copy_info(root, arena_printf(a, "/usr/share/doc/%s/copyright", package), path_join(a, dir, "LICENSE"), a,
		      e) < 0)
		return -1;
	buf_printf(&wheel, "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: %s\n", t->tag);
	return write_text(path_join(a, dir, "WHEEL"), &wheel, e);
}

static int write_info(const struct taken *t, const struct root *root, const struct strlist *notes, const char *tree,
		      struct arena *a, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	bool egg = path_has_suffix(t->info, ".egg-info");
	const char *dir =
		path_join(a, tree, egg ? arena_printf(a, "torch-%s.dist-info", t->version) : path_base(t->info));
	if (egg && make_dist_info(t, root, dir, a, e) < 0)
		return -1;
	for (size_t i = 0; i < notes->count; i++)
		buf_printf(&text, "%s\n", notes->items[i]);
	return write_text(path_join(a, dir, "taken-from"), &text, e);
}

/* The tree is whole only when the step has ended: no file needs a name of its own before. */
static int copy_file(const struct take_file *f, const char *tree, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st;
	const char *to = path_join(&a, tree, f->name);
	AUTO_FD int out = fs_create(tree, f->name, 0600, e);
	if (out < 0 || fs_copy_fd(TRUSTED, f->source, out, to, e) < 0)
		return -1;
	/* A distribution's modes say nothing of who may read the file here. */
	if (fstat(out, &st) < 0 || fchmod(out, st.st_mode & S_IXUSR ? 0755 : 0644) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot set the permissions of '%s'", to);
	return 0;
}

int take_write(const struct taken *t, const struct root *root, const struct strlist *notes, const char *tree,
	       const char *log, const struct run *run, struct arena *a, struct err *e)
{
	AUTO_BUF struct buf list = {0};
	if (fs_mkdirs(TRUSTED, tree, e) < 0)
		return -1;
	for (size_t i = 0; i < t->count; i++) {
		const struct take_file *f = &t->files[i];
		if (run_check(run, e) < 0 || copy_file(f, tree, e) < 0)
			return -1;
		buf_printf(&list, "%s %s %s\n", f->sha256, f->name, f->source);
	}
	if (write_info(t, root, notes, tree, a, e) < 0 || fs_mkdirs(TRUSTED, path_dir(a, log), e) < 0)
		return -1;
	return write_text(log, &list, e);
}
