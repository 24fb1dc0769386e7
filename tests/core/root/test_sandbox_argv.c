#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "core/root/sandbox.h"

static struct arena arena;

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

/* made_root: an unpacked root with links for bin and lib64, a real lib, and an /etc. */
static struct root made_root(void)
{
	struct err e = {0};
	struct root r;

	test_dir();
	test_write(test_path("root/usr/bin/x"), "");
	test_write(test_path("root/lib/y"), "");
	test_write(test_path("root/etc/passwd"), "somebody");
	test_write(test_path("root/home/user/secret"), "");
	assert_int_equal(symlink("usr/bin", test_path("root/bin")), 0);
	assert_int_equal(symlink("/usr/lib64", test_path("root/lib64")), 0);
	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	return r;
}

static const char *line(const struct strlist *l)
{
	return strlist_join(l, &arena, "\n");
}

static void test_options_of_an_unpacked_root(void **state)
{
	(void)state;
	struct err e = {0};
	struct sandbox s;
	struct strlist got = {0};
	struct root r = made_root();
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &r, &arena, &e), &e);
	sandbox_add(&s, SANDBOX_RW, "/host/src", SANDBOX_SRC);
	sandbox_add(&s, SANDBOX_RO, "/host/cfg", SANDBOX_CFG);
	kvlist_set(&s.env, &arena, "K", "a value");
	s.cwd = SANDBOX_SRC;
	assert_ok(sandbox_argv(&s, (const char *const[]){"make", "-j", NULL}, &got, &e), &e);
	const char *want = arena_printf(
		&arena,
		"bwrap\n--unshare-user\n--uid\n1000\n--gid\n1000\n--disable-userns\n"
		"--unshare-ipc\n--unshare-pid\n--unshare-uts\n--unshare-cgroup-try\n--"
		"hostname\nptbuild\n"
		"--die-with-parent\n--clearenv\n--new-session\n--unshare-net\n"
		"--ro-bind\n%s/usr\n/usr\n--symlink\nusr/bin\n/bin\n--ro-bind\n%s/lib\n/"
		"lib\n--symlink\n/usr/lib64\n/"
		"lib64\n"
		"--ro-bind\n%s/etc\n/etc\n--ro-bind-data\n3\n/etc/passwd\n--proc\n/"
		"proc\n--remount-ro\n/"
		"proc\n--ro-bind-try\n/proc/sys\n/"
		"proc/sys\n--ro-bind-try\n/dev/null\n/proc/keys\n--dev\n/dev\n--remount-ro\n/"
		"dev\n--tmpfs\n/tmp\n"
		"--tmpfs\n/ptbuild/home\n--tmpfs\n/ptbuild/tmp\n--bind\n/host/src\n/ptbuild/"
		"src\n--ro-bind\n/host/"
		"cfg\n/ptbuild/cfg\n"
		"--remount-ro\n/\n--setenv\nK\na value\n--chdir\n/ptbuild/src\n--\nmake\n-j",
		r.dir, r.dir, r.dir);
	assert_string_equal(line(&got), want);
}

static void test_options_of_the_host(void **state)
{
	(void)state;
	struct err e = {0};
	struct sandbox s;
	struct strlist got = {0};
	struct root r;
	assert_ok(root_open("/", &arena, &r, &e), &e);
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &r, &arena, &e), &e);
	sandbox_options(&s, &got);
	const char *text = line(&got);
	assert_contains(text, "--ro-bind\n/usr\n/usr\n");
	assert_contains(text, "--dir\n/etc\n");
	assert_contains(text, "--ro-bind-data\n3\n/etc/passwd\n--ro-bind-data\n4\n/etc/"
			      "group\n--ro-bind-data\n5\n/etc/hosts\n");
	assert_not_contains(text, "\n/etc\n/etc\n");
	assert_not_contains(text, "/opt");
	assert_not_contains(text, "/var");
	assert_not_contains(text, "/home\n/home");
}

