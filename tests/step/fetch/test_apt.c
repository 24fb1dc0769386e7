#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/sys/fs.h"
#include "step/fetch/apt.h"

#define PLACE "trixie/main/pkg=1.0+ds-1"
#define FILE_NAME "pkg_1.0+ds.orig.tar.xz"
#define KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"

struct fixture {
	struct arena a;
	struct err e;
	const char *dir;
	const char *state;
	const char *out;
	const char *path;
};

/* A stand-in for apt-get: appends its words to "calls", then runs what the test put into targets.sh, update.sh and
 * source.sh. */
static const char fake[] = "#!/bin/sh\n"
			   "top=%s\n"
			   "export top\n"
			   "echo \"$@\" >>$top/calls\n"
			   "case \" $* \" in\n"
			   "*' indextargets '*) . $top/targets.sh ;;\n"
			   "*' update '*) . $top/update.sh ;;\n"
			   "*' source '*) . $top/source.sh ;;\n"
			   "esac\n";

static void script(struct fixture *f, const char *name, const char *text)
{
	test_write(path_join(&f->a, f->dir, name), text);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->dir = arena_strdup(&f->a, test_dir());
	f->state = path_join(&f->a, f->dir, "state");
	f->out = path_join(&f->a, f->dir, "out");
	const char *path = getenv("PATH");
	f->path = arena_strdup(&f->a, path ? path : "/usr/bin:/bin");
	assert_ok(fs_mkdirs(f->out, &f->e), &f->e);
	const char *program = path_join(&f->a, f->dir, "bin/apt-get");
	test_write(program, arena_printf(&f->a, fake, f->dir));
	chmod(program, 0755);
	setenv("PATH", arena_printf(&f->a, "%s/bin:/usr/bin:/bin", f->dir), 1);
	script(f, "targets.sh", "echo 'http://one.invalid/debian|Debian|main|Debian'\n");
	script(f, "update.sh", ":\n");
	script(f, "source.sh", "echo bytes >" FILE_NAME "\n");
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

static int get(struct fixture *f)
{
	err_clear(&f->e);
	return apt_fetch(PLACE, FILE_NAME, f->state, f->out, test_run(), &f->e);
}

static const char *text_of(struct fixture *f, const char *name)
{
	char *text = test_read(path_join(&f->a, f->dir, name));
	const char *out = text ? arena_strdup(&f->a, text) : "";
	free(text);
	return out;
}

static const char *sources_list(struct fixture *f)
{
	return text_of(f, "state/trixie_main/sources.list");
}

static unsigned calls_of(struct fixture *f, const char *word)
{
	unsigned n = 0;
	struct strlist lines = {0};
	strlist_split(&lines, &f->a, text_of(f, "calls"), "\n");
	for (size_t i = 0; i < lines.count; i++)
		n += strstr(lines.items[i], arena_printf(&f->a, " %s", word)) != NULL ||
		     strncmp(lines.items[i], word, strlen(word)) == 0;
	return n;
}

static void brings_the_file_into_the_directory(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	assert_string_equal(text_of(f, "out/" FILE_NAME), "bytes\n");
	assert_contains(text_of(f, "calls"), "source --download-only --only-source pkg=1.0+ds-1\n");
}

static void other_files_of_the_package_may_fail(void **state)
{
	struct fixture *f = *state;
	script(f, "source.sh",
	       "echo bytes >" FILE_NAME "; echo 'E: Failed to fetch pkg_1.0+ds-1.dsc  404' >&2; exit 100\n");
	assert_ok(get(f), &f->e);
}

static void missing_file_gives_the_words_of_apt(void **state)
{
	struct fixture *f = *state;
	script(f, "source.sh",
	       "echo 'N: chatter' >&2; echo 'E: Failed to fetch " FILE_NAME
	       "  404' >&2; echo 'E: Some more' >&2; exit 100\n");
	assert_err(get(f), &f->e, ERR_NETWORK, "Failed to fetch " FILE_NAME "  404; Some more");
	assert_contains(f->e.msg, "trixie/main");
	assert_not_contains(f->e.msg, "chatter");
	assert_contains(f->e.hint, "--mirror");
}

static void success_without_the_file_is_an_error(void **state)
{
	struct fixture *f = *state;
	script(f, "source.sh", "exit 0\n");
	assert_err(get(f), &f->e, ERR_NETWORK, "it gave no reason");
}

static void empty_file_is_none(void **state)
{
	struct fixture *f = *state;
	script(f, "source.sh", ": >" FILE_NAME "\n");
	assert_err(get(f), &f->e, ERR_NETWORK, FILE_NAME);
}

static void link_is_no_file(void **state)
{
	struct fixture *f = *state;
	script(f, "source.sh", "ln -sf /etc/passwd " FILE_NAME "\n");
	assert_err(get(f), &f->e, ERR_NETWORK, FILE_NAME);
}

static void first_call_updates(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	assert_int_equal(calls_of(f, "update"), 1);
}

static void fresh_lists_are_not_updated(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	assert_ok(get(f), &f->e);
	assert_int_equal(calls_of(f, "update"), 1);
	assert_int_equal(calls_of(f, "source"), 2);
}

static void set_age(struct fixture *f, time_t seconds)
{
	const struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
	assert_int_equal(utimensat(AT_FDCWD, path_join(&f->a, f->state, "trixie_main/updated"), t, 0), 0);
}

static void lists_of_yesterday_are_updated(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	set_age(f, 90000);
	assert_ok(get(f), &f->e);
	assert_int_equal(calls_of(f, "update"), 2);
}

static void lists_from_the_future_are_updated(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	set_age(f, -1000);
	assert_ok(get(f), &f->e);
	assert_int_equal(calls_of(f, "update"), 2);
}

static void version_that_is_not_found_updates_once_more(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	unlink(path_join(&f->a, f->out, FILE_NAME));
	script(f, "update.sh", "touch $top/newer\n");
	script(f, "source.sh",
	       "if [ -e $top/newer ]; then echo bytes >" FILE_NAME
	       "; else echo 'E: Can not find version' >&2; exit 100; fi\n");
	assert_ok(get(f), &f->e);
	assert_int_equal(calls_of(f, "update"), 2);
}

static void version_that_nobody_has_updates_once_only(void **state)
{
	struct fixture *f = *state;
	script(f, "source.sh", "echo 'E: Can not find version' >&2; exit 100\n");
	assert_err(get(f), &f->e, ERR_NETWORK, "Can not find version");
	assert_int_equal(calls_of(f, "update"), 1);
	assert_int_equal(calls_of(f, "source"), 1);
}

static void failed_update_is_no_error_when_the_file_comes(void **state)
{
	struct fixture *f = *state;
	script(f, "update.sh", "echo 'E: one site is down' >&2; exit 100\n");
	assert_ok(get(f), &f->e);
	assert_ok(get(f), &f->e);
	assert_int_equal(calls_of(f, "update"), 2);
}

static void failed_update_is_named_when_nothing_comes(void **state)
{
	struct fixture *f = *state;
	script(f, "update.sh", "echo 'W: one site is down' >&2; exit 100\n");
	script(f, "source.sh", "echo 'E: Unable to find' >&2; exit 100\n");
	assert_err(get(f), &f->e, ERR_NETWORK, "one site is down; Unable to find");
}

static void sites_are_those_of_the_main_archive(void **state)
{
	struct fixture *f = *state;
	script(f, "targets.sh",
	       "echo 'http://one.invalid/debian|Debian|main|Debian'\n"
	       "echo 'http://one.invalid/debian|Debian|contrib|Debian'\n"
	       "echo 'http://two.invalid/debian-security|Debian|main|Debian-Security'\n"
	       "echo 'http://three.invalid/x|Somebody|main|Other'\n"
	       "echo 'http://four.invalid/debian|Debian|main|Debian Backports'\n");
	assert_ok(get(f), &f->e);
	assert_contains(sources_list(f), " http://one.invalid/debian trixie main\n");
	assert_contains(sources_list(f), " http://four.invalid/debian trixie main\n");
	assert_not_contains(sources_list(f), "two.invalid");
	assert_not_contains(sources_list(f), "three.invalid");
	struct strlist lines = {0};
	strlist_split(&lines, &f->a, sources_list(f), "\n");
	assert_int_equal(lines.count, 2);
}

static void sources_are_signed_by_the_archive_key_where_it_is(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	const char *want = fs_exists(KEYRING) ? "deb-src [signed-by=" KEYRING
						"] http://one.invalid/debian trixie main\n"
					      : "deb-src http://one.invalid/debian trixie main\n";
	assert_string_equal(sources_list(f), want);
}

static void sites_that_could_break_the_list_are_left_out(void **state)
{
	struct fixture *f = *state;
	script(f, "targets.sh",
	       "echo 'http://one.invalid/a b|Debian|main|Debian'\n"
	       "echo 'http://two.invalid/[trusted=yes]|Debian|main|Debian'\n"
	       "echo '|Debian|main|Debian'\n"
	       "echo 'rubbish'\n"
	       "echo 'http://three.invalid/debian|Debian|main|Debian'\n");
	assert_ok(get(f), &f->e);
	assert_contains(sources_list(f), "three.invalid");
	assert_not_contains(sources_list(f), "one.invalid");
	assert_not_contains(sources_list(f), "two.invalid");
	assert_not_contains(sources_list(f), "rubbish");
}

static void machine_that_was_never_updated_gives_its_sites_too(void **state)
{
	struct fixture *f = *state;
	script(f, "targets.sh",
	       "case \"$*\" in *--no-release-info*) echo 'http://new.invalid/debian||main|'; echo "
	       "'http://new.invalid/debian-security||main|' ;; esac\n");
	assert_ok(get(f), &f->e);
	assert_contains(sources_list(f), " http://new.invalid/debian trixie main\n");
	assert_not_contains(sources_list(f), "security");
}

static void machine_without_any_site(void **state)
{
	struct fixture *f = *state;
	script(f, "targets.sh", "exit 0\n");
	assert_err(get(f), &f->e, ERR_NETWORK, "knows no site");
	assert_contains(f->e.hint, "--mirror");
	assert_int_equal(calls_of(f, "update"), 0);
}

static void changed_sites_update_again(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	script(f, "targets.sh", "echo 'http://moved.invalid/debian|Debian|main|Debian'\n");
	assert_ok(get(f), &f->e);
	assert_int_equal(calls_of(f, "update"), 2);
	assert_contains(sources_list(f), "moved.invalid");
}

static void state_is_private(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	const char *calls = text_of(f, "calls");
	assert_contains(calls, arena_printf(&f->a, "-o Dir::State=%s/trixie_main/state ", f->state));
	assert_contains(calls, arena_printf(&f->a, "-o Dir::Cache=%s/trixie_main/cache ", f->state));
	assert_contains(calls, arena_printf(&f->a, "-o Dir::Etc::SourceList=%s/trixie_main/sources.list ", f->state));
	assert_contains(calls, "-o Dir::Etc::SourceParts=/dev/null ");
	assert_true(fs_is_dir(path_join(&f->a, f->state, "trixie_main/state/lists/partial")));
	if (geteuid() == 0)
		assert_contains(calls, "-o APT::Sandbox::User=root ");
	else
		assert_not_contains(calls, "APT::Sandbox::User");
}

static void suites_do_not_share_their_state(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f), &f->e);
	assert_ok(apt_fetch("sid/contrib/pkg=1.0+ds-1", FILE_NAME, f->state, f->out, test_run(), &f->e), &f->e);
	assert_int_equal(calls_of(f, "update"), 2);
	assert_contains(text_of(f, "state/sid_contrib/sources.list"), " sid contrib\n");
}

