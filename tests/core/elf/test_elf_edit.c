#include "support.h"

#include "elf_files.h"

static void set_rpath(const char *path, const char *rpath, bool want_in_place)
{
	struct err e = {0};
	bool in_place = !want_in_place;
	assert_ok(elf_set_rpath(path, rpath, test_run(), &in_place, &e), &e);
	assert_int_equal(in_place, want_in_place);
	struct elf_info i = read_info(path);
	assert_null(i.runpath);
	if (*rpath)
		assert_string_equal(i.rpath, rpath);
	else
		assert_null(i.rpath);
}

static void in_place_touches_only_its_bytes(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	size_t len, len_after, changed = 0;
	char *before = read_bytes(path, &len);
	set_rpath(path, "$ORIGIN/lib", true);
	char *after = read_bytes(path, &len_after);
	assert_int_equal(len, len_after);
	char *start = memmem(before, len, TOKEN, strlen(TOKEN));
	assert_non_null(start);
	for (size_t i = 0; i < len; i++) {
		if (before[i] == after[i])
			continue;
		changed++;
		assert_in_range(i, start - before, start - before + (long)strlen(TOKEN));
	}
	assert_true(changed > 200);
	assert_string_equal(after + (start - before), "$ORIGIN/lib");
	free(before);
	free(after);
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void in_place_leaves_no_old_path(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	set_rpath(path, "$ORIGIN", true);
	assert_false(file_has(path, "789012345"));
	assert_false(file_has(path, "/ptbuild"));
}

static void joined_path_is_replaced_whole(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER,
				   SHARED "-Wl,--disable-new-dtags,-rpath,/ptbuild/src/build/lib,-rpath," TOKEN);
	assert_string_equal(read_info(path).rpath, "/ptbuild/src/build/lib:" TOKEN);
	set_rpath(path, "$ORIGIN:$ORIGIN/../lib", true);
	assert_false(file_has(path, "/ptbuild"));
}

