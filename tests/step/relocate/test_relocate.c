#include "support.h"

#include "compile.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/elf/elf.h"
#include "shipped.h"
#include "step/relocate/relocate.h"

#define LIB "root/usr/lib/x86_64-linux-gnu/"
#define TOKEN                                                                                      \
	"/ptbuild/rpath/"                                                                          \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
	"890123456789"
#define SHARED "-shared -fPIC "
#define PLACEHOLDER "-Wl,--disable-new-dtags,-rpath," TOKEN " "

static struct arena arena;
static const struct manylinux_policy *policy;
static struct root root;
static struct relocate_request request;
static struct relocate_result result;

static int load_table(void **state)
{
	(void)state;
	static struct arena table;
	policy = &shipped_tables(&table)->manylinux;
	*state = &table;
	return 0;
}

static int release_table(void **state)
{
	arena_release(*state);
	return 0;
}

/* A root with what a distribution's has: a loader configuration, and libblas.so.0 as
 * a chain of absolute links through alternatives, which needs a library of its own. */
static int setup(void **state)
{
	(void)state;
	test_dir();
	must("mkdir -p root/usr/bin root/etc/alternatives tree " LIB
	     "blas && ln -s usr/lib root/lib");
	test_write(test_path("root/etc/ld.so.conf"), "/usr/lib/x86_64-linux-gnu\n");
	root = (struct root){.dir = arena_strdup(&arena, test_path("root")), .id = "test 1"};
	request = (struct relocate_request){.run = test_run(),
					    .tree = arena_strdup(&arena, test_path("tree")),
					    .root = &root,
					    .libs_dir = "pkg/lib",
					    .policy = policy};
	result = (struct relocate_result){0};
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void fill_root(void)
{
	compile(LIB "libquad.so.0", "int quad(void) { return 4; }",
		SHARED "-s -Wl,-soname,libquad.so.0");
	test_write(test_path("map"), "BLAS_1 { global: blas; local: *; };");
	compile(LIB "blas/libblasp.so", "int quad(void); int blas(void) { return 10 * quad(); }",
		SHARED "-s -Wl,-soname,libblas.so.0,--version-script,map " LIB "libquad.so.0");
	must("ln -s /etc/alternatives/blas " LIB
	     "libblas.so.0; ln -s /usr/lib/x86_64-linux-gnu/blas/libblasp.so "
	     "root/etc/alternatives/blas");
}

/* pkg/_C.so needs pkg/lib/libcore.so needs libblas.so.0 of the root. */
static void fill_tree(void)
{
	fill_root();
	compile("tree/pkg/lib/libcore.so",
		"#include <stdlib.h>\nint blas(void); int core(void) { return "
		"atoi(getenv(\"NONE\") ? \"1\" : \"0\") + "
		"blas() + 1; }",
		SHARED PLACEHOLDER "-Wl,-soname,libcore.so " LIB
				   "blas/libblasp.so -Wl,--allow-shlib-undefined");
	compile("tree/pkg/_C.so", "int core(void); int run(void) { return core() + 1; }",
		SHARED PLACEHOLDER "tree/pkg/lib/libcore.so");
	compile("tree/pkg/bin/tool", "int core(void); int main(void) { return core() + 2; }",
		PLACEHOLDER "tree/pkg/lib/libcore.so -Wl,--allow-shlib-undefined");
}

static void relocate(void)
{
	struct err e = {0};
	assert_ok(relocate_tree(&request, &arena, &result, &e), &e);
}

static const char *rpath_of(const char *rel)
{
	struct err e = {0};
	struct elf_info i;

	assert_ok(elf_read(test_path("tree/%s", rel), &arena, &i, &e), &e);
	assert_null(i.runpath);
	return i.rpath ? i.rpath : "";
}

static struct elf_info info_of(const char *path)
{
	struct err e = {0};
	struct elf_info i;

	assert_ok(elf_read_all(path, &arena, &i, &e), &e);
	return i;
}

static const struct wheel_vendored *library(const char *needed)
{
	for (size_t i = 0; i < result.count; i++) {
		if (strcmp(result.libraries[i].needed, needed) == 0)
			return &result.libraries[i];
	}

	fail_msg("'%s' is not vendored", needed);
	return NULL;
}

static bool in_tree(const char *rel)
{
	return access(test_path("tree/%s", rel), F_OK) == 0;
}

static void tree_digest(char out[DIGEST_HEX_LEN + 1])
{
	struct err e = {0};
	must("find tree -type f | LC_ALL=C sort | xargs -r sha256sum > digest");
	assert_ok(digest_file(test_path("digest"), out, &e), &e);
}

static void wheel_works_after_a_move(void **state)
{
	(void)state;
	fill_tree();
	assert_int_equal(load("tree/pkg/_C.so", "run"), -1);
	relocate();
	must("mkdir -p else/where && mv tree else/where/site && mv root gone");
	assert_int_equal(load("else/where/site/pkg/_C.so", "run"), 42);
	assert_int_equal(shell("else/where/site/pkg/bin/tool"), 43);
}

static void vendored_libraries_are_reported(void **state)
{
	(void)state;
	struct err e = {0};
	char sha256[DIGEST_HEX_LEN + 1];
	fill_tree();
	relocate();
	assert_int_equal(result.count, 2);
	const struct wheel_vendored *l = library("libblas.so.0");
	assert_ok(digest_file(test_path(LIB "blas/libblasp.so"), sha256, &e), &e);
	assert_string_equal(l->sha256, sha256);
	assert_string_equal(l->source, "/usr/lib/x86_64-linux-gnu/blas/libblasp.so");
	assert_string_equal(path_base(l->file), arena_printf(&arena, "libblas-%.8s.so.0", sha256));
	assert_string_equal(l->package, "");
	assert_true(in_tree(l->file));
	assert_string_equal(library("libquad.so.0")->source,
			    "/usr/lib/x86_64-linux-gnu/libquad.so.0");
	assert_int_equal(result.elf_files, 5);
}

static void names_follow_the_digest(void **state)
{
	(void)state;
	fill_tree();
	relocate();
	const char *blas = path_base(library("libblas.so.0")->file),
		   *quad = path_base(library("libquad.so.0")->file);
	struct elf_info core = info_of(test_path("tree/pkg/lib/libcore.so")),
			lib = info_of(test_path("tree/pkg/lib/%s", blas));
	assert_true(strlist_contains(&core.needed, blas));
	assert_false(strlist_contains(&core.needed, "libblas.so.0"));
	assert_true(strlist_contains(&core.undefined, "blas@BLAS_1"));
	for (size_t i = 0; i < core.versions_count; i++)
		assert_string_not_equal(core.versions[i].file, "libblas.so.0");
	assert_string_equal(lib.soname, blas);
	assert_true(strlist_contains(&lib.needed, quad));
}

static void allowed_libraries_stay_outside(void **state)
{
	(void)state;
	fill_tree();
	relocate();
	struct elf_info core = info_of(test_path("tree/pkg/lib/libcore.so"));
	assert_true(strlist_contains(&core.needed, "libc.so.6"));
	for (size_t i = 0; i < result.count; i++)
		assert_string_not_equal(result.libraries[i].needed, "libc.so.6");
}

static void paths_are_relative_to_each_file(void **state)
{
	(void)state;
	fill_tree();
	relocate();
	assert_string_equal(rpath_of("pkg/_C.so"), "$ORIGIN/lib");
	assert_string_equal(rpath_of("pkg/lib/libcore.so"), "$ORIGIN");
	assert_string_equal(rpath_of("pkg/bin/tool"), "$ORIGIN/../lib");
	assert_string_equal(rpath_of(arena_printf(&arena, "pkg/lib/%s",
						  path_base(library("libblas.so.0")->file))),
			    "$ORIGIN");
	assert_string_equal(rpath_of(arena_printf(&arena, "pkg/lib/%s",
						  path_base(library("libquad.so.0")->file))),
			    "");
}

static void placeholders_are_edited_in_place(void **state)
{
	(void)state;
	fill_tree();
	relocate();
	/* _C.so, tool and libcore.so; not libquad.so.0, whose new name has no room. */
	assert_int_equal(result.in_place, 3);
}

static void libraries_may_go_beside_the_package(void **state)
{
	(void)state;
	fill_tree();
	request.libs_dir = "pkg.libs";
	relocate();
	assert_string_equal(rpath_of("pkg/lib/libcore.so"), "$ORIGIN/../../pkg.libs");
	assert_string_equal(rpath_of("pkg/_C.so"), "$ORIGIN/lib");
	assert_true(in_tree(library("libblas.so.0")->file));
	must("mv tree moved && mv root gone");
	assert_int_equal(load("moved/pkg/_C.so", "run"), 42);
}

/* As torchvision beside torch: one library vendored, one of the neighbour's. */
static void provided_libraries_come_from_the_neighbour(void **state)
{
	(void)state;
	fill_root();
	compile("site/torch/lib/libtorch.so", "int torch(void) { return 2; }",
		SHARED "-Wl,-soname,libtorch.so");
	compile("tree/vision/_C.so",
		"int torch(void); int quad(void); int run(void) { return torch() + quad(); }",
		SHARED PLACEHOLDER "site/torch/lib/libtorch.so " LIB "libquad.so.0");
	request.libs_dir = "vision.libs";
	strlist_add(&request.provided, &arena, "libtorch.so");
	strlist_add(&request.runtime_dirs, &arena, "torch/lib");
	strlist_add(&request.runtime_dirs, &arena, "nvidia/cublas/lib");
	relocate();
	assert_int_equal(result.count, 1);
	assert_string_equal(
		rpath_of("vision/_C.so"),
		"$ORIGIN/../vision.libs:$ORIGIN/../torch/lib:$ORIGIN/../nvidia/cublas/lib");
	must("mv tree/* site && mv root gone");
	assert_int_equal(load("site/vision/_C.so", "run"), 6);
}

static void provided_takes_patterns(void **state)
{
	(void)state;
	compile("libcublas.so.12", "int cublas(void) { return 2; }",
		SHARED "-Wl,-soname,libcublas.so.12");
	compile("tree/pkg/_C.so", "int cublas(void); int run(void) { return cublas(); }",
		SHARED PLACEHOLDER "./libcublas.so.12");
	strlist_add(&request.provided, &arena, "libcublas.so.*");
	strlist_add(&request.runtime_dirs, &arena, "nvidia/cublas/lib");
	relocate();
	assert_int_equal(result.count, 0);
	assert_string_equal(rpath_of("pkg/_C.so"), "$ORIGIN/../nvidia/cublas/lib");
	assert_false(in_tree("pkg/lib"));
}

static void runtime_directories_only_where_needed(void **state)
{
	(void)state;
	fill_tree();
	strlist_add(&request.provided, &arena, "libtorch.so");
	strlist_add(&request.runtime_dirs, &arena, "torch/lib");
	relocate();
	assert_string_equal(rpath_of("pkg/_C.so"), "$ORIGIN/lib");
}

static void driver_libraries_are_never_taken(void **state)
{
	(void)state;
	compile(LIB "libcuda.so.1", "int cuda(void) { return 2; }",
		SHARED "-Wl,-soname,libcuda.so.1");
	compile("tree/pkg/_C.so", "int cuda(void); int run(void) { return cuda(); }",
		SHARED PLACEHOLDER LIB "libcuda.so.1");
	strlist_add(&request.never, &arena, "libcuda.so.*");
	relocate();
	assert_int_equal(result.count, 0);
	assert_string_equal(rpath_of("pkg/_C.so"), "");
	struct elf_info i = info_of(test_path("tree/pkg/_C.so"));
	assert_true(strlist_contains(&i.needed, "libcuda.so.1"));
}

static void names_can_be_kept(void **state)
{
	(void)state;
	fill_tree();
	strlist_add(&request.keep_names, &arena, "libquad.so.0");
	relocate();
	assert_string_equal(path_base(library("libquad.so.0")->file), "libquad.so.0");
	assert_true(in_tree("pkg/lib/libquad.so.0"));
	must("mv tree moved && mv root gone");
	assert_int_equal(load("moved/pkg/_C.so", "run"), 42);
}

static void no_path_where_nothing_is_needed(void **state)
{
	(void)state;
	compile("tree/pkg/_C.so", "int run(void) { return 9; }", SHARED PLACEHOLDER);
	relocate();
	assert_string_equal(rpath_of("pkg/_C.so"), "");
	assert_int_equal(result.in_place, 1);
	assert_int_equal(load("tree/pkg/_C.so", "run"), 9);
}

static void missing_library_changes_nothing(void **state)
{
	(void)state;
	struct err e;
	char before[DIGEST_HEX_LEN + 1], after[DIGEST_HEX_LEN + 1];
	fill_tree();
	must("rm " LIB "libquad.so.0");
	tree_digest(before);
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_POLICY,
		   "needs 'libquad.so.0'");
	assert_contains(e.msg, "'pkg/lib/libblas-");
	assert_contains(e.hint, "install");
	tree_digest(after);
	assert_string_equal(before, after);
	assert_int_equal(result.elf_files, 0);
}