static void bad_places_are_refused_and_nothing_is_run(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = {
		"",
		"trixie",
		"trixie/main",
		"trixie/main/pkg",
		"trixie/main/pkg=",
		"trixie/main/=1",
		"trixie//pkg=1",
		"/main/pkg=1",
		"-oDir=x/main/pkg=1",
		"trixie/-o/pkg=1",
		"trixie/main/-o=1",
		"trixie/main/--option=1",
		"trixie/main/pkg=-1",
		"trixie/main/p kg=1",
		"trixie/main/pkg=1 2",
		"tri xie/main/pkg=1",
		"trixie/main/pkg=1/2",
		"trixie/main/pkg=1;reboot",
		"trixie/main/pkg=1\n2",
		"trixie/main/../pkg=1",
		"../main/pkg=1",
		"trixie/main/pkg=$(id)",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_err(apt_fetch(bad[i], FILE_NAME, f->state, f->out, test_run(), &f->e), &f->e, ERR_CONFIG,
			   "not an apt place");
		assert_contains(f->e.hint, "SUITE/COMPONENT/SOURCE=VERSION");
	}
	assert_string_equal(text_of(f, "calls"), "");
	assert_false(fs_exists(f->state));
}

static void epochs_and_tildes_are_versions(void **state)
{
	struct fixture *f = *state;
	assert_ok(apt_fetch("bookworm-backports/non-free-firmware/libx+y=1:2.0~rc1+ds-1.1", FILE_NAME, f->state, f->out,
			    test_run(), &f->e),
		  &f->e);
	assert_contains(text_of(f, "calls"), " libx+y=1:2.0~rc1+ds-1.1\n");
}

