/* The tables of parts: those of the repository, what they give, and what is refused. */
#include "support.h"

#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/world/world.h"

#define BASE                                                                                       \
	"sources: read\npart: small\nkind: base\nsuite: trixie\ncomponents: [main]\npython: "      \
	"\"3.13\"\nglibc: "                                                                        \
	"\"2.41\"\npackages: [gcc, g++]\n"

static int load(const char *text, struct arena *a, const struct world_part **ret, struct err *e)
{
	const char *dir = arena_strdup(a, test_dir());
	test_write(test_path("worlds/small.yaml"), text);
	return world_part_load(dir, "small", a, ret, e);
}

/* Each part has its lock, made from what the part asks
 * for now, and none for a platform that it is not for. */
static void test_repository(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	struct err e = {0};

	(void)state;
	assert_ok(world_part_names(PROFILES_DIR, &a, &names, &e), &e);
	assert_true(strlist_contains(&names, "debian13"));
	for (size_t i = 0; i < names.count; i++) {
		const struct world_part *p;
		struct world_lock l;
		char asked[65];
		assert_ok(world_part_load(PROFILES_DIR, names.items[i], &a, &p, &e), &e);
		assert_ok(
			world_lock_read(world_lock_path(PROFILES_DIR, p->part, "x86_64-linux", &a),
					&a, &l, &e),
			&e);
		world_part_asked(p, asked);
		assert_string_equal(l.asked, asked);
		assert_string_equal(l.part, p->part);
		if (world_part_check_platform(p, "aarch64-linux", &e) < 0)
			assert_false(fs_exists(TRUSTED, world_lock_path(PROFILES_DIR, p->part,
									"aarch64-linux", &a)));
		err_clear(&e);
	}
}

static void test_digests(void **state)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf rules = {0}, AUTO_BUF other = {0};
	const struct world_part *p;
	struct err e = {0};
	char first[65], second[65];

	(void)state;
	assert_ok(load(BASE, &a, &p, &e), &e);
	assert_string_equal(p->prefix, "");
	world_part_asked(p, first);
	world_part_rules(p, &rules);
	/* the order of packages is for people */
	assert_ok(load("# x\n" BASE "exclude: [\"usr/share/man/*\"]\nkeep: [\"*/copyright\"]\n", &a,
		       &p, &e),
		  &e);
	world_part_asked(p, second);
	world_part_rules(p, &other);
	assert_string_equal(first, second);
	assert_string_not_equal(buf_cstr(&rules), buf_cstr(&other));
	assert_true(world_part_excludes(p, "usr/share/man/de/man1/x.1", false));
	assert_false(world_part_excludes(p, "usr/share/man/copyright", false));
	assert_false(world_part_excludes(p, "usr/bin/gcc", false));
	assert_string_equal(world_part_path("usr/lib/@/x", "aarch64-linux", &a),
			    "usr/lib/aarch64-linux-gnu/x");
	assert_string_equal(world_debian_arch("aarch64-linux"), "arm64");
	assert_null(world_debian_arch("x86_64-darwin"));
}

static void key_of(const struct world_part *p, struct buf *out)
{
	char asked[65];

	world_part_asked(p, asked);
	buf_addstr(out, asked);
	world_part_rules(p, out);
	/* how long builds take is in no key, but in each plan */
	for (unsigned i = 0; i < p->slower_count; i++) {
		const struct world_slower *s = &p->slower[i];
		buf_printf(out, "%s %u %u\n", s->compilers, s->percent, s->seconds);
	}
	/* in the key of the tree with a toolkit, whose piece has them as places */
	for (unsigned i = 0; i < p->programs_count; i++)
		buf_printf(out, "%s %s\n", p->programs[i].wheel, p->programs[i].to);
}

/* Without any one of its lines a shipped table asks for something else, is unpacked
 * otherwise, or is refused. What its platforms are is in no key: the lock has its own. */
