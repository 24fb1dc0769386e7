#include "support.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/run.h"
#include "core/root/root.h"

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	test_dir();
	test_write(test_path("root/usr/bin/none"), "");
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void file(const char *name, const char *text)
{
	test_write(test_path("root/%s", name), text);
}

static void program(const char *name)
{
	file(name, "#!/bin/sh\n");
	assert_int_equal(chmod(test_path("root/%s", name), 0755), 0);
}

static void lnk(const char *target, const char *name)
{
	assert_int_equal(symlink(target, test_path("root/%s", name)), 0);
}

static struct root opened(void)
{
	struct err e = {0};
	struct root r;

	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	return r;
}

static void assert_resolves(const char *path, const char *want)
{
	struct root r = opened();
	const char *got = root_resolve(&r, path, &arena);

	if (want)
		assert_string_equal(got ? got : "(nothing)", want);
	else
		assert_null(got);
}

static void test_host(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r;
	assert_ok(root_open(NULL, &arena, &r, &e), &e);
	assert_true(r.host);
	assert_string_equal(r.dir, "/");
	assert_int_equal(strlen(r.fingerprint), 64);
	assert_non_null(root_find_program(&r, "sh", &arena));
	assert_ok(root_open("/", &arena, &r, &e), &e);
	assert_true(r.host);
}

static void test_another_name_of_the_host(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r;
	assert_ok(root_open("/usr/..", &arena, &r, &e), &e);
	assert_true(r.host);
}

static void test_no_root(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r;
	test_write(test_path("empty/file"), "");
	assert_err(root_open(test_path("empty"), &arena, &r, &e), &e, ERR_USAGE, "no usr/bin");
	assert_contains(e.msg, test_path("empty"));
	assert_true(e.hint[0] != '\0');
	assert_err(root_open(test_path("missing"), &arena, &r, &e), &e, ERR_USAGE,
		   "does not exist");
	assert_contains(e.msg, test_path("missing"));
	assert_contains(e.hint, "ptbuild world make debian13 --copy ");
}

static void test_usr_bin_that_leaves_the_root(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r;
	test_write(test_path("other/usr/x"), "");
	assert_int_equal(symlink("/bin", test_path("other/usr/bin")), 0);
	assert_err(root_open(test_path("other"), &arena, &r, &e), &e, ERR_USAGE, "no usr/bin");
}

static void test_id(void **state)
{
	(void)state;
	file("usr/lib/os-release",
	     "PRETTY_NAME=\"A B\"\nVERSION_ID=\"13\"\nID=debian\nVERSION_CODENAME=x\n");
	file("etc/x", "");
	lnk("../usr/lib/os-release", "etc/os-release");
	assert_string_equal(opened().id, "debian 13");
}

static void test_id_without_version(void **state)
{
	(void)state;
	file("usr/lib/os-release", "ID='arch'\n");
	assert_string_equal(opened().id, "arch");
}

static void test_id_without_os_release(void **state)
{
	(void)state;
	assert_string_equal(opened().id, "unknown");
}

#define STANZA(name, version)                                                                      \
	"Package: " name "\nStatus: install ok installed\nArchitecture: amd64\nVersion: " version  \
	"\n"

static void test_fingerprint_sees_versions(void **state)
{
	(void)state;
	file("var/lib/dpkg/status", STANZA("a", "1") "\n" STANZA("b", "1"));
	struct root one = opened();
	file("var/lib/dpkg/status", STANZA("a", "1") "\n" STANZA("b", "2"));
	struct root two = opened();
	assert_int_equal(strlen(one.fingerprint), 64);
	assert_string_not_equal(one.fingerprint, two.fingerprint);
}

static void test_fingerprint_sees_status(void **state)
{
	(void)state;
	file("var/lib/dpkg/status", "Package: a\nStatus: install ok installed\nVersion: 1\n");
	struct root one = opened();
	file("var/lib/dpkg/status", "Package: a\nStatus: deinstall ok config-files\nVersion: 1\n");
	assert_string_not_equal(one.fingerprint, opened().fingerprint);
}

static void test_fingerprint_is_blind_to_order_and_descriptions(void **state)
{
	(void)state;
	file("var/lib/dpkg/status", STANZA("a", "1") "\n" STANZA("b", "1"));
	struct root one = opened();
	file("var/lib/dpkg/status",
	     STANZA("b", "1") "Description: text\n Version: 9\n .\n more\nConffiles:\n /etc/x "
			      "123\n\n\n" STANZA("a", "1") "\n");
	file("usr/bin/more", "");
	assert_string_equal(one.fingerprint, opened().fingerprint);
}

