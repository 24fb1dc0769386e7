#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cmd/build.h"
#include "core/wheel/wheel.h"
#include "step/pipeline/pipeline.h"
#include "step/verify/verify.h"

struct test_options {
	struct cmd_build_base base;
	const char *level, *shard, *against, *junit;
	bool again;
};

/* What is tested, and the request of the pipeline that it is with. */
struct testing {
	struct cmd_context *c;
	struct pipeline_request q;
	struct pipeline_test_request t;
	const char *platform; /* of the wheel; NULL: this machine's */
};

/* Finds the newest release with this version of the package and a table of tests. */
static int find_release(struct testing *s, const char *version, struct err *e)
{
	struct cmd_context *c = s->c;
	const struct pipeline_request *q = &s->q;
	const char *package = s->t.package;
	size_t len = strcspn(version, "+");
	struct strlist have = {0};

	for (unsigned i = q->tables->releases_count; i-- > 0;) {
		const struct release_row *r = &q->tables->releases[i];
		const struct package_row *p = tables_package(r, package);
		if (!p || !fs_exists(TRUSTED, test_table_path(q->profiles_dir, r->name, c->arena)))
			continue;
		strlist_ref(&have, c->arena, r->name);
		if (strncmp(p->version, version, len) == 0 && !p->version[len]) {
			s->t.release = r->name;
			return 0;
		}
	}

	err_set(e, ERR_POLICY, "no release with %s %.*s has a table of tests", package, (int)len,
		version);
	return err_hint(e,
			"profiles/tests/ has those of %s; 'ptbuild bench WHEEL --against OTHER' "
			"compares what two wheels "
			"compute",
			have.count ? strlist_join(&have, c->arena, ", ") : "none");
}

/* What the wheel's name says of where it runs. */
static void take_platform(struct testing *s, const struct wheel_name *name)
{
	struct arena *a = s->c->arena;
	const char *label = strchr(name->version, '+');
	struct strlist platforms = {0};
	struct promise promise;

	wheel_name_platforms(name, a, &platforms);
	if (platforms.count == 1)
		s->platform = platforms.items[0];
	promise_of_label(s->q.tables, label ? label + 1 : "", a, &promise);
	s->t.isa = promise.isa;
}

static int of_wheel(struct testing *s, const char *wheel, struct err *e)
{
	struct pipeline_test_request *t = &s->t;
	struct wheel_name name;

	if (wheel_name_parse(wheel, s->c->arena, &name, e) < 0)
		return -1;
	for (size_t i = 0; i < TABLES_PACKAGES; i++)
		if (strcmp(tables_distribution(tables_packages[i]), name.dist) == 0)
			t->package = tables_packages[i];
	if (!t->package)
		return err_set(e, ERR_POLICY,
			       "'%s' is not a wheel of pytorch, torchvision or torchaudio", wheel);
	t->wheel = wheel;
	take_platform(s, &name);
	return t->release ? 0 : find_release(s, name.version, e);
}

/* The wheel of a variant, from the store. */
static int of_variant(struct testing *s, const struct strlist *words, struct err *e)
{
	struct cmd_context *c = s->c;
	struct pipeline_test_request *t = &s->t;
	struct pipeline_results r = {0};
	struct cmd_build_requests l;

	if (cmd_build_requests(c, words, &l, e) < 0)
		return -1;
	if (l.targets != 1)
		return err_set(e, ERR_USAGE, "test needs one variant, not %zu", l.targets);
	l.items[0].q.repack_only = true;
	int rc = cmd_build_root(c, &l.items[0], e);
	s->q = l.items[0].q;
	if (rc == 0)
		rc = pipeline_build(&s->q, c->arena, &r, e);
	if (rc < 0 && e->kind == ERR_POLICY && !*e->hint)
		err_hint(e,
			 "a variant must have been built: 'ptbuild build' with the same arguments");
	for (size_t i = 0; i < r.count; i++) {
		if (i + 1 < r.count)
			t->torch_wheel = r.items[i].wheel;
		t->wheel = r.items[i].wheel;
		t->package = r.items[i].plan->package;
		t->release = r.items[i].plan->release;
		t->isa = r.items[i].plan->isa_row;
		s->platform = r.items[i].plan->platform;
	}

	pipeline_free(&r);
	return rc;
}

