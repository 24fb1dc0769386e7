#include "base/sys/machine.h"
#include "cmd/build.h"
#include "core/world/world.h"

static int check_package(const struct strlist *words, struct err *e)
{
	if (words->count == 0 || (words->count == 1 && package_is_torch(words->items[0])))
		return 0;
	if (words->count > 1)
		return err_set(e, ERR_USAGE, "capture makes one wheel, not %zu", words->count);
	if (strcmp(words->items[0], "torch") == 0) {
		err_set(e, ERR_USAGE, "unknown package 'torch'");
		return err_hint(e, "write pytorch, or leave it out");
	}

	err_set(e, ERR_USAGE, "'%s' cannot be captured from a root", words->items[0]);
	return err_hint(e, "only pytorch can; 'ptbuild build --profile PROFILE --package "
			   "torchvision,torchaudio "
			   "--torch root' builds the "
			   "others against it");
}

int cmd_capture(struct cmd_context *c, struct pipeline_results *ret, struct err *e)
{
	struct pipeline_request q = {.run = c->run};

	c->look = true;
	return cmd_root(c, &q.root, e) < 0 || cmd_build_common(c, &q, e) < 0
		       ? -1
		       : pipeline_capture(&q, c->arena, ret, e);
}

int cmd_root_torch(struct cmd_context *c, const struct release_row *r, const char **ret,
		   struct err *e)
{
	struct cmd_root_state state;
	const struct root *root;
	struct torch_source t;
	const size_t n = strlen(r->base);

	*ret = arena_printf(c->arena, "%s%s%s", r->base, r->name[n] ? "+" : "",
			    r->name + n + (r->name[n] != '\0'));
	if (cmd_root_look(c, &state, e) < 0)
		return -1;
	if (!state.made ||
	    (state.world && strcmp(state.world->platform, machine_platform(c->arena)) != 0))
		return 0;
	if (cmd_root(c, &root, e) < 0 ||
	    torch_from_root(root, cmd_sandbox(c), NULL, c->run, c->arena, &t, e) < 0)
		return -1;
	*ret = t.version;
	return 0;
}

static int capture_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	struct pipeline_results r = {0};

	if (check_package(words, e) < 0 || cmd_capture(c, &r, e) < 0)
		return -1;
	int rc = cmd_build_print(c, &r, e);
	pipeline_free(&r);
	return rc;
}

const struct command command_capture = {
	.name = "capture",
	.summary = "make a wheel of the torch that is installed in the root",
	.usage = "[pytorch] [OPTION...]",
	.tables = {cmd_build_options},
	.arguments = {{"pytorch", "the package to capture; no other can be", "pytorch"}},
	.options_size = sizeof(struct cmd_build_base),
	.run = capture_main,
};
