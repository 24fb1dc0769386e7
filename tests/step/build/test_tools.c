#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "step/build/tools.h"

static struct tool tools[5];
static struct toolchain chain;
static struct release_row release;
static struct package_row package;
static char host[160];
static const struct root root = {.dir = "/r"};

/* A root in which everything is as it must be; a test then takes one thing away. */
static struct plan good(void)
{
	static const struct tool all[] = {
		{.name = "gcc", .path = "/usr/bin/gcc", .version = "12.2.0"},
		{.name = "g++", .path = "/usr/bin/g++", .version = "12.2.0"},
		{.name = "ninja", .path = "/usr/bin/ninja", .version = "1.11.1"},
		{.name = "python3", .path = "/usr/bin/python3", .version = "3.13.5"},
		{.name = "cmake", .path = "/usr/bin/cmake", .version = "3.31.6"},
	};
	struct utsname u;
	assert_int_equal(uname(&u), 0);
	snprintf(host, sizeof(host), "%s-linux", u.machine);
	memcpy(tools, all, sizeof(all));
	chain = (struct toolchain){.tools = tools, .count = ARRAY_LEN(tools)};
	release = (struct release_row){.name = "2.6.0", .cmake = ">=3.18,<4", .gcc = ">=9.3", .ninja = ""};
	package = (struct package_row){.backend = "setup-py-env"};
	return (struct plan){.platform = host,
			     .variant = "v",
			     .release = "2.6.0",
			     .python = "3.13",
			     .release_row = &release,
			     .package_row = &package};
}

static int check(const struct plan *p, struct err *e)
{
	return tools_check(p, &chain, &root, e);
}

static void test_all_there(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan p = good();
	assert_ok(check(&p, &e), &e);
	const struct toolkit toolkit = {.version = "12.8"};
	p.cuda = "12.8";
	p.toolkit = &toolkit;
	assert_ok(check(&p, &e), &e);
}

static void test_each_missing_tool_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct err e = {0};
		struct plan p = good();
		tools[i].path = NULL;
		tools[i].version = "";
		assert_err(check(&p, &e), &e, ERR_SYSTEM, tools[i].name);
		assert_contains(e.hint, "--root");
	}
}

static void test_another_platform(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan p = good();
	p.platform = "aarch64-darwin";
	assert_err(check(&p, &e), &e, ERR_POLICY, "v is for aarch64-darwin, and this machine is ");
	assert_contains(e.hint, "macOS 12.3");
	p.platform = "riscv64-linux";
	assert_err(check(&p, &e), &e, ERR_POLICY, "v is for riscv64-linux");
	assert_contains(e.hint, "on such a machine");
}

static void test_no_toolkit(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan p = good();
	assert_ok(check(&p, &e), &e);
	p.cuda = "12.8";
	assert_err(check(&p, &e), &e, ERR_SYSTEM, "no CUDA toolkit in the root '/r'");
	assert_contains(e.hint, "12.8");
}

static void test_versions_out_of_range(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan p = good();
	tools[4].version = "4.0.1";
	assert_err(check(&p, &e), &e, ERR_POLICY, "cmake 4.0.1");
	assert_contains(e.msg, ">=3.18,<4");
	p = good();
	tools[0].version = "8.5.0";
	assert_err(check(&p, &e), &e, ERR_POLICY, "gcc 8.5.0");
}

static void test_cmake_range_matters_only_where_cmake_drives(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan p = good();
	package.backend = "setuptools";
	tools[4].version = "4.0.1";
	assert_ok(check(&p, &e), &e);
}

static void test_another_python(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan p = good();
	p.python = "3.12";
	assert_err(check(&p, &e), &e, ERR_POLICY, "python3 in the root '/r' is 3.13.5");
	p.python = "3.1";
	assert_err(check(&p, &e), &e, ERR_POLICY, "for Python 3.1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_there),
		cmocka_unit_test(test_each_missing_tool_is_named),
		cmocka_unit_test(test_another_platform),
		cmocka_unit_test(test_no_toolkit),
		cmocka_unit_test(test_versions_out_of_range),
		cmocka_unit_test(test_cmake_range_matters_only_where_cmake_drives),
		cmocka_unit_test(test_another_python),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
