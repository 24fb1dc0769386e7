#include "core/world/world.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cache/store.h"
#include "cmd/select.h"
#include "step/fetch/fetch.h"
#include "step/lock/lock_make.h"
#include "step/pipeline/make_world.h"
#include "step/world/world_image.h"

struct world_options {
	struct cmd_globals global;
	const char *platform; /* NULL: this machine's */
	const char *keyring;
	const char *base; /* lock: of a toolkit */
	const char *copy; /* make: NULL: none */
	const char *keep_days;
	bool write, dry_run;
};

static const char *const platforms[] = {"x86_64-linux", "aarch64-linux"};

/* --platform, else this machine's. ERR_USAGE for one that no part is for. */
static int world_platform(const struct cmd_context *c, const char **ret, struct err *e)
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
		    : err_hint(e, "use --platform x86_64-linux or aarch64-linux");
}

/* The command line that makes a world, with the directories that the user named. */
static const char *make_line(const struct cmd_context *c, const struct world *w)
{
	AUTO_BUF struct buf out = {0};
	const struct cmd_globals *g = c->global;

	buf_printf(&out, "ptbuild world make %s --platform %s", w->name, w->platform);
	if (g->profiles)
		buf_printf(&out, " --profiles %s", shell_quoted(g->profiles, c->arena));
	if (g->cache)
		buf_printf(&out, " --cache %s", shell_quoted(g->cache, c->arena));
	return arena_strdup(c->arena, buf_cstr(&out));
}

static int load(struct cmd_context *c, const char *name, const struct world **ret, struct err *e)
{
	const char *platform;

	if (world_platform(c, &platform, e) < 0)
		return -1;
	return world_load(c->profiles_dir, name, platform, c->arena, ret, e);
}

/* Each line of a world with drift says so. */
#define TEXT(words)                                                                                \
	{                                                                                          \
		.text = "[{?drift}drift: ]" words                                                  \
	}

static const struct show drift_rows[] = {TEXT("  current   {}"), {0}};
static const struct show made_rows[] = {
	TEXT("{name} {platform}"),
	TEXT("  dir       {dir}"),
	TEXT("  copy      {copy}[: it already existed and stays, with "
	     "{?copy_differs}{copy_differs} of the world's files missing or changed, first "
	     "'{-first}'; remove it for a new copy][{?-there}: it already existed]"),
	TEXT("  key       {key}"),
	TEXT("  size      {bytes:MB}"),
	{.each = "drift", .rows = drift_rows},
	TEXT("  files     {!hit}{downloaded} downloaded ({downloaded_bytes:MB} in {-fetching:.1} "
	     "s), {from_store} were "
	     "in the store"),
	TEXT("  {?hit}it already existed"),
	TEXT("  seconds   {seconds:.1}"),
	{0}};

/* A world that was asked for, and what was made of it. */
struct made_world {
	const struct world *asked;
	struct world_result result;
	const char *copy; /* the directory that it was copied to; NULL */
	struct world_copied copied;
};

/* A copy that was there stays, whatever became of it: the output says that it was kept. */
static int print_made(struct cmd_context *c, const struct made_world *m, struct err *e)
{
	const struct world *w = m->asked;
	const struct world_result *r = &m->result;
	const struct world_copied *copied = &m->copied;
	static const struct show quiet[] = {{.text = "[{copy}][{!copy}{dir}]"}, {0}};
	uint64_t bytes = 0;

	if (fs_tree_size(r->dir, &bytes, e) < 0)
		return -1;
	json_t *doc = json_pack(
		"{s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:I, s:I, s:i, s:i, s:f, s:f, s:b, "
		"s:o}",
		"schema", 1, "name", w->name, "platform", w->platform, "key", r->key, "dir",
		json_or_null(r->dir), "copy", json_or_null(m->copy), "copy_differs",
		copied->there ? json_integer((json_int_t)copied->differ) : json_null(), "hit",
		r->hit, "drift", json_from_strlist(&r->drift), "bytes", (json_int_t)bytes,
		"downloaded_bytes", (json_int_t)r->fetched.bytes, "downloaded",
		(int)r->fetched.downloaded, "from_store", (int)r->fetched.from_store, "seconds",
		r->seconds, "-fetching", r->fetched.seconds, "-there",
		copied->there && !copied->differ, "-first",
		json_or_null(copied->first ? utf8_printable(copied->first, c->arena) : NULL));
	return cmd_show(c, doc, c->global->quiet ? quiet : made_rows, e);
}

