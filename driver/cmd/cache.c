#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "cache/gc.h"
#include "cmd/help.h"

#define GRACE_SECONDS 3600

struct cache_options {
	struct cmd_globals global;
	const char *max_size;
	const char *keep_days;
	bool dry_run;
	bool repair;
};

/* "20G", "500M", "1024": binary multiples. */
static int parse_size(const char *text, int64_t *ret, struct err *e)
{
	static const char units[] = "KMGT";
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (text[0] < '0' || text[0] > '9' || errno || (*end && (!unit || end[1])) || n > (unsigned long long)INT64_MAX >> shift) {
		err_set(e, ERR_USAGE, "--max-size '%s' is no size", text);
		return err_hint(e, "a number of bytes, or one with K, M, G or T: 20G");
	}
	*ret = (int64_t)(n << shift);
	return 0;
}

static int parse_days(const char *text, int64_t *ret, struct err *e)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || n > 36500)
		return err_set(e, ERR_USAGE, "--keep-days '%s' is no number of days", text);
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

struct contents {
	struct store_object *objects, *builds;
	size_t objects_count, builds_count;
};

static int read_contents(struct cmd_context *c, struct store *s, struct contents *ret, struct err *e)
{
	if (store_list(s, c->arena, &ret->objects, &ret->objects_count, e) < 0)
		return -1;
	return store_list_builds(s, c->arena, &ret->builds, &ret->builds_count, e);
}

/* One line per run of objects of the same kind: the list is sorted by it. */
static void kinds_text(const struct store_object *o, size_t count, struct arena *a, struct buf *out)
{
	for (size_t i = 0; i < count;) {
		uint64_t bytes = 0;
		size_t first = i;
		for (; i < count && strcmp(o[i].kind, o[first].kind) == 0; i++)
			bytes += o[i].bytes;
		buf_printf(out, "%-12s %6zu  %s\n", o[first].kind, i - first, size_text(bytes, a));
	}
}

static int cache_info(struct cmd_context *c, struct store *s, struct err *e)
{
	struct contents all;
	uint64_t free_bytes;
	if (read_contents(c, s, &all, e) < 0 || fs_free_bytes(store_dir(s), &free_bytes, e) < 0)
		return -1;
	if (c->global->json) {
		AUTO_JSON json_t *doc = json_pack("{s:i, s:s, s:I, s:o, s:o}", "schema", 1, "dir", store_dir(s), "free_bytes",
						  (json_int_t)free_bytes, "objects", objects_json(all.objects, all.objects_count), "builds",
						  objects_json(all.builds, all.builds_count));
		return json_print(doc, e);
	}
	AUTO_BUF struct buf out = {0};
	buf_printf(&out, "%s\n", store_dir(s));
	kinds_text(all.objects, all.objects_count, c->arena, &out);
	kinds_text(all.builds, all.builds_count, c->arena, &out);
	if (all.objects_count + all.builds_count == 0)
		buf_addstr(&out, "empty\n");
	buf_printf(&out, "free space   %s\n", size_text(free_bytes, c->arena));
	return cmd_write_stdout(&out, e);
}

static int report_wrong(struct cmd_context *c, const struct store_object *o, const struct err *why, bool moved, json_t *list,
			struct buf *out)
{
	json_t *row = object_json(o);
	json_object_set_new(row, "error", json_string(why->msg));
	json_object_set_new(row, "quarantined", json_boolean(moved));
	buf_printf(out, "%s%s\n", why->msg, moved ? " (moved to the quarantine)" : "");
	(void)c;
	return json_array_append_new(list, row);
}

