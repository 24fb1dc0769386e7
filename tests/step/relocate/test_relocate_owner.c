/* Whose the libraries are that a wheel takes along. A build may name any search path. */
#include "elf_files.h"

#include "shipped.h"
#include "step/relocate/relocate.h"

static struct arena rows;
static struct root root;
static struct relocate_request request;
static struct relocate_result result;

static int setup(void **state)
{
	(void)state;
	test_dir();
	arena_release(&rows);
	must("mkdir -p root/usr/bin root/usr/lib/part root/opt/x tree/pkg");
	root = (struct root){.dir = arena_strdup(&arena, test_path("root")), .id = "test 1"};
	request = (struct relocate_request){.run = test_run(),
					    .tree = arena_strdup(&arena, test_path("tree")),
					    .root = &root,
					    .libs_dir = "pkg/lib",
					    .policy = &shipped_tables(&rows)->manylinux};
	return 0;
}

/* use: the wheel's library needs the one in `dir` of the root, and searches there. */
static void use(const char *dir)
{
	const char *library = arena_printf(&arena, "root%s/libx.so.1", dir);

	compile(library, "int x(void) { return 2; }", SHARED "-Wl,-soname,libx.so.1");
	compile("tree/pkg/_C.so", "int x(void); int run(void) { return x(); }",
		arena_printf(&arena, SHARED "-Wl,--disable-new-dtags,-rpath,%s:" TOKEN " %s", dir,
			     library));
}

static void owned(const char *path)
{
	test_write(test_path("root/var/lib/dpkg/info/x.list"), path);
	test_write(test_path("root/var/lib/dpkg/status"),
		   "Package: x\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\n");
}

static void assert_refused(const char *words)
{
	struct err e = {0};
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_POLICY, words);
	assert_contains(e.hint, "--without-protection packages");
}

static void assert_taken(const char *package)
{
	struct err e = {0};

	assert_ok(relocate_tree(&request, &arena, &result, &e), &e);
	assert_int_equal(result.count, 1);
	assert_string_equal(result.libraries[0].package, package);
}

static void of_a_package(void **state)
{
	(void)state;
	use("/opt/x");
	owned("/opt/x/libx.so.1\n");
	assert_taken("x=1");
}

static void of_no_package(void **state)
{
	(void)state;
	use("/usr/lib/part");
	owned("/opt/x/libx.so.1\n");
	assert_refused("belongs to no package");
	request.any_library = true;
	assert_taken("");
}

static void without_a_list_the_directory_counts(void **state)
{
	(void)state;
	use("/usr/lib/part");
	assert_taken("");
}

static void without_a_list_elsewhere(void **state)
{
	(void)state;
	use("/opt/x");
	assert_refused("is in no library directory");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(of_a_package),
		T(of_no_package),
		T(without_a_list_the_directory_counts),
		T(without_a_list_elsewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