static int world_make(struct cmd_context *c, const char *name, struct err *e)
{
	const struct world_options *o = c->options;
	struct world_request q = {.run = c->run,
				  .no_drift = c->global->no_drift,
				  .jobs = c->global->jobs ? c->global->jobs : machine_processors(),
				  .keyring =
					  o->keyring ? path_from_here(c->arena, o->keyring) : NULL};
	struct made_world m = {.result.use = LOCK_NONE};
	struct err why = {0};
	struct world_result *r = &m.result;
	const char *copy = m.copy = o->copy ? path_from_here(c->arena, o->copy) : NULL;
	const char *store_dir, *made = NULL;
	bool there;

	if (load(c, name, &q.world, e) < 0 || cmd_open(c, OPEN_NETWORK, e) < 0)
		return -1;
	q.profiles = c->profiles_dir;
	q.fetch = *c->fetch;
	if (cmd_cache_dir(c, &store_dir, e) < 0)
		return -1;
	if (copy && world_copy_place(copy, store_dir, c->arena, e) < 0)
		return -1;
	if (copy && world_copy_look(copy, q.world->name, NULL, c->arena, &there, e) < 0)
		return -1;
	if (cmd_store(c, &q.store, e) < 0)
		return -1;
	if (store_world_find(q.store, q.world->key, STORE_LOOK_FACTS, c->arena, &made, e) < 0)
		return -1;
	if (!made && !c->global->offline && cmd_needs_space(c, q.world, e) < 0)
		return -1;
	/* Its Python modules are compiled only if its Python runs here. */
	if (!made && cmd_emulation(c, q.world->platform, q.world, &q.emulation, &why) < 0)
		log_verbose(c->run->log, "%s", why.msg);
	if (world_ensure(&q, c->arena, r, e) < 0)
		return -1;
	const double start = log_seconds();
	int rc = copy ? world_copy(r->dir, copy, r->world->name, r->key, c->run, c->arena,
				   &m.copied, e)
		      : 0;
	r->seconds += log_seconds() - start;
	m.asked = q.world;
	if (rc == 0)
		rc = print_made(c, &m, e);
	lock_release(&r->use);
	return rc;
}

/* The root of a world in the store; NULL: not made here. */
static int find_made(struct cmd_context *c, const struct world *w, const char **ret, struct err *e)
{
	struct store *s;

	*ret = NULL;
	if (cmd_store_look(c, &s, e) < 0)
		return -1;
	return s ? store_world_find(s, w->key, STORE_LOOK_FACTS, c->arena, ret, e) : 0;
}

/* The store's object of a made world; a stamp that names another key is one that was changed. */
static int check_world(struct cmd_context *c, const struct world *w, const char *dir, struct err *e)
{
	const struct store_object o = {
		.kind = STORE_WORLD, .key = w->key, .path = path_dir(c->arena, dir)};
	struct world_stamp stamp;

	if (store_verify(&o, c->run, e) < 0)
		return -1;
	int stamped = world_read_stamp(dir, c->arena, &stamp, e);
	if (stamped < 0)
		return -1;
	if (!stamped || strcmp(stamp.name, w->name) != 0 || strcmp(stamp.key, w->key) != 0)
		return err_set(e, ERR_INTEGRITY,
			       "'%s/%s' does not name '%s' with the key %s of its locks", dir,
			       WORLD_STAMP, w->name, w->key);
	return 0;
}