static int cache_verify(struct cmd_context *c, struct store *s, struct err *e)
{
	const struct cache_options *o = c->options;
	struct store_object *objects;
	size_t count, wrong = 0;
	AUTO_JSON json_t *list = json_array();
	AUTO_BUF struct buf out = {0};
	if (store_list(s, c->arena, &objects, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct err why = {0};
		log_status(c->run->log, "checking %zu of %zu: %s %.12s", i + 1, count, objects[i].kind, objects[i].key);
		if (store_verify(s, &objects[i], c->run, &why) == 0)
			continue;
		if (why.kind != ERR_INTEGRITY) {
			*e = why;
			return -1;
		}
		if (o->repair && store_quarantine(s, &objects[i], e) < 0)
			return -1;
		wrong++;
		report_wrong(c, &objects[i], &why, o->repair, list, &out);
	}
	log_status_end(c->run->log);
	if (c->global->json) {
		AUTO_JSON json_t *doc =
			json_pack("{s:i, s:s, s:I, s:O}", "schema", 1, "dir", store_dir(s), "checked", (json_int_t)count, "wrong", list);
		if (json_print(doc, e) < 0)
			return -1;
	} else {
		buf_printf(&out, "%zu objects checked, %zu wrong\n", count, wrong);
		if (cmd_write_stdout(&out, e) < 0)
			return -1;
	}
	if (wrong == 0 || o->repair)
		return 0;
	err_set(e, ERR_INTEGRITY, "%zu of %zu objects in '%s' are not what they were when they were published", wrong, count, store_dir(s));
	return err_hint(e, "'ptbuild cache verify --repair' moves them out of the way, so that they are made anew");
}

static int cache_gc(struct cmd_context *c, struct store *s, struct err *e)
{
	const struct cache_options *o = c->options;
	struct gc_options q = {.keep_seconds = -1, .max_bytes = -1, .grace_seconds = GRACE_SECONDS, .dry_run = o->dry_run};
	struct gc_result r;
	if (!o->max_size && !o->keep_days) {
		err_set(e, ERR_USAGE, "nothing says what may be removed");
		return err_hint(e, "give --keep-days N, --max-size SIZE or both; --dry-run only shows");
	}
	if (o->max_size && parse_size(o->max_size, &q.max_bytes, e) < 0)
		return -1;
	if (o->keep_days && parse_days(o->keep_days, &q.keep_seconds, e) < 0)
		return -1;
	if (store_gc(s, &q, c->run, c->arena, &r, e) < 0)
		return -1;
	if (c->global->json) {
		AUTO_JSON json_t *doc =
			json_pack("{s:i, s:s, s:b, s:o, s:I, s:I, s:I, s:I}", "schema", 1, "dir", store_dir(s), "dry_run", o->dry_run,
				  "removed", objects_json(r.removed, r.count), "removed_bytes", (json_int_t)r.removed_bytes, "kept",
				  (json_int_t)r.kept, "kept_bytes", (json_int_t)r.kept_bytes, "busy", (json_int_t)r.busy);
		return json_print(doc, e);
	}
	AUTO_BUF struct buf out = {0};
	for (size_t i = 0; i < r.count; i++)
		buf_printf(&out, "%s %s %.16s, %s\n", o->dry_run ? "would remove" : "removed", r.removed[i].kind, r.removed[i].key,
			   size_text(r.removed[i].bytes, c->arena));
	buf_printf(&out, "%s%s, %s stay", size_text(r.removed_bytes, c->arena), o->dry_run ? " would go" : " removed",
		   size_text(r.kept_bytes, c->arena));
	if (r.busy)
		buf_printf(&out, " (%zu in use)", r.busy);
	buf_addc(&out, '\n');
	return cmd_write_stdout(&out, e);
}

static int run_cache(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	static const struct {
		const char *name;
		int (*run)(struct cmd_context *c, struct store *s, struct err *e);
	} actions[] = {{"info", cache_info}, {"verify", cache_verify}, {"gc", cache_gc}};
	struct store *s;
	if (args->count != 1) {
		err_set(e, ERR_USAGE, "cache takes one action, not %zu", args->count);
		return err_hint(e, "it is info, verify or gc");
	}
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (strcmp(args->items[0], actions[i].name) == 0)
			return cmd_store(c, &s, e) < 0 ? -1 : actions[i].run(c, s, e);
	err_set(e, ERR_USAGE, "'%s' is no action of cache", args->items[0]);
	return err_hint(e, "it is info, verify or gc");
}

#define OPTION(type, field) (type), offsetof(struct cache_options, field)

static const struct arg_def cache_options[] = {
	{"max-size", 0, OPTION(ARG_STRING, max_size), "SIZE", "gc: remove the least recently used until the store is this small (20G)",
	 NULL},
	{"keep-days", 0, OPTION(ARG_STRING, keep_days), "N", "gc: remove what was not used for N days", NULL},
	{"dry-run", 'n', OPTION(ARG_FLAG, dry_run), NULL, "gc: only show what would be removed", NULL},
	{"repair", 0, OPTION(ARG_FLAG, repair), NULL, "verify: move wrong objects to the quarantine", NULL},
	{0},
};

const struct command command_cache = {
	.name = "cache",
	.summary = "show, check or clean the store",
	.usage = "info|verify|gc [options]",
	.text = (const char *const[]){"The store keeps source archives, finished wheels and build trees. What is in use is never removed, "
				      "nor what was used "
				      "within the last hour.",
				      NULL},
	.tables = (const struct arg_def *const[]){cache_options, NULL},
	.arguments =
		(const struct cmd_positional[]){
			{"ACTION", "info: what is there; verify: hash all of it again; gc: remove what is old", "info verify gc"}, {0}},
	.examples = (const struct cmd_example[]){{"ptbuild cache gc --keep-days 30 --max-size 50G --dry-run", "see what would go"}, {0}},
	.options_size = sizeof(struct cache_options),
	.run = run_cache,
};
