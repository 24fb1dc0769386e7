#include <inttypes.h>

#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cmd/build.h"
#include "core/machine/official_fit.h"
#include "core/wheel/wheel.h"
#include "step/ccache/ccache_relay.h"
#include "step/pipeline/make.h"

const struct arg_def cmd_build_options[] = {
	{"sign-key", 0, ARG_STRING, offsetof(struct cmd_build_base, pipeline.sign_key), "FILE",
	 "sign the provenance with this Ed25519 key (PEM), as WHEEL.dsse.json", "<file>"},
	{0},
};

static const struct arg_def build_only[] = {
	{"ccache-domain", 0, ARG_STRING, offsetof(struct cmd_build_base, pipeline.ccache_domain),
	 "NAME[:READ]",
	 "compiler cache domain to read and add to; READ domains are only read, and ':READ' adds "
	 "nothing (default: default)",
	 NULL},
	{"ccache-remote", 0, ARG_STRING, offsetof(struct cmd_build_base, pipeline.ccache_remote),
	 "URL", "share compiled objects through a redis or web server (also PTBUILD_CCACHE_REMOTE)",
	 NULL},
	{"ccache-size", 0, ARG_STRING, offsetof(struct cmd_build_base, pipeline.ccache_size),
	 "SIZE", "what the compiler cache may grow to (default: 30G)", NULL},
	{"check", 0, ARG_FLAG, offsetof(struct cmd_build_base, check), NULL,
	 "build everything a second time under other conditions and compare the wheels byte by "
	 "byte",
	 NULL},
	{"keep", 0, ARG_FLAG, offsetof(struct cmd_build_base, pipeline.keep_tree), NULL,
	 "keep the build tree after its wheel is in the store", NULL},
	{"shard", 0, ARG_STRING, offsetof(struct cmd_build_base, shard), "I/N|last",
	 "compile shard I of N into the compiler cache; 'last' compiles the rest and makes the "
	 "wheel",
	 NULL},
	{0},
};

/* What the compiler cache said of builds that were made now; null: nothing. */
static json_t *units_json(const struct pipeline_item *items, size_t count)
{
	json_int_t compiled = 0, cached = 0;

	for (size_t i = 0; i < count; i++) {
		const json_t *build = json_object_get(items[i].record, "build");
		compiled += items[i].hit ? 0 : json_int(build, "compiler_cache_misses");
		cached += items[i].hit ? 0 : json_int(build, "compiler_cache_hits");
	}

	return compiled + cached ? json_pack("{s:I, s:I}", "compiled", compiled, "cached", cached)
				 : json_null();
}

/* The findings of 'verify' that are no errors, as it writes them. */
static json_t *warnings_json(const struct pipeline_item *it)
{
	json_t *list = json_array(), *finding;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(it->record, "verified"), "findings"), i,
			   finding) if (strcmp(json_text(finding, "level"), "warning") == 0)
		json_array_append(list, finding);
	return list;
}

static json_t *item_json(const struct pipeline_item *it)
{
	const struct plan *p = it->plan;
	json_t *o =
		json_pack("{s:s, s:o, s:b, s:O, s:o, s:s, s:o, s:o}", "variant", p->variant,
			  "wheel", json_or_null(it->wheel), "store_hit", it->hit, "record",
			  it->record, "-flags", json_from_strlist(&p->cpu_flags), "-platform",
			  p->platform, "-units", units_json(it, 1), "-warnings", warnings_json(it));

	cmd_add_runs_on(o, &it->runs_on, &it->fit);
	return o;
}

static json_t *shard_json(const struct pipeline_item *it)
{
	json_object_set_new(it->shard, "-of",
			    json_pack("[s, s]", it->plan->variant, it->plan->release));
	return json_incref(it->shard);
}

/* For a matrix: how many wheels were built or came from the store. */
static json_t *summary_json(const struct pipeline_results *r)
{
	size_t hits = 0;

	for (size_t i = 0; i < r->count; i++)
		hits += r->items[i].hit;
	return json_pack("{s:I, s:I, s:I, s:o}", "-built", (json_int_t)(r->count - hits), "-hits",
			 (json_int_t)hits, "-failed", (json_int_t)r->failed.count, "-units",
			 units_json(r->items, r->count));
}

#define ROW(label, text, ...) SHOW(label, text, .indent = 2, ##__VA_ARGS__)