static int world_verify(struct cmd_context *c, const char *name, struct err *e)
{
	const struct world *w;
	const char *dir;

	if (load(c, name, &w, e) < 0 || find_made(c, w, &dir, e) < 0)
		return -1;
	if (!dir) {
		err_set(e, ERR_CONFIG, "the world '%s' for %s is not made", w->name, w->platform);
		return err_hint(e, "make it: %s", make_line(c, w));
	}

	double start = log_seconds();
	log_wait(c->run->log, "%s: hashing", w->name);
	if (check_world(c, w, dir, e) < 0) {
		if (e->kind != ERR_INTEGRITY)
			return -1;
		return err_hint(e,
				"'ptbuild cache verify%s%s' moves it to the quarantine, and "
				"'%s' recreates it",
				c->global->cache ? " --cache " : "",
				c->global->cache ? shell_quoted(c->global->cache, c->arena) : "",
				make_line(c, w));
	}

	static const struct show rows[] = {
		{.text = "{name} {platform}: as it was made, {seconds:.1} s ({dir})"}, {0}};
	json_t *doc = json_pack("{s:i, s:s, s:s, s:s, s:o, s:f}", "schema", 1, "name", w->name,
				"platform", w->platform, "key", w->key, "dir", json_or_null(dir),
				"seconds", log_seconds() - start);
	return cmd_result(c, doc, rows, e);
}

static const struct show image_rows[] = {{.text = "{name} {platform}"},
					 {.text = "  file      {file}"},
					 {.text = "  image     {image}"},
					 {.text = "  size      {bytes:MB}"},
					 {.text = "  layers    {}", .each = "layers"},
					 {0}};
static const struct show image_quiet[] = {{.text = "{file}"}, {0}};

/* The root of a world, made where it is not there yet; its lock is held in `r`. */
static int ensure(struct cmd_context *c, const char *name, struct world_result *r, struct err *e)
{
	struct world_request q = {.run = c->run,
				  .no_drift = c->global->no_drift,
				  .jobs = c->global->jobs ? c->global->jobs : machine_processors()};

	if (load(c, name, &q.world, e) < 0 || cmd_open(c, OPEN_NETWORK, e) < 0)
		return -1;
	q.profiles = c->profiles_dir;
	q.fetch = *c->fetch;
	return cmd_store(c, &q.store, e) < 0 ? -1 : world_ensure(&q, c->arena, r, e);
}

static int world_image(struct cmd_context *c, const char *name, struct err *e)
{
	struct world_result whole = {.use = LOCK_NONE}, base = {.use = LOCK_NONE};
	struct world_image image;
	const char *out = c->global->out ? path_from_here(c->arena, c->global->out) : NULL;

	if (!out) {
		err_set(e, ERR_USAGE, "no file for the image is named");
		return err_hint(e, "name it with --out, for example --out world.tar");
	}

	if (fs_is_dir(TRUSTED, out)) {
		err_set(e, ERR_USAGE, "'%s' is a directory, and the image is a file", out);
		return err_hint(e, "name a file with --out, for example --out world.tar");
	}

	int rc = ensure(c, name, &whole, e);
	if (rc == 0 && whole.world->count > 1)
		rc = ensure(c, whole.world->pieces[0].part->part, &base, e);
	if (rc == 0) {
		const struct world_image_request q = {.run = c->run,
						      .name = whole.world->name,
						      .platform = whole.world->platform,
						      .key = whole.key,
						      .root = whole.dir,
						      .base = base.dir,
						      .to = out};
		log_wait(c->run->log, "%s: writing %s", q.name, out);
		rc = world_image_write(&q, c->arena, &image, e);
	}

	if (rc == 0)
		rc = cmd_show(c,
			      json_pack("{s:i, s:s, s:s, s:s, s:o, s:s, s:I, s:o}", "schema", 1,
					"name", whole.world->name, "platform",
					whole.world->platform, "key", whole.key, "file",
					json_or_null(out), "image", image.name, "bytes",
					(json_int_t)image.bytes, "layers",
					json_from_strlist(&image.layers)),
			      c->global->quiet ? image_quiet : image_rows, e);
	lock_release(&base.use);
	lock_release(&whole.use);
	return rc;
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
	{.text = "[{!dry_run}removed][{?dry_run}would remove] {key:.16}, {bytes:MB}",
	 .each = "removed"},
	{.text = "{removed:#} world{removed:s}, {removed_bytes:MB}[{!dry_run} removed][{?dry_run}, "
		 "would go]; {kept} "
		 "stay[{?busy} ({busy} in use)]"},
	{0}};

