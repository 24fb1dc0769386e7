#include "unpack_make.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

static void unpacks(enum packing packing)
{
	struct err e = {0};
	struct stat st;

	begin(packing);
	add_plain("top/", AE_IFDIR);
	add_file("top/a.txt", "alpha");
	add_file("top/sub/dir/b.txt", "beta");
	end();
	assert_ok(unpack(true, &e), &e);
	assert_text(test_path("tree/t/a.txt"), "alpha");
	assert_text(test_path("tree/t/sub/dir/b.txt"), "beta");
	assert_int_equal(stat(test_path("tree/t/a.txt"), &st), 0);
	assert_int_equal(st.st_mtime, MTIME);
	assert_int_equal(st.st_uid, geteuid());
}

static void test_tar(void **state)
{
	(void)state;
	unpacks(TAR);
}

static void test_tar_gz(void **state)
{
	(void)state;
	unpacks(GZ);
}

static void test_tar_xz(void **state)
{
	(void)state;
	unpacks(XZ);
}

static void test_tar_bz2(void **state)
{
	(void)state;
	unpacks(BZ2);
}

static void test_tar_zstd(void **state)
{
	(void)state;
	unpacks(ZSTD);
}

static void test_zip(void **state)
{
	(void)state;
	unpacks(ZIP);
}

static void test_without_strip_the_top_stays(void **state)
{
	(void)state;
	struct err e = {0};
	begin(TAR);
	add_file("top/x", "x");
	add_file("other/y", "y");
	end();
	assert_ok(unpack(false, &e), &e);
	assert_text(test_path("tree/t/top/x"), "x");
	assert_text(test_path("tree/t/other/y"), "y");
}

static void test_dot_names_are_normal(void **state)
{
	(void)state;
	struct err e = {0};
	begin(TAR);
	add_plain("./", AE_IFDIR);
	add_file("./a//b/./c", "c");
	end();
	assert_ok(unpack(false, &e), &e);
	assert_text(test_path("tree/t/a/b/c"), "c");
}