static void link_out_of_the_root_is_not_followed(void **state)
{
	(void)state;
	struct err e;
	fill_root();
	compile("outside/libout.so.1", "int out(void) { return 1; }",
		SHARED "-Wl,-soname,libout.so.1");
	compile("tree/pkg/_C.so", "int out(void); int run(void) { return out(); }",
		SHARED PLACEHOLDER "outside/libout.so.1");
	must("ln -s \"$PWD/outside/libout.so.1\" " LIB "libout.so.1");
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_POLICY,
		   "'pkg/_C.so' needs 'libout.so.1'");
}

static void own_search_path_comes_first(void **state)
{
	(void)state;
	request.any_library = true;
	compile(LIB "libx.so.1", "int x(void) { return 1; }", SHARED "-Wl,-soname,libx.so.1");
	compile("root/opt/x/libx.so.1", "int x(void) { return 2; }",
		SHARED "-Wl,-soname,libx.so.1");
	compile("tree/pkg/_C.so", "int x(void); int run(void) { return x(); }",
		SHARED "-Wl,--disable-new-dtags,-rpath,/opt/x:" TOKEN " root/opt/x/libx.so.1");
	relocate();
	assert_string_equal(library("libx.so.1")->source, "/opt/x/libx.so.1");
	assert_int_equal(load("tree/pkg/_C.so", "run"), 2);
}

