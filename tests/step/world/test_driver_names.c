#include "support.h"

#include <string.h>

#include "base/buf.h"
#include "step/world/toolkit_tree.h"

static struct arena arena;
static struct err err;

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* The names of a text, sorted, with blanks between. */
static const char *names(const char *text)
{
	struct strlist l = {0};

	assert_ok(driver_names(text, strlen(text), &arena, &l, &err), &err);
	strlist_sort(&l);
	return strlist_join(&l, &arena, " ");
}

static void declarations_are_read(void **state)
{
	(void)state;
	assert_string_equal(
		names("CUresult CUDAAPI cuInit(unsigned int Flags);\n"
		      "CUresult CUDAAPI\n    cuDevicePrimaryCtxRelease\n(CUdevice dev);\r\n"
		      "__CUDA_DEPRECATED CUresult CUDAAPI cuLaunch (CUfunction f);CUresult CUDAAPI "
		      "cuX(void);"),
		"cuDevicePrimaryCtxRelease cuInit cuLaunch cuX");
}

static void what_is_not_a_declaration_is_left_out(void **state)
{
	(void)state;
	assert_string_equal(names("typedef void (CUDAAPI *CUhostFn)(void *userData);\n"
				  "#define CUDAAPI __stdcall\n"
				  "#define CUDAAPI\n"
				  "cuAfterAnEmptyDefine(x);\n"
				  "/* CUresult CUDAAPI cuComment(void); */ // CUDAAPI cuLine(\n"
				  "char *s = \"CUDAAPI cuText(\\\"CUDAAPI cuQuoted(\";\n"
				  "CUresult CUDAAPI cudaRuntime(void);\n"
				  "CUresult CUDAAPI cuNoBracket;\n"
				  "CUresult cuNoWord(void);\n"
				  "CUresult CUDAAPI cuKept(int /* a comment, */ x);\n"),
			    "cuKept");
}

static void defines_give_other_names(void **state)
{
	(void)state;
	assert_string_equal(
		names("#define cuDeviceTotalMem cuDeviceTotalMem_v2\n"
		      "  #  define cuMemcpyHtoD \\\n   __CUDA_API_PTDS(cuMemcpyHtoD_v2)\n"
		      "#define cuStreamQuery __CUDA_API_PTSZ( cuStreamQuery )\r\n"
		      "#define cuMacro(x) cuNotThis\n"
		      "#define cuNumber 12\n"
		      "#define __CUDA_API_PTDS(api) api ## _ptds\n"
		      "#undef cuGone\n#if cuCondition cuThing\n"),
		"cuDeviceTotalMem_v2 cuMemcpyHtoD_v2 cuMemcpyHtoD_v2_ptds cuStreamQuery "
		"cuStreamQuery_ptsz");
}

static void texts_that_break_off_end(void **state)
{
	const char *const texts[] = {"",
				     "/*",
				     "/* CUDAAPI cuX(",
				     "//",
				     "\"",
				     "'\\",
				     "CUDAAPI",
				     "CUDAAPI cuX",
				     "#",
				     "#define",
				     "#define cuX",
				     "#define cuX __CUDA_API_PTSZ",
				     "#define cuX __CUDA_API_PTSZ(",
				     "\\",
				     "\\\n",
				     "CUresult CUDAAPI /"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_string_equal(names(texts[i]), "");
	struct strlist l = {0};
	const char nul[] = "CUresult CUDAAPI\0cuX(void);";
	assert_ok(driver_names(nul, sizeof(nul) - 1, &arena, &l, &err), &err);
	assert_int_equal(l.count, 1);
	/* What lies behind the given length is not read. */
	l = (struct strlist){0};
	assert_ok(driver_names("CUDAAPI cuX(", 11, &arena, &l, &err), &err);
	assert_int_equal(l.count, 0);
}

static void there_are_limits(void **state)
{
	AUTO_BUF struct buf text = {0};
	struct strlist l = {0};

	(void)state;
	buf_addstr(&text, "CUDAAPI cuX");
	for (int i = 3; i < 200; i++)
		buf_addc(&text, 'x');
	buf_addstr(&text, "(");
	assert_ok(driver_names(text.data, text.len, &arena, &l, &err), &err);
	assert_int_equal(strlen(l.items[0]), 200);
	text.data[text.len - 1] = 'x';
	buf_addstr(&text, "(");
	assert_err(driver_names(text.data, text.len, &arena, &l, &err), &err, ERR_INTEGRITY,
		   "more than 200 characters");
	buf_reset(&text);
	l = (struct strlist){0};
	for (int i = 0; i <= 20000; i++)
		buf_addstr(&text, "CUDAAPI cuX(");
	assert_err(driver_names(text.data, text.len, &arena, &l, &err), &err, ERR_INTEGRITY,
		   "more than 20000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(declarations_are_read, teardown),
		cmocka_unit_test_teardown(what_is_not_a_declaration_is_left_out, teardown),
		cmocka_unit_test_teardown(defines_give_other_names, teardown),
		cmocka_unit_test_teardown(texts_that_break_off_end, teardown),
		cmocka_unit_test_teardown(there_are_limits, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
