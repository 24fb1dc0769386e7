/* Machine code against the promise: each kind of defect, and what looks like one. */
#include "verify_fixture.h"

static const struct tables *tables;
static const struct isa_rules *rules;

#define INTRINSICS "#include <immintrin.h>\n"
#define AVX512 "__attribute__((target(\"avx512f\"), noinline)) "
#define AVX2 "__attribute__((target(\"avx2\"), noinline)) "
#define ADD_ZMM(name)                                                                              \
	"void " name "(float *p) { _mm512_storeu_ps(p, _mm512_add_ps(_mm512_loadu_ps(p), "         \
	"_mm512_loadu_ps(p + 16))); "                                                              \
	"}\n"
#define ADD_YMM                                                                                    \
	"{ _mm256_storeu_si256((__m256i *)p, _mm256_add_epi32(_mm256_loadu_si256((__m256i *)p), "  \
	"_mm256_loadu_si256((__m256i *)(p + "                                                      \
	"8)))); }\n"

static int load(void **state)
{
	static struct arena rows;

	if (load_policy(state) != 0 || tables_load(PROFILES_DIR, &rows, &tables, &err) != 0)
		return -1;
	rules = shipped_rules(&rows);
	return 0;
}

static struct verify_report verify_code(const char *version)
{
	struct pack_request p = request();

	p.version = version;
	return verify_with((struct verify_request){
		.wheel = pack_ok(&p).path, .tables = tables, .code = rules});
}

/* A library called `name` in the package, from one file
 * of C (or C++ where the flags say so), stripped or not. */
static void library(const char *name, const char *unit, const char *text, const char *flags)
{
	make_tree();
	test_write(test_path("tree/%s", unit), text);
	shell("cd '%s' && cc -O2 -shared -fPIC -nostdlib -o 'tiny/%s' %s '%s' && rm '%s'",
	      test_path("tree"), name, flags, unit, unit);
}

static struct verify_report one(const char *version, const char *text, const char *flags)
{
	library("libmore.so", "more.c", text, flags);
	return verify_code(version);
}

static void baseline_code_is_clean(void **state)
{
	(void)state;
	struct verify_report r = one("1.0+cpu.avx", "int f(int x) { return x * 3; }\n", "-s");
	assert_clean(&r);
	assert_int_equal(r.code_files, 2);
	assert_true(r.code_functions >= 2);
	assert_true(r.code_bytes > 0);
	assert_contains(verify_text(&r, &arena), "within avx");
}

static void code_within_the_promise_is_clean(void **state)
{
	(void)state;
	struct verify_report r =
		one("1.0+cpu.avx512", INTRINSICS AVX512 ADD_ZMM("plain_sum"), "-s");
	assert_clean(&r);
	test_dir();
	r = one("1.0+cpu.avx2", INTRINSICS AVX2 "void plain_sum(int *p) " ADD_YMM, "-s");
	assert_clean(&r);
}

static void avx512_in_a_plain_function_of_an_avx2_wheel(void **state)
{
	(void)state;
	struct verify_report r = one("1.0+cpu.avx2", INTRINSICS AVX512 ADD_ZMM("plain_sum"), "-s");
	assert_only_error(&r, "isa", "tiny/libmore.so", "the function 'plain_sum' uses avx512f (");
	assert_found(&r, FINDING_ERROR, "isa", "tiny/libmore.so", "the first is vmovups at 0x");
	assert_found(&r, FINDING_ERROR, "isa", "tiny/libmore.so", ") beyond avx2");
}

