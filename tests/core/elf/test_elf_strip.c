#include "support.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include "core/elf/elf_strip.h"
#include "elf_files.h"

#define BIG "static const char big[200000] = {1, 2, 3}; const char *all(void) { return big; }\n"
enum { BOTH = ELF_STRIP_DEBUG | ELF_STRIP_SYMBOLS };

static struct elf_strip plan(struct elf_map *m, const char *path, unsigned what)
{
	struct err e = {0};
	struct elf_strip s;

	assert_ok(elf_map_open(path, m, &e), &e);
	assert_ok(elf_strip_plan(m, what, &arena, &s, &e), &e);
	return s;
}

static int prove(const char *before, const char *after, unsigned what, struct err *e)
{
	AUTO_ELF_MAP struct elf_map m = {0};
	AUTO_ELF_MAP struct elf_map n = {0};

	assert_ok(elf_map_open(before, &m, e), e);
	assert_ok(elf_map_open(after, &n, e), e);
	return elf_strip_prove(&m, &n, what, e);
}

static int prove_named(const char *before, const char *after, unsigned what, struct err *e)
{
	const char *path = arena_strdup(&arena, test_path("%s", before));
	return prove(path, test_path("%s", after), what, e);
}

/* Strips `path` into `to`, which other tools must read without a complaint. */
static struct elf_strip strip(const char *path, unsigned what, const char *name)
{
	const char *to = arena_strdup(&arena, test_path("%s", name));
	AUTO_ELF_MAP struct elf_map m = {0};
	struct err e = {0};
	struct elf_strip s = plan(&m, path, what);
	AUTO_FD int fd = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(s.count > 0);
	assert_ok(elf_strip_write(&s, fd, to, &e), &e);
	assert_ok(prove(path, to, what, &e), &e);
	must("readelf -Wa '%s' >out 2>&1 && ! grep -i warning out", to);
	return s;
}

static bool section_in(const char *path, const char *name)
{
	return shell("readelf -SW '%s' | grep -q ' %s '", path, name) == 0;
}

static uint64_t size_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(test_path("%s", path), &st), 0);
	return (uint64_t)st.st_size;
}

static void test_strip_removes_debug_and_symbols(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER BIG, SHARED "-g ");
	struct elf_strip s = strip(path, BOTH, "b.so");
	assert_true(s.debug > 0 && s.symbols > 0);
	assert_int_equal(size_of("b.so"), s.size);
	assert_false(section_in("b.so", ".debug_info") || section_in("b.so", ".symtab"));
	assert_true(section_in("b.so", ".dynsym"));
	must("cp liba.so c.so && strip c.so");
	assert_true(size_of("b.so") < size_of("c.so") + 4096);
	assert_int_equal(load("./b.so", "answer"), 42);
}

static void test_strip_debug_keeps_symbols_of_functions(void **state)
{
	(void)state;
	const char *path = compile("liba.so",
				   ANSWER "static int hidden(int i) { return i; }\n"
					  "int call(int i) { return hidden(i); }\n",
				   SHARED "-g -O0 ");
	strip(path, ELF_STRIP_DEBUG, "b.so");
	assert_false(section_in("b.so", ".debug_info"));
	must("nm liba.so | sort >one && nm b.so | sort >two && cmp one two && grep -q ' t hidden' "
	     "two");
	assert_int_equal(load("./b.so", "answer"), 42);
}

static void test_strip_symbols_keeps_debug(void **state)
{
	(void)state;
	strip(compile("liba.so", ANSWER, SHARED "-g "), ELF_STRIP_SYMBOLS, "b.so");
	assert_true(section_in("b.so", ".debug_info"));
	assert_false(section_in("b.so", ".symtab") || section_in("b.so", ".strtab"));
}

static void test_strip_program_still_runs(void **state)
{
	(void)state;
	strip(compile("prog", "int main(void) { return 7; }\n", "-g "), BOTH, "p");
	assert_int_equal(shell("./p"), 7);
}

/* patchelf and ptbuild itself put a segment behind the debug sections. */
static void test_strip_moves_segment_behind_debug(void **state)
{
	(void)state;
	struct err e = {0};
	const char *path = compile("liba.so", ANSWER BIG, SHARED "-g3 ");
	const char *rpath = "$ORIGIN/" DIGITS DIGITS DIGITS DIGITS;
	assert_ok(elf_change(path, &(struct elf_change){.rpath = rpath}, NULL, &e), &e);
	strip(path, BOTH, "b.so");
	assert_string_equal(read_info(test_path("b.so")).rpath, rpath);
	assert_true(size_of("b.so") < size_of("liba.so"));
	assert_int_equal(load("./b.so", "answer"), 42);
}

static void test_strip_again_changes_nothing(void **state)
{
	(void)state;
	AUTO_ELF_MAP struct elf_map m = {0};
	strip(compile("liba.so", ANSWER, SHARED "-g "), BOTH, "b.so");
	struct elf_strip s = plan(&m, test_path("b.so"), BOTH);
	assert_int_equal(s.count, 0);
	assert_null(s.left);
	assert_int_equal(s.size, size_of("b.so"));
}

