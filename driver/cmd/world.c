#include "cmd/world.h"

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "base/text.h"
#include "cache/world.h"

/* Those that parts are for, as Debian's names tell. */
static const char *const platforms[] = {"x86_64-linux", "aarch64-linux"};

static const char *const kinds[] = {[WORLD_DEB] = "deb", [WORLD_WHEEL] = "wheel", [WORLD_FILE] = "file"};

int world_platform(const struct cmd_context *c, const char **ret, struct err *e)
{
	const struct world_options *o = c->options;
	const char *name = o->platform ? o->platform : machine_platform(c->arena);
	if (world_debian_arch(name)) {
		*ret = name;
		return 0;
	}
	err_set(e, ERR_USAGE, "no part of a world is for the platform '%s'", name);
	const char *near = suggest_nearest(name, platforms, ARRAY_LEN(platforms));
	return near ? err_hint(e, "did you mean '%s'?", near)
		    : err_hint(e, "--platform takes x86_64-linux or aarch64-linux");
}

const char *world_command(const struct cmd_context *c, const char *action, const char *name, const char *platform)
{
	AUTO_BUF struct buf out = {0};
	const struct cmd_globals *g = c->global;
	buf_printf(&out, "ptbuild world %s %s --platform %s", action, name, platform);
	if (g->profiles)
		buf_printf(&out, " --profiles %s", shell_quoted(g->profiles, c->arena));
	if (g->cache)
		buf_printf(&out, " --cache %s", shell_quoted(g->cache, c->arena));
	return arena_strdup(c->arena, buf_cstr(&out));
}

/* The root of a part alone, of which only a base can have one; NULL: not made here. */
static int find_made(struct cmd_context *c, const char *profiles, const struct world_part *p, const char *platform,
		     const char **ret, struct err *e)
{
	const struct world *w;
	struct store *s;
	const char *dir;
	*ret = NULL;
	if (strcmp(p->kind, "base") != 0)
		return 0;
	if (cmd_cache_dir(c, &dir, e) < 0)
		return -1;
	if (!fs_exists(TRUSTED, dir)) /* looking at a store does not make one */
		return 0;
	if (world_load(profiles, p->part, platform, c->arena, &w, e) < 0 || cmd_store_read(c, &s, e) < 0)
		return -1;
	return store_world_find(s, w->key, c->arena, ret, e);
}

/* `only`: NULL, or the platform that is asked for. */
static int add_row(struct cmd_context *c, const char *profiles, const char *part, const char *only, json_t *rows,
		   struct err *e)
{
	const struct world_part *p;
	bool any = false;
	if (world_part_load(profiles, part, c->arena, &p, e) < 0)
		return -1;
	if (only && !strings_allow(p->platforms, p->platforms_count, only))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(platforms); i++) {
		const char *path = world_lock_path(profiles, part, platforms[i], c->arena), *made;
		struct world_lock lock;
		if (!fs_exists(TRUSTED, path) || (only && strcmp(only, platforms[i]) != 0) ||
		    !strings_allow(p->platforms, p->platforms_count, platforms[i]))
			continue;
		if (world_lock_read(path, c->arena, &lock, e) < 0 ||
		    find_made(c, profiles, p, platforms[i], &made, e) < 0)
			return -1;
		any = true;
		const json_int_t bytes = (json_int_t)world_lock_bytes(&lock);
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "part", part, "kind",
						p->kind, "platform", platforms[i], "files", (json_int_t)lock.count,
						"bytes", bytes ? json_integer(bytes) : json_null(), "date",
						json_or_null(lock.date), "python", json_or_null(p->python), "glibc",
						json_or_null(p->glibc), "dir", json_or_null(made)));
	}
	if (!any)
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:n, s:i, s:n, s:n, s:o, s:o, s:n}", "part", part, "kind",
						p->kind, "platform", "files", 0, "bytes", "date", "python",
						json_or_null(p->python), "glibc", json_or_null(p->glibc), "dir"));
	return 0;
}

static const struct show list_rows[] = {
	{.each = "parts",
	 .columns = {"PART={part}", "KIND={kind}", "PLATFORM={platform|no lock}", ">FILES={files}",
		     ">DOWNLOAD={bytes:MB}", "PYTHON={python}", "GLIBC={glibc}", "LOCKED={date:.10}", "MADE={dir}"}},
	{0}};

