#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cache/store.h"
#include "cmd/cmd.h"

struct cache_options {
	struct cmd_globals global;
	const char *max_size;
	const char *keep_days;
	bool dry_run;
};

int cmd_keep_days(const char *text, int64_t *ret, struct err *e)
{
	char *end;

	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	bool is_number = text[0] >= '0' && text[0] <= '9' && !*end;
	if (!is_number || errno || n > 36500)
		return err_set(e, ERR_USAGE, "option '--keep-days': not a number of days: '%s'",
			       text);
	*ret = (int64_t)n * 86400;
	return 0;
}

#define FIELD(member) JSON_FIELD(struct store_object, member)
JSON_FIELDS(object_fields, FIELD(kind), FIELD(key), FIELD(bytes), FIELD(used));

static json_t *objects_json(const struct store_object *o, size_t count)
{
	return json_rows(o, count, sizeof(*o), object_fields);
}

JSON_FIELDS(usage_fields, JSON_FIELD(struct store_usage, kind),
	    JSON_FIELD(struct store_usage, count), JSON_FIELD(struct store_usage, bytes),
	    JSON_AS(struct store_usage, oldest, "oldest_use"));

static const struct show info_rows[] = {
	{.text = "{dir}"},
	{.each = "kinds",
	 .columns = {"kind", ">count", ">size={bytes:MiB}", "oldest use={oldest_use:ago} ago"}},
	SHOW("total", "{-total:MiB}"),
	SHOW("free space", "{free_bytes:MiB}"),
	SHOW("fallback", "{}", .each = "lower"),
	{.text = "{!kinds}{!free_bytes}empty: no build or fetch has made a store here"},
	{.text = "{!kinds}{?free_bytes}empty"},
	{0}};

/* The store that is there. */
struct existing {
	bool named; /* one of --cache must exist */
	int (*open)(struct cmd_context *c, struct store **ret, struct err *e);
	const char *dir;
	struct store *store; /* NULL: none */
};

/* Opens it, without creating one. */
static int find_store(struct cmd_context *c, struct existing *x, struct err *e)
{
	struct stat st;

	if (cmd_cache_dir(c, &x->dir, e) < 0)
		return -1;
	const bool there = stat(x->dir, &st) == 0;
	if (!there && errno != ENOENT)
		return err_errno(e, ERR_SYSTEM, "cannot look at the store '%s'", x->dir);
	if (!there && x->named && c->global->cache) {
		err_set(e, ERR_USAGE, "no store in '%s'", x->dir);
		return err_hint(e, "a build or fetch makes one");
	}

	if (!there)
		return 0;
	if (x->open(c, &x->store, e) < 0)
		return -1;
	x->dir = store_dir(x->store);
	return 0;
}

