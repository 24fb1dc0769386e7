#include "base/sys/fs.h"
#include "base/sys/proc.h"
#include "core/wheel/wheel.h"
#include "step/source/source_tree.h"

enum { COMMIT_LETTERS = 12 };

/* git of this machine, which must run nothing that the checkout's configuration names. */
static int ask_git(const struct own_source *s, const char *words, const struct run *run,
		   struct buf *out)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist argv = {0};

	strlist_split(&argv, &a,
		      "git --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null "
		      "-C",
		      " ");
	strlist_ref(&argv, &a, s->path);
	strlist_split(&argv, &a, words, " ");
	return proc_capture(strlist_argv(&argv, &a), run, out, ERR_IGNORED);
}

/* What a checkout is at, and whether its files are those of its commit. */
static const char *state_of(const struct own_source *s, const struct run *run, struct arena *a)
{
	AUTO_BUF struct buf commit = {0}, changes = {0};
	struct strlist files = {0};

	if (!fs_is_dir(TRUSTED, s->path))
		return arena_printf(a, "the file '%s'", s->path);
	if (!fs_exists(TRUSTED, path_join(a, s->path, ".git")))
		return arena_printf(a, "the folder '%s'", s->path);
	if (ask_git(s, "rev-parse --verify HEAD", run, &commit) < 0 ||
	    ask_git(s, "status --porcelain", run, &changes) < 0)
		return arena_printf(a, "the git checkout '%s', of which git says nothing", s->path);
	strlist_split(&files, a, buf_cstr(&changes), "\n");
	const char *at = arena_strndup(a, buf_cstr(&commit), COMMIT_LETTERS);
	return files.count
		       ? arena_printf(a,
				      "the git checkout '%s', commit %s with %zu file%s changed "
				      "or added",
				      s->path, at, files.count, plural(files.count))
		       : arena_printf(a, "the git checkout '%s', commit %s without changes",
				      s->path, at);
}

/* Without the local part: the label says what it is. */
static const char *plain(const char *version, struct arena *a)
{
	version += strspn(version, " \t\r\n");
	return arena_strndup(a, version, strcspn(version, "+ \t\r\n"));
}

static int version_of(const struct source_tree *t, struct arena *a, const char **ret, struct err *e)
{
	const char *info = t->text[SOURCE_PKG_INFO], *file = t->text[SOURCE_VERSION];
	struct wheel_headers h;

	*ret = "";
	if (file)
		*ret = plain(file, a);
	if (!info)
		return 0;
	if (wheel_headers_parse(&(struct file_bytes){info, t->len[SOURCE_PKG_INFO], "PKG-INFO"}, a,
				&h, e) < 0)
		return -1;
	const char *version = wheel_headers_get(&h, "Version");
	*ret = version ? plain(version, a) : *ret;
	return 0;
}

int own_read(const char *path, const char *version, const struct run *run, struct arena *a,
	     struct own_source *ret, struct err *e)
{
	struct own_source s = {.path = path};
	struct source_tree tree;

	if (!fs_exists(TRUSTED, path))
		return err_set(e, ERR_USAGE, "no folder or archive '%s'", path);
	if (source_tree_is_member(path)) {
		err_set(e, ERR_USAGE, "'%s' is a file of a source", path);
		return err_hint(e, "pass --source the folder or an archive of it");
	}

	if (source_tree_read(path, run, a, &tree, e) < 0 || version_of(&tree, a, &s.version, e) < 0)
		return err_wrap(e, "source '%s'", path);
	s.package = tree.package;
	s.version = version ? version : s.version;
	if (!*s.version) {
		err_set(e, ERR_USAGE, "source '%s' does not say its version", path);
		return err_hint(e, "name it with --version, for example --version 2.11.0");
	}

	if (!wheel_version_key(s.version, a) || strchr(s.version, '+')) {
		err_set(e, ERR_USAGE, "source '%s': not a version without a label: '%.60s'", path,
			s.version);
		return err_hint(e, "name one: --version 2.11.0");
	}

	s.state = state_of(&s, run, a);
	if (source_tree_warn(&tree, run, e) < 0)
		return err_wrap(e, "source '%s'", path);
	*ret = s;
	return 0;
}
