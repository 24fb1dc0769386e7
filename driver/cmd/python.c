/* The Python that a command works for, where neither the command line nor a torch names one. */
#include "base/sys/machine.h"
#include "cmd/select.h"
#include "core/machine/host_python.h"
#include "core/root/sandbox.h"

/* The newest with a world; NULL: none. */
static const char *newest(struct cmd_context *c, const struct cmd_python *q)
{
	for (size_t i = q->pythons.count; q->release && i-- > 0;)
		if (cmd_root_serves(c, q, q->pythons.items[i]) == CMD_ROOT_HAS)
			return q->pythons.items[i];
	return NULL;
}

static int tell(struct cmd_context *c, const char *python, const char *why, const char **ret)
{
	log_info(c->run->log, "using Python %s, %s; override with --python", python, why);
	*ret = python;
	return 0;
}

static int take_newest(struct cmd_context *c, const struct cmd_python *q, const char *other,
		       const char **ret)
{
	const char *python = q->wheels ? NULL : newest(c, q);
	const char *why = python ? "the newest in a world" : "the newest";

	if (!python)
		python = q->pythons.items[q->pythons.count - 1];
	if (q->release)
		why = arena_printf(c->arena, "%s for release %s", why, q->release->name);
	return tell(c, python, *other ? arena_printf(c->arena, "%s (%s)", why, other) : why, ret);
}

static int take_root(struct cmd_context *c, const struct cmd_python *q, const char **ret)
{
	const char *own = cmd_root_python(c);

	if (own && strlist_contains(&q->pythons, own))
		return tell(c, own, "the root's", ret);
	const char *other = own ? arena_printf(c->arena, "not the root's %s", own) : "";
	return take_newest(c, q, other, ret);
}

int cmd_python(struct cmd_context *c, const struct cmd_python *q, const char **ret, struct err *e)
{
	struct host_python host = {0};

	if (!q->pythons.count)
		return err_set(e, ERR_CONFIG, "release '%s' has no Python",
			       q->release ? q->release->name : "");
	/* what is built for another platform is not for the Python of this machine */
	if (!q->wheels && strcmp(q->platform, machine_platform(c->arena)) != 0)
		return take_newest(c, q, "", ret);
	if (!q->wheels && (c->global->root || cmd_sandbox(c) == SANDBOX_NONE))
		return take_root(c, q, ret);
	host_python(c->run, c->arena, &host);
	const bool known = host.version && strlist_contains(&q->pythons, host.version);
	enum cmd_root_answer answer = known ? CMD_ROOT_HAS : CMD_ROOT_LACKS;
	if (!q->wheels)
		answer = cmd_root_serves(c, q, known ? host.version : NULL);
	if (answer == CMD_ROOT_OWN)
		return take_root(c, q, ret);
	if (!host.version)
		return take_newest(c, q, "", ret);
	const char *whose =
		host.venv ? arena_printf(c->arena, "of the virtual environment '%s'", host.venv)
			  : "this machine's";
	if (known && answer == CMD_ROOT_HAS)
		return tell(c, host.version, whose, ret);
	const char *other = host.venv
				    ? arena_printf(c->arena, "not %s %s", host.version, whose)
				    : arena_printf(c->arena, "not this machine's %s", host.version);
	return take_newest(c, q, other, ret);
}