static int cache_info(struct cmd_context *c, const char *name, struct err *e)
{
	struct existing x = {.open = cmd_store_read};
	const char *const *lowers = NULL;
	struct store_usage *rows = NULL;
	struct store_object *objects = NULL, *builds = NULL;
	size_t count = 0, objects_count = 0, builds_count = 0;
	uint64_t free_bytes = 0, total = 0;

	(void)name;
	if (find_store(c, &x, e) < 0)
		return -1;
	struct store *s = x.store;
	const char *dir = x.dir;
	if (s && store_usage(s, c->run, c->arena, &rows, &count, e) < 0)
		return -1;
	if (s && fs_free_bytes(dir, &free_bytes, e) < 0)
		return -1;
	if (s && store_list(s, c->arena, &objects, &objects_count, e) < 0)
		return -1;
	if (s && store_list_builds(s, c->arena, &builds, &builds_count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		total += rows[i].bytes;
	const size_t lowers_count = s ? store_fallbacks(s, &lowers) : 0;
	json_t *doc = json_pack(
		"{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o*}", "schema", 1, "dir", json_or_null(dir),
		"free_bytes", s ? json_integer((json_int_t)free_bytes) : json_null(), "kinds",
		json_rows(rows, count, sizeof(*rows), usage_fields), "lower",
		json_from_strings(lowers, lowers_count), "objects",
		objects_json(objects, objects_count), "builds", objects_json(builds, builds_count),
		"-total", s ? json_integer((json_int_t)total) : NULL);
	return cmd_show(c, doc, info_rows, e);
}

static const struct show verify_rows[] = {
	{.text = "{error}[{?quarantined} (moved to the quarantine)][{?-busy} (in use, so it stays "
		 "for now)]",
	 .each = "wrong"},
	{.text = "{checked} object{checked:s} checked ({bytes:MiB}), {wrong:#} wrong"},
	{0}};

static json_t *checks_json(const char *dir, const struct store_checks *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->wrong; i++) {
		const struct store_check *k = &r->items[i];
		json_t *row = json_object();
		json_add(row, &k->object, object_fields);
		json_object_update_new(row, json_pack("{s:s, s:b, s:b}", "error", k->why.msg,
						      "quarantined", k->fate == STORE_WRONG_MOVED,
						      "-busy", k->fate == STORE_WRONG_BUSY));
		json_array_append_new(list, row);
	}

	return json_pack("{s:i, s:o, s:I, s:I, s:o}", "schema", 1, "dir", json_or_null(dir),
			 "checked", (json_int_t)r->checked, "bytes", (json_int_t)r->bytes, "wrong",
			 list);
}

static int cache_verify(struct cmd_context *c, const char *name, struct err *e)
{
	struct existing x = {.named = true, .open = cmd_store_read};
	const struct cache_options *o = c->options;
	struct store_checks r = {0};

	(void)name;
	if (find_store(c, &x, e) < 0)
		return -1;
	struct store *s = x.store;
	const char *dir = x.dir;
	bool move = s && !o->dry_run && !store_is_read_only(s);
	if ((s && store_verify_all(s, move, machine_processors(), c->run, c->arena, &r, e) < 0) ||
	    cmd_show(c, checks_json(dir, &r), verify_rows, e) < 0)
		return -1;
	for (size_t i = 0; i < r.wrong; i++)
		/* could not be read, which says nothing of its bytes */
		if (r.items[i].why.kind != ERR_INTEGRITY)
			return err_take(e, &r.items[i].why);
	if (r.wrong == 0)
		return 0;
	err_set(e, ERR_INTEGRITY, "%zu of %zu object%s in '%s' changed after publication", r.wrong,
		r.checked, plural(r.checked), dir);
	if (store_is_read_only(s))
		return err_hint(e, "they stay: the store cannot be written");
	return err_hint(e, o->dry_run ? "run 'ptbuild cache verify' without --dry-run: it moves "
					"them away, and ptbuild recreates them when needed"
				      : "moved to 'quarantine' in the store until 'ptbuild cache "
					"gc'; ptbuild recreates them when needed");
}

static const struct show gc_rows[] = {
	{.text = "[{!dry_run}removed][{?dry_run}would remove] {kind} {key:.16}, {bytes:MiB}",
	 .each = "removed"},
	{.text = "{removed_bytes:MiB}[{!dry_run} removed][{?dry_run} would go], {kept_bytes:MiB} "
		 "stay[{?busy} ({busy} in use)][{?young} ({young} used within the last hour)]"},
	{0}};

static int cache_gc(struct cmd_context *c, const char *name, struct err *e)
{
	struct existing x = {.named = true, .open = cmd_store};
	const struct cache_options *o = c->options;
	struct gc_options q = {
		.keep_seconds = -1, .grace_seconds = GC_GRACE_SECONDS, .dry_run = o->dry_run};
	struct gc_result r = {0};
	uint64_t max_bytes = 0;

	if (!o->max_size && !o->keep_days) {
		err_set(e, ERR_USAGE, "cache gc needs to know what it may remove");
		return err_hint(e, "pass --keep-days N, --max-size SIZE or both; with --dry-run "
				   "nothing is removed");
	}

	if (o->max_size && size_parse(o->max_size, &max_bytes, e) < 0) {
		e->kind = ERR_USAGE;
		return err_wrap(e, "option '--max-size'");
	}

	q.max_bytes = o->max_size ? (int64_t)max_bytes : -1;
	if (o->keep_days && cmd_keep_days(o->keep_days, &q.keep_seconds, e) < 0)
		return -1;
	(void)name;
	if (find_store(c, &x, e) < 0 ||
	    (x.store && store_gc(x.store, &q, c->run, c->arena, &r, e) < 0))
		return -1;
	json_t *doc = json_pack("{s:i, s:o, s:b, s:o, s:I, s:I, s:I, s:I, s:I}", "schema", 1, "dir",
				json_or_null(x.dir), "dry_run", o->dry_run, "removed",
				objects_json(r.removed, r.count), "removed_bytes",
				(json_int_t)r.removed_bytes, "kept", (json_int_t)r.kept,
				"kept_bytes", (json_int_t)r.kept_bytes, "busy", (json_int_t)r.busy,
				"young", (json_int_t)r.young);
	return cmd_show(c, doc, gc_rows, e);
}

static int run_cache(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	static const struct cmd_action actions[] = {
		{"info", "", false, cache_info},
		{"verify", " dry-run ", false, cache_verify},
		{"gc", " max-size keep-days dry-run ", false, cache_gc}};

	return cmd_action(c, actions, ARRAY_LEN(actions), args, e);
}

#define OPTION(type, field) (type), offsetof(struct cache_options, field)

static const struct arg_def cache_options[] = {
	{"max-size", 0, OPTION(ARG_STRING, max_size), "SIZE",
	 "gc: remove the least recently used until the store has this size at most, for example "
	 "20G",
	 NULL},
	{"keep-days", 0, OPTION(ARG_STRING, keep_days), "N",
	 "gc: remove what was not used for N days", NULL},
	{"dry-run", 'n', OPTION(ARG_FLAG, dry_run), NULL,
	 "gc, verify: show what would be removed or moved away, and do nothing", NULL},
	{0},
};

const struct command command_cache = {
	.name = "cache",
	.summary = "show, check or clean the store",
	.usage = "info|verify|gc [options]",
	.tables = {cache_options},
	.arguments = {{"ACTION",
		       "info: show the contents; verify: hash everything again and move away what "
		       "is damaged; gc: "
		       "remove what is old",
		       "info verify gc"}},
	.options_size = sizeof(struct cache_options),
	.run = run_cache,
};
