#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cache/store.h"
#include "cmd/select.h"
#include "cmd/slim_gpus.h"
#include "core/machine/detect.h"
#include "core/variant/variant.h"
#include "core/wheel/wheel.h"
#include "step/fetch/fetch_room.h"
#include "step/pack/pack.h"
#include "step/slim/slim_env.h"

#define GENERATOR "ptbuild " PTBUILD_VERSION

struct slim_options {
	struct cmd_globals global;
	struct strlist gpus, profiles;
	const char *cuda;
	bool nvidia, dry_run;
	const char *env;
	const char *release, *python, *platform;
	struct strlist packages, pin, drop, keep;
};

struct slim_targets {
	struct slim_target *items;
	size_t count;
	const struct tables *tables;
	const char *platform; /* of the first profile; NULL: none is named */
	/* of --gpu native, whose driver decides; NULL: not asked for */
	const struct hardware *machine;
};

static int set_target(struct cmd_context *c, const struct tables *t, const struct profile *p,
		      const char *word, struct slim_target *ret, struct err *e)
{
	struct strlist words = {0};
	struct fatbin_gpu *gpus = arena_array(c->arena, p->targets_count + 1, sizeof(*gpus));
	struct profile bare = {.gpu = GPU_CUDA,
			       .targets = p->targets,
			       .targets_count = p->targets_count,
			       .file = ""};

	if (p->gpu != GPU_CUDA) {
		err_set(e, ERR_USAGE, "'%s' has no GPU target", word);
		return err_hint(e, "slim keeps the code of NVIDIA's GPUs, for example --gpu sm90");
	}

	for (unsigned i = 0; i < p->targets_count; i++) {
		const struct gpu_target *g = &p->targets[i];
		if (*g->suffix) {
			err_set(e, ERR_USAGE, "'%s' names a form of code, not a GPU", word);
			return err_hint(e, "write sm%s: its sm%s%s code stays as well", g->row->sm,
					g->row->sm, g->suffix);
		}

		gpus[i] = (struct fatbin_gpu){(unsigned)strtoul(g->row->sm, NULL, 10), g->ptx};
		strlist_addf(&words, c->arena, "sm%s%s", g->row->sm, g->ptx ? "+ptx" : "");
	}

	*ret = (struct slim_target){.name = strlist_join(&words, c->arena, "+"),
				    .label = profile_label(&bare, NULL, c->arena),
				    .wanted = {.gpus = gpus, .count = p->targets_count}};
	ret->wanted.alone = tables_chips(t, c->arena, &ret->wanted.alone_count);
	return 0;
}

static int profile_of(struct cmd_context *c, const char *word, struct profile *ret, struct err *e)
{
	if (profile_parse(c->tables, arena_printf(c->arena, "%s-avx2", word), c->arena, ret, e) ==
	    0)
		return 0;
	/* of the profile that it was made a part of nobody knows */
	struct err why = *e;
	const char *text = strstr(why.msg, "': ");
	err_set(e, why.kind, "option '--gpu': %s", text ? text + 3 : why.msg);
	return *why.hint ? err_hint(e, "%s", why.hint) : -1;
}

int cmd_gpu_profile(struct cmd_context *c, const char *word, struct profile *ret, struct err *e)
{
	struct slim_target target;

	if (cmd_open(c, OPEN_TABLES, e) < 0 || profile_of(c, word, ret, e) < 0 ||
	    set_target(c, c->tables, ret, word, &target, e) < 0)
		return -1;
	ret->isa = NULL;
	ret->name = target.name;
	return 0;
}

/* "sm80+sm90" of --gpu, the GPU part of --profile. The instruction set
 * of a profile says nothing: the code for the processor stays as it is. */
