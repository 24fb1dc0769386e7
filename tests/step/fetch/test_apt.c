#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/sys/fs.h"
#include "step/fetch/fetch.h"

struct fixture {
	struct arena a;
	struct err e;
	const char *dir;
	const char *path;
};

/* A stand-in for apt-get: what the test put into targets.sh answers. */
static const char fake[] = "#!/bin/sh\n"
			   "case \" $* \" in\n"
			   "*' indextargets '*) . %s/targets.sh ;;\n"
			   "*) exit 100 ;;\n"
			   "esac\n";

static void targets(struct fixture *f, const char *text)
{
	test_write(path_join(&f->a, f->dir, "targets.sh"), text);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dir = arena_strdup(&f->a, test_dir());
	const char *path = getenv("PATH");
	f->path = arena_strdup(&f->a, path ? path : "/usr/bin:/bin");
	const char *program = path_join(&f->a, f->dir, "bin/apt-get");
	test_write(program, arena_printf(&f->a, fake, f->dir));
	chmod(program, 0755);
	setenv("PATH", arena_printf(&f->a, "%s/bin:/usr/bin:/bin", f->dir), 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	setenv("PATH", f->path, 1);
	arena_release(&f->a);
	free(f);
	return test_teardown(state);
}

static const char *sites(struct fixture *f, const char *archive)
{
	struct strlist got = {0};

	err_clear(&f->e);
	assert_ok(apt_sites(&(struct fetcher){NULL, &(struct fetch_options){.any_site = false},
					      test_run(), &f->a},
			    archive, &got, &f->e),
		  &f->e);
	return strlist_join(&got, &f->a, " ");
}

static void each_archive_has_its_own(void **state)
{
	struct fixture *f = *state;

	targets(f, "echo 'http://one.invalid/debian|Debian|main|Debian'\n"
		   "echo 'http://one.invalid/debian|Debian|contrib|Debian'\n"
		   "echo 'http://two.invalid/debian-security|Debian|main|Debian-Security'\n"
		   "echo 'http://three.invalid/x|Somebody|main|Other'\n"
		   "echo 'http://four.invalid/debian|Debian|main|Debian Backports'\n"
		   "echo 'W: words beside' >&2\n");
	assert_string_equal(sites(f, "debian"),
			    "http://one.invalid/debian http://four.invalid/debian");
	assert_string_equal(sites(f, "debian-security"), "http://two.invalid/debian-security");
	assert_string_equal(sites(f, "debian-snapshot"), "");
}

static void lines_that_are_none_are_left_out(void **state)
{
	struct fixture *f = *state;

	targets(f, "echo 'http://one.invalid/a b|Debian|main|Debian'\n"
		   "echo 'http://two.invalid/[trusted=yes]|Debian|main|Debian'\n"
		   "echo '|Debian|main|Debian'\n"
		   "echo 'rubbish'\n"
		   "echo 'http://five.invalid/debian|Debian|main|Debian|more'\n"
		   "echo 'http://three.invalid/debian|Debian|main|Debian'\n");
	assert_string_equal(sites(f, "debian"), "http://three.invalid/debian");
}

static void machine_that_was_never_updated_gives_its_sites_too(void **state)
{
	struct fixture *f = *state;

	targets(f,
		"case \"$*\" in *--no-release-info*) echo 'http://new.invalid/debian||main|'; echo "
		"'http://new.invalid/debian-security||main|' ;; esac\n");
	assert_string_equal(sites(f, "debian"), "http://new.invalid/debian");
	assert_string_equal(sites(f, "debian-security"), "http://new.invalid/debian-security");
}

/* A probe has three seconds in all, and apt-get reads its lists for longer on a busy machine. */
static void any_site_is_said_without_the_lists(void **state)
{
	struct fixture *f = *state;
	struct strlist got = {0};

	targets(f, "case \"$*\" in *--no-release-info*Lists=/nonexistent*) echo "
		   "'http://new.invalid/debian||main|' ;; "
		   "*) echo \"lists are read: $*\" >>\"$0.calls\"; echo "
		   "'http://old.invalid/debian|Debian|main|Debian' "
		   ";; esac\n");
	assert_ok(apt_sites(&(struct fetcher){NULL, &(struct fetch_options){.any_site = true},
					      test_run(), &f->a},
			    "debian", &got, &f->e),
		  &f->e);
	assert_string_equal(strlist_join(&got, &f->a, " "), "http://new.invalid/debian");
	assert_null(test_read(path_join(&f->a, f->dir, "bin/apt-get.calls")));
	assert_string_equal(sites(f, "debian"), "http://old.invalid/debian");
}

static void machine_without_any_site(void **state)
{
	struct fixture *f = *state;

	targets(f, "exit 0\n");
	assert_string_equal(sites(f, "debian"), "");
	targets(f, "exit 100\n");
	assert_string_equal(sites(f, "debian"), "");
}

static void a_killed_apt_is_no_answer(void **state)
{
	struct fixture *f = *state;
	struct strlist got = {0};

	targets(f, "kill -9 $$\n");
	assert_err(apt_sites(&(struct fetcher){NULL, &(struct fetch_options){.any_site = false},
					       test_run(), &f->a},
			     "debian", &got, &f->e),
		   &f->e, ERR_SYSTEM, "was killed by signal 9");
}

static void machine_without_apt(void **state)
{
	struct fixture *f = *state;

	targets(f, "echo 'http://one.invalid/debian|Debian|main|Debian'\n");
	setenv("PATH", path_join(&f->a, f->dir, "nothing"), 1);
	assert_string_equal(sites(f, "debian"), "");
}

static void interruption_stops_it(void **state)
{
	struct fixture *f = *state;
	int ends[2];
	struct strlist got = {0};
	struct run run = *test_run();

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	run.cancel_fd = ends[0];
	targets(f, "exec sleep 30\n");
	assert_err(apt_sites(&(struct fetcher){NULL, &(struct fetch_options){.any_site = false},
					       &run, &f->a},
			     "debian", &got, &f->e),
		   &f->e, ERR_INTERRUPTED, "interrupted");
	close(ends[0]);
	close(ends[1]);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_archive_has_its_own),
		T(lines_that_are_none_are_left_out),
		T(machine_that_was_never_updated_gives_its_sites_too),
		T(any_site_is_said_without_the_lists),
		T(machine_without_any_site),
		T(a_killed_apt_is_no_answer),
		T(machine_without_apt),
		T(interruption_stops_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
