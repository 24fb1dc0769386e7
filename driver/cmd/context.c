#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "cache/store.h"
#include "cmd/cmd.h"
#include "core/root/sandbox.h"
#include "step/fetch/fetch_place.h"

/* The directory beside the program, which an installation has; NULL without one. */
static const char *installed_dir(struct arena *a)
{
	const char *dir = proc_beside(a, "share/ptbuild");
	return dir && fs_is_dir(TRUSTED, path_join(a, dir, "profiles")) ? dir : NULL;
}

/* The directory that holds profiles/ and patches/. */
static const char *data_dir(struct arena *a)
{
	const char *dir = getenv("PTBUILD_DATA_DIR");

	if (dir && *dir)
		return path_from_here(a, dir);
	dir = installed_dir(a);
	return dir ? dir : PTBUILD_SOURCE_DIR;
}

const char *cmd_installed_data(struct cmd_context *c)
{
	const char *named = getenv("PTBUILD_DATA_DIR");
	return c->global->profiles || (named && *named) ? NULL : installed_dir(c->arena);
}

static int data_part(struct cmd_context *c, const char *part, const char **ret, struct err *e)
{
	const char *dir = path_join(c->arena, data_dir(c->arena), part);

	if (!fs_is_dir(TRUSTED, dir)) {
		err_set(e, ERR_CONFIG, "directory '%s' does not exist", dir);
		return err_hint(e, "name the tables with --profiles DIR, or set PTBUILD_DATA_DIR "
				   "to the directory that "
				   "holds profiles and patches");
	}

	*ret = dir;
	return 0;
}

static int open_data(struct cmd_context *c, struct err *e)
{
	if (!c->global->profiles)
		return data_part(c, "profiles", &c->profiles_dir, e);
	const char *dir = path_from_here(c->arena, c->global->profiles);
	if (!fs_is_dir(TRUSTED, dir))
		return err_set(e, ERR_USAGE, "--profiles: not a directory: '%s'",
			       c->global->profiles);
	c->profiles_dir = dir;
	return 0;
}

static int open_tables(struct cmd_context *c, struct err *e)
{
	const char *recorded = cmd_recorded_path(c);
	struct recorded_file f = {0};
	const struct tables *t;

	if (tables_load(c->profiles_dir, c->arena, &t, e) < 0)
		return -1;
	if (recorded && recorded_read(recorded, c->arena, &f, e) < 0)
		return -1;
	c->tables = recorded_apply(t, &f, c->arena);
	return 0;
}

static int open_patches(struct cmd_context *c, struct err *e)
{
	const char *beside = path_join(c->arena, path_dir(c->arena, c->profiles_dir), "patches");

	if (!fs_is_dir(TRUSTED, beside))
		return data_part(c, "patches", &c->patches_dir, e);
	c->patches_dir = beside;
	return 0;
}

const char *cmd_recorded_path(const struct cmd_context *c)
{
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
	const char *dir = xdg && xdg[0] == '/'     ? path_join(c->arena, xdg, "ptbuild")
			  : home && home[0] == '/' ? path_join(c->arena, home, ".config/ptbuild")
						   : NULL;
	return dir ? path_join(c->arena, dir, "recorded.yaml") : NULL;
}

/* In the directory of the user's caches; NULL without a home. */
static const char *user_cache(struct arena *a)
{
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CACHE_HOME");

	/* the base directory specification says to ignore a relative one */
	if (xdg && xdg[0] == '/')
		return path_join(a, xdg, "ptbuild");
	return home && home[0] == '/' ? path_join(a, home, ".cache/ptbuild") : NULL;
}

int cmd_cache_dir(const struct cmd_context *c, const char **ret, struct err *e)
{
	*ret = c->global->cache ? path_from_here(c->arena, c->global->cache) : user_cache(c->arena);
	if (*ret)
		return 0;
	err_set(e, ERR_SYSTEM, "no directory for the store: HOME is %s",
		getenv("HOME") ? "no absolute path" : "not set");
	return err_hint(e, "name a directory with --cache DIR");
}

static int add_lower_stores(struct cmd_context *c, struct err *e)
{
	const char *more = getenv("PTBUILD_LOWER_STORE");
	struct strlist dirs = {0};

	strlist_append(&dirs, c->arena, &c->global->lower_stores);
	strlist_split(&dirs, c->arena, more ? more : "", ":");
	for (size_t i = 0; i < dirs.count; i++)
		if (store_add_fallback(c->store, path_from_here(c->arena, dirs.items[i]), e) < 0)
			return -1;
	return 0;
}