static void a_level_that_the_loader_asks_for(void **state)
{
	(void)state;
	struct verify_report r =
		one("1.0+cpu.avx2", "int f(void) { return 1; }", "-s -Wl,-z,x86-64-v4");
	assert_only_error(&r, "isa", "tiny/libmore.so",
			  "asks for x86-64-v4, beyond avx2: glibc does not load it");
	test_dir();
	r = one("1.0+cpu.avx2", "int f(void) { return 1; }", "-s -Wl,-z,x86-64-v3");
	assert_clean(&r);
	test_dir();
	r = one("1.0+cpu.avx512", "int f(void) { return 1; }", "-s -Wl,-z,x86-64-v4");
	assert_clean(&r);
	test_dir();
	r = one("1.0", "int f(void) { return 1; }", "-s -Wl,-z,x86-64-v2 -Wl,-z,x86-64-v3");
	assert_found(&r, FINDING_WARNING, "isa", "tiny/libmore.so",
		     "asks for x86-64-v3, beyond the baseline");
	test_dir();
	r = one("1.0", "int f(void) { return 1; }", "-s -Wl,-z,x86-64-baseline");
	assert_false(strstr(verify_text(&r, &arena), "asks for"));
}

static void local_functions_are_named_as_long_as_their_names_are_there(void **state)
{
	(void)state;
	struct verify_report r = one(
		"1.0+cpu.avx2",
		INTRINSICS
		"static " AVX512 ADD_ZMM("hidden_sum") "void (*table[])(float *) = {hidden_sum};\n",
		"");
	assert_only_error(&r, "isa", "tiny/libmore.so",
			  "the function 'hidden_sum' of more.c uses avx512f");
}

static void functions_without_a_name_are_a_warning(void **state)
{
	(void)state;
	struct verify_report r = one(
		"1.0+cpu.avx2",
		INTRINSICS
		"static " AVX512 ADD_ZMM("hidden_sum") "void (*table[])(float *) = {hidden_sum};\n",
		"-s");
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "isa-unnamed", "tiny/libmore.so",
		     "1 function without a name or an end uses avx512f beyond avx2");
}

static void avx2_in_a_static_initialiser_of_an_avx_wheel(void **state)
{
	static const char text[] =
		INTRINSICS "static int p[16];\n__attribute__((constructor)) static " AVX2
			   "void start(void) " ADD_YMM "int f(void) { return p[3]; }\n";

	(void)state;
	struct verify_report r = one("1.0+cpu.avx", text, "");
	assert_only_error(&r, "isa-init", "tiny/libmore.so",
			  "the static initialiser 'start' of more.c uses avx2");
	/* The loader finds it, so it is found without its name, too. */
	test_dir();
	r = one("1.0+cpu.avx", text, "-s");
	assert_only_error(&r, "isa-init", "tiny/libmore.so",
			  "the static initialiser without a name uses avx2");
	test_dir();
	r = one("1.0+cpu.avx2", text, "-s");
	assert_clean(&r);
}

static void avx2_in_an_initialiser_of_cpp(void **state)
{
	(void)state;
	static const char text[] =
		INTRINSICS "struct table { int p[16]; table() " ADD_YMM " };\ntable global;\n";
	library("libmore.so", "more.cpp", text, "-x c++ -mavx2");
	struct verify_report r = verify_code("1.0+cpu.avx");
	assert_only_error(&r, "isa-init", "tiny/libmore.so",
			  "'_GLOBAL__sub_I_more.cpp' of more.cpp uses avx2");
}

static void what_an_initialiser_calls_is_a_part_of_it(void **state)
{
	(void)state;
	struct verify_report r =
		one("1.0+cpu.avx",
		    INTRINSICS "static int p[16];\nstatic " AVX2 "void fill(void) " ADD_YMM
			       "__attribute__((constructor)) static void start(void) { fill(); "
			       "p[1]++; }\nint f(void) { return p[3]; }\n",
		    "-s");
	assert_only_error(&r, "isa-init", "tiny/libmore.so",
			  "the static initialiser without a name uses avx2");
}

/* Then the claim that nothing checks would be false, for what it calls as well. */
static void test_initialiser_that_asks_cpuid(void **state)
{
	(void)state;
	struct verify_report r =
		one("1.0+cpu.avx",
		    INTRINSICS
		    "#include <cpuid.h>\nstatic int p[16];\nstatic " AVX2 "void fill(void) " ADD_YMM
		    "__attribute__((constructor)) static void start(void) { unsigned a, b = 0, "
		    "c, d; __cpuid_count(7, 0, a, b, c, d); if (b & 32) fill(); "
		    "p[1]++; }\nint f(void) { return p[3]; }\n",
		    "-s");
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "isa-unnamed", "tiny/libmore.so", "avx2");
}

