/* The lock of a part: what is read back, and what is refused. */
#include <string.h>

#include "base/sys/digest.h"
#include "core/world/world.h"
#include "support.h"

#define D1 "1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "2222222222222222222222222222222222222222222222222222222222222222"
#define D3 "3333333333333333333333333333333333333333333333333333333333333333"

#define HEAD "ptbuild lock 1\npart debian13 x86_64-linux\nasked " D1 "\n"
#define ARCHIVE "archive debian trixie " D2 " 2026-11-20T08:30:00Z\n"
#define DEB "deb gcc-14 14.2.0-19 amd64 4711 " D3 " pool/main/g/gcc-14/gcc-14_14.2.0-19_amd64.deb\n"
#define DEB2 "deb libc++1 1:2~rc1+b1 all 12 " D2 " pool/a/libc++1_2_all.deb\n"
#define WHEEL "wheel nvidia-nccl-cu13 2.27.7 99 " D1 " nvidia_nccl_cu13-2.27.7-py3-none-any.whl\n"
#define OTHER "file cpython 3.12.1 100 " D1 " https://example.org/a%2Bb.tar.gz\n"
#define UNSIZED "file cpython 3.12.1 - " D1 " https://example.org/a%2Bb.tar.gz\n"

static int parse(const char *text, struct arena *a, struct world_lock *ret, struct err *e)
{
	return world_lock_parse(&(struct file_bytes){text, strlen(text), "x.lock"}, a, ret, e);
}

static void test_round(void **state)
{
	static const char *const texts[] = {HEAD, HEAD ARCHIVE DEB DEB2 WHEEL OTHER "tree " D2 "\n",
					    HEAD WHEEL, HEAD OTHER "tree " D1 "\n", HEAD UNSIZED};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_ARENA struct arena a = {0};
		AUTO_BUF struct buf out = {0};
		struct world_lock l;
		struct err e = {0};
		assert_int_equal(parse(texts[i], &a, &l, &e), 0);
		world_lock_write(&l, &out);
		assert_string_equal(buf_cstr(&out), texts[i]);
	}
}

static void test_fields(void **state)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	struct world_lock l;
	struct err e = {0};

	(void)state;
	assert_int_equal(parse(HEAD ARCHIVE DEB DEB2 WHEEL OTHER "tree " D2 "\n", &a, &l, &e), 0);
	assert_string_equal(l.part, "debian13");
	assert_string_equal(l.platform, "x86_64-linux");
	assert_string_equal(l.suite, "trixie");
	assert_string_equal(l.date, "2026-11-20T08:30:00Z");
	assert_int_equal(l.count, 4);
	assert_string_equal(l.entries[1].version, "1:2~rc1+b1");
	assert_string_equal(l.entries[1].arch, "all");
	assert_int_equal(l.entries[0].size, 4711);
	assert_string_equal(l.entries[2].arch, "");
	assert_int_equal(world_lock_bytes(&l), 4711 + 12 + 99 + 100);
	assert_string_equal(world_lock_path("/p", l.part, l.platform, &a),
			    "/p/worlds/debian13.x86_64-linux.lock");
	/* written in order, whatever order it is in */
	struct world_entry first = l.entries[0];
	l.entries[0] = l.entries[3];
	l.entries[3] = first;
	world_lock_write(&l, &out);
	assert_string_equal(buf_cstr(&out), HEAD ARCHIVE DEB DEB2 WHEEL OTHER "tree " D2 "\n");
}