static void test_fingerprint_without_a_package_database(void **state)
{
	(void)state;
	file("usr/lib/os-release", "ID=x\n");
	file("usr/lib/libx.so", "1234");
	struct root one = opened();
	assert_string_equal(one.fingerprint, opened().fingerprint);
	file("usr/lib/libx.so", "12345");
	struct root two = opened();
	assert_string_not_equal(one.fingerprint, two.fingerprint);
	file("usr/bin/new", "");
	struct root three = opened();
	assert_string_not_equal(two.fingerprint, three.fingerprint);
	file("usr/lib/os-release", "ID=y\n");
	assert_string_not_equal(three.fingerprint, opened().fingerprint);
}

static void test_empty_package_database_is_none(void **state)
{
	(void)state;
	struct root one = opened();
	file("var/lib/dpkg/status", "");
	assert_string_equal(one.fingerprint, opened().fingerprint);
}

static void test_resolve_plain(void **state)
{
	(void)state;
	file("a/b", "");
	assert_resolves("/a/b", "/a/b");
	assert_resolves("//a/./b", "/a/b");
	assert_resolves("/", "/");
	assert_resolves("/a/c", NULL);
	assert_resolves("/a/b/c", NULL);
}

static void test_resolve_links(void **state)
{
	(void)state;
	file("a/b/f", "");
	lnk("b", "a/rel");
	lnk("/a", "abs");
	lnk("../a/rel/f", "a/up");
	assert_resolves("/a/rel/f", "/a/b/f");
	assert_resolves("/abs/rel/f", "/a/b/f");
	assert_resolves("/abs/up", "/a/b/f");
	assert_resolves("/abs", "/a");
}

static void test_resolve_never_leaves(void **state)
{
	(void)state;
	file("etc/passwd", "of the root");
	lnk("../../../../../../etc/passwd", "out");
	lnk("/etc/passwd", "abs");
	lnk("/proc", "proc");
	lnk("..", "up");
	assert_resolves("/out", "/etc/passwd");
	assert_resolves("/abs", "/etc/passwd");
	assert_resolves("/../../etc/passwd", "/etc/passwd");
	assert_resolves("/up/up/up/etc/passwd", "/etc/passwd");
	assert_resolves("/proc/self", NULL);
}

static void test_resolve_loops_and_dangling(void **state)
{
	(void)state;
	lnk("b", "a");
	lnk("a", "b");
	lnk("nowhere", "dangling");
	assert_resolves("/a", NULL);
	assert_resolves("/dangling", NULL);
}

static void test_find_program(void **state)
{
	(void)state;
	program("usr/bin/tool");
	program("usr/local/bin/tool");
	program("usr/bin/only");
	file("usr/bin/text", "not executable");
	program("usr/local/cuda-12/bin/nvcc");
	lnk("cuda-12", "usr/local/cuda");
	mkdir(test_path("root/usr/bin/dir"), 0755);
	struct root r = opened();
	assert_string_equal(root_find_program(&r, "tool", &arena), "/usr/local/bin/tool");
	assert_string_equal(root_find_program(&r, "only", &arena), "/usr/bin/only");
	assert_string_equal(root_find_program(&r, "nvcc", &arena), "/usr/local/cuda/bin/nvcc");
	assert_string_equal(root_find_program(&r, "/usr/bin/only", &arena), "/usr/bin/only");
	assert_null(root_find_program(&r, "text", &arena));
	assert_null(root_find_program(&r, "dir", &arena));
	assert_null(root_find_program(&r, "missing", &arena));
	assert_null(root_find_program(&r, "", &arena));
	assert_null(root_find_program(&r, "bin/only", &arena));
}

static void test_path_of_a_build(void **state)
{
	(void)state;
	program("usr/bin/python3");
	struct root r = opened();
	assert_string_equal(root_build_path(&r, &arena), "/usr/bin:/bin");
	program("usr/local/bin/python3");
	assert_string_equal(root_build_path(&r, &arena), "/usr/local/bin:/usr/bin:/bin");
	assert_string_equal(root_path_of(NULL, &arena), "/usr/bin:/bin");
	assert_string_equal(root_path_of("/bin/python3", &arena), "/usr/bin:/bin");
}

