#include "core/tables/tables.h"
#include "step/pipeline/make.h"

/* "qemu 10.0.13 as neoverse-n1": what runs the tests of another platform. */
static const char *run_by(const struct pipeline_test_request *t, struct arena *a)
{
	const struct emulation *m = t->q->root->emulation;
	const bool known = t->isa && *t->isa->qemu;

	return arena_printf(a, "%s as %s", m->name, known ? t->isa->qemu : m->cpu);
}

/* What the results depend on, as the key of the tree that keeps them. */
static int tree_key(const struct pipeline_test_request *t, const struct plan *p,
		    char ret[DIGEST_HEX_LEN + 1], struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *files[] = {t->wheel, t->torch_wheel,
			       path_join(&a, t->q->profiles_dir, "tests/run_tests.py")};

	buf_printf(&text, "tests %s %s %s\n", p->package, t->release, t->q->root->fingerprint);
	if (t->q->root->emulation)
		buf_printf(&text, "run by %s\n", run_by(t, &a));
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (files[i] && digest_file(files[i], digest, e) < 0)
			return -1;
		buf_printf(&text, "%s\n", files[i] ? digest : "root");
	}

	for (unsigned i = 0; i < p->package_row->sources_count; i++)
		buf_printf(&text, "%s\n", p->package_row->sources[i].sha256);
	for (size_t i = 0; i < p->patches_count; i++)
		buf_printf(&text, "%s\n", p->patches[i].sha256);
	digest_data(buf_cstr(&text), text.len, ret);
	return 0;
}

static int run_in(struct make *m, const struct pipeline_test_request *t,
		  const struct test_package *tests, json_t **ret, struct err *e)
{
	struct sandbox s;
	struct arena *a = m->arena;
	const struct emulation *by = t->q->root->emulation;
	const char *dir = m->build_dir, *results = arena_printf(a, "results/%s", t->level);
	const struct verify_run_request v = {.run = m->run,
					     .root = t->q->root,
					     .kind = t->q->kind,
					     .wheel = t->wheel,
					     .torch_wheel = t->torch_wheel,
					     .plan = m->plan,
					     .work_dir = path_join(a, dir, "check")};
	const struct test_request q = {.tests = tests,
				       .level = t->level,
				       .shard = t->shard,
				       .shards = t->shards,
				       .sandbox = &s,
				       .python = VERIFY_PYTHON,
				       .src = path_join(a, dir, "src"),
				       .runner_dir = path_join(a, t->q->profiles_dir, "tests"),
				       .results_dir = path_join(a, dir, results),
				       .jobs = t->q->jobs,
				       .slower = by ? by->programs : 0};

	if (t->again && fs_remove(dir, results, e) < 0)
		return -1;
	if (fs_mkdirs(dir, results, e) < 0 || fs_remove(dir, "check", e) < 0)
		return -1;
	if (verify_environment(&v, a, &s, e) < 0 || tests_check_needs(&q, m->run, a, e) < 0)
		return -1;
	/* A marker says that the source is whole. */
	if (!fs_is_file(dir, BUILD_SOURCE_OK) &&
	    (fs_remove(dir, "src", e) < 0 || make_source(m, q.src, e) < 0 ||
	     fs_write(dir, BUILD_SOURCE_OK, "", 0, 0644, e) < 0))
		return -1;
	int rc = tests_run(&q, m->run, ret, e);
	if (fs_remove(dir, "check", rc < 0 ? ERR_IGNORED : e) < 0 && rc == 0) {
		json_decref(*ret);
		return -1;
	}

	return rc;
}

int pipeline_test(const struct pipeline_test_request *t, struct arena *a, json_t **ret,
		  struct err *e)
{
	const struct release_row *release;
	const struct test_package *tests;
	char key[DIGEST_HEX_LEN + 1];
	const char *tested = t->wheel ? path_base(t->wheel) : "root";

	if (t->wheel && verify_python(t->q->root, t->wheel, a, e) < 0)
		return -1;
	if (t->torch_wheel && verify_python(t->q->root, t->torch_wheel, a, e) < 0)
		return -1;
	if (tables_need_release(t->q->tables, t->release, &release, e) < 0)
		return -1;
	if (test_table_load(t->q->profiles_dir, release->name, t->package, tested, a, &tests, e) <
	    0)
		return -1;
	struct plan p = {.package = t->package,
			 .release = release->name,
			 .release_row = release,
			 .isa_row = t->isa,
			 .package_row = tables_package(release, t->package)};
	struct make m = {.q = t->q, .run = t->run, .arena = a, .plan = &p};
	AUTO_LOCK struct lock tree = LOCK_NONE;
	if (!p.package_row)
		return err_set(e, ERR_CONFIG, "release '%s' has no %s", release->name, t->package);
	if (plan_patches(t->q->patches_dir, release->name, a, &p, e) < 0 ||
	    tree_key(t, &p, key, e) < 0 ||
	    store_lock(t->q->store, STORE_BUILD, key, t->run, &tree, e) < 0 ||
	    store_build_dir(t->q->store, key, a, &m.build_dir, e) < 0)
		return -1;
	log_info(t->run->log, "%s: level %s of its own tests (tree %s)", t->package, t->level,
		 m.build_dir);
	if (t->q->root->emulation)
		log_info(t->run->log, "%s: tests run by %s", t->package, run_by(t, a));
	json_t *files;
	if (run_in(&m, t, tests, &files, e) < 0)
		return -1;
	*ret = test_judge(tests, files);
	if (t->q->root->emulation)
		json_object_set_new(*ret, "run_by", json_string(run_by(t, a)));
	return 0;
}