static void origin_of_a_library_in_the_root(void **state)
{
	(void)state;
	request.any_library = true;
	compile("root/opt/x/private/liby.so", "int y(void) { return 3; }",
		SHARED "-Wl,-soname,liby.so");
	compile("root/opt/x/libx.so.1", "int y(void); int x(void) { return y(); }",
		SHARED "root/opt/x/private/liby.so '-Wl,-soname,libx.so.1,-rpath,$ORIGIN/private'");
	compile("tree/pkg/_C.so", "int x(void); int run(void) { return x(); }",
		SHARED "-Wl,--disable-new-dtags,-rpath,/opt/x root/opt/x/libx.so.1 "
		       "-Wl,--allow-shlib-undefined");
	relocate();
	assert_string_equal(library("liby.so")->source, "/opt/x/private/liby.so");
	must("mv tree moved && mv root gone");
	assert_int_equal(load("moved/pkg/_C.so", "run"), 3);
}

static void libraries_of_another_machine_are_passed_over(void **state)
{
	(void)state;
	struct err e;
	compile(LIB "libx.so.1", "int x(void) { return 1; }", SHARED "-s -Wl,-soname,libx.so.1");
	compile("tree/pkg/_C.so", "int x(void); int run(void) { return x(); }",
		SHARED PLACEHOLDER LIB "libx.so.1");
	int fd = open(test_path(LIB "libx.so.1"), O_WRONLY);
	assert_int_equal(pwrite(fd, &(uint16_t){EM_AARCH64}, 2, offsetof(Elf64_Ehdr, e_machine)),
			 2);
	close(fd);
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_POLICY, "libx.so.1");
	must("mkdir -p root/usr/lib64 && echo 'INPUT(x)' > root/usr/lib/libx.so.1");
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_POLICY, "libx.so.1");
}