#define FIELD(member) JSON_FIELD(struct store_object, member)

static json_t *gc_json(const struct gc_result *r, bool dry_run)
{
	JSON_FIELDS(fields, FIELD(key), JSON_AS(struct store_object, path, "dir"), FIELD(bytes));
	return json_pack("{s:i, s:b, s:o, s:I, s:I, s:I}", "schema", 1, "dry_run", dry_run,
			 "removed", json_rows(r->removed, r->count, sizeof(*r->removed), fields),
			 "removed_bytes", (json_int_t)r->removed_bytes, "kept", (json_int_t)r->kept,
			 "busy", (json_int_t)r->busy);
}

static int world_gc(struct cmd_context *c, const char *name, struct err *e)
{
	const struct world_options *o = c->options;
	struct gc_options q = {.keep_seconds = -1,
			       .max_bytes = -1,
			       .grace_seconds = GC_GRACE_SECONDS,
			       .dry_run = o->dry_run,
			       .kind = STORE_WORLD,
			       .unwanted = unwanted};
	struct gc_result r = {0};
	const char *dir;
	struct store *s;

	(void)name;
	if ((o->keep_days && cmd_keep_days(o->keep_days, &q.keep_seconds, e) < 0) ||
	    cmd_cache_dir(c, &dir, e) < 0)
		return -1;
	q.user = (void *)(uintptr_t)c->profiles_dir;
	if (fs_exists(TRUSTED, dir) &&
	    (cmd_store(c, &s, e) < 0 || store_gc(s, &q, c->run, c->arena, &r, e) < 0))
		return -1;
	return cmd_show(c, gc_json(&r, o->dry_run), gc_rows, e);
}

/* "ptbuild world lock": what the archive's present packages would change in the lock of a part. */
#define ARCHIVE "debian"
#define MANIFEST_MAX (4U << 20) /* a hundred times the largest there is */

/* The lock of a part that is written. */
struct locking {
	struct cmd_context *c;
	const char *profiles, *platform;
	const struct world_part *part;
	const struct world_lock *before; /* NULL: none */
};

static int read_lock(const struct locking *l, const char *part, const struct world_lock **ret,
		     struct err *e)
{
	struct arena *a = l->c->arena;
	const char *path = world_lock_path(l->profiles, part, l->platform, a);
	struct world_lock *lock = arena_alloc(a, sizeof(*lock));

	*ret = NULL;
	if (!fs_exists(TRUSTED, path))
		return 0;
	if (world_lock_read(path, a, lock, e) < 0)
		return -1;
	*ret = lock;
	return 0;
}

