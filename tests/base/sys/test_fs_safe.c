/* Every test runs twice: as the kernel resolves paths, and
 * then with openat2 refused by a filter, as by an old kernel. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "base/sys/fs.h"

/* top/ with a file, a directory, and links of every kind; beside it a secret. */
static const char *make_tree(void)
{
	static char top[256];

	test_dir();
	test_write(test_path("secret"), "secret\n");
	test_write(test_path("outside/secret"), "secret\n");
	test_write(test_path("top/file"), "text\n");
	test_write(test_path("top/dir/sub/file"), "deep\n");
	assert_int_equal(symlink("../secret", test_path("top/out")), 0);
	assert_int_equal(symlink(test_path("secret"), test_path("top/absolute")), 0);
	assert_int_equal(symlink("file", test_path("top/inside")), 0);
	assert_int_equal(symlink("../outside", test_path("top/way")), 0);
	assert_int_equal(symlink("dir", test_path("top/near")), 0);
	assert_int_equal(symlink("nowhere", test_path("top/loose")), 0);
	snprintf(top, sizeof(top), "%s", test_path("top"));
	return top;
}

static void secrets_are_as_they_were(void)
{
	assert_file(test_path("secret"), "secret\n");
	assert_file(test_path("outside/secret"), "secret\n");
	assert_int_equal(test_count_entries(test_path("outside")), 1);
}

static void files_below_are_read(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf b = {0};
	const char *top = make_tree();
	assert_ok(fs_read(top, "file", 5, &b, &e), &e);
	assert_ok(fs_read(top, "dir/sub/file", 100, &b, &e), &e);
	assert_string_equal(buf_cstr(&b), "text\ndeep\n");
	assert_true(fs_exists(top, "file") && fs_exists(top, "dir") && fs_exists(top, ""));
	assert_false(fs_exists(top, "none") || fs_exists(top, "none/none") ||
		     fs_exists(top, "file/x"));
	assert_err(fs_read(top, "none", 9, &b, &e), &e, ERR_SYSTEM, "top/none': No such file");
	assert_err(fs_read(top, "no/ne", 9, &b, &e), &e, ERR_SYSTEM, "top/no/ne': No such file");
}

static void no_link_is_followed(void **state)
{
	(void)state;
	static const struct {
		const char *rel, *says;
	} links[] = {{"out", "top/out' points to '../secret'"},
		     {"absolute", "top/absolute' points to '/"},
		     {"inside", "top/inside' points to 'file'"},
		     {"loose", "top/loose' points to 'nowhere'"},
		     {"way/secret", "top/way' points to '../outside'"},
		     {"way/none", "top/way' points to '../outside'"},
		     {"near/sub/file", "top/near' points to 'dir'"},
		     {"near/none", "top/near' points to 'dir'"}};
	const char *top = make_tree();
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		struct err e = {0};
		struct stat st;
		AUTO_BUF struct buf b = {0};
		const char *rel = links[i].rel;
		assert_true(fs_exists(top, rel) || strstr(rel, "none"));
		assert_err(fs_read(top, rel, 100, &b, &e), &e, ERR_INTEGRITY, links[i].says);
		assert_contains(e.hint, "rm ");
		assert_int_equal(b.len, 0);
		assert_int_equal(fs_open(top, rel, &st, &e), -1);
		assert_int_equal(fs_append(top, rel, &e), -1);
	}

	secrets_are_as_they_were();
	assert_file(test_path("top/file"), "text\n");
}

static int count_one(const char *rel, const struct stat *st, void *user, struct err *e)
{
	(void)rel;
	(void)st;
	(void)e;
	++*(size_t *)user;
	return 0;
}

static void directories_behind_links_are_not_read(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	size_t seen = 0;
	const char *top = make_tree();
	assert_ok(fs_list(top, "dir", &a, &names, &e), &e);
	assert_int_equal(names.count, 1);
	assert_ok(fs_walk(top, "", count_one, &seen, &e), &e);
	assert_int_equal(seen, 8);
	assert_err(fs_list(top, "way", &a, &names, &e), &e, ERR_INTEGRITY, "top/way' points to");
	assert_err(fs_list(top, "near/sub", &a, &names, &e), &e, ERR_INTEGRITY,
		   "top/near' points to");
	assert_err(fs_walk(top, "way", count_one, &seen, &e), &e, ERR_INTEGRITY,
		   "top/way' points to");
	assert_err(fs_walk_busy(top, "way", count_one, &seen, &e), &e, ERR_INTEGRITY,
		   "top/way' points to");
	assert_err(fs_list(top, "file", &a, &names, &e), &e, ERR_SYSTEM, "Not a directory");
	assert_int_equal(seen, 8);
}