static void one_library_under_two_names_comes_once(void **state)
{
	(void)state;
	compile(LIB "libone.so.1", "int x(void) { return 5; }",
		SHARED "-s -Wl,-soname,libone.so.1");
	compile("other/libtwo.so.1", "int x(void) { return 5; }", SHARED "-Wl,-soname,libtwo.so.1");
	must("ln -s libone.so.1 " LIB "libtwo.so.1");
	compile("tree/pkg/a.so", "int x(void); int run(void) { return x(); }",
		SHARED PLACEHOLDER LIB "libone.so.1");
	compile("tree/pkg/b.so", "int x(void); int run(void) { return x(); }",
		SHARED PLACEHOLDER "other/libtwo.so.1");
	relocate();
	assert_int_equal(result.count, 1);
	struct elf_info b = info_of(test_path("tree/pkg/b.so"));
	assert_true(strlist_contains(&b.needed, path_base(result.libraries[0].file)));
	must("mv tree moved && mv root gone");
	assert_int_equal(load("moved/pkg/b.so", "run"), 5);
}

static void symbol_tables_are_stripped(void **state)
{
	(void)state;
	fill_tree();
	struct elf_info before = info_of(test_path("tree/pkg/lib/libcore.so"));
	assert_false(before.stripped);
	relocate();
	assert_int_equal(result.stripped, 3);
	struct elf_info after = info_of(test_path("tree/pkg/lib/libcore.so"));
	assert_true(after.stripped);
	assert_int_equal(after.defined.count, before.defined.count);
	must("mv tree moved && mv root gone");
	assert_int_equal(load("moved/pkg/_C.so", "run"), 42);
}

