/* Two thread pools in one wheel: small libraries with the symbols and names of the real ones. */
#include "verify_fixture.h"

/* Each is what `nm -D` shows of the library, reduced to what tells it from others. */
#define GOMP "void GOMP_parallel(void) {}\nvoid omp_get_max_threads(void) {}\n"
#define IOMP GOMP "void __kmpc_fork_call(void) {}\n"
#define OPENBLAS "void cblas_dgemm(void) {}\nvoid goto_set_num_threads(void) {}\n"
#define SERIAL OPENBLAS "void openblas_set_num_threads(void) {}\n"
#define PTHREAD                                                                                    \
	SERIAL "#include <pthread.h>\nint exec_blas_async(void *(*f)(void *)) {\n"                 \
	       "pthread_t t; return pthread_create(&t, 0, f, 0); }\n"
#define OPENMP                                                                                     \
	SERIAL "void GOMP_parallel(void);\nvoid exec_blas(void) { GOMP_parallel(); }\n"            \
	       "#include <pthread.h>\nvoid *start = pthread_create;\n"
#define ATEN                                                                                       \
	"void GOMP_parallel(void); void cblas_dgemm(void);\nvoid at(void) { GOMP_parallel(); "     \
	"cblas_dgemm(); }\n"

static const struct tables *tables;
static struct companions beside;

static int load(void **state)
{
	static struct arena rows;
	tables = shipped_tables(&rows);
	return load_policy(state);
}

/* A library of the package, with its name as SONAME, that needs others beside it by name. */
static void library(const char *name, const char *text, const char *needs)
{
	struct strlist words = {0};
	AUTO_BUF struct buf flags = {0};

	strlist_split(&words, &arena, needs, " ");
	buf_printf(&flags,
		   "-Wl,--no-as-needed -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN' -Wl,-soname,%s "
		   "-L'%s'",
		   name, test_path("tree/tiny"));
	for (size_t i = 0; i < words.count; i++)
		buf_printf(&flags, " -l:%s", words.items[i]);
	compile(arena_printf(&arena, "tree/tiny/%s", name), text, buf_cstr(&flags));
}

/* Names outside the wheel are provided. */
static struct verify_report judge_file(const char *wheel)
{
	struct verify_request q = {.wheel = wheel, .tables = tables, .companions = beside};

	strlist_add(&q.provided, &arena, "lib*omp*.so*");
	strlist_add(&q.provided, &arena, "libmkl*.so*");
	return verify_with(q);
}

/* For any glibc: what the small libraries need of this machine's is not asked. */
static const char *packed_by(const char *generator)
{
	struct pack_request q = request();

	q.platform = "linux_x86_64";
	q.generator = generator;
	shell("rm -f '%s'/*", q.out_dir);
	return pack_ok(&q).path;
}

static struct verify_report judge(void)
{
	return judge_file(packed_by("ptbuild 0.1.0"));
}

static size_t findings(const struct verify_report *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++)
		n += strcmp(r->findings[i].rule, "threads") == 0;
	return n;
}

static struct verify_report with_blas(const char *name, const char *text, const char *needs)
{
	make_tree();
	library("libgomp.so.1", GOMP, "");
	library(name, text, needs);
	library("libtorch_cpu.so", ATEN, arena_printf(&arena, "libgomp.so.1 %s", name));
	return judge();
}

static void openblas_with_threads_of_its_own(void **state)
{
	(void)state;
	struct verify_report r = with_blas("libopenblas-582846c0.so.0", PTHREAD, "");
	assert_only_error(&r, "threads", "tiny/libopenblas-582846c0.so.0",
			  "is OpenBLAS with threads of its own next to 'libgomp.so.1' (GNU "
			  "OpenMP): they spin against "
			  "those of OpenMP, and torch.set_num_threads does not reach them; take "
			  "its OpenMP form (Debian: "
			  "libopenblas-openmp-dev, libopenblas0-openmp)");
}

/* As scipy-openblas has it: other names, and no symbol of the server. */
static void openblas_with_a_prefix_and_hidden_symbols(void **state)
{
	(void)state;
	struct verify_report r = with_blas("libscipy_openblas64_-56d6093b.so",
					   "#include <pthread.h>\nvoid *start = pthread_create; "
					   "void cblas_dgemm(void) {}\nvoid "
					   "scipy_openblas_set_num_threads64_(void) {}\n",
					   "");
	assert_only_error(&r, "threads", "tiny/libscipy_openblas64_-56d6093b.so",
			  "is OpenBLAS with threads of its own");
}

