#include "step/fetch/fetch.h"

#include <time.h>

#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "cmd/select.h"
#include "step/python/pyenv.h"

struct fetch_command_options {
	struct cmd_select_base base;
	bool sources_only, record;
};

struct fetch_item {
	struct cmd_root_group *group; /* NULL: none is asked */
	const struct plan *plan;
	struct pyenv env;
};

/* The sources of all plans, each digest once: packages of one release may share an archive. */
static int collect_sources(const struct fetch_item *items, size_t count, struct arena *a,
			   struct fetch_source **ret, size_t *ret_count, struct err *e)
{
	size_t max = 0, n = 0;

	for (size_t i = 0; i < count; i++)
		max += items[i].plan->package_row->sources_count;
	struct fetch_source *out = arena_array(a, max + 1, sizeof(*out));
	struct strlist seen = {0};
	for (size_t i = 0; i < count; i++) {
		const struct package_row *p = items[i].plan->package_row;
		if (plan_unproven(items[i].plan, e) < 0)
			return -1;
		for (unsigned j = 0; j < p->sources_count; j++) {
			const struct source_row *row = &p->sources[j];
			if (strlist_contains(&seen, row->sha256))
				continue;
			strlist_add(&seen, a, row->sha256);
			out[n++] = fetch_source_of(row, a);
		}
	}

	*ret = out;
	*ret_count = n;
	return 0;
}

/* ---- --record ---- */

enum { RECORD_MAX_GIB = 2 };

/* Downloads a source from the first of its URLs that has it. */
static int look_at(const struct fetcher *by, const struct source_row *s, struct recorded_row *ret,
		   struct err *e)
{
	const uint64_t max = (uint64_t)RECORD_MAX_GIB << 30;
	char *hex = arena_alloc(by->arena, DIGEST_HEX_LEN + 1);
	const char *path = NULL;
	struct stat st;

	for (unsigned i = 0; i < s->urls_count && !path; i++) {
		const char *url = s->urls[i];
		if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
			continue;
		err_clear(e);
		log_info(by->run->log, "downloading '%s' from '%s'", s->name,
			 transfer_shown_url(by->arena, url));
		if (fetch_latest(by, &(struct fetch_page){url, NULL, max}, &path, e) < 0) {
			if (e->kind != ERR_NETWORK)
				return -1;
			continue;
		}

		ret->url = transfer_shown_url(by->arena, url);
	}

