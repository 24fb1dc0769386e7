#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "step/source/source.h"

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	test_dir();
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void file(const char *name, const char *text)
{
	test_write(test_path("tree/%s", name), text);
}

static void assert_patched(const char *name, const char *text)
{
	assert_file(test_path("tree/%s", name), text);
}

static bool present(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

static int apply(const char *text, struct err *e)
{
	mkdir(test_path("tree"), 0755);
	test_write(test_path("fix.patch"), text);
	return patch_apply(test_path("tree"), test_path("fix.patch"), test_run(), e);
}

static void refused(const char *text, const char *words)
{
	struct err e = {0};
	assert_err(apply(text, &e), &e, ERR_INTEGRITY, words);
	assert_contains(e.msg, "fix.patch");
}

#define CHANGE(from, to) "@@ -1,3 +1,3 @@\n one\n-" from "\n+" to "\n three\n"
#define NEW_FILE(name) "--- /dev/null\n+++ b/" name "\n@@ -0,0 +1 @@\n+x\n"

static void test_changes_a_file(void **state)
{
	(void)state;
	struct err e = {0};
	file("d/f", "one\ntwo\nthree\n");
	assert_ok(apply("A reason.\n\n--- a/d/f\n+++ b/d/f\n" CHANGE("two", "2"), &e), &e);
	assert_patched("d/f", "one\n2\nthree\n");
	assert_false(present(test_path("tree/d/f.orig")));
	assert_false(present(test_path("tree/d/f.rej")));
}

static void test_lines_moved_are_found(void **state)
{
	(void)state;
	struct err e = {0};
	file("f", "a\nb\nc\nd\none\ntwo\nthree\n");
	assert_ok(apply("--- a/f\n+++ b/f\n" CHANGE("two", "2"), &e), &e);
	assert_patched("f", "a\nb\nc\nd\none\n2\nthree\n");
}

static void test_no_place_for_temporary_files_but_its_own(void **state)
{
	struct err e = {0};

	(void)state;
	file("f", "one\ntwo\nthree\n");
	setenv("TMPDIR", "/nonexistent", 1);
	int status = apply("--- a/f\n+++ b/f\n" CHANGE("two", "2"), &e);
	unsetenv("TMPDIR");
	assert_ok(status, &e);
}

static void test_no_fuzz(void **state)
{
	(void)state;
	file("f", "ONE\ntwo\nthree\n");
	refused("--- a/f\n+++ b/f\n" CHANGE("two", "2"), "hunk 1 at line 1");
	assert_patched("f", "ONE\ntwo\nthree\n");
}

static void test_failing_hunk_is_named_and_nothing_changes(void **state)
{
	(void)state;
	struct err e = {0};
	file("good", "one\ntwo\nthree\n");
	file("bad", "one\ntwo\nthree\n1\n2\n3\n4\n5\n6\n7\nnot this\n");
	assert_err(
		apply("--- a/good\n+++ b/good\n" CHANGE("two", "2") "--- a/bad\n+++ b/bad\n" CHANGE(
			      "two", "2") "@@ -11,1 +11,1 @@\n-expected\n+changed\n",
		      &e),
		&e, ERR_INTEGRITY, "file 'bad': hunk 2 at line 11");
	assert_true(e.hint[0] != '\0');
	assert_patched("good", "one\ntwo\nthree\n");
	assert_false(present(test_path("tree/bad.rej")));
	assert_false(present(test_path("tree/bad.orig")));
}

static void test_already_applied(void **state)
{
	(void)state;
	file("f", "one\n2\nthree\n");
	refused("--- a/f\n+++ b/f\n" CHANGE("two", "2"), "in the sources already");
	assert_patched("f", "one\n2\nthree\n");
}

static void test_file_is_missing(void **state)
{
	(void)state;
	refused("--- a/d/gone\n+++ b/d/gone\n" CHANGE("two", "2"), "d/gone");
}

static void test_new_file_in_a_new_directory(void **state)
{
	(void)state;
	struct err e = {0};
	assert_ok(apply(NEW_FILE("new/dir/f"), &e), &e);
	assert_patched("new/dir/f", "x\n");
}

static void test_new_file_that_exists(void **state)
{
	(void)state;
	file("f", "other\n");
	refused(NEW_FILE("f"), "'f'");
	assert_patched("f", "other\n");
}

static void test_deleted_file(void **state)
{
	(void)state;
	struct err e = {0};
	file("f", "x\n");
	assert_ok(apply("diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ "
			"-1 +0,0 @@\n-x\n",
			&e),
		  &e);
	assert_false(present(test_path("tree/f")));
}

static void test_git_rename_with_change(void **state)
{
	(void)state;
	struct err e = {0};
	file("old", "one\ntwo\nthree\n");
	assert_ok(apply("diff --git a/old b/new\nsimilarity index 80%\nrename from old\nrename to "
			"new\n--- a/old\n+++ "
			"b/new\n" CHANGE("two", "2"),
			&e),
		  &e);
	assert_false(present(test_path("tree/old")));
	assert_patched("new", "one\n2\nthree\n");
}

static void test_git_pure_rename(void **state)
{
	(void)state;
	struct err e = {0};
	file("old", "x\n");
	assert_ok(apply("diff --git a/old b/d/new\nsimilarity index 100%\nrename from old\nrename "
			"to d/new\n",
			&e),
		  &e);
	assert_false(present(test_path("tree/old")));
	assert_patched("d/new", "x\n");
}

static void test_git_mode(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	file("f", "x\n");
	assert_ok(apply("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", &e), &e);
	assert_int_equal(stat(test_path("tree/f"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

static void test_crlf_sources(void **state)
{
	(void)state;
	struct err e = {0};
	file("f", "one\r\ntwo\r\nthree\r\n");
	assert_ok(apply("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\r\n-two\r\n+2\r\n three\r\n", &e),
		  &e);
	assert_patched("f", "one\r\n2\r\nthree\r\n");
}

static void test_no_newline_at_the_end(void **state)
{
	(void)state;
	struct err e = {0};
	file("f", "one\ntwo");
	assert_ok(apply("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of "
			"file\n+2\n\\ No "
			"newline at end of file\n",
			&e),
		  &e);
	assert_patched("f", "one\n2");
}

static void test_dates_and_signature(void **state)
{
	(void)state;
	struct err e = {0};
	file("f", "one\ntwo\nthree\n");
	assert_ok(apply("From 1234 Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n f | 2 "
			"+-\n\nIndex: src/f\n"
			"--- src.orig/f\t2024-01-01 00:00:00.000000000 +0000\n+++ "
			"src/f\t2024-01-02 00:00:00.000000000 "
			"+0000\n" CHANGE("two", "2") "-- \n2.39.5\n",
			&e),
		  &e);
	assert_patched("f", "one\n2\nthree\n");
}

static void test_text_in_a_hunk_is_no_header(void **state)
{
	(void)state;
	struct err e = {0};
	file("f", "-- ../../etc/passwd\nend\n");
	assert_ok(apply("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- ../../etc/passwd\n+++ "
			"../../etc/shadow\n end\n",
			&e),
		  &e);
	assert_patched("f", "++ ../../etc/shadow\nend\n");
}

static void test_two_files(void **state)
{
	(void)state;
	struct err e = {0};
	file("a", "one\ntwo\nthree\n");
	file("b", "one\ntwo\nthree\n");
	assert_ok(apply("--- a/a\n+++ b/a\n" CHANGE("two", "2") "--- a/b\n+++ b/b\n" CHANGE("two",
											    "II"),
			&e),
		  &e);
	assert_patched("a", "one\n2\nthree\n");
	assert_patched("b", "one\nII\nthree\n");
}

static void test_escape_by_dotdot(void **state)
{
	(void)state;
	refused("--- /dev/null\n+++ b/../evil\n@@ -0,0 +1 @@\n+x\n", "unsafe path 'b/../evil'");
	refused("--- a/../../f\n+++ b/f\n" CHANGE("two", "2"), "line 1: unsafe path");
	assert_false(present(test_path("evil")));
}

static void test_escape_by_absolute_path(void **state)
{
	(void)state;
	refused("--- /dev/null\n+++ /tmp/ptbuild-evil\n@@ -0,0 +1 @@\n+x\n",
		"line 2: unsafe path '/tmp/ptbuild-evil'");
	assert_false(present("/tmp/ptbuild-evil"));
}

static void test_escape_by_index_line(void **state)
{
	(void)state;
	refused("Index: ../evil\n@@ -0,0 +1 @@\n+x\n", "line 1: unsafe path '../evil'");
}

static void test_escape_by_rename(void **state)
{
	(void)state;
	file("old", "x\n");
	refused("diff --git a/old b/old\nrename from old\nrename to ../evil\n",
		"line 3: unsafe path '../evil'");
	refused("diff --git a/old b/old\nrename from /etc/passwd\nrename to x\n",
		"line 2: unsafe path '/etc/passwd'");
	refused("diff --git a/old b/old\ncopy from old\ncopy to ../evil\n",
		"line 3: unsafe path '../evil'");
	assert_patched("old", "x\n");
}

static void test_escape_by_git_line(void **state)
{
	(void)state;
	refused("diff --git a/../evil b/../evil\nold mode 100644\nnew mode 100755\n",
		"line 1: unsafe path");
}

static void test_escape_by_quoted_name(void **state)
{
	(void)state;
	refused("--- /dev/null\n+++ \"b/\\056\\056/evil\"\n@@ -0,0 +1 @@\n+x\n",
		"line 2: unsafe path 'b/../evil'");
	refused("--- /dev/null\n+++ \"b/evil\n@@ -0,0 +1 @@\n+x\n", "malformed quoted name");
}

static void test_escape_by_name_before_a_blank(void **state)
{
	(void)state;
	refused("--- /dev/null\n+++ b/../evil 2024-01-01\n@@ -0,0 +1 @@\n+x\n", "unsafe path");
}

static void test_escape_by_indented_header(void **state)
{
	(void)state;
	refused("  --- /dev/null\n  +++ b/../evil\n  @@ -0,0 +1 @@\n  +x\n",
		"unsafe path 'b/../evil'");
}

static void test_escape_through_a_link(void **state)
{
	(void)state;
	file("kept", "");
	mkdir(test_path("outside"), 0755);
	assert_int_equal(symlink("../outside", test_path("tree/l")), 0);
	refused(NEW_FILE("l/evil"), "'l' is a link out of it");
	refused(NEW_FILE("l/d/evil"), "'l' is a link out of it");
	assert_false(present(test_path("outside/evil")));
}

static void test_a_link_inside_is_fine(void **state)
{
	(void)state;
	struct err e = {0};
	file("real/f", "one\ntwo\nthree\n");
	assert_int_equal(symlink("real", test_path("tree/l")), 0);
	assert_ok(apply("--- a/l/f\n+++ b/l/f\n" CHANGE("two", "2"), &e), &e);
	assert_patched("real/f", "one\n2\nthree\n");
}

static void test_a_link_itself_is_not_changed(void **state)
{
	(void)state;
	file("real", "one\ntwo\nthree\n");
	assert_int_equal(symlink("real", test_path("tree/l")), 0);
	refused("--- a/l\n+++ b/l\n" CHANGE("two", "2"), "'l', which is a link");
	assert_patched("real", "one\ntwo\nthree\n");
}

static void test_no_link_is_made(void **state)
{
	(void)state;
	refused("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 "
		"@@\n+../../etc\n\\ No "
		"newline at end of "
		"file\n",
		"symbolic link");
	assert_false(present(test_path("tree/l")));
}

static void test_binary_patch(void **state)
{
	(void)state;
	refused("diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 1\nIcmZQz\n\n",
		"binary");
}

static void test_ed_script(void **state)
{
	(void)state;
	refused("--- a/f\n+++ b/f\n1i\nx\n.\n!touch evil\n", "no change in unified format");
	refused("Index: f\n1c\n!touch evil\n.\n", "no change in unified format");
	assert_false(present(test_path("tree/evil")));
}

static void test_context_diff(void **state)
{
	(void)state;
	file("f", "one\n");
	refused("*** a/f\n--- b/f\n***************\n*** 1 ****\n! one\n--- 1 ----\n! two\n", "");
	assert_patched("f", "one\n");
}

static void test_empty_patch(void **state)
{
	(void)state;
	refused("", "no change");
	refused("only words\n", "no change");
}

static void test_truncated_hunk(void **state)
{
	(void)state;
	file("f", "one\ntwo\nthree\n");
	refused("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n", "line 3: the hunk is truncated");
	refused("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n!two\n", "at line 5");
	assert_patched("f", "one\ntwo\nthree\n");
}

static void test_hunk_without_a_name(void **state)
{
	(void)state;
	refused("--- a/f\n+++ \n@@ -1 +1 @@\n-x\n+y\n", "line 3: no file named");
}

static void test_one_file_in_two_places(void **state)
{
	(void)state;
	file("f", "one\ntwo\nthree\n");
	refused("--- a/f\n+++ b/f\n" CHANGE("two", "2") "--- a/f\n+++ b/f\n" CHANGE("2", "II"),
		"second set of changes");
	assert_patched("f", "one\ntwo\nthree\n");
}

static void test_name_with_nul(void **state)
{
	(void)state;
	struct strlist files = {0};
	struct err e = {0};
	static const char text[] = "--- a/f\0../x\n+++ b/f\n";
	assert_err(patch_scan("p", text, sizeof(text) - 1, &arena, &files, &e), &e, ERR_INTEGRITY,
		   "NUL byte");
}

static void test_missing_patch_or_tree(void **state)
{
	(void)state;
	struct err e = {0};
	mkdir(test_path("tree"), 0755);
	assert_err(patch_apply(test_path("tree"), test_path("none.patch"), test_run(), &e), &e,
		   ERR_SYSTEM, "none.patch");
	test_write(test_path("p"), NEW_FILE("f"));
	assert_err(patch_apply(test_path("none"), test_path("p"), test_run(), &e), &e, ERR_SYSTEM,
		   "none");
}

static void test_no_patch_program(void **state)
{
	(void)state;
	struct err e = {0};
	char *path = strdup(getenv("PATH"));
	setenv("PATH", test_path("empty"), 1);
	int rc = apply(NEW_FILE("f"), &e);
	setenv("PATH", path, 1);
	free(path);
	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_contains(e.hint, "install patch");
}

static void test_the_callers_settings_do_not_matter(void **state)
{
	(void)state;
	struct err e = {0};
	file("f", "one\ntwo\nthree\n");
	setenv("POSIXLY_CORRECT", "1", 1);
	setenv("QUOTING_STYLE", "c", 1);
	int rc = apply("--- a/f\n+++ b/f\n" CHANGE("two", "2"), &e);
	unsetenv("POSIXLY_CORRECT");
	unsetenv("QUOTING_STYLE");
	assert_ok(rc, &e);
	assert_patched("f", "one\n2\nthree\n");
}

static void test_odd_names(void **state)
{
	(void)state;
	struct err e = {0};
	file("with blank", "one\ntwo\nthree\n");
	file("gr\xc3\xbcn", "one\ntwo\nthree\n");
	assert_ok(apply("--- a/with blank\t\n+++ b/with blank\t\n" CHANGE("two", "2"), &e), &e);
	assert_ok(
		apply("--- \"a/gr\\303\\274n\"\n+++ \"b/gr\\303\\274n\"\n" CHANGE("two", "2"), &e),
		&e);
	assert_patched("with blank", "one\n2\nthree\n");
	assert_patched("gr\xc3\xbcn", "one\n2\nthree\n");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_changes_a_file),
		T(test_lines_moved_are_found),
		T(test_no_place_for_temporary_files_but_its_own),
		T(test_no_fuzz),
		T(test_failing_hunk_is_named_and_nothing_changes),
		T(test_already_applied),
		T(test_file_is_missing),
		T(test_new_file_in_a_new_directory),
		T(test_new_file_that_exists),
		T(test_deleted_file),
		T(test_git_rename_with_change),
		T(test_git_pure_rename),
		T(test_git_mode),
		T(test_crlf_sources),
		T(test_no_newline_at_the_end),
		T(test_dates_and_signature),
		T(test_text_in_a_hunk_is_no_header),
		T(test_two_files),
		T(test_escape_by_dotdot),
		T(test_escape_by_absolute_path),
		T(test_escape_by_index_line),
		T(test_escape_by_rename),
		T(test_escape_by_git_line),
		T(test_escape_by_quoted_name),
		T(test_escape_by_name_before_a_blank),
		T(test_escape_by_indented_header),
		T(test_escape_through_a_link),
		T(test_a_link_inside_is_fine),
		T(test_a_link_itself_is_not_changed),
		T(test_no_link_is_made),
		T(test_binary_patch),
		T(test_ed_script),
		T(test_context_diff),
		T(test_empty_patch),
		T(test_truncated_hunk),
		T(test_hunk_without_a_name),
		T(test_one_file_in_two_places),
		T(test_name_with_nul),
		T(test_missing_patch_or_tree),
		T(test_no_patch_program),
		T(test_the_callers_settings_do_not_matter),
		T(test_odd_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