static int read_targets(struct cmd_context *c, struct slim_targets *ret, struct err *e)
{
	const struct slim_options *o = c->options;
	size_t count = o->gpus.count + o->profiles.count;

	if (!count) {
		err_set(e, ERR_USAGE, "no GPU is named");
		return err_hint(
			e, "name one, for example --gpu sm90 or --gpu sm80+sm90, or a --profile");
	}

	if (cmd_open(c, OPEN_TABLES, e) < 0)
		return -1;
	const struct tables *t = ret->tables = c->tables;
	ret->items = arena_array(c->arena, count, sizeof(*ret->items));
	for (size_t i = 0; i < count; i++) {
		const char *word =
			i < o->gpus.count ? o->gpus.items[i] : o->profiles.items[i - o->gpus.count];
		struct profile p;
		struct slim_target *to = &ret->items[ret->count];
		if (i < o->gpus.count && strcmp(word, "native") == 0) {
			if (slim_native(c, &word, &ret->machine, e) < 0)
				return -1;
		}

		if (detect_is_native(word)) {
			err_set(e, ERR_USAGE, "slim does not support '%s'", word);
			return err_hint(
				e, "use --gpu native, or name the GPU, for example --gpu sm90");
		}

		int rc = i < o->gpus.count ? profile_of(c, word, &p, e)
					   : profile_load(t, word, c->arena, &p, e);
		if (rc < 0 || set_target(c, t, &p, word, to, e) < 0)
			return -1;
		if (i >= o->gpus.count && !ret->platform)
			ret->platform = p.platform;
		if (!text_search(to->name, ret->items, ret->count, sizeof(*to)))
			ret->count++;
	}

	return 0;
}

static struct fatbin_count *count_of(struct fatbin_count *items, size_t *count,
				     const struct fatbin_count *like)
{
	for (size_t i = 0; i < *count; i++)
		if (items[i].number == like->number && strcmp(items[i].target, like->target) == 0)
			return &items[i];
	items[*count] = *like;
	items[*count].bytes = items[*count].entries = 0;
	return &items[(*count)++];
}

/* Kept or dropped code of all files together. */
static json_t *code_json(const struct fatbin_file_cut *files, size_t count, bool dropped,
			 struct arena *a)
{
	struct fatbin_count all[64];
	struct strlist words = {0};
	size_t n = 0;
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++) {
		const struct fatbin_cut *c = &files[i].cut;
		const struct fatbin_count *items = dropped ? c->dropped : c->kept;
		size_t items_count = dropped ? c->dropped_count : c->kept_count;
		bytes += dropped ? c->dropped_bytes : c->kept_bytes;
		for (size_t k = 0; k < items_count && n < ARRAY_LEN(all); k++)
			count_of(all, &n, &items[k])->bytes += items[k].bytes;
	}

	for (size_t i = 0; i < n; i++)
		strlist_addf(&words, a, "%s %.1f", fatbin_name(&all[i], a),
			     (double)all[i].bytes / 1e6);
	return json_pack("{s:I, s:o}", "bytes", (json_int_t)bytes, "-code",
			 json_from_strlist(&words));
}

static json_t *files_json(const struct fatbin_file_cut *files, size_t count,
			  const struct fatbin_wanted *w, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *one = slim_file_json(&files[i], w, a);
		json_object_set_new(one, "-runs_on", json_or_null(slim_runs_on(&files[i], w, a)));
		json_array_append_new(list, one);
	}

	return list;
}

static json_t *wheel_json(const char *from, const struct slim_target *t,
			  const struct slim_result *r, struct arena *a)
{
	const struct pack_result *p = &r->packed;

	return json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:{s:s, s:s}, s:o, s:o, s:o}",
			 "wheel", json_or_null(p->path), "sha256", p->sha256, "gpu", t->name,
			 "bytes", (json_int_t)p->bytes, "bytes_before", (json_int_t)r->bytes_before,
			 "unpacked", (json_int_t)p->unpacked_bytes, "unpacked_before",
			 (json_int_t)r->unpacked_before, "made_from", "wheel", path_base(from),
			 "sha256", r->sha256_before, "kept",
			 code_json(r->files, r->files_count, false, a), "dropped",
			 code_json(r->files, r->files_count, true, a), "files",
			 files_json(r->files, r->files_count, &t->wanted, a));
}

static const struct show wheel_rows[] = {
	SHOW("size",
	     "{bytes:MB} of {bytes_before:MB}, {unpacked:MB} of {unpacked_before:MB} unpacked",
	     .indent = 2),
	SHOW("kept", "{kept.bytes:MB}[: {kept.-code:,}]", .indent = 2),
	SHOW("dropped", "{dropped.bytes:MB}[: {dropped.-code:,}]", .indent = 2),
	SHOW("targets", "arch list {targets_told}[ (runs on {-runs_on})]", .each = "files",
	     .indent = 2),
	SHOW("left", "{file}: {left}", .each = "files", .indent = 2),
	SHOW("lacking", "{file}: {lacking}", .each = "files", .indent = 2),
	{0}};