static void test_find_program_through_alternatives(void **state)
{
	(void)state;
	program("usr/bin/g++-14");
	file("etc/alternatives/README", "");
	lnk("/usr/bin/g++-14", "etc/alternatives/c++");
	lnk("/etc/alternatives/c++", "usr/bin/c++");
	/* A program of the host is none of the root's. */
	lnk("/bin/sh", "usr/bin/cc");
	struct root r = opened();
	assert_string_equal(root_find_program(&r, "c++", &arena), "/usr/bin/c++");
	assert_null(root_find_program(&r, "cc", &arena));
}

static const char *library_dirs(void)
{
	struct err e = {0};
	struct strlist dirs = {0};
	struct root r = opened();

	assert_ok(root_library_dirs(&r, &arena, &dirs, &e), &e);
	return strlist_join(&dirs, &arena, " ");
}

static void test_library_dirs(void **state)
{
	(void)state;
	file("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n\n# a comment /x\n/opt/lib # "
			       "why\n/missing\nhwcap 1 nosegneg\n");
	file("etc/ld.so.conf.d/b.conf", "/usr/local/lib\n/usr/lib/x86_64-linux-gnu\n");
	file("etc/ld.so.conf.d/a.conf", "/opt/first=libc6\n");
	file("etc/ld.so.conf.d/c.txt", "/opt/not\n");
	file("etc/ld.so.conf.d/.hidden.conf", "/opt/not\n");
	static const char *const made[] = {"opt/lib/x", "opt/first/x", "opt/not/x",
					   "usr/local/lib/x", "usr/lib/x86_64-linux-gnu/x"};
	for (size_t i = 0; i < ARRAY_LEN(made); i++)
		file(made[i], "");
	lnk("usr/lib", "lib");
	assert_string_equal(
		library_dirs(),
		"/opt/first /usr/local/lib /usr/lib/x86_64-linux-gnu /opt/lib /lib /usr/lib");
}

static void test_library_dirs_relative_include(void **state)
{
	(void)state;
	file("etc/ld.so.conf", "include ld.so.conf.d/*.conf");
	file("etc/ld.so.conf.d/a.conf", "/usr/lib /usr/lib64:/usr/lib");
	file("usr/lib/x", "");
	file("usr/lib64/x", "");
	assert_string_equal(library_dirs(), "/usr/lib /usr/lib64");
}

static void test_library_dirs_without_configuration(void **state)
{
	(void)state;
	file("usr/lib/x", "");
	assert_string_equal(library_dirs(), "/usr/lib");
}

static void test_library_dirs_include_loop(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist dirs = {0};
	file("etc/ld.so.conf", "include /etc/ld.so.con*\n");
	struct root r = opened();
	assert_err(root_library_dirs(&r, &arena, &dirs, &e), &e, ERR_CONFIG, "/etc/ld.so.conf");
	assert_int_equal(dirs.count, 0);
}

static void packages(void)
{
	file("var/lib/dpkg/status",
	     STANZA("libx1", "1.2-3") "\n" STANZA(
		     "liby1", "4.5") "\nPackage: libx1\nStatus: install ok "
				     "installed\nArchitecture: i386\nVersion: 9\n");
	file("var/lib/dpkg/info/libx1:amd64.list",
	     "/.\n/lib\n/lib/x86_64-linux-gnu/libx.so.1.2\n/lib/x86_64-linux-gnu/libx.so.1\n");
	file("var/lib/dpkg/info/libx1:i386.list", "/lib/i386-linux-gnu/libx.so.1\n");
	file("var/lib/dpkg/info/liby1.list", "/usr/lib/liby.so.1\n/usr/lib/liby.so.1.5");
	file("var/lib/dpkg/info/gone.list", "/usr/lib/gone.so\n");
	file("usr/lib/x86_64-linux-gnu/libx.so.1.2", "");
	file("usr/lib/liby.so.1", "");
	lnk("usr/lib", "lib");
	lnk("libx.so.1.2", "usr/lib/x86_64-linux-gnu/libx.so.1");
	lnk("../x86_64-linux-gnu/libx.so.1.2", "usr/lib/x86_64-linux-gnu/own-name.so");
}

static void assert_owner(const char *path, const char *want)
{
	struct root r = opened();
	const char *got;
	struct err e = {0};

	assert_ok(root_package_of(&r, path, &arena, &got, &e), &e);
	if (want)
		assert_string_equal(got ? got : "(nobody)", want);
	else
		assert_null(got);
}