static void every_line_counts(const char *part)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FREE char *text = test_read(arena_printf(&a, "%s/worlds/%s.yaml", PROFILES_DIR, part));
	AUTO_BUF struct buf whole = {0};
	const struct world_part *p;
	struct err e = {0};
	const char *dir = arena_strdup(&a, test_dir());

	assert_ok(world_part_load(PROFILES_DIR, part, &a, &p, &e), &e);
	key_of(p, &whole);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		AUTO_BUF struct buf changed = {0}, AUTO_BUF key = {0};
		size_t len = strcspn(line, "\n"), indent = strspn(line, " ");
		if (line[indent] == '#' || strncmp(line, "sources:", 8) == 0 ||
		    strncmp(line, "platforms:", 10) == 0 || (indent == 2 && line[2] != '-'))
			continue;
		buf_add(&changed, text, (size_t)(line - text));
		buf_addstr(&changed, line + len + 1);
		test_write(test_path("worlds/part.yaml"), buf_cstr(&changed));
		assert_int_equal(rename(test_path("worlds/part.yaml"),
					arena_printf(&a, "%s/worlds/%s.yaml", dir, part)),
				 0);
		if (world_part_load(dir, part, &a, &p, &e) < 0) {
			assert_int_equal(e.kind, ERR_CONFIG);
			continue;
		}

		key_of(p, &key);
		if (strcmp(buf_cstr(&key), buf_cstr(&whole)) == 0)
			fail_msg("'%.*s' of %s counts for nothing", (int)len, line, part);
	}
}

static void test_every_line_counts(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	struct err e = {0};

	(void)state;
	assert_ok(world_part_names(PROFILES_DIR, &a, &names, &e), &e);
	for (size_t i = 0; i < names.count; i++)
		every_line_counts(names.items[i]);
}