static void fill_copies(void)
{
	compile("tree/pkg/lib/libx.so.2.6", "int x(void) { return 6; }",
		SHARED PLACEHOLDER "-Wl,-soname,libx.so.2.6");
	must("cp tree/pkg/lib/libx.so.2.6 tree/pkg/lib/libx.so && cp tree/pkg/lib/libx.so.2.6 "
	     "tree/pkg/lib/libx.so.2.6.0");
}

static void copies_under_longer_names_go(void **state)
{
	(void)state;
	fill_copies();
	test_write(test_path("tree/pkg/share/cmake/X.cmake"),
		   "set(L \"lib/libx.so.2.6.0\")\nset(S \"libx.so.2.6\")\n");
	test_write(test_path("tree/pkg/x.py"), "NAME = 'libx.so.2.6.0'\n");
	relocate();
	assert_int_equal(result.removed, 1);
	assert_int_equal(result.elf_files, 2);
	assert_false(in_tree("pkg/lib/libx.so.2.6.0"));
	assert_true(in_tree("pkg/lib/libx.so.2.6"));
	assert_true(in_tree("pkg/lib/libx.so"));
	assert_int_equal(result.rewritten, 1);
	char *cmake = test_read(test_path("tree/pkg/share/cmake/X.cmake")),
	     *py = test_read(test_path("tree/pkg/x.py"));
	assert_string_equal(cmake, "set(L \"lib/libx.so.2.6\")\nset(S \"libx.so.2.6\")\n");
	assert_string_equal(py, "NAME = 'libx.so.2.6.0'\n");
	free(cmake);
	free(py);
}

static void other_bytes_are_no_copy(void **state)
{
	(void)state;
	fill_copies();
	compile("tree/pkg/lib/libx.so.2.6.0", "int x(void) { return 7; }",
		SHARED PLACEHOLDER "-Wl,-soname,libx.so.2.6");
	relocate();
	assert_int_equal(result.removed, 0);
	assert_true(in_tree("pkg/lib/libx.so.2.6.0"));
}

static void copies_that_are_asked_for_stay(void **state)
{
	(void)state;
	compile("tree/pkg/lib/libx.so.2.6.0", "int x(void) { return 6; }",
		SHARED "-Wl,-soname,libx.so.2.6.0");
	compile("tree/pkg/_C.so", "int x(void); int run(void) { return x(); }",
		SHARED PLACEHOLDER "tree/pkg/lib/libx.so.2.6.0");
	fill_copies();
	relocate();
	assert_int_equal(result.removed, 0);
	assert_int_equal(load("tree/pkg/_C.so", "run"), 6);
}