static void paths_that_lead_out_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"../secret", "/etc/passwd", "dir/../file",
					  "dir//sub",  "./file",      "dir/"};
	struct err e = {0};
	AUTO_BUF struct buf b = {0};
	const char *top = make_tree();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_false(fs_exists(top, bad[i]));
		assert_err(fs_read(top, bad[i], 100, &b, &e), &e, ERR_SYSTEM, "cannot read");
		assert_int_equal(fs_write(top, bad[i], "x", 1, 0644, &e), -1);
		assert_int_equal(fs_remove(top, bad[i], &e), -1);
		assert_int_equal(fs_mkdirs(top, bad[i], &e), -1);
	}

	assert_int_equal(fs_remove(top, "", &e), -1);
	secrets_are_as_they_were();
	assert_file(test_path("top/file"), "text\n");
}

static void only_regular_files_are_read(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf b = {0};
	const char *top = make_tree();
	assert_int_equal(mkfifo(test_path("top/fifo"), 0600), 0);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", test_path("top/socket"));
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	close(fd);
	assert_err(fs_read(top, "fifo", 9, &b, &e), &e, ERR_INTEGRITY, "top/fifo' is a FIFO");
	assert_err(fs_read(top, "socket", 9, &b, &e), &e, ERR_INTEGRITY, "top/socket' is a socket");
	assert_err(fs_read(top, "dir", 9, &b, &e), &e, ERR_INTEGRITY, "top/dir' is a directory");
	assert_err(fs_read("/dev", "null", 9, &b, &e), &e, ERR_INTEGRITY, "/dev/null' is a device");
	assert_int_equal(fs_append(top, "fifo", &e), -1);
}

static void a_large_file_is_refused_unread(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf b = {0};
	const char *top = make_tree();
	assert_int_equal(truncate(test_path("top/file"), (off_t)10 << 30), 0);
	assert_err(fs_read(top, "file", 1 << 30, &b, &e), &e, ERR_INTEGRITY,
		   "has more than 1073741824 bytes");
	assert_int_equal(b.cap, 0);
}