static void names_that_leave_the_directory_are_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = {"", "../x", "/etc/passwd", "a/b"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_err(apt_fetch(PLACE, bad[i], f->state, f->out, test_run(), &f->e), &f->e, ERR_CONFIG,
			   "not a file name");
	assert_string_equal(text_of(f, "calls"), "");
}

static void machine_without_apt(void **state)
{
	struct fixture *f = *state;
	setenv("PATH", path_join(&f->a, f->dir, "nothing"), 1);
	assert_err(get(f), &f->e, ERR_NETWORK, "no apt-get on this machine");
	assert_contains(f->e.hint, "--mirror");
}

static void interruption_stops_it(void **state)
{
	struct fixture *f = *state;
	int ends[2];
	struct run run = *test_run();
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	run.cancel_fd = ends[0];
	script(f, "source.sh", "exec sleep 30\n");
	assert_err(apt_fetch(PLACE, FILE_NAME, f->state, f->out, &run, &f->e), &f->e, ERR_INTERRUPTED, "interrupted");
	assert_false(fs_exists(path_join(&f->a, f->out, FILE_NAME)));
	close(ends[0]);
	close(ends[1]);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(brings_the_file_into_the_directory),
		T(other_files_of_the_package_may_fail),
		T(missing_file_gives_the_words_of_apt),
		T(success_without_the_file_is_an_error),
		T(empty_file_is_none),
		T(link_is_no_file),
		T(first_call_updates),
		T(fresh_lists_are_not_updated),
		T(lists_of_yesterday_are_updated),
		T(lists_from_the_future_are_updated),
		T(version_that_is_not_found_updates_once_more),
		T(version_that_nobody_has_updates_once_only),
		T(failed_update_is_no_error_when_the_file_comes),
		T(failed_update_is_named_when_nothing_comes),
		T(sites_are_those_of_the_main_archive),
		T(sources_are_signed_by_the_archive_key_where_it_is),
		T(sites_that_could_break_the_list_are_left_out),
		T(machine_that_was_never_updated_gives_its_sites_too),
		T(machine_without_any_site),
		T(changed_sites_update_again),
		T(state_is_private),
		T(suites_do_not_share_their_state),
		T(bad_places_are_refused_and_nothing_is_run),
		T(epochs_and_tildes_are_versions),
		T(names_that_leave_the_directory_are_refused),
		T(machine_without_apt),
		T(interruption_stops_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