/* Prints the rows whose members exist: for a wheel, a shard, a failure or the summary. */
static const struct show item_rows[] = {
	{.text = "{wheel}"},
	ROW("variant", "{variant} ({record.release})"),
	ROW("size", "{record.bytes:MB}, {record.unpacked_bytes:MB} unpacked, {record.files} "
		    "file{record.files:s}"),
	ROW("sha256", "{record.sha256}"),
	ROW("tag", "{record.tag}"),
	ROW("isa", "{record.isa} ({-flags})"),
	ROW("isa", "{!record.isa}the baseline of {-platform}[ with {record.code_beyond}]"),
	ROW("inside", "{record.vendored:#} librar{record.vendored:y} vendored"),
	ROW("verified",
	    "{?record.used.ran}all rules[, {?-warnings}{-warnings:#} warning{-warnings:s}], "
	    "{record.used.checks:#} runtime checks[ run by {record.used.run_by}]"),
	ROW("verified", "{!record.used.ran}all rules[, {?-warnings}{-warnings:#} "
			"warning{-warnings:s}]; not run: "
			"{record.used.why_not}"),
	ROW("warning", "[{file}: ]{text} \\[{rule}\\]", .each = "-warnings"),
	ROW("drift", "not the pinned package: {}", .each = "record.inputs.world.drift"),
	ROW("warning", "known to fail: check '{check}': {why}", .each = "record.known_defects"),
	ROW("runs on", "{^} {}", .each = "-runs_on"),
	ROW("", "this machine: {-here}"),
	ROW("units",
	    "{?record}{-units.compiled} compiled, {-units.cached} from the compiler cache"),
	ROW("steps", "{?store_hit}from the store; built in:"),
	ROW("steps", "{!/store_hit}{step} {seconds:.1} s", .each = "record.steps", .join = ", "),
	ROW("", "{?/store_hit}{step} {seconds:.1} s", .each = "record.steps", .join = ", "),
	ROW("check",
	    "{?check.same}built twice, the same bytes ({check.settings}; {check.seconds:.0} s)"),
	ROW("check", "{!check.same}built twice, {check.members} member{check.members:s} differ "
		     "({check.settings}); the "
		     "second is "
		     "{check.second}"),
	{.text = "{member|archive}[: {where}]: {what}", .each = "check.differences"},
	{.text = "shard {shard}/{shards} of {-of.0} ({-of.1})"},
	ROW("units", "{units} of {of}, and {common} that every shard needs"),
	ROW("cache",
	    "{?shards}{compiler_cache_misses} compiled, {compiler_cache_hits} there already"),
	ROW("time", "{?shards}{seconds:.1} s, {cpu_seconds:.1} s of CPU time"),
	{.text = "{?error}{variant} ({release})"},
	ROW("failed", "{error.message}[\n{error.hint}]"),
	{.text = "{-built} built, {-hits} from the store, {-failed} failed"},
	{.text = "{!record}units: {-units.compiled} compiled, {-units.cached} from the compiler "
		 "cache"},
	{0}};

int cmd_build_print(struct cmd_context *c, const struct pipeline_results *r, struct err *e)
{
	static const struct show rows[] = {{.each = "", .rows = item_rows}, {0}};
	json_t *all = json_array();

	for (size_t i = 0; i < r->count; i++) {
		json_t *o = r->items[i].shard ? shard_json(&r->items[i]) : item_json(&r->items[i]);
		if (r->items[i].check)
			json_object_set(o, "check", r->items[i].check);
		json_array_append_new(all, o);
	}

	for (size_t i = 0; i < r->failed.count; i++)
		json_array_append_new(all, json_pack("{s:s, s:s, s:o}", "variant",
						     r->failed.items[i].variant, "release",
						     r->failed.items[i].release, "error",
						     cmd_error_json(&r->failed.items[i].why)));
	if (r->goes_on)
		json_array_append_new(all, summary_json(r));
	return cmd_result(c, all, rows, e);
}

/* The worst failure gives the exit code. */
static int report_failures(const struct pipeline_results *r, const char *matrix, struct err *e)
{
	enum err_kind worst = ERR_NONE;

	for (size_t i = 0; i < r->failed.count; i++)
		worst = r->failed.items[i].why.kind > worst ? r->failed.items[i].why.kind : worst;
	if (worst == ERR_NONE)
		return 0;
	err_set(e, worst, "%zu of %zu variant%s of matrix '%s' failed", r->failed.count, r->asked,
		plural(r->asked), matrix);
	return err_hint(e, "run the same command again: it reuses finished wheels from the store "
			   "and retries the others");
}

static bool same_cpp(const struct variant *x, const struct variant *y)
{
	return strcmp(x->package, y->package) == 0 && strcmp(x->python, y->python) == 0 &&
	       x->profile.isa == y->profile.isa &&
	       strcmp(x->cuda ? x->cuda : "", y->cuda ? y->cuda : "") == 0;
}

