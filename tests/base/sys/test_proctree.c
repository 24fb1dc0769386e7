#include "support.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys/proc.h"

/* A child that has a child that has another one; each writes
 * a byte when it is there, all end when the pipe does. */
struct family {
	struct arena arena;
	pid_t child;
	int alive; /* closing it ends them */
};

static void be(int depth, int said, int alive)
{
	char c = 'x';
	pid_t below = 0;

	while (depth-- > 1 && (below = fork()) == 0) /* the child goes on with the next one */
		;
	prctl(PR_SET_NAME, "a) R 1 (b");
	if (write(said, &c, 1) != 1)
		_exit(1);
	while (read(alive, &c, 1) > 0)
		;
	if (below > 0)
		(void)waitpid(below, NULL, 0);
	_exit(0);
}

static int setup(void **state)
{
	static struct family f;
	int said[2], alive[2];
	char c;

	f = (struct family){0};
	if (pipe(said) != 0 || pipe(alive) != 0)
		return -1;
	f.child = fork();
	if (f.child == 0) {
		close(alive[1]);
		be(3, said[1], alive[0]);
	}

	for (int i = 0; i < 3; i++) {
		if (read(said[0], &c, 1) != 1)
			return -1;
	}

	close(said[0]);
	close(said[1]);
	close(alive[0]);
	f.alive = alive[1];
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct family *f = *state;

	close(f->alive);
	(void)waitpid(f->child, NULL, 0);
	arena_release(&f->arena);
	return 0;
}

typedef void (*read_fn)(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count);

static void assert_family(struct family *f, read_fn read_tree)
{
	struct proctree_item *items;
	size_t count;

	read_tree(getpid(), &f->arena, &items, &count);
	assert_int_equal(count, 4);
	assert_int_equal(items[0].pid, getpid());
	assert_true(items[0].rss_bytes > 100000);
	for (size_t i = 1; i < count; i++) {
		assert_int_equal(items[i].parent, items[i - 1].pid);
		assert_string_equal(items[i].name, "a) R 1 (b");
		assert_true(items[i].started > 0);
	}
}

static void the_tree_below_a_process(void **state)
{
	assert_family(*state, proctree_read);
}

static void the_same_by_looking_at_all(void **state)
{
	assert_family(*state, proctree_scan);
}

static void a_process_that_is_gone(void **state)
{
	struct family *f = *state;
	struct proctree_item *items;
	size_t count;
	AUTO_BUF struct buf command = {0};
	pid_t gone = fork();

	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	proctree_read(gone, &f->arena, &items, &count);
	assert_int_equal(count, 0);
	proctree_scan(gone, &f->arena, &items, &count);
	assert_int_equal(count, 0);
	assert_false(proctree_command(gone, &command));
	assert_int_equal(proctree_peak(gone), 0);
	assert_null(proctree_cwd(gone, &f->arena));
}

static void command_peak_and_directory(void **state)
{
	struct family *f = *state;
	AUTO_BUF struct buf command = {0};
	char here[4096];

	assert_true(proctree_command(getpid(), &command));
	assert_true(command.len > 1 && command.data[command.len - 1] == '\0');
	assert_contains(buf_cstr(&command), "test_base_sys_proctree");
	assert_true(proctree_peak(getpid()) > 100000);
	assert_non_null(getcwd(here, sizeof(here)));
	assert_string_equal(proctree_cwd(getpid(), &f->arena), here);
}

static void used_time_includes_children_that_ended(void **state)
{
	struct family *f = *state;
	struct proctree_item *items;
	size_t count;

	proctree_read(getpid(), &f->arena, &items, &count);
	double before = items[0].cpu_seconds;
	pid_t busy = fork();
	if (busy == 0) {
		for (struct timespec t = {0}; t.tv_nsec < 100000000;)
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		_exit(0);
	}

	assert_int_equal(waitpid(busy, NULL, 0), busy);
	proctree_read(getpid(), &f->arena, &items, &count);
	assert_true(items[0].cpu_seconds - before > 0.05);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_tree_below_a_process),
		T(the_same_by_looking_at_all),
		T(a_process_that_is_gone),
		T(command_peak_and_directory),
		T(used_time_includes_children_that_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
