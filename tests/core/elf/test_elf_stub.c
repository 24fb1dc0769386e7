#include "support.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "elf_files.h"

#include "core/elf/elf.h"
#include "core/elf/elf_map.h"

#ifdef __aarch64__
#define HOST EM_AARCH64
#else
#define HOST EM_X86_64
#endif

static int setup(void **state)
{
	(void)state;
	test_dir();
	return 0;
}

static struct strlist functions_of(const char *words)
{
	struct strlist l = {0};
	strlist_split(&l, &arena, words, " ");
	return l;
}

/* Writes a stub and gives its path. */
static const char *stub(unsigned machine, const struct strlist *functions)
{
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	const char *path = test_path("libx.so");

	buf_addstr(&out, "before"); /* what is there already has no part in it */
	assert_ok(
		elf_stub_put(&(struct elf_stub){machine, "libx.so.1", functions, 0x1234}, &out, &e),
		&e);
	test_write_bytes(path, out.data + 6, out.len - 6);
	return arena_strdup(&arena, path);
}

static void it_is_a_library_of_its_machine(void **state)
{
	const unsigned machines[] = {EM_X86_64, EM_AARCH64};
	struct strlist l = functions_of("xOne xThree xTwo");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		AUTO_ELF_MAP struct elf_map m = {0};
		struct err e = {0};
		const char *path = stub(machines[i], &l);
		struct elf_info info = read_info(path);
		assert_int_equal(info.machine, machines[i]);
		assert_int_equal(info.type, ET_DYN);
		assert_string_equal(info.soname, "libx.so.1");
		assert_int_equal(info.needed.count + info.undefined.count, 0);
		assert_false(info.exec_stack || info.textrel);
		assert_int_equal(info.defined.count, 3);
		for (size_t k = 0; k < l.count; k++)
			assert_true(strlist_contains(&info.defined, l.items[k]));
		assert_ok(elf_map_open(path, &m, &e), &e);
		assert_ok(elf_map_loadable(&m, &e), &e);
	}
}

/* What goes wrong with a thousand names, or none, is not seen with three. */
static void every_name_is_found_by_the_loader(void **state)
{
	struct strlist l = {0};

	(void)state;
	stub(HOST, &l);
	for (int i = 0; i < 1000; i++)
		strlist_addf(&l, &arena, "xName%d_v2_ptsz", i * 7919);
	void *lib = dlopen(stub(HOST, &l), RTLD_NOW);
	if (!lib)
		fail_msg("%s", dlerror());
	for (size_t i = 0; i < l.count; i++) {
		int (*f)(void) = (int (*)(void))dlsym(lib, l.items[i]);
		assert_non_null(f);
		assert_int_equal(f(), 0x1234);
	}

	assert_null(dlsym(lib, "xName"));
	dlclose(lib);
}

static void linkers_take_it(void **state)
{
	struct strlist l = functions_of("xOne xTwo");

	(void)state;
	stub(HOST, &l);
	struct elf_info info = read_info(
		compile("libuse.so",
			"int xOne(void); int xTwo(void); int use(void) { return xOne() + xTwo(); }",
			SHARED "-Wl,-z,defs libx.so"));
	assert_true(strlist_contains(&info.needed, "libx.so.1"));
	assert_true(strlist_contains(&info.undefined, "xOne") &&
		    strlist_contains(&info.undefined, "xTwo"));
	test_write(test_path("miss.c"), "int xThree(void); int miss(void) { return xThree(); }");
	assert_int_not_equal(
		system(arena_printf(
			&arena,
			"cd %s && gcc -shared -fPIC -Wl,-z,defs miss.c libx.so -o miss.so "
			"2>/dev/null",
			test_path("."))),
		0);
}

static void same_request_same_bytes(void **state)
{
	struct strlist l = functions_of("xOne xTwo");
	AUTO_BUF struct buf a = {0}, AUTO_BUF b = {0};
	struct err e = {0};
	const struct elf_stub s = {EM_AARCH64, "libx.so.1", &l, 34};

	(void)state;
	assert_ok(elf_stub_put(&s, &a, &e), &e);
	assert_ok(elf_stub_put(&s, &b, &e), &e);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
}

static void what_cannot_be_made_is_refused(void **state)
{
	struct strlist none = {0}, many = {0};
	AUTO_BUF struct buf out = {0};
	struct err e = {0};

	(void)state;
	assert_err(elf_stub_put(&(struct elf_stub){EM_S390, "libx.so.1", &none, 0}, &out, &e), &e,
		   ERR_CONFIG, "machine 22");
	for (int i = 0; i < 600000; i++)
		strlist_ref(&many, &arena, "x");
	assert_err(elf_stub_put(&(struct elf_stub){EM_X86_64, "libx.so.1", &many, 0}, &out, &e), &e,
		   ERR_INTEGRITY, "more than 16 MiB");
	assert_int_equal(out.len, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(it_is_a_library_of_its_machine),
		T(every_name_is_found_by_the_loader),
		T(linkers_take_it),
		T(same_request_same_bytes),
		T(what_cannot_be_made_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