/* Whether a root is a world with the base of `world`, but without its `part` ("+NAME"). */
static bool lacks_part(const char *root, const char *world, const char *part)
{
	const size_t base = strcspn(world, "+");

	if (strncmp(root, "world:", 6) != 0 || strstr(root, part))
		return false;
	return strcspn(root + 6, "+") == base && strncmp(root + 6, world, base) == 0;
}

static void name_root(struct cmd_context *c, const char *root)
{
	struct cmd_globals *global = arena_alloc(c->arena, sizeof(*global));

	*global = *c->global;
	global->root = root;
	c->global = global;
	c->world = NULL;
	c->root = NULL;
	c->toolchain = NULL;
	c->toolkits = NULL;
}

/* The root of the tests: a world with the part that has what they need. A variant's own world is
 * without it. A wheel for another platform does not run in this machine's own system. */
static int enter_root(struct testing *s, struct err *e)
{
	struct cmd_context *c = s->c;
	const char *name = c->global->root, *world;
	const char *here = machine_platform(c->arena);

	if (!name && c->world)
		name = arena_printf(c->arena, "world:%s", c->world->name);
	if (test_table_world(s->q.profiles_dir, s->t.release, c->arena, &world, e) < 0)
		return -1;
	const char *part = strchr(world, '+');
	const bool foreign = s->platform && strcmp(s->platform, here) != 0;
	c->root_platform = s->platform;
	if (name && part && lacks_part(name, world, part))
		name_root(c, arena_printf(c->arena, "%s%s", name, part));
	else if (!name && *world && foreign)
		name_root(c, arena_printf(c->arena, "world:%s", world));
	return cmd_root(c, &s->q.root, e);
}

static int find_target(struct testing *s, const struct strlist *words, struct err *e)
{
	struct cmd_context *c = s->c;
	struct pipeline_test_request *t = &s->t;
	const struct cmd_select *o = cmd_selected(c);
	const char *word = words->count == 1 ? words->items[0] : "";

	if (cmd_build_common(c, &s->q, e) < 0)
		return -1;
	t->release = o->release;
	t->torch_wheel = o->plan.torch && strcmp(o->plan.torch, "root") != 0
				 ? path_from_here(c->arena, o->plan.torch)
				 : NULL;
	if (path_has_suffix(word, ".whl"))
		return of_wheel(s, path_from_here(c->arena, word), e) < 0 ? -1 : enter_root(s, e);
	if (strcmp(word, "root") != 0)
		return of_variant(s, words, e) < 0 ? -1 : enter_root(s, e);
	t->package = o->packages.count == 1 ? o->packages.items[0] : PACKAGE_TORCH;
	if (t->release)
		return enter_root(s, e);
	err_set(e, ERR_USAGE, "the release whose tests are to run is not known");
	return err_hint(e, "--release names the release, for example --release 2.6.0-debian");
}

static const char *name_of(const struct pipeline_test_request *t)
{
	return t->wheel ? path_base(t->wheel) : "root";
}

static const struct show difference_rows[] = {
	{.text = "{^}: {0}, there {1}", .each = "differences"},
	{.text = "{differences:#} test{differences:s} with another result in {tested} than in "
		 "{against}"},
	{0}};

static int compare(const struct testing *s, const char *against, const json_t *results,
		   struct err *e)
{
	struct cmd_context *c = s->c;
	const struct pipeline_test_request *t = &s->t;
	struct pipeline_test_request other = *t;
	AUTO_JSON json_t *there = NULL;

