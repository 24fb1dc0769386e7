#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/path.h"
#include "base/size.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cache/gc.h"
#include "cache/verify.h"
#include "cmd/help.h"

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
	if (text[0] < '0' || text[0] > '9' || *end || errno || n > 36500)
		return err_set(e, ERR_USAGE, "option '--keep-days': not a number of days: '%s'", text);
	*ret = (int64_t)n * 86400;
	return 0;
}

static const char *size_text(uint64_t bytes, struct arena *a)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double n = (double)bytes;
	size_t i = 0;
	for (; n >= 1024 && i + 1 < ARRAY_LEN(units); i++)
		n /= 1024;
	return arena_printf(a, i ? "%.1f %s" : "%.0f %s", n, units[i]);
}

static json_t *object_json(const struct store_object *o)
{
	return json_pack("{s:s, s:s, s:I, s:I}", "kind", o->kind, "key", o->key, "bytes", (json_int_t)o->bytes, "used",
			 (json_int_t)o->used);
}

static json_t *objects_json(const struct store_object *o, size_t count)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, object_json(&o[i]));
	return list;
}

/* How long it was not used: "3 days". */
static const char *age_text(int64_t used, struct arena *a)
{
	int64_t s = (int64_t)time(NULL) - used;
	if (s < 7200)
		return arena_printf(a, "%lld min", (long long)(s > 0 ? s / 60 : 0));
	return s < 172800 ? arena_printf(a, "%lld h", (long long)(s / 3600))
			  : arena_printf(a, "%lld days", (long long)(s / 86400));
}

static json_t *usage_json(const struct store_usage *rows, size_t count)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I}", "kind", rows[i].kind, "count",
						      (json_int_t)rows[i].count, "bytes", (json_int_t)rows[i].bytes,
						      "oldest_use", (json_int_t)rows[i].oldest));
	return list;
}

static json_t *lowers_json(const struct store *s)
{
	const char *const *dirs;
	json_t *list = json_array();
	size_t count = store_fallbacks(s, &dirs);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_or_null(dirs[i]));
	return list;
}

static int info_json(struct cmd_context *c, struct store *s, const struct store_usage *rows, size_t rows_count,
		     uint64_t free_bytes, struct err *e)
{
	struct store_object *objects, *builds;
	size_t objects_count, builds_count;
	if (store_list(s, c->arena, &objects, &objects_count, e) < 0 ||
	    store_list_builds(s, c->arena, &builds, &builds_count, e) < 0)
		return -1;
	AUTO_JSON json_t *doc = json_pack(
		"{s:i, s:o, s:I, s:o, s:o, s:o, s:o}", "schema", 1, "dir", json_or_null(store_dir(s)), "free_bytes",
		(json_int_t)free_bytes, "kinds", usage_json(rows, rows_count), "lower", lowers_json(s), "objects",
		objects_json(objects, objects_count), "builds", objects_json(builds, builds_count));
	return json_print(doc, e);
}

static int cache_info(struct cmd_context *c, struct store *s, struct err *e)
{
	struct store_usage *rows;
	size_t count;
	uint64_t free_bytes, total = 0;
	if (store_usage(s, c->run, c->arena, &rows, &count, e) < 0 || fs_free_bytes(store_dir(s), &free_bytes, e) < 0)
		return -1;
	if (c->global->json)
		return info_json(c, s, rows, count, free_bytes, e);
	AUTO_BUF struct buf out = {0};
	const char *const *lowers;
	size_t lowers_count = store_fallbacks(s, &lowers);
	buf_printf(&out, "%s\n", store_dir(s));
	for (size_t i = 0; i < count; i++) {
		buf_printf(&out, "%-12s %7zu  %-10s  oldest use %s ago\n", rows[i].kind, rows[i].count,
			   size_text(rows[i].bytes, c->arena), age_text(rows[i].oldest, c->arena));
		total += rows[i].bytes;
	}
	if (count == 0)
		buf_addstr(&out, "empty\n");
	buf_printf(&out, "%-12s %7s  %s\n", "total", "", size_text(total, c->arena));
	buf_printf(&out, "%-12s %7s  %s\n", "free space", "", size_text(free_bytes, c->arena));
	for (size_t i = 0; i < lowers_count; i++)
		buf_printf(&out, "fallback     %s\n", lowers[i]);
	return cmd_write_stdout(&out, e);
}

