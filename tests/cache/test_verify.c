#include "store_fixture.h"

#include "cache/store.h"

static struct store_checks verify(struct fixture *f, bool move)
{
	struct store_checks r;
	assert_ok(store_verify_all(f->store, move, 4, test_run(), &f->arena, &r, &f->err), &f->err);
	return r;
}

static const char *key_of(struct fixture *f, unsigned n)
{
	return arena_printf(&f->arena, "%064x", n);
}

/* Twenty objects, some of them damaged in different ways. */
static void damage_some(struct fixture *f)
{
	for (unsigned i = 0; i < 20; i++)
		publish(f, STORE_PYENV, key_of(f, i), "w.whl",
			arena_printf(&f->arena, "wheel %u", i));
	test_write(in_store(f, arena_printf(&f->arena, "objects/pyenv/%s/w.whl", key_of(f, 3))),
		   "wheeL 3");
	assert_int_equal(
		unlink(in_store(f, arena_printf(&f->arena, "objects/pyenv/%s/.manifest.json",
						key_of(f, 7)))),
		0);
	test_write(in_store(f, arena_printf(&f->arena, "objects/pyenv/%s/more", key_of(f, 19))),
		   "x");
}

static void all_good(void **state)
{
	struct fixture *f = *state;

	publish(f, STORE_PYENV, KEY_A, "w.whl", "x");
	struct store_checks r = verify(f, true);
	assert_int_equal(r.checked, 1);
	assert_int_equal(r.wrong, 0);
	assert_true(r.bytes > 1);
}

static void an_empty_store(void **state)
{
	struct store_checks r = verify(*state, true);
	assert_int_equal(r.checked, 0);
}

static void what_is_wrong_is_named_and_moved(void **state)
{
	struct fixture *f = *state;

	damage_some(f);
	struct store_checks r = verify(f, true);
	static const unsigned wrong[] = {3, 7, 19};
	assert_int_equal(r.checked, 20);
	assert_int_equal(r.wrong, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(r.items[i].object.key, key_of(f, wrong[i]));
		assert_int_equal(r.items[i].why.kind, ERR_INTEGRITY);
		assert_int_equal(r.items[i].fate, STORE_WRONG_MOVED);
	}

	assert_int_equal(names_in(f, "quarantine"), 3);
	r = verify(f, true);
	assert_int_equal(r.checked, 17);
	assert_int_equal(r.wrong, 0);
}

static void looking_moves_nothing(void **state)
{
	struct fixture *f = *state;

	damage_some(f);
	assert_int_equal(verify(f, false).wrong, 3);
	assert_int_equal(verify(f, false).wrong, 3);
	assert_int_equal(names_in(f, "quarantine"), 0);
}

static void what_somebody_uses_stays(void **state)
{
	struct fixture *f = *state;
	struct lock lock = LOCK_NONE;

	damage_some(f);
	assert_ok(store_lock(f->store, STORE_PYENV, key_of(f, 7), test_run(), &lock, &f->err),
		  &f->err);
	struct store_checks r = verify(f, true);
	lock_release(&lock);
	assert_int_equal(r.items[0].fate, STORE_WRONG_MOVED);
	assert_int_equal(r.items[1].fate, STORE_WRONG_BUSY);
	assert_int_equal(names_in(f, "quarantine"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_good),
		T(an_empty_store),
		T(what_is_wrong_is_named_and_moved),
		T(looking_moves_nothing),
		T(what_somebody_uses_stays),
	};

	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