static void packed_relative_relocations_hide_no_initialiser(void **state)
{
	(void)state;
	struct verify_report r =
		one("1.0+cpu.avx",
		    INTRINSICS "static int p[16];\n__attribute__((constructor)) static " AVX2
			       "void start(void) " ADD_YMM "int f(void) { return p[3]; }\n",
		    "-s -Wl,-z,pack-relative-relocs");
	assert_found(&r, FINDING_ERROR, "isa-init", "tiny/libmore.so", "uses avx2");
}

static void a_shared_copy_is_never_excused(void **state)
{
	(void)state;
	static const char text[] =
		INTRINSICS "__attribute__((weak)) " AVX2 "void shared_inline(int *p) " ADD_YMM;
	struct verify_report r = one("1.0+cpu.avx", text, "-s");
	assert_only_error(&r, "isa-comdat", "tiny/libmore.so",
			  "the function 'shared_inline' uses avx2");
	assert_found(&r, FINDING_ERROR, "isa-comdat", "tiny/libmore.so",
		     "beyond avx in the one copy that all units share");
	/* Also from a file that is compiled for AVX2 on purpose. */
	test_dir();
	library("libtorch_cpu.so", "Copy.cpp.AVX2.cpp", text, "-x c");
	r = verify_code("1.0+cpu.avx");
	assert_only_error(&r, "isa-comdat", "tiny/libtorch_cpu.so", "'shared_inline' uses avx2");
}

static void an_inline_function_of_cpp_is_a_shared_copy(void **state)
{
	(void)state;
	static const char text[] = INTRINSICS
		"namespace std { template <class T> __attribute__((noinline)) void fill_all(T "
		"*p) " ADD_YMM " }\nvoid use(int *p) { std::fill_all<int>(p); }\n";
	library("libmore.so", "more.cpp", text, "-x c++ -mavx2 -s");
	struct verify_report r = verify_code("1.0+cpu.avx");
	assert_only_error(&r, "isa-comdat", "tiny/libmore.so",
			  "the function 'void std::fill_all<int>(int*)' uses avx2");
}

static void dispatched_functions_are_fine(void **state)
{
	(void)state;
	static const char text[] = INTRINSICS
		"static " AVX512 ADD_ZMM("kernel") "void (*table[])(float *) = {kernel};\n";
	library("libtorch_cpu.so", "Copy.cpp.AVX512.cpp", text, "-x c");
	struct verify_report r = verify_code("1.0+cpu.avx2");
	assert_int_equal(r.errors + r.warnings, 0);
	assert_found(&r, FINDING_NOTE, "isa-dispatched", "tiny/libtorch_cpu.so",
		     "1 function uses avx512f where the processor has it: ATen's AVX512 kernels");
	/* The same function from a file that is compiled for everybody. */
	test_dir();
	library("libtorch_cpu.so", "Copy.cpp.DEFAULT.cpp", text, "-x c");
	r = verify_code("1.0+cpu.avx2");
	assert_only_error(&r, "isa", "tiny/libtorch_cpu.so", "'kernel' of Copy.cpp.DEFAULT.cpp");
}

static void an_initialiser_of_a_family_is_not(void **state)
{
	(void)state;
	library("libtorch_cpu.so", "Copy.cpp.AVX2.cpp",
		INTRINSICS "static int p[16];\n__attribute__((constructor)) static " AVX2
			   "void start(void) " ADD_YMM "int f(void) { return p[3]; }\n",
		"-x c");
	struct verify_report r = verify_code("1.0+cpu.avx");
	assert_only_error(&r, "isa-init", "tiny/libtorch_cpu.so", "'start' of Copy.cpp.AVX2.cpp");
}