/* What became of a damaged object. */
static const char *const fates[] = {[STORE_WRONG_KEPT] = "",
				    [STORE_WRONG_MOVED] = " (moved to the quarantine)",
				    [STORE_WRONG_BUSY] = " (in use, so it stays for now)"};

static json_t *wrong_json(const struct store_check *k)
{
	json_t *row = object_json(&k->object);
	json_object_set_new(row, "error", json_string(k->why.msg));
	json_object_set_new(row, "quarantined", json_boolean(k->fate == STORE_WRONG_MOVED));
	return row;
}

static int print_checks(struct cmd_context *c, struct store *s, const struct store_checks *r, struct err *e)
{
	if (c->global->json) {
		json_t *list = json_array();
		for (size_t i = 0; i < r->wrong; i++)
			json_array_append_new(list, wrong_json(&r->items[i]));
		AUTO_JSON json_t *doc =
			json_pack("{s:i, s:o, s:I, s:I, s:o}", "schema", 1, "dir", json_or_null(store_dir(s)),
				  "checked", (json_int_t)r->checked, "bytes", (json_int_t)r->bytes, "wrong", list);
		return json_print(doc, e);
	}
	AUTO_BUF struct buf out = {0};
	for (size_t i = 0; i < r->wrong; i++)
		buf_printf(&out, "%s%s\n", r->items[i].why.msg, fates[r->items[i].fate]);
	buf_printf(&out, "%zu objects checked (%s), %zu wrong\n", r->checked, size_text(r->bytes, c->arena), r->wrong);
	return cmd_write_stdout(&out, e);
}

static int cache_verify(struct cmd_context *c, struct store *s, struct err *e)
{
	const struct cache_options *o = c->options;
	struct store_checks r;
	bool move = !o->dry_run && !store_is_read_only(s);
	if (store_verify_all(s, move, machine_processors(), c->run, c->arena, &r, e) < 0 ||
	    print_checks(c, s, &r, e) < 0)
		return -1;
	for (size_t i = 0; i < r.wrong; i++) {
		if (r.items[i].why.kind != ERR_INTEGRITY) { /* could not be read, which says nothing of its bytes */
			*e = r.items[i].why;
			return -1;
		}
	}
	if (r.wrong == 0)
		return 0;
	err_set(e, ERR_INTEGRITY, "%zu of %zu objects in '%s' changed after they were published", r.wrong, r.checked,
		store_dir(s));
	if (store_is_read_only(s))
		return err_hint(e, "they stay: the store cannot be written");
	return err_hint(e, o->dry_run ? "'ptbuild cache verify' without --dry-run moves them out of the way, so that "
					"they are made anew"
				      : "they lie in 'quarantine' there until 'cache gc' removes them; what is missing "
					"is made anew when it is wanted");
}

static int cache_gc(struct cmd_context *c, struct store *s, struct err *e)
{
	const struct cache_options *o = c->options;
	struct gc_options q = {.keep_seconds = -1, .grace_seconds = GC_GRACE_SECONDS, .dry_run = o->dry_run};
	struct gc_result r;
	uint64_t max_bytes = 0;
	if (!o->max_size && !o->keep_days) {
		err_set(e, ERR_USAGE, "cache gc needs to know what it may remove");
		return err_hint(e, "pass --keep-days N, --max-size SIZE or both; with --dry-run nothing is removed");
	}
	if (o->max_size && size_parse(o->max_size, &max_bytes, e) < 0) {
		e->kind = ERR_USAGE;
		return err_wrap(e, "option '--max-size'");
	}
	q.max_bytes = o->max_size ? (int64_t)max_bytes : -1;
	if (o->keep_days && cmd_keep_days(o->keep_days, &q.keep_seconds, e) < 0)
		return -1;
	if (store_gc(s, &q, c->run, c->arena, &r, e) < 0)
		return -1;
	if (c->global->json) {
		AUTO_JSON json_t *doc = json_pack("{s:i, s:o, s:b, s:o, s:I, s:I, s:I, s:I}", "schema", 1, "dir",
						  json_or_null(store_dir(s)), "dry_run", o->dry_run, "removed",
						  objects_json(r.removed, r.count), "removed_bytes",
						  (json_int_t)r.removed_bytes, "kept", (json_int_t)r.kept, "kept_bytes",
						  (json_int_t)r.kept_bytes, "busy", (json_int_t)r.busy);
		return json_print(doc, e);
	}
	AUTO_BUF struct buf out = {0};
	for (size_t i = 0; i < r.count; i++)
		buf_printf(&out, "%s %s %.16s, %s\n", o->dry_run ? "would remove" : "removed", r.removed[i].kind,
			   r.removed[i].key, size_text(r.removed[i].bytes, c->arena));
	buf_printf(&out, "%s%s, %s stay", size_text(r.removed_bytes, c->arena), o->dry_run ? " would go" : " removed",
		   size_text(r.kept_bytes, c->arena));
	if (r.busy)
		buf_printf(&out, " (%zu in use)", r.busy);
	buf_addc(&out, '\n');
	return cmd_write_stdout(&out, e);
}

