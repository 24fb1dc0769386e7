/* Undefined symbols: what may provide them, and those that nothing does. */
#include "verify_fixture.h"

#define LAZY "-nostdlib -Wl,-z,lazy "

static struct companions beside;

static struct verify_report verify_tree(void)
{
	struct pack_request p = request();

	shell("rm -f '%s'/*", test_path("out"));
	return verify_with(
		(struct verify_request){.wheel = pack_ok(&p).path, .companions = beside});
}

static int start(void **state)
{
	beside = (struct companions){0};
	return setup(state);
}

static void nothing_is_wanted(void **state)
{
	(void)state;
	make_tree();
	struct verify_report r = verify_tree();
	assert_clean(&r);
}

static void a_symbol_of_nobody(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY, "int gone(void);\nint answer(void) { return gone(); }\n", LAZY);
	struct verify_report r = verify_tree();
	assert_only_error(&r, "undefined", "tiny/libtiny.so",
			  "needs the symbol 'gone', which nothing provides");
}

static void names_of_cpp_are_demangled(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY,
		"int gone(void) __asm__(\"_ZN2at6native4goneEi\");\nint answer(void) { return "
		"gone(); }\n",
		LAZY);
	struct verify_report r = verify_tree();
	assert_only_error(&r, "undefined", "tiny/libtiny.so", "'at::native::gone(int)'");
}

static void a_weak_symbol_may_be_of_nobody(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY,
		"__attribute__((weak)) int gone(void);\nint answer(void) { return gone ? gone() : "
		"42; }\n",
		LAZY);
	struct verify_report r = verify_tree();
	assert_clean(&r);
}

static void a_symbol_of_another_library_inside(void **state)
{
	(void)state;
	make_tree();
	compile("tree/tiny/libbase.so", "int base(void) { return 41; }\n",
		"-nostdlib -Wl,-soname,libbase.so");
	compile(LIBRARY, "int base(void);\nint answer(void) { return base() + 1; }\n", LAZY);
	struct verify_report r = verify_tree();
	assert_clean(&r);
}

static void symbols_of_python_come_with_the_program(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY,
		"int PyLong_FromLong(void), _Py_NoneStruct_(void);\nint answer(void) { return "
		"PyLong_FromLong() + "
		"_Py_NoneStruct_(); }\n",
		LAZY);
	struct verify_report r = verify_tree();
	assert_clean(&r);
}

static void symbols_of_the_system_have_versions(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY, "#include <stdlib.h>\nint answer(void) { return atoi(\"42\"); }\n", "");
	struct verify_report r = verify_tree();
	assert_clean(&r);
	/* A library of glibc has none without. */
	compile(LIBRARY,
		"#include <stdlib.h>\nint gone(void);\nint answer(void) { return atoi(\"42\") + "
		"gone(); }\n",
		"");
	r = verify_tree();
	assert_only_error(&r, "undefined", "tiny/libtiny.so", "'gone'");
}

static void symbols_of_the_c_library_without_a_version(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY,
		"void *dlopen(const char *, int);\nint cosf(int);\nint answer(void) { return "
		"dlopen(0, 1) != 0 && "
		"cosf(1); }\n",
		LAZY "-fno-builtin");
	struct verify_report r = verify_tree();
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "undefined", "tiny/libtiny.so", "dlopen");
	assert_found(&r, FINDING_WARNING, "undefined", "tiny/libtiny.so",
		     "of the C library, which it does not need by name");
}

static void a_version_that_a_library_inside_does_not_have(void **state)
{
	(void)state;
	make_tree();
	test_write(test_path("map"), "BASE_1 { global: base; other; local: *; };");
	compile("tree/tiny/libbase.so",
		"int base(void) { return 41; }\nint other(void) { return 1; }\n",
		arena_printf(&arena, "-nostdlib -Wl,-soname,libbase.so,--version-script,%s",
			     test_path("map")));
	compile(LIBRARY,
		"int base(void), other(void);\nint answer(void) { return base() + other(); }\n",
		arena_printf(&arena, LAZY "-Wl,--disable-new-dtags,-rpath,'$ORIGIN' -L%s -lbase",
			     test_path("tree/tiny")));
	struct verify_report r = verify_tree();
	assert_clean(&r);
	test_write(test_path("map"), "BASE_1 { global: base; local: *; };");
	compile("tree/tiny/libbase.so", "int base(void) { return 41; }\n",
		arena_printf(&arena, "-nostdlib -Wl,-soname,libbase.so,--version-script,%s",
			     test_path("map")));
	r = verify_tree();
	assert_only_error(&r, "undefined", "tiny/libtiny.so", "'other@BASE_1'");
}