static const struct show wheels_rows[] = {{.text = "{wheel}", .each = "wheels", .rows = wheel_rows},
					  {0}};

int cmd_slim(struct cmd_context *c, const char *wheel, const struct profile *p, const char *dir,
	     const char **ret, struct err *e)
{
	struct slim_target target;
	struct slim_result result;
	struct slim_request q = {.run = c->run,
				 .wheel = wheel,
				 .targets = &target,
				 .count = 1,
				 .generator = GENERATOR,
				 .threads = c->global->jobs,
				 .out_dir = dir};
	bool any;

	if (cmd_open(c, OPEN_TABLES, e) < 0 || set_target(c, c->tables, p, p->name, &target, e) < 0)
		return -1;
	q.tables = c->tables;
	if (slim_wheel(&q, c->arena, &result, &any, e) < 0)
		return -1;
	*ret = any && !result.same ? result.packed.path : NULL;
	return 0;
}

/* ---- --dry-run: what would be made of a wheel that is here, and what would be downloaded ---- */

static json_t *would_json(const char *from, const struct slim_target *t,
			  const struct slim_result *r, struct arena *a)
{
	return json_pack("{s:s, s:b, s:s, s:I, s:I, s:I, s:o, s:o}", "wheel", path_base(from),
			 "here", true, "gpu", t->name, "bytes_before", (json_int_t)r->bytes_before,
			 "unpacked", (json_int_t)r->packed.unpacked_bytes, "unpacked_before",
			 (json_int_t)r->unpacked_before, "kept",
			 code_json(r->files, r->files_count, false, a), "dropped",
			 code_json(r->files, r->files_count, true, a));
}

static const struct show would_rows[] = {
	{.text = "{?here}{wheel} would be slimmed for {gpu}: {unpacked:MB} of {unpacked_before:MB} "
		 "unpacked",
	 .each = "wheels",
	 .rows =
		 (const struct show[]){
			 SHOW("kept", "{?here}{kept.bytes:MB}[: {kept.-code:,}]", .indent = 2),
			 SHOW("dropped", "{?here}{dropped.bytes:MB}[: {dropped.-code:,}]",
			      .indent = 2),
			 {0}}},
	{.text = "{!here}{wheel} would be taken from {origin} ({bytes_before:MB}) and slimmed for "
		 "{gpu}",
	 .each = "wheels"},
	{.text = "{missing}"},
	{0}};

/* A wheel of --release that is not in the store: what the table has of it. */
static json_t *absent_json(const struct official_wheel *w, const char *origin,
			   const struct slim_targets *t, struct arena *a)
{
	struct strlist names = {0};

	for (size_t i = 0; i < t->count; i++)
		strlist_ref(&names, a, t->items[i].name);
	return json_pack("{s:s, s:b, s:s, s:s, s:I, s:n, s:n, s:n, s:n}", "wheel", w->file, "here",
			 false, "origin", origin, "gpu", strlist_join(&names, a, ","),
			 "bytes_before", (json_int_t)w->size, "unpacked", "unpacked_before", "kept",
			 "dropped");
}

/* The output directory, and the lowest one of its path that was there before. */
struct slim_out {
	const char *dir, *top;
};

/* Wheels on their way through the command. */
struct slim_work {
	const struct slim_targets *targets;
	struct slim_out out;
	struct strlist wheels; /* that are cut */
	json_t *absent;        /* those of --release that a dry run lacks */
};

/* `absent` gets those that are not in the store, *ret_count those that are.
 * What the command itself could not fetch offline is refused here, too. */
