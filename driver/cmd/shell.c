#include "cache/store.h"
#include "cmd/cmd.h"
#include "core/variant/variant.h"
#include "step/compile/build.h"

/* The trees that the store keeps, the latest first. */
struct kept_trees {
	struct build_tree *items;
	size_t count;
};

/* The latest tree of a variant that leaves its toolkit open: trees have the one that was chosen. */
static const struct build_tree *tree_of_open(const struct tables *t, const struct kept_trees *kept,
					     const struct variant *v, struct arena *a)
{
	for (size_t i = 0; i < kept->count; i++) {
		struct variant has;
		if (variant_parse(t, kept->items[i].variant, a, &has, ERR_IGNORED) < 0)
			continue; /* of a profile file that is no longer there */
		has.cuda = NULL;
		if (strcmp(variant_name(&has, a), variant_name(v, a)) == 0)
			return &kept->items[i];
	}

	return NULL;
}

/* The trees that there are, or how one comes to be. */
static int hint_trees(struct cmd_context *c, const struct kept_trees *kept, struct err *e)
{
	struct strlist variants = {0};

	for (size_t i = 0; i < kept->count; i++)
		strlist_once(&variants, c->arena, kept->items[i].variant);
	if (variants.count)
		return err_hint(e,
				"kept are those of %s; 'ptbuild build ... --keep' leaves another "
				"where the store does "
				"not have the wheel yet",
				strlist_join(&variants, c->arena, ", "));
	return err_hint(e, "a failed or stopped build leaves one; 'ptbuild build ... --keep' does "
			   "where the store "
			   "does not have the wheel yet");
}

/* The latest tree of a variant, whose name may be written in any of its forms; NULL: an error. */
static const struct build_tree *find_tree(struct cmd_context *c, const char *word,
					  const struct kept_trees *kept, struct err *e)
{
	const struct build_tree *tree =
		text_search(word, kept->items, kept->count, sizeof(*kept->items));
	struct variant v;
	const char *name = word;

	if (tree)
		return tree;
	if (cmd_open(c, OPEN_TABLES, e) < 0)
		return NULL;
	const struct tables *tables = c->tables;
	if (variant_parse(tables, word, c->arena, &v, ERR_IGNORED) == 0) {
		name = variant_name(&v, c->arena);
		tree = v.profile.gpu == GPU_CUDA && !v.cuda
			       ? tree_of_open(tables, kept, &v, c->arena)
			       : text_search(name, kept->items, kept->count, sizeof(*kept->items));
	}

	if (tree)
		return tree;
	err_set(e, ERR_CONFIG, "no kept build tree for '%s'", name);
	(void)hint_trees(c, kept, e);
	return NULL;
}

static int run_shell(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct store *store;
	struct kept_trees kept;
	struct strlist argv = {0};

	if (cmd_store(c, &store, e) < 0)
		return -1;
	/* The tree of a killed build may be there instead of in the store. */
	work_tree_settle(SANDBOX_TOP, c->run);
	if (build_tree_list(path_join(c->arena, store_dir(store), "build"), c->arena, &kept.items,
			    &kept.count, e) < 0)
		return -1;
	if (args->count == 0) {
		err_set(e, ERR_USAGE, "shell needs a variant");
		return hint_trees(c, &kept, e);
	}

	const struct build_tree *tree = find_tree(c, args->items[0], &kept, e);
	if (!tree)
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
