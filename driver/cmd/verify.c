#include "step/verify.h"

#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "cmd/help.h"
#include "core/sandbox.h"
#include "step/pipeline_torch.h"

struct verify_options {
	struct cmd_globals global;
	struct strlist with;
	struct strlist provided;
};

/* What a wheel built against torch may leave to the torch package: its libraries by any SONAME version, since distributions give them one. */
static const char *const torch_libraries[] = {"libtorch.so*", "libtorch_*.so*", "libc10.so*", "libc10_*.so*", "libshm.so*"};

static void add_provided(struct strlist *list, const struct verify_options *o, const char *wheel_dist, struct arena *a)
{
	strlist_append(list, a, &o->provided);
	if (strcmp(wheel_dist, "torch") == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(torch_libraries); i++)
		strlist_ref(list, a, torch_libraries[i]);
}

/* The libraries of the root's own torch. */
static int add_libraries_of_root(struct cmd_context *c, struct strlist *list, struct err *e)
{
	const struct root *root;
	struct torch_source torch = {0};
	if (cmd_root(c, &root, e) < 0 || torch_from_root(root, cmd_sandbox(c), c->run, c->arena, &torch, e) < 0)
		return -1;
	return torch_provides(&torch, root, NULL, c->arena, list, e);
}

/* The shared libraries inside a wheel of --with: what the other one need not bring. */
static int add_libraries_of(struct cmd_context *c, struct strlist *list, const char *wheel, struct err *e)
{
	struct arena *a = c->arena;
	if (strcmp(wheel, "root") == 0)
		return add_libraries_of_root(c, list, e);
	struct zip_reader *z;
	if (zip_open(wheel, a, &z, e) < 0)
		return err_wrap(e, "--with %s", wheel);
	for (size_t i = 0; i < zip_count(z); i++) {
		const char *name = path_base(zip_at(z, i)->name);
		if (strstr(name, ".so"))
			strlist_add(list, a, name);
	}
	zip_close(z);
	return 0;
}

static int verify_one(struct cmd_context *c, const struct manylinux_policy *policy, const char *wheel, struct verify_report *ret,
		      struct err *e)
{
	const struct verify_options *o = c->options;
	struct wheel_name name;
	if (wheel_name_parse(wheel, c->arena, &name, e) < 0)
		return -1;
	struct verify_request q = {.wheel = wheel, .policy = policy};
	add_provided(&q.provided, o, name.dist, c->arena);
	for (size_t i = 0; i < o->with.count; i++)
		if (add_libraries_of(c, &q.provided, o->with.items[i], e) < 0)
			return -1;
	strlist_ref(&q.build_paths, c->arena, SANDBOX_TOP "/");
	return verify_wheel(&q, c->run, c->arena, ret, e);
}

static int print_report(const struct cmd_context *c, const struct verify_report *r, json_t *list, struct err *e)
{
	if (c->global->json) {
		json_array_append_new(list, verify_json(r));
		return 0;
	}
	AUTO_BUF struct buf out = {0};
	buf_addstr(&out, verify_text(r, c->arena));
	if (out.len && out.data[out.len - 1] != '\n')
		buf_addc(&out, '\n');
	return cmd_write_stdout(&out, e);
}

static int run_verify(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const char *profiles;
	const struct manylinux_policy *policy;
	AUTO_JSON json_t *list = json_array();
	size_t wrong = 0;
	if (args->count == 0) {
		err_set(e, ERR_USAGE, "verify needs a wheel");
		return err_hint(e, "say 'ptbuild verify dist/*.whl'");
	}
	if (cmd_profiles_dir(c, &profiles, e) < 0 || manylinux_load(profiles, c->arena, &policy, e) < 0)
		return -1;
	for (size_t i = 0; i < args->count; i++) {
		struct verify_report r = {0};
		if (verify_one(c, policy, args->items[i], &r, e) < 0 || print_report(c, &r, list, e) < 0)
			return -1;
		wrong += r.errors > 0;
	}
	if (c->global->json) {
		AUTO_JSON json_t *doc = json_pack("{s:i, s:O}", "schema", 1, "wheels", list);
		if (json_print(doc, e) < 0)
			return -1;
	}
	if (wrong == 0)
		return 0;
	return err_set(e, ERR_INTEGRITY, "%zu of %zu wheels break rules they claim to keep", wrong, args->count);
}

#define OPTION(type, field) (type), offsetof(struct verify_options, field)

static const struct arg_def verify_options[] = {
	{"with", 0, OPTION(ARG_LIST, with), "PLACES",
	 "wheels installed beside it whose libraries it may use, or root for the torch of --root", "<file>"},
	{"provided", 0, OPTION(ARG_LIST, provided), "NAMES", "library names that its dependencies bring, for example libcudart.so.12",
	 NULL},
	{0},
};

const struct command command_verify = {
	.name = "verify",
	.summary = "check wheels as a stranger would",
	.usage = "WHEEL... [options]",
	.text =
		(const char *const[]){
			"Opens each wheel and checks every rule it claims to keep: archive, RECORD, names and metadata, library paths, "
			"needed "
			"libraries, symbol versions against the platform tag, traces of the build. Nothing of the wheel is run.",
			NULL},
	.tables = (const struct arg_def *const[]){verify_options, NULL},
	.arguments = (const struct cmd_positional[]){{"WHEEL...", "the files to check", "<file>"}, {0}},
	.examples =
		(const struct cmd_example[]){
			{"ptbuild verify dist/torchvision-*.whl --with dist/torch-*.whl", "torchvision, installed with that torch"}, {0}},
	.options_size = sizeof(struct verify_options),
	.run = run_verify,
};
