#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "core/zip/zip.h"
#include "step/verify/verify.h"

#define WHEEL "torch-1.0-py3-none-any.whl"

/* A wheel of one module, a check script that the test
 * gives, and the real sandbox on the host's root. */
struct world {
	struct arena arena;
	struct root root;
	struct plan plan;
	struct verify_run_request q;
};

static void make_wheel(const char *path, const char *module)
{
	struct zip_writer *z;
	struct err e = {0};
	uint8_t digest[32];
	static const char metadata[] = "Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n";
	static const char wheel[] =
		"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
	static const char record[] =
		"torch.py,,\ntorch-1.0.dist-info/METADATA,,\ntorch-1.0.dist-info/"
		"WHEEL,,\ntorch-1.0.dist-info/RECORD,,\n";

	assert_ok(zip_create(&(struct zip_new){.path = path, .epoch = 0, .threads = 1, .level = 6},
			     &z, &e),
		  &e);
	assert_ok(zip_add_data(z, "torch.py", module, strlen(module), &e), &e);
	assert_ok(zip_add_data(z, "torch-1.0.dist-info/METADATA", metadata, strlen(metadata), &e),
		  &e);
	assert_ok(zip_add_data(z, "torch-1.0.dist-info/WHEEL", wheel, strlen(wheel), &e), &e);
	assert_ok(zip_add_data(z, "torch-1.0.dist-info/RECORD", record, strlen(record), &e), &e);
	assert_ok(zip_finish(z, digest, &e), &e);
}

static void open_world(struct world *w, const char *script)
{
	struct err e = {0};

	memset(w, 0, sizeof(*w));
	test_dir();
	assert_ok(root_open("/", &w->arena, &w->root, &e), &e);
	assert_ok(fs_mkdirs(TRUSTED, test_path("wheels"), &e), &e);
	make_wheel(test_path("wheels/" WHEEL), "answer = 42\n");
	test_write(test_path("checks/check_torch.py"), script);
	w->plan = (struct plan){.package = "pytorch",
				.distribution = "torch",
				.version = "1.0",
				.local_label = "cpu.avx2",
				.platform = "x86_64-linux",
				.torch_version = ""};
	w->q = (struct verify_run_request){
		.run = test_run(),
		.plan = &w->plan,
		.root = &w->root,
		.kind = SANDBOX_BWRAP,
		.wheel = arena_strdup(&w->arena, test_path("wheels/" WHEEL)),
		.checks_dir = arena_strdup(&w->arena, test_path("checks")),
		.work_dir = arena_strdup(&w->arena, test_path("work"))};
#if defined(__aarch64__)
	w->plan.platform = "aarch64-linux";
#endif
}

static int use(struct world *w, struct verify_run_result *r, struct err *e)
{
	return verify_run(&w->q, &w->arena, r, e);
}

static void test_checks_run_on_the_installed_wheel(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct verify_run_result r = {0};
	struct setting settings[] = {{.name = "BLAS", .value = "OpenBLAS"},
				     {.name = "USE_MPI", .value = "OFF"}};
	open_world(&w, "import json, sys, torch\nwant = json.loads(sys.argv[1])\n"
		       "asked = {'BLAS': 'OpenBLAS', 'USE_MPI': 'OFF'}\n"
		       "print(json.dumps({'check': 'answer', 'ok': torch.answer == 42, 'detail': "
		       "torch.__file__}))\n"
		       "print(json.dumps({'check': 'version', 'ok': want['version'] == "
		       "'1.0+cpu.avx2', 'detail': ''}))\n"
		       "print(json.dumps({'check': 'settings', 'ok': want['settings'] == asked, "
		       "'detail': ''}))\n"
		       "print(json.dumps({'done': True}))\n");
	w.plan.cmake = (struct settings){.items = settings, .count = ARRAY_LEN(settings)};
	assert_ok(use(&w, &r, &e), &e);
	assert_true(r.ran);
	assert_int_equal(r.count, 3);
	assert_string_equal(r.checks[0].name, "answer");
	assert_contains(r.checks[0].detail, "/ptbuild/out/venv/");
	assert_true(r.checks[0].ok && r.checks[1].ok && r.checks[2].ok);
	assert_false(fs_exists(TRUSTED, w.q.work_dir));
	arena_release(&w.arena);
}

static void test_a_failed_check_is_named(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct verify_run_result r = {0};
	open_world(
		&w,
		"import json, sys\nprint(json.dumps({'check': 'fine', 'ok': True, 'detail': ''}))\n"
		"print(json.dumps({'check': 'svd', 'ok': False, 'detail': 'error "
		"0.5'}))\nprint(json.dumps({'done': "
		"True}))\nsys.exit(1)\n");
	assert_err(use(&w, &r, &e), &e, ERR_POLICY,
		   "check 'svd' failed (error 0.5), 1 of 2 failed");
	assert_false(r.ran);
	assert_false(fs_exists(TRUSTED, w.q.work_dir));
	arena_release(&w.arena);
}

