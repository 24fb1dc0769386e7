#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs_place.h"

static struct arena arena;
static struct err err;

static struct fs_place open_top(const char *name)
{
	struct fs_place p = {.fd = -1};

	err_clear(&err);
	assert_ok(fs_place_open(test_path("%s", name), &arena, &p, &err), &err);
	return p;
}

static const char *led_to(const struct fs_place *top, const char *rel, enum fs_links links)
{
	struct fs_place p = {.fd = -1};
	bool found = false;
	struct stat by_fd, by_path;

	assert_ok(fs_place_below(top, rel, links, &arena, &p, &found, &err), &err);
	if (!found)
		return NULL;
	assert_int_equal(fstat(p.fd, &by_fd), 0);
	assert_int_equal(stat(p.path, &by_path), 0);
	assert_int_equal(by_fd.st_ino, by_path.st_ino);
	fs_place_close(&p);
	return strcmp(p.path, top->path) == 0 ? "" : path_below(p.path, top->path);
}

static void refused(const struct fs_place *top, const char *rel, enum fs_links links,
		    const char *target)
{
	struct fs_place p = {.fd = -1};
	bool found = false;

	err_clear(&err);
	assert_err(fs_place_below(top, rel, links, &arena, &p, &found, &err), &err, ERR_POLICY,
		   target);
	assert_int_equal(p.fd, -1);
}

static void test_links_are_resolved_inside(void **state)
{
	(void)state;
	test_dir();
	assert_ok(fs_mkdirs(TRUSTED, test_path("top/usr/lib/python3"), &err), &err);
	assert_ok(fs_mkdirs(TRUSTED, test_path("elsewhere/lib"), &err), &err);
	const char *const links[][2] = {{"usr/lib", "lib"},  {"/usr/lib", "absolute"},
					{"../../usr", "up"}, {"lib/python3/..", "back"},
					{"loop", "loop"},    {"/nowhere", "nowhere"}};
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		assert_int_equal(symlink(links[i][0], test_path("top/%s", links[i][1])), 0);
	assert_int_equal(symlink(test_path("elsewhere/lib"), test_path("top/out")), 0);
	assert_int_equal(symlink(test_path("top/usr/lib"), test_path("top/whole")), 0);
	struct fs_place top = open_top("top");
	for (int links_of = FS_LINKS_ROOT; links_of <= FS_LINKS_WITHIN; links_of++) {
		assert_string_equal(led_to(&top, "", links_of), "");
		assert_string_equal(led_to(&top, "lib/python3", links_of), "usr/lib/python3");
		assert_string_equal(led_to(&top, "back", links_of), "usr/lib");
		assert_null(led_to(&top, "usr/share", links_of));
		assert_null(led_to(&top, "lib/python4/site-packages", links_of));
		refused(&top, "loop", links_of, "too many links");
		refused(&top, "out", links_of, "will not follow a link");
		refused(&top, "nowhere", links_of, "/nowhere");
	}

	assert_string_equal(led_to(&top, "absolute", FS_LINKS_ROOT), "usr/lib");
	assert_string_equal(led_to(&top, "up/lib", FS_LINKS_ROOT), "usr/lib");
	refused(&top, "absolute", FS_LINKS_WITHIN, "'/usr/lib'");
	refused(&top, "up", FS_LINKS_WITHIN, "outside of");
	assert_string_equal(led_to(&top, "whole", FS_LINKS_WITHIN), "usr/lib");
	fs_place_close(&top);
	arena_release(&arena);
}

static void test_place_stays_when_its_path_leads_elsewhere(void **state)
{
	struct stat st;
	AUTO_BUF struct buf text = {0};

	(void)state;
	test_dir();
	test_write(test_path("env/info/RECORD"), "old");
	test_write(test_path("victim/RECORD"), "secret");
	struct fs_place p = open_top("env");
	AUTO_FD int fd = fs_place_file(&p, "info/RECORD", &st, &err);
	assert_true(fd >= 0);
	assert_int_equal(rename(test_path("env/info"), test_path("env/moved")), 0);
	assert_int_equal(symlink(test_path("victim"), test_path("env/info")), 0);
	assert_err(fs_place_write(&p, "info/RECORD", "new", 3, &st, &err), &err, ERR_INTEGRITY,
		   "will not follow");
	err_clear(&err);
	assert_err(fs_place_read(&p, "info/RECORD", 100, &text, &err), &err, ERR_INTEGRITY,
		   "will not follow");
	err_clear(&err);
	assert_err(fs_place_sweep(&p, "info", &err), &err, ERR_INTEGRITY, "will not follow");
	assert_file(test_path("victim/RECORD"), "secret");
	err_clear(&err);
	assert_int_equal(rename(test_path("env"), test_path("gone")), 0);
	assert_int_equal(symlink(test_path("victim"), test_path("env")), 0);
	assert_ok(fs_place_write(&p, "moved/RECORD", "new", 3, &st, &err), &err);
	assert_file(test_path("gone/moved/RECORD"), "new");
	assert_file(test_path("victim/RECORD"), "secret");
	fs_place_close(&p);
	arena_release(&arena);
}

