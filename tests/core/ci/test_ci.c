#include "support.h"

#include <string.h>

#include "base/sys/json.h"
#include "core/ci/ci.h"
#include "shipped.h"

static struct arena shared;
static const struct tables *tables;
static const struct ci_tables *rows;

static int load(void **state)
{
	(void)state;
	struct err e = {0};
	tables = shipped_tables(&shared);
	assert_ok(ci_tables_load(PROFILES_DIR, &shared, &rows, &e), &e);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	arena_release(&shared);
	return 0;
}

static struct ci_choice choice(const char *name, struct arena *a)
{
	struct ci_choice c = {0};
	struct err e = {0};

	assert_ok(variant_parse(tables, name, a, &c.variant, &e), &e);
	assert_ok(tables_need_release(tables, "2.10.0", &c.release, &e), &e);
	c.shares = strcmp(c.variant.package, "pytorch") == 0;
	return c;
}

static struct ci_plan shared_plan(const char *const *names, size_t count, unsigned shards,
				  struct arena *a)
{
	struct ci_choice *all = arena_array(a, count, sizeof(*all));
	struct ci_plan p = {
		.name = "test", .options = "", .shards = shards, .remote = "redis://cache"};
	struct err e = {0};

	for (size_t i = 0; i < count; i++)
		all[i] = choice(names[i], a);
	const struct ci_request q = {
		.format = "github", .tables = rows, .choices = all, .count = count};
	assert_ok(ci_plan_make(&q, a, &p, &e), &e);
	return p;
}

static struct ci_plan plan(const char *const *names, size_t count, struct arena *a)
{
	return shared_plan(names, count, 0, a);
}

static size_t in_wave(const struct ci_plan *p, unsigned wave)
{
	size_t n = 0;

	for (size_t i = 0; i < p->count; i++)
		n += p->jobs[i].wave == wave;
	return n;
}

/* S GPU targets by I instruction sets: I pairs first, then the targets that are left. */
static void a_grid_is_compiled_in_pairs(void **state)
{
	(void)state;
	static const char *const sms[] = {"75", "80", "86", "90"}, *const isas[] = {"avx2",
										    "avx512",
										    "avx512vnni"};
	AUTO_ARENA struct arena a = {0};
	const char *names[12];
	for (size_t i = 0; i < 12; i++)
		names[i] = arena_printf(&a, "pytorch-python313-cuda12_8-sm%s-%s", sms[i / 3],
					isas[i % 3]);
	struct ci_plan p = plan(names, 12, &a);
	assert_int_equal(p.count, 12);
	assert_int_equal(in_wave(&p, 1), 3);
	assert_int_equal(in_wave(&p, 2), 1);
	assert_int_equal(in_wave(&p, 3), 8);
	assert_int_equal(p.waves, 3);
}

static void what_shares_nothing_is_in_the_first_wave(void **state)
{
	(void)state;
	static const char *const names[] = {
		"pytorch-python313-cpu-avx2", "pytorch-python313-cuda12_8-sm90-avx2",
		"pytorch-python313-cuda13_0-sm90-avx2", "pytorch-python313-darwin-mps",
		"pytorch-python313-cuda12_8-sm90-armv9"};
	AUTO_ARENA struct arena a = {0};
	struct ci_plan p = plan(names, ARRAY_LEN(names), &a);
	assert_int_equal(in_wave(&p, 1), ARRAY_LEN(names));
}

static void another_python_compiles_the_same(void **state)
{
	(void)state;
	static const char *const names[] = {"pytorch-python312-cpu-avx2",
					    "pytorch-python313-cpu-avx2"};
	AUTO_ARENA struct arena a = {0};
	struct ci_plan p = plan(names, ARRAY_LEN(names), &a);
	assert_string_equal(p.jobs[0].cpu_cache, p.jobs[1].cpu_cache);
	assert_int_equal(in_wave(&p, 1), 1);
}