static int skip_absent(struct cmd_context *c, struct slim_work *w,
		       const struct official_wheel **found, size_t *ret_count, struct err *e)
{
	struct store *store;
	size_t kept = 0;

	if (cmd_store_look(c, &store, e) < 0 || cmd_open(c, OPEN_NETWORK, e) < 0)
		return -1;
	for (size_t i = 0; i < *ret_count; i++) {
		const struct fetch_source source = fetch_source_official(found[i], c->arena);
		const char *origin;
		if (fetch_has(store, found[i]->sha256)) {
			found[kept++] = found[i];
			continue;
		}

		if (fetch_origin(&(struct fetcher){store, c->fetch, NULL, c->arena}, &source,
				 &origin, e) < 0)
			return -1;
		json_array_append_new(w->absent,
				      absent_json(found[i], origin, w->targets, c->arena));
	}

	*ret_count = kept;
	return 0;
}

static int would_cut(struct cmd_context *c, const struct slim_work *w, struct err *e)
{
	const struct strlist *wheels = &w->wheels;
	const struct slim_targets *t = w->targets;
	const struct slim_options *o = c->options;
	AUTO_JSON json_t *list = json_array();
	const char *dir = NULL, *missing = NULL;
	struct store *store = NULL;
	int rc = 0;

	if (wheels->count &&
	    (cmd_store(c, &store, e) < 0 || store_stage(store, c->arena, &dir, e) < 0))
		return -1;
	for (size_t i = 0; i < wheels->count && rc == 0; i++) {
		struct slim_result *results = arena_array(c->arena, t->count, sizeof(*results));
		const struct slim_request q = {.run = c->run,
					       .wheel = wheels->items[i],
					       .targets = t->items,
					       .count = t->count,
					       .tables = t->tables,
					       .nvidia = o->nvidia,
					       .threads = c->global->jobs,
					       .out_dir = dir,
					       .dry_run = true};
		bool any;
		rc = slim_wheel(&q, c->arena, results, &any, e);
		for (size_t k = 0; rc == 0 && any && k < t->count; k++)
			json_array_append_new(list, would_json(wheels->items[i], &t->items[k],
							       &results[k], c->arena));
		if (rc == 0 && !any)
			log_warn(c->run->log, "'%s' has no GPU code: use it as it is",
				 path_base(wheels->items[i]));
	}

	if (dir)
		store_drop_stage(store, dir);
	if (rc < 0)
		return -1;
	if (json_array_size(w->absent))
		missing = "to see the slimmed size, run it without --dry-run (downloads the wheel)";
	json_array_extend(list, w->absent);
	return cmd_result(c,
			  json_pack("{s:i, s:b, s:O, s:o}", "schema", 1, "dry_run", true, "wheels",
				    list, "missing", json_or_null(missing)),
			  would_rows, e);
}

/* Before a download: one that nothing can be written to ends the command. Again before each
 * wheel: another process may have removed it as its own. */