static void test_package_of(void **state)
{
	(void)state;
	packages();
	assert_owner("/usr/lib/liby.so.1", "liby1=4.5");
	assert_owner("/usr/lib/liby.so.1.5", "liby1=4.5");
	assert_owner("/lib/i386-linux-gnu/libx.so.1", "libx1=9");
}

/* What cannot be read is no "belongs to nobody". */
static void test_package_of_a_list_that_cannot_be_read(void **state)
{
	(void)state;
	const char *got = "untouched";
	struct err e = {0};
	packages();
	struct root r = opened();
	file("var/lib/dpkg/info/aaa.list", "");
	assert_int_equal(truncate(test_path("root/var/lib/dpkg/info/aaa.list"), 65 << 20), 0);
	assert_err(root_package_of(&r, "/usr/lib/liby.so.1", &arena, &got, &e), &e, ERR_INTEGRITY,
		   "aaa.list");
	assert_string_equal(got, "untouched");
}

/* A name that no file system has stands for what the machine says when it cannot look. */
static void test_what_cannot_be_looked_for(void **state)
{
	(void)state;
	char name[400] = "/usr/";
	AUTO_BUF struct buf out = {0};
	struct strlist names = {0};
	const char *found = "untouched";
	struct err e = {0};
	struct root r = opened();
	memset(name + 5, 'x', sizeof(name) - 6);
	assert_err(root_find(&r, name, &arena, &found, &e), &e, ERR_SYSTEM,
		   "cannot look for '/usr/xxx");
	assert_string_equal(found, "untouched");
	assert_err(root_read(&r, name, 1, &out, &e), &e, ERR_SYSTEM, "cannot look for");
	assert_err(root_list(&r, name, &arena, &names, &e), &e, ERR_SYSTEM, "cannot look for");
	assert_err(root_files(&r, name, &arena, &names, &e), &e, ERR_SYSTEM, "cannot look for");
	assert_ok(root_find(&r, "/etc/none", &arena, &found, &e), &e);
	assert_null(found);
	lnk("/usr/bin/there", "usr/bin/here");
	lnk("/usr/bin/here", "usr/bin/there");
	assert_ok(root_find(&r, "/usr/bin/here", &arena, &found, &e), &e);
	assert_null(found);
}

static void test_files_of_a_package(void **state)
{
	(void)state;
	packages();
	file("var/lib/dpkg/info/liby1.md5sums", "0 /usr/lib/liby.so.1\n");
	file("var/lib/dpkg/info/liby1-dev.list", "/usr/include/y.h\n");
	struct root r = opened();
	struct strlist files = {0};
	struct err e = {0};
	assert_ok(root_package_files(&r, "liby1=4.5", &arena, &files, &e), &e);
	assert_string_equal(strlist_join(&files, &arena, " "),
			    "/usr/lib/liby.so.1 /usr/lib/liby.so.1.5");
	files = (struct strlist){0};
	assert_ok(root_package_files(&r, "libx1", &arena, &files, &e), &e);
	assert_int_equal(files.count, 5); /* of both architectures */
	files = (struct strlist){0};
	assert_ok(root_package_files(&r, "lib", &arena, &files, &e), &e);
	assert_int_equal(files.count, 0);
}

static void test_package_of_with_merged_usr(void **state)
{
	(void)state;
	packages();
	assert_owner("/usr/lib/x86_64-linux-gnu/libx.so.1.2", "libx1=1.2-3");
	assert_owner("/lib/x86_64-linux-gnu/libx.so.1.2", "libx1=1.2-3");
	assert_owner("/lib/liby.so.1", "liby1=4.5");
}

static void test_package_of_a_link(void **state)
{
	(void)state;
	packages();
	assert_owner("/usr/lib/x86_64-linux-gnu/own-name.so", "libx1=1.2-3");
}

static void test_package_of_nobody(void **state)
{
	(void)state;
	packages();
	assert_owner("/usr/lib/libz.so", NULL);
	assert_owner("/usr/lib/liby.so", NULL);
	assert_owner("usr/lib/liby.so.1", NULL);
	assert_owner("/usr/lib/gone.so", NULL);
}

static void test_package_of_without_a_database(void **state)
{
	(void)state;
	assert_owner("/usr/bin/none", NULL);
}