/* Of a package that ptbuild did not compile: what is known fails, and nothing else may. */
static void test_a_known_defect_is_no_error(void **state)
{
	(void)state;
	static const char script[] = "import json, sys\nprint(json.dumps({'check': 'dot', 'ok': "
				     "False, 'detail': 'error 1'}))\n"
				     "print(json.dumps({'check': 'svd', 'ok': %s, 'detail': "
				     "''}))\nprint(json.dumps({'done': True}))\n"
				     "sys.exit(%d)\n";
	struct world w;
	struct err e = {0};
	struct verify_run_result r = {0};
	open_world(&w, "");
	kvlist_set(&w.plan.defects, &w.arena, "dot", "it is known");
	test_write(test_path("checks/check_torch.py"), arena_printf(&w.arena, script, "True", 1));
	assert_ok(use(&w, &r, &e), &e);
	assert_true(r.ran && !r.checks[0].ok && r.checks[1].ok);
	test_write(test_path("checks/check_torch.py"), arena_printf(&w.arena, script, "False", 1));
	assert_err(use(&w, &r, &e), &e, ERR_POLICY, "check 'svd' failed");
	/* A status that does not fit what was said is no success. */
	test_write(test_path("checks/check_torch.py"), arena_printf(&w.arena, script, "True", 0));
	assert_err(use(&w, &r, &e), &e, ERR_POLICY, "does not run to the end");
	arena_release(&w.arena);
}

static void test_a_crash_has_its_words(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct verify_run_result r = {0};
	open_world(&w, "import json\nprint(json.dumps({'check': 'fine', 'ok': True, 'detail': "
		       "''}))\nimport no_such_module\n");
	assert_err(use(&w, &r, &e), &e, ERR_POLICY, "does not run to the end of its checks");
	assert_contains(e.msg, "no_such_module");
	arena_release(&w.arena);
}

static void test_a_script_that_stops_early_is_no_success(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct verify_run_result r = {0};
	open_world(&w,
		   "import json\nprint(json.dumps({'check': 'fine', 'ok': True, 'detail': ''}))\n");
	assert_err(use(&w, &r, &e), &e, ERR_POLICY, "does not run to the end");
	arena_release(&w.arena);
	open_world(&w, "print('{\"done\": true}')\n");
	assert_err(use(&w, &r, &e), &e, ERR_POLICY, "does not run to the end");
	arena_release(&w.arena);
}

static void test_a_wheel_that_does_not_install(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct verify_run_result r = {0};
	open_world(&w, "");
	test_write(w.q.wheel, "no zip at all");
	assert_err(use(&w, &r, &e), &e, ERR_BUILD, "the wheel does not install");
	arena_release(&w.arena);
}

static void test_another_platform_is_not_run(void **state)
{
	(void)state;
	struct world w;
	struct err e = {0};
	struct verify_run_result r = {0};
	open_world(&w, "");
	w.plan.platform = "riscv64-linux";
	assert_ok(use(&w, &r, &e), &e);
	assert_false(r.ran);
	assert_string_equal(r.why_not, "the wheel is for riscv64-linux");
	arena_release(&w.arena);
}

static void test_a_processor_without_the_instructions_is_not_run(void **state)
{
	(void)state;
	static const char *features[] = {"no_such_feature"};
	static const struct isa_row isa = {
		.name = "future", .cpuinfo = features, .cpuinfo_count = 1};
	struct world w;
	struct err e = {0};
	struct verify_run_result r = {0};
	open_world(&w, "");
	w.plan.isa_row = &isa;
	assert_ok(use(&w, &r, &e), &e);
	assert_false(r.ran);
	assert_string_equal(r.why_not, "this processor has no no_such_feature");
	arena_release(&w.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_checks_run_on_the_installed_wheel, test_teardown),
		cmocka_unit_test_teardown(test_a_failed_check_is_named, test_teardown),
		cmocka_unit_test_teardown(test_a_known_defect_is_no_error, test_teardown),
		cmocka_unit_test_teardown(test_a_crash_has_its_words, test_teardown),
		cmocka_unit_test_teardown(test_a_script_that_stops_early_is_no_success,
					  test_teardown),
		cmocka_unit_test_teardown(test_a_wheel_that_does_not_install, test_teardown),
		cmocka_unit_test_teardown(test_another_platform_is_not_run, test_teardown),
		cmocka_unit_test_teardown(test_a_processor_without_the_instructions_is_not_run,
					  test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