static int make_out_dir(struct cmd_context *c, struct slim_out *o, struct err *e)
{
	if (cmd_open(c, OPEN_OUTPUT, e) < 0)
		return -1;
	o->dir = c->out_dir;
	o->top = o->top ? o->top : fs_standing(o->dir, c->arena);
	int rc = fs_mkdirs(TRUSTED, o->dir, e);
	if (rc == 0 && access(o->dir, W_OK | X_OK) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot write into '%s'", o->dir);
	if (rc < 0 && !err_disk(e->msg)) /* a full disk has a hint of its own */
		return err_hint(e, "name another directory with --out");
	return rc;
}

static int cut_wheels(struct cmd_context *c, struct slim_work *w, struct err *e)
{
	const struct strlist *wheels = &w->wheels;
	const struct slim_targets *t = w->targets;
	const struct slim_options *o = c->options;
	AUTO_JSON json_t *list = json_array();

	for (size_t i = 0; i < wheels->count; i++) {
		if (make_out_dir(c, &w->out, e) < 0)
			return -1;
		struct slim_result *results = arena_array(c->arena, t->count, sizeof(*results));
		const struct slim_request q = {.run = c->run,
					       .wheel = wheels->items[i],
					       .targets = t->items,
					       .count = t->count,
					       .tables = t->tables,
					       .cuda = o->cuda,
					       .nvidia = o->nvidia,
					       .generator = GENERATOR,
					       .threads = c->global->jobs,
					       .out_dir = w->out.dir};
		bool any;
		if (slim_wheel(&q, c->arena, results, &any, e) < 0)
			return -1;
		if (!any && wheels->count == 1) {
			err_set(e, ERR_POLICY, "'%s' has no GPU code", wheels->items[i]);
			return err_hint(e, "it has nothing to remove: use it as it is (code for "
					   "AMD's GPUs stays whole)");
		}

		if (!any)
			log_warn(c->run->log, "'%s' has no GPU code: use it as it is",
				 path_base(wheels->items[i]));
		if (any && results[0].same)
			log_info(c->run->log, "'%s' is already slimmed for %s",
				 path_base(wheels->items[i]), t->items[0].name);
		for (size_t k = 0; any && k < t->count && !results[k].same; k++)
			json_array_append_new(list, wheel_json(wheels->items[i], &t->items[k],
							       &results[k], c->arena));
	}

	return cmd_result(c, json_pack("{s:i, s:O}", "schema", 1, "wheels", list), wheels_rows, e);
}

/* ---- official wheels, pinned ---- */

/* --pin: the file of the release as the index is now;
 * what the file has already must not be another. */
static int pin(struct cmd_context *c, struct err *e)
{
	const struct slim_options *o = c->options;
	struct official made = {0}, old = {0};
	AUTO_BUF struct buf text = {0};
	struct store *store;
	const char *cuda[2] = {NULL, NULL};

	if (cmd_open(c, OPEN_NETWORK, e) < 0 || cmd_store(c, &store, e) < 0)
		return -1;
	const struct fetch_options *fetch = c->fetch;
	const char *profiles = c->profiles_dir;
	for (size_t i = 0; i < o->pin.count; i++) {
		struct wheel_page page;
		const struct fetcher by = {store, fetch, c->run, c->arena};
		const struct cmd_listed listed = {o->pin.items[i], o->cuda, &page};
		if (wheel_list(&by, o->pin.items[i], &page, e) < 0 ||
		    (i == 0 && cmd_official_cuda(&by, &listed, cuda, e) < 0))
			return -1;
		if (official_take(&made, o->pin.items[i], page.files, page.count, cuda, c->arena,
				  e) < 0)
			return -1;
	}

	const char *dir = path_join(c->arena, profiles, "official"),
		   *path = path_join(c->arena, dir, o->release);
	if (fs_exists(TRUSTED, path) && official_read(profiles, o->release, c->arena, &old, e) < 0)
		return -1;
	for (size_t i = 0; i < old.count; i++)
		for (size_t k = 0; k < made.count; k++)
			if (strcmp(old.wheels[i].file, made.wheels[k].file) == 0 &&
			    strcmp(old.wheels[i].sha256, made.wheels[k].sha256) != 0)
				return err_set(e, ERR_INTEGRITY,
					       "the index has '%s' with sha256 %s, '%s' pins %s",
					       made.wheels[k].file, made.wheels[k].sha256, path,
					       old.wheels[i].sha256);
	official_keep(&made, &old, c->arena);
	official_text(&made, o->release, &text);
	if (fs_mkdirs(TRUSTED, dir, e) < 0 || fs_sweep(TRUSTED, dir, e) < 0 ||
	    fs_write(TRUSTED, path, text.data, text.len, 0644, e) < 0)
		return -1;
	log_info(c->run->log, "%s: %zu wheel%s", path, made.count, plural(made.count));
	return 0;
}

/* The distributions that --package names. */
static void named_dists(const struct slim_options *o, struct cmd_official *q, struct arena *a)
{
	q->all = strlist_contains(&o->packages, "all");
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		const bool implied = i == 0 && (q->all || !o->packages.count);
		if (implied || strlist_contains(&o->packages, tables_packages[i]))
			strlist_ref(&q->dists, a, tables_distribution(tables_packages[i]));
	}
}

static const char *wheel_platform(struct cmd_context *c, const struct slim_targets *t)
{
	const struct slim_options *o = c->options;

	if (o->platform)
		return o->platform;
	return t->platform ? t->platform : machine_platform(c->arena);
}

/* The release that is named, or the newest that serves all targets. */
static int find_release(struct cmd_context *c, const struct slim_targets *t, struct cmd_official *q,
			struct err *e)
{
	const struct slim_options *o = c->options;

