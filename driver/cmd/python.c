/* The Python that a command works for, where neither the command line nor a torch names one. */
#include "base/sys/machine.h"
#include "cmd/select.h"
#include "core/machine/host_python.h"

/* Whether an official wheel, or a world to build in, has this Python. */
static bool is_there(struct cmd_context *c, const struct cmd_python *q, const char *python)
{
	return strlist_contains(&q->pythons, python) && (q->wheels || cmd_root_has_python(c, q, python));
}

/* The newest with a world; NULL: none. A release that no table has is only in the index. */
static const char *newest(struct cmd_context *c, const struct cmd_python *q)
{
	for (size_t i = q->pythons.count; i-- > 0;)
		if (!q->release || cmd_root_has_python(c, q, q->pythons.items[i]))
			return q->pythons.items[i];
	return NULL;
}

static int tell(struct cmd_context *c, const char *python, const char *why, const char **ret)
{
	log_info(c->run->log, "using Python %s, %s; override with --python", python, why);
	*ret = python;
	return 0;
}

static int take_newest(struct cmd_context *c, const struct cmd_python *q, const char *other, const char **ret)
{
	const char *python = newest(c, q);
	const char *why = python ? "the newest in a world" : "the newest";
	if (!python)
		python = q->pythons.items[q->pythons.count - 1];
	if (q->release)
		why = arena_printf(c->arena, "%s for release %s", why, q->release->name);
	return tell(c, python, *other ? arena_printf(c->arena, "%s (%s)", why, other) : why, ret);
}

static int take_root(struct cmd_context *c, const struct cmd_python *q, const char *own, const char **ret)
{
	if (own && strlist_contains(&q->pythons, own))
		return tell(c, own, "the root's", ret);
	const char *other = own ? arena_printf(c->arena, "not the root's %s", own) : "";
	return take_newest(c, q, other, ret);
}

int cmd_python(struct cmd_context *c, const struct cmd_python *q, const char **ret, struct err *e)
{
	struct host_python host = {0};
	const char *own;
	if (!q->pythons.count)
		return err_set(e, ERR_CONFIG, "release '%s' has no Python", q->release ? q->release->name : "");
	/* what runs on another platform is not for the Python of this machine */
	if (strcmp(q->platform, machine_platform(c->arena)) != 0)
		return take_newest(c, q, "", ret);
	if (!q->wheels && cmd_root_fixed(c, q, &own))
		return take_root(c, q, own, ret);
	host_python(c->run, c->arena, &host);
	if (!host.version)
		return take_newest(c, q, "", ret);
	const char *whose =
		host.venv ? arena_printf(c->arena, "of the virtual environment '%s'", host.venv) : "this machine's";
	if (is_there(c, q, host.version))
		return tell(c, host.version, whose, ret);
	const char *other = host.venv ? arena_printf(c->arena, "not %s %s", host.version, whose)
				      : arena_printf(c->arena, "not this machine's %s", host.version);
	return take_newest(c, q, other, ret);
}