static void test_strip_leaves_appended_bytes(void **state)
{
	(void)state;
	AUTO_ELF_MAP struct elf_map m = {0};
	const char *path = compile("liba.so", ANSWER, SHARED "-g ");
	must("printf payload >>liba.so");
	struct elf_strip s = plan(&m, path, BOTH);
	assert_int_equal(s.count, 0);
	assert_non_null(s.left);
}

static void test_strip_leaves_objects(void **state)
{
	(void)state;
	AUTO_ELF_MAP struct elf_map m = {0};
	assert_int_equal(plan(&m, compile("a.o", ANSWER, "-c -g "), BOTH).count, 0);
}

/* Relocations that the linker kept name symbols by number. */
static void test_strip_keeps_symbols_of_kept_relocations(void **state)
{
	(void)state;
	AUTO_ELF_MAP struct elf_map m = {0};
	const char *path = compile("liba.so", ANSWER BIG, SHARED "-Wl,--emit-relocs ");
	struct elf_strip s = plan(&m, path, BOTH);
	assert_int_equal(s.symbols, 0);
	assert_non_null(s.left);
}

static void test_strip_keeps_holes(void **state)
{
	(void)state;
	struct stat st;
	const char *path =
		compile("liba.so",
			"char zeros[4 << 20] __attribute__((section(\".data\"))) = {0};\n" ANSWER,
			SHARED "-g ");
	strip(path, BOTH, "b.so");
	assert_int_equal(stat(test_path("b.so"), &st), 0);
	assert_true(st.st_size > (4 << 20));
	/* A tmpfs gives pages to a hole that is read, and the proof reads all. */
	struct statfs fs;
	assert_int_equal(statfs(test_path("b.so"), &fs), 0);
	if (fs.f_type != TMPFS_MAGIC)
		assert_true(st.st_blocks * 512 < (1 << 20));
}

static void test_prove_finds_changed_bytes(void **state)
{
	(void)state;
	struct err e = {0};
	strip(compile("liba.so", ANSWER BIG, SHARED "-g "), BOTH, "b.so");
	const size_t text = 0x1000; /* of code */
	char *bytes = test_read(test_path("b.so")), other = (char)(bytes[text] ^ 1);
	free(bytes);
	put(test_path("b.so"), text, &other, 1);
	assert_true(prove_named("liba.so", "b.so", BOTH, &e) < 0);
	assert_int_equal(e.kind, ERR_INTEGRITY);
}

static void test_prove_finds_removed_kinds_not_asked_for(void **state)
{
	(void)state;
	struct err e = {0};
	strip(compile("liba.so", ANSWER, SHARED "-g "), BOTH, "b.so");
	assert_true(prove_named("liba.so", "b.so", ELF_STRIP_DEBUG, &e) < 0);
	assert_true(prove_named("liba.so", "b.so", ELF_STRIP_SYMBOLS, &e) < 0);
}

/* Whatever the headers say: an error, nothing to do, or a file that proves equal. */
static void test_strip_survives_damaged_headers(void **state)
{
	(void)state;
	size_t len;
	const char *path = compile("liba.so", ANSWER, SHARED "-g ");
	char *bytes = read_bytes(path, &len);
	const uint64_t table = ((const Elf64_Ehdr *)(const void *)bytes)->e_shoff;
	srand(60);
	for (int i = 0; i < 3000; i++) {
		AUTO_ELF_MAP struct elf_map m = {0};
		AUTO_ELF_MAP struct elf_map n = {0};
		AUTO_ARENA struct arena own = {0};
		struct err e = {0};
		struct elf_strip s;
		char *copy = arena_alloc(&own, len);
		memcpy(copy, bytes, len);
		for (int k = 0; k < 2; k++) {
			size_t at = rand() % 3 ? table + (size_t)rand() % (len - table)
					       : (size_t)rand() % 1000;
			copy[at] = (char)rand();
		}

		if (elf_map_memory(&(struct file_bytes){copy, len, "a"}, &m, &e) < 0 ||
		    elf_strip_plan(&m, BOTH, &own, &s, &e) < 0 || !s.count)
			continue;
		AUTO_FD int fd =
			open(test_path("b.so"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
		assert_ok(elf_strip_write(&s, fd, "b.so", &e), &e);
		if (elf_map_open(test_path("b.so"), &n, &e) == 0 &&
		    elf_strip_prove(&m, &n, BOTH, &e) == 0)
			assert_true(s.size <= len);
	}

	free(bytes);
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_strip_removes_debug_and_symbols),
		T(test_strip_debug_keeps_symbols_of_functions),
		T(test_strip_symbols_keeps_debug),
		T(test_strip_program_still_runs),
		T(test_strip_moves_segment_behind_debug),
		T(test_strip_again_changes_nothing),
		T(test_strip_leaves_appended_bytes),
		T(test_strip_leaves_objects),
		T(test_strip_keeps_symbols_of_kept_relocations),
		T(test_strip_keeps_holes),
		T(test_prove_finds_changed_bytes),
		T(test_prove_finds_removed_kinds_not_asked_for),
		T(test_strip_survives_damaged_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