static void library_of_the_wheel_by_its_soname(void **state)
{
	(void)state;
	compile("tree/pkg/lib/libcore.so", "int core(void) { return 8; }",
		SHARED "-Wl,-soname,libcore.so.1");
	compile("tree/pkg/_C.so", "int core(void); int run(void) { return core(); }",
		SHARED PLACEHOLDER "tree/pkg/lib/libcore.so");
	relocate();
	struct elf_info i = info_of(test_path("tree/pkg/_C.so"));
	assert_true(strlist_contains(&i.needed, "libcore.so"));
	assert_int_equal(load("tree/pkg/_C.so", "run"), 8);
}

static void libraries_in_other_directories_are_reached(void **state)
{
	(void)state;
	compile("tree/a/deep/down/libz.so", "int z(void) { return 11; }",
		SHARED "-Wl,-soname,libz.so");
	compile("tree/b/_C.so", "int z(void); int run(void) { return z(); }",
		SHARED PLACEHOLDER "tree/a/deep/down/libz.so");
	compile("tree/top.so", "int z(void); int run(void) { return z(); }",
		SHARED PLACEHOLDER "tree/a/deep/down/libz.so");
	compile("tree/a/deep/up.so", "int z(void); int run(void) { return z(); }",
		SHARED PLACEHOLDER "tree/a/deep/down/libz.so");
	relocate();
	assert_string_equal(rpath_of("b/_C.so"), "$ORIGIN/../a/deep/down");
	assert_string_equal(rpath_of("top.so"), "$ORIGIN/a/deep/down");
	assert_string_equal(rpath_of("a/deep/up.so"), "$ORIGIN/down");
	must("mv tree moved");
	assert_int_equal(load("moved/b/_C.so", "run"), 11);
	assert_int_equal(load("moved/top.so", "run"), 11);
}

static void nearer_library_is_preferred(void **state)
{
	(void)state;
	compile("tree/a/libz.so", "int z(void) { return 1; }", SHARED "-Wl,-soname,libz.so");
	compile("tree/b/libz.so", "int z(void) { return 2; }", SHARED "-Wl,-soname,libz.so");
	compile("tree/b/_C.so", "int z(void); int run(void) { return z(); }",
		SHARED PLACEHOLDER "tree/b/libz.so");
	relocate();
	assert_int_equal(load("tree/b/_C.so", "run"), 2);
}

static void text_files_are_rewritten(void **state)
{
	(void)state;
	static const char binary[] = "a\0/ptbuild/src/torch/lib\n";
	test_write(test_path("tree/pkg/a.cmake"),
		   "set(P /ptbuild/src/torch/lib/x)\nset(Q /ptbuild/src/torch/lib)\n");
	test_write(test_path("tree/pkg/b.pc"), "prefix=/ptbuild/src/torch\n");
	test_write(test_path("tree/pkg/c.cmake"), "set(P /usr/lib)\n");
	test_write_bytes(test_path("tree/pkg/d.h"), binary, sizeof(binary) - 1);
	must("chmod 0640 tree/pkg/a.cmake");
	kvlist_set(&request.rewrite, &arena, "/ptbuild/src/torch/lib",
		   "${CMAKE_CURRENT_LIST_DIR}/lib");
	kvlist_set(&request.rewrite, &arena, "/ptbuild/src/torch", "/opt/torch");
	relocate();
	assert_int_equal(result.rewritten, 2);
	char *a = test_read(test_path("tree/pkg/a.cmake")),
	     *b = test_read(test_path("tree/pkg/b.pc"));
	assert_string_equal(
		a,
		"set(P ${CMAKE_CURRENT_LIST_DIR}/lib/x)\nset(Q ${CMAKE_CURRENT_LIST_DIR}/lib)\n");
	assert_string_equal(b, "prefix=/opt/torch\n");
	free(a);
	free(b);
	struct stat st;
	assert_int_equal(stat(test_path("tree/pkg/a.cmake"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	char *d = test_read(test_path("tree/pkg/d.h"));
	assert_memory_equal(d, binary, sizeof(binary) - 1);
	free(d);
}

static void objects_and_data_are_left_alone(void **state)
{
	(void)state;
	compile("tree/pkg/a.o", "int a(void) { return 1; }", "-c");
	test_write(test_path("tree/pkg/empty"), "");
	char before[DIGEST_HEX_LEN + 1], after[DIGEST_HEX_LEN + 1];
	tree_digest(before);
	relocate();
	tree_digest(after);
	assert_string_equal(before, after);
	assert_int_equal(result.elf_files, 0);
}

static void broken_library_is_refused(void **state)
{
	(void)state;
	struct err e;
	compile("tree/pkg/_C.so", "int run(void) { return 9; }", SHARED PLACEHOLDER);
	assert_int_equal(truncate(test_path("tree/pkg/_C.so"), 4096), 0);
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_INTEGRITY, "pkg/_C.so");
}

static void directory_outside_is_refused(void **state)
{
	(void)state;
	struct err e;
	request.libs_dir = "../lib";
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_USAGE, "'../lib'");
	request.libs_dir = "/lib";
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_USAGE, "'/lib'");
}