	other.wheel = strcmp(against, "root") == 0 ? NULL : path_from_here(c->arena, against);
	if (pipeline_test(&other, c->arena, &there, e) < 0)
		return err_wrap(e, "--against %s", against);
	json_t *doc = json_pack("{s:i, s:s, s:s, s:s, s:o}", "schema", 1, "tested", name_of(t),
				"against", name_of(&other), "level", t->level, "differences",
				test_differences(json_object_get(results, "files"),
						 json_object_get(there, "files")));
	return cmd_show(c, doc, difference_rows, e);
}

static int run_test(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct test_options *o = c->options;
	struct testing s = {
		.c = c,
		.t = {.run = c->run, .level = o->level ? o->level : "smoke", .again = o->again}};
	struct pipeline_test_request *t = &s.t;
	AUTO_JSON json_t *results = NULL;

	t->q = &s.q;
	/* What would fail after an hour of tests fails before. */
	if (o->junit && fs_can_write(o->junit, e) < 0)
		return err_wrap(e, "--junit");
	if (o->shard && cmd_parse_shard(o->shard, &t->shard, &t->shards, e) < 0)
		return -1;
	if (find_target(&s, words, e) < 0)
		return -1;
	const bool other_wheel = o->against && strcmp(o->against, "root") != 0;
	if (other_wheel && verify_python(s.q.root, o->against, c->arena, e) < 0)
		return err_wrap(e, "--against");
	if (pipeline_test(t, c->arena, &results, e) < 0)
		return -1;
	if (!o->against) {
		json_t *doc = json_pack("{s:i, s:s, s:s, s:s}", "schema", 1, "tested", name_of(t),
					"release", t->release, "level", t->level);
		json_object_update(doc, results);
		if (cmd_show(c, doc, test_show, e) < 0)
			return -1;
	}

	AUTO_BUF struct buf out = {0};
	if (o->junit) {
		test_junit(name_of(t), results, &out);
		if (fs_write(TRUSTED, o->junit, buf_cstr(&out), out.len, 0644, e) < 0)
			return -1;
	}

	if (o->against && compare(&s, o->against, results, e) < 0)
		return -1;
	const json_t *summary = json_object_get(results, "summary");
	const size_t unexpected = (size_t)json_int(summary, "unexpected");
	if (!unexpected)
		return 0;
	err_set(e, ERR_POLICY, "%zu of %zu test%s of '%s' ha%s a result that is not expected",
		unexpected, (size_t)json_int(summary, "run"),
		plural((uint64_t)json_int(summary, "run")), name_of(t),
		unexpected == 1 ? "s" : "ve");
	return err_hint(e, "what is known to fail is in '%s'",
			test_table_path(s.q.profiles_dir, t->release, c->arena));
}

#define OPTION(type, field) (type), offsetof(struct test_options, field)

static const struct arg_def test_options[] = {
	{"level", 0, OPTION(ARG_STRING, level), "LEVEL",
	 "how much: smoke (default, minutes), core (an hour), or full", "smoke core full"},
	{"shard", 0, OPTION(ARG_STRING, shard), "I/N", "only the I-th of N parts", NULL},
	{"against", 0, OPTION(ARG_STRING, against), "WHEEL",
	 "run the same with another wheel, or root for the root's own, and print only what differs",
	 "<wheel>"},
	{"junit", 0, OPTION(ARG_STRING, junit), "FILE", "write the results as JUnit's XML", NULL},
	{"again", 0, OPTION(ARG_FLAG, again), NULL,
	 "begin again: forget the results of an earlier run", NULL},
	{0},
};

const struct command command_test = {
	.name = "test",
	.summary = "run a package's own tests against a finished wheel",
	.usage = "WHEEL | VARIANT | root [OPTION...]",
	.tables = {cmd_select_options, cmd_plan_options, test_options},
	.arguments =
		{{"WHEEL|VARIANT",
		  "a wheel, a variant whose wheel is in the store, or root for what is in the root",
		  "<wheel or variant>"}},
	.options_size = sizeof(struct test_options),
	.run = run_test,
};
