#include "cache/store.h"
#include "cmd/cmd.h"
#include "core/variant/variant.h"
#include "step/compile/build.h"

/* The latest tree of a variant that leaves its toolkit open: trees have the one that was chosen. */
static const struct build_tree *tree_of_open(const struct tables *t, const struct build_tree *trees,
					     size_t count, const struct variant *v, struct arena *a)
{
	for (size_t i = 0; i < count; i++) {
		struct variant has;
		if (variant_parse(t, trees[i].variant, a, &has, ERR_IGNORED) < 0)
			continue; /* of a profile file that is no longer there */
		has.cuda = NULL;
		if (strcmp(variant_name(&has, a), variant_name(v, a)) == 0)
			return &trees[i];
	}

	return NULL;
}

/* The trees that there are, or how one comes to be. */
static int hint_trees(struct cmd_context *c, const struct build_tree *trees, size_t count,
		      struct err *e)
{
	struct strlist kept = {0};

	for (size_t i = 0; i < count; i++)
		strlist_once(&kept, c->arena, trees[i].variant);
	if (kept.count)
		return err_hint(e,
				"kept are those of %s; 'ptbuild build ... --keep' leaves another "
				"where the store does "
				"not have the wheel yet",
				strlist_join(&kept, c->arena, ", "));
	return err_hint(e, "a failed or stopped build leaves one; 'ptbuild build ... --keep' does "
			   "where the store "
			   "does not have the wheel yet");
}

/* The latest tree of a variant, whose name may be written in any of its forms. */
static int find_tree(struct cmd_context *c, const char *word, const struct build_tree *trees,
		     size_t count, const struct build_tree **ret, struct err *e)
{
	struct variant v;
	const char *name = word;

	*ret = text_search(word, trees, count, sizeof(*trees));
	if (*ret)
		return 0;
	if (cmd_open(c, OPEN_TABLES, e) < 0)
		return -1;
	const struct tables *tables = c->tables;
	if (variant_parse(tables, word, c->arena, &v, ERR_IGNORED) == 0) {
		name = variant_name(&v, c->arena);
		*ret = v.profile.gpu == GPU_CUDA && !v.cuda
			       ? tree_of_open(tables, trees, count, &v, c->arena)
			       : text_search(name, trees, count, sizeof(*trees));
	}

	if (*ret)
		return 0;
	err_set(e, ERR_CONFIG, "no kept build tree for '%s'", name);
	return hint_trees(c, trees, count, e);
}

static int run_shell(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct store *store;
	struct build_tree *trees;
	const struct build_tree *tree = NULL;
	size_t count;
	struct strlist argv = {0};

	if (cmd_store(c, &store, e) < 0)
		return -1;
	/* The tree of a killed build may be there instead of in the store. */
	work_tree_settle(SANDBOX_TOP, c->run);
	if (build_tree_list(path_join(c->arena, store_dir(store), "build"), c->arena, &trees,
			    &count, e) < 0)
		return -1;
	if (args->count == 0) {
		err_set(e, ERR_USAGE, "shell needs a variant");
		return hint_trees(c, trees, count, e);
	}

	if (find_tree(c, args->items[0], trees, count, &tree, e) < 0)
		return -1;
	/* No build and no gc of the tree meanwhile. */
	AUTO_LOCK struct lock lock = LOCK_NONE;
	if (store_lock(store, STORE_BUILD, tree->key, c->run, &lock, e) < 0)
		return -1;
	strlist_refs(&argv, c->arena, args->items + 1, args->count - 1);
	log_verbose(c->run->log, "tree %s", tree->dir);
	c->shown = true;
	return build_tree_enter(tree, argv.count ? strlist_argv(&argv, c->arena) : NULL, c->run, e);
}

const struct command command_shell = {
	.name = "shell",
	.summary = "open a shell in the sandbox of a kept build tree",
	.usage = "VARIANT [OPTION...] [-- COMMAND...]",
	.arguments = {{"VARIANT", "variant whose tree to use", "<variant>"},
		      {"COMMAND...", "command to run there instead of a shell", NULL}},
	.run = run_shell,
};
