/* Cross parts: which one a machine takes for a platform, and whether it fits a base. */
#include "core/world/cross.h"
#include "support.h"

#define SHA "1111111111111111111111111111111111111111111111111111111111111111"
#define ARM "aarch64-linux"
#define X86 "x86_64-linux"
#define BASE                                                                                       \
	"suite: trixie\ncomponents: [main]\npython: \"3.13\"\nglibc: \"2.41\"\npackages: [gcc]\n"
#define CROSS                                                                                      \
	"suite: trixie\ncomponents: [main]\nplatforms: [x86_64-linux]\ntarget: aarch64-linux\n"    \
	"prefix: layer\nemulator: bin/run\ncpu: any\npackages: [gcc-cross, qemu-user]\n"           \
	"same: [{package: gcc-cross, as: gcc}]\n"

#define SLOWER(who, percent)                                                                       \
	"slower: [{compilers: " who ", percent: " percent ", seconds: 10, source: a}]\n"

static struct arena arena;
static struct err err;
static const char *profiles;

static void part(const char *name, const char *kind, const char *more)
{
	test_write(
		arena_printf(&arena, "%s/worlds/%s.yaml", profiles, name),
		arena_printf(&arena, "sources: a test\npart: %s\nkind: %s\n%s", name, kind, more));
}

/* Its packages as "name version", a line each. */
static void lock(const char *name, const char *platform, const char *const *packages, size_t count)
{
	AUTO_BUF struct buf text = {0};
	const struct world_part *p;
	char asked[65];

	assert_ok(world_part_load(profiles, name, &arena, &p, &err), &err);
	world_part_asked(p, asked);
	buf_printf(&text,
		   "ptbuild lock 1\npart %s %s\nasked %s\narchive debian trixie " SHA
		   " 2026-01-01T00:00:00Z\n",
		   name, platform, asked);
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, "deb %s all 10 " SHA " pool/%zu.deb\n", packages[i], i);
	test_write(arena_printf(&arena, "%s/worlds/%s.%s.lock", profiles, name, platform),
		   buf_cstr(&text));
}

static void lock_both(const char *gcc, const char *cross)
{
	const char *const own[] = {arena_printf(&arena, "gcc %s", gcc)};
	const char *const others[] = {arena_printf(&arena, "gcc-cross %s", cross),
				      "qemu-user 1:10.0.13+ds-0+deb13u1"};

	lock("base1", ARM, own, 1);
	lock("cross1", X86, others, 2);
}

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	profiles = arena_strdup(&arena, test_path("profiles"));
	part("base1", "base", BASE);
	part("cross1", "cross", CROSS);
	lock_both("14.2.0-19", "14.2.0-19cross1");
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static const struct world *find(const char *target, const char *host, const char *suite)
{
	const struct world *w = NULL;
	struct strlist names;

	assert_ok(world_cross_names(profiles, &arena, &names, &err), &err);
	const struct cross_query q = {profiles, &names, target, host, suite};
	assert_ok(world_cross_find(&q, &arena, &w, &err), &err);
	return w;
}

static void test_cross_is_found_by_target_host_and_suite(void **state)
{
	(void)state;
	const struct world *w = find(ARM, X86, "trixie");
	assert_non_null(w);
	assert_string_equal(w->name, "cross1");
	assert_string_equal(w->platform, X86);
	assert_string_equal(world_cross_version(w, &arena), "10.0.13");
	assert_ptr_not_equal(find(ARM, X86, NULL), NULL);
	assert_null(find(ARM, X86, "bookworm"));
	assert_null(find(ARM, ARM, NULL));
	assert_null(find(X86, X86, NULL));
}

static int fits(void)
{
	const struct world *base = NULL;

	err_clear(&err);
	assert_ok(world_load(profiles, "base1", ARM, &arena, &base, &err), &err);
	return world_cross_fits(find(ARM, X86, NULL), base, &err);
}