static void openblas_in_its_openmp_form(void **state)
{
	(void)state;
	struct verify_report r = with_blas("libopenblas-582846c0.so.0", OPENMP, "libgomp.so.1");
	assert_clean(&r);
}

static void serial_openblas(void **state)
{
	(void)state;
	struct verify_report r = with_blas("libopenblas-582846c0.so.0", SERIAL, "");
	assert_clean(&r);
}

static void openblas_linked_into_the_library(void **state)
{
	(void)state;
	make_tree();
	library("libgomp.so.1", GOMP, "");
	library("libtorch_cpu.so",
		PTHREAD "void GOMP_parallel(void);\nvoid at(void) { GOMP_parallel(); }\n",
		"libgomp.so.1");
	struct verify_report r = judge();
	assert_only_error(&r, "threads", "tiny/libtorch_cpu.so",
			  "is OpenBLAS with threads of its own inside next to");
}

static void blis(void **state)
{
	static const char text[] =
		"void bli_thread_set_num_threads(void) {}\nvoid cblas_dgemm(void) {}\n";

	(void)state;
	struct verify_report r = with_blas("libblis-1a2b3c4d.so.4", text, "");
	assert_only_error(
		&r, "threads", "tiny/libblis-1a2b3c4d.so.4",
		"is BLIS without OpenMP next to 'libgomp.so.1' (GNU OpenMP): torch.set_num_threads "
		"does not "
		"reach it; take its OpenMP form (Debian: libblis-openmp-dev, libblis4-openmp)");
	teardown(state);
	setup(state);
	r = with_blas(
		"libblis-1a2b3c4d.so.4",
		arena_printf(&arena,
			     "%svoid GOMP_parallel(void);\nvoid go(void) { GOMP_parallel(); }\n",
			     text),
		"libgomp.so.1");
	assert_clean(&r);
}

/* NumPy and the like have no OpenMP beside it. */
static void own_threads_alone_are_fine(void **state)
{
	(void)state;
	make_tree();
	library("libopenblas-582846c0.so.0", PTHREAD, "");
	struct verify_report r = judge();
	assert_clean(&r);
}

static void two_openmp_runtimes_inside(void **state)
{
	(void)state;
	make_tree();
	library("libgomp.so.1", GOMP, "");
	library("libiomp5-1a2b3c4d.so", IOMP, "");
	library("libtorch_cpu.so",
		"void GOMP_parallel(void);\nvoid at(void) { GOMP_parallel(); }\n",
		"libgomp.so.1 libiomp5-1a2b3c4d.so");
	struct verify_report r = judge();
	assert_only_error(&r, "threads", "tiny/libiomp5-1a2b3c4d.so",
			  "is LLVM or Intel OpenMP next to 'libgomp.so.1' (GNU OpenMP): their "
			  "threads spin against each "
			  "other, and torch.set_num_threads reaches one of the two; link all "
			  "libraries with one OpenMP "
			  "runtime");
	/* The same symbols under GNU's name are LLVM's runtime
	 * all the same: it is one, and no other is there. */
	assert_int_equal(unlink(test_path("tree/tiny/libiomp5-1a2b3c4d.so")), 0);
	library("libgomp.so.1", IOMP, "");
	library("libtorch_cpu.so",
		"void GOMP_parallel(void);\nvoid at(void) { GOMP_parallel(); }\n", "libgomp.so.1");
	r = judge();
	assert_clean(&r);
}

/* Two copies of one runtime are two pools as well. */
static void one_runtime_twice(void **state)
{
	(void)state;
	make_tree();
	library("libgomp.so.1", GOMP, "");
	library("libgomp-1a2b3c4d.so.1", GOMP, "");
	struct verify_report r = judge();
	assert_int_equal(r.errors, 1);
	assert_found(&r, FINDING_ERROR, "threads", "tiny/libgomp",
		     "is GNU OpenMP next to 'libgomp");
}

/* A library with this SONAME that the wheel is linked with and does not hold. */
static void outside(const char *name, const char *text)
{
	library(name, text, "");
	library("libtorch_cpu.so",
		"void GOMP_parallel(void);\nvoid at(void) { GOMP_parallel(); }\n",
		arena_printf(&arena, "libgomp.so.1 %s", name));
	assert_int_equal(unlink(test_path("tree/tiny/%s", name)), 0);
}

