/* A small package with a compiled library, unpacked as a build leaves it, and wheels made of it. */
#pragma once
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "step/pack/pack.h"

#define METADATA                                                                                   \
	"Metadata-Version: 2.1\nName: Tiny.Pack\nVersion: 1.0+raw\nSummary: a "                    \
	"test\nRequires-Dist: numpy ; extra == "                                                   \
	"'x'\n"                                                                                    \
	"Requires-Dist: torch (==2.6.0)\n\nA description\nVersion: not this one\n"
#define WHEEL                                                                                      \
	"Wheel-Version: 1.0\nGenerator: setuptools\nRoot-Is-Purelib: false\nTag: "                 \
	"py3-none-linux_x86_64\n\n"
#define INIT                                                                                       \
	"import ctypes, os\n"                                                                      \
	"answer = ctypes.CDLL(os.path.join(os.path.dirname(__file__), 'libtiny.so')).answer()\n"

static struct arena arena;
static struct err err;

static inline int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	return 0;
}

static inline int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static inline void shell(const char *fmt, ...)
{
	char command[8192];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

/* A library at `path` (below the test directory) of this C text. */
static inline void compile(const char *path, const char *text, const char *flags)
{
	test_write(test_path("%s.c", path), text);
	shell("cc -shared -fPIC -s -o '%s' '%s' %s", test_path("%s", path), test_path("%s.c", path),
	      flags);
	unlink(test_path("%s.c", path));
}

/* The tree below `tree` in the test directory. */
static inline void make_tree(void)
{
	test_write(test_path("tree/tiny/__init__.py"), INIT);
	compile("tree/tiny/libtiny.so", "int answer(void) { return 42; }\n", "-nostdlib");
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/METADATA"), METADATA);
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/WHEEL"), WHEEL);
	test_write(test_path("tree/tiny_pack-1.0+raw.dist-info/RECORD"), "stale,,\n");
	mkdir(test_path("out"), 0755);
}

static inline struct pack_request request(void)
{
	static char tree[4096], out[4096];
	snprintf(tree, sizeof(tree), "%s", test_path("tree"));
	snprintf(out, sizeof(out), "%s", test_path("out"));
	return (struct pack_request){.run = test_run(),
				     .tree = tree,
				     .version = "1.0+cpu.avx2",
				     .platform = "manylinux_2_17_x86_64",
				     .metadata_rev = 1,
				     .input_key = "0123abcd",
				     .generator = "ptbuild 0.1.0",
				     .epoch = 1700000000,
				     .threads = 2,
				     .level = PACK_LEVEL,
				     .out_dir = out};
}

static inline struct pack_result pack_ok(const struct pack_request *q)
{
	struct pack_result r = {0};
	assert_ok(pack_wheel(q, &arena, &r, &err), &err);
	return r;
}

/* Where the tree has its library. */
#define LIBRARY "tree/tiny/libtiny.so"
#define INFO "tiny_pack-1.0+cpu.avx2.dist-info"
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