static void companions_share_the_job_of_their_torch(void **state)
{
	(void)state;
	static const char *const names[] = {
		"torchaudio-python313-cpu-avx2", "torchvision-python313-cpu-avx2",
		"pytorch-python313-cpu-avx2", "torchvision-python312-cpu-avx2",
		"pytorch-python313-cpu-avx2"};
	AUTO_ARENA struct arena a = {0};
	struct ci_plan p = plan(names, ARRAY_LEN(names), &a);
	assert_int_equal(p.count, 2);
	const struct ci_job *j = p.jobs[0].variants.count == 3 ? &p.jobs[0] : &p.jobs[1];
	assert_string_equal(strlist_join(&j->variants, &a, " "),
			    "pytorch-python313-cpu-avx2 torchvision-python313-cpu-avx2 "
			    "torchaudio-python313-cpu-avx2");
	assert_string_equal(j->gpu_cache, "");
}

/* Cache names go into files of services that take few characters. */
static void names_of_caches_are_plain(void **state)
{
	(void)state;
	static const char *const names[] = {"pytorch-python313-cuda12_9-sm80+sm90a+ptx-avx2"};
	AUTO_ARENA struct arena a = {0};
	struct ci_plan p = plan(names, 1, &a);
	assert_string_equal(p.jobs[0].gpu_cache,
			    "ptbuild-2.10.0-x86_64-linux-cuda12.9-sm80-sm90a-ptx");
	assert_string_equal(p.jobs[0].gpu, "sm80+sm90a+ptx");
}

static const struct ci_job *job_of(const struct ci_plan *p, const char *id)
{
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->jobs[i].id, id) == 0)
			return &p->jobs[i];
	fail_msg("no job '%s'", id);
	return NULL;
}

/* Of three jobs two compile something: each becomes three
 * shards and a last one, which comes before what it feeds. */
static void shards_come_before_their_last_job(void **state)
{
	(void)state;
	static const char *const names[] = {
		"pytorch-python313-cuda12_8-sm90-avx2", "torchvision-python313-cuda12_8-sm90-avx2",
		"pytorch-python313-cuda12_8-sm80-avx512", "pytorch-python313-cuda12_8-sm90-avx512"};
	AUTO_ARENA struct arena a = {0};
	struct ci_plan p = shared_plan(names, ARRAY_LEN(names), 3, &a);
	assert_int_equal(p.waves, 3);
	assert_int_equal(in_wave(&p, 1), 6);
	assert_int_equal(in_wave(&p, 2), 2);
	assert_int_equal(in_wave(&p, 3), 1);
	const struct ci_job *one = job_of(&p, "pytorch-python313-cuda12_8-sm90-avx2-shard-2-of-3");
	assert_int_equal(one->wave, 1);
	assert_int_equal(one->variants.count, 1);
	assert_non_null(strstr(one->command,
			       "avx2 --release 2.10.0 --shard 2/3 --ccache-remote redis://cache"));
	const struct ci_job *last = job_of(&p, names[0]);
	assert_int_equal(last->wave, 2);
	assert_int_equal(last->variants.count, 2);
	assert_non_null(strstr(last->command, " --shard last "));
	assert_string_equal(job_of(&p, names[3])->shard, "");
}

static void files_say_what_shards_need(void **state)
{
	(void)state;
	static const char *const names[] = {"pytorch-python313-cpu-avx2",
					    "torchaudio-python313-cpu-avx512"};
	AUTO_ARENA struct arena a = {0};
	struct ci_plan p = shared_plan(names, ARRAY_LEN(names), 2, &a);
	assert_int_equal(p.count, 4);
	AUTO_JSON json_t *doc = ci_json(&p);
	size_t i;
	const json_t *j;
	json_array_foreach(json_object_get(doc, "jobs"), i, j)
	{
		const char *shard = json_string_value(json_object_get(j, "shard"));
		assert_int_equal(json_array_size(json_object_get(j, "needs")),
				 shard && strcmp(shard, "last") == 0 ? 2 : 0);
		assert_int_equal(json_array_size(json_object_get(j, "outputs")),
				 shard && strchr(shard, '/') ? 0 : 1);
	}

	AUTO_JSON json_t *gitlab = ci_gitlab(&p);
	assert_non_null(json_object_get(gitlab, "pytorch-python313-cpu-avx2-shard-1-of-2"));
	AUTO_JSON json_t *github = ci_github(&p);
	AUTO_FREE char *text = json_dumps(github, 0);
	const json_t *jobs = json_object_get(github, "jobs");
	const json_t *index = json_object_get(json_object_get(jobs, "index"), "container");
	const json_t *build = json_object_get(json_object_get(jobs, "wave-1-1"), "container");
	assert_non_null(json_object_get(build, "options"));
	assert_non_null(json_object_get(index, "image"));
	assert_null(json_object_get(index, "options"));
	assert_non_null(json_object_get(github, "concurrency"));
	assert_non_null(strstr(text, "${SHARD:+--shard"));
	assert_non_null(strstr(text, "!contains(matrix.shard, '/')"));
}