/* What a toolkit lies on. */
static int add_base(const struct locking *l, struct lock_request *q, struct err *e)
{
	struct cmd_context *c = l->c;
	const struct world_options *o = c->options;
	bool is_cross = strcmp(q->part->kind, "cross") == 0;
	bool is_base = is_cross || strcmp(q->part->kind, "base") == 0;

	if (is_base && o->base)
		return err_set(e, ERR_USAGE, "--base %s does not apply: '%s' is a %s", o->base,
			       q->part->part, q->part->kind);
	if (is_base)
		return 0;
	if (!o->base) {
		err_set(e, ERR_USAGE, "'%s' is not a base: name its base with --base",
			q->part->part);
		return err_hint(e, "for example --base debian13");
	}

	if (world_part_load(l->profiles, o->base, c->arena, &q->base, e) < 0)
		return -1;
	if (read_lock(l, o->base, &q->base_lock, e) < 0)
		return -1;
	if (q->base_lock)
		return 0;
	err_set(e, ERR_CONFIG, "the base '%s' has no lock for '%s'", o->base, q->platform);
	return err_hint(e, "make it first: ptbuild world lock %s --platform %s --write", o->base,
			q->platform);
}

/* The wheels and the archives that a part asks for, as the Python index
 * and NVIDIA's manifest have them now, in the place of those in the lock.
 * What a python asks for is pinned by hand and stays. */
static int lock_files(struct cmd_context *c, const struct world_part *p, struct world_lock *l,
		      struct err *e)
{
	struct store *store;
	struct world_entry *wheels = arena_array(c->arena, p->wheels_count + 1, sizeof(*wheels)),
			   *archives = NULL;

	if (strcmp(p->kind, "python") == 0) {
		/* "cpython==3.12.7+20241008" is in the lock, by hand. */
		const char *version, *name = text_pin(p->archives[0], c->arena, &version);
		for (size_t i = 0; version && i < l->count; i++)
			if (strcmp(l->entries[i].name, name) == 0 &&
			    strcmp(l->entries[i].version, version) == 0)
				return 0;
		err_set(e, ERR_CONFIG, "the lock of '%s' for %s has no '%s'", p->part, l->platform,
			p->archives[0]);
		return err_hint(e, "no list of such archives is read: write its line, with a "
				   "sha256 that you trust");
	}

	if (cmd_open(c, OPEN_NETWORK, e) < 0 || cmd_store(c, &store, e) < 0)
		return -1;
	const struct fetcher by = {store, c->fetch, c->run, c->arena};
	for (unsigned i = 0; i < p->wheels_count; i++) {
		struct wheel_page page;
		if (wheel_list(&by, p->wheels[i], &page, e) < 0 ||
		    lock_wheel(p->wheels[i], "py3", "none", l->platform, page.files, page.count,
			       c->arena, &wheels[i], e) < 0)
			return -1;
	}

	if (p->archives_count) {
		AUTO_BUF struct buf text = {0};
		const char *file;
		const struct fetch_page page = {p->manifest, NULL, MANIFEST_MAX};
		if (fetch_latest(&by, &page, &file, e) < 0 ||
		    fs_read(TRUSTED, file, MANIFEST_MAX, &text, e) < 0)
			return -1;
		if (lock_redist(text.data, text.len, p->manifest, p->archives, p->archives_count,
				l->platform, c->arena, &archives, e) < 0)
			return -1;
	}

	lock_replace(l, WORLD_WHEEL, wheels, p->wheels_count, c->arena);
	lock_replace(l, WORLD_FILE, archives, p->archives_count, c->arena);
	return 0;
}

static int make_lock(const struct locking *l, struct world_lock *ret, struct err *e)
{
	struct cmd_context *c = l->c;
	const struct world_part *p = l->part;
	const struct world_lock *before = l->before;
	const struct world_options *o = c->options;
	struct lock_request q = {.run = c->run,
				 .part = p,
				 .platform = l->platform,
				 .archive = ARCHIVE,
				 .before = before,
				 .keyring =
					 o->keyring ? path_from_here(c->arena, o->keyring) : NULL};
	struct strlist addresses = {0};
	struct store *store;
	char asked[65];

	if (!p->packages_count) {
		world_part_asked(p, asked);
		*ret = before ? *before
			      : (struct world_lock){.part = p->part, .platform = l->platform};
		ret->asked = arena_strdup(c->arena, asked);
		return lock_files(c, p, ret, e);
	}

	q.addresses = &addresses;
	if (add_base(l, &q, e) < 0)
		return -1;
	if (cmd_open(c, OPEN_NETWORK, e) < 0 || cmd_store(c, &store, e) < 0)
		return -1;
	if (fetch_archive(&(struct fetcher){store, c->fetch, c->run, c->arena}, ARCHIVE, p->suite,
			  &addresses, e) < 0)
		return -1;
	if (lock_make(&q, c->arena, ret, e) < 0)
		return -1;
	return p->wheels_count + p->archives_count ? lock_files(c, p, ret, e) : 0;
}