static void a_family_has_its_limit(void **state)
{
	(void)state;
	library("libtorch_cpu.so", "Copy.cpp.AVX2.cpp",
		INTRINSICS
		"static " AVX512 ADD_ZMM("kernel") "void (*table[])(float *) = {kernel};\n",
		"-x c");
	struct verify_report r = verify_code("1.0+cpu.avx");
	assert_only_error(&r, "isa", "tiny/libtorch_cpu.so",
			  "'kernel' of Copy.cpp.AVX2.cpp uses avx512f");
}

static void what_a_resolver_chooses_is_fine(void **state)
{
	(void)state;
	struct verify_report r = one(
		"1.0+cpu.avx",
		INTRINSICS
		"static " AVX2 "void fast(int *p) " ADD_YMM
		"static void slow(int *p) { p[0] += p[8]; }\n"
		"static void (*choose(void))(int *) { int a = 7, b, c = 0, d; __asm__(\"cpuid\" : "
		"\"+a\"(a), \"=b\"(b), \"+c\"(c), \"=d\"(d)); "
		"return b & 32 ? fast : slow; }\n"
		"void sum(int *p) __attribute__((ifunc(\"choose\")));\n",
		"-s");
	assert_int_equal(r.errors + r.warnings, 0);
	assert_found(&r, FINDING_NOTE, "isa-dispatched", "tiny/libmore.so",
		     "chosen by an indirect function's resolver");
}

#define ZMM ".byte 0x62,0xf1,0x7c,0x48,0x58,0xc1\\n" /* VADDPS */
#define ASM(text) "__asm__(\".text\\n" text "\");\n"