static void test_package_lookup_is_quick(void **state)
{
	(void)state;
	AUTO_BUF struct buf status = {0}, list = {0};
	for (int i = 0; i < 150; i++)
		buf_printf(&list, "/usr/share/doc/some-package/a/file/with/a/longer/name/%d\n", i);
	for (int i = 0; i < 700; i++) {
		char name[64];
		buf_printf(&status,
			   "Package: p%d\nStatus: install ok installed\nArchitecture: "
			   "amd64\nVersion: %d\nDescription: "
			   "text\n text\n\n",
			   i, i);
		snprintf(name, sizeof(name), "var/lib/dpkg/info/p%d.list", i);
		file(name, buf_cstr(&list));
	}

	file("var/lib/dpkg/status", buf_cstr(&status));
	file("var/lib/dpkg/info/p699.list", "/usr/lib/wanted.so\n");
	struct timespec from, to;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	assert_owner("/usr/lib/wanted.so", "p699=699");
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	assert_true(to.tv_sec - from.tv_sec < 10); /* of the processor; 0.3 s without sanitizers */
}

static void assert_glibc(const struct root *r, const char *want)
{
	const char *found;
	struct err e = {0};

	assert_ok(root_glibc(r, &arena, &found, &e), &e);
	assert_string_equal(found, want);
}

/* What glibc prints when it is run is in its file. */
static void glibc_is_read_from_the_library(void **state)
{
	(void)state;
	struct root r;
	struct err e = {0};
	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	assert_glibc(&r, "");
	file("etc/ld.so.conf", "/usr/lib/x86_64-linux-gnu\n");
	file("usr/lib/x86_64-linux-gnu/libc.so.6", "GNU ld script, no library");
	assert_glibc(&r, "");
	file("usr/lib/x86_64-linux-gnu/libc.so.6", "ELF");
	FILE *f = fopen(test_path("root/usr/lib/x86_64-linux-gnu/libc.so.6"), "a");
	assert_non_null(f);
	static const char text[] = "\0more\0GNU C Library (Debian GLIBC 2.41-12) stable release "
				   "version 2.41.\nCopyright\0";
	assert_int_equal(fwrite(text, sizeof(text), 1, f), 1);
	assert_int_equal(fclose(f), 0);
	assert_glibc(&r, "2.41");
	const char *found;
	file("etc/ld.so.conf", "include /etc/a*/b\n");
	assert_err(root_glibc(&r, &arena, &found, &e), &e, ERR_CONFIG, "wildcard");
	assert_ok(root_open("/", &arena, &r, &e), &e);
	assert_glibc(&r, gnu_get_libc_version());
}

static void test_files(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist names = {0};
	file("usr/share/licence", "");
	file("opt/doc/a/one", "");
	lnk("/usr/share/licence", "opt/doc/b");
	lnk("/usr/share", "opt/doc/dir");
	lnk("gone", "opt/doc/gone");
	lnk("doc", "opt/other");
	struct root r = opened();
	assert_ok(root_files(&r, "/opt/other", &arena, &names, &e), &e);
	assert_string_equal(strlist_join(&names, &arena, " "), "a/one b");
	assert_ok(root_files(&r, "/opt/none", &arena, &names, &e), &e);
	assert_int_equal(names.count, 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_files),
		T(test_host),
		T(test_another_name_of_the_host),
		T(test_no_root),
		T(test_usr_bin_that_leaves_the_root),
		T(test_id),
		T(test_id_without_version),
		T(test_id_without_os_release),
		T(test_fingerprint_sees_versions),
		T(test_fingerprint_sees_status),
		T(test_fingerprint_is_blind_to_order_and_descriptions),
		T(test_fingerprint_without_a_package_database),
		T(test_empty_package_database_is_none),
		T(test_resolve_plain),
		T(test_resolve_links),
		T(test_resolve_never_leaves),
		T(test_resolve_loops_and_dangling),
		T(test_find_program),
		T(test_path_of_a_build),
		T(test_find_program_through_alternatives),
		T(test_library_dirs),
		T(test_library_dirs_relative_include),
		T(test_library_dirs_without_configuration),
		T(test_library_dirs_include_loop),
		T(glibc_is_read_from_the_library),
		T(test_package_of),
		T(test_package_of_a_list_that_cannot_be_read),
		T(test_what_cannot_be_looked_for),
		T(test_package_of_with_merged_usr),
		T(test_files_of_a_package),
		T(test_package_of_a_link),
		T(test_package_of_nobody),
		T(test_package_of_without_a_database),
		T(test_package_lookup_is_quick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