static const struct show lock_rows[] = {
	{.text = "[{!before}+][{!after}-][{?same_version}!][{!same_version}{?before}{?after} ] "
		 "{kind:<5} {name} [{before}][{!same_version}{?before} -> "
		 "{after}][{!before}{after}, {bytes:MB}][{?same_version}: other bytes or URL of "
		 "one version]",
	 .each = "changes"},
	{.text = "{part} {platform}: {files} file{files:s}, {bytes:MB}[, index of {date}]: {added} "
		 "added, {removed} "
		 "removed, "
		 "{changed} changed[{?other_request}, the table asks for something else than "
		 "before]"},
	{.text = "written to {written}"},
	{0}};

static int world_lock(struct cmd_context *c, const char *name, struct err *e)
{
	const struct world_options *o = c->options;
	const char *written = NULL;
	struct locking l = {.c = c};
	struct world_lock after;

	if (world_platform(c, &l.platform, e) < 0)
		return -1;
	l.profiles = c->profiles_dir;
	if (world_part_load(l.profiles, name, c->arena, &l.part, e) < 0)
		return -1;
	if (world_part_check_platform(l.part, l.platform, e) < 0)
		return -1;
	if (read_lock(&l, name, &l.before, e) < 0 || make_lock(&l, &after, e) < 0)
		return -1;
	AUTO_JSON json_t *diff = lock_compare(l.before, &after, c->arena);
	if (o->write && (!l.before || lock_differs(diff))) {
		written = world_lock_path(l.profiles, name, l.platform, c->arena);
		if (world_lock_save(&after, written, e) < 0)
			return e->kind == ERR_INTEGRITY
				       ? -1
				       : err_hint(e,
						  "give a directory of tables that you may write "
						  "with --profiles DIR");
	}

	json_t *doc = json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:I}", "schema", 1, "part",
				after.part, "platform", after.platform, "suite", after.suite,
				"date", after.date, "files", (json_int_t)after.count, "bytes",
				(json_int_t)world_lock_bytes(&after));
	json_object_update(doc, diff);
	json_object_set_new(doc, "written", json_or_null(written));
	return cmd_show(c, doc, lock_rows, e);
}

/* A list of the worlds' parts. */
struct listing {
	struct cmd_context *c;
	const char *profiles;
	const char *only; /* the platform that is asked for; NULL: all */
	json_t *rows;
};