/* A jump tells what is code; what no symbol calls a function is examined, too. */
static void code_is_found_wherever_it_is(void **state)
{
	static const struct {
		const char *text;
		enum finding_level level;
		const char *rule, *says;
	} cases[] = {
		{ASM(".globl f\\n.type f,@function\\nf: jmp 1f\\n.byte 6,6,6\\n1: " ZMM
		     "ret\\n.size f,.-f\\n"),
		 FINDING_ERROR, "isa", "the function 'f' uses avx512f (1 instruction"},
		{ASM(".globl f\\n.type f,@function\\nf: jmp 1f\\n.byte 0x48,0xb8\\n1: nop\\n" ZMM
		     "ret\\n.size f,.-f\\n"),
		 FINDING_ERROR, "isa", "the function 'f' uses avx512f (1 instruction"},
		{ASM(".globl f\\n.type f,@function\\nf: call 1f\\nret\\n.byte 0x48,0xb8\\n1: "
		     "nop\\n" ZMM "ret\\n.size f,.-f\\n"),
		 FINDING_ERROR, "isa", "the function 'f' uses avx512f (1 instruction"},
		{ASM(".globl f\\n.type f,@object\\nf: " ZMM "ret\\n.size f,.-f\\n"),
		 FINDING_WARNING, "isa-unnamed", "use"},
		{ASM(".globl f\\nf: " ZMM "ret\\n"), FINDING_WARNING, "isa-unnamed",
		 "uses avx512f beyond avx2"},
		{ASM(".globl f\\nf: " ZMM "ret\\n.size f,.-f\\n"), FINDING_ERROR, "isa",
		 "the function 'f' uses"},
		{ASM(".globl f\\n.type f,@function\\nf: ret\\n.byte 6,6\\n.size f,.-f\\n"),
		 FINDING_WARNING, "isa-unchecked", "not examined: 2 bytes at 0x"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		test_dir();
		struct verify_report r = one("1.0+cpu.avx2", cases[i].text, "-s");
		assert_found(&r, cases[i].level, cases[i].rule, "tiny/libmore.so", cases[i].says);
		assert_int_equal(r.code_functions, 1); /* tiny's own */
	}
}

static void tables_between_functions_are_no_code(void **state)
{
	(void)state;
	/* VADDPS on zmm, then bytes that are no instruction. */
	struct verify_report r = one("1.0+cpu.avx2",
				     "__asm__(\".text\\n.balign 16\\n.byte "
				     "0x62,0xf1,0x7c,0x48,0x58,0xc1,0x06,0x06\\n.balign "
				     "16\\n\");\nint f(int x) { return x; }\n",
				     "-s");
	assert_int_equal(r.errors, 0);
	assert_int_equal(r.warnings, 1);
	assert_found(&r, FINDING_WARNING, "isa-unchecked", "tiny/libmore.so", "not examined: ");
}

static void only_the_first_functions_are_listed(void **state)
{
	AUTO_BUF struct buf text = {0};

	(void)state;
	buf_addstr(&text, INTRINSICS);
	for (int i = 0; i < 30; i++)
		buf_printf(&text,
			   AVX512 "void sum%d(float *p) { _mm512_storeu_ps(p, "
				  "_mm512_add_ps(_mm512_loadu_ps(p), "
				  "_mm512_loadu_ps(p + %d))); }\n",
			   i, i);
	struct verify_report r = one("1.0+cpu.avx2", buf_cstr(&text), "-s");
	assert_int_equal(r.errors, 21);
	assert_found(&r, FINDING_ERROR, "isa", "tiny/libmore.so", "10 more functions like these");
}

static void without_a_promise_there_are_notes_only(void **state)
{
	(void)state;
	struct verify_report r =
		one("1.0",
		    INTRINSICS AVX512 ADD_ZMM("plain_sum") "__attribute__((weak)) " AVX2
							   "void shared_inline(int *p) " ADD_YMM,
		    "-s");
	assert_int_equal(r.errors + r.warnings, 0);
	assert_found(&r, FINDING_NOTE, "isa", "tiny/libmore.so", "'plain_sum' uses avx512f");
	assert_found(&r, FINDING_NOTE, "isa-comdat", "tiny/libmore.so", "beyond the baseline");
}

static void without_rules_nothing_is_examined(void **state)
{
	(void)state;
	library("libmore.so", "more.c", INTRINSICS AVX512 ADD_ZMM("plain_sum"), "-s");
	struct verify_report r =
		verify_with((struct verify_request){.wheel = packed(), .tables = tables});
	assert_clean(&r);
	assert_int_equal(r.code_files, 0);
}

static void other_machines_are_not_examined(void **state)
{
	unsigned char riscv[2] = {243, 0};

	(void)state;
	library("libmore.so", "more.c", "int f(void) { return 1; }\n", "-s");
	FILE *f = fopen(test_path("tree/tiny/libmore.so"), "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, 18, SEEK_SET), 0);
	assert_int_equal(fwrite(riscv, 1, 2, f), 2);
	fclose(f);
	struct verify_report r = verify_code("1.0+cpu.avx2");
	assert_found(&r, FINDING_WARNING, "isa-unchecked", "tiny/libmore.so",
		     "ELF machine 243, whose code is not examined");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(baseline_code_is_clean),
		TEST(code_within_the_promise_is_clean),
		TEST(avx512_in_a_plain_function_of_an_avx2_wheel),
		TEST(a_level_that_the_loader_asks_for),
		TEST(local_functions_are_named_as_long_as_their_names_are_there),
		TEST(functions_without_a_name_are_a_warning),
		TEST(avx2_in_a_static_initialiser_of_an_avx_wheel),
		TEST(avx2_in_an_initialiser_of_cpp),
		TEST(what_an_initialiser_calls_is_a_part_of_it),
		TEST(test_initialiser_that_asks_cpuid),
		TEST(packed_relative_relocations_hide_no_initialiser),
		TEST(a_shared_copy_is_never_excused),
		TEST(an_inline_function_of_cpp_is_a_shared_copy),
		TEST(dispatched_functions_are_fine),
		TEST(an_initialiser_of_a_family_is_not),
		TEST(a_family_has_its_limit),
		TEST(what_a_resolver_chooses_is_fine),
		TEST(code_is_found_wherever_it_is),
		TEST(tables_between_functions_are_no_code),
		TEST(only_the_first_functions_are_listed),
		TEST(without_a_promise_there_are_notes_only),
		TEST(without_rules_nothing_is_examined),
		TEST(other_machines_are_not_examined),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