/* A library that was not given: what it cannot have is missing all the same. */
static void symbols_that_absent_libraries_cannot_have(void **state)
{
	static const struct {
		const char *soname, *symbol;
		bool missing;
	} rows[] = {{"libc10.so", "_ZN3c105ErrorC2ENS_14SourceLocationESs", false},
		    {"libc10.so", "_ZTVN3c105ErrorE", false},
		    {"libtorch_python.so", "_Z16THPVariable_WrapN2at10TensorBaseE", false},
		    {"libtorch.so", "_ZNKSt5ctypeIcE8do_widenEc", false},
		    {"libtorch.so", "_Znwm", false},
		    {"libtorch_cpu.so", "aoti_torch_delete_tensor_object", false},
		    {"libtorch_cpu.so", "_ZN3ext6launchEN2at6TensorE", true},
		    {"libtorch_cpu.so", "_ZTIN3ext4BaseE", true},
		    {"libtorch_cpu.so", "_Z12forward_cudaN2at6TensorE", true},
		    {"libcudart.so.12", "cudaMalloc", false},
		    {"libcudart.so.12", "_ZN3ext6launchEi", true},
		    {"libcudart.so.12", "__cudaRegisterLinkedBinary_1_a_cu_2", true},
		    {"libz.so.1", "inflate", false},
		    {"libz.so.1", "_ZN3ext4sizeEv", true},
		    {"libstdc++.so.6", "_ZNSt6localeC1Ev", false},
		    {"libstdc++.so.6", "_ZN3ext4sizeEv", true},
		    {"libext.so", "_ZN3ext4sizeEv", false}};
	static struct arena tables;

	(void)state;
	make_tree();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		compile("absent.so",
			arena_printf(&arena,
				     "int absent(void) __asm__(\"%s\");\nint absent(void) { return "
				     "1; }\n",
				     rows[i].symbol),
			arena_printf(&arena, "-nostdlib -Wl,-soname,%s", rows[i].soname));
		compile(LIBRARY,
			arena_printf(&arena,
				     "int absent(void) __asm__(\"%s\");\nint answer(void) { return "
				     "absent(); }\n",
				     rows[i].symbol),
			arena_printf(&arena, LAZY "-Wl,--no-as-needed '%s'",
				     test_path("absent.so")));
		struct pack_request p = request();
		shell("rm -f '%s'/*", test_path("out"));
		struct verify_request q = {.wheel = pack_ok(&p).path,
					   .tables = shipped_tables(&tables)};
		strlist_ref(&q.provided, &arena, rows[i].soname);
		struct verify_report r = verify_with(q);
		if (r.errors != rows[i].missing)
			fail_msg("%s of %s: %s", rows[i].symbol, rows[i].soname,
				 verify_text(&r, &arena));
		if (rows[i].missing)
			assert_only_error(&r, "undefined", "tiny/libtiny.so",
					  "which nothing provides");
	}
}

static void versions_that_a_library_lacks(void **state)
{
	static const char *const maps[] = {"BASE_1 { global: base; };",
					   "BASE_0 { global: base; }; BASE_1 { } BASE_0;",
					   "BASE_2 { global: base; };", "{ global: base; };"};

	(void)state;
	make_tree();
	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		test_write(test_path("map"), maps[i]);
		compile("tree/tiny/libbase.so", "int base(void) { return 41; }\n",
			arena_printf(&arena, "-nostdlib -Wl,-soname,libbase.so,--version-script,%s",
				     test_path("map")));
		if (i == 0)
			compile(LIBRARY,
				"int base(void);\nint answer(void) { return base() + 1; }\n",
				arena_printf(&arena,
					     LAZY
					     "-Wl,--disable-new-dtags,-rpath,'$ORIGIN' -L%s -lbase",
					     test_path("tree/tiny")));
		struct verify_report r = verify_tree();
		if (i == 2)
			assert_only_error(&r, "undefined", "tiny/libtiny.so",
					  "needs version 'BASE_1' of 'libbase.so'");
		else
			assert_clean(&r);
	}
}

/* libbeside.so as the library of a companion. */
static void make_companion(const char *text)
{
	compile("libbeside.so", text, "-nostdlib -Wl,-soname,libbeside.so");
	compile(LIBRARY, "int beside(void);\nint answer(void) { return beside(); }\n",
		arena_printf(&arena, LAZY "-L%s -lbeside", test_path(".")));
}

static struct verify_report verify_beside(void)
{
	struct pack_request p = request();

	shell("rm -f '%s'/*", test_path("out"));
	struct verify_request q = {.wheel = pack_ok(&p).path, .companions = beside};
	strlist_ref(&q.provided, &arena, "libbeside.so");
	return verify_with(q);
}