static void test_modes_are_two(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	mode_t before = umask(077);
	begin(TAR);
	put(entry_new("d", AE_IFDIR, 0700), NULL, 0);
	put(entry_new("d/setuid", AE_IFREG, 04755), NULL, 0);
	put(entry_new("d/secret", AE_IFREG, 0600), NULL, 0);
	put(entry_new("d/open", AE_IFREG, 0666), NULL, 0);
	end();
	int rc = unpack(false, &e);
	umask(before);
	assert_ok(rc, &e);
	assert_int_equal(stat(test_path("tree/t/d"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(test_path("tree/t/d/setuid"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(test_path("tree/t/d/secret"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(stat(test_path("tree/t/d/open"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void test_directory_times_are_kept(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	begin(TAR);
	add_plain("d", AE_IFDIR);
	add_file("d/x", "x");
	end();
	assert_ok(unpack(false, &e), &e);
	assert_int_equal(stat(test_path("tree/t/d"), &st), 0);
	assert_int_equal(st.st_mtime, MTIME);
}

static void test_links_inside(void **state)
{
	(void)state;
	struct err e = {0};
	char target[64] = {0};
	struct stat a, b;
	begin(TAR);
	add_file("top/d/file", "text");
	add_symlink("top/d/deep/link", "../file");
	add_symlink("top/d/up", "../d/");
	add_hardlink("top/hard", "top/d/file");
	end();
	assert_ok(unpack(true, &e), &e);
	assert_text(test_path("tree/t/d/deep/link"), "text");
	assert_true(readlink(test_path("tree/t/d/up"), target, sizeof(target) - 1) > 0);
	assert_string_equal(target, "../d/");
	assert_int_equal(stat(test_path("tree/t/hard"), &a), 0);
	assert_int_equal(stat(test_path("tree/t/d/file"), &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
}

/* As git and setuptools write it: times below the
 * second, attributes, a long name in other letters. */
static void test_pax_headers(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	char name[300] = "top/";
	for (int i = 0; i < 120; i++)
		strcat(name, "\xc3\xa9");
	begin(GZ);
	struct archive_entry *entry = entry_new(name, AE_IFREG, 0664);
	archive_entry_set_mtime(entry, MTIME, 123456789);
	archive_entry_xattr_add_entry(entry, "user.x", "x", 1);
	archive_entry_set_size(entry, 1);
	put(entry, "x", 1);
	add_file("top/d/file", "text");
	add_hardlink("top/hard", "top/d/file");
	end();
	assert_ok(unpack(true, &e), &e);
	assert_int_equal(stat(test_path("tree/t/hard"), &st), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(st.st_mtime, MTIME);
}

static void test_utf8_names(void **state)
{
	(void)state;
	struct err e = {0};
	begin(TAR);
	add_file("gr\xc3\xbc\xc3\x9f"
		 "e/\xe6\x97\xa5\xf0\x9f\x98\x80",
		 "x");
	end();
	assert_ok(unpack(false, &e), &e);
	assert_text(test_path("tree/t/gr\xc3\xbc\xc3\x9f"
			      "e/\xe6\x97\xa5\xf0\x9f\x98\x80"),
		    "x");
}

static void test_long_names_that_fit(void **state)
{
	(void)state;
	struct err e = {0};
	char name[256];
	memset(name, 'n', 255);
	name[255] = '\0';
	begin(TAR);
	add_file(name, "x");
	end();
	assert_ok(unpack(false, &e), &e);
	assert_text(test_path("tree/t/%s", name), "x");
}

static void test_replaces_files_by_files_only(void **state)
{
	(void)state;
	struct err e = {0};
	begin(TAR);
	add_file("x", "new");
	add_file("y", "once");
	add_file("y", "twice");
	end();
	test_write(test_path("tree/t/x"), "a longer old text");
	test_write(test_path("tree/t/kept"), "kept");
	assert_ok(unpack(false, &e), &e);
	assert_text(test_path("tree/t/x"), "new");
	assert_text(test_path("tree/t/y"), "twice");
	assert_text(test_path("tree/t/kept"), "kept");
}

static void test_replacing_a_file_leaves_its_hard_links_alone(void **state)
{
	(void)state;
	struct err e = {0};
	begin(TAR);
	add_file("x", "new");
	end();
	test_write(test_path("outside"), "old");
	test_write(test_path("tree/t/other"), "");
	assert_int_equal(link(test_path("outside"), test_path("tree/t/x")), 0);
	assert_ok(unpack(false, &e), &e);
	assert_text(test_path("tree/t/x"), "new");
	assert_text(test_path("outside"), "old");
}

static void test_hole_stays_hole(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	struct archive_entry *entry;
	char block[4096];
	memset(block, 'x', sizeof(block));
	begin(TAR);
	entry = entry_new("sparse", AE_IFREG, 0644);
	archive_entry_set_size(entry, 16 << 20);
	archive_entry_sparse_add_entry(entry, 8 << 20, sizeof(block));
	assert_int_equal(archive_write_header(out, entry), ARCHIVE_OK);
	for (int i = 0; i < (16 << 20) / 4096; i++) {
		if (i == (8 << 20) / 4096)
			assert_int_equal(archive_write_data(out, block, sizeof(block)),
					 sizeof(block));
		else
			assert_int_equal(archive_write_data(out, (char[4096]){0}, 4096), 4096);
	}

	archive_entry_free(entry);
	end();
	assert_ok(unpack(false, &e), &e);
	assert_int_equal(stat(test_path("tree/t/sparse"), &st), 0);
	assert_int_equal(st.st_size, 16 << 20);
	assert_true(st.st_blocks * 512 < 1 << 20);
}

static void test_trailing_bytes_are_ignored(void **state)
{
	(void)state;
	struct err e = {0};
	begin(TAR);
	add_file("x", "x");
	end();
	FILE *f = fopen(test_path("a"), "ab");
	assert_non_null(f);
	fputs("what somebody left behind the end mark", f);
	fclose(f);
	assert_ok(unpack(false, &e), &e);
	assert_text(test_path("tree/t/x"), "x");
}

static void cut_archive(size_t keep)
{
	assert_int_equal(truncate(test_path("a"), (off_t)keep), 0);
}

static void truncated(enum packing packing)
{
	struct err e = {0};
	struct stat st;
	static char noise[100000];
	unsigned x = 1;

	for (size_t i = 0; i < sizeof(noise) - 1; i++)
		noise[i] = (char)('a' + (x = x * 1103515245 + 12345) / 65536 % 26);
	begin(packing);
	add_file("x", noise);
	end();
	assert_int_equal(stat(test_path("a"), &st), 0);
	cut_archive((size_t)st.st_size / 2);
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, test_path("a"));
	assert_false(present(test_path("tree/t/x")));
}

static void test_truncated_tar(void **state)
{
	(void)state;
	truncated(TAR);
}

static void test_truncated_gz(void **state)
{
	(void)state;
	truncated(GZ);
}

static void test_truncated_xz(void **state)
{
	(void)state;
	truncated(XZ);
}

static void test_truncated_bz2(void **state)
{
	(void)state;
	truncated(BZ2);
}

static void test_truncated_zstd(void **state)
{
	(void)state;
	truncated(ZSTD);
}

static void test_truncated_zip(void **state)
{
	(void)state;
	truncated(ZIP);
}

static void test_damaged_xz(void **state)
{
	(void)state;
	struct err e = {0};
	begin(XZ);
	add_file("x", "some text that is long enough to be in the middle of the file, some text "
		      "that is long enough");
	end();
	FILE *f = fopen(test_path("a"), "r+b");
	assert_non_null(f);
	fseek(f, 100, SEEK_SET);
	fputs("\x55\xaa\x55", f);
	fclose(f);
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, test_path("a"));
	assert_false(present(test_path("tree/t/x")));
}

static void test_damaged_zip(void **state)
{
	(void)state;
	struct err e = {0};
	begin(ZIP);
	assert_int_equal(archive_write_zip_set_compression_store(out), ARCHIVE_OK);
	add_file("x", "the quick brown fox");
	end();
	char *bytes = test_read(test_path("a"));
	struct stat st;
	assert_int_equal(stat(test_path("a"), &st), 0);
	char *at = memmem(bytes, (size_t)st.st_size, "quick", 5);
	assert_non_null(at);
	*at = 'Q';
	test_write_bytes(test_path("a"), bytes, (size_t)st.st_size);
	free(bytes);
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, "CRC");
	assert_false(present(test_path("tree/t/x")));
}

static void test_empty_archive(void **state)
{
	(void)state;
	struct err e = {0};
	begin(GZ);
	end();
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, "is empty");
}

static void test_empty_file(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("a"), "");
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, "is empty");
	assert_false(present(test_path("tree")));
}

static void test_no_archive(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("a"), "<html>404 not found</html>\n");
	assert_err(unpack(false, &e), &e, ERR_INTEGRITY, test_path("a"));
}

static void test_missing_archive(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	assert_err(unpack(false, &e), &e, ERR_SYSTEM, test_path("a"));
}

static void test_directory_as_archive(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	mkdir(test_path("a"), 0755);
	assert_err(unpack(false, &e), &e, ERR_SYSTEM, "is a directory");
}

static void test_cancelled(void **state)
{
	(void)state;
	struct err e = {0};
	int fds[2];
	struct log log = {.level = LOG_QUIET, .fd = 2};
	begin(TAR);
	add_file("x", "x");
	end();
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	const struct run run = {.log = &log, .cancel_fd = fds[0]};
	assert_err(unpack_archive(test_path("a"), test_path("tree"), false, NULL, &run, &e), &e,
		   ERR_INTERRUPTED, "interrupted");
	assert_false(present(test_path("tree/x")));
	close(fds[0]);
	close(fds[1]);
}

/* The disk is a small memory file system in a namespace of a child's own. */
static void test_disk_full(void **state)
{
	(void)state;
	struct err *e;
	int fds[2], status;
	char archive[512], dir[512];
	static char text[4 << 20];
	memset(text, 'x', sizeof(text) - 1);
	begin(TAR);
	add_file("small", "x");
	add_file("big", text);
	end();
	snprintf(archive, sizeof(archive), "%s", test_path("a"));
	snprintf(dir, sizeof(dir), "%s", test_path("disk"));
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct err got = {0};
		if (!test_own_mounts() || mount("disk", dir, "tmpfs", 0, "size=1m") != 0)
			_exit(10);
		int rc = unpack_archive(archive, dir, false, NULL, test_run(), &got);
		char path[600];
		snprintf(path, sizeof(path), "%s/big", dir);
		bool left = present(path);
		if (write(fds[1], &got, sizeof(got)) != (ssize_t)sizeof(got))
			_exit(11);
		_exit(rc == -1 && !left ? 0 : 12);
	}

	close(fds[1]);
	e = calloc(1, sizeof(*e));
	assert_non_null(e);
	ssize_t n = read(fds[0], e, sizeof(*e));
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(n, sizeof(*e));
	assert_int_equal(e->kind, ERR_SYSTEM);
	assert_contains(e->msg, "No space left");
	assert_contains(e->msg, "entry 'big'");
	assert_true(e->hint[0] != '\0');
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_tar, test_teardown),
		cmocka_unit_test_teardown(test_tar_gz, test_teardown),
		cmocka_unit_test_teardown(test_tar_xz, test_teardown),
		cmocka_unit_test_teardown(test_tar_bz2, test_teardown),
		cmocka_unit_test_teardown(test_tar_zstd, test_teardown),
		cmocka_unit_test_teardown(test_zip, test_teardown),
		cmocka_unit_test_teardown(test_without_strip_the_top_stays, test_teardown),
		cmocka_unit_test_teardown(test_dot_names_are_normal, test_teardown),
		cmocka_unit_test_teardown(test_modes_are_two, test_teardown),
		cmocka_unit_test_teardown(test_directory_times_are_kept, test_teardown),
		cmocka_unit_test_teardown(test_links_inside, test_teardown),
		cmocka_unit_test_teardown(test_pax_headers, test_teardown),
		cmocka_unit_test_teardown(test_utf8_names, test_teardown),
		cmocka_unit_test_teardown(test_long_names_that_fit, test_teardown),
		cmocka_unit_test_teardown(test_replaces_files_by_files_only, test_teardown),
		cmocka_unit_test_teardown(test_replacing_a_file_leaves_its_hard_links_alone,
					  test_teardown),
		cmocka_unit_test_teardown(test_hole_stays_hole, test_teardown),
		cmocka_unit_test_teardown(test_trailing_bytes_are_ignored, test_teardown),
		cmocka_unit_test_teardown(test_truncated_tar, test_teardown),
		cmocka_unit_test_teardown(test_truncated_gz, test_teardown),
		cmocka_unit_test_teardown(test_truncated_xz, test_teardown),
		cmocka_unit_test_teardown(test_truncated_bz2, test_teardown),
		cmocka_unit_test_teardown(test_truncated_zstd, test_teardown),
		cmocka_unit_test_teardown(test_truncated_zip, test_teardown),
		cmocka_unit_test_teardown(test_damaged_xz, test_teardown),
		cmocka_unit_test_teardown(test_damaged_zip, test_teardown),
		cmocka_unit_test_teardown(test_empty_archive, test_teardown),
		cmocka_unit_test_teardown(test_empty_file, test_teardown),
		cmocka_unit_test_teardown(test_no_archive, test_teardown),
		cmocka_unit_test_teardown(test_missing_archive, test_teardown),
		cmocka_unit_test_teardown(test_directory_as_archive, test_teardown),
		cmocka_unit_test_teardown(test_cancelled, test_teardown),
		cmocka_unit_test_teardown(test_disk_full, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
