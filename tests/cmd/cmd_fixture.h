/* What the tests of the commands share: they run the program
 * itself and look at what it prints and how it ends. */
#pragma once
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys/json.h"
#include "base/sys/proc.h"
#include "cmd/cmd.h"

static struct {
	struct arena arena;
	struct buf out, err;
	int status;
} ran;

static inline int setup(void **state)
{
	(void)state;
	test_dir();
	setenv("XDG_CACHE_HOME", test_path("xdg"), 1);
	setenv("HOME", test_path("home"), 1);
	unsetenv("PTBUILD_DATA_DIR");
	test_python("3.13");
	return 0;
}

static inline int teardown(void **state)
{
	arena_release(&ran.arena);
	buf_release(&ran.out);
	buf_release(&ran.err);
	return test_teardown(state);
}

/* Runs a shell line in which PTBUILD is the program. */
static inline int shell(const char *line)
{
	const char *const argv[] = {"/bin/sh", "-c", line, NULL};
	struct proc_spec spec = {.argv = argv, .out = &ran.out, .err = &ran.err, .timeout_s = 120};
	struct proc_result r;
	struct err e = {0};
	buf_reset(&ran.out);
	buf_reset(&ran.err);
	setenv("PTBUILD", PTBUILD_PROGRAM, 1);
	assert_ok(proc_run(&spec, test_run(), &r, &e), &e);
	return ran.status = r.status;
}

static inline int ptbuild(const char *args)
{
	return shell(arena_printf(&ran.arena, "exec \"$PTBUILD\" %s", args));
}

static inline const char *out(void)
{
	return buf_cstr(&ran.out);
}

static inline const char *err_text(void)
{
	return buf_cstr(&ran.err);
}

static inline void expect(const char *args, int status, const char *in_err)
{
	ptbuild(args);
	if (ran.status != status)
		fail_msg("'ptbuild %s' gave %d, not %d: %s", args, ran.status, status, err_text());
	assert_contains(err_text(), in_err);
}

static inline json_t *json_out(void)
{
	json_error_t why;
	json_t *doc = json_loads(out(), JSON_REJECT_DUPLICATES, &why);
	if (!doc)
		fail_msg("no JSON (%s): %s", why.text, out());
	return doc;
}

static inline size_t occurrences(const char *text, const char *part)
{
	size_t n = 0;
	for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
		n++;
	return n;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