static bool any_is_for(const struct selections *s, const char *platform)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->items[i].variant.profile.platform, platform) == 0)
			return true;
	return false;
}

/* Leaves out what another kind of machine builds, and says so, a line each kind. What this one
 * could emulate is built where nothing is for itself: it takes longer. */
static int keep_own_platform(struct cmd_context *c, struct selections *chosen, struct err *e)
{
	const char *here = machine_platform(c->arena);
	const bool own = any_is_for(chosen, here);
	struct kvlist others = {0};
	size_t n = 0;

	for (size_t i = 0; i < chosen->count; i++) {
		const char *platform = chosen->items[i].variant.profile.platform;
		if (strcmp(platform, here) == 0 || (!own && cmd_can_run(c, platform))) {
			chosen->items[n++] = chosen->items[i];
			continue;
		}

		const char *before = kvlist_get(&others, platform);
		kvlist_set(&others, c->arena, platform,
			   arena_printf(c->arena, "%lu",
					(before ? strtoul(before, NULL, 10) : 0) + 1));
	}

	for (size_t i = 0; i < others.count; i++)
		log_warn(c->run->log, "left out of the matrix: %s for %s; this machine is %s",
			 others.items[i].value, others.items[i].key, here);
	chosen->count = n;
	return n ? 0
		 : err_set(e, ERR_POLICY, "no variant of the matrix is for this machine (%s)",
			   here);
}

static int select_targets(struct cmd_context *c, const struct strlist *words,
			  struct selections *chosen, struct err *e)
{
	const struct cmd_select *o = cmd_selected(c);
	const char *cost;

	if (cmd_select(c, words, chosen, e) < 0)
		return -1;
	if (!o->matrix)
		return 0;
	if (keep_own_platform(c, chosen, e) < 0)
		return -1;
	/* Puts variants of one instruction set next to each other,
	 * so that their C++ units are still in the compiler cache. */
	struct selection *sorted = arena_array(c->arena, chosen->count, sizeof(*sorted));
	bool *taken = arena_array(c->arena, chosen->count, sizeof(*taken));
	size_t n = 0;
	for (size_t i = 0; i < chosen->count; i++)
		for (size_t k = i; !taken[i] && k < chosen->count; k++)
			if (!taken[k] &&
			    same_cpp(&chosen->items[i].variant, &chosen->items[k].variant)) {
				sorted[n++] = chosen->items[k];
				taken[k] = k != i;
			}
	chosen->items = sorted;
	if (cmd_units_cost(c, &o->units, chosen, &cost, e) < 0)
		return -1;
	log_info(c->run->log, "%s", cost);
	return 0;
}

int cmd_build_common(struct cmd_context *c, struct pipeline_request *q, struct err *e)
{
	const struct cmd_build_base *base = c->options;

	q->run = c->run;
	q->options = base->pipeline;
	q->kind = cmd_sandbox(c);
	q->jobs = c->global->jobs;
	if (c->global->cache)
		q->shell_options = arena_printf(c->arena, "--cache %s",
						shell_quoted(c->global->cache, c->arena));
	q->tables = c->tables;
	q->profiles_dir = c->profiles_dir;
	q->patches_dir = c->patches_dir;
	q->out_dir = c->out_dir;
	q->fetch = *c->fetch;
	return cmd_store(c, &q->store, e);
}

int cmd_build_requests(struct cmd_context *c, const struct strlist *words,
		       struct cmd_build_requests *ret, struct err *e)
{
	struct selections chosen;
	struct pipeline_request common = {0};
	struct cmd_root_group *groups;
	size_t count;

	if (select_targets(c, words, &chosen, e) < 0 ||
	    cmd_root_groups(c, &chosen, &groups, &count, e) < 0 ||
	    cmd_build_common(c, &common, e) < 0)
		return -1;
	common.plan = cmd_plan_asked(c);
	*ret = (struct cmd_build_requests){
		.items = arena_array(c->arena, count, sizeof(*ret->items)),
		.count = count,
		.targets = chosen.count};
	for (size_t i = 0; i < count; i++) {
		ret->items[i] = (struct cmd_build_request){common, &groups[i]};
		ret->items[i].q.targets = groups[i].chosen.items;
		ret->items[i].q.count = groups[i].chosen.count;
	}

	return 0;
}

