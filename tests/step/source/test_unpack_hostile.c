#include "unpack_make.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void test_absolute_name(void **state)
{
	(void)state;
	begin(TAR);
	add_file("/tmp/ptbuild-escape", "x");
	refused(false, "/tmp/ptbuild-escape", "absolute", "tmp");
	assert_false(present("/tmp/ptbuild-escape"));
}

static void test_dotdot_name(void **state)
{
	(void)state;
	begin(TAR);
	add_file("a/../../evil", "x");
	refused(false, "a/../../evil", "'..'", "evil");
}

static void test_dotdot_name_in_zip(void **state)
{
	(void)state;
	begin(ZIP);
	add_file("../evil", "x");
	refused(false, "../evil", "'..'", "evil");
}

static void test_symlink_absolute(void **state)
{
	(void)state;
	begin(TAR);
	add_symlink("evil", "/etc/passwd");
	refused(false, "evil", "absolute target", "evil");
}

static void test_symlink_leaves(void **state)
{
	(void)state;
	begin(TAR);
	add_symlink("d/evil", "../../x");
	refused(false, "d/evil", "leaves the tree", "d/evil");
}

static void test_symlink_leaves_once_the_top_is_gone(void **state)
{
	(void)state;
	begin(TAR);
	add_symlink("top/evil", "../x");
	refused(true, "top/evil", "leaves the tree", "evil");
}

/* "up" is the top; seen as text "up/../x" is inside, in truth it is not. */
static void test_symlink_leaves_through_another(void **state)
{
	(void)state;
	begin(TAR);
	add_symlink("d/d/up", "../..");
	add_symlink("d/d/evil", "up/../x");
	refused(false, "d/d/evil", "'..' after a name", "d/d/evil");
}

static void test_symlink_empty_target_or_control_byte(void **state)
{
	(void)state;
	begin(TAR);
	add_symlink("evil", "a\nb");
	refused(false, "evil", "control byte", "evil");
}

static void test_write_through_symlink(void **state)
{
	(void)state;
	begin(TAR);
	add_plain("d", AE_IFDIR);
	add_symlink("l", "d");
	add_file("l/evil", "x");
	refused(false, "l/evil", "through the link 'l'", "d/evil");
}

static void test_write_through_a_link_that_was_there(void **state)
{
	(void)state;
	begin(TAR);
	add_file("l/evil", "x");
	test_write(test_path("outside/kept"), "");
	test_write(test_path("tree/t/kept"), "");
	assert_int_equal(symlink("../../outside", test_path("tree/t/l")), 0);
	refused(false, "l/evil", "through the link", "outside/evil");
}

static void test_file_over_symlink(void **state)
{
	(void)state;
	begin(TAR);
	add_symlink("l", "target");
	add_file("l", "x");
	refused(false, "'l'", "would replace a link", "target");
}

static void test_hardlink_outside(void **state)
{
	(void)state;
	begin(TAR);
	add_hardlink("evil", "../../../../etc/passwd");
	refused(false, "evil", "'..'", "evil");
}

static void test_hardlink_absolute(void **state)
{
	(void)state;
	begin(TAR);
	add_hardlink("evil", "/etc/passwd");
	refused(false, "evil", "absolute", "evil");
}

static void test_hardlink_to_symlink(void **state)
{
	(void)state;
	begin(TAR);
	add_symlink("l", "somewhere");
	add_hardlink("evil", "l");
	refused(false, "evil", "not a file", "evil");
}

static void test_hardlink_to_nothing(void **state)
{
	(void)state;
	begin(TAR);
	add_hardlink("evil", "missing/dir/x");
	refused(false, "evil", "not in the archive", "missing");
}

static void test_hardlink_through_symlink(void **state)
{
	(void)state;
	begin(TAR);
	add_file("d/x", "x");
	add_symlink("l", "d");
	add_hardlink("evil", "l/x");
	refused(false, "evil", "through the link", "evil");
}

static void test_character_device(void **state)
{
	(void)state;
	begin(TAR);
	add_plain("evil", AE_IFCHR);
	refused(false, "evil", "device", "evil");
}

static void test_block_device(void **state)
{
	(void)state;
	begin(TAR);
	add_plain("evil", AE_IFBLK);
	refused(false, "evil", "device", "evil");
}

static void test_fifo(void **state)
{
	(void)state;
	begin(TAR);
	add_plain("evil", AE_IFIFO);
	refused(false, "evil", "fifo", "evil");
}

static void test_control_byte(void **state)
{
	(void)state;
	begin(TAR);
	add_file("e\033[2Jvil", "x");
	refused(false, "e\\x1b[2Jvil", "control byte", "e\033[2Jvil");
}

static void test_newline(void **state)
{
	(void)state;
	begin(TAR);
	add_file("e\nvil", "x");
	refused(false, "e\\x0avil", "control byte", "e\nvil");
}

static void test_not_utf8(void **state)
{
	(void)state;
	test_dir();
	raw_tar("e\xff\xfevil", 0);
	struct err e = {0};
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, "UTF-8");
	assert_contains(e.msg, "e\\xff\\xfevil");
	assert_false(present(test_path("tree/t/e\xff\xfevil")));
}

