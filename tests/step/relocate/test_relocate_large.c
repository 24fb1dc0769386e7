/* A library of more than two gigabytes, most of it a hole:
 * what relocation costs for one that was linked for it. */
#include "support.h"

#include "compile.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "shipped.h"
#include "step/relocate/relocate.h"

#define SIZE (INT64_C(2300) << 20)
#define TOKEN                                                                                      \
	"/ptbuild/rpath/"                                                                          \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
	"890123456789"
#define LIB "root/usr/lib/"

static struct arena arena;

/* Memory of its own in KiB, without what is mapped of files. */
static long own_memory(void)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	}

	fclose(f);
	assert_true(kib > 0);
	return kib;
}

static void make_world(void)
{
	test_dir();
	must("mkdir -p root/usr/bin root/etc tree " LIB);
	test_write(test_path("root/etc/ld.so.conf"), "/usr/lib\n");
	compile(LIB "libblas.so.0", "int blas(void) { return 40; }",
		"-shared -fPIC -s -Wl,-soname,libblas.so.0");
	compile("tree/pkg/lib/libhuge.so", "int blas(void); int run(void) { return blas() + 2; }",
		"-shared -fPIC -s -Wl,--disable-new-dtags,-rpath," TOKEN " " LIB "libblas.so.0");
	assert_int_equal(truncate(test_path("tree/pkg/lib/libhuge.so"), SIZE), 0);
}

static void relocate(struct relocate_result *ret)
{
	static struct root root;
	struct err e = {0};

	root = (struct root){.dir = arena_strdup(&arena, test_path("root")), .id = "test 1"};
	struct relocate_request q = {.run = test_run(),
				     .tree = arena_strdup(&arena, test_path("tree")),
				     .root = &root,
				     .libs_dir = "pkg/lib",
				     .policy = &shipped_tables(&arena)->manylinux};
	assert_ok(relocate_tree(&q, &arena, ret, &e), &e);
}

static void nothing_is_copied(void **state)
{
	(void)state;
	struct stat before, after;
	struct relocate_result r;
	make_world();
	const char *path = arena_strdup(&arena, test_path("tree/pkg/lib/libhuge.so"));
	assert_int_equal(stat(path, &before), 0);
	long memory = own_memory();
	relocate(&r);
	assert_in_range(own_memory() - memory + (16 << 10), 0, 64 << 10);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, SIZE);
	assert_int_equal(before.st_ino, after.st_ino);
	/* the hole is still one */
	assert_in_range(after.st_blocks, 0, before.st_blocks + 64);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.stripped, 0);
	struct elf_info info;
	struct err e = {0};
	assert_ok(elf_read(path, &arena, &info, &e), &e);
	assert_string_equal(info.rpath, "$ORIGIN");
	assert_string_equal(info.needed.items[0], path_base(r.libraries[0].file));
	assert_int_equal(load("tree/pkg/lib/libhuge.so", "run"), 42);
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(nothing_is_copied, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
