#include "base/sys/proc.h"
#include "core/root/sandbox.h"
#include "step/relocate/relocate_parts.h"

#define IN SANDBOX_TOP "/library"
#define NAMES SANDBOX_TOP "/names"
#define OUT "stripped"

struct paths {
	const char *in, *out, *names;
};

/* The command line; `names` NULL: no symbol stays. */
static void command(const struct paths *p, struct arena *a, struct strlist *ret)
{
	if (p->names) {
		strlist_split(ret, a, "objcopy --strip-unneeded --keep-file-symbols", " ");
		strlist_addf(ret, a, "--keep-symbols=%s", p->names);
	} else {
		strlist_split(ret, a, "strip --strip-unneeded -o", " ");
		strlist_add(ret, a, p->out);
	}

	strlist_add(ret, a, p->in);
	if (p->names)
		strlist_add(ret, a, p->out);
}

static int run_here(const struct relocate_tool *t, const struct run *run, struct arena *a,
		    struct err *e)
{
	const char *list = arena_printf(a, "%s.names", t->path);
	const struct paths p = {t->path, t->fresh, t->names->len ? list : NULL};
	AUTO_BUF struct buf out = {0};
	struct strlist argv = {0};

	if (p.names && fs_write(TRUSTED, list, t->names->data, t->names->len, 0644, e) < 0)
		return -1;
	command(&p, a, &argv);
	int rc = proc_capture(strlist_argv(&argv, a), run, &out, e);
	if (p.names)
		unlink(list);
	return rc;
}

/* The tool sees the library and an empty directory, and nothing else of the wheel. */
static int run_in(const struct relocate_tool *t, const char *dir, const struct run *run,
		  struct arena *a, struct err *e)
{
	const bool some = t->names->len > 0;
	const struct paths p = {IN, SANDBOX_OUT "/" OUT, some ? NAMES : NULL};
	AUTO_BUF struct buf out = {0};
	struct strlist argv = {0};
	struct sandbox s;

	if (sandbox_init(&s, SANDBOX_BWRAP, t->q->root, a, e) < 0)
		return -1;
	sandbox_add(&s, SANDBOX_RO, t->path, IN);
	sandbox_add(&s, SANDBOX_RW, dir, SANDBOX_OUT);
	if (some)
		sandbox_add(&s, SANDBOX_DATA, buf_cstr(t->names), NAMES);
	kvlist_set(&s.env, a, "PATH", ROOT_PATH);
	kvlist_set(&s.env, a, "LC_ALL", "C");
	command(&p, a, &argv);
	if (sandbox_capture(&s, strlist_argv(&argv, a), run, &out, e) < 0)
		return -1;
	const char *made = path_join(a, dir, OUT);
	struct stat st;
	/* it belongs to the user of the sandbox */
	if (stat(t->path, &st) < 0 || (geteuid() == 0 && lchown(made, st.st_uid, st.st_gid) < 0))
		return err_errno(e, ERR_SYSTEM, "cannot take '%s' back", made);
	return rename(made, t->fresh) < 0
		       ? err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", made, t->fresh)
		       : 0;
}

int relocate_strip_file(const struct relocate_tool *t, const struct run *run, struct arena *a,
			struct err *e)
{
	const struct relocate_request *q = t->q;
	const char *tool = t->names->len ? "objcopy" : "strip";
	char *dir;

	if (!q->root_tools || !root_find_program(q->root, tool, a))
		return run_here(t, run, a, e);
	if (fs_temp_dir(path_dir(a, q->tree), "strip-", a, &dir, e) < 0)
		return -1;
	int rc = run_in(t, dir, run, a, e);
	if (fs_remove(TRUSTED, dir, rc < 0 ? ERR_IGNORED : e) < 0)
		rc = -1;
	return rc;
}