static int add_row(const struct listing *l, const char *part, struct err *e)
{
	struct cmd_context *c = l->c;
	const char *profiles = l->profiles, *only = l->only;
	json_t *rows = l->rows;
	const struct world_part *p;
	bool any = false;

	if (world_part_load(profiles, part, c->arena, &p, e) < 0)
		return -1;
	if (only && !strings_allow(p->platforms, p->platforms_count, only))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(platforms); i++) {
		const char *path = world_lock_path(profiles, part, platforms[i], c->arena),
			   *made = NULL;
		/* only a base and a cross part are trees by themselves */
		const bool alone = strcmp(p->kind, "base") == 0 || strcmp(p->kind, "cross") == 0;
		const struct world *w;
		struct world_lock lock;
		if (!fs_exists(TRUSTED, path) || (only && strcmp(only, platforms[i]) != 0) ||
		    !strings_allow(p->platforms, p->platforms_count, platforms[i]))
			continue;
		if (world_lock_read(path, c->arena, &lock, e) < 0 ||
		    (alone && (world_load(profiles, part, platforms[i], c->arena, &w, e) < 0 ||
			       find_made(c, w, &made, e) < 0)))
			return -1;
		any = true;
		const json_int_t bytes = (json_int_t)world_lock_bytes(&lock);
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o}",
						"part", part, "kind", p->kind, "platform",
						platforms[i], "files", (json_int_t)lock.count,
						"bytes", bytes ? json_integer(bytes) : json_null(),
						"date", json_or_null(lock.date), "python",
						json_or_null(p->python), "glibc",
						json_or_null(p->glibc), "dir", json_or_null(made)));
	}

	if (!any)
		json_array_append_new(
			rows, json_pack("{s:s, s:s, s:n, s:i, s:n, s:n, s:o, s:o, s:n}", "part",
					part, "kind", p->kind, "platform", "files", 0, "bytes",
					"date", "python", json_or_null(p->python), "glibc",
					json_or_null(p->glibc), "dir"));
	return 0;
}

static const struct show list_rows[] = {
	{.each = "parts",
	 .columns = {"PART={part}", "KIND={kind}", "PLATFORM={platform|no lock}", ">FILES={files}",
		     ">DOWNLOAD={bytes:MB}", "PYTHON={python}", "GLIBC={glibc}",
		     "LOCKED={date:.10}", "MADE={dir}"}},
	{0}};

static int world_list(struct cmd_context *c, const char *name, struct err *e)
{
	struct strlist parts = {0};
	const struct world_options *o = c->options;
	AUTO_JSON json_t *rows = json_array();
	struct listing l = {.c = c, .rows = rows};

	(void)name;
	if (o->platform && world_platform(c, &l.only, e) < 0)
		return -1;
	l.profiles = c->profiles_dir;
	if (world_part_names(l.profiles, c->arena, &parts, e) < 0)
		return -1;
	for (size_t i = 0; i < parts.count; i++)
		if (add_row(&l, parts.items[i], e) < 0)
			return -1;
	return cmd_show(c, json_pack("{s:i, s:O}", "schema", 1, "parts", rows), list_rows, e);
}

#undef FIELD
#define FIELD(member) JSON_FIELD(struct world_part, member)
#define LINK(member) JSON_FIELD(struct world_link, member)
#define MADE(member) JSON_FIELD(struct world_made, member)
#define STRINGS(member) JSON_STRINGS(struct world_part, member)

static json_t *part_json(const struct world_part *p)
{
	JSON_FIELDS(links, LINK(path), LINK(to), LINK(why));
	JSON_FIELDS(made, MADE(path), MADE(kind), MADE(from), MADE(why));
	JSON_FIELDS(fields, FIELD(part), FIELD(kind), FIELD(sources), FIELD(suite),
		    STRINGS(packages), STRINGS(wheels), STRINGS(exclude), STRINGS(keep));
	json_t *o = json_object();
	json_add(o, p, fields);
	json_object_set_new(o, "links",
			    json_rows(p->links, p->links_count, sizeof(*p->links), links));
	json_object_set_new(o, "made", json_rows(p->made, p->made_count, sizeof(*p->made), made));
	return o;
}