static int world_list(struct cmd_context *c, const char *name, struct err *e)
{
	struct strlist parts = {0};
	const struct world_options *o = c->options;
	const char *profiles, *only = NULL;
	AUTO_JSON json_t *rows = json_array();
	(void)name;
	if ((o->platform && world_platform(c, &only, e) < 0) || cmd_profiles_dir(c, &profiles, e) < 0 ||
	    world_part_names(profiles, c->arena, &parts, e) < 0)
		return -1;
	for (size_t i = 0; i < parts.count; i++)
		if (add_row(c, profiles, parts.items[i], only, rows, e) < 0)
			return -1;
	return cmd_show(c, json_pack("{s:i, s:O}", "schema", 1, "parts", rows), list_rows, e);
}

static json_t *part_json(const struct world_part *p)
{
	json_t *links = json_array(), *made = json_array();
	for (unsigned i = 0; i < p->links_count; i++)
		json_array_append_new(links, json_pack("{s:s, s:s, s:s}", "path", p->links[i].path, "to",
						       p->links[i].to, "why", p->links[i].why));
	for (unsigned i = 0; i < p->made_count; i++)
		json_array_append_new(made, json_pack("{s:s, s:s, s:s, s:s}", "path", p->made[i].path, "kind",
						      p->made[i].kind, "from", p->made[i].from, "why", p->made[i].why));
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "part", p->part, "kind", p->kind,
			 "sources", p->sources, "suite", json_or_null(p->suite), "packages",
			 json_from_strings(p->packages, p->packages_count), "wheels",
			 json_from_strings(p->wheels, p->wheels_count), "exclude",
			 json_from_strings(p->exclude, p->exclude_count), "keep",
			 json_from_strings(p->keep, p->keep_count), "links", links, "made", made);
}

static json_t *piece_json(const struct world_piece *p)
{
	json_t *files = json_array();
	for (size_t i = 0; i < p->lock.count; i++) {
		const struct world_entry *f = &p->lock.entries[i];
		json_array_append_new(files, json_pack("{s:s, s:s, s:s, s:o, s:I, s:s, s:s}", "kind", kinds[f->kind],
						       "name", f->name, "version", f->version, "arch",
						       json_or_null(*f->arch ? f->arch : NULL), "bytes",
						       (json_int_t)f->size, "sha256", f->sha256, "place", f->place));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "table", part_json(p->part), "archive",
			 json_or_null(p->lock.archive), "date", json_or_null(p->lock.date), "tree",
			 json_or_null(p->lock.tree), "files", files);
}

static json_t *world_json(const struct world *w, const char *dir)
{
	json_t *pieces = json_array();
	for (size_t i = 0; i < w->count; i++) {
		json_t *piece = piece_json(&w->pieces[i]);
		json_object_set_new(piece, "-bytes", json_integer((json_int_t)world_lock_bytes(&w->pieces[i].lock)));
		json_object_set_new(piece, "-suite", json_or_null(w->pieces[i].lock.suite));
		json_array_append_new(pieces, piece);
	}
	return json_pack("{s:i, s:s, s:s, s:s, s:I, s:o, s:o}", "schema", 1, "name", w->name, "platform", w->platform,
			 "key", w->key, "bytes", (json_int_t)w->download, "dir", json_or_null(dir), "parts", pieces);
}

#define ROW(label, text, ...) SHOW(label, text, .indent = 2, ##__VA_ARGS__)

static const struct show piece_rows[] = {
	{.text = "\n{table.part}: {table.kind}, {files:#} files, {-bytes:MB}"},
	ROW("archive", "{archive} {-suite}, index of {date}"),
	ROW("sources", "{table.sources}"),
	ROW("without", "{}", .each = "table.exclude"),
	ROW("but with", "{}", .each = "table.keep"),
	ROW("link", "{path} -> {to} ({why})", .each = "table.links"),
	ROW("made", "{path}, a {kind} of {from} ({why})", .each = "table.made"),
	{.each = "files", .columns = {"  file=  {kind}", ">bytes", "name", "version", "arch"}},
	{0}};
