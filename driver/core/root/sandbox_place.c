#include "core/root/sandbox.h"

#include <sys/statvfs.h>

#include "base/os.h"
#include "base/sys/fs.h"

/* Markers are removed first: none may say that a half-removed part is whole. */
const char *const sandbox_place_names[] = {
	"src.ok", "torch.ok", "src",       "torch",      "out",    "cfg",  "log", "venv",
	"check",  "tree",     "tree.json", "state.json", "ccache", "home", "tmp",
};
const size_t sandbox_place_names_count = ARRAY_LEN(sandbox_place_names);

/* Entries of directories that count as empty: the top of a file system, a cache mount of
 * buildah. */
static const char *const foreign[] = {"lost+found", "buildah-cache-lockfile"};

static void refuse(struct sandbox_place *p, const char *why, const char *fix)
{
	p->why = why;
	p->fix = fix;
}

/* Returns a name of a build tree that exists although no tree is recorded. Another process may come
 * or go meanwhile, and always records its tree first and forgets it last. */
static const char *unexplained(const char *top, struct arena *a)
{
	const char *tree = path_join(a, top, SANDBOX_PLACE_TREE);
	struct stat st;

	for (size_t i = 0; i < sandbox_place_names_count; i++) {
		const char *path = path_join(a, top, sandbox_place_names[i]);
		if (!fs_exists(TRUSTED, tree) && lstat(path, &st) == 0 &&
		    !fs_exists(TRUSTED, tree) && lstat(path, &st) == 0)
			return sandbox_place_names[i];
	}

	return NULL;
}

static bool marked(const char *top, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	struct stat st;
	const char *own = path_join(a, top, SANDBOX_PLACE_OWN);

	if (lstat(own, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return false;
	if (fs_read(TRUSTED, path_join(a, top, SANDBOX_PLACE_MARKER), 256, &text, ERR_IGNORED) < 0)
		return false;
	return strcmp(buf_cstr(&text), SANDBOX_PLACE_TEXT) == 0;
}

/* Returns an entry of a directory that ptbuild does not use yet and did not create. Names that
 * begin with ptbuild's own may be from another process that starts to use it now. */
static const char *kept(const char *top, struct arena *a)
{
	struct strlist names = {0};
	struct stat st;

	if (fs_list(TRUSTED, top, a, &names, ERR_IGNORED) < 0)
		return "what cannot be listed";
	for (size_t i = 0; i < names.count; i++)
		if (strncmp(names.items[i], SANDBOX_PLACE_OWN, strlen(SANDBOX_PLACE_OWN)) != 0 &&
		    !strings_contain(foreign, ARRAY_LEN(foreign), names.items[i]) &&
		    lstat(path_join(a, top, names.items[i]), &st) == 0)
			return names.items[i];
	return NULL;
}

static void look_inside(const char *top, const char *quoted, struct arena *a,
			struct sandbox_place *p)
{
	struct stat st;
	const char *own = path_join(a, top, SANDBOX_PLACE_OWN), *name;

	if (!marked(top, a) && (name = kept(top, a)) && !marked(top, a)) {
		refuse(p,
		       arena_printf(a, "'%s' has something in it that ptbuild did not make: '%s'",
				    top, name),
		       arena_printf(a, "empty %s, or mount an empty directory there", quoted));
		return;
	}

	if (lstat(own, &st) == 0 && !marked(top, a)) {
		refuse(p, arena_printf(a, "'%s' is not ptbuild's", own),
		       arena_printf(a, "remove %s", shell_quoted(own, a)));
		return;
	}

	name = unexplained(top, a);
	if (name)
		refuse(p,
		       arena_printf(a, "'%s' has something in it that ptbuild did not make: '%s'",
				    top, name),
		       arena_printf(a, "move it away: %s",
				    shell_quoted(path_join(a, top, name), a)));
	else
		p->fine = true;
}

static bool is_noexec(const char *dir)
{
#ifdef ST_NOEXEC
	struct statvfs fs;
	return statvfs(dir, &fs) == 0 && (fs.f_flag & ST_NOEXEC);
#else
	(void)dir;
	return false;
#endif
}

void sandbox_place_look(const char *top, struct arena *a, struct sandbox_place *ret)
{
	struct sandbox_place p = {.why = "", .fix = ""};
	struct stat st;
	const char *quoted = shell_quoted(top, a);
	const unsigned long user = geteuid();
	const char *make = arena_printf(
		a, "let root make it: install -d -o %lu %s; or mount an empty directory there",
		user, quoted);

	if (lstat(top, &st) < 0) {
		p.fine = errno == ENOENT && access(path_dir(a, top), W_OK | X_OK) == 0;
		if (!p.fine)
			refuse(&p,
			       arena_printf(a, "'%s' is not there and cannot be made: %s", top,
					    os_errno_text(errno)),
			       make);
		*ret = p;
		return;
	}

	p.there = true;
	if (!S_ISDIR(st.st_mode))
		refuse(&p,
		       arena_printf(a, "'%s' is %s", top,
				    S_ISLNK(st.st_mode) ? "a link" : "not a directory"),
		       arena_printf(a, "remove %s, or mount an empty directory there", quoted));
	else if (st.st_uid != user)
		refuse(&p,
		       arena_printf(a, "'%s' is owned by user %lu, but ptbuild runs as user %lu",
				    top, (unsigned long)st.st_uid, user),
		       arena_printf(a, "if nobody else uses it: chown %lu %s", user, quoted));
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		refuse(&p, arena_printf(a, "others may write in '%s'", top),
		       arena_printf(a, "run: chmod go-w %s", quoted));
	else if (access(top, R_OK | W_OK | X_OK) < 0)
		refuse(&p, arena_printf(a, "cannot write in '%s': %s", top, os_errno_text(errno)),
		       arena_printf(a, "mount another directory at %s", quoted));
	else if (is_noexec(top))
		refuse(&p, arena_printf(a, "nothing in '%s' can be run: it is mounted noexec", top),
		       arena_printf(a, "mount %s with exec", quoted));
	else
		look_inside(top, quoted, a, &p);
	*ret = p;
}

bool sandbox_elsewhere(enum sandbox_kind kind)
{
	AUTO_ARENA struct arena a = {0};
	struct sandbox_place p;

	if (kind != SANDBOX_NONE)
		return false;
	sandbox_place_look(SANDBOX_TOP, &a, &p);
	return !p.fine;
}