	if (!path)
		return e->kind ? err_wrap(e, "'%s'", s->name)
			       : err_set(e, ERR_CONFIG, "'%s' has no URL to download it from",
					 s->name);
	if (digest_file(path, hex, e) < 0)
		return -1;
	if (stat(path, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	ret->name = s->name;
	ret->sha256 = hex;
	ret->bytes = (unsigned long)st.st_size;
	ret->day = arena_strndup(by->arena, size_utc((int64_t)time(NULL), by->arena),
				 strlen("2026-11-28"));
	return 0;
}

/* The sources of the packages of --package (none: all) that have no digest. */
static int record_all(struct cmd_context *c, const struct release_row *r, struct recorded_file *f,
		      json_t *list, struct err *e)
{
	const struct strlist *asked = &cmd_selected(c)->packages;
	struct store *store;

	JSON_FIELDS(fields, JSON_FIELD(struct recorded_row, release),
		    JSON_FIELD(struct recorded_row, package), JSON_FIELD(struct recorded_row, name),
		    JSON_FIELD(struct recorded_row, url), JSON_FIELD(struct recorded_row, sha256));
	if (cmd_store(c, &store, e) < 0)
		return -1;
	const struct fetcher by = {store, c->fetch, c->run, c->arena};
	for (size_t k = 0; k < TABLES_PACKAGES; k++) {
		const char *name = tables_packages[k];
		const struct package_row *p = tables_package(r, name);
		if (asked->count && !strlist_contains(asked, name) &&
		    !strlist_contains(asked, "all"))
			continue;
		for (unsigned i = 0; p && i < p->sources_count; i++) {
			struct recorded_row *row = &f->sources[f->sources_count];
			if (*p->sources[i].sha256)
				continue;
			*row = (struct recorded_row){.release = r->name, .package = name};
			if (look_at(&by, &p->sources[i], row, e) < 0)
				return -1;
			json_t *one = json_pack("{s:I}", "bytes", (json_int_t)row->bytes);
			json_add(one, row, fields);
			json_array_append_new(list, one);
			f->sources_count++;
		}
	}

	return 0;
}

static const struct show record_rows[] = {
	{.text = "{name}  {bytes} bytes", .each = "recorded"},
	{.text = "  sha256 {sha256}", .each = "recorded"},
	{.text = "  from   {url}", .each = "recorded"},
	{.text = "{?recorded}recorded in {file}: compare the digest with what the project says"},
	{.text = "{!recorded}release {release}: every source has a digest, nothing was downloaded"},
	{0}};

/* Downloads what has no digest and keeps its digest in the user's file. */
static int run_record(struct cmd_context *c, struct err *e)
{
	const struct cmd_select *o = cmd_selected(c);
	const char *path = cmd_recorded_path(c);
	const struct release_row *release;
	struct recorded_file f, all;

	if (!o->release || o->matrix) {
		err_set(e, ERR_USAGE, "--record needs a release");
		return err_hint(e, "name it: --release 2.15.0");
	}

	if (!path) {
		err_set(e, ERR_USAGE, "no directory for digests: HOME is not set");
		return err_hint(e, "set HOME or XDG_CONFIG_HOME");
	}

	if (tables_need_release(c->tables, o->release, &release, e) < 0 ||
	    recorded_read(path, c->arena, &f, e) < 0)
		return -1;
	AUTO_JSON json_t *list = json_array();
	unsigned most = f.sources_count;
	for (size_t k = 0; k < TABLES_PACKAGES; k++) {
		const struct package_row *p = tables_package(release, tables_packages[k]);
		most += p ? p->sources_count : 0;
	}

	all = (struct recorded_file){.sources = arena_array(c->arena, most + 1, sizeof(*f.sources)),
				     .sources_count = f.sources_count};
	for (unsigned i = 0; i < f.sources_count; i++)
		all.sources[i] = f.sources[i];
	if (record_all(c, release, &all, list, e) < 0)
		return -1;
	if (all.sources_count > f.sources_count) {
		const char *text = recorded_text(&all, c->arena);
		if (fs_mkdirs(TRUSTED, path_dir(c->arena, path), e) < 0 ||
		    fs_write(TRUSTED, path, text, strlen(text), 0644, e) < 0)
			return -1;
	}

	json_t *doc = json_pack("{s:i, s:s, s:s, s:O}", "schema", 1, "release", release->name,
				"file", path, "recorded", list);
	return cmd_result(c, doc, record_rows, e);
}

static json_t *requirements_json(const struct fetch_item *items, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "variant",
						      items[i].plan->variant, "have",
						      json_from_strlist(&items[i].env.have), "key",
						      json_filled(items[i].env.key)));
	return list;
}

static const struct show rows[] = {
	{.text = "{sha256}  {path}", .each = "sources"},
	{.text = "{sources:#} source{sources:s}: {from_store} in the store, {downloaded} "
		 "downloaded ({bytes:MB} in {seconds:.1} s)"},
	{0}};

#define FIELD(member) JSON_FIELD(struct fetch_source, member)
JSON_FIELDS(source_fields, FIELD(name), FIELD(sha256), FIELD(path));

/* A build of torchvision or torchaudio builds its torch
 * first, unless another is named: that is fetched as well. */
static void add_implied_torch(struct cmd_context *c, struct selections *s)
{
	const struct fetch_command_options *o = c->options;
	struct selection *all = arena_array(c->arena, 2 * s->count, sizeof(*all));
	struct strlist seen = {0};
	size_t n = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct selection torch = s->items[i];
		torch.variant.package = PACKAGE_TORCH;
		const char *name =
			arena_printf(c->arena, "%s %s", variant_name(&torch.variant, c->arena),
				     torch.release->name);
		if (!o->base.select.plan.torch && !strlist_contains(&seen, name)) {
			strlist_ref(&seen, c->arena, name);
			all[n++] = torch;
		}

		if (o->base.select.plan.torch || !package_is_torch(s->items[i].variant.package))
			all[n++] = s->items[i];
	}

	*s = (struct selections){.items = all, .count = n};
}

/* Planned first, so that nothing is downloaded for a variant that cannot be built; root by root. */
static int make_plans(struct cmd_context *c, const struct selections *s, struct fetch_item **ret,
		      struct err *e)
{
	const struct fetch_command_options *o = c->options;
	struct fetch_item *items = arena_array(c->arena, s->count, sizeof(*items));
	struct cmd_root_group all = {.chosen = *s}, *groups = &all;
	size_t count = 1, n = 0;