static void test_overlong_utf8(void **state)
{
	(void)state;
	test_dir();
	raw_tar("\xc0\xae\xc0\xae/evil", 0);
	struct err e = {0};
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, "UTF-8");
}

static void test_component_too_long(void **state)
{
	(void)state;
	char name[400];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	begin(TAR);
	add_file(name, "x");
	refused(false, "nnnn", "longer than 255", "n");
}

static void test_path_too_deep(void **state)
{
	(void)state;
	char name[2 * 300 + 1];
	for (size_t i = 0; i < 300; i++)
		memcpy(name + 2 * i, "d/", 3);
	name[sizeof(name) - 2] = 'f';
	begin(TAR);
	add_file(name, "x");
	refused(false, "d/d/d", "directories deep", "f");
}

static void test_path_too_long(void **state)
{
	(void)state;
	static char name[5001];
	for (size_t i = 0; i < 50; i++) {
		memset(name + 100 * i, 'n', 99);
		name[100 * i + 99] = '/';
	}

	name[5000 - 1] = 'f';
	begin(TAR);
	add_file(name, "x");
	refused(false, "nnn", "longer than 3000", "f");
}

static void test_file_over_directory(void **state)
{
	(void)state;
	struct err e = {0};
	begin(TAR);
	add_file("d/x", "x");
	add_file("d", "x");
	end();
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, "would replace a directory");
	assert_text(test_path("tree/t/d/x"), "x");
}

static void test_directory_over_file(void **state)
{
	(void)state;
	begin(TAR);
	add_file("d", "x");
	add_file("d/evil", "x");
	refused(false, "d/evil", "not a directory", "d/evil");
}

static void test_symlink_over_file(void **state)
{
	(void)state;
	begin(TAR);
	add_file("d", "x");
	add_symlink("d", "y");
	refused(false, "'d'", "would replace a file", "y");
}

static void test_same_symlink_twice(void **state)
{
	(void)state;
	struct err e = {0};
	begin(TAR);
	add_symlink("l", "x");
	add_symlink("l", "x");
	end();
	assert_ok(unpack(false, &e), &e);
	assert_true(present(test_path("tree/t/l")));
}

static void test_two_tops(void **state)
{
	(void)state;
	begin(TAR);
	add_file("one/x", "x");
	add_file("two/y", "y");
	refused(true, "two/y", "not below 'one'", "y");
}

static void test_file_at_the_top(void **state)
{
	(void)state;
	begin(TAR);
	add_file("README", "x");
	refused(true, "README", "not below the one top directory", "README");
}

static void test_top_with_the_same_beginning(void **state)
{
	(void)state;
	begin(TAR);
	add_file("one/x", "x");
	add_file("one2/y", "y");
	refused(true, "one2/y", "not below 'one'", "y");
}

static void test_too_many_entries(void **state)
{
	(void)state;
	struct err e = {0};
	const struct tar_limits limits = {.max_entries = 3};
	begin(TAR);
	for (int i = 0; i < 4; i++)
		add_file((char[]){(char)('a' + i), 0}, "x");
	end();
	assert_err(
		unpack_archive(test_path("a"), test_path("tree"), false, &limits, test_run(), &e),
		&e, ERR_INTEGRITY, "more than 3 entries");
	assert_true(present(test_path("tree/c")));
	assert_false(present(test_path("tree/d")));
}

static void test_too_many_bytes(void **state)
{
	(void)state;
	struct err e = {0};
	const struct tar_limits limits = {.max_bytes = 10};
	begin(TAR);
	add_file("a", "12345678");
	add_file("b", "123");
	end();
	assert_err(
		unpack_archive(test_path("a"), test_path("tree"), false, &limits, test_run(), &e),
		&e, ERR_INTEGRITY, "more than 10 bytes");
	assert_true(present(test_path("tree/a")));
	assert_false(present(test_path("tree/b")));
}

static void test_exactly_at_the_limits(void **state)
{
	(void)state;
	struct err e = {0};
	const struct tar_limits limits = {.max_bytes = 11, .max_entries = 2};
	begin(TAR);
	add_file("a", "12345678");
	add_file("b", "123");
	end();
	assert_ok(unpack_archive(test_path("a"), test_path("tree"), false, &limits, test_run(), &e),
		  &e);
	assert_text(test_path("tree/b"), "123");
}

static void test_gzip_bomb(void **state)
{
	(void)state;
	static char zeros[1 << 20];
	begin(GZ);
	struct archive_entry *entry = entry_new("bomb", AE_IFREG, 0644);
	archive_entry_set_size(entry, 80 << 20);
	assert_int_equal(archive_write_header(out, entry), ARCHIVE_OK);
	for (int i = 0; i < 80; i++)
		assert_int_equal(archive_write_data(out, zeros, sizeof(zeros)), sizeof(zeros));
	archive_entry_free(entry);
	refused(false, "bomb", "more than 200 times", "bomb");
}