/* What a part asks for beside packages and wheels is in its digest. */
static void test_archives(void **state)
{
	static const char toolkit[] =
		"sources: x\npart: small\nkind: toolkit\nprefix: usr/local/cuda\n";
	static const char python[] =
		"sources: x\npart: small\nkind: python\nprefix: usr/local\npython: \"3.12\"\n"
		"archives: [cpython==3.12.7+20241008]\n";
	static const char *const more[] = {
		"", "manifest: https://x/a.json\narchives: [cuda_nvcc]\n",
		"manifest: https://x/b.json\narchives: [cuda_nvcc]\n",
		"manifest: https://x/a.json\narchives: [cuda_nvcc, libcublas]\n"};
	char digests[ARRAY_LEN(more)][65];
	AUTO_ARENA struct arena a = {0};
	const struct world_part *p;
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		assert_ok(load(arena_printf(&a, "%s%s", toolkit, more[i]), &a, &p, &e), &e);
		world_part_asked(p, digests[i]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(digests[i], digests[j]);
	}

	assert_string_equal(p->manifest, "https://x/a.json");
	assert_int_equal(p->archives_count, 2);
	assert_ok(load(python, &a, &p, &e), &e);
	assert_string_equal(p->python, "3.12");
	assert_string_equal(p->archives[0], "cpython==3.12.7+20241008");
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{BASE "colour: red\n", "small.yaml:9: "},
		{"sources: x\npart: other\nkind: base\n",
		 "small.yaml:2: the file has another name than its part"},
		{"sources: x\npart: small\nkind: planet\n",
		 "small.yaml:3: neither base, toolkit, python, library nor cross: 'planet'"},
		{"sources: x\npart: small\nkind: base\n", "a base has packages, python and glibc"},
		{"sources: x\npart: small\nkind: toolkit\nprefix: ../x\n",
		 "small.yaml:4: not a path below the root"},
		{BASE "prefix: usr/local/cuda\n", "small.yaml:9: a base has no prefix"},
		{"sources: x\npart: small\nkind: python\nprefix: usr/local\narchives: [a==1]\n",
		 "a python has its version, one archive and nothing else"},
		{"sources: x\npart: small\nkind: python\nprefix: usr/local\npython: "
		 "\"3.12\"\narchives: [a==1]\n"
		 "wheels: [b==1]\n",
		 "a python has its version, one archive and nothing else"},
		{"sources: x\npart: small\nkind: python\npython: \"3.12\"\narchives: [a==1]\n",
		 "not a path below"},
		{"sources: x\npart: small\nkind: toolkit\nprefix: usr/x\narchives: [a]\n",
		 "a manifest and archives come together"},
		{"sources: x\npart: small\nkind: toolkit\nprefix: usr/x\nmanifest: "
		 "ftp://x/y\narchives: [a]\n",
		 "small.yaml:5: not a URL: 'ftp://x/y'"},
		{BASE "wheels: [a==1]\n", "small.yaml:9: a wheel without an install path: 'a==1'"},
		{BASE "wheels: [a==1]\nplaces:\n  - {wheel: b, from: b, to: usr}\n  - {wheel: a, "
		      "from: a, to: usr}\n",
		 "small.yaml:11: an install path for what is not a wheel of this part: 'b'"},
		{BASE "wheels: [a==1]\nplaces:\n  - {wheel: a, from: a, to: usr}\n  - {wheel: a, "
		      "from: a, to: opt}\n",
		 "small.yaml:12: there twice: 'a'"},
		{BASE "wheels: [a==1]\nplaces:\n  - {wheel: a, from: ../a, to: usr}\n",
		 "not a directory of a wheel: '../a'"},
		{BASE "wheels: [a==1]\nplaces:\n  - {wheel: a, from: ., to: /usr}\n",
		 "not a path below the root: '/usr'"},
		{"sources: x\npart: small\nkind: toolkit\nprefix: usr/x\nwheels: [a==1]\nplaces:\n"
		 "  - {wheel: b, from: ., to: usr}\n",
		 "small.yaml:7: an install path for what is not a wheel of this part: 'b'"},
		{"sources: x\npart: small\nkind: library\nprefix: usr/x\n",
		 "a library has wheels or packages and nothing else"},
		{"sources: x\npart: small\nkind: library\nwheels: [a==1]\n",
		 "not a path below the root: ''"},
		{"sources: x\npart: small\nkind: library\nprefix: usr/x\nwheels: [a==1]\n",
		 "small.yaml:5: a wheel without an install path: 'a==1'"},
		{"sources: x\npart: small\nkind: library\nprefix: usr/x\npython: \"3.12\"\nwheels: "
		 "[a==1]\n",
		 "a library has wheels or packages and nothing else"},
		{BASE "platforms: [x86_64-linux, sparc-linux]\n",
		 "small.yaml:9: not a platform of worlds: 'sparc-linux'"},
		{BASE "wheels: [\"a b\"]\n", "small.yaml:9: not a name: 'a b'"},
		{BASE "wheels: [a==1, a==1]\n", "there twice: 'a==1'"},
		{BASE "links:\n  - {path: usr/bin/cc, to: /usr/bin/gcc, why: x}\n",
		 "small.yaml:10: not a relative target: '/usr/bin/gcc'"},
		{BASE "links:\n  - {path: usr/bin/cc, to: ../../../gcc, why: x}\n",
		 "not a relative target"},
		{BASE "links:\n  - {path: ../cc, to: gcc, why: x}\n",
		 "small.yaml:10: not a path below the root"},
		{BASE "made:\n  - {path: etc/x, kind: run, from: usr/x, why: x}\n",
		 "neither copy nor join: 'run'"},
		{BASE "made:\n  - {path: etc/x, kind: copy, from: /usr/x, why: x}\n",
		 "not paths below the root"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		const struct world_part *p = NULL;
		struct err e = {0};
		assert_err(load(cases[i].text, &a, &p, &e), &e, ERR_CONFIG, cases[i].says);
		assert_null(p);
	}

	AUTO_ARENA struct arena a = {0};
	const struct world_part *p;
	struct err e = {0};
	assert_err(world_part_load(PROFILES_DIR, "debian133", &a, &p, &e), &e, ERR_CONFIG,
		   "unknown part");
	assert_contains(e.hint, "did you mean 'debian13'?");
	assert_err(world_part_load(PROFILES_DIR, "../releases/2.9.1", &a, &p, &e), &e, ERR_CONFIG,
		   "unknown part");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_repository, test_teardown),
		cmocka_unit_test_teardown(test_digests, test_teardown),
		cmocka_unit_test_teardown(test_every_line_counts, test_teardown),
		cmocka_unit_test_teardown(test_archives, test_teardown),
		cmocka_unit_test_teardown(test_refused, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