static int add_remote_store(struct cmd_context *c, struct err *e)
{
	const char *url = c->global->store_url ? c->global->store_url : getenv("PTBUILD_STORE_URL");

	if (!url || !*url || c->global->offline)
		return 0;
	return fetch_store_set(c->store, url, e);
}

/* What a row of cmd_table does not declare is not opened. */
int cmd_declared(const struct cmd_context *c, unsigned thing, struct err *e)
{
	if (((c->row->first | c->row->later) & thing) == thing)
		return 0;
	err_set(e, ERR_CONFIG, "'%s' does not declare in its row of cmd_table what it opens (%#x)",
		c->command->name, thing);
	return err_hint(e, "report this as an error in ptbuild");
}

/* store_open or store_look. */
typedef int store_opener(const char *dir, const struct run *run, struct store **ret, struct err *e);

static int open_store(struct cmd_context *c, store_opener *open, struct err *e)
{
	const char *dir = NULL;

	if (c->store)
		return 0;
	if (cmd_cache_dir(c, &dir, e) < 0 || open(dir, c->run, &c->store, e) < 0)
		return -1;
	if (add_lower_stores(c, e) < 0 || add_remote_store(c, e) < 0)
		return -1;
	return 0;
}

int cmd_store(struct cmd_context *c, struct store **ret, struct err *e)
{
	if (cmd_declared(c, OPEN_STORE, e) < 0)
		return -1;
	if (open_store(c, store_open, e) < 0 || store_check_writable(c->store, e) < 0)
		return -1;
	*ret = c->store;
	return 0;
}

int cmd_store_read(struct cmd_context *c, struct store **ret, struct err *e)
{
	if (cmd_declared(c, OPEN_LOOK, e) < 0)
		return -1;
	if (open_store(c, store_look, e) < 0)
		return -1;
	*ret = c->store;
	return 0;
}

/* A directory that this user may not look into is not a store. A file in its path is an error,
 * which opening it reports. */
static bool is_no_store(const struct cmd_context *c, const char *dir)
{
	struct stat st;

	if (stat(path_join(c->arena, dir, "format"), &st) == 0 || errno == ENOTDIR)
		return false;
	if (errno != ENOENT && !*c->store_told)
		log_warn(c->run->log, "ignoring store '%s': %s", dir, strerror(errno));
	*c->store_told = *c->store_told || errno != ENOENT;
	return true;
}

int cmd_store_look(struct cmd_context *c, struct store **ret, struct err *e)
{
	const char *dir, *lower = getenv("PTBUILD_LOWER_STORE");

	*ret = NULL;
	if (cmd_declared(c, OPEN_LOOK, e) < 0)
		return -1;
	if (c->store)
		return cmd_store_read(c, ret, e);
	if (cmd_cache_dir(c, &dir, ERR_IGNORED) < 0)
		return 0;
	bool has_lower = c->global->lower_stores.count || (lower && *lower);
	if (is_no_store(c, dir) && !has_lower)
		return 0;
	return cmd_store_read(c, ret, e);
}

static int open_network(struct cmd_context *c, struct err *e)
{
	const struct cmd_globals *g = c->global;
	struct fetch_options *o = arena_alloc(c->arena, sizeof(*o));

	for (size_t i = 0; i < g->archives.count; i++)
		if (archives_word(g->archives.items[i], e) < 0)
			return -1;
	const char *file = path_join(c->arena, path_dir(c->arena, c->profiles_dir), "archives");
	if (!fs_exists(TRUSTED, file))
		file = path_join(c->arena, data_dir(c->arena), "archives");
	*o = (struct fetch_options){.offline = g->offline,
				    .mirrors = g->mirrors,
				    .archives = g->archives,
				    .archives_file = file};
	c->fetch = o;
	return 0;
}

static int open_output(struct cmd_context *c, struct err *e)
{
	return cmd_out_dir(c, &c->out_dir, e);
}

/* ---- what a command opens, in this order ---- */

static const struct {
	enum cmd_thing thing;
	int (*open)(struct cmd_context *c, struct err *e);
} things[] = {
	{OPEN_DATA, open_data},       {OPEN_TABLES, open_tables}, {OPEN_PATCHES, open_patches},
	{OPEN_NETWORK, open_network}, {OPEN_OUTPUT, open_output},
};

int cmd_open(struct cmd_context *c, unsigned what, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(things); i++) {
		const unsigned thing = things[i].thing;
		if ((what & thing) != thing || (c->opened & thing) == thing)
			continue;
		if (cmd_declared(c, thing, e) < 0 || things[i].open(c, e) < 0)
			return -1;
		c->opened |= thing;
	}

	return 0;
}

