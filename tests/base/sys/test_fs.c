#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"

static void read_appends_the_whole_file(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf b = {0};
	test_dir();
	test_write_bytes(test_path("f"), "a\0b", 3);
	buf_addstr(&b, "<");
	assert_ok(fs_read(TRUSTED, test_path("f"), 3, &b, &e), &e);
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "<a\0b", 5);
}

static void read_of_a_file_without_size(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf b = {0};
	assert_ok(fs_read(TRUSTED, "/proc/self/status", 1 << 20, &b, &e), &e);
	assert_contains(buf_cstr(&b), "Name:");
}

static void read_refuses_too_much(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf b = {0};
	test_dir();
	test_write(test_path("f"), "12345");
	buf_addstr(&b, "kept");
	assert_err(fs_read(TRUSTED, test_path("f"), 4, &b, &e), &e, ERR_INTEGRITY,
		   "/f' has more than 4 bytes");
	assert_string_equal(buf_cstr(&b), "kept");
}

static void read_names_what_it_cannot_read(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf b = {0};
	test_dir();
	assert_err(fs_read(TRUSTED, test_path("none"), 9, &b, &e), &e, ERR_SYSTEM,
		   "/none': No such file");
	assert_err(fs_read(TRUSTED, test_path("."), 9, &b, &e), &e, ERR_SYSTEM,
		   "not a regular file");
	mkfifo(test_path("fifo"), 0600);
	assert_err(fs_read(TRUSTED, test_path("fifo"), 9, &b, &e), &e, ERR_SYSTEM,
		   "not a regular file");
	assert_string_equal(buf_cstr(&b), "");
}

static void a_file_is_mapped(void **state)
{
	(void)state;
	struct err e = {0};
	struct fs_mapping m;
	test_dir();
	test_write_bytes(test_path("f"), "a\0b", 3);
	test_write(test_path("empty"), "");
	assert_ok(fs_map(test_path("f"), &m, &e), &e);
	assert_int_equal(m.size, 3);
	assert_memory_equal(m.data, "a\0b", 3);
	fs_unmap(&m);
	assert_ok(fs_map(test_path("empty"), &m, &e), &e);
	assert_null(m.data);
	fs_unmap(&m);
	assert_err(fs_map(test_path("none"), &m, &e), &e, ERR_SYSTEM, "/none': No such file");
	assert_err(fs_map(test_path("."), &m, &e), &e, ERR_SYSTEM, "not a regular file");
	fs_unmap(&m);
}