static json_t *piece_json(const struct world_piece *p)
{
	json_t *files = json_array();

	for (size_t i = 0; i < p->lock.count; i++) {
		const struct world_entry *f = &p->lock.entries[i];
		json_array_append_new(files,
				      json_pack("{s:s, s:s, s:s, s:o, s:I, s:s, s:s}", "kind",
						world_kind_names[f->kind], "name", f->name,
						"version", f->version, "arch", json_filled(f->arch),
						"bytes", (json_int_t)f->size, "sha256", f->sha256,
						"place", f->place));
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
		json_object_set_new(piece, "-bytes",
				    json_integer((json_int_t)world_lock_bytes(&w->pieces[i].lock)));
		json_object_set_new(piece, "-suite", json_or_null(w->pieces[i].lock.suite));
		json_array_append_new(pieces, piece);
	}

	return json_pack("{s:i, s:s, s:s, s:s, s:I, s:o, s:o}", "schema", 1, "name", w->name,
			 "platform", w->platform, "key", w->key, "bytes", (json_int_t)w->download,
			 "dir", json_or_null(dir), "parts", pieces);
}

#define ROW(label, text, ...) SHOW(label, text, .indent = 2, ##__VA_ARGS__)

static const struct show piece_rows[] = {
	{.text = "\n{table.part}: {table.kind}, {files:#} file{files:s}, {-bytes:MB}"},
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
	const char *dir;
	const struct world *w;

	if (load(c, name, &w, e) < 0 || find_made(c, w, &dir, e) < 0)
		return -1;
	return cmd_show(c, world_json(w, dir), show_rows, e);
}

static int run_world(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	static const struct cmd_action actions[] = {
		{"list", " platform ", false, world_list},
		{"show", " platform ", true, world_show},
		{"make", " platform keyring copy ", true, world_make},
		{"image", " platform ", true, world_image},
		{"lock", " platform keyring base write ", true, world_lock},
		{"verify", " platform ", true, world_verify},
		{"gc", " keep-days dry-run ", false, world_gc}};

	static const char *const makers[] = {"make", "image"};

	if (c->global->no_drift && args->count &&
	    !strings_contain(makers, ARRAY_LEN(makers), args->items[0]))
		return err_set(e, ERR_USAGE, "world %s does not support --no-drift",
			       args->items[0]);
	return cmd_action(c, actions, ARRAY_LEN(actions), args, e);
}

#define OPTION(type, field) (type), offsetof(struct world_options, field)

static const struct arg_def world_options[] = {
	{"platform", 0, OPTION(ARG_STRING, platform), "PLATFORM",
	 "of the parts: x86_64-linux or aarch64-linux (default: this machine's; list: both)",
	 "x86_64-linux aarch64-linux"},
	{"keyring", 0, OPTION(ARG_STRING, keyring), "FILE",
	 "make, lock: the keys that may sign the archive's index (default: Debian's of this "
	 "machine)",
	 "<file>"},
	{"write", 0, OPTION(ARG_FLAG, write), NULL,
	 "lock: write the new lock into the tables' directory", NULL},
	{"base", 0, OPTION(ARG_STRING, base), "PART", "lock: the base of a part with packages",
	 "<world>"},
	{"copy", 0, OPTION(ARG_STRING, copy), "DIR",
	 "make: copy the root to this new directory, which is yours to change", "<dir>"},
	{"keep-days", 0, OPTION(ARG_STRING, keep_days), "N",
	 "gc: remove what was not used for N days too", NULL},
	{"dry-run", 'n', OPTION(ARG_FLAG, dry_run), NULL,
	 "gc: show what would be removed, and do nothing", NULL},
	{0},
};

const struct command command_world = {
	.name = "world",
	.summary = "make, check and pin the root file systems that builds run in",
	.usage = "list|show|make|image|lock|verify|gc [NAME] [options]",
	.tables = {world_options},
	.arguments = {{"ACTION",
		       "list: parts and what they take to download; show: every file of a world; "
		       "make: fetch and make "
		       "it; image: write it as a container image to --out FILE; lock: what a new "
		       "lock of a part changes; verify: hash a made world "
		       "again; gc: remove "
		       "worlds that no table names any more",
		       "list show make image lock verify gc"},
		      {"NAME", "a world, or for lock a part", "<world>"}},
	.options_size = sizeof(struct world_options),
	.run = run_world,
};
