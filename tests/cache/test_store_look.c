/* Stores that are read and cannot be written. */
#include "store_fixture.h"

/* Another user reads a store that root or the user of the test made: nothing of it is changed. */
static int look_must_work(struct fixture *f)
{
	struct store *s = NULL;
	struct store_object *list;
	struct err e = {0};
	size_t count;
	const char *found, *stage;

	if (store_look(f->dir, test_run(), &s, &e) < 0)
		return 1;
	if (!store_is_read_only(s))
		return 2;
	if (store_list(s, &f->arena, &list, &count, &e) < 0 || count != 1)
		return 3;
	if (store_find(s, list->kind, list->key, &f->arena, &found, &e) < 0 || !found)
		return 4;
	if (store_check_writable(s, &e) == 0 || e.kind != ERR_SYSTEM ||
	    !test_has(e.hint, "--lower-store"))
		return 5;
	err_clear(&e);
	if (store_stage(s, &f->arena, &stage, &e) == 0 || e.kind != ERR_SYSTEM)
		return 6;
	store_close(s);
	return 0;
}

static int look_must_be_refused(struct fixture *f)
{
	struct store *s = NULL;
	struct err e = {0};

	if (store_look(f->dir, test_run(), &s, &e) == 0)
		return 1;
	return e.kind == ERR_CONFIG && test_has(e.msg, f->dir) ? 0 : 2;
}

static void set_rights(struct fixture *f, mode_t mode)
{
	assert_int_equal(chmod(test_path("."), 0755), 0);
	assert_int_equal(chmod(in_store(f, "tmp"), mode), 0);
	assert_int_equal(chmod(f->dir, mode), 0);
}

static void a_read_only_store_is_looked_at(void **state)
{
	struct fixture *f = *state;

	publish(f, STORE_WHEEL, KEY_A, "a.whl", "x");
	set_rights(f, 0555);
	assert_int_equal(in_child_as_nobody(look_must_work, f), 0);
	set_rights(f, 0755);
}

static void a_directory_that_is_no_store_is_not_looked_at(void **state)
{
	struct fixture *f = *state;
	char *format = test_read(in_store(f, "format"));

	assert_int_equal(unlink(in_store(f, "format")), 0);
	set_rights(f, 0555);
	assert_int_equal(in_child_as_nobody(look_must_be_refused, f), 0);
	set_rights(f, 0755);
	test_write(in_store(f, "format"), "ptbuild store 99\n");
	set_rights(f, 0555);
	assert_int_equal(in_child_as_nobody(look_must_be_refused, f), 0);
	set_rights(f, 0755);
	test_write(in_store(f, "format"), format);
	free(format);
}

/* Where it can be written, a look is like any other open. */
static void a_look_at_ones_own_store_opens_it(void **state)
{
	struct fixture *f = *state;
	struct store *s = NULL;

	assert_ok(store_look(f->dir, test_run(), &s, &f->err), &f->err);
	assert_false(store_is_read_only(s));
	assert_ok(store_check_writable(s, &f->err), &f->err);
	store_close(s);
	assert_int_equal(chmod(f->dir, 0777), 0);
	assert_err(store_look(f->dir, test_run(), &s, &f->err), &f->err, ERR_POLICY,
		   "world-writable");
	assert_int_equal(chmod(f->dir, 0755), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_read_only_store_is_looked_at),
		T(a_directory_that_is_no_store_is_not_looked_at),
		T(a_look_at_ones_own_store_opens_it),
	};

	return cmocka_run_group_tests_name("store_look", tests, NULL, NULL);
}
