#include "step/python/python.h"

int python_find(const char *version, const struct root *root, enum sandbox_kind kind, const struct run *run,
		struct arena *a, struct python *ret, struct err *e)
{
	const char *program = root_find_program(root, arena_printf(a, "python%s", version), a);
	if (!program)
		program = root_find_program(root, "python3", a);
	if (!program) {
		err_set(e, ERR_POLICY, "no Python in the root '%s'", root->dir);
		return err_hint(e, "install python%s there with its headers, venv and pip", version);
	}
	*ret = (struct python){.root = root, .kind = kind, .run = run, .arena = a, .program = program};
	return 0;
}

int python_sandbox(const struct python *p, struct sandbox *ret, struct err *e)
{
	struct sandbox s;
	if (sandbox_init(&s, p->kind, p->root, p->arena, e) < 0)
		return -1;
	kvlist_set(&s.env, p->arena, "PATH", ROOT_PATH);
	kvlist_set(&s.env, p->arena, "HOME", SANDBOX_HOME);
	kvlist_set(&s.env, p->arena, "TMPDIR", p->kind == SANDBOX_NONE ? "/tmp" : SANDBOX_TMP);
	kvlist_set(&s.env, p->arena, "LC_ALL", "C.UTF-8");
	kvlist_set(&s.env, p->arena, "PIP_CONFIG_FILE", "/dev/null");
	if (p->venv)
		sandbox_add(&s, SANDBOX_RO, p->venv, SANDBOX_VENV);
	*ret = s;
	return 0;
}

int python_script(const struct python *p, const char *script, const struct strlist *args, struct strlist *ret_lines,
		  struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct sandbox s;
	struct strlist argv = {0};
	if (python_sandbox(p, &s, e) < 0)
		return -1;
	strlist_add(&argv, p->arena, p->program);
	strlist_split(&argv, p->arena, "-I -c", " ");
	strlist_add(&argv, p->arena, script);
	strlist_append(&argv, p->arena, args);
	if (sandbox_capture(&s, strlist_argv(&argv, p->arena), p->run, &out, e) < 0)
		return err_wrap(e, "cannot ask '%s' of the root", p->program);
	strlist_split(ret_lines, p->arena, buf_cstr(&out), "\n");
	return 0;
}