static void a_second_runtime_of_a_dependency(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{"libiomp5.so",
		 "needs 'libiomp5.so' (LLVM or Intel OpenMP) next to 'libgomp.so.1' (GNU OpenMP)"},
		{"libomp.so.5", "needs 'libomp.so.5' (LLVM or Intel OpenMP)"},
		{"libmkl_intel_thread.so.2",
		 "needs 'libmkl_intel_thread.so.2' (LLVM or Intel OpenMP)"},
		{"libmkl_rt.so.2", "needs 'libmkl_rt.so.2' (MKL over Intel OpenMP) next to "
				   "'libgomp.so.1' (GNU OpenMP): "
				   "libmkl_rt loads it unless MKL_THREADING_LAYER says otherwise"},
		{"libmkl_tbb_thread.so.2",
		 "needs 'libmkl_tbb_thread.so.2' (MKL over TBB) next to 'libgomp.so.1'"}};

	(void)state;
	make_tree();
	library("libgomp.so.1", GOMP, "");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		outside(cases[i].name, "void f(void) {}\n");
		struct verify_report r = judge();
		assert_only_error(&r, "threads", "tiny/libtorch_cpu.so", cases[i].want);
	}

	/* MKL over GNU's runtime, and the program's own tool for the other */
	static const char *const fine[] = {"libmkl_gnu_thread.so.2", "libmkl_sequential.so.2",
					   "libomptarget.so.16"};
	for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
		outside(fine[i], "void f(void) {}\n");
		struct verify_report r = judge();
		assert_int_equal(findings(&r), 0);
	}
}

/* torchvision beside a torch: one runtime by one name is one; a copy of its own is a second. */
static void beside_a_companion(void **state)
{
	struct strlist paths = {0};

	(void)state;
	make_tree();
	library("libgomp.so.1", GOMP, "");
	library("libtorch_cpu.so",
		"void GOMP_parallel(void);\nvoid at(void) { GOMP_parallel(); }\n", "libgomp.so.1");
	assert_int_equal(rename(test_path("tree/tiny/libgomp.so.1"), test_path("libgomp.so.1")), 0);
	strlist_add(&paths, &arena, test_path("libgomp.so.1"));
	assert_ok(companions_of_files(&paths, &arena, &beside, &err), &err);
	struct verify_report same = judge();
	library("libgomp-1a2b3c4d.so.1", GOMP, "");
	struct verify_report copy = judge();
	beside = (struct companions){0};
	assert_clean(&same);
	assert_only_error(&copy, "threads", "tiny/libgomp-1a2b3c4d.so.1",
			  "is GNU OpenMP next to 'libgomp.so.1' (GNU OpenMP)");
}

/* A wheel that ptbuild did not make may have its reasons, but for torch. */
static void foreign_wheels_are_warned_of(void **state)
{
	(void)state;
	make_tree();
	library("libgomp.so.1", GOMP, "");
	library("libopenblas-582846c0.so.0", PTHREAD, "");
	const char *wheel = packed_by("setuptools 80");
	struct verify_report r = judge_file(wheel);
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "threads", "tiny/libopenblas-582846c0.so.0",
		     "threads of its own");
	const char *torch = test_path("out/torch-1.0+cpu.avx2-py3-none-linux_x86_64.whl");
	assert_int_equal(rename(wheel, torch), 0);
	r = judge_file(torch);
	assert_found(&r, FINDING_ERROR, "threads", "tiny/libopenblas-582846c0.so.0",
		     "threads of its own");
}

int main(void)
{
	const struct CMUnitTest all[] = {
		TEST(openblas_with_threads_of_its_own),
		TEST(openblas_with_a_prefix_and_hidden_symbols),
		TEST(openblas_in_its_openmp_form),
		TEST(serial_openblas),
		TEST(openblas_linked_into_the_library),
		TEST(blis),
		TEST(own_threads_alone_are_fine),
		TEST(two_openmp_runtimes_inside),
		TEST(one_runtime_twice),
		TEST(a_second_runtime_of_a_dependency),
		TEST(beside_a_companion),
		TEST(foreign_wheels_are_warned_of),
	};

	return cmocka_run_group_tests(all, load, NULL);
}