/* No world is made for a wheel that is not there. */
static int look_before(struct cmd_context *c, const struct cmd_build_request *r, struct err *e)
{
	bool have = true;

	if (r->group->why.kind != ERR_NONE || cmd_has_others(c))
		return 0;
	cmd_root_enter(c, r->group);
	for (size_t i = 0; i < r->group->chosen.count; i++) {
		const struct plan *p;
		if (cmd_select_plan(c, &r->group->chosen.items[i], NULL, NULL, NULL, &p, e) < 0 ||
		    pipeline_can_repack(r->q.store, p, true, c->arena, &have, e) < 0)
			return -1;
		if (!have)
			return pipeline_no_repack(p->variant, r->q.build_line, e);
	}

	return 0;
}

int cmd_build_root(struct cmd_context *c, struct cmd_build_request *r, struct err *e)
{
	if ((r->q.repack_only && look_before(c, r, e) < 0) || cmd_root_make(c, r->group, e) < 0)
		return -1;
	r->q.root = r->group->root;
	r->q.world = r->group->world;
	r->q.drift = r->group->drift;
	r->q.cuda_home = cmd_select_cuda_home(c);
	return 0;
}

static int report_checks(const struct pipeline_results *r, struct err *e)
{
	size_t differ = 0, checked = 0;

	for (size_t i = 0; i < r->count; i++) {
		checked += r->items[i].check != NULL;
		differ += json_is_false(json_object_get(r->items[i].check, "same"));
	}

	if (!differ)
		return 0;
	err_set(e, ERR_POLICY, "%zu of %zu wheel%s differ%s in the second build", differ, checked,
		plural(checked), differ == 1 ? "s" : "");
	return err_hint(e,
			"standard output lists what differs; the second wheel is kept next to the "
			"details of the first");
}

int cmd_parse_shard(const char *text, unsigned *index, unsigned *count, struct err *e)
{
	char end;

	/* sscanf would take signs and blanks. */
	if (strspn(text, "0123456789/") == strlen(text) &&
	    sscanf(text, "%5u/%5u%c", index, count, &end) == 2 && *index >= 1 && *index <= *count)
		return 0;
	err_set(e, ERR_USAGE, "'%s' is not a shard", text);
	return err_hint(e, "--shard 2/3 is the second of three");
}

/* One wheel, of a kind that is large enough to be divided. */
static int take_shard(const struct cmd_build_base *o, size_t targets, struct pipeline_request *q,
		      struct err *e)
{
	if (!o->shard)
		return 0;
	q->shard.last = strcmp(o->shard, "last") == 0;
	if (!q->shard.last && cmd_parse_shard(o->shard, &q->shard.index, &q->shard.count, e) < 0)
		return err_hint(e, "--shard 2/3 is the second of three, --shard last makes the "
				   "wheel of what they compiled");
	if (o->check)
		return err_set(e, ERR_USAGE,
			       "options '--shard' and '--check' exclude each other: a shard leaves "
			       "no wheel");
	if (q->shard.last || (targets == 1 && package_is_torch(q->targets[0].variant.package)))
		return 0;
	err_set(e, ERR_USAGE, "option '--shard' is for one variant of pytorch");
	return err_hint(
		e, "name it, or add --package pytorch; torchvision and torchaudio take minutes");
}

/* As ccache understands it: for it a number alone is not one of bytes. */
static int take_ccache_size(struct cmd_context *c, struct pipeline_options *o, struct err *e)
{
	const char **size = &o->ccache_size;
	uint64_t bytes;

	if (!*size)
		return 0;
	if (size_parse(*size, &bytes, e) < 0) {
		e->kind = ERR_USAGE;
		return err_wrap(e, "option '--ccache-size'");
	}

	uint64_t mib = bytes >> 20 ? bytes >> 20 : 1;
	o->ccache_bytes = bytes ? bytes : 1;
	*size = arena_printf(c->arena, "%" PRIu64 "Mi", mib);
	return 0;
}

/* Arguments of a process can be read by everybody on the machine, as long as it runs. */
static void warn_of_password(const struct cmd_context *c, const char *url)
{
	const char *host = strstr(url, "://");

	if (host && memchr(host, '@', strcspn(host + 3, "/?") + 3))
		log_warn(c->run->log, "others on this machine can read the password in "
				      "--ccache-remote while this "
				      "runs; put the address into PTBUILD_CCACHE_REMOTE instead");
}

/* Errors in options are reported before an hour of building. */
static int take_options(struct cmd_context *c, size_t targets, struct pipeline_request *q,
			struct err *e)
{
	const struct cmd_build_base *o = c->options;
	const char **remote = &q->options.ccache_remote, *keep, *domain = q->options.ccache_domain;
	struct strlist ignored;

