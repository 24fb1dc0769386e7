/* A world by its name: its parts, its key, and what is refused. */
#include <string.h>

#include "base/sys/digest.h"
#include "core/world/world.h"
#include "support.h"

#define SHA "1111111111111111111111111111111111111111111111111111111111111111"

static struct arena arena;
static struct err err;
static const char *profiles;

static void part(const char *name, const char *kind, const char *more)
{
	test_write(
		arena_printf(&arena, "%s/worlds/%s.yaml", profiles, name),
		arena_printf(&arena, "sources: a test\npart: %s\nkind: %s\n%s", name, kind, more));
}

static void lock(const char *name, const char *wheel_version)
{
	const struct world_part *p;
	char asked[65];

	assert_ok(world_part_load(profiles, name, &arena, &p, &err), &err);
	world_part_asked(p, asked);
	test_write(
		arena_printf(&arena, "%s/worlds/%s.x86_64-linux.lock", profiles, name),
		arena_printf(&arena,
			     "ptbuild lock 1\npart %s x86_64-linux\nasked %s\nwheel a-%s %s 10 " SHA
			     " a.whl\n",
			     name, asked, name, wheel_version));
}

static int setup(void **state)
{
	static const char base[] = "suite: trixie\ncomponents: [main]\npython: \"3.13\"\nglibc: "
				   "\"2.41\"\npackages: [a]\n";

	(void)state;
	test_dir();
	err_clear(&err);
	profiles = arena_strdup(&arena, test_path("profiles"));
	part("base1", "base", base);
	part("base2", "base", base);
	part("kit1", "toolkit", "prefix: usr/kit\n");
	part("kit2", "toolkit", "prefix: usr/kit2\n");
	lock("base1", "1");
	lock("base2", "1");
	lock("kit1", "1");
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static const struct world *load(const char *name)
{
	const struct world *w = NULL;
	assert_ok(world_load(profiles, name, "x86_64-linux", &arena, &w, &err), &err);
	return w;
}

static void parts_and_key(void **state)
{
	(void)state;
	const struct world *base = load("base1"), *both = load("base1+kit1");
	assert_int_equal(base->count, 1);
	assert_int_equal(base->download, 10);
	assert_int_equal(both->count, 2);
	assert_int_equal(both->download, 20);
	assert_string_equal(both->name, "base1+kit1");
	assert_string_equal(both->platform, "x86_64-linux");
	assert_string_equal(both->pieces[1].part->prefix, "usr/kit");
	assert_true(digest_valid_hex(base->key) && digest_valid_hex(both->key));
	assert_string_not_equal(base->key, both->key);
	assert_string_not_equal(base->key, load("base2")->key);
	assert_string_equal(base->key, load("base1")->key);
	lock("kit1", "2");
	assert_string_equal(base->key, load("base1")->key);
	assert_string_not_equal(both->key, load("base1+kit1")->key);
}

/* Two names of one world, of which each would be made, kept and compiled for on its own. */
static void the_order_of_parts_makes_no_other_world(void **state)
{
	(void)state;
	part("snake1", "python", "python: \"3.11\"\nprefix: usr/local\narchives: [cpython==1]\n");
	part("sums1", "library",
	     "prefix: usr/sums\nwheels: [a-sums1==1]\nplaces: [{wheel: a-sums1, from: ., to: "
	     "usr/sums}]\n");
	lock("snake1", "1");
	lock("sums1", "1");
	const struct world *w = load("base1+snake1+kit1+sums1"),
			   *other = load("base1+sums1+kit1+snake1");
	assert_string_equal(other->name, "base1+snake1+kit1+sums1");
	assert_string_equal(other->key, w->key);
	assert_string_equal(load("base1+kit1+sums1+snake1")->key, w->key);
	assert_string_not_equal(load("base1+sums1+kit1")->key, w->key);
	assert_string_equal(other->pieces[3].part->part, "sums1");
	assert_string_equal(other->pieces[3].lock.part, "sums1");
}

/* What the table asks for is in the lock, not only its digest. */
static void a_lock_has_the_wheels_asked_for(void **state)
{
	const struct world *w = NULL;

	(void)state;
	part("kit3", "toolkit", "prefix: usr/kit3\nwheels: [a-kit3==1]\n");
	lock("kit3", "2");
	assert_err(world_load(profiles, "base1+kit3", "x86_64-linux", &arena, &w, &err), &err,
		   ERR_CONFIG, "has no wheel 'a-kit3==1', which its table asks for");
	lock("kit3", "1");
	assert_int_equal(load("base1+kit3")->count, 2);
}

static void other_locks_are_another_world(void **state)
{
	(void)state;
	const struct world *w = load("base1+kit1");
	struct world_lock locks[] = {w->pieces[0].lock, w->pieces[1].lock};
	struct world_entry entry = locks[1].entries[0];
	assert_string_equal(world_with_locks(w, locks, &arena)->key, w->key);
	entry.version = "3";
	entry.size = 5;
	locks[1].entries = &entry;
	const struct world *other = world_with_locks(w, locks, &arena);
	assert_string_not_equal(other->key, w->key);
	assert_int_equal(other->download, 15);
	assert_string_equal(other->name, w->name);
	assert_string_equal(w->pieces[1].lock.entries[0].version, "1");
}

static void refused(const char *name, const char *message)
{
	const struct world *w;
	assert_err(world_load(profiles, name, "x86_64-linux", &arena, &w, &err), &err, ERR_CONFIG,
		   message);
}

static void what_is_no_world(void **state)
{
	const struct world *w;

	(void)state;
	refused("", "empty part");
	refused("base1+", "empty part");
	refused("+base1", "empty part");
	refused("base1++kit1", "empty part");
	refused("kit1", "'kit1' is not a base");
	assert_string_equal(err.hint, "name it after a base: base2+kit1");
	refused("kit1+base1", "'kit1' is not a base");
	refused("base1+base2", "'base2' is a base, and there is one already");
	refused("base1+kit1+kit1", "'kit1' is there twice");
	lock("kit2", "1");
	refused("base1+kit1+kit2", "'kit2' is a toolkit, and 'kit1' is one already");
	part("snake1", "python", "python: \"3.11\"\nprefix: usr/local\narchives: [cpython==1]\n");
	part("snake2", "python", "python: \"3.12\"\nprefix: usr/local\narchives: [cpython==1]\n");
	lock("snake1", "1");
	lock("snake2", "1");
	assert_int_equal(load("base1+snake1+kit1")->count, 3);
	refused("base1+snake1+kit1+snake2", "'snake2' is a python, and 'snake1' is one already");
	assert_int_equal(unlink(arena_printf(&arena, "%s/worlds/kit2.x86_64-linux.lock", profiles)),
			 0);
	refused("base3", "unknown part of a world: 'base3'");
	refused("../base1", "unknown part");
	refused("base1+kit2", "part 'kit2' has no lock for x86_64-linux");
	assert_string_equal(err.hint,
			    "make it: ptbuild world lock kit2 --platform x86_64-linux --write");
	part("kit3", "toolkit",
	     "prefix: usr/kit3\nsuite: trixie\ncomponents: [main]\npackages: [a]\n");
	refused("base1+kit3", "part 'kit3' has no lock for x86_64-linux");
	assert_contains(err.hint, "--platform x86_64-linux --base base1 --write");
	part("py1", "python", "python: \"3.14\"\nprefix: opt/py\narchives: [\"cpython==3.14\"]\n");
	refused("base1+py1", "part 'py1' has no lock for x86_64-linux");
	assert_contains(
		err.hint,
		"pinned by hand; 'ptbuild world list --platform x86_64-linux' has those that are");
	/* no lock can be made of it */
	part("sums1", "library",
	     "prefix: usr/sums\nplatforms: [aarch64-linux]\nwheels: [a==1]\nplaces: [{wheel: a, "
	     "from: ., to: usr}]\n");
	refused("base1+sums1",
		"part 'sums1' is not for x86_64-linux: its files are for aarch64-linux alone");
	assert_string_equal(
		err.hint, "'ptbuild world list --platform x86_64-linux' shows the parts that are");
	assert_err(world_load(profiles, "base1", "sparc-linux", &arena, &w, &err), &err, ERR_CONFIG,
		   "no world is for the platform 'sparc-linux'");
	assert_err(world_load(profiles, "base1", "aarch64-linux", &arena, &w, &err), &err,
		   ERR_CONFIG, "part 'base1' has no lock for aarch64-linux");
}

static void a_lock_of_something_else(void **state)
{
	(void)state;
	part("kit1", "toolkit", "prefix: usr/kit\nwheels: [a==1]\n");
	refused("base1+kit1", "was made for another request than its table's");
	assert_contains(err.hint, "ptbuild world lock kit1");
	AUTO_FREE char *text =
		test_read(arena_printf(&arena, "%s/worlds/base2.x86_64-linux.lock", profiles));
	test_write(arena_printf(&arena, "%s/worlds/base1.x86_64-linux.lock", profiles), text);
	refused("base1", "is of another part or platform than its name says");
}

/* Without any one of its rows, and with another, how toolkits lie makes another world. */
static void every_rule_of_toolkits_is_in_the_key(void **state)
{
	AUTO_FREE char *text = test_read(PROFILES_DIR "/toolkit_tree.yaml");
	const char *file = path_join(&arena, profiles, "toolkit_tree.yaml");

	(void)state;
	test_write(file, text);
	const char *key = arena_strdup(&arena, load("base1+kit1")->key);
	for (const char *line = strstr(text, "\nplatforms:") + 1; *line;
	     line += strcspn(line, "\n") + 1) {
		AUTO_BUF struct buf changed = {0};
		buf_add(&changed, text, (size_t)(line - text));
		buf_addstr(&changed, line + strcspn(line, "\n") + 1);
		test_write(file, buf_cstr(&changed));
		assert_string_not_equal(load("base1+kit1")->key, key);
		test_write(file, arena_printf(&arena, "%.*s %s", (int)(line - text), text, line));
		assert_string_not_equal(load("base1+kit1")->key, key);
	}

	test_write(file, text);
	assert_string_equal(load("base1+kit1")->key, key);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_rule_of_toolkits_is_in_the_key),
		T(parts_and_key),
		T(the_order_of_parts_makes_no_other_world),
		T(a_lock_has_the_wheels_asked_for),
		T(other_locks_are_another_world),
		T(what_is_no_world),
		T(a_lock_of_something_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