static const struct show show_rows[] = {{.text = "{name}"},
					SHOW("platform", "{platform}"),
					SHOW("key", "{key}"),
					SHOW("download", "{bytes:MB}"),
					SHOW("made", "{dir|no}"),
					{.each = "parts", .rows = piece_rows},
					{0}};

static int world_show(struct cmd_context *c, const char *name, struct err *e)
{
	const char *profiles, *platform, *store_dir, *dir = NULL;
	const struct world *w;
	struct store *s;
	if (world_platform(c, &platform, e) < 0 || cmd_profiles_dir(c, &profiles, e) < 0 ||
	    world_load(profiles, name, platform, c->arena, &w, e) < 0 || cmd_cache_dir(c, &store_dir, e) < 0)
		return -1;
	if (fs_exists(TRUSTED, store_dir) &&
	    (cmd_store_read(c, &s, e) < 0 || store_world_find(s, w->key, c->arena, &dir, e) < 0))
		return -1;
	return cmd_show(c, world_json(w, dir), show_rows, e);
}

static int run_world(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	static const struct cmd_action actions[] = {{"list", " platform ", false, world_list},
						    {"show", " platform ", true, world_show},
						    {"make", " platform keyring copy ", true, world_make},
						    {"lock", " platform keyring base write ", true, world_lock},
						    {"verify", " platform ", true, world_verify},
						    {"gc", " keep-days dry-run ", false, world_gc}};
	if (c->global->no_drift && args->count && strcmp(args->items[0], "make") != 0)
		return err_set(e, ERR_USAGE, "world %s does not take --no-drift", args->items[0]);
	return cmd_action(c, actions, ARRAY_LEN(actions), args, e);
}

#define OPTION(type, field) (type), offsetof(struct world_options, field)

static const struct arg_def world_options[] = {
	{"platform", 0, OPTION(ARG_STRING, platform), "PLATFORM",
	 "of the parts: x86_64-linux or aarch64-linux (default: this machine's; list: both)",
	 "x86_64-linux aarch64-linux"},
	{"keyring", 0, OPTION(ARG_STRING, keyring), "FILE",
	 "make, lock: the keys that may sign the archive's index (default: Debian's of this machine)", "<file>"},
	{"write", 0, OPTION(ARG_FLAG, write), NULL, "lock: write the new lock into the tables' directory", NULL},
	{"base", 0, OPTION(ARG_STRING, base), "PART", "lock: the base that a part with packages lies on", NULL},
	{"copy", 0, OPTION(ARG_STRING, copy), "DIR",
	 "make: copy the root to this new directory, which is yours to change", "<dir>"},
	{"keep-days", 0, OPTION(ARG_STRING, keep_days), "N", "gc: remove what was not used for N days too", NULL},
	{"dry-run", 'n', OPTION(ARG_FLAG, dry_run), NULL, "gc: show what would be removed, and do nothing", NULL},
	{0},
};

const struct command command_world = {
	.name = "world",
	.summary = "make, check and pin the root file systems that builds run in",
	.usage = "list|show|make|lock|verify|gc [NAME] [options]",
	.text = "A world is a Debian base, with toolkits over it (debian13, debian13+cuda13_0): a list of files, each "
		"pinned by its sha256. Making it runs nothing of them and needs no root.\n"
		"A package that has left the archive is taken in its present version, by the archive's signed index; "
		"the output and the key of the world say so. --no-drift refuses that.\n"
		"lock prints what a new lock would change; --write writes it.",
	.tables = {world_options},
	.arguments = {{"ACTION",
		       "list: parts and what they take to download; show: every file of a world; make: fetch and make "
		       "it; lock: what a new lock of a part changes; verify: hash a made world again; gc: remove "
		       "worlds that no table names any more",
		       "list show make lock verify gc"},
		      {"NAME", "a world, or for lock a part", "<world>"}},
	.examples = {{"ptbuild world make debian13", "fetch and make the root that builds run in"},
		     {"ptbuild world make debian13 --copy ~/root", "a root of your own, for --root ~/root"},
		     {"ptbuild world lock debian13 --write", "take the archive's present packages"},
		     {"ptbuild world gc --keep-days 30 --dry-run", "see what would be removed"}},
	.options_size = sizeof(struct world_options),
	.run = run_world,
};