/* Looking at a store does not make one. */
static int no_store(struct cmd_context *c, const char *dir, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	if (c->global->json) {
		AUTO_JSON json_t *doc =
			json_pack("{s:i, s:o, s:n, s:[], s:[], s:[], s:[]}", "schema", 1, "dir", json_or_null(dir),
				  "free_bytes", "kinds", "lower", "objects", "builds");
		return json_print(doc, e);
	}
	buf_printf(&out, "%s\nempty: no build or fetch has made a store here\n", dir);
	return cmd_write_stdout(&out, e);
}

/* Options that the action has no use for. */
static int refuse_options(const struct cache_options *o, const char *action, struct err *e)
{
	bool gc = strcmp(action, "gc") == 0;
	const char *wrong = !gc && o->max_size                          ? "--max-size"
			    : !gc && o->keep_days                       ? "--keep-days"
			    : o->dry_run && strcmp(action, "info") == 0 ? "--dry-run"
									: NULL;
	return wrong ? err_set(e, ERR_USAGE, "cache %s does not take %s", action, wrong) : 0;
}

static int run_cache(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	static const struct {
		const char *name;
		int (*run)(struct cmd_context *c, struct store *s, struct err *e);
		int (*store)(struct cmd_context *c, struct store **ret, struct err *e);
	} actions[] = {{"info", cache_info, cmd_store_read},
		       {"verify", cache_verify, cmd_store_read},
		       {"gc", cache_gc, cmd_store}};
	struct store *s;
	const char *dir;
	if (cmd_cache_dir(c, &dir, e) < 0)
		return -1;
	if (args->count != 1) {
		err_set(e, ERR_USAGE, "cache takes one action, not %zu", args->count);
		return err_hint(e, "it is info, verify or gc");
	}
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (strcmp(args->items[0], actions[i].name) == 0 && refuse_options(c->options, actions[i].name, e) < 0)
			return -1;
		else if (strcmp(args->items[0], actions[i].name) == 0)
			return actions[i].run == cache_info && !fs_exists(TRUSTED, dir) ? no_store(c, dir, e)
			       : actions[i].store(c, &s, e) < 0                         ? -1
											: actions[i].run(c, s, e);
	err_set(e, ERR_USAGE, "not an action of cache: '%s'", args->items[0]);
	return err_hint(e, "it is info, verify or gc");
}

#define OPTION(type, field) (type), offsetof(struct cache_options, field)

static const struct arg_def cache_options[] = {
	{"max-size", 0, OPTION(ARG_STRING, max_size), "SIZE",
	 "gc: remove the least recently used until the store has this size at most, for example 20G", NULL},
	{"keep-days", 0, OPTION(ARG_STRING, keep_days), "N", "gc: remove what was not used for N days", NULL},
	{"dry-run", 'n', OPTION(ARG_FLAG, dry_run), NULL,
	 "gc, verify: show what would be removed or moved away, and do nothing", NULL},
	{0},
};

const struct command command_cache = {
	.name = "cache",
	.summary = "show, check or clean the store",
	.usage = "info|verify|gc [options]",
	.text = "The store keeps source archives, finished wheels, build trees and the compiler cache. Nothing that is "
		"in use or was used within the last hour is removed.",
	.tables = {cache_options},
	.arguments = {{"ACTION",
		       "info: show the contents; verify: hash everything again and move away what is damaged; gc: "
		       "remove what is old",
		       "info verify gc"}},
	.examples = {{"ptbuild cache gc --keep-days 30 --max-size 50G --dry-run", "see what would be removed"}},
	.options_size = sizeof(struct cache_options),
	.run = run_cache,
};