	if (!o->sources_only && cmd_root_groups(c, s, &groups, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (groups[i].why.kind != ERR_NONE)
			return err_take(e, &groups[i].why);
		if (!o->sources_only)
			cmd_root_enter(c, &groups[i]);
		for (size_t k = 0; k < groups[i].chosen.count; k++, n++) {
			items[n].group = o->sources_only ? NULL : &groups[i];
			if (cmd_plan(c, &groups[i].chosen.items[k], false, &items[n].plan, e) < 0)
				return -1;
		}
	}

	*ret = items;
	return 0;
}

/* As a build does before its plan is made. */
static int lock_requirements(struct cmd_context *c, const struct pyenv_request *q,
			     const struct selection *s, const struct plan **plan, struct err *e)
{
	const char *lock;

	if (requirements_lock(q, c->run, c->arena, &lock, e) < 0)
		return -1;
	if (!lock)
		return 0;
	c->tables = tables_lock(c->tables, s->variant.package, lock, c->arena);
	return cmd_plan(c, s, false, plan, e);
}

static int run_fetch(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct fetch_command_options *options = c->options;
	struct selections chosen;
	struct fetch_item *items;
	struct fetch_source *sources;
	struct fetch_stats stats = {0};
	struct store *store;

	if (options->record)
		return run_record(c, e);
	if (cmd_select(c, args, &chosen, e) < 0)
		return -1;
	add_implied_torch(c, &chosen);
	size_t n;
	if (make_plans(c, &chosen, &items, e) < 0 ||
	    collect_sources(items, chosen.count, c->arena, &sources, &n, e) < 0 ||
	    cmd_store(c, &store, e) < 0)
		return -1;
	if (fetch_all(&(struct fetcher){store, c->fetch, c->run, c->arena}, sources, n, &stats, e) <
	    0)
		return -1;
	/* The Python requirements of the builds that the root lacks. */
	if (!options->sources_only) {
		struct pyenv_request q = {.kind = cmd_sandbox(c),
					  .offline = c->global->offline,
					  .store = store,
					  .profiles_dir = c->profiles_dir};
		for (size_t i = 0; i < chosen.count; i++) {
			q.plan = items[i].plan;
			if ((i == 0 || items[i].group != items[i - 1].group) &&
			    cmd_root_make(c, items[i].group, e) < 0)
				return -1;
			q.root = items[i].group->root;
			if (lock_requirements(c, &q, &chosen.items[i], &items[i].plan, e) < 0)
				return err_wrap(e, "%s", items[i].plan->variant);
			q.plan = items[i].plan;
			if (pyenv_prepare(&q, c->run, c->arena, &items[i].env, e) < 0) {
				if (!e->hint[0])
					err_hint(e, "--sources-only skips the Python requirements");
				return err_wrap(e, "%s", items[i].plan->variant);
			}
		}
	}

	json_t *doc =
		json_pack("{s:i, s:o, s:o, s:i, s:i, s:I, s:f}", "schema", 1, "sources",
			  json_rows(sources, n, sizeof(*sources), source_fields), "requirements",
			  requirements_json(items, options->sources_only ? 0 : chosen.count),
			  "from_store", stats.from_store, "downloaded", stats.downloaded, "bytes",
			  (json_int_t)stats.bytes, "seconds", stats.seconds);
	return cmd_result(c, doc, rows, e);
}

static const struct arg_def fetch_only[] = {
	{"sources-only", 0, ARG_FLAG, offsetof(struct fetch_command_options, sources_only), NULL,
	 "do not download the Python requirements that the root lacks", NULL},
	{"record", 0, ARG_FLAG, offsetof(struct fetch_command_options, record), NULL,
	 "download what of --release has no verified digest, and record its digest for yourself",
	 NULL},
	{0},
};

const struct command command_fetch = {
	.name = "fetch",
	.summary = "download the sources of a build into the store and check them",
	.usage = "--profile PROFILE | VARIANT... [options]",
	.tables = {cmd_select_options, cmd_plan_options, fetch_only},
	.arguments = {{"VARIANT...", CMD_SELECT_VARIANTS, "<variant>"}},
	.options_size = sizeof(struct fetch_command_options),
	.run = run_fetch,
};