static void interruption_is_noticed(void **state)
{
	(void)state;
	struct err e;
	int ends[2];
	fill_tree();
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	struct run run = {.log = test_run()->log, .cancel_fd = ends[0]};
	request.run = &run;
	assert_err(relocate_tree(&request, &arena, &result, &e), &e, ERR_INTERRUPTED,
		   "interrupted");
	close(ends[0]);
	close(ends[1]);
}

static void same_input_gives_same_bytes(void **state)
{
	(void)state;
	char first[DIGEST_HEX_LEN + 1], second[DIGEST_HEX_LEN + 1];
	fill_tree();
	must("cp -a tree again");
	relocate();
	tree_digest(first);
	must("mv tree first && mv again tree");
	relocate();
	tree_digest(second);
	assert_string_equal(first, second);
}

static void relocated_tree_stays_as_it_is(void **state)
{
	(void)state;
	char first[DIGEST_HEX_LEN + 1], second[DIGEST_HEX_LEN + 1];
	fill_tree();
	relocate();
	tree_digest(first);
	relocate();
	tree_digest(second);
	assert_string_equal(first, second);
	assert_int_equal(result.count, 0);
	assert_int_equal(result.stripped, 0);
}

static void nothing_temporary_is_left(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist names = {0};
	fill_tree();
	relocate();
	assert_ok(fs_list(TRUSTED, test_path("tree/pkg/lib"), &arena, &names, &e), &e);
	assert_int_equal(names.count, 3);
	assert_ok(fs_list(TRUSTED, test_path("tree/pkg"), &arena, &names, &e), &e);
	assert_int_equal(names.count, 6);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(wheel_works_after_a_move),
		T(vendored_libraries_are_reported),
		T(names_follow_the_digest),
		T(allowed_libraries_stay_outside),
		T(paths_are_relative_to_each_file),
		T(placeholders_are_edited_in_place),
		T(libraries_may_go_beside_the_package),
		T(provided_libraries_come_from_the_neighbour),
		T(provided_takes_patterns),
		T(runtime_directories_only_where_needed),
		T(driver_libraries_are_never_taken),
		T(names_can_be_kept),
		T(no_path_where_nothing_is_needed),
		T(missing_library_changes_nothing),
		T(link_out_of_the_root_is_not_followed),
		T(own_search_path_comes_first),
		T(origin_of_a_library_in_the_root),
		T(libraries_of_another_machine_are_passed_over),
		T(one_library_under_two_names_comes_once),
		T(symbol_tables_are_stripped),
		T(copies_under_longer_names_go),
		T(other_bytes_are_no_copy),
		T(copies_that_are_asked_for_stay),
		T(library_of_the_wheel_by_its_soname),
		T(libraries_in_other_directories_are_reached),
		T(nearer_library_is_preferred),
		T(text_files_are_rewritten),
		T(objects_and_data_are_left_alone),
		T(broken_library_is_refused),
		T(directory_outside_is_refused),
		T(interruption_is_noticed),
		T(same_input_gives_same_bytes),
		T(relocated_tree_stays_as_it_is),
		T(nothing_temporary_is_left),
	};

	return cmocka_run_group_tests(tests, load_table, release_table);
}