	q->cuda = o->cuda;
	q->platform = wheel_platform(c, t);
	q->machine = t->machine;
	named_dists(o, q, c->arena);
	for (size_t i = 0; i < t->count; i++)
		for (size_t k = 0; k < t->items[i].wanted.count; k++)
			strlist_once(
				&q->gpus, c->arena,
				arena_printf(c->arena, "%u", t->items[i].wanted.gpus[k].number));
	q->release = o->release;
	if (!o->release || strcmp(o->release, CMD_LATEST) == 0)
		return cmd_official_newest(c, q, o->python, &q->release, e);
	return cmd_official_check(c, q, o->python, e);
}

/* The output directory, and disk space for what is downloaded and made. */
static int make_room(struct cmd_context *c, struct slim_work *w,
		     const struct official_wheel *const *found, size_t count, struct err *e)
{
	struct store *store;
	uint64_t torch = 0;

	if (make_out_dir(c, &w->out, e) < 0 || cmd_open(c, OPEN_NETWORK, e) < 0 ||
	    cmd_store(c, &store, e) < 0)
		return -1;
	struct fetch_source *sources = arena_array(c->arena, count, sizeof(*sources));
	for (size_t i = 0; i < count; i++) {
		sources[i] = fetch_source_official(found[i], c->arena);
		torch += strcmp(found[i]->name.dist, "torch") == 0 ? found[i]->size : 0;
	}

	const struct fetcher by = {store, c->fetch, c->run, c->arena};
	const uint64_t made = torch * w->targets->tables->slim_percent / 100 * w->targets->count;
	const struct fetch_room room = {sources, count, made, w->out.dir};
	return fetch_room_check(&by, &room, e);
}

/* The wheels of --release out of the store, fetched by their digests. */
static int fetch_official(struct cmd_context *c, struct slim_work *w, struct err *e)
{
	const struct slim_options *o = c->options;
	const struct official_wheel *found[TABLES_PACKAGES];
	struct cmd_official q = {0};
	struct official all;
	size_t count = 0;
	const char *python = o->python;

	if (find_release(c, w->targets, &q, e) < 0 ||
	    official_read(c->profiles_dir, q.release, c->arena, &all, e) < 0 ||
	    (!python && q.dists.count && cmd_official_python(c, &all, &q, &python, e) < 0))
		return -1;
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		const char *dist = tables_distribution(tables_packages[i]);
		const bool named = strlist_contains(&q.dists, dist);
		if (!named && !q.all)
			continue;
		if (!named && i && !official_has(&all, dist, c->arena)) {
			log_warn(c->run->log, "'%s' has no %s", all.path, dist);
			continue;
		}

		if (official_find(&all, dist, python, q.platform, o->cuda, c->arena,
				  &found[count++], e) < 0)
			return -1;
	}

	if (!count)
		return err_set(
			e, ERR_USAGE,
			"no package is named 'pytorch', 'torchvision', 'torchaudio' or 'all'");
	if (o->dry_run && skip_absent(c, w, found, &count, e) < 0)
		return -1;
	if (!o->dry_run && make_room(c, w, found, count, e) < 0)
		return -1;
	return count ? cmd_official_fetch(c, found, count, &w->wheels, e) : 0;
}

static json_t *package_json(const struct slim_package *p, const struct fatbin_wanted *w,
			    struct arena *a)
{
	return json_pack("{s:s, s:o, s:I, s:I, s:I, s:o, s:o}", "package", p->info, "place",
			 json_or_null(p->place->path), "bytes_before", (json_int_t)p->before,
			 "bytes", (json_int_t)p->after, "blank", (json_int_t)p->blank, "left",
			 json_or_null(p->left), "files", files_json(p->files, p->count, w, a));
}

static json_t *kind_json(const struct slim_kind *k, struct arena *a)
{
	return json_pack("{s:s, s:b, s:b, s:I, s:i, s:s}", "kind", k->name, "dropped", k->chosen,
			 "default", k->by_default, "bytes", (json_int_t)k->bytes, "files",
			 (int)k->files, "lost", strlist_join(&k->lost, a, "; "));
}

/* The kinds of which something was found: those that go, or those that stay. */
static json_t *kinds_json(const struct slim_drops *d, bool chosen, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->count; i++)
		if (d->kinds[i].chosen == chosen && d->kinds[i].files)
			json_array_append_new(list, kind_json(&d->kinds[i], a));
	return list;
}

