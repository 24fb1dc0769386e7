/* A sandbox of the host, in which tests run scripts. */
#pragma once
#include "support.h"

#include <string.h>
#include <sys/stat.h>

#include "base/sys/build_user.h"
#include "core/root/landlock_init.h"
#include "core/root/sandbox.h"

static struct arena arena;
static struct root host;
static struct sandbox box;
static struct run walled; /* without some protections, with some limits */

static int setup(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	walled = *test_run();
	assert_int_equal(chmod(test_path("."), 0755), 0);
	assert_ok(root_open(NULL, &arena, &host, &e), &e);
	assert_ok(sandbox_init(&box, SANDBOX_BWRAP, &host, &arena, &e), &e);
	kvlist_set(&box.env, &arena, "PATH", ROOT_PATH);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

/* inside: a shell script in the sandbox; its exit status, all it printed in `out`. */
static int inside(struct buf *out, const char *script)
{
	struct err e = {0};
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct proc_spec spec = {.out = out, .timeout_s = 60};
	struct proc_result res = {0};
	buf_reset(out);
	assert_ok(sandbox_run(&box, argv, &spec, &walled, &res, &e), &e);
	return res.status;
}

static void assert_inside(const char *script, const char *text)
{
	AUTO_BUF struct buf out = {0};
	int status = inside(&out, script);
	assert_string_equal(buf_cstr(&out), text);
	assert_int_equal(status, 0);
}

/* assert_fails: the script fails, and says so in these words. */
static void assert_fails(const char *script, const char *words)
{
	AUTO_BUF struct buf out = {0};
	assert_int_not_equal(inside(&out, script), 0);
	assert_contains(buf_cstr(&out), words);
}

static void show_rw(const char *name, const char *dest)
{
	assert_int_equal(mkdir(test_path("%s", name), 0777), 0);
	sandbox_add(&box, SANDBOX_RW, test_path("%s", name), dest);
}