static void test_cross_of_another_compiler_is_refused(void **state)
{
	static const struct {
		const char *gcc, *cross;
		bool fits;
	} rows[] = {
		{"14.2.0-19", "14.2.0-19cross1", true},   {"2.44-3", "2.44-3", true},
		{"14.2.0-1", "14.2.0-19cross1", false},   {"14.2.0-19", "14.2.0-19cross", false},
		{"14.2.0-19", "14.2.0-19cross1a", false}, {"14.2.0-20", "14.2.0-19cross1", false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		lock_both(rows[i].gcc, rows[i].cross);
		assert_int_equal(fits(), rows[i].fits ? 0 : -1);
		if (rows[i].fits)
			continue;
		assert_int_equal(err.kind, ERR_POLICY);
		assert_contains(err.msg, "may compile to different bytes");
		assert_contains(err.hint, "ptbuild world lock cross1 --platform x86_64-linux");
	}
}

static void test_cross_is_a_world_alone(void **state)
{
	const struct world *w = NULL;

	(void)state;
	assert_err(world_load(profiles, "base1+cross1", X86, &arena, &w, &err), &err, ERR_CONFIG,
		   "base1");
	err_clear(&err);
	lock("base1", X86, (const char *const[]){"gcc 1"}, 1);
	assert_err(world_load(profiles, "base1+cross1", X86, &arena, &w, &err), &err, ERR_CONFIG,
		   "'cross1' is a tree of its own, and no part of a world");
}

#define PROGRAMS                                                                                   \
	"programs: [{wheel: nvcc, from: nv/bin, to: layer/cuda/bin}, "                             \
	"{wheel: nvvm, from: nv/nvvm, to: layer/cuda/nvvm}]\n"

/* A toolkit of these wheels, with a lock for the platform that also says what its tree is. */
static void toolkit(const char *name, const char *platform, const char *wheels)
{
	const struct world_part *p;
	struct strlist names = {0};
	AUTO_BUF struct buf text = {0};
	char asked[65];

	strlist_split(&names, &arena, wheels, " ");
	part(name, "toolkit",
	     arena_printf(&arena, "prefix: usr/local/cuda\nwheels: [%s==13.0]\n",
			  strlist_join(&names, &arena, "==13.0, ")));
	assert_ok(world_part_load(profiles, name, &arena, &p, &err), &err);
	world_part_asked(p, asked);
	buf_printf(&text, "ptbuild lock 1\npart %s %s\nasked %s\n", name, platform, asked);
	for (size_t i = 0; i < names.count; i++)
		buf_printf(&text, "wheel %s 13.0 7 " SHA " %s-13.0-py3-none-any.whl\n",
			   names.items[i], names.items[i]);
	test_write(arena_printf(&arena, "%s/worlds/%s.%s.lock", profiles, name, platform),
		   buf_cstr(&text));
}

static const struct world *load(const char *name, const char *platform)
{
	const struct world *w = NULL;

	assert_ok(world_load(profiles, name, platform, &arena, &w, &err), &err);
	return w;
}

static void test_cross_takes_programs_of_a_toolkit(void **state)
{
	(void)state;
	part("cross1", "cross", CROSS PROGRAMS);
	toolkit("cuda1", X86, "blas nvcc nvvm");
	const struct world *w = load("cross1+cuda1", X86), *alone = load("cross1", X86);
	assert_string_equal(w->name, "cross1+cuda1");
	assert_int_equal(w->count, 2);
	const struct world_piece *p = &w->pieces[1];
	assert_string_equal(p->part->kind, "cross");
	assert_int_equal(p->lock.count, 2);
	assert_string_equal(p->lock.entries[0].name, "nvcc");
	assert_string_equal(p->lock.entries[1].name, "nvvm");
	assert_string_equal(world_part_place(p->part, "nvvm")->to, "layer/cuda/nvvm");
	assert_int_equal(w->download - alone->download, 14);
	assert_string_not_equal(w->key, alone->key);

	/* The whole toolkit over a base is as before. */
	lock("base1", X86, (const char *const[]){"gcc 1"}, 1);
	assert_int_equal(load("base1+cuda1", X86)->pieces[1].lock.count, 3);
}

static void test_programs_are_in_the_key_of_what_takes_them_alone(void **state)
{
	char before[65];

	(void)state;
	part("cross1", "cross", CROSS);
	snprintf(before, sizeof(before), "%s", load("cross1", X86)->key);
	part("cross1", "cross", CROSS PROGRAMS);
	assert_string_equal(load("cross1", X86)->key, before);
	toolkit("cuda1", X86, "nvcc");
	snprintf(before, sizeof(before), "%s", load("cross1+cuda1", X86)->key);
	part("cross1", "cross",
	     CROSS "programs: [{wheel: nvcc, from: nv/bin, to: layer/elsewhere}]\n");
	assert_string_not_equal(load("cross1+cuda1", X86)->key, before);
}

static void test_only_one_toolkit_may_follow_a_cross_part(void **state)
{
	static const char *const names[] = {"cross1+base1", "cross1+cuda1+cuda2",
					    "cross1+cuda1+base1", "cross1+library1"};
	const struct world *w;

	(void)state;
	part("library1", "library",
	     "prefix: opt\nwheels: [a==1]\nplaces: [{wheel: a, from: ., to: opt}]\n");
	toolkit("cuda1", X86, "nvcc");
	toolkit("cuda2", X86, "nvcc");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		err_clear(&err);
		assert_err(world_load(profiles, names[i], X86, &arena, &w, &err), &err, ERR_CONFIG,
			   "is not the one toolkit that a cross part may have");
	}
}

static const struct world *with(const char *name)
{
	const struct world *cross = find(ARM, X86, NULL), *ret = NULL;

	assert_ok(world_cross_with(profiles, cross, load(name, ARM), &arena, &ret, &err), &err);
	return ret == cross ? NULL : ret;
}

