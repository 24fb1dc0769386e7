/* "ptbuild world make", "verify" and "gc". */

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "base/text.h"
#include "cache/gc.h"
#include "cache/world.h"
#include "cmd/cost.h"
#include "cmd/world.h"
#include "step/pipeline/pipeline_world.h"
#include "step/pipeline/pipeline_world_copy.h"

static int load(struct cmd_context *c, const char *name, const char **ret_profiles, const struct world **ret,
		struct err *e)
{
	const char *platform;
	if (world_platform(c, &platform, e) < 0 || cmd_profiles_dir(c, ret_profiles, e) < 0)
		return -1;
	return world_load(*ret_profiles, name, platform, c->arena, ret, e);
}

/* Each line of a world with drift says so. */
#define ROW(words)                                                                                                     \
	{                                                                                                              \
		.text = "[{?drift}drift: ]" words                                                                      \
	}

static const struct show drift_rows[] = {ROW("  in place  {}"), {0}};
static const struct show made_rows[] = {
	ROW("{name} {platform}"),
	ROW("  dir       {dir}"),
	ROW("  copy      {copy}[: it was there and stays; gone or changed in it: {?copy_differs}{copy_differs} of the "
	    "world's files, first '{-first}'; remove it for a new copy][{?-there}: it was there]"),
	ROW("  key       {key}"),
	ROW("  size      {bytes:MB}"),
	{.each = "drift", .rows = drift_rows},
	ROW("  files     {!hit}{downloaded} downloaded ({downloaded_bytes:MB} in {-fetching:.1} s), {from_store} were "
	    "in the store"),
	ROW("  {?hit}it was there"),
	ROW("  seconds   {seconds:.1}"),
	{0}};

/* A copy that was there stays, whatever became of it: who has it made again is told. `copy`: NULL, or the directory
 * that it was copied to. */
static int print_made(struct cmd_context *c, const struct world *w, const struct world_result *r, const char *copy,
		      const struct world_copied *copied, struct err *e)
{
	static const struct show quiet[] = {{.text = "[{copy}][{!copy}{dir}]"}, {0}};
	uint64_t bytes = 0;
	if (fs_tree_size(r->dir, &bytes, e) < 0)
		return -1;
	json_t *doc = json_pack("{s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:I, s:I, s:i, s:i, s:f, s:f, s:b, s:o}",
				"schema", 1, "name", w->name, "platform", w->platform, "key", r->key, "dir",
				json_or_null(r->dir), "copy", json_or_null(copy), "copy_differs",
				copied->there ? json_integer((json_int_t)copied->differ) : json_null(), "hit", r->hit,
				"drift", json_from_strlist(&r->drift), "bytes", (json_int_t)bytes, "downloaded_bytes",
				(json_int_t)r->fetched.bytes, "downloaded", (int)r->fetched.downloaded, "from_store",
				(int)r->fetched.from_store, "seconds", r->seconds, "-fetching", r->fetched.seconds,
				"-there", copied->there && !copied->differ, "-first",
				json_or_null(copied->first ? utf8_printable(copied->first, c->arena) : NULL));
	return cmd_show(c, doc, c->global->quiet ? quiet : made_rows, e);
}

int world_make(struct cmd_context *c, const char *name, struct err *e)
{
	const struct world_options *o = c->options;
	struct world_request q = {.no_drift = c->global->no_drift,
				  .jobs = c->global->jobs ? c->global->jobs : machine_processors(),
				  .keyring = o->keyring ? cmd_absolute(c->arena, o->keyring) : NULL};
	struct world_result r = {.use = LOCK_NONE};
	struct world_copied copied = {0};
	const char *copy = o->copy ? cmd_absolute(c->arena, o->copy) : NULL;
	const char *store_dir, *made = NULL;
	bool there;
	if (load(c, name, &q.profiles, &q.world, e) < 0 || cmd_fetch_options(c, &q.fetch, e) < 0 ||
	    cmd_cache_dir(c, &store_dir, e) < 0 || (copy && world_copy_place(copy, store_dir, c->arena, e) < 0) ||
	    (copy && world_copy_look(copy, q.world->name, NULL, c->arena, &there, e) < 0) ||
	    cmd_store(c, &q.store, e) < 0 || store_world_find(q.store, q.world->key, c->arena, &made, e) < 0 ||
	    (!made && !c->global->offline && cmd_needs_space(c, q.world, e) < 0) ||
	    world_ensure(&q, c->run, c->arena, &r, e) < 0)
		return -1;
	const double start = log_seconds();
	int rc = copy ? world_copy(r.dir, copy, r.world->name, r.key, c->run, c->arena, &copied, e) : 0;
	r.seconds += log_seconds() - start;
	if (rc == 0)
		rc = print_made(c, q.world, &r, copy, &copied, e);
	lock_release(&r.use);
	return rc;
}

