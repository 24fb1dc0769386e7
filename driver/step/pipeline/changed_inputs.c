#include "step/pipeline/make.h"

#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "core/plan/plan.h"
#include "step/compile/build.h"

#define MAX_LINES 20

/* The key text of an earlier build, and when that was. */
struct earlier {
	const char *text; /* NULL: none */
	int64_t used;     /* seconds since the epoch */
	const char *tree; /* NULL: it is a wheel's */
};

static void from_trees(struct store *s, const struct plan *p, struct arena *a, struct earlier *ret)
{
	struct build_tree *trees;
	size_t count;

	if (build_tree_list(path_join(a, store_dir(s), "build"), a, &trees, &count, ERR_IGNORED) <
	    0)
		return;
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF struct buf text = {0};
		if (strcmp(trees[i].variant, p->variant) != 0 ||
		    strcmp(trees[i].key, p->compile_key) == 0 ||
		    fs_read(trees[i].dir, BUILD_SOURCE_OK, UINT64_C(1) << 20, &text, ERR_IGNORED) <
			    0)
			continue;
		*ret = (struct earlier){.text = arena_strdup(a, buf_cstr(&text)),
					.used = trees[i].used / 1000000000,
					.tree = trees[i].dir};
		return;
	}
}

static void from_wheels(struct store *s, const struct plan *p, struct arena *a, struct earlier *ret)
{
	struct store_object *objects;
	size_t count;

	if (store_list(s, a, &objects, &count, ERR_IGNORED) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		AUTO_JSON json_t *record = NULL;
		if (strcmp(objects[i].kind, STORE_WHEEL) != 0 || objects[i].used < ret->used ||
		    json_read(TRUSTED, path_join(a, objects[i].path, "build.json"), &record,
			      ERR_IGNORED) < 0)
			continue;
		const char *variant = json_member(record, "variant");
		const char *text = json_member(record, "compile_text");
		if (!variant || !text || strcmp(variant, p->variant) != 0)
			continue;
		if (!ret->text || strcmp(text, ret->text) != 0)
			*ret = (struct earlier){.text = arena_strdup(a, text),
						.used = objects[i].used};
	}
}

static void say(const struct run *run, const struct strlist *lines)
{
	for (size_t i = 0; i < lines->count && i < MAX_LINES; i++)
		log_info(run->log, "  %s", lines->items[i]);
	if (lines->count > MAX_LINES)
		log_info(run->log, "  and %zu more", lines->count - MAX_LINES);
}

void log_changed_inputs(struct store *s, const struct plan *p, const char *build_dir,
			const struct run *run)
{
	AUTO_ARENA struct arena a = {0};
	struct earlier before = {0};
	struct strlist lines = {0};

	if (fs_is_file(build_dir, BUILD_SOURCE_OK))
		return;
	from_trees(s, p, &a, &before);
	from_wheels(s, p, &a, &before);
	if (!before.text)
		return;
	key_diff(before.text, p->compile_text, &a, &lines);
	if (lines.count == 0)
		return;
	log_info(run->log,
		 "%s: new build tree, because inputs changed since %s was last built:", p->package,
		 p->variant);
	say(run, &lines);
	if (before.tree)
		log_info(run->log, "  the old build tree stays in '%s'", before.tree);
}

void log_packed_otherwise(struct store *s, const struct plan *p, const struct run *run)
{
	AUTO_ARENA struct arena a = {0};
	const char *const *dirs;

	for (size_t n = store_fallbacks(s, &dirs), i = 0; i < n; i++) {
		const char *top = path_join(&a, path_join(&a, dirs[i], "objects"), STORE_WHEEL);
		struct strlist keys = {0}, lines = {0};
		if (fs_list(TRUSTED, top, &a, &keys, ERR_IGNORED) < 0)
			continue;
		for (size_t k = 0; k < keys.count && !lines.count; k++) {
			AUTO_JSON json_t *record = NULL;
			const char *path =
				path_join(&a, path_join(&a, top, keys.items[k]), "build.json");
			if (json_read(TRUSTED, path, &record, ERR_IGNORED) < 0 ||
			    strcmp(json_text(record, "compile_key"), p->compile_key) != 0 ||
			    strcmp(json_text(record, "pack_key"), p->pack_key) == 0 ||
			    !*json_text(record, "output_text"))
				continue;
			key_diff(json_text(record, "output_text"), p->output_text, &a, &lines);
		}

		if (!lines.count)
			continue;
		log_info(run->log,
			 "%s: '%s' has a wheel of the same build made by another ptbuild, which is "
			 "not taken:",
			 p->package, dirs[i]);
		say(run, &lines);
	}
}

const struct plan *plan_of_tree(const struct plan *p, const char *build_dir, const struct run *run,
				struct arena *a)
{
	static const char note[] = "sources were changed by hand in 'ptbuild shell': no later "
				   "build uses this wheel";
	AUTO_BUF struct buf mark = {0};

	if (!fs_exists(build_dir, BUILD_TREE_CHANGED))
		return p;
	(void)!fs_read(build_dir, BUILD_TREE_CHANGED, DIGEST_HEX_LEN, &mark, ERR_IGNORED);
	struct plan *own = arena_alloc(a, sizeof(*own));
	*own = *p;
	own->output_text =
		arena_printf(a, "%schanged by hand: %s\n", p->output_text, buf_cstr(&mark));
	digest_data(own->output_text, strlen(own->output_text), own->output_key);
	const char *pack = arena_printf(a, "%s %s", p->pack_key, buf_cstr(&mark));
	digest_data(pack, strlen(pack), own->pack_key);
	strlist_add(&own->notes, a, note);
	log_warn(run->log, "%s: %s", p->package, note);
	return own;
}