static void test_cross_is_found_with_the_toolkit_of_a_world(void **state)
{
	(void)state;
	part("cross1", "cross", CROSS PROGRAMS);
	toolkit("cuda1", ARM, "nvcc nvvm");
	assert_null(with("base1"));
	assert_null(with("base1+cuda1")); /* no lock for x86-64 */
	toolkit("cuda1", X86, "nvcc nvvm");
	const struct world *w = with("base1+cuda1");
	assert_non_null(w);
	assert_string_equal(w->name, "cross1+cuda1");
	assert_string_equal(w->platform, X86);
	assert_string_equal(world_cross_version(w, &arena), "10.0.13");
	assert_ok(world_cross_fits(w, load("base1", ARM), &err), &err);

	/* one that is not made of such wheels */
	toolkit("cuda2", ARM, "blas");
	toolkit("cuda2", X86, "blas");
	assert_null(with("base1+cuda2"));
}

static void test_cross_keys_are_checked(void **state)
{
	static const struct {
		const char *kind, *more, *words;
	} rows[] = {
		{"base", BASE "target: aarch64-linux\n", "keys of a cross part"},
		{"cross", "suite: trixie\ncomponents: [main]\nprefix: l\npackages: [a]\n",
		 "a cross part has packages, a cpu"},
		{"cross", CROSS "moves: [{from: ../a, to: b}]\n",
		 "not paths below the root: '../a'"},
		{"cross", CROSS "python: \"3.13\"\n", "a cross part has packages, a cpu"},
		{"base", BASE SLOWER("native", "120"), "keys of a cross part"},
		{"cross", CROSS SLOWER("both", "120"), "neither native nor emulated: 'both'"},
		{"cross", CROSS SLOWER("native", "99"), "less than 100 percent"},
		{"base", BASE PROGRAMS, "keys of a cross part"},
		{"cross", CROSS "programs: [{wheel: a, from: b, to: ../c}]\n",
		 "not paths of a wheel and below the root: '../c'"},
	};
	const struct world_part *p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		part("other", rows[i].kind, rows[i].more);
		err_clear(&err);
		assert_err(world_part_load(profiles, "other", &arena, &p, &err), &err, ERR_CONFIG,
			   rows[i].words);
	}
}

static void test_moves_take_the_first_that_fits(void **state)
{
	const struct world_part *p;

	(void)state;
	part("other", "cross",
	     CROSS "moves: [{from: usr/bin/run, to: bin/run}, {from: usr/bin, to: layer/bin}]\n");
	assert_ok(world_part_load(profiles, "other", &arena, &p, &err), &err);
	assert_string_equal(world_part_move(p, "usr/bin/run", &arena), "bin/run");
	assert_string_equal(world_part_move(p, "usr/bin/runs", &arena), "layer/bin/runs");
	assert_string_equal(world_part_move(p, "usr/binary", &arena), "usr/binary");
}

/* What ptbuild comes with: each cross part fits every base of its suite. */
static void test_shipped_cross_parts_fit_the_bases(void **state)
{
	static const char *const bases[] = {"debian13", "debian13_lean"};
	const char *shipped = PROFILES_DIR;
	const struct world *cross = NULL, *base = NULL;
	struct strlist names;

	(void)state;
	assert_ok(world_cross_names(shipped, &arena, &names, &err), &err);
	const struct cross_query q = {shipped, &names, ARM, X86, "trixie"};
	assert_ok(world_cross_find(&q, &arena, &cross, &err), &err);
	assert_non_null(cross);
	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		assert_ok(world_load(shipped, bases[i], ARM, &arena, &base, &err), &err);
		assert_ok(world_cross_fits(cross, base, &err), &err);
	}

	/* and takes nvcc of each toolkit that is made of wheels */
	static const char *const toolkits[] = {"cuda13_0", "cuda13_1", "cuda13_2",
					       "cuda13_3", "cuda13_4", "cuda13_5"};
	for (size_t i = 0; i < ARRAY_LEN(toolkits); i++) {
		const char *name = arena_printf(&arena, "debian13_lean+%s", toolkits[i]);
		const struct world *all = NULL;
		assert_ok(world_load(shipped, name, ARM, &arena, &base, &err), &err);
		assert_ok(world_cross_with(shipped, cross, base, &arena, &all, &err), &err);
		assert_int_equal(all->count, 2);
		assert_int_equal(all->pieces[1].lock.count, cross->pieces[0].part->programs_count);
	}

	const struct world_slower *native = world_cross_slower(cross, true),
				  *emulated = world_cross_slower(cross, false);
	assert_non_null(native);
	assert_non_null(emulated);
	assert_true(native->percent < emulated->percent && native->seconds > 0);
	assert_null(world_cross_slower(find(ARM, X86, NULL), true));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_cross_is_found_by_target_host_and_suite),
		T(test_cross_of_another_compiler_is_refused),
		T(test_cross_is_a_world_alone),
		T(test_cross_takes_programs_of_a_toolkit),
		T(test_programs_are_in_the_key_of_what_takes_them_alone),
		T(test_only_one_toolkit_may_follow_a_cross_part),
		T(test_cross_is_found_with_the_toolkit_of_a_world),
		T(test_cross_keys_are_checked),
		T(test_moves_take_the_first_that_fits),
		T(test_shipped_cross_parts_fit_the_bases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