static void runpath_becomes_rpath(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--enable-new-dtags,-rpath,/ptbuild/lib/somewhere");
	set_rpath(path, "$ORIGIN", true);
	assert_false(file_has(path, "/ptbuild"));
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void runpath_of_the_same_text_becomes_rpath(void **state)
{
	(void)state;
	set_rpath(compile("liba.so", ANSWER, SHARED "-Wl,--enable-new-dtags,-rpath,/same"), "/same", true);
}

static void exact_length_fits(void **state)
{
	(void)state;
	set_rpath(compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath,/1234567"), "$ORIGIN/", true);
}

static void same_path_writes_nothing(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath,/opt/tail,-soname,tail");
	size_t len, len_after;
	char *before = read_bytes(path, &len);
	set_rpath(path, "/opt/tail", true);
	char *after = read_bytes(path, &len_after);
	assert_int_equal(len, len_after);
	assert_memory_equal(before, after, len);
	free(before);
	free(after);
}

static void longer_path_goes_through_patchelf(void **state)
{
	(void)state;
	compile("sub/libb.so", ANSWER, SHARED "-Wl,-soname,libb.so");
	const char *path = compile("liba.so", "int answer(void); int a(void) { return answer(); }",
				   SHARED "sub/libb.so -Wl,--disable-new-dtags,-rpath,/short");
	set_rpath(path, "$ORIGIN/nowhere/at/all:$ORIGIN/sub", false);
	assert_int_equal(load("./liba.so", "a"), 42);
	assert_false(file_has(path, "/short"));
}

static void path_is_added_where_none_was(void **state)
{
	(void)state;
	compile("sub/libb.so", ANSWER, SHARED "-Wl,-soname,libb.so");
	const char *path =
		compile("liba.so", "int answer(void); int a(void) { return answer(); }", SHARED "sub/libb.so");
	assert_int_equal(load("./liba.so", "a"), -1);
	set_rpath(path, "$ORIGIN/sub", false);
	assert_int_equal(load("./liba.so", "a"), 42);
}

static void shared_tail_keeps_the_other_name(void **state)
{
	(void)state;
	const char *path = compile("liba.so", "int tail_of_path(void) { return 7; }",
				   SHARED "-Wl,--disable-new-dtags,-rpath,/ptbuild/opt/tail_of_path");
	set_rpath(path, "$ORIGIN", false);
	struct elf_info i = read_info(path);
	assert_true(strlist_contains(&i.defined, "tail_of_path"));
	assert_int_equal(load("./liba.so", "tail_of_path"), 7);
}

static void empty_path_removes_the_tag(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN ",-soname,liba.so.1");
	struct elf_info before = read_info(path);
	set_rpath(path, "", true);
	struct elf_info after = read_info(path);
	assert_string_equal(after.soname, before.soname);
	assert_int_equal(after.needed.count, before.needed.count);
	assert_false(file_has(path, "/ptbuild"));
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void empty_path_removes_a_runpath(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--enable-new-dtags,-rpath,/ptbuild/lib");
	set_rpath(path, "", true);
	assert_false(file_has(path, "/ptbuild"));
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void removing_none_changes_nothing(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED);
	size_t len, len_after;
	char *before = read_bytes(path, &len);
	set_rpath(path, "", true);
	char *after = read_bytes(path, &len_after);
	assert_int_equal(len, len_after);
	assert_memory_equal(before, after, len);
	free(before);
	free(after);
}

static void removing_a_shared_path_keeps_the_other_name(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath,/opt/tail,-soname,tail");
	set_rpath(path, "", true);
	assert_string_equal(read_info(path).soname, "tail");
}

static void works_without_sections(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	drop_sections(path);
	set_rpath(path, "$ORIGIN", true);
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void executables_take_a_path(void **state)
{
	(void)state;
	compile("lib/libb.so", ANSWER, SHARED "-Wl,-soname,libb.so");
	const char *path = compile("bin/prog", "int answer(void); int main(void) { return answer(); }",
				   "lib/libb.so -Wl,--disable-new-dtags,-rpath," TOKEN);
	set_rpath(path, "$ORIGIN/../lib", true);
	must("mkdir moved; mv bin lib moved");
	assert_int_equal(shell("moved/bin/prog"), 42);
}

static void read_only_files_are_edited_and_stay_so(void **state)
{
	(void)state;
	struct stat st;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	must("chmod 0555 liba.so");
	set_rpath(path, "$ORIGIN", true);
	set_rpath(path, "$ORIGIN/longer/than/what/was/there/before", false);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
}

static void files_that_cannot_take_a_path(void **state)
{
	(void)state;
	struct err e;
	const char *object = compile("a.o", ANSWER, "-c");
	assert_err(elf_set_rpath(object, "$ORIGIN", test_run(), NULL, &e), &e, ERR_POLICY, "a.o");
	test_write(test_path("text"), "no ELF file");
	assert_err(elf_set_rpath(test_path("text"), "$ORIGIN", test_run(), NULL, &e), &e, ERR_INTEGRITY, "text");
}

/* Puts a shell script in front of the real patchelf; the old PATH comes back with restore_path. */
static char *old_path;

static void fake_patchelf(const char *script)
{
	const char *dir = test_path("fake");
	test_write(test_path("fake/patchelf"), script);
	assert_int_equal(chmod(test_path("fake/patchelf"), 0755), 0);
	old_path = strdup(getenv("PATH"));
	char both[4096];
	snprintf(both, sizeof(both), "%s:%s", dir, old_path);
	setenv("PATH", both, 1);
}

static void restore_path(void)
{
	setenv("PATH", old_path, 1);
	free(old_path);
}

static void old_patchelf_is_refused(void **state)
{
	(void)state;
	struct err e;
	const char *path = compile("liba.so", ANSWER, SHARED);
	fake_patchelf("#!/bin/sh\necho patchelf 0.9\n");
	err_clear(&e);
	int rc = elf_set_rpath(path, "$ORIGIN", test_run(), NULL, &e);
	restore_path();
	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_contains(e.msg, "'0.9' is too old");
	assert_null(read_info(path).rpath);
}

static void missing_patchelf_is_named(void **state)
{
	(void)state;
	struct err e = {0};
	const char *path = compile("liba.so", ANSWER, SHARED);
	old_path = strdup(getenv("PATH"));
	setenv("PATH", "/dev/null", 1);
	int rc = elf_set_rpath(path, "$ORIGIN", test_run(), NULL, &e);
	restore_path();
	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_contains(e.msg, "patchelf");
	assert_contains(e.hint, "install patchelf");
}

static void file_stays_when_patchelf_breaks_it(void **state)
{
	(void)state;
	struct err e = {0};
	const char *path = compile("liba.so", ANSWER, SHARED);
	size_t len, len_after;
	char *before = read_bytes(path, &len);
	/* Does nothing but copy: its answer lacks the path. */
	fake_patchelf("#!/bin/sh\n[ \"$1\" = --version ] && { echo patchelf 0.18.0; exit; }\n"
		      "while [ $# -gt 2 ]; do [ \"$1\" = --output ] && out=$2; shift; done\ncp \"$2\" \"$out\"\n");
	int rc = elf_set_rpath(path, "$ORIGIN", test_run(), NULL, &e);
	restore_path();
	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, ERR_INTEGRITY);
	assert_contains(e.msg, "search path came out wrong");
	char *after = read_bytes(path, &len_after);
	assert_int_equal(len, len_after);
	assert_memory_equal(before, after, len);
	free(before);
	free(after);
	assert_int_not_equal(access(test_path("liba.so.new"), F_OK), 0);
	assert_int_not_equal(access(test_path("liba.so.bare"), F_OK), 0);
}

static void file_stays_when_patchelf_fails(void **state)
{
	(void)state;
	struct err e = {0};
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,-soname,liba.so.1");
	fake_patchelf("#!/bin/sh\n[ \"$1\" = --version ] && { echo patchelf 0.18.0; exit; }\necho out of cheese "
		      ">&2\nexit 3\n");
	int rc = elf_rename(path, "other.so", NULL, test_run(), &e);
	restore_path();
	assert_int_equal(rc, -1);
	assert_contains(e.msg, "out of cheese");
	assert_string_equal(read_info(path).soname, "liba.so.1");
}

static void soname_is_renamed(void **state)
{
	(void)state;
	struct err e = {0};
	const char *path = compile("liba.so.1", ANSWER, SHARED "-Wl,-soname,liba.so.1");
	assert_ok(elf_rename(path, "liba-1a2b3c4d.so.1", NULL, test_run(), &e), &e);
	assert_string_equal(read_info(path).soname, "liba-1a2b3c4d.so.1");
	assert_int_equal(load("./liba.so.1", "answer"), 42);
}

static void soname_is_added(void **state)
{
	(void)state;
	struct err e = {0};
	const char *path = compile("liba.so", ANSWER, SHARED);
	assert_ok(elf_rename(path, "liba-1a2b3c4d.so", NULL, test_run(), &e), &e);
	assert_string_equal(read_info(path).soname, "liba-1a2b3c4d.so");
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void needed_and_version_needs_are_renamed(void **state)
{
	(void)state;
	struct err e = {0};
	struct kvlist names = {0};
	test_write(test_path("map"), "VERS_9 { global: answer; local: *; };");
	compile("libb.so.1", ANSWER, SHARED "-Wl,-soname,libb.so.1,--version-script,map");
	const char *path = compile("liba.so", "int answer(void); int a(void) { return answer(); }",
				   SHARED "libb.so.1 -Wl,--disable-new-dtags,-rpath," TOKEN);
	kvlist_set(&names, &arena, "libb.so.1", "libb-1a2b3c4d.so.1");
	assert_ok(elf_rename(path, NULL, &names, test_run(), &e), &e);
	struct elf_info i = read_info(path);
	assert_true(strlist_contains(&i.needed, "libb-1a2b3c4d.so.1"));
	assert_false(strlist_contains(&i.needed, "libb.so.1"));
	bool found = false;
	for (size_t k = 0; k < i.versions_count; k++) {
		assert_string_not_equal(i.versions[k].file, "libb.so.1");
		found = found || strcmp(i.versions[k].file, "libb-1a2b3c4d.so.1") == 0;
	}
	assert_true(found);
	assert_true(strlist_contains(&i.undefined, "answer@VERS_9"));
	set_rpath(path, "$ORIGIN", true);
	must("mv libb.so.1 libb-1a2b3c4d.so.1");
	assert_ok(elf_rename(test_path("libb-1a2b3c4d.so.1"), "libb-1a2b3c4d.so.1", NULL, test_run(), &e), &e);
	assert_int_equal(load("./liba.so", "a"), 42);
	assert_false(file_has(path, "/ptbuild"));
}

/* liba.so needs libb.so.1 with a version, and was linked with a long search path. */
static const char *make_needing(const char *path_option)
{
	test_write(test_path("map"), "VERS_9 { global: answer; local: *; };");
	compile("libb.so.1", ANSWER, SHARED "-Wl,-soname,libb.so.1,--version-script,map");
	return compile("liba.so", "int answer(void); int a(void) { return answer(); }",
		       arena_printf(&arena, SHARED "libb.so.1 %s", path_option));
}

static bool rename_in_place(const char *path, const char *from, const char *to, size_t keep)
{
	struct err e = {0};
	struct kvlist names = {0};
	bool done;
	kvlist_set(&names, &arena, from, to);
	fake_patchelf("#!/bin/sh\nexit 3\n");
	int rc = elf_rename_in_place(path, &names, keep, &done, &e);
	restore_path();
	assert_ok(rc, &e);
	return done;
}

static void names_are_changed_in_place(void **state)
{
	(void)state;
	struct stat before, after;
	const char *path = make_needing("-Wl,--disable-new-dtags,-rpath," TOKEN);
	assert_int_equal(stat(path, &before), 0);
	assert_true(rename_in_place(path, "libb.so.1", "libb-1a2b3c4d.so.1", strlen("$ORIGIN")));
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_ino, after.st_ino);
	struct elf_info i = read_info(path);
	assert_true(strlist_contains(&i.needed, "libb-1a2b3c4d.so.1"));
	assert_false(strlist_contains(&i.needed, "libb.so.1"));
	assert_int_equal(strlen(i.rpath), strlen(TOKEN) - strlen("libb-1a2b3c4d.so.1") - 1);
	assert_int_equal(i.rpath_room, strlen(i.rpath));
	set_rpath(path, "$ORIGIN", true);
	must("mv libb.so.1 libb-1a2b3c4d.so.1");
	assert_int_equal(load("./liba.so", "a"), 42);
	assert_false(file_has(path, "/ptbuild"));
}

static void in_place_names_leave_the_path_its_room(void **state)
{
	(void)state;
	const size_t room = strlen(TOKEN) - strlen("libb-1a2b3c4d.so.1") - 1;
	const char *path = make_needing("-Wl,--disable-new-dtags,-rpath," TOKEN);
	size_t len;
	char *AUTO_FREE before = read_bytes(path, &len);
	assert_false(rename_in_place(path, "libb.so.1", "libb-1a2b3c4d.so.1", room + 1));
	char *AUTO_FREE after = read_bytes(path, &len);
	assert_memory_equal(before, after, len);
	assert_true(rename_in_place(path, "libb.so.1", "libb-1a2b3c4d.so.1", room));
	assert_int_equal(strlen(read_info(path).rpath), room);
}

static void in_place_names_need_a_path_of_their_own(void **state)
{
	(void)state;
	assert_false(rename_in_place(make_needing(""), "libb.so.1", "libb-1a2b3c4d.so.1", 0));
	assert_false(rename_in_place(make_needing("-Wl,--disable-new-dtags,-rpath,/x"), "libb.so.1",
				     "libb-1a2b3c4d.so.1", 0));
	const char *path = make_needing("-Wl,--enable-new-dtags,-rpath," TOKEN);
	assert_true(rename_in_place(path, "libb.so.1", "libb-1a2b3c4d.so.1", 10));
	assert_true(rename_in_place(path, "libabsent.so", "libother.so", 1000));
}

static void several_names_in_place(void **state)
{
	(void)state;
	struct err e = {0};
	struct kvlist names = {0};
	bool done;
	compile("libc1.so", "int one(void) { return 1; }", SHARED "-Wl,-soname,libc1.so");
	compile("libc2.so", "int two(void) { return 2; }", SHARED "-Wl,-soname,libc2.so");
	const char *path = compile("liba.so", "int one(void), two(void); int a(void) { return one() + two(); }",
				   SHARED "libc1.so libc2.so -Wl,--disable-new-dtags,-rpath," TOKEN);
	kvlist_set(&names, &arena, "libc1.so", "libc1-00000001.so");
	kvlist_set(&names, &arena, "libc2.so", "libc2-00000002.so");
	assert_ok(elf_rename_in_place(path, &names, 7, &done, &e), &e);
	assert_true(done);
	set_rpath(path, "$ORIGIN", true);
	must("mv libc1.so libc1-00000001.so; mv libc2.so libc2-00000002.so");
	assert_int_equal(load("./liba.so", "a"), 3);
	struct elf_info i = read_info(path);
	assert_string_equal(i.needed.items[0], "libc1-00000001.so");
	assert_string_equal(i.needed.items[1], "libc2-00000002.so");
}

static void renaming_nothing_starts_nothing(void **state)
{
	(void)state;
	struct err e = {0};
	struct kvlist names = {0};
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,-soname,liba.so.1");
	kvlist_set(&names, &arena, "libabsent.so", "libother.so");
	fake_patchelf("#!/bin/sh\nexit 3\n");
	int rc = elf_rename(path, "liba.so.1", &names, test_run(), &e);
	restore_path();
	assert_int_equal(rc, 0);
}

static void renaming_needs_dynamic_entries(void **state)
{
	(void)state;
	struct err e;
	assert_err(elf_rename(compile("a.o", ANSWER, "-c"), "x.so", NULL, test_run(), &e), &e, ERR_POLICY, "a.o");
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(in_place_touches_only_its_bytes),
		T(in_place_leaves_no_old_path),
		T(joined_path_is_replaced_whole),
		T(runpath_becomes_rpath),
		T(runpath_of_the_same_text_becomes_rpath),
		T(exact_length_fits),
		T(same_path_writes_nothing),
		T(longer_path_goes_through_patchelf),
		T(path_is_added_where_none_was),
		T(shared_tail_keeps_the_other_name),
		T(empty_path_removes_the_tag),
		T(empty_path_removes_a_runpath),
		T(removing_none_changes_nothing),
		T(removing_a_shared_path_keeps_the_other_name),
		T(works_without_sections),
		T(executables_take_a_path),
		T(read_only_files_are_edited_and_stay_so),
		T(files_that_cannot_take_a_path),
		T(old_patchelf_is_refused),
		T(missing_patchelf_is_named),
		T(file_stays_when_patchelf_breaks_it),
		T(file_stays_when_patchelf_fails),
		T(soname_is_renamed),
		T(soname_is_added),
		T(needed_and_version_needs_are_renamed),
		T(names_are_changed_in_place),
		T(in_place_names_leave_the_path_its_room),
		T(in_place_names_need_a_path_of_their_own),
		T(several_names_in_place),
		T(renaming_nothing_starts_nothing),
		T(renaming_needs_dynamic_entries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