static void test_network_is_kept_only_when_asked(void **state)
{
	(void)state;
	struct err e = {0};
	struct sandbox s;
	struct strlist with = {0}, without = {0};
	struct root r = made_root();
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &r, &arena, &e), &e);
	sandbox_options(&s, &without);
	s.network = true;
	sandbox_options(&s, &with);
	assert_true(strlist_contains(&without, "--unshare-net"));
	assert_false(strlist_contains(&with, "--unshare-net"));
	assert_int_equal(with.count + 1, without.count);
}

static void test_every_operation(void **state)
{
	(void)state;
	struct err e = {0};
	struct sandbox s;
	struct strlist got = {0};
	struct root r = made_root();
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &r, &arena, &e), &e);
	s.count = 0;
	sandbox_add(&s, SANDBOX_DATA, "one", "/a");
	sandbox_add(&s, SANDBOX_DIR, NULL, "/b");
	sandbox_add(&s, SANDBOX_TMPFS, NULL, "/c");
	sandbox_add(&s, SANDBOX_LINK, "target", "/d");
	sandbox_add(&s, SANDBOX_DATA, "two", "/e");
	sandbox_add(&s, SANDBOX_PROC, NULL, "/f");
	sandbox_add(&s, SANDBOX_DEV, NULL, "/g");
	sandbox_options(&s, &got);
	assert_contains(line(&got),
			"--ro-bind-data\n3\n/a\n--dir\n/b\n--tmpfs\n/c\n--symlink\ntarget\n/"
			"d\n--ro-bind-data\n4\n/e\n"
			"--proc\n/f\n--remount-ro\n/f\n--ro-bind-try\n/proc/sys\n/f/sys\n"
			"--ro-bind-try\n/dev/null\n/f/keys\n--dev\n/g\n--remount-ro\n/g\n");
}

static void test_shared_proc_is_bound_read_only(void **state)
{
	(void)state;
	struct err e = {0};
	struct sandbox s;
	struct strlist got = {0};
	struct root r = made_root();
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &r, &arena, &e), &e);
	s.proc_shared = true;
	s.proc_open = true;
	sandbox_options(&s, &got);
	assert_contains(line(&got), "\n--ro-bind\n/proc\n/proc\n--ro-bind-try\n/proc/sys\n");
	assert_false(strlist_contains(&got, "--proc"));
	assert_false(strlist_contains(&got, "--disable-userns"));
	assert_true(strlist_contains(&got, "--unshare-pid"));
}

static void test_no_sandbox_with_an_unpacked_root(void **state)
{
	(void)state;
	struct err e = {0};
	struct sandbox s;
	struct root r = made_root();
	assert_err(sandbox_init(&s, SANDBOX_NONE, &r, &arena, &e), &e, ERR_POLICY,
		   "without a sandbox");
	assert_true(e.hint[0] != '\0');
}

static struct sandbox plain(void)
{
	static struct root r;
	struct err e = {0};
	struct sandbox s;

	assert_ok(root_open("/", &arena, &r, &e), &e);
	assert_ok(sandbox_init(&s, SANDBOX_NONE, &r, &arena, &e), &e);
	return s;
}

static void assert_maps(const struct sandbox *s, const char *text, const char *want)
{
	assert_string_equal(sandbox_host_text(s, text, &arena), want);
}

static void test_paths_are_replaced(void **state)
{
	(void)state;
	struct sandbox s = plain();
	sandbox_add(&s, SANDBOX_RW, "/h/src", SANDBOX_SRC);
	sandbox_add(&s, SANDBOX_RW, "/h/o u t", SANDBOX_OUT);
	assert_maps(&s, "/ptbuild/src", "/h/src");
	assert_maps(&s, "/ptbuild/src/a/b", "/h/src/a/b");
	assert_maps(&s, "-I/ptbuild/src/x", "-I/h/src/x");
	assert_maps(&s, "--prefix=/ptbuild/out", "--prefix=/h/o u t");
	assert_maps(&s, "/ptbuild/src:/usr/bin:/ptbuild/out/bin", "/h/src:/usr/bin:/h/o u t/bin");
	assert_maps(&s, "-ffile-prefix-map=/ptbuild/src=.", "-ffile-prefix-map=/h/src=.");
	assert_maps(&s, "-Wl,-rpath,/ptbuild/src/lib", "-Wl,-rpath,/h/src/lib");
	assert_maps(&s, "@/ptbuild/src/flags", "@/h/src/flags");
	assert_maps(&s, "file:///ptbuild/src/x.whl", "file:///h/src/x.whl");
	assert_maps(&s, "a;/ptbuild/src;b", "a;/h/src;b");
	assert_maps(&s, "-O2 -I/ptbuild/src -L/ptbuild/out", "-O2 -I/h/src -L/h/o u t");
}

