/* What the tests of the store share: a store in a fresh directory, and short ways to fill it. */
#pragma once
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store.h"

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

struct fixture {
	struct arena arena;
	struct store *store;
	struct err err;
	char dir[512];
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	if (!f)
		return -1;
	test_dir();
	snprintf(f->dir, sizeof(f->dir), "%s", test_path("store"));
	*state = f;
	return store_open(f->dir, test_run(), &f->store, &f->err);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	store_close(f->store);
	arena_release(&f->arena);
	free(f);
	return test_teardown(state);
}

static inline const char *in_store(struct fixture *f, const char *rel)
{
	return arena_printf(&f->arena, "%s/%s", f->dir, rel);
}

/* Root may write everywhere, so the child becomes somebody else first. */
static inline int in_child_as_nobody(int (*fn)(struct fixture *), struct fixture *f)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 &&
		    (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
			_exit(99);
		_exit(fn(f));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static inline const char *stage_with(struct fixture *f, struct store *s, const char *name,
				     const char *text)
{
	const char *stage;
	assert_ok(store_stage(s, &f->arena, &stage, &f->err), &f->err);
	test_write(arena_printf(&f->arena, "%s/%s", stage, name), text);
	return stage;
}

static inline const char *publish(struct fixture *f, const char *kind, const char *key,
				  const char *name, const char *text)
{
	const char *stage = stage_with(f, f->store, name, text), *path;
	assert_ok(store_publish(f->store, kind, key, stage, &f->arena, &path, &f->err), &f->err);
	return path;
}

static inline struct store_object only_object(struct fixture *f)
{
	struct store_object *objects;
	size_t count;
	assert_ok(store_list(f->store, &f->arena, &objects, &count, &f->err), &f->err);
	assert_int_equal(count, 1);
	return objects[0];
}

static inline size_t names_in(struct fixture *f, const char *rel)
{
	struct strlist names = {0};
	assert_ok(fs_list(TRUSTED, in_store(f, rel), &f->arena, &names, &f->err), &f->err);
	return names.count;
}

static inline void set_used(const char *object, time_t when)
{
	char manifest[1024];
	snprintf(manifest, sizeof(manifest), "%s/.manifest.json", object);
	struct timespec t[2] = {{.tv_sec = when}, {.tv_sec = when}};
	assert_int_equal(utimensat(AT_FDCWD, manifest, t, 0), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