static json_t *kubernetes(const char *const *names, size_t count, bool sandboxed, struct arena *a)
{
	struct ci_plan p = plan(names, count, a);

	p.image = "example.org/ptbuild:1";
	p.out = "/shared/dist";
	p.sandboxed = p.whole_proc = sandboxed;
	for (size_t i = 0; i < p.count; i++) {
		p.jobs[i].cpus = 4;
		p.jobs[i].memory = 8000000000;
		p.jobs[i].disk = 40000000000;
		p.jobs[i].seconds = 7200;
	}

	json_t *doc = ci_kubernetes(&p);
	json_t *items = json_incref(json_object_get(doc, "items"));
	json_decref(doc);
	return items;
}

static const char *text_at(const json_t *doc, const char *path)
{
	char part[64];

	while (*path) {
		size_t n = strcspn(path, "/");
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		doc = json_is_array(doc) ? json_array_get(doc, (size_t)atoi(part))
					 : json_object_get(doc, part);
		path += n + (path[n] == '/');
	}

	return json_is_string(doc) ? json_string_value(doc) : "";
}

/* Names that differ in a '+' alone, or after the limit, are different Jobs. */
static void test_kubernetes_names_are_short_and_unique(void **state)
{
	(void)state;
	static const char *const names[] = {
		"pytorch-python313-cuda12_8-sm80+sm86+sm89+sm90+sm100+sm120-avx512",
		"pytorch-python313-cuda12_8-sm80+sm86+sm89+sm90+sm100+sm120-avx2",
		"pytorch-python313-darwin-mps"};
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *items = kubernetes(names, ARRAY_LEN(names), false, &a);
	struct strlist seen = {0};
	size_t i;
	const json_t *job;

	assert_int_equal(json_array_size(items), 3);
	json_array_foreach(items, i, job)
	{
		const char *name = text_at(job, "metadata/name");
		assert_true(strlen(name) <= 63);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"),
				 strlen(name));
		assert_false(strlist_contains(&seen, name));
		strlist_add(&seen, &a, name);
	}

	assert_string_equal(text_at(json_array_get(items, 2), "metadata/labels/ptbuild-wave"),
			    "index");
}

static void test_kubernetes_security_follows_the_sandbox(void **state)
{
	(void)state;
	static const char *const names[] = {"pytorch-python313-cpu-avx2"};
	static const char container[] = "spec/template/spec/containers/0/";
	AUTO_ARENA struct arena a = {0};
	const char *profile =
		arena_printf(&a, "%ssecurityContext/seccompProfile/localhostProfile", container);
	const char *proc = arena_printf(&a, "%ssecurityContext/procMount", container);
	const char *disk = arena_printf(&a, "%sresources/requests/ephemeral-storage", container);
	AUTO_JSON json_t *inside = kubernetes(names, 1, true, &a);
	AUTO_JSON json_t *outside = kubernetes(names, 1, false, &a);
	const json_t *with = json_array_get(inside, 0), *without = json_array_get(outside, 0);

	assert_string_equal(text_at(with, profile), "ptbuild/seccomp.json");
	assert_string_equal(text_at(with, proc), "Unmasked");
	assert_string_equal(text_at(with, disk), "");
	assert_string_equal(text_at(without, profile), "");
	assert_string_equal(text_at(without, proc), "");
	assert_string_equal(text_at(without, disk), "40000000000");
}