	if (!*remote)
		*remote = getenv("PTBUILD_CCACHE_REMOTE");
	if (*remote && !**remote)
		*remote = NULL;
	if (*remote && ccache_relay_check(*remote, e) < 0)
		return -1;
	if (take_shard(o, targets, q, e) < 0 || take_ccache_size(c, &q->options, e) < 0)
		return -1;
	return domain ? ccache_domain_parse(domain, c->arena, &keep, &ignored, e) : 0;
}

/* For a matrix: records a failure for each variant whose root is not available. */
static int fail_all(struct cmd_context *c, const struct pipeline_request *q,
		    struct pipeline_results *r, struct err *e)
{
	if (!r->goes_on || e->kind == ERR_INTERRUPTED)
		return -1;
	r->asked += q->count;
	for (size_t i = 0; i < q->count; i++) {
		pipeline_failed(&r->failed, &q->targets[i], e, c->arena);
		log_warn(c->run->log, "%s: %s", r->failed.items[r->failed.count - 1].variant,
			 e->msg);
	}

	err_clear(e);
	return 0;
}

/* All roots are made before the first build, which may take hours. */
static int build_all(struct cmd_context *c, struct cmd_build_requests *l,
		     struct pipeline_results *ret, struct err *e)
{
	const struct cmd_build_base *o = c->options;

	c->look = true;
	for (size_t i = 0; i < l->count; i++) {
		struct cmd_build_request *r = &l->items[i];
		if (take_options(c, l->targets, &r->q, e) < 0)
			return -1;
		if ((cmd_needs_before(c, r->group, ret->goes_on, e) < 0 ||
		     cmd_build_root(c, r, e) < 0) &&
		    fail_all(c, &r->q, ret, e) < 0)
			return -1;
	}

	for (size_t i = 0; i < l->count; i++) {
		const struct pipeline_request *q = &l->items[i].q;
		const size_t from = ret->count;
		if (q->root && (pipeline_build(q, c->arena, ret, e) < 0 ||
				(o->check && pipeline_check(q, from, c->arena, ret, e) < 0)))
			return -1;
	}

	return 0;
}

/* "sm80+sm90": what 'slim --gpu' accepts. */
static const char *variant_gpus(const struct variant *v, struct arena *a)
{
	struct strlist gpus = {0};

	for (unsigned k = 0; k < v->profile.targets_count; k++)
		strlist_addf(&gpus, a, "sm%s", v->profile.targets[k].row->sm);
	return strlist_join(&gpus, a, "+");
}

/* After a failed build: an official wheel that runs where the build would. */
static void hint_slim(struct cmd_context *c, const struct pipeline_request *q)
{
	for (size_t i = 0; i < q->count; i++) {
		const struct variant *v = &q->targets[i].variant;
		struct official_choice choice;
		if (v->profile.gpu != GPU_CUDA || !package_is_torch(v->package))
			continue;
		if (official_for_variant(q->tables, v, c->arena, &choice, ERR_IGNORED) < 0 ||
		    !choice.release)
			continue;
		log_info(c->run->log, "without a build: '%s' slims the official wheel",
			 official_command(&choice, variant_gpus(v, c->arena), v->profile.platform,
					  c->arena));
		return;
	}
}

int cmd_build(struct cmd_context *c, const struct strlist *words, struct pipeline_results *ret,
	      struct err *e)
{
	struct cmd_build_requests l;

	if (cmd_build_requests(c, words, &l, e) < 0)
		return -1;
	*ret = (struct pipeline_results){.goes_on = cmd_selected(c)->matrix != NULL};
	int rc = build_all(c, &l, ret, e);
	if (rc < 0 && l.count && (e->kind == ERR_BUILD || e->kind == ERR_NETWORK))
		hint_slim(c, &l.items[0].q);
	return rc;
}

static int build_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct cmd_build_base *o = c->options;
	struct pipeline_results r = {0};

	if (o->pipeline.ccache_remote)
		warn_of_password(c, o->pipeline.ccache_remote);
	int rc = cmd_build(c, words, &r, e);
	if (rc == 0)
		rc = cmd_build_print(c, &r, e);
	if (rc == 0)
		rc = report_failures(&r, o->base.select.matrix, e);
	if (rc == 0)
		rc = report_checks(&r, e);
	pipeline_free(&r);
	return rc;
}

const struct command command_build = {
	.name = "build",
	.summary = "build wheels, or take them from the store",
	.usage = "[--profile PROFILE | --matrix NAME [--only GLOB] | VARIANT...] [OPTION...]",
	.tables = {cmd_select_options, cmd_units_options, cmd_plan_options, cmd_build_options,
		   build_only},
	.arguments = {{"VARIANT...", CMD_SELECT_VARIANTS, "<variant>"}},
	.options_size = sizeof(struct cmd_build_base),
	.run = build_main,
};