static void symbols_of_a_companion_that_is_not_at_hand(void **state)
{
	(void)state;
	make_tree();
	make_companion("int beside(void) { return 42; }\n");
	struct verify_report r = verify_beside();
	assert_int_equal(r.errors + r.warnings, 0);
	assert_found(&r, FINDING_NOTE, "undefined-unchecked", "",
		     "1 symbol may come from libraries that were not given (--with): libbeside.so");
}

static void symbols_of_a_companion_at_hand(void **state)
{
	struct strlist files = {0};

	(void)state;
	make_tree();
	make_companion("int beside(void) { return 42; }\n");
	strlist_add(&files, &arena, test_path("libbeside.so"));
	strlist_add(&files, &arena, test_path("tree/tiny/__init__.py"));
	assert_ok(companions_of_files(&files, &arena, &beside, &err), &err);
	assert_int_equal(beside.count, 1);
	struct verify_report r = verify_beside();
	assert_clean(&r);
	/* Another release of it, without the function. */
	beside.count = 0;
	compile("libbeside.so", "int besides(void) { return 42; }\n",
		"-nostdlib -Wl,-soname,libbeside.so");
	assert_ok(companions_of_files(&files, &arena, &beside, &err), &err);
	r = verify_beside();
	assert_only_error(&r, "undefined", "tiny/libtiny.so", "'beside'");
}

static void symbols_of_a_wheel_beside(void **state)
{
	(void)state;
	make_tree();
	compile("tree/tiny/libbeside.so", "int beside(void) { return 42; }\n",
		"-nostdlib -Wl,-soname,libbeside.so");
	const char *other = arena_strdup(&arena, packed());
	assert_ok(companions_of_wheel(other, test_run(), &arena, &beside, &err), &err);
	assert_int_equal(beside.count, 2);
	test_dir();
	make_tree();
	make_companion("int beside(void) { return 42; }\n");
	struct verify_report r = verify_beside();
	assert_clean(&r);
}

static void a_companion_that_is_none(void **state)
{
	(void)state;
	test_write(test_path("x-1-py3-none-any.whl"), "no archive");
	assert_err(companions_of_wheel(test_path("x-1-py3-none-any.whl"), test_run(), &arena,
				       &beside, &err),
		   &err, ERR_INTEGRITY, "x-1-py3");
}

static void what_is_open_spreads(void **state)
{
	(void)state;
	make_tree();
	/* libtiny needs libmiddle, which needs a library that
	 * was not given: its symbols may come from there. */
	compile("libbeside.so", "int beside(void) { return 42; }\n",
		"-nostdlib -Wl,-soname,libbeside.so");
	compile("tree/tiny/libmiddle.so",
		"int beside(void);\nint middle(void) { return beside(); }\n",
		arena_printf(&arena, LAZY "-Wl,-soname,libmiddle.so -L%s -lbeside",
			     test_path(".")));
	compile(LIBRARY,
		"int middle(void), beside(void);\nint answer(void) { return middle() + beside(); "
		"}\n",
		arena_printf(&arena, LAZY "-Wl,--disable-new-dtags,-rpath,'$ORIGIN' -L%s -lmiddle",
			     test_path("tree/tiny")));
	struct verify_report r = verify_beside();
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_NOTE, "undefined-unchecked", "", "2 symbols");
}

static void only_the_first_symbols_are_listed(void **state)
{
	AUTO_BUF struct buf text = {0};

	(void)state;
	make_tree();
	for (int i = 0; i < 15; i++)
		buf_printf(&text, "int gone%d(void);\n", i);
	buf_addstr(&text, "int answer(void) { return 0");
	for (int i = 0; i < 15; i++)
		buf_printf(&text, " + gone%d()", i);
	buf_addstr(&text, "; }\n");
	compile(LIBRARY, buf_cstr(&text), LAZY);
	struct verify_report r = verify_tree();
	assert_int_equal(r.errors, 11);
	assert_found(&r, FINDING_ERROR, "undefined", "tiny/libtiny.so", "needs 5 more symbols");
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_is_wanted),
		T(a_symbol_of_nobody),
		T(names_of_cpp_are_demangled),
		T(a_weak_symbol_may_be_of_nobody),
		T(a_symbol_of_another_library_inside),
		T(symbols_of_python_come_with_the_program),
		T(symbols_of_the_system_have_versions),
		T(symbols_of_the_c_library_without_a_version),
		T(a_version_that_a_library_inside_does_not_have),
		T(symbols_that_absent_libraries_cannot_have),
		T(versions_that_a_library_lacks),
		T(symbols_of_a_companion_that_is_not_at_hand),
		T(symbols_of_a_companion_at_hand),
		T(symbols_of_a_wheel_beside),
		T(a_companion_that_is_none),
		T(what_is_open_spreads),
		T(only_the_first_symbols_are_listed),
	};

	return cmocka_run_group_tests(tests, load_policy, NULL);
}