static const struct show package_rows[] = {
	{.text = "{file}: {left}", .each = "files", .indent = 2},
	{.text = "{file}: {lacking}", .each = "files", .indent = 2},
	{0}};

static const struct show env_rows[] = {
	{.text = "{package:<44} {bytes:MB} of {bytes_before:MB}[{?blank}, {blank:MB} of it "
		 "zeros][, left: {left}]",
	 .each = "packages",
	 .rows = package_rows},
	SHOW("drop {kind}", "{bytes:MB}; lost: {lost}", .each = "kinds"),
	SHOW("keep {kind}", "{bytes:MB} more with --drop {kind}; lost: {lost}", .each = "kept"),
	{.text = "{?dry_run}{env} would be slimmed for {gpu}: {bytes:MB} of {bytes_before:MB}"},
	{.text = "{!dry_run}{env} is slimmed for {gpu}: {bytes:MB} of {bytes_before:MB}"},
	{.text = "on disk: {disk:MB} of {disk_before:MB}"},
	{0}};

static int warn_gpus(struct cmd_context *c, const struct slim_target *t, struct err *e)
{
	struct slim_marker m = {0};

	for (size_t g = 0; g < t->wanted.count; g++)
		slim_marker_gpu(&m, t->wanted.gpus[g].number, t->wanted.gpus[g].ptx, c->arena);
	return cmd_env_warn(c, &m, e);
}

static int cut_env(struct cmd_context *c, const struct slim_targets *t, struct err *e)
{
	const struct slim_options *o = c->options;
	struct slim_drops drops;
	const struct slim_env_request q = {.run = c->run,
					   .dir = o->env,
					   .wanted = &t->items[0].wanted,
					   .tables = t->tables,
					   .drops = &drops,
					   .dry_run = o->dry_run};
	AUTO_JSON json_t *list = json_array();
	struct slim_env_result r;

	if (t->count > 1)
		return err_set(e, ERR_USAGE,
			       "an environment is slimmed for one set of GPUs, not %zu", t->count);
	if (slim_drops_choose(t->tables, &o->drop, &o->keep, c->arena, &drops, e) < 0 ||
	    warn_gpus(c, &t->items[0], e) < 0 || slim_env(&q, c->arena, &r, e) < 0)
		return -1;
	for (size_t i = 0; i < r.count; i++)
		if (r.packages[i].count || r.packages[i].left)
			json_array_append_new(list,
					      package_json(&r.packages[i], q.wanted, c->arena));
	return cmd_result(
		c,
		json_pack("{s:i, s:o, s:s, s:b, s:I, s:I, s:I, s:I, s:O, s:o, s:o}", "schema", 1,
			  "env", json_or_null(o->env), "gpu", t->items[0].name, "dry_run",
			  o->dry_run, "bytes_before", (json_int_t)r.before, "bytes",
			  (json_int_t)r.after, "disk_before", (json_int_t)r.disk_before, "disk",
			  (json_int_t)r.disk_after, "packages", list, "kinds",
			  kinds_json(&drops, true, c->arena), "kept",
			  o->dry_run ? kinds_json(&drops, false, c->arena) : json_array()),
		env_rows, e);
}

/* Official wheels, or those that are given. */
static int cut(struct cmd_context *c, const struct strlist *words, const struct slim_targets *t,
	       struct err *e)
{
	const struct slim_options *o = c->options;
	AUTO_JSON json_t *absent = json_array();
	struct slim_work w = {.targets = t, .wheels = *words, .absent = absent};
	int rc = 0;

	if (!words->count)
		rc = fetch_official(c, &w, e);
	if (rc == 0)
		rc = o->dry_run ? would_cut(c, &w, e) : cut_wheels(c, &w, e);
	fs_drop_empty(w.out.dir, w.out.top);
	return rc;
}