static void test_many_small_files_are_a_bomb_too(void **state)
{
	(void)state;
	struct err e = {0};
	static char zeros[9 << 20];
	begin(GZ);
	for (int i = 0; i < 8; i++) {
		struct archive_entry *entry =
			entry_new((char[]){(char)('a' + i), 0}, AE_IFREG, 0644);
		archive_entry_set_size(entry, sizeof(zeros));
		put(entry, zeros, sizeof(zeros));
	}

	end();
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, "more than 200 times");
	assert_contains(e.msg, "entry 'h'");
}

/* GNU's old sparse format: a file of 1 GiB that is one hole. */
static void test_sparse_bomb(void **state)
{
	(void)state;
	struct err e = {0};
	char block[512 * 3];
	test_dir();
	raw_header(block, sizeof(block), "bomb", 'S');
	snprintf(block + 483, 12, "%011o", 1U << 30);
	raw_sum(block);
	test_write_bytes(test_path("a"), block, sizeof(block));
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, "more than 200 times");
	assert_contains(e.msg, "entry 'bomb'");
	assert_false(present(test_path("tree/t/bomb")));
}

static ssize_t no_bytes(struct archive *a, void *user, const void **data)
{
	(void)user;
	(void)data;
	archive_set_error(a, EIO, "input/output error");
	return -1;
}

/* A file that cannot be read is a fault of the machine, and says so; the bytes are not to blame. */
static void test_unreadable_is_not_damaged(void **state)
{
	(void)state;
	struct err e = {0};
	struct tar *t = NULL;
	const struct tar_limits limits = {.max_bytes = 1};
	assert_err(tar_open_member(no_bytes, NULL, &limits, test_run(), &t, &e), &e, ERR_SYSTEM,
		   strerror(EIO));
}

static void test_wrong_header_sum(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	raw_tar("x", 1);
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, test_path("a"));
	assert_false(present(test_path("tree/t/x")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_absolute_name, test_teardown),
		cmocka_unit_test_teardown(test_dotdot_name, test_teardown),
		cmocka_unit_test_teardown(test_dotdot_name_in_zip, test_teardown),
		cmocka_unit_test_teardown(test_symlink_absolute, test_teardown),
		cmocka_unit_test_teardown(test_symlink_leaves, test_teardown),
		cmocka_unit_test_teardown(test_symlink_leaves_once_the_top_is_gone, test_teardown),
		cmocka_unit_test_teardown(test_symlink_leaves_through_another, test_teardown),
		cmocka_unit_test_teardown(test_symlink_empty_target_or_control_byte, test_teardown),
		cmocka_unit_test_teardown(test_write_through_symlink, test_teardown),
		cmocka_unit_test_teardown(test_write_through_a_link_that_was_there, test_teardown),
		cmocka_unit_test_teardown(test_file_over_symlink, test_teardown),
		cmocka_unit_test_teardown(test_hardlink_outside, test_teardown),
		cmocka_unit_test_teardown(test_hardlink_absolute, test_teardown),
		cmocka_unit_test_teardown(test_hardlink_to_symlink, test_teardown),
		cmocka_unit_test_teardown(test_hardlink_to_nothing, test_teardown),
		cmocka_unit_test_teardown(test_hardlink_through_symlink, test_teardown),
		cmocka_unit_test_teardown(test_character_device, test_teardown),
		cmocka_unit_test_teardown(test_block_device, test_teardown),
		cmocka_unit_test_teardown(test_fifo, test_teardown),
		cmocka_unit_test_teardown(test_control_byte, test_teardown),
		cmocka_unit_test_teardown(test_newline, test_teardown),
		cmocka_unit_test_teardown(test_not_utf8, test_teardown),
		cmocka_unit_test_teardown(test_overlong_utf8, test_teardown),
		cmocka_unit_test_teardown(test_component_too_long, test_teardown),
		cmocka_unit_test_teardown(test_path_too_deep, test_teardown),
		cmocka_unit_test_teardown(test_path_too_long, test_teardown),
		cmocka_unit_test_teardown(test_file_over_directory, test_teardown),
		cmocka_unit_test_teardown(test_directory_over_file, test_teardown),
		cmocka_unit_test_teardown(test_symlink_over_file, test_teardown),
		cmocka_unit_test_teardown(test_same_symlink_twice, test_teardown),
		cmocka_unit_test_teardown(test_two_tops, test_teardown),
		cmocka_unit_test_teardown(test_file_at_the_top, test_teardown),
		cmocka_unit_test_teardown(test_top_with_the_same_beginning, test_teardown),
		cmocka_unit_test_teardown(test_too_many_entries, test_teardown),
		cmocka_unit_test_teardown(test_too_many_bytes, test_teardown),
		cmocka_unit_test_teardown(test_exactly_at_the_limits, test_teardown),
		cmocka_unit_test_teardown(test_gzip_bomb, test_teardown),
		cmocka_unit_test_teardown(test_many_small_files_are_a_bomb_too, test_teardown),
		cmocka_unit_test_teardown(test_sparse_bomb, test_teardown),
		cmocka_unit_test_teardown(test_unreadable_is_not_damaged, test_teardown),
		cmocka_unit_test_teardown(test_wrong_header_sum, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