/* The store's object of a made world; a stamp that names another key is one that was changed. */
static int check_world(struct cmd_context *c, const struct world *w, const char *dir, struct err *e)
{
	const struct store_object o = {.kind = STORE_WORLD, .key = w->key, .path = path_dir(c->arena, dir)};
	char *name, *key;
	if (store_verify(&o, c->run, e) < 0)
		return -1;
	int stamped = world_read_stamp(dir, c->arena, &name, &key, e);
	if (stamped < 0)
		return -1;
	if (!stamped || strcmp(name, w->name) != 0 || strcmp(key, w->key) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s/%s' does not name '%s' with the key %s of its locks", dir,
			       WORLD_STAMP, w->name, w->key);
	return 0;
}

int world_verify(struct cmd_context *c, const char *name, struct err *e)
{
	const struct world *w;
	const char *profiles, *dir = NULL, *store_dir;
	struct store *s;
	if (load(c, name, &profiles, &w, e) < 0 || cmd_cache_dir(c, &store_dir, e) < 0)
		return -1;
	if (fs_exists(TRUSTED, store_dir) &&
	    (cmd_store_read(c, &s, e) < 0 || store_world_find(s, w->key, c->arena, &dir, e) < 0))
		return -1;
	if (!dir) {
		err_set(e, ERR_CONFIG, "the world '%s' for %s is not made", w->name, w->platform);
		return err_hint(e, "make it: %s", world_command(c, "make", w->name, w->platform));
	}
	double start = log_seconds();
	log_wait(c->run->log, "%s: hashing", w->name);
	if (check_world(c, w, dir, e) < 0) {
		if (e->kind != ERR_INTEGRITY)
			return -1;
		return err_hint(e, "'ptbuild cache verify%s%s' moves it out of the way, and '%s' makes it anew",
				c->global->cache ? " --cache " : "",
				c->global->cache ? shell_quoted(c->global->cache, c->arena) : "",
				world_command(c, "make", w->name, w->platform));
	}
	static const struct show rows[] = {{.text = "{name} {platform}: as it was made, {seconds:.1} s ({dir})"}, {0}};
	if (c->global->quiet && !c->global->json)
		return 0;
	json_t *doc = json_pack("{s:i, s:s, s:s, s:s, s:o, s:f}", "schema", 1, "name", w->name, "platform", w->platform,
				"key", w->key, "dir", json_or_null(dir), "seconds", log_seconds() - start);
	return cmd_show(c, doc, rows, e);
}

/* What the tables of today would make under the name that the object has. */
static bool is_named(const char *profiles, const struct store_object *o)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = NULL;
	const struct world *w;
	const char *name = NULL, *platform = NULL;
	if (json_read(TRUSTED, path_join(&a, o->path, "world.json"), &doc, ERR_IGNORED) < 0 ||
	    json_unpack(doc, "{s:s, s:s}", "name", &name, "platform", &platform) < 0 ||
	    world_load(profiles, name, platform, &a, &w, ERR_IGNORED) < 0)
		return false;
	return strcmp(w->key, o->key) == 0;
}

static bool unwanted(void *user, const struct store_object *o)
{
	return !is_named(user, o);
}

static const struct show gc_rows[] = {
	{.text = "[{!dry_run}removed][{?dry_run}would remove] {key:.16}, {bytes:MB}", .each = "removed"},
	{.text = "{removed:#} worlds, {removed_bytes:MB}[{!dry_run} removed][{?dry_run}, would go]; {kept} "
		 "stay[{?busy} ({busy} in use)]"},
	{0}};

static json_t *gc_json(const struct gc_result *r, bool dry_run)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < r->count; i++)
		json_array_append_new(rows, json_pack("{s:s, s:o, s:I}", "key", r->removed[i].key, "dir",
						      json_or_null(r->removed[i].path), "bytes",
						      (json_int_t)r->removed[i].bytes));
	return json_pack("{s:i, s:b, s:o, s:I, s:I, s:I}", "schema", 1, "dry_run", dry_run, "removed", rows,
			 "removed_bytes", (json_int_t)r->removed_bytes, "kept", (json_int_t)r->kept, "busy",
			 (json_int_t)r->busy);
}

int world_gc(struct cmd_context *c, const char *name, struct err *e)
{
	const struct world_options *o = c->options;
	struct gc_options q = {.keep_seconds = -1,
			       .max_bytes = -1,
			       .grace_seconds = GC_GRACE_SECONDS,
			       .dry_run = o->dry_run,
			       .kind = STORE_WORLD,
			       .unwanted = unwanted};
	struct gc_result r = {0};
	const char *dir, *profiles;
	struct store *s;
	(void)name;
	if ((o->keep_days && cmd_keep_days(o->keep_days, &q.keep_seconds, e) < 0) || cmd_cache_dir(c, &dir, e) < 0 ||
	    cmd_profiles_dir(c, &profiles, e) < 0)
		return -1;
	q.user = (void *)(uintptr_t)profiles;
	if (fs_exists(TRUSTED, dir) && (cmd_store(c, &s, e) < 0 || store_gc(s, &q, c->run, c->arena, &r, e) < 0))
		return -1;
	return cmd_show(c, gc_json(&r, o->dry_run), gc_rows, e);
}