static void writing_replaces_a_link_and_keeps_what_it_names(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st, before;
	const char *top = make_tree();
	assert_ok(fs_write(top, "out", "new\n", 4, 0640, &e), &e);
	assert_ok(fs_write(top, "dir/sub/fresh", "new\n", 4, 0600, &e), &e);
	assert_file(test_path("top/out"), "new\n");
	assert_int_equal(lstat(test_path("top/out"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_file(test_path("top/dir/sub/fresh"), "new\n");
	assert_err(fs_write(top, "way/secret", "new\n", 4, 0644, &e), &e, ERR_INTEGRITY,
		   "points to");
	assert_err(fs_write(top, "dir", "new\n", 4, 0644, &e), &e, ERR_SYSTEM, "top/dir'");
	secrets_are_as_they_were();
	const struct timespec old[2] = {{.tv_sec = 1000000000, .tv_nsec = 7},
					{.tv_sec = 1000000000, .tv_nsec = 7}};
	assert_int_equal(utimensat(AT_FDCWD, test_path("top/file"), old, 0), 0);
	assert_int_equal(chmod(test_path("top/file"), 0751), 0);
	assert_int_equal(link(test_path("top/file"), test_path("other")), 0);
	assert_ok(fs_stat(top, "file", &before), &e);
	assert_ok(fs_rewrite(top, "file", "new\n", 4, &before, &e), &e);
	assert_int_equal(stat(test_path("top/file"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0751);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(st.st_mtim.tv_nsec, 7);
	assert_file(test_path("other"), "text\n");
	assert_int_equal(test_count_entries(top), 8);
}

static void files_are_made_where_nothing_is(void **state)
{
	(void)state;
	struct err e = {0};
	const char *top = make_tree();
	AUTO_FD int fd = fs_create(top, "new/deep/file", 0640, &e);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_file(test_path("top/new/deep/file"), "x");
	assert_err(fs_create(top, "file", 0644, &e), &e, ERR_SYSTEM, "File exists");
	assert_err(fs_create(top, "loose", 0644, &e), &e, ERR_SYSTEM, "File exists");
	assert_err(fs_create(top, "way/file", 0644, &e), &e, ERR_INTEGRITY, "points to");
	assert_err(fs_create(top, "../file", 0644, &e), &e, ERR_SYSTEM, "Invalid argument");
	secrets_are_as_they_were();
}

static void files_grow_in_place(void **state)
{
	(void)state;
	struct err e = {0};
	const char *top = make_tree();
	assert_ok(fs_write(top, "file", "te", 2, 0644, &e), &e);
	int fd = fs_append(top, "file", &e);
	assert_int_equal(write(fd, "st\n", 3), 3);
	close(fd);
	assert_file(test_path("top/file"), "test\n");
	fd = fs_append(top, "dir/log", &e);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_file(test_path("top/dir/log"), "x");
	assert_int_equal(link(test_path("secret"), test_path("top/hard")), 0);
	assert_err(fs_append(top, "hard", &e), &e, ERR_INTEGRITY, "2 names: '");
	secrets_are_as_they_were();
}

static void trees_are_removed_without_what_their_links_name(void **state)
{
	(void)state;
	struct err e = {0};
	const char *top = make_tree();
	assert_int_equal(symlink("../../outside", test_path("top/dir/way")), 0);
	assert_ok(fs_remove(top, "dir", &e), &e);
	assert_ok(fs_remove(top, "way", &e), &e);
	assert_ok(fs_remove(top, "none", &e), &e);
	assert_ok(fs_remove(top, "no/ne", &e), &e);
	assert_false(fs_exists(top, "dir") || fs_exists(top, "way"));
	assert_int_equal(symlink("../outside", test_path("top/way")), 0);
	assert_err(fs_remove(top, "way/secret", &e), &e, ERR_INTEGRITY, "points to '../outside'");
	secrets_are_as_they_were();
}

/* A link is moved as one; what lies behind one is not reached, on neither side. */
static void moving_follows_nothing(void **state)
{
	(void)state;
	struct err e = {0};
	const char *top = make_tree();
	assert_ok(fs_mkdirs(top, "to", &e), &e);
	assert_int_equal(symlink("../outside", test_path("top/road")), 0);
	assert_int_equal(fs_move(top, "road", top, "to/road"), 0);
	assert_true(fs_exists(top, "to/road") && !fs_exists(top, "road"));
	assert_int_equal(fs_move(top, "to/road/secret", top, "to/secret"), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(fs_move(top, "file", top, "to/road/file"), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(fs_move(top, "../outside", top, "to/outside"), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fs_move(top, "file", top, "to/file"), 0);
	assert_true(fs_exists(top, "to/file") && !fs_exists(top, "file"));
	secrets_are_as_they_were();
}

static void directories_are_made_where_they_seem_to_be(void **state)
{
	(void)state;
	struct err e = {0};
	const char *top = make_tree();
	assert_ok(fs_mkdirs(top, "dir/a/b", &e), &e);
	assert_ok(fs_mkdirs(top, "dir/a/b", &e), &e);
	assert_true(fs_is_dir(TRUSTED, test_path("top/dir/a/b")));
	assert_err(fs_mkdirs(top, "way", &e), &e, ERR_INTEGRITY, "points to");
	assert_err(fs_mkdirs(top, "way/a", &e), &e, ERR_INTEGRITY, "points to");
	assert_err(fs_mkdirs(top, "file/a", &e), &e, ERR_SYSTEM, "Not a directory");
	secrets_are_as_they_were();
}

static atomic_bool stop;

/* "race" is a directory and a link to another by turns. */
static void *swap(void *user)
{
	const char *dir = user;
	char real[300], link_path[300];

	snprintf(real, sizeof(real), "%s/race", dir);
	snprintf(link_path, sizeof(link_path), "%s/spare", dir);
	while (!stop)
		(void)!os_rename_swap(real, link_path);
	return NULL;
}

static void a_race_is_never_won(void **state)
{
	(void)state;
	struct err e = {0};
	pthread_t thread;
	const char *top = make_tree();
	size_t refused = 0, read = 0;
	test_write(test_path("top/race/secret"), "mine\n");
	assert_int_equal(symlink("../outside", test_path("top/spare")), 0);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, swap, (void *)(uintptr_t)top), 0);
	for (int i = 0; i < 20000 && (i < 2000 || !refused || !read); i++) {
		AUTO_BUF struct buf b = {0};
		if (fs_read(top, "race/secret", 100, &b, &e) < 0) {
			refused++;
		} else {
			read++;
			assert_string_equal(buf_cstr(&b), "mine\n");
		}

		if (fs_write(top, "race/fresh", "x", 1, 0644, &e) == 0)
			(void)!fs_remove(top, "race/fresh", &e);
	}

	stop = true;
	pthread_join(thread, NULL);
	assert_true(refused > 0 && read > 0);
	secrets_are_as_they_were();
}

static int refuse_openat2(void **state)
{
	(void)state;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog filter = {.len = ARRAY_LEN(code), .filter = code};
	struct open_how how = {.flags = O_RDONLY};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		return -1;
	return syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how)) == -1 && errno == ENOSYS ? 0
											       : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(files_below_are_read, test_teardown),
		cmocka_unit_test_teardown(no_link_is_followed, test_teardown),
		cmocka_unit_test_teardown(directories_behind_links_are_not_read, test_teardown),
		cmocka_unit_test_teardown(paths_that_lead_out_are_refused, test_teardown),
		cmocka_unit_test_teardown(only_regular_files_are_read, test_teardown),
		cmocka_unit_test_teardown(a_large_file_is_refused_unread, test_teardown),
		cmocka_unit_test_teardown(writing_replaces_a_link_and_keeps_what_it_names,
					  test_teardown),
		cmocka_unit_test_teardown(files_are_made_where_nothing_is, test_teardown),
		cmocka_unit_test_teardown(files_grow_in_place, test_teardown),
		cmocka_unit_test_teardown(trees_are_removed_without_what_their_links_name,
					  test_teardown),
		cmocka_unit_test_teardown(moving_follows_nothing, test_teardown),
		cmocka_unit_test_teardown(directories_are_made_where_they_seem_to_be,
					  test_teardown),
		cmocka_unit_test_teardown(a_race_is_never_won, test_teardown),
	};
	int failed = cmocka_run_group_tests_name("with openat2", tests, NULL, NULL);

	return failed + cmocka_run_group_tests_name("without openat2", tests, refuse_openat2, NULL);
}
