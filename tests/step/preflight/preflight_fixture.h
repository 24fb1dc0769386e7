/* A root in which everything is as it must be; a test then takes one thing away. */
#pragma once
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/preflight/preflight.h"

static struct {
	struct arena a;
	struct tool tools[7];
	struct toolchain chain;
	struct release_row release;
	struct package_row package;
	struct setting settings[2];
	struct plan plan;
	struct root root;
	struct need_row needs[12];
	struct tables tables;
	struct preflight_request q;
	struct preflight d;
	char host[160];
} t;

static struct need_row need(const char *tool, const char *program, const char *header,
			    const char *debian)
{
	return (struct need_row){.tool = tool,
				 .program = program,
				 .header = header,
				 .module = "",
				 .library = "",
				 .package = "",
				 .release = "",
				 .toggle = "",
				 .debian = debian,
				 .why = "it is needed"};
}

static void program(const char *path)
{
	path = path_join(&t.a, t.root.dir, path);
	test_write(path, "");
	assert_int_equal(chmod(path, 0755), 0);
}

static int setup(void **state)
{
	static const struct tool all[] = {
		{.name = "gcc", .path = "/usr/bin/gcc", .version = "12.2.0"},
		{.name = "g++", .path = "/usr/bin/g++", .version = "12.2.0"},
		{.name = "ninja", .path = "/usr/bin/ninja", .version = "1.11.1"},
		{.name = "python3", .path = "/usr/bin/python3", .version = "3.13.5"},
		{.name = "cmake", .path = "/usr/bin/cmake", .version = "3.31.6"},
		{.name = "ccache", .path = "/usr/bin/ccache", .version = "4.11.2"},
	};
	static const char *pythons[] = {"3.13"};
	struct utsname u;
	(void)state;
	memset(&t, 0, sizeof(t));
	assert_int_equal(uname(&u), 0);
	snprintf(t.host, sizeof(t.host), "%s-linux", u.machine);
	memcpy(t.tools, all, sizeof(all));
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		t.needs[i] = need(all[i].name, "", "", all[i].name);
	t.needs[5].optional = true;
	t.needs[6] = need("", "flatc", "", "flatbuffers-compiler");
	t.needs[7] = need("", "", "eigen3/Eigen/Core", "libeigen3-dev");
	t.needs[8] = need("", "", "sleef.h", "libsleef-dev");
	t.tables = (struct tables){.needs = t.needs, .needs_count = 9};
	t.chain = (struct toolchain){.tools = t.tools, .count = ARRAY_LEN(all)};
	t.release = (struct release_row){.name = "2.6.0",
					 .cmake = ">=3.18,<4",
					 .gcc = ">=9.3",
					 .ninja = "",
					 .pythons = pythons,
					 .pythons_count = 1};
	t.release.disk = "1M";
	t.package = (struct package_row){.backend = "setup-py-env"};
	t.settings[0] = (struct setting){.name = "PATH", .value = "/usr/bin:/bin"};
	t.settings[1] = (struct setting){.name = "USE_X", .value = "ON"};
	t.plan = (struct plan){.platform = t.host,
			       .package = "pytorch",
			       .variant = "v",
			       .release = "2.6.0",
			       .python = "3.13",
			       .torch = "",
			       .torch_version = "",
			       .env = {.items = t.settings, .count = 2},
			       .release_row = &t.release,
			       .package_row = &t.package};
	t.root = (struct root){.dir = arena_strdup(&t.a, test_dir()), .id = "debian 13"};
	t.q = (struct preflight_request){.tables = &t.tables,
					 .release = &t.release,
					 .plan = &t.plan,
					 .root = &t.root,
					 .toolchain = &t.chain,
					 .store_dir = path_join(&t.a, t.root.dir, "store"),
					 .out_dir = path_join(&t.a, t.root.dir, "dist")};
	t.d = (struct preflight){
		.q = &t.q, .run = test_run(), .arena = &t.a, .toolchain = &t.chain};
	program("usr/bin/flatc");
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		program(arena_printf(&t.a, "usr/bin/%s", all[i].name));
	test_write(path_join(&t.a, t.root.dir, "usr/include/eigen3/Eigen/Core"), "");
	test_write(path_join(&t.a, t.root.dir, "usr/include/x86_64-linux-gnu/sleef.h"), "");
	test_write(path_join(&t.a, t.root.dir, "etc/ld.so.conf"), "/usr/lib/x86_64-linux-gnu\n");
	test_write(path_join(&t.a, t.root.dir, "usr/lib/x86_64-linux-gnu/file"), "");
	return 0;
}

static int teardown(void **state)
{
	arena_release(&t.a);
	return test_teardown(state);
}

/* The rows that need no compiler. */
static int check(struct err *e)
{
	t.d.count = 0;
	static const char *const rows[] = {"platform", "cpu",      "torch-fits", "places",
					   "memory",   "programs", "tools",      "files"};
	t.d.stop = false;
	for (size_t i = 0; i < ARRAY_LEN(rows) && !t.d.stop; i++)
		assert_ok(preflight_check(&t.d, rows[i], e), e);
	return preflight_verdict(&t.d, e);
}