static int slim_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	struct slim_targets targets = {0};
	const struct slim_options *o = c->options;
	const unsigned ways = (words->count > 0) + (o->env != NULL) + (o->release != NULL);

	if (ways > 1 || (!ways && !o->gpus.count && !o->profiles.count)) {
		err_set(e, ERR_USAGE,
			ways ? "wheels, --env and --release cannot be used together"
			     : "slim needs a GPU or a wheel");
		return err_hint(e, "for example 'ptbuild slim --gpu native', 'ptbuild slim "
				   "--release 2.9.1 --gpu sm90' "
				   "or 'ptbuild slim torch-2.9.1-*.whl --gpu sm90'");
	}

	if (o->dry_run && o->pin.count)
		return err_set(e, ERR_USAGE, "--dry-run and --pin cannot be used together");
	if (!o->env && (o->drop.count || o->keep.count))
		return err_set(e, ERR_USAGE, "--drop and --keep are for --env");
	if (ways && !o->release && (o->python || o->platform || o->packages.count))
		return err_set(
			e, ERR_USAGE,
			"--python, --platform and --package do not apply to wheels and --env");
	if (!o->release && o->pin.count)
		return err_set(e, ERR_USAGE, "--pin needs --release");
	if (o->cuda && !version_valid(o->cuda))
		return err_set(e, ERR_USAGE, "option '--cuda': not a version: '%s'", o->cuda);
	if (o->pin.count && !version_valid(o->release))
		return err_set(e, ERR_USAGE, "option '--release': not a version: '%s'", o->release);
	if (o->pin.count)
		return pin(c, e);
	if (read_targets(c, &targets, e) < 0)
		return -1;
	return o->env ? cut_env(c, &targets, e) : cut(c, words, &targets, e);
}

#define OPTION(type, field) (type), offsetof(struct slim_options, field)

static const struct arg_def slim_options[] = {
	{"gpu", 0, OPTION(ARG_LIST, gpus), "TARGETS",
	 "GPUs whose code stays: native, sm90, or sm80+sm90 in one wheel; commas between make a "
	 "wheel each",
	 "<gpu>"},
	{"profile", 'p', OPTION(ARG_LIST, profiles), "PROFILES", "the same by the GPUs of profiles",
	 "<profile>"},
	{"release", 0, OPTION(ARG_STRING, release), "VERSION",
	 "official wheels of this release, pinned by digest (default without wheels: the newest "
	 "that fits)",
	 "<official>"},
	{"package", 0, OPTION(ARG_LIST, packages), "NAMES",
	 "with --release: pytorch (default), torchvision, torchaudio or all",
	 "pytorch torchvision torchaudio all"},
	{"python", 0, OPTION(ARG_STRING, python), "VERSION",
	 "with --release: for this Python (default: the user's, where the release has it)",
	 "<python>"},
	{"platform", 0, OPTION(ARG_STRING, platform), "NAME",
	 "with --release: the wheels' platform (default: the profile's, else this machine's)",
	 "x86_64-linux aarch64-linux"},
	{"pin", 0, OPTION(ARG_LIST, pin), "NAME==VERSION",
	 "with --release: write the file of its wheels, as the index has them, torch first", NULL},
	{"cuda", 0, OPTION(ARG_STRING, cuda), "VERSION",
	 "CUDA version in the label (default: the wheel's); with --release the CUDA version of the "
	 "wheel",
	 NULL},
	{"nvidia", 0, OPTION(ARG_FLAG, nvidia), NULL,
	 "slim NVIDIA's own wheels too, for use on this machine: their licence limits passing them "
	 "on",
	 NULL},
	{"env", 0, OPTION(ARG_STRING, env), "DIR",
	 "slim an installed environment, including "
	 "NVIDIA's packages",
	 "<dir>"},
	{"drop", 0, OPTION(ARG_LIST, drop), "KINDS",
	 "with --env: also remove these kinds, or all ('--dry-run' lists them)", NULL},
	{"keep", 0, OPTION(ARG_LIST, keep), "KINDS",
	 "with --env: keep these kinds, or all: remove only GPU code", NULL},
	{"dry-run", 0, OPTION(ARG_FLAG, dry_run), NULL,
	 "show what would change or be downloaded, and write nothing", NULL},
	{0},
};

const struct command command_slim = {
	.name = "slim",
	.summary = "slim official wheels to the code of some GPUs",
	.usage = "[WHEEL... | --release VERSION | --env DIR] --gpu TARGETS [OPTION...]",
	.tables = {slim_options},
	.arguments = {{"WHEEL...", "wheels with GPU code: torch, torchvision, or any other",
		       "<wheel>"}},
	.options_size = sizeof(struct slim_options),
	.run = slim_main,
};