static void test_new_file_has_owner_and_bits_without_setuid(void **state)
{
	struct stat st, got;

	(void)state;
	test_dir();
	test_write(test_path("env/tool"), "old");
	if (geteuid() == 0)
		assert_int_equal(chown(test_path("env/tool"), 12345, 12346), 0);
	assert_int_equal(chmod(test_path("env/tool"), 06755), 0);
	struct fs_place p = open_top("env");
	AUTO_FD int fd = fs_place_file(&p, "tool", &st, &err);
	assert_true(fd >= 0);
	assert_int_equal(st.st_mode & 06000, 06000);
	assert_ok(fs_place_write(&p, "tool", "new", 3, &st, &err), &err);
	assert_int_equal(stat(test_path("env/tool"), &got), 0);
	assert_int_equal(got.st_mode & 07777, 0755);
	assert_int_equal(got.st_uid, st.st_uid);
	assert_int_equal(got.st_gid, st.st_gid);
	fs_place_close(&p);
	arena_release(&arena);
}

static void test_file_that_another_name_was_given_is_not_given_away(void **state)
{
	struct stat st;

	(void)state;
	test_dir();
	test_write(test_path("env/file"), "old");
	struct fs_place p = open_top("env");
	assert_int_equal(fs_place_stat(&p, "file", &st), 0);
	struct fs_fresh f = {.fd = -1, .dir = -1};
	assert_ok(fs_fresh_open(&p, "file", &f, &err), &err);
	assert_int_equal(linkat(f.dir, f.name, AT_FDCWD, test_path("other"), 0), 0);
	assert_err(fs_fresh_commit(&f, &st, &err), &err, ERR_SYSTEM, "cannot write");
	fs_fresh_close(&f);
	assert_file(test_path("env/file"), "old");
	struct strlist names = {0};
	assert_ok(fs_place_list(&p, "", &arena, &names, &err), &err);
	assert_int_equal(names.count, 1);
	fs_place_close(&p);
	arena_release(&arena);
}

static void test_what_others_may_write_is_mapped_as_a_copy(void **state)
{
	struct stat st;

	(void)state;
	test_dir();
	test_write(test_path("env/lib"), "bytes");
	struct fs_place p = open_top("env");
	for (int shared = 0; shared < 2; shared++) {
		AUTO_MAPPING struct fs_mapping m = {0};
		assert_int_equal(chmod(test_path("env/lib"), shared ? 0666 : 0644), 0);
		assert_ok(fs_place_map(&p, "lib", &m, &st, &err), &err);
		AUTO_FD int fd = open(test_path("env/lib"), O_WRONLY | O_CLOEXEC);
		assert_int_equal(pwrite(fd, shared ? "other" : "bytes", 5, 0), 5);
		assert_int_equal(m.size, 5);
		assert_memory_equal(m.data, "bytes", 5);
		assert_int_equal(st.st_mode & 0777, shared ? 0666 : 0644);
	}

	struct strlist names = {0};
	assert_ok(fs_place_list(&p, "", &arena, &names, &err), &err);
	assert_int_equal(names.count, 1);
	fs_place_close(&p);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_links_are_resolved_inside, test_teardown),
		cmocka_unit_test_teardown(test_place_stays_when_its_path_leads_elsewhere,
					  test_teardown),
		cmocka_unit_test_teardown(test_new_file_has_owner_and_bits_without_setuid,
					  test_teardown),
		cmocka_unit_test_teardown(test_file_that_another_name_was_given_is_not_given_away,
					  test_teardown),
		cmocka_unit_test_teardown(test_what_others_may_write_is_mapped_as_a_copy,
					  test_teardown),
	};

	return cmocka_run_group_tests_name("fs_place", tests, NULL, NULL);
}