static void write_atomic_creates_and_replaces(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	test_dir();
	mode_t old = umask(022);
	assert_ok(fs_write(TRUSTED, test_path("f"), "one", 3, 0666, &e), &e);
	assert_file(test_path("f"), "one");
	assert_int_equal(stat(test_path("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_ok(fs_write(TRUSTED, test_path("f"), "", 0, 0755, &e), &e);
	umask(old);
	assert_file(test_path("f"), "");
	assert_int_equal(stat(test_path("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(test_count_entries(test_path(".")), 1);
}

static void write_atomic_replaces_a_link_itself(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	test_dir();
	test_write(test_path("target"), "old");
	assert_int_equal(symlink("target", test_path("link")), 0);
	assert_ok(fs_write(TRUSTED, test_path("link"), "new", 3, 0644, &e), &e);
	assert_file(test_path("target"), "old");
	assert_int_equal(lstat(test_path("link"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void write_atomic_failure_leaves_nothing(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("dir/f"), "x");
	assert_err(fs_write(TRUSTED, test_path("dir"), "y", 1, 0644, &e), &e, ERR_SYSTEM,
		   "cannot write '");
	assert_err(fs_write(TRUSTED, test_path("no/f"), "y", 1, 0644, &e), &e, ERR_SYSTEM,
		   "/no/f': No such file");
	assert_int_equal(test_count_entries(test_path(".")), 1);
	assert_file(test_path("dir/f"), "x");
}

static void can_write_tells_before(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("f"), "x");
	assert_int_equal(mkdir(test_path("dir"), 0755), 0);
	assert_ok(fs_can_write(test_path("f"), &e), &e);
	assert_ok(fs_can_write(test_path("new"), &e), &e);
	assert_err(fs_can_write(test_path("dir"), &e), &e, ERR_SYSTEM, "/dir': Is a directory");
	assert_err(fs_can_write(test_path("no/f"), &e), &e, ERR_SYSTEM, "/no/f': No such file");
	assert_err(fs_can_write(test_path("f/f"), &e), &e, ERR_SYSTEM, "cannot write '");
	assert_int_equal(test_count_entries(test_path(".")), 2);
	assert_file(test_path("f"), "x");
}

static void write_atomic_takes_the_longest_names(void **state)
{
	(void)state;
	struct err e = {0};
	char name[256];
	memset(name, 'n', 255);
	name[255] = '\0';
	test_dir();
	assert_ok(fs_write(TRUSTED, test_path("%s", name), "x", 1, 0644, &e), &e);
	assert_file(test_path("%s", name), "x");
}

static void write_all_reports_the_full_disk(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_FD int fd = open("/dev/full", O_WRONLY);
	assert_err(fs_write_all(fd, "x", 1, "the log", &e), &e, ERR_SYSTEM,
		   "cannot write 'the log': No space left");
	assert_contains(e.hint, "free some space");
	assert_ok(fs_write_all(fd, NULL, 0, "the log", &e), &e);
}

static void mkdirs_makes_parents(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	assert_ok(fs_mkdirs(TRUSTED, test_path("a/b//c/"), &e), &e);
	assert_true(fs_is_dir(TRUSTED, test_path("a/b/c")));
	assert_ok(fs_mkdirs(TRUSTED, test_path("a/b/c"), &e), &e);
	assert_ok(fs_mkdirs(TRUSTED, "/", &e), &e);
}

static void test_drop_empty_stops_at_the_first_that_is_not(void **state)
{
	struct err e = {0};
	struct arena a = {0};

	(void)state;
	assert_string_equal(fs_standing(test_path("none/b/c"), &a), path_dir(&a, test_path("x")));
	assert_ok(fs_mkdirs(TRUSTED, test_path("top/b/c/d"), &e), &e);
	assert_string_equal(fs_standing(test_path("top/b"), &a), test_path("top/b"));
	test_write(test_path("top/b/file"), "");
	fs_drop_empty(test_path("top/b/c/d"), test_path("top"));
	assert_true(fs_exists(TRUSTED, test_path("top/b/file")));
	assert_false(fs_exists(TRUSTED, test_path("top/b/c")));
	assert_int_equal(unlink(test_path("top/b/file")), 0);
	fs_drop_empty(test_path("top/b/none"), test_path("top"));
	assert_true(fs_is_dir(TRUSTED, test_path("top")));
	assert_false(fs_exists(TRUSTED, test_path("top/b")));
	fs_drop_empty(test_path("top"), test_path("top"));
	fs_drop_empty(NULL, NULL);
	assert_true(fs_is_dir(TRUSTED, test_path("top")));
	arena_release(&a);
}

static void mkdirs_over_a_file_fails(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("f"), "");
	assert_err(fs_mkdirs(TRUSTED, test_path("f"), &e), &e, ERR_SYSTEM, "/f': Not a directory");
	assert_err(fs_mkdirs(TRUSTED, test_path("f/g"), &e), &e, ERR_SYSTEM,
		   "/f': Not a directory");
	assert_err(fs_mkdirs(TRUSTED, "", &e), &e, ERR_SYSTEM, "cannot make directory ''");
}

static void remove_of_nothing_and_of_a_file(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	assert_ok(fs_remove(TRUSTED, test_path("none"), &e), &e);
	test_write(test_path("f"), "");
	assert_ok(fs_remove(TRUSTED, test_path("f"), &e), &e);
	assert_false(fs_exists(TRUSTED, test_path("f")));
}

static void remove_does_not_follow_links(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("keep/f"), "kept");
	test_write(test_path("tree/sub/g"), "");
	assert_int_equal(symlink("../keep", test_path("tree/link")), 0);
	assert_int_equal(symlink("nowhere", test_path("tree/dangling")), 0);
	assert_ok(fs_remove(TRUSTED, test_path("tree"), &e), &e);
	assert_false(fs_exists(TRUSTED, test_path("tree")));
	assert_file(test_path("keep/f"), "kept");
	assert_int_equal(symlink("keep", test_path("link")), 0);
	assert_ok(fs_remove(TRUSTED, test_path("link/"), &e), &e);
	assert_file(test_path("keep/f"), "kept");
	struct stat st;
	assert_int_equal(lstat(test_path("link"), &st), -1);
}

static void remove_handles_special_files(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("t/x"), "");
	assert_int_equal(mkfifo(test_path("t/fifo"), 0600), 0);
	assert_ok(fs_remove(TRUSTED, test_path("t"), &e), &e);
	assert_false(fs_exists(TRUSTED, test_path("t")));
}

static void make_deep(const char *top, int depth)
{
	assert_int_equal(mkdir(top, 0755), 0);
	int fd = open(top, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < depth; i++) {
		char file[32];
		/* the very names the removal would choose */
		snprintf(file, sizeof(file), ".ptbuild-deep-%d", i);
		int f = openat(fd, file, O_WRONLY | O_CREAT, 0644);
		assert_true(f >= 0);
		close(f);
		assert_int_equal(mkdirat(fd, "a-directory-with-a-long-name", 0555), 0);
		int next = openat(fd, "a-directory-with-a-long-name", O_RDONLY | O_DIRECTORY);
		assert_true(next >= 0);
		if (i == depth / 2)
			fchmod(fd, 0555);
		close(fd);
		fd = next;
		fchmod(fd, 0755);
	}

	close(fd);
}

static void remove_has_no_depth_limit(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	make_deep(test_path("deep"), 1200);
	assert_ok(fs_remove(TRUSTED, test_path("deep"), &e), &e);
	assert_false(fs_exists(TRUSTED, test_path("deep")));
	assert_int_equal(test_count_entries(test_path(".")), 0);
}

/* As an ordinary user, whom permissions bind. Returns the exit status of `fn`. */
static int as_nobody(int (*fn)(const char *dir), const char *dir)
{
	assert_int_equal(chmod(dir, 0777), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(100);
		_exit(fn(dir));
	}

	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

static int remove_locked_tree(const char *dir)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const char *tree = path_join(&a, dir, "tree");
	char *deep = arena_printf(&a, "%s/a/b", tree);

	if (fs_mkdirs(TRUSTED, deep, &e) != 0)
		return 1;
	test_write(path_join(&a, deep, "f"), "");
	if (chmod(path_join(&a, deep, "f"), 0) || chmod(deep, 0555) ||
	    chmod(path_join(&a, tree, "a"), 0) || chmod(tree, 0500))
		return 2;
	if (fs_remove(TRUSTED, tree, &e) != 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 3;
	}

	return fs_exists(TRUSTED, tree) ? 4 : 0;
}

static void remove_makes_directories_writable(void **state)
{
	(void)state;
	assert_int_equal(as_nobody(remove_locked_tree, test_dir()), 0);
}

static int remove_deep_locked_tree(const char *dir)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const char *tree = path_join(&a, dir, "tree");
	struct strlist dirs = {0};
	char *at = arena_strdup(&a, tree);

	for (int i = 0; i < 100; i++) {
		strlist_add(&dirs, &a, at);
		at = path_join(&a, at, "d");
	}

	if (fs_mkdirs(TRUSTED, at, &e) != 0)
		return 1;
	for (size_t i = dirs.count; i-- > 0;)
		if (chmod(dirs.items[i], 0555) != 0)
			return 2;
	return fs_remove(TRUSTED, tree, &e) != 0 || fs_exists(TRUSTED, tree) ? 3 : 0;
}

static void remove_makes_deep_directories_writable(void **state)
{
	(void)state;
	assert_int_equal(as_nobody(remove_deep_locked_tree, test_dir()), 0);
}

static int remove_foreign(const char *path)
{
	struct err e = {0};

	if (fs_remove(TRUSTED, path, &e) != -1)
		return 1;
	return e.kind == ERR_SYSTEM && test_has(e.msg, "cannot remove '") &&
			       test_has(e.msg, "Permission denied")
		       ? 0
		       : 2;
}

static int remove_in_foreign_directory(const char *dir)
{
	AUTO_ARENA struct arena a = {0};
	return remove_foreign(path_join(&a, dir, "foreign"));
}

static void remove_says_what_it_may_not(void **state)
{
	(void)state;
	if (geteuid() != 0) { /* who can make nothing that is somebody else's */
		assert_int_not_equal(access("/", W_OK), 0);
		assert_int_equal(remove_foreign("/root"), 0);
		return;
	}

	test_dir();
	test_write(test_path("foreign/f"), "kept");
	chmod(test_path("foreign"), 0755);
	assert_int_equal(as_nobody(remove_in_foreign_directory, test_path(".")), 0);
	assert_file(test_path("foreign/f"), "kept");
}

static void remove_refuses_dots_and_root(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("d/f"), "kept");
	assert_err(fs_remove(TRUSTED, "/", &e), &e, ERR_SYSTEM, "will not remove '/'");
	assert_err(fs_remove(TRUSTED, "///", &e), &e, ERR_SYSTEM, "will not remove");
	assert_err(fs_remove(TRUSTED, "", &e), &e, ERR_SYSTEM, "will not remove ''");
	assert_err(fs_remove(TRUSTED, ".", &e), &e, ERR_SYSTEM, "will not remove '.'");
	assert_err(fs_remove(TRUSTED, test_path("d/."), &e), &e, ERR_SYSTEM, "will not remove");
	assert_err(fs_remove(TRUSTED, test_path("d/../"), &e), &e, ERR_SYSTEM, "will not remove");
	assert_file(test_path("d/f"), "kept");
}

static void rename_moves_and_names_both(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("a/f"), "x");
	assert_int_equal(mkdir(test_path("b"), 0755), 0);
	assert_ok(fs_rename(test_path("a/f"), test_path("b/g"), &e), &e);
	assert_file(test_path("b/g"), "x");
	assert_err(fs_rename(test_path("a/f"), test_path("b/h"), &e), &e, ERR_SYSTEM,
		   "/b/h': No such file");
	assert_contains(e.msg, "/a/f' to '");
}

static void rename_new_replaces_nothing(void **state)
{
	(void)state;
	struct err e = {0};
	bool done = false;
	test_dir();
	test_write(test_path("a"), "new");
	assert_ok(fs_rename_new(test_path("a"), test_path("b"), &done, &e), &e);
	assert_true(done);
	test_write(test_path("a"), "other");
	assert_ok(fs_rename_new(test_path("a"), test_path("b"), &done, &e), &e);
	assert_false(done);
	assert_file(test_path("b"), "new");
	assert_file(test_path("a"), "other");
	assert_err(fs_rename_new(test_path("c"), test_path("d"), &done, &e), &e, ERR_SYSTEM,
		   "No such file");
}

static void trees_deeper_than_the_limit_are_an_error(void **state)
{
	(void)state;
	struct err e = {0};
	uint64_t size;
	test_dir();
	make_deep(test_path("deep"), 520);
	assert_err(fs_copy_tree(test_path("deep"), test_path("copy"), &e), &e, ERR_SYSTEM, "");
	assert_false(fs_exists(TRUSTED, test_path("copy")));
	assert_err(fs_tree_size(test_path("deep"), &size, &e), &e, ERR_SYSTEM,
		   "nested more than 512 deep");
	test_write(test_path("deep/file"), "bytes");
	assert_ok(fs_tree_size_most(test_path("deep"), &size, &e), &e);
	assert_true(size >= 5);
	assert_err(fs_tree_size_most(test_path("none"), &size, &e), &e, ERR_SYSTEM, "No such file");
	assert_ok(fs_remove(TRUSTED, test_path("deep"), &e), &e);
}

static void list_is_sorted(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	test_dir();
	assert_ok(fs_list(TRUSTED, test_path("."), &a, &l, &e), &e);
	assert_int_equal(l.count, 0);
	const char *const names[] = {"b", "a10", "a9", ".hidden", "B"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		test_write(test_path("%s", names[i]), "");
	assert_ok(fs_list(TRUSTED, test_path("."), &a, &l, &e), &e);
	assert_string_equal(strlist_join(&l, &a, " "), ".hidden B a10 a9 b");
	assert_err(fs_list(TRUSTED, test_path("none"), &a, &l, &e), &e, ERR_SYSTEM,
		   "cannot list '");
	assert_err(fs_list(TRUSTED, test_path("b"), &a, &l, &e), &e, ERR_SYSTEM, "Not a directory");
	assert_int_equal(l.count, 5);
}

struct seen {
	struct arena arena;
	struct strlist list;
	size_t stop_at;
};

static int see(const char *rel, const struct stat *st, void *user, struct err *e)
{
	(void)e;
	struct seen *s = user;
	strlist_addf(&s->list, &s->arena, "%s%s", rel, S_ISLNK(st->st_mode) ? "@" : "");
	return s->list.count == s->stop_at ? 42 : 0;
}

static void walk_goes_in_the_order_of_whole_paths(void **state)
{
	(void)state;
	struct err e = {0};
	struct seen s = {0};
	test_dir();
	test_write(test_path("t/a/x"), "");
	test_write(test_path("t/a.c"), "");
	test_write(test_path("t/a-b/y"), "");
	test_write(test_path("t/ab"), "");
	test_write(test_path("t/a/deep/z"), "");
	assert_int_equal(mkdir(test_path("t/empty"), 0755), 0);
	assert_int_equal(symlink("a", test_path("t/link")), 0);
	assert_int_equal(fs_walk(TRUSTED, test_path("t"), see, &s, &e), 0);
	assert_string_equal(strlist_join(&s.list, &s.arena, " "),
			    "a-b/y a.c a/deep/z a/x ab link@");
	arena_release(&s.arena);
}

static void walk_stops_when_told(void **state)
{
	(void)state;
	struct err e = {0};
	struct seen s = {.stop_at = 2};
	test_dir();
	for (int i = 0; i < 5; i++)
		test_write(test_path("t/d/%d", i), "");
	assert_int_equal(fs_walk(TRUSTED, test_path("t"), see, &s, &e), 42);
	assert_int_equal(s.list.count, 2);
	arena_release(&s.arena);
}

static void walk_follows_only_a_linked_top(void **state)
{
	(void)state;
	struct err e = {0};
	struct seen s = {0};
	test_dir();
	test_write(test_path("t/f"), "");
	assert_int_equal(symlink("t", test_path("top")), 0);
	assert_int_equal(fs_walk(TRUSTED, test_path("top"), see, &s, &e), 0);
	assert_int_equal(s.list.count, 1);
	assert_err(fs_walk(TRUSTED, test_path("none"), see, &s, &e), &e, ERR_SYSTEM,
		   "cannot open '");
	assert_err(fs_walk(TRUSTED, test_path("t/f"), see, &s, &e), &e, ERR_SYSTEM,
		   "Not a directory");
	arena_release(&s.arena);
}

static void sync_works_on_trees_and_directories(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("t/a/f"), "x");
	assert_int_equal(mkfifo(test_path("t/fifo"), 0600), 0);
	assert_int_equal(symlink("nowhere", test_path("t/link")), 0);
	assert_ok(fs_sync_tree(test_path("t"), &e), &e);
	assert_ok(fs_sync_dir(test_path("t"), &e), &e);
	assert_err(fs_sync_tree(test_path("none"), &e), &e, ERR_SYSTEM, "/none': No such file");
	assert_err(fs_sync_dir(test_path("none"), &e), &e, ERR_SYSTEM, "cannot sync directory '");
}

static void sync_of_a_file(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("f"), "x");
	assert_ok(fs_sync_file(test_path("f"), &e), &e);
	assert_err(fs_sync_file(test_path("none"), &e), &e, ERR_SYSTEM, "/none': No such file");
}

static void exists_and_is_dir(void **state)
{
	(void)state;
	test_dir();
	test_write(test_path("d/f"), "");
	assert_int_equal(symlink("d", test_path("link")), 0);
	assert_int_equal(symlink("none", test_path("dangling")), 0);
	assert_true(fs_exists(TRUSTED, test_path("d/f")));
	assert_true(fs_exists(TRUSTED, test_path("d")));
	assert_false(fs_exists(TRUSTED, test_path("dangling")));
	assert_false(fs_exists(TRUSTED, test_path("d/f/g")));
	assert_true(fs_is_dir(TRUSTED, test_path("link")));
	assert_false(fs_is_dir(TRUSTED, test_path("d/f")));
	assert_false(fs_is_dir(TRUSTED, test_path("none")));
}

/* A process without a free descriptor cannot look below a directory:
 * no marker is seen there, and yet nothing says that there is none. */
static void what_could_not_be_looked_at(void **state)
{
	(void)state;
	AUTO_ARENA struct arena arena = {0};
	const struct rlimit none = {0, 0};
	test_dir();
	test_write(test_path("d/f"), "");
	const char *dir = arena_strdup(&arena, test_path("d")),
		   *file = arena_strdup(&arena, test_path("d/f"));
	assert_true(fs_is_file(dir, "f"));
	assert_true(fs_is_file(TRUSTED, file));
	assert_false(fs_is_file(dir, "g"));
	assert_false(fs_is_file(TRUSTED, dir));
	pid_t child = fork();
	if (child == 0)
		_exit(setrlimit(RLIMIT_NOFILE, &none) == 0 && fs_exists(dir, "f") &&
				      fs_exists(dir, "g") && !fs_is_file(dir, "f") &&
				      !fs_is_file(dir, "g")
			      ? 0
			      : 1);
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_scope_leaves_errno_alone(void **state)
{
	(void)state;
	errno = ENOENT;
	{
		AUTO_FD int closed = 1 << 20; /* close(2) fails with EBADF */
		(void)closed;
	}

	assert_int_equal(errno, ENOENT);
}

static void tree_size_counts_regular_files(void **state)
{
	(void)state;
	struct err e = {0};
	uint64_t size = 99;
	test_dir();
	test_write(test_path("t/a"), "12345");
	test_write(test_path("t/b/c"), "678");
	assert_int_equal(symlink("a", test_path("t/link")), 0);
	assert_ok(fs_tree_size(test_path("t"), &size, &e), &e);
	assert_int_equal(size, 8);
	assert_err(fs_tree_size(test_path("none"), &size, &e), &e, ERR_SYSTEM, "No such file");
	assert_int_equal(size, 8);
}

static void free_bytes_of_what_will_be_there(void **state)
{
	(void)state;
	struct err e = {0};
	uint64_t here = 0, later = 0;
	test_dir();
	test_write(test_path("f"), "");
	assert_ok(fs_free_bytes(test_path("."), &here, &e), &e);
	assert_ok(fs_free_bytes(test_path("not/yet/there"), &later, &e), &e);
	assert_true(here > 0);
	assert_true(later > 0);
	assert_ok(fs_free_bytes("nothing-of-this-name", &later, &e), &e);
	assert_err(fs_free_bytes(test_path("f/g"), &later, &e), &e, ERR_SYSTEM, "cannot measure");
}

static void temp_dirs_are_new_and_private(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	AUTO_ARENA struct arena a = {0};
	char *one = NULL, *two = NULL;
	test_dir();
	assert_ok(fs_temp_dir(test_path("."), "work-", &a, &one, &e), &e);
	assert_ok(fs_temp_dir(test_path("."), "work-", &a, &two, &e), &e);
	assert_string_not_equal(one, two);
	assert_contains(one, "/work-");
	assert_int_equal(stat(one, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	char *none = NULL;
	assert_err(fs_temp_dir(test_path("none"), "x", &a, &none, &e), &e, ERR_SYSTEM,
		   "/none': No such file");
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(read_appends_the_whole_file, test_teardown),
		cmocka_unit_test(read_of_a_file_without_size),
		cmocka_unit_test_teardown(read_refuses_too_much, test_teardown),
		cmocka_unit_test_teardown(read_names_what_it_cannot_read, test_teardown),
		cmocka_unit_test_teardown(a_file_is_mapped, test_teardown),
		cmocka_unit_test_teardown(write_atomic_creates_and_replaces, test_teardown),
		cmocka_unit_test_teardown(write_atomic_replaces_a_link_itself, test_teardown),
		cmocka_unit_test_teardown(write_atomic_failure_leaves_nothing, test_teardown),
		cmocka_unit_test_teardown(can_write_tells_before, test_teardown),
		cmocka_unit_test_teardown(write_atomic_takes_the_longest_names, test_teardown),
		cmocka_unit_test(write_all_reports_the_full_disk),
		cmocka_unit_test_teardown(mkdirs_makes_parents, test_teardown),
		cmocka_unit_test_teardown(test_drop_empty_stops_at_the_first_that_is_not,
					  test_teardown),
		cmocka_unit_test_teardown(mkdirs_over_a_file_fails, test_teardown),
		cmocka_unit_test_teardown(remove_of_nothing_and_of_a_file, test_teardown),
		cmocka_unit_test_teardown(remove_does_not_follow_links, test_teardown),
		cmocka_unit_test_teardown(remove_handles_special_files, test_teardown),
		cmocka_unit_test_teardown(remove_has_no_depth_limit, test_teardown),
		cmocka_unit_test_teardown(remove_makes_directories_writable, test_teardown),
		cmocka_unit_test_teardown(remove_makes_deep_directories_writable, test_teardown),
		cmocka_unit_test_teardown(remove_says_what_it_may_not, test_teardown),
		cmocka_unit_test_teardown(remove_refuses_dots_and_root, test_teardown),
		cmocka_unit_test_teardown(rename_moves_and_names_both, test_teardown),
		cmocka_unit_test_teardown(rename_new_replaces_nothing, test_teardown),
		cmocka_unit_test_teardown(trees_deeper_than_the_limit_are_an_error, test_teardown),
		cmocka_unit_test_teardown(list_is_sorted, test_teardown),
		cmocka_unit_test_teardown(walk_goes_in_the_order_of_whole_paths, test_teardown),
		cmocka_unit_test_teardown(walk_stops_when_told, test_teardown),
		cmocka_unit_test_teardown(walk_follows_only_a_linked_top, test_teardown),
		cmocka_unit_test_teardown(sync_works_on_trees_and_directories, test_teardown),
		cmocka_unit_test_teardown(sync_of_a_file, test_teardown),
		cmocka_unit_test_teardown(exists_and_is_dir, test_teardown),
		cmocka_unit_test_teardown(tree_size_counts_regular_files, test_teardown),
		cmocka_unit_test_teardown(what_could_not_be_looked_at, test_teardown),
		cmocka_unit_test(a_scope_leaves_errno_alone),
		cmocka_unit_test_teardown(free_bytes_of_what_will_be_there, test_teardown),
		cmocka_unit_test_teardown(temp_dirs_are_new_and_private, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