static void test_what_only_looks_alike_stays(void **state)
{
	(void)state;
	struct sandbox s = plain();
	sandbox_add(&s, SANDBOX_RW, "/h/src", SANDBOX_SRC);
	assert_maps(&s, "/ptbuild/src2", "/ptbuild/src2");
	assert_maps(&s, "/ptbuild/src.old/x", "/ptbuild/src.old/x");
	assert_maps(&s, "/x/ptbuild/src", "/x/ptbuild/src");
	assert_maps(&s, "rel/ptbuild/src", "rel/ptbuild/src");
	assert_maps(&s, "https://host/ptbuild/src", "https://host/ptbuild/src");
	assert_maps(&s, "-I/x/ptbuild/src", "-I/x/ptbuild/src");
	assert_maps(&s, "/ptbuild", "/ptbuild");
	assert_maps(&s, "", "");
}

static void test_longest_prefix_wins(void **state)
{
	(void)state;
	struct sandbox s = plain();
	sandbox_add(&s, SANDBOX_RW, "/h/sub", "/ptbuild/src/sub");
	sandbox_add(&s, SANDBOX_RW, "/h/src", SANDBOX_SRC);
	assert_maps(&s, "/ptbuild/src/sub/x", "/h/sub/x");
	assert_maps(&s, "/ptbuild/src/subway", "/h/src/subway");
}

static void test_later_operation_wins(void **state)
{
	(void)state;
	struct sandbox s = plain();
	assert_maps(&s, SANDBOX_TMP "/x", "/tmp/x");
	sandbox_add(&s, SANDBOX_RW, "/h/tmp", SANDBOX_TMP);
	assert_maps(&s, SANDBOX_TMP "/x", "/h/tmp/x");
}

static void test_replacement_is_not_replaced_again(void **state)
{
	(void)state;
	struct sandbox s = plain();
	sandbox_add(&s, SANDBOX_RW, "/ptbuild/out", SANDBOX_SRC);
	sandbox_add(&s, SANDBOX_RW, "/h/out", SANDBOX_OUT);
	assert_maps(&s, "/ptbuild/src/x", "/ptbuild/out/x");
}

static void test_argv_without_sandbox(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0};
	struct sandbox s = plain();
	sandbox_add(&s, SANDBOX_RW, "/h/src", SANDBOX_SRC);
	assert_ok(sandbox_argv(&s,
			       (const char *const[]){"/ptbuild/src/run", "-C", "/ptbuild/src", "x",
						     NULL},
			       &got, &e),
		  &e);
	assert_string_equal(line(&got), "/h/src/run\n-C\n/h/src\nx");
}

static void test_run_without_sandbox(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	test_dir();
	struct sandbox s = plain();
	test_write(test_path("src/file"), "text");
	sandbox_add(&s, SANDBOX_RW, test_path("src"), SANDBOX_SRC);
	kvlist_set(&s.env, &arena, "PATH", ROOT_PATH);
	kvlist_set(&s.env, &arena, "WHERE", "x:/ptbuild/src/y");
	s.cwd = SANDBOX_SRC;
	static const char *const argv[] = {
		"sh", "-c", "cat /ptbuild/src/file; echo; pwd -P; umask; env | sort", NULL};
	mode_t before = umask(077);
	int rc = sandbox_capture(&s, argv, test_run(), &out, &e);
	umask(before);
	assert_ok(rc, &e);
	const char *src = test_path("src");
	assert_string_equal(buf_cstr(&out),
			    arena_printf(&arena, "text\n%s\n0022\nPATH=%s\nPWD=%s\nWHERE=x:%s/y\n",
					 src, ROOT_PATH, src, src));
}

