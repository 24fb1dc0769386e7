#include "support.h"

#include <string.h>

#include "core/plan/plan.h"
#include "core/root/toolkit.h"
#include "core/tables/tables.h"
#include "shipped.h"

static struct arena arena;
static struct root root = {.dir = "/r", .id = "debian 13", .fingerprint = "f"};
static struct plan_captured_request request;
static const struct toolchain *tools;

static int setup(void **state)
{
	(void)state;
	request = (struct plan_captured_request){.root = &root,
						 .package = "python3-torch=2.6.0+dfsg-7",
						 .version = "2.6.0+debian",
						 .python = "3.13",
						 .platform = "x86_64-linux",
						 .digest = "d",
						 .epoch = 1};
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static const struct plan *captured(void)
{
	const struct plan *p = NULL;
	struct err e = {0};

	assert_ok(plan_captured(shipped_tables(&arena), &request, &arena, &p, &tools, &e), &e);
	return p;
}

static void the_version_stays(void **state)
{
	(void)state;
	const struct plan *p = captured();
	assert_string_equal(plan_full_version(p, &arena), "2.6.0+debian");
	assert_string_equal(p->variant, "pytorch-python313-root");
	assert_true(p->captured && !p->isa_row && !p->cuda);
	request.version = "2.9.1";
	assert_string_equal(plan_full_version(captured(), &arena), "2.9.1");
}

static void what_is_known_of_the_package(void **state)
{
	(void)state;
	const struct plan *p = captured();
	assert_contains(kvlist_get(&p->defects, "dot"), "give 0");
	assert_string_equal(p->requires.items[0], "sympy>=1.13.1");
	assert_contains(kvlist_get(&p->defects, "tcp store"), "USE_LIBUV=0");
	assert_contains(kvlist_get(&p->defects, "headers"), "pybind11-dev");
	assert_int_equal(p->notes.count, 4);
	assert_contains(p->notes.items[0],
			"not compiled by ptbuild: captured from python3-torch=2.6.0+dfsg-7");
	assert_contains(tools->text, "not compiled by ptbuild");
}

static void other_packages_have_no_defects(void **state)
{
	(void)state;
	static const char *const others[] = {"python3-torch=2.7.1+dfsg-1",
					     "python3-torch-cuda=2.6.0+dfsg-7",
					     "torch=2.6.0+cpu by pip", "python3-torc=2.6.0+dfsg-7"};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		request.package = others[i];
		assert_int_equal(captured()->defects.count, 0);
		assert_int_equal(captured()->requires.count, 0);
	}
}

/* Other files, another root, another verdict: another wheel. */
static void the_key_has_all(void **state)
{
	(void)state;
	const char *first = arena_strdup(&arena, captured()->output_key);
	assert_string_equal(captured()->output_key, first);
	request.digest = "other";
	assert_string_not_equal(captured()->output_key, first);
	setup(NULL);
	strcpy(root.fingerprint, "other");
	assert_string_not_equal(captured()->output_key, first);
	strcpy(root.fingerprint, "f");
	struct tables t = *shipped_tables(&arena);
	const struct plan *p;
	struct err e = {0};
	t.captured_count = 0;
	assert_ok(plan_captured(&t, &request, &arena, &p, &tools, &e), &e);
	assert_string_not_equal(p->output_key, first);
	request.metadata_rev = 2;
	assert_string_not_equal(captured()->output_key, first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_version_stays, setup),
		cmocka_unit_test_setup(what_is_known_of_the_package, setup),
		cmocka_unit_test_setup(other_packages_have_no_defects, setup),
		cmocka_unit_test_setup(the_key_has_all, setup),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