static void test_kubernetes_labels_are_a_queue_and_nodes(void **state)
{
	(void)state;
	static const char *const names[] = {"pytorch-python313-cpu-avx2"};
	const char *labels[] = {"queue=builds", "disk=fast", "any"};
	const struct ci_runner_row runner = {.labels = labels, .labels_count = 3};
	AUTO_ARENA struct arena a = {0};
	struct ci_plan p = plan(names, 1, &a);

	p.jobs[0].runner = &runner;
	p.out = "dist";
	AUTO_JSON json_t *doc = ci_kubernetes(&p);
	const json_t *job = json_array_get(json_object_get(doc, "items"), 0);
	const json_t *meta = json_object_get(json_object_get(job, "metadata"), "labels");
	assert_string_equal(json_string_value(json_object_get(meta, "kueue.x-k8s.io/queue-name")),
			    "builds");
	assert_string_equal(text_at(job, "spec/template/spec/nodeSelector/disk"), "fast");
}

static void nothing_gives_an_empty_plan(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct ci_plan p = plan(NULL, 0, &a);
	assert_int_equal(p.count, 0);
	AUTO_JSON json_t *doc = ci_json(&p);
	assert_int_equal(json_array_size(json_object_get(doc, "jobs")), 0);
}

static void test_forms_are_rows_of_one_table(void **state)
{
	static const struct {
		const char *name;
		enum ci_kind kind;
		bool document, script;
	} forms[] = {
		{"table", CI_DATA, false, false},       {"json", CI_DATA, true, false},
		{"github", CI_SERVICE, true, false},    {"gitlab", CI_SERVICE, true, false},
		{"kubernetes", CI_VOLUME, true, false}, {"slurm", CI_SCRIPT, false, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		const struct ci_output *o = ci_output(forms[i].name);
		assert_non_null(o);
		assert_int_equal(o->kind, forms[i].kind);
		assert_int_equal(o->document != NULL, forms[i].document);
		assert_int_equal(o->script != NULL, forms[i].script);
		assert_int_equal(ci_is_service(forms[i].name), o->kind == CI_SERVICE);
	}

	assert_null(ci_output("html"));
	assert_false(ci_is_service("html"));
}

static void limits_and_runners_come_from_the_table(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(ci_format(rows, "github")->jobs, "256");
	assert_string_equal(ci_format(rows, "gitlab")->minutes, "720");
	assert_null(ci_format(rows, "json"));
	assert_null(ci_action(rows, "reboot", &a));
	assert_string_equal(ci_runner(rows, "github", "aarch64-linux", "x")->labels[0],
			    "ubuntu-24.04-arm");
	assert_string_equal(ci_runner(rows, "json", "aarch64-linux", "x")->labels[0], "any");
}

static void test_limits_are_of_runner_machine_or_format(void **state)
{
	(void)state;
	static const char *labels[] = {"self-hosted", "ubuntu-24.04"};
	struct ci_runner_row r = {.minutes = "",
				  .cpus = "",
				  .disk = "",
				  .mem = "",
				  .labels = labels,
				  .labels_count = 1};
	struct ci_limits l = ci_limits(rows, "github", &r);
	assert_true(l.minutes == 360 && l.cpus == 4 && l.disk == 0);
	assert_true(l.memory == 0 && !l.timed);
	r.labels_count = 2;
	assert_true(ci_limits(rows, "github", &r).disk == UINT64_C(14) << 30);
	assert_true(ci_limits(rows, "gitlab", &r).disk == 0);
	labels[1] = "saas-linux-xlarge-amd64";
	l = ci_limits(rows, "gitlab", &r);
	assert_true(l.minutes == 180 && l.cpus == 16 && l.disk == UINT64_C(200) << 30);
	r.minutes = "90";
	r.cpus = "3";
	r.disk = "5G";
	r.mem = "64G";
	l = ci_limits(rows, "gitlab", &r);
	assert_true(l.minutes == 90 && l.cpus == 3 && l.disk == UINT64_C(5) << 30);
	assert_true(l.memory == UINT64_C(64) << 30 && l.timed);
}

static void test_larger_machine_is_smallest_that_fits(void **state)
{
	(void)state;
	assert_string_equal(ci_larger(rows, "gitlab", "x86_64-linux", UINT64_C(42) << 30),
			    "saas-linux-medium-amd64");
	assert_string_equal(ci_larger(rows, "gitlab", "aarch64-linux", UINT64_C(60) << 30),
			    "saas-linux-large-arm64");
	assert_string_equal(ci_larger(rows, "gitlab", "x86_64-linux", UINT64_C(900) << 30),
			    "self-hosted");
	assert_string_equal(ci_larger(rows, "github", "x86_64-linux", UINT64_C(42) << 30),
			    "self-hosted");
}

static void wrong_table(const char *text, const char *part)
{
	AUTO_ARENA struct arena a = {0};
	const struct ci_tables *t;
	struct err e = {0};

	test_dir();
	test_write(test_path("ci.yaml"), text);
	assert_err(ci_tables_load(test_path("."), &a, &t, &e), &e, ERR_CONFIG, part);
}

static void wrong_tables_are_refused(void **state)
{
	(void)state;
#define REST "\nimage: i\nactions: []\nrunners: [{labels: [a]}]\n"
	wrong_table("formats: [{name: x, jobs: many, minutes: \"1\", cache: 1G}]" REST,
		    "ci.yaml:1: 'many' is not a number of jobs");
	wrong_table("formats: [{name: x, jobs: \"0\", minutes: \"1\", cache: 1G}]" REST,
		    "not a number of jobs");
	wrong_table("formats: [{name: x, jobs: \"1\", minutes: 1h, cache: 1G}]" REST,
		    "not a number of minutes");
	wrong_table("formats: [{name: x, jobs: \"1\", minutes: \"1\", cache: big}]" REST,
		    "'cache': not a size: 'big'");
	wrong_table("formats: []\nimage: i\nactions:\n  - {name: a, uses: b, commit: v4, version: "
		    "v4}\nrunners: [{labels: "
		    "[a]}]\n",
		    "ci.yaml:4: 'v4' is not a commit");
	wrong_table("formats: []\nimage: i\nactions: []\nrunners:\n  - {labels: [\"a\\nb\"]}\n",
		    "not a runner label");
	wrong_table("formats: []\nmachines: [{label: a, format: x, platform: x86_64-linux, cpus: "
		    "\"1\", disk: big, "
		    "minutes: \"1\"}]" REST,
		    "ci.yaml:2: 'disk': not a size: 'big'");
	wrong_table("formats: [{name: x, jobs: \"1\", minutes: \"1\", cache: 1G, files: all}]" REST,
		    "'files': not a size: 'all'");
	wrong_table(
		"formats: [{name: x, jobs: \"1\", minutes: \"1\", cache: 1G, attests: all}]" REST,
		"'all' is not a number of files");
	wrong_table("formats: []\nwheel_packages: [\"a;b\"]" REST, "'a;b' is not a package");
	wrong_table("runners: [{labels: [a]}]\n", "missing key 'formats'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_grid_is_compiled_in_pairs),
		cmocka_unit_test(what_shares_nothing_is_in_the_first_wave),
		cmocka_unit_test(another_python_compiles_the_same),
		cmocka_unit_test(companions_share_the_job_of_their_torch),
		cmocka_unit_test(names_of_caches_are_plain),
		cmocka_unit_test(shards_come_before_their_last_job),
		cmocka_unit_test(files_say_what_shards_need),
		cmocka_unit_test(test_kubernetes_names_are_short_and_unique),
		cmocka_unit_test(test_kubernetes_security_follows_the_sandbox),
		cmocka_unit_test(test_kubernetes_labels_are_a_queue_and_nodes),
		cmocka_unit_test(nothing_gives_an_empty_plan),
		cmocka_unit_test(test_forms_are_rows_of_one_table),
		cmocka_unit_test(limits_and_runners_come_from_the_table),
		cmocka_unit_test(test_limits_are_of_runner_machine_or_format),
		cmocka_unit_test(test_larger_machine_is_smallest_that_fits),
		cmocka_unit_test_teardown(wrong_tables_are_refused, test_teardown),
	};

	return cmocka_run_group_tests_name("core/ci", tests, load, unload);
}