enum sandbox_kind cmd_sandbox(const struct cmd_context *c)
{
	enum sandbox_kind kind = SANDBOX_BWRAP;
	return c->global->sandbox && sandbox_kind_parse(c->global->sandbox, &kind) ? kind
										   : SANDBOX_BWRAP;
}

int cmd_toolchain(struct cmd_context *c, const struct toolchain **ret, struct err *e)
{
	const struct root *root = NULL;

	if (!c->toolchain &&
	    (cmd_root(c, &root, e) < 0 ||
	     toolchain_probe(root, cmd_sandbox(c), c->run, c->arena, &c->toolchain, e) < 0))
		return -1;
	*ret = c->toolchain;
	return 0;
}

int cmd_machine(struct cmd_context *c, bool gpus, const struct hardware_facts **ret_facts,
		const struct hardware **ret, struct err *e)
{
	if (!c->machine) {
		struct hardware *h = arena_alloc(c->arena, sizeof(*h));
		if (cmd_declared(c, OPEN_MACHINE, e) < 0 ||
		    hardware_facts_load(c->profiles_dir, c->arena, &c->facts, e) < 0 ||
		    hardware_read(c->facts, gpus, c->run, c->arena, h, e) < 0)
			return -1;
		c->machine = h;
	}

	*ret_facts = c->facts;
	*ret = c->machine;
	return 0;
}

void cmd_add_runs_on(json_t *doc, const struct runs_on *r, const struct fit *fit)
{
	AUTO_ARENA struct arena a = {0};
	struct kvlist lines = {0};
	json_t *words = json_object();

	runs_on_lines(r, &a, &lines);
	for (size_t i = 0; i < lines.count; i++)
		json_object_set_new(words, lines.items[i].key, json_or_null(lines.items[i].value));
	json_object_set_new(doc, "runs_on", runs_on_json(r));
	json_object_set_new(doc, "this_machine", fit ? fit_json(fit) : json_null());
	json_object_set_new(doc, "-runs_on", words);
	json_object_set_new(doc, "-here", json_or_null(fit ? fit_text(fit, &a) : NULL));
}

int cmd_out_dir(const struct cmd_context *c, const char **ret, struct err *e)
{
	AUTO_FREE char *cwd = getcwd(NULL, 0);

	if (!cwd)
		return err_errno(e, ERR_SYSTEM, "cannot find the current directory");
	*ret = path_absolute(c->arena, cwd, c->global->out ? c->global->out : "dist");
	return 0;
}

/* ---- sandbox protections and limits ---- */

/* "90", "90s", "30m", "4h" or "3d" in seconds. */
static int parse_time(const char *text, uint64_t *ret)
{
	static const char units[] = "smhd";
	static const unsigned seconds[] = {1, 60, 3600, 86400};
	char *end;

	if (*text < '0' || *text > '9' || strlen(text) > 9)
		return -1;
	unsigned long long n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : units;
	if (n == 0 || !unit || (*end && end[1]))
		return -1;
	*ret = n * seconds[unit - units];
	return 0;
}

enum { MEMORY_LEAST = 64 << 20 };

int cmd_protections(const struct cmd_globals *g, struct run *run, struct err *e)
{
	struct run_limits *l = &run->limits;
	const struct {
		const char *name, *text;
		uint64_t *to;
		bool size;
	} options[] = {{"max-memory", g->max_memory, &l->memory, true},
		       {"max-disk", g->max_disk, &l->disk, true},
		       {"max-log", g->max_log, &l->log, true},
		       {"max-silence", g->max_silence, &l->silence, false},
		       {"max-time", g->max_time, &l->time, false}};

	l->processes = g->max_processes;
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		struct err why = {0};
		if (!options[i].text)
			continue;
		int rc = options[i].size ? size_parse(options[i].text, options[i].to, &why)
					 : parse_time(options[i].text, options[i].to);
		if (rc == 0 && *options[i].to > 0)
			continue;
		err_set(e, ERR_USAGE, "--%s: not a %s: '%s'", options[i].name,
			options[i].size ? "size" : "time", options[i].text);
		return err_hint(e, options[i].size ? "write it like 512M or 24G"
						   : "write it like 90s, 30m or 4h");
	}

	if (l->memory && l->memory < MEMORY_LEAST) {
		err_set(e, ERR_USAGE, "--max-memory %s: no compiler fits into it", g->max_memory);
		return err_hint(
			e, "write it like 24G; without it a build has nearly all of the machine's");
	}

	return sandbox_protections_parse(&g->without_protections, &run->without_protections, e);
}