/* A root of our own with a shell in it: what the shell needs is copied out of the host. */
static void make_shell_root(void)
{
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	static const char *const argv[] = {"ldd", "/bin/sh", NULL};

	test_write(test_path("root/etc/os-release"), "ID=toy\nVERSION_ID=\"1\"\n");
	test_write(test_path("root/etc/group"), "other");
	test_write(test_path("root/opt/tool"), "of the root\n");
	test_write(test_path("root/home/user/secret"), "x");
	test_write(test_path("root/root/secret"), "x");
	test_write(test_path("root/usr/bin/none"), "");
	assert_ok(fs_copy(TRUSTED, "/bin/sh", test_path("root/usr/bin/sh"), &e), &e);
	assert_ok(fs_copy(TRUSTED, "/bin/cat", test_path("root/usr/bin/cat"), &e), &e);
	assert_int_equal(symlink("usr/bin", test_path("root/bin")), 0);
	assert_ok(proc_capture(argv, test_run(), &out, &e), &e);
	struct strlist words = {0};
	strlist_split(&words, &arena, buf_cstr(&out), " \t\n");
	for (size_t i = 0; i < words.count; i++) {
		if (words.items[i][0] != '/')
			continue;
		const char *to = test_path("root%s", words.items[i]);
		test_write(to, "");
		assert_ok(fs_copy(TRUSTED, words.items[i], to, &e), &e);
	}
}

static void test_an_unpacked_root_is_all_there_is(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r;
	struct sandbox s;
	AUTO_BUF struct buf out = {0};
	test_dir();
	make_shell_root();
	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &r, &arena, &e), &e);
	kvlist_set(&s.env, &arena, "PATH", ROOT_PATH);
	static const char *const argv[] = {"sh", "-c",
					   "cat /etc/os-release /opt/tool /etc/group; for p in "
					   "/home /root /etc/passwd /usr/bin/env "
					   "/etc/alternatives; do [ ! -e $p ] || echo $p; done",
					   NULL};
	assert_ok(sandbox_capture(&s, argv, test_run(), &out, &e), &e);
	assert_string_equal(buf_cstr(&out), "ID=toy\nVERSION_ID=\"1\"\nof the "
					    "root\nroot:x:0:\nptbuild:x:1000:\nnogroup:x:65534:\n");
}

static void test_probe_of_a_root_without_programs(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r = made_root();
	assert_err(sandbox_probe(&r, test_run(), &e), &e, ERR_SYSTEM, "cannot start 'true'");
}

static void test_a_copy_changes_by_itself(void **state)
{
	(void)state;
	AUTO_ARENA struct arena other = {0};
	struct err e = {0};
	struct sandbox s, copy;
	struct strlist before = {0}, after = {0}, of_copy = {0};
	struct root r = made_root();
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &r, &arena, &e), &e);
	kvlist_set(&s.env, &arena, "K", "old");
	sandbox_options(&s, &before);
	sandbox_copy(&s, &other, &copy);
	sandbox_add(&copy, SANDBOX_RO, "/host/more", "/more");
	kvlist_set(&copy.env, &other, "K", "new");
	sandbox_options(&s, &after);
	sandbox_options(&copy, &of_copy);
	assert_string_equal(line(&before), line(&after));
	assert_not_contains(line(&of_copy), "old");
	assert_contains(line(&of_copy), "/host/more\n/more");
	assert_contains(line(&of_copy), "new");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		T(test_a_copy_changes_by_itself),
		T(test_options_of_an_unpacked_root),
		T(test_options_of_the_host),
		T(test_network_is_kept_only_when_asked),
		T(test_every_operation),
		T(test_shared_proc_is_bound_read_only),
		T(test_no_sandbox_with_an_unpacked_root),
		T(test_paths_are_replaced),
		T(test_what_only_looks_alike_stays),
		T(test_longest_prefix_wins),
		T(test_later_operation_wins),
		T(test_replacement_is_not_replaced_again),
		T(test_argv_without_sandbox),
		T(test_run_without_sandbox),
		T(test_an_unpacked_root_is_all_there_is),
		T(test_probe_of_a_root_without_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