static void test_key(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct world_lock l;
	struct err e = {0};
	char first[65], other[65];

	(void)state;
	assert_int_equal(parse(HEAD ARCHIVE DEB DEB2, &a, &l, &e), 0);
	world_lock_key(&l, "rules", first);
	assert_true(digest_valid_hex(first));
	/* places and the archive's time are not content */
	l.entries[0].place = "pool/other.deb";
	l.date = "2026-11-21T08:30:00Z";
	l.tree = D1;
	world_lock_key(&l, "rules", other);
	assert_string_equal(first, other);
	world_lock_key(&l, "rules 2", other);
	assert_string_not_equal(first, other);
	l.entries[0].sha256 = D1;
	world_lock_key(&l, "rules", other);
	assert_string_not_equal(first, other);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "x.lock:1: expected a line of the kind 'ptbuild'"},
		{"ptbuild lock 2\n", "x.lock:1: not a lock of format 1: '2'"},
		{"ptbuild lock 1\r\n", "x.lock:1: a line with bytes that are not printable ASCII"},
		{"ptbuild lock 1\npart debian13 x86_64-linux\n",
		 "x.lock:3: expected a line of the kind 'asked'"},
		{"ptbuild lock 1\npart ../x x86_64-linux\n",
		 "x.lock:2: not a part and a platform: '../x'"},
		{HEAD "tree " D1, "x.lock:4: the lock ends within a line"},
		{HEAD "tree  " D1 "\n", "x.lock:4: an empty field"},
		{HEAD "tree " D1 "\ntree " D1 "\n", "x.lock:5: a line after the last one"},
		{HEAD "tree\n", "x.lock:4: not one sha256 after"},
		{HEAD DEB, "x.lock:4: a package in a lock without an archive: 'gcc-14'"},
		{HEAD ARCHIVE ARCHIVE, "x.lock:5: expected deb, wheel, file or tree"},
		{HEAD "archive debian trixie " D2 " yesterday\n", "x.lock:4: not a name, a suite"},
		{HEAD ARCHIVE DEB DEB, "x.lock:6: not in order, or there twice: 'gcc-14'"},
		{HEAD ARCHIVE DEB2 DEB, "x.lock:6: not in order"},
		{HEAD ARCHIVE WHEEL DEB, "x.lock:6: not in order"},
		{HEAD ARCHIVE "deb a 1 amd64 0 " D1 " a.deb\n", "x.lock:5: not a size: '0'"},
		{HEAD ARCHIVE "deb a 1 amd64 9999999999999 " D1 " a.deb\n", "x.lock:5: not a size"},
		{HEAD ARCHIVE "deb a 1 amd64 1 AB a.deb\n", "x.lock:5: not a sha256: 'AB'"},
		{HEAD ARCHIVE "deb a 1 amd64 1 " D1 " ../a.deb\n",
		 "x.lock:5: not a URL of that kind: '../a.deb'"},
		{HEAD ARCHIVE "deb a 1 amd64 1 " D1 " /a.deb\n", "x.lock:5: not a URL"},
		{HEAD ARCHIVE "deb -a 1 amd64 1 " D1 " a.deb\n", "x.lock:5: not a name: '-a'"},
		{HEAD ARCHIVE "deb a 1/2 amd64 1 " D1 " a.deb\n", "x.lock:5: not a version: '1/2'"},
		{HEAD "wheel a 1 1 " D1 " b/a.whl\n", "x.lock:4: not a URL"},
		{HEAD "wheel a 1 - " D1 " a.whl\n", "x.lock:4: not a size: '-'"},
		{HEAD "file a 1 1 " D1 " file:///etc/passwd\n", "x.lock:4: not a URL"},
		{HEAD "wheel a 1 1 " D1 " a.whl b\n",
		 "x.lock:4: the wrong number of fields for 'wheel'"},
		{HEAD "wheel a 1 1 " D1 " a.whl b c\n", "x.lock:4: too many fields"},
		{HEAD "wheel \xff 1 1 " D1 " a.whl\n", "x.lock:4: a line with bytes"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct world_lock l = {.part = "kept"};
		struct err e = {0};
		assert_int_equal(parse(cases[i].text, &a, &l, &e), -1);
		assert_int_equal(e.kind, ERR_CONFIG);
		if (strncmp(e.msg, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("case %zu: %s", i, e.msg);
		assert_null(strstr(e.msg, "''"));
		assert_string_equal(l.part, "kept");
	}
}

static void test_unreadable(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct world_lock l;
	struct err e = {0};

	(void)state;
	assert_int_equal(world_lock_read("/nowhere/x.lock", &a, &l, &e), -1);
	assert_int_equal(e.kind, ERR_CONFIG);
	assert_non_null(strstr(e.hint, "ptbuild's release"));
}

/* What one platform alone has of a base, apart from the names of its compilers. */
static bool of_one_platform(const char *name)
{
	static const char *const names[] = {"libhwasan0", "libpsm2-2", "libquadmath0", "libze1"};
	bool found = strstr(name, "x86-64-linux-gnu") || strstr(name, "aarch64-linux-gnu");

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		found = found || strcmp(name, names[i]) == 0;
	return found;
}

static void assert_within(const struct world_lock *l, const struct world_lock *other)
{
	for (size_t i = 0; i < l->count; i++) {
		bool found = l->entries[i].kind != WORLD_DEB || of_one_platform(l->entries[i].name);
		for (size_t j = 0; !found && j < other->count; j++)
			found = strcmp(l->entries[i].name, other->entries[j].name) == 0;
		if (!found)
			fail_msg("%s: only the lock for %s has '%s'", l->part, l->platform,
				 l->entries[i].name);
	}
}

/* A lock that something else than the resolver wrote has packages
 * that nothing asks for, and 'world lock' would remove them. */
static void test_bases_of_both_platforms(void **state)
{
	static const char *const bases[] = {"debian11", "debian12", "debian13", "debian13_lean"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct world_lock x86, arm;
		struct err e = {0};
		assert_ok(
			world_lock_read(world_lock_path(PROFILES_DIR, bases[i], "x86_64-linux", &a),
					&a, &x86, &e),
			&e);
		assert_ok(world_lock_read(
				  world_lock_path(PROFILES_DIR, bases[i], "aarch64-linux", &a), &a,
				  &arm, &e),
			  &e);
		assert_within(&x86, &arm);
		assert_within(&arm, &x86);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),      cmocka_unit_test(test_fields),
		cmocka_unit_test(test_key),        cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unreadable), cmocka_unit_test(test_bases_of_both_platforms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
