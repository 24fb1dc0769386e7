/* Wheels that others made: what pip, the loader and
 * Python do with them, and nothing else, is told. */
#include "foreign_fixture.h"

#include <elf.h>

static const struct tables *tables;
static const struct isa_rules *rules;

static int load(void **state)
{
	static struct arena rows;

	if (load_policy(state) != 0)
		return -1;
	tables = shipped_tables(&rows);
	rules = shipped_rules(&rows);
	return 0;
}

static struct verify_report judge(const char *name)
{
	static const struct maker plain = {0};
	return verify_with((struct verify_request){
		.wheel = wheel_by(name, &plain), .tables = tables, .code = rules});
}

static void assert_silent(const struct verify_report *r)
{
	if (r->errors || r->warnings)
		fail_msg("%s", verify_text(r, &arena));
}

static bool says(const struct verify_report *r, const char *text)
{
	return test_has(verify_text(r, &arena), text);
}

#define LINUX "-py3-none-manylinux_2_17_x86_64.whl"
#define F "int f(void) { return 1; }\n"
#define G "int f(void); int g(void) { return f(); }\n"

static void spellings_of_one_name_and_version(void **state)
{
	(void)state;
	test_write(file("a.py"), "");
	struct verify_request q = {
		.wheel = wheel_by("multi_res-1.0+cu12.AbiTRUE-py3-none-any.whl",
				  &(struct maker){"Multi.Res", "1.0.0+CU12-abitrue",
						  "Multi-Res-1+cu12.abitrue.dist-info", NULL,
						  "sha512", NULL, false})};
	struct verify_report r = verify_with(q);
	assert_silent(&r);
	q.wheel =
		wheel_by("multi_res-1.0+cu12-py3-none-any.whl", &(struct maker){.version = "1.0"});
	r = verify_with(q);
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "has the Version '1.0'");
	q.wheel = wheel_by("multi_res-1.0_odd-py3-none-any.whl",
			   &(struct maker){.version = "1.0-odd"});
	r = verify_with(q);
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "not valid by PEP 440");
	q.wheel = wheel_by("multi_res-1.0-py3-none-any.whl",
			   &(struct maker){.info = "multi_res-1.1.dist-info"});
	r = verify_with(q);
	assert_found(&r, FINDING_ERROR, "metadata", "multi_res-1.1.dist-info",
		     "is not named after the file");
}

static void a_stronger_digest_is_compared(void **state)
{
	(void)state;
	test_write(file("a.py"), "x = 1\n");
	const char *wheel =
		wheel_by("a-1-py3-none-any.whl", &(struct maker){.algorithm = "sha384"});
	struct verify_report r = verify(wheel);
	assert_silent(&r);
	shell("cd '%s' && python3 - '%s' <<'E'\nimport sys, zipfile\nw = sys.argv[1]\nz = "
	      "zipfile.ZipFile(w)\n"
	      "d = [(i, z.read(i)) for i in z.infolist()]\nz = zipfile.ZipFile(w, 'w')\n"
	      "[z.writestr(i, b.replace(b'x = 1', b'x = 2') if i.filename == 'a.py' else b) for i, "
	      "b in "
	      "d]\nz.close()\nE",
	      test_path("."), wheel);
	r = verify(wheel);
	assert_only_error(&r, "record", "a.py", "has the digest sha384=");
}

static void files_that_every_start_reads(void **state)
{
	(void)state;
	static const char *const names[] = {"x.pth",
					    "sitecustomize.py",
					    "p-1.data/purelib/usercustomize.py",
					    "usercustomize/__init__.py",
					    "sitecustomize.pyc",
					    "sitecustomize.cpython-313-x86_64-linux-gnu.so",
					    "p-1.data/purelib/x.pth",
					    "p-1.data/data/lib/python3.13/site-packages/x.pth"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		test_dir();
		shell("mkdir -p \"$(dirname '%s')\"", file(names[i]));
		test_write(file(names[i]), "import os\n");
		struct verify_report r = judge("p-1-py3-none-any.whl");
		assert_found(&r, FINDING_WARNING, "start", names[i], "every start of Python");
	}

	test_dir();
	test_write(file("p/x.pth"), "");
	test_write(file("p/sitecustomize.py"), "");
	struct verify_report r = judge("p-1-py3-none-any.whl");
	assert_silent(&r);
}

static void names_that_many_have_at_the_top(void **state)
{
	(void)state;
	static const char *const names[] = {"test/a.txt", "p-1.data/purelib/src/x.py", "example.py",
					    "__init__.py"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		test_dir();
		shell("mkdir -p \"$(dirname '%s')\"", file(names[i]));
		test_write(file(names[i]), "");
		struct verify_report r = judge("p-1-py3-none-any.whl");
		assert_int_equal(r.warnings, 1);
		assert_found(&r, FINDING_WARNING, "name", names[i], "they overwrite each other");
	}

	test_dir();
	shell("mkdir -p '%s/test' '%s' '%s' '%s/docs'", file("p"), file("data"), file("a"),
	      file("data-1.data/data"));
	for (size_t i = 0; i < 4; i++)
		test_write(file((const char *[]){"p/test/a", "a/data", "data-1.data/data/docs/x",
						 "data/a.py"}[i]),
			   "");
	struct verify_report r = judge("data-1-py3-none-any.whl");
	assert_silent(&r);
}

static void versions_of_metadata(void **state)
{
	(void)state;
	static const struct {
		const char *version;
		int warnings;
	} cases[] = {{"1.1", 0}, {"2.1", 0}, {"2.5", 0}, {"2.10", 0}, {"2.0", 1},
		     {"1.3", 1}, {"3.0", 1}, {"2.", 1},  {"2.1x", 1}};
	test_write(file("a.py"), "");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verify_report r = verify_with((struct verify_request){
			.wheel = wheel_by("p-1-py3-none-any.whl",
					  &(struct maker){.metadata_version = cases[i].version})});
		assert_int_equal(r.warnings + 2 * r.errors, cases[i].warnings);
		if (cases[i].warnings)
			assert_found(&r, FINDING_WARNING, "metadata", "p-1.dist-info/METADATA",
				     "which no specification has");
	}
}

/* pip 26.3 and uv 0.13.9 were seen to fail on each error. */
static void what_installers_fail_on(void **state)
{
	static const struct {
		const char *name, *text;
		enum finding_level level;
		const char *rule, *says;
	} cases[] = {
		{"p-1.data/other/a", "", FINDING_ERROR, "metadata",
		 "in a directory of .data other than"},
		{"p-1.data/a.py", "", FINDING_ERROR, "metadata", "is in .data itself"},
		{"p-1.dist-info/entry_points.txt", "[console_scripts]\nrun\n", FINDING_ERROR,
		 "metadata", "entry point 'run', which has no '='"},
		{"p-1.dist-info/entry_points.txt", "[gui_scripts]\nrun = p\n", FINDING_ERROR,
		 "metadata", "names no function"},
		{"p-1.dist-info/entry_points.txt", "[console_scripts]\n../run = p:f\n",
		 FINDING_ERROR, "metadata", "names a file elsewhere"},
		{"p/nul.txt", "", FINDING_WARNING, "name", "the name of a device on Windows"},
		{"p/x.so", "/* GNU ld script */ INPUT(-lx)\n", FINDING_NOTE, "elf",
		 "is a linker script"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		test_dir();
		test_write(file("p/a.py"), "");
		test_write(file("p-1.dist-info/x"), "");
		test_write(file(cases[i].name), cases[i].text);
		struct verify_report r = judge("p-1" LINUX);
		assert_found(&r, cases[i].level, cases[i].rule, cases[i].name, cases[i].says);
	}

	test_dir();
	test_write(file("p/a.py"), "");
	test_write(file("p-1.data/purelib/p/a.py"), "");
	test_write(file("p/\xc3\xa9.py"), "");
	test_write(file("p/e\xcc\x81.py"), "");
	struct verify_report twice = judge("p-1" LINUX);
	assert_only_error(&twice, "name", "p/a.py",
			  "is the same as 'p-1.data/purelib/p/a.py' once installed");
	assert_true(says(&twice, "in how its accents are written"));
	static const struct {
		const char *lines, *says;
	} metadata[] = {
		{"Requires-Python: ^3.8\n", "which installers ignore"},
		{"Requires-Dist: torch (>=1.9.*)\n", "which pip refuses: '>=1.9.*' is not"},
		{"Requires-Dist: torch[a, b]>=2.6+cpu; extra == 'x'\n",
		 "which pip refuses: '>=2.6+cpu' is not"},
		{"Requires-Dist: a; python_version > 3\n",
		 "which pip refuses: the text after the ';' is not a marker"},
		{"Requires-Dist: a[b\n", "which pip refuses: its extras have no end"},
		{"Requires-Dist: >=1\n", "which pip refuses: it names nothing"},
		{"Requires-Python: >=3.6\nRequires-Python: >=3.7\n", "has 2 lines Requires-Python"},
		{"Author: J\xfcrgen\n", "is not UTF-8"},
	};
	for (size_t i = 0; i < ARRAY_LEN(metadata); i++) {
		test_write(file("p/a.py"), "");
		struct verify_report r = verify(
			wheel_by("p-1" LINUX, &(struct maker){.metadata = metadata[i].lines}));
		assert_true(says(&r, metadata[i].says));
	}
}

static void names_that_windows_changes(void **state)
{
	(void)state;
	test_write(file("p/a.py"), "");
	test_write(file("p./A.py"), "");
	struct verify_report r = judge("p-1-py3-none-any.whl");
	assert_found(&r, FINDING_WARNING, "name", "p./A.py", "ends in a dot or a space");
	assert_true(says(&r, "is the same as 'p"));
}

/* Two libraries, of which the second needs the first. */
static void pair(const char *first, const char *second, const char *flags)
{
	library(first, F, "-Wl,-soname,libf.so.1");
	library(second, G, arena_printf(&arena, "'%s' %s", file(first), flags));
}

#define RPATH(path) "-Wl,--disable-new-dtags '-Wl,-rpath," path "'"
#define RUNPATH(path) "-Wl,--enable-new-dtags '-Wl,-rpath," path "'"

static void search_paths_that_lead_there(void **state)
{
	(void)state;
	static const char *const rows[][3] = {
		{"p/libf.so.1", "p/c.so", RPATH("$ORIGIN")},
		{"p/libf.so.1", "p/c.so", RUNPATH("${ORIGIN}/")},
		{"p.libs/libf.so.1", "p/c.so", RUNPATH("$ORIGIN/../p.libs")},
		{"p-1.data/platlib/p.libs/libf.so.1", "p-1.data/platlib/p/c.so",
		 RPATH("$ORIGIN/../p.libs")},
		{"p.libs/libf.so.1", "p-1.data/purelib/p/c.so", RPATH("$ORIGIN/../p.libs")},
		{"p-1.data/data/lib/libf.so.1", "p/c.so", RPATH("$ORIGIN/../../..")},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		test_dir();
		pair(rows[i][0], rows[i][1], rows[i][2]);
		struct verify_report r = judge("p-1" LINUX);
		assert_silent(&r);
		assert_false(says(&r, "[needed]"));
	}

	test_dir();
	pair("p/libf.so.1", "p/c.so", "");
	struct verify_report r = judge("p-1" LINUX);
	assert_found(&r, FINDING_WARNING, "needed", "p/c.so", "not on its search path");
	test_dir();
	pair("p/libf.so.1", "p/c.so", RPATH("/opt/vendor/lib:$ORIGIN"));
	r = judge("p-1" LINUX);
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "rpath", "p/c.so",
		     "looks for libraries in '/opt/vendor/lib'");
}

/* a.so -> libb.so -> libf.so.1; only a.so says where they are. */
static void chain(const char *of_a, const char *of_b)
{
	library("p/lib/libf.so.1", F, "-Wl,-soname,libf.so.1");
	library("p/lib/libb.so", G,
		arena_printf(&arena, "-Wl,-soname,libb.so '%s' %s", file("p/lib/libf.so.1"), of_b));
	library("p/a.so", "int g(void); int h(void) { return g(); }\n",
		arena_printf(&arena, "'%s' %s", file("p/lib/libb.so"), of_a));
}

static void search_paths_are_handed_on(void **state)
{
	(void)state;
	chain(RPATH("$ORIGIN/lib"), "");
	struct verify_report r = judge("p-1" LINUX);
	assert_silent(&r);
	test_dir(); /* a DT_RUNPATH serves its own library alone */
	chain(RUNPATH("$ORIGIN/lib"), "");
	r = judge("p-1" LINUX);
	assert_found(&r, FINDING_WARNING, "needed", "p/lib/libb.so", "needs 'libf.so.1'");
	test_dir(); /* and shuts out what loaders hand on */
	chain(RPATH("$ORIGIN/lib"), RUNPATH("$ORIGIN/elsewhere"));
	r = judge("p-1" LINUX);
	assert_found(&r, FINDING_WARNING, "needed", "p/lib/libb.so", "needs 'libf.so.1'");
	test_dir(); /* but what is loaded already is there */
	chain(arena_printf(&arena, "-Wl,--no-as-needed '%s' " RUNPATH("$ORIGIN/lib"),
			   file("p/lib/libf.so.1")),
	      "");
	r = judge("p-1" LINUX);
	assert_silent(&r);
}

static void a_set_of_tags_in_one_line(void **state)
{
	(void)state;
	library("p/f.so", F, "");
	struct verify_report r = verify_with((struct verify_request){
		.wheel = wheel_by("p-1-py2.py3-none-manylinux_2_17_x86_64.whl",
				  &(struct maker){.one_tag = true})});
	assert_found(&r, FINDING_WARNING, "metadata", "WHEEL",
		     "has 0 of the 2 Tags of the file name, and a set of them");
}

/* A package's __init__.py may load another's library with RTLD_GLOBAL: usearch does. */
static void symbols_of_required_packages(void **state)
{
	(void)state;
	library("p/c.so", "int f(void), h(void); int g(void) { return f() + h(); }\n", "");
	struct verify_request q = {
		.wheel = wheel_by("p-1" LINUX,
				  &(struct maker){.metadata = "Requires-Dist: F.lib>=1\n"})};
	struct verify_report r = verify_with(q);
	assert_found(&r, FINDING_ERROR, "undefined", "p/c.so",
		     "needs the symbol 'f', which nothing provides");
	test_write(file("p/__init__.py"), "ctypes.CDLL(f.__file__, mode=ctypes.RTLD_GLOBAL)\n");
	q.wheel = wheel_by("p-1" LINUX, &(struct maker){.metadata = "Requires-Dist: F.lib>=1\n"});
	r = verify_with(q);
	assert_silent(&r);
	assert_found(&r, FINDING_NOTE, "undefined", "p/c.so",
		     "the first of 2; its Python code may load it with RTLD_GLOBAL");
	strlist_add(&q.given, &arena, "f_lib");
	r = verify_with(q);
	assert_found(&r, FINDING_ERROR, "undefined", "p/c.so",
		     "needs the symbol 'f', which nothing provides");
}

static void libraries_of_required_packages(void **state)
{
	(void)state;
	library("libf.so.1", F, "-Wl,-soname,libf.so.1");
	const char *other = wheel_by("f_lib-1" LINUX, &(struct maker){0});
	library("p/c.so", G, arena_printf(&arena, "'%s'", file("libf.so.1")));
	unlink(file("libf.so.1"));
	struct verify_request q = {
		.wheel = wheel_by("p-1" LINUX,
				  &(struct maker){.metadata = "Requires-Dist: F.lib>=1\n"})};
	struct verify_report r = verify_with(q);
	assert_silent(&r);
	assert_found(&r, FINDING_NOTE, "needed", "p/c.so",
		     "no package that it requires has its name");
	struct companions c = {0};
	assert_ok(companions_of_wheel(other, test_run(), &arena, &c, &err), &err);
	strlist_add(&q.provided, &arena, "libf.so.1");
	strlist_add(&q.given, &arena, "f_lib");
	q.companions = c;
	r = verify_with(q);
	assert_false(says(&r, "[needed]"));
	q.provided = (struct strlist){0};
	r = verify_with(q);
	assert_found(&r, FINDING_ERROR, "needed", "p/c.so",
		     "needs 'libf.so.1', which is neither in the wheel");
	q = (struct verify_request){.wheel = wheel_by("q-1" LINUX, &(struct maker){0})};
	r = verify_with(q);
	assert_found(&r, FINDING_ERROR, "needed", "p/c.so",
		     "needs 'libf.so.1', which is neither in the wheel");
}

/* The library with another ELF header, or with other program headers of a type. */
static void patch(const char *name, void (*change)(Elf64_Ehdr *h, Elf64_Phdr *p))
{
	size_t len;
	char *data = read_bytes(file(name), &len);
	Elf64_Ehdr *h = (Elf64_Ehdr *)(void *)data;

	change(h, (Elf64_Phdr *)(void *)(data + h->e_phoff));
	test_write_bytes(file(name), data, len);
	free(data);
}

static void shift_last_segment(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	Elf64_Phdr *last = NULL;

	for (int i = 0; i < h->e_phnum; i++)
		last = p[i].p_type == PT_LOAD ? &p[i] : last;
	last->p_offset -= 8;
	last->p_filesz = 0;
	for (int i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_DYNAMIC || p[i].p_type == PT_GNU_RELRO)
			p[i].p_type = PT_NULL;
}

static void no_stack_header(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	for (int i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_GNU_STACK)
			p[i].p_type = PT_NULL;
}

static void on_arm(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	h->e_machine = EM_AARCH64;
	no_stack_header(h, p);
}

static void on_arm_with_64k(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	on_arm(h, p);
	for (int i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD)
			p[i].p_align = 0x10000;
}

static void of_s390x(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	(void)p;
	h->e_ident[EI_CLASS] = ELFCLASS64;
	h->e_machine = EM_S390;
}

static void of_freebsd(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	(void)p;
	h->e_ident[EI_OSABI] = ELFOSABI_FREEBSD;
}

static void of_32_bits(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	(void)p;
	h->e_ident[EI_CLASS] = ELFCLASS32;
	h->e_machine = EM_386;
}

static void of_a_gpu(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	(void)p;
	h->e_machine = 224; /* AMDGPU */
}

static void of_loongarch(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	(void)p;
	h->e_machine = 258;
}

static void of_no_machine(Elf64_Ehdr *h, Elf64_Phdr *p)
{
	(void)p;
	h->e_machine = EM_NONE;
}

#define ONE_PAGE "-Wl,-z,max-page-size=0x10000 -Wl,-z,separate-code"

static void what_a_loader_maps(void **state)
{
	(void)state;
	library("p/f.so", "int v = 1; int f(void) { return v; }\n", "");
	patch("p/f.so", shift_last_segment);
	struct verify_report r = judge("p-1" LINUX);
	assert_found(&r, FINDING_ERROR, "elf", "p/f.so", "the loader cannot take it");
	test_dir();
	library("p/f.so", F, "");
	patch("p/f.so", of_freebsd);
	r = judge("p-1" LINUX);
	assert_only_error(&r, "elf", "p/f.so",
			  "the loader cannot take it: the file: it is for the operating system 9");
	test_dir();
	library("p/f.so", F, "");
	shell("truncate -s -1 '%s'", file("p/f.so"));
	r = judge("p-1" LINUX);
	assert_only_error(&r, "elf", "p/f.so", "it is truncated");
	test_dir(); /* it has other numbers for relocations, and no policies */
	library("libm.so.6", "", "-Wl,-soname,libm.so.6");
	library("p/f.so", "int x, *p = &x;\n",
		arena_printf(&arena, "-Wl,--no-as-needed '%s'", file("libm.so.6")));
	patch("p/f.so", of_loongarch);
	unlink(file("libm.so.6"));
	r = judge("p-1-py3-none-manylinux_2_36_loongarch64.whl");
	assert_silent(&r);
	test_dir();
	library("p/f.so", F, "");
	patch("p/f.so", of_no_machine);
	r = judge("p-1" LINUX);
	assert_found(&r, FINDING_ERROR, "elf", "p/f.so", "it is for no machine");
	assert_found(&r, FINDING_ERROR, "tag", "", "'p/f.so' is for ELF machine 0");
	test_dir();
	library("p/f.so", F, "");
	r = judge("p-1-py3-none-linux_x86_64.whl");
	assert_string_equal(r.runs_on.glibc, "2.5");
	test_dir();
	library("p/f.so", F, "");
	patch("p/f.so", on_arm);
	r = judge("p-1-py3-none-manylinux_2_17_aarch64.whl");
	assert_found(&r, FINDING_WARNING, "elf", "p/f.so", "pages of 64 KiB");
	assert_false(says(&r, "[exec-stack]"));
	test_dir();
	library("p/f.so", F, ONE_PAGE);
	patch("p/f.so", on_arm_with_64k);
	r = judge("p-1-py3-none-manylinux_2_17_aarch64.whl");
	assert_silent(&r);
	test_dir();
	library("p/f.so", F, "");
	patch("p/f.so", no_stack_header);
	r = judge("p-1" LINUX);
	assert_found(&r, FINDING_ERROR, "exec-stack", "p/f.so", "no PT_GNU_STACK");
	r = judge("p-1-py3-none-musllinux_1_2_x86_64.whl");
	assert_silent(&r);
}

static void files_that_are_no_libraries_of_this_machine(void **state)
{
	(void)state;
	library("p/c.so", F, "");
	library("p/helper_x86.so", F, "");
	patch("p/helper_x86.so", of_32_bits);
	library("p/kernels.hsaco", F, "");
	patch("p/kernels.hsaco", of_a_gpu);
	compile("w/p/debug.so", F, "-nostdlib -g -Wl,-z,noexecstack");
	shell("cd '%s' && objcopy --only-keep-debug debug.so debug.so.debug && rm debug.so",
	      file("p"));
	struct verify_report r = judge("p-1" LINUX);
	assert_silent(&r);
	assert_found(&r, FINDING_NOTE, "elf", "p/helper_x86.so", "nothing more is examined");
	shell("cd '%s' && mv debug.so.debug libdebug.so", file("p"));
	r = judge("p-1" LINUX);
	assert_only_error(&r, "elf", "p/libdebug.so", "it holds debug information alone");
	shell("cd '%s' && mkdir .debug && mv libdebug.so .debug/c.so", file("p"));
	test_write(file("p/libc.so"),
		   "/* GNU ld script */\n/* for cc */ GROUP ( c.so AS_NEEDED ( libm.so.6 ) )\n");
	r = judge("p-1" LINUX);
	assert_silent(&r);
	test_write(file("p/libc.so"), "/* GROUP ( c.so )");
	r = judge("p-1" LINUX);
	assert_only_error(&r, "elf", "p/libc.so", "it is not an ELF file");
}

static void programs_and_wheels_for_any_machine(void **state)
{
	(void)state;
	shell("mkdir -p '%s' && cd '%s' && echo 'void _start(void) { for (;;) ; }' > t.c && cc "
	      "-static -nostdlib -o "
	      "tool "
	      "t.c && rm t.c",
	      file("p"), file("p"));
	struct verify_report r = judge("p-1-py3-none-any.whl");
	assert_only_error(&r, "tag", "",
			  "has the platform 'any', but 'p/tool' is a program for x86_64");
	r = judge("p-1-py3-none-manylinux_2_17_aarch64.whl");
	assert_only_error(&r, "tag", "", "but 'p/tool' is for x86_64");
	r = judge("p-1" LINUX);
	assert_silent(&r);
	library("p/arm.so", F, ONE_PAGE);
	patch("p/arm.so", on_arm_with_64k);
	r = judge("p-1-py3-none-any.whl");
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "tag", "", "has the platform 'any'");
	r = judge("p-1" LINUX);
	assert_silent(&r);
	assert_found(&r, FINDING_NOTE, "tag", "p/arm.so", "is for aarch64");
	test_dir();
	library("p/f.so", F, ONE_PAGE);
	patch("p/f.so", of_32_bits);
	r = judge("p-1-py3-none-any.whl");
	assert_only_error(&r, "tag", "",
			  "has the platform 'any', but 'p/f.so' is a library for i686");
	r = judge("p-1-py3-none-manylinux_2_17_i686.whl");
	assert_silent(&r);
	patch("p/f.so", of_s390x);
	r = judge("p-1" LINUX);
	assert_only_error(&r, "tag", "", "but 'p/f.so' is for s390x");
	r = judge("p-1-py3-none-manylinux_2_17_s390x.whl");
	assert_silent(&r);
}

static void musl_alone(void **state)
{
	(void)state;
	library("libc.musl-x86_64.so.1", F, "-Wl,-soname,libc.musl-x86_64.so.1");
	library("p/c.so", G, arena_printf(&arena, "'%s'", file("libc.musl-x86_64.so.1")));
	unlink(file("libc.musl-x86_64.so.1"));
	struct verify_report r = judge("p-1-py3-none-musllinux_1_2_x86_64.whl");
	assert_silent(&r);
	assert_string_equal(r.runs_on.musl, "1.2");
	assert_string_equal(r.runs_on.glibc, "");
	r = judge("p-1" LINUX);
	assert_only_error(&r, "needed", "p/c.so", "needs 'libc.musl-x86_64.so.1'");
	test_dir(); /* zlib is outside, too */
	library("libz.so.1", F, "-Wl,-soname,libz.so.1");
	library("p/c.so", G, arena_printf(&arena, "'%s'", file("libz.so.1")));
	unlink(file("libz.so.1"));
	r = judge("p-1-py3-none-musllinux_1_2_x86_64.whl");
	assert_silent(&r);
	test_dir();
	compile("w/p/c.so", "#include <stdlib.h>\nint f(void) { return atoi(\"1\"); }\n", "");
	r = judge("p-1-py3-none-musllinux_1_2_x86_64.whl");
	assert_found(&r, FINDING_ERROR, "tag", "p/c.so", "and the wheel is for musl");
}

/* A stub without a name was linked: drivers install libcuda.so.1, and containers have no other. */
static void a_driver_by_its_name_without_a_number(void **state)
{
	(void)state;
	library("libcuda.so", F, "");
	library("p/c.so", G, arena_printf(&arena, "-L'%s' -lcuda", file(".")));
	unlink(file("libcuda.so"));
	struct verify_report r = judge("p-1" LINUX);
	assert_only_error(&r, "needed", "p/c.so", "needs 'libcuda.so'");
	test_dir();
	library("libcuda.so.1", F, "-Wl,-soname,libcuda.so.1");
	library("p/c.so", G, arena_printf(&arena, "'%s'", file("libcuda.so.1")));
	unlink(file("libcuda.so.1"));
	r = judge("p-1" LINUX);
	assert_silent(&r);
}

#define MODULE "void *PyInit_c(void) { return 0; }\n"

static void suffixes_that_pythons_look_for(void **state)
{
	(void)state;
	enum { FITS, NOBODY, ONE }; /* who looks for it */
	static const struct {
		const char *suffix, *tags;
		int by;
	} rows[] = {
		{"cpython-313-x86_64-linux-gnu", "cp313-cp313-manylinux_2_17_x86_64", FITS},
		{"cpython-312-x86_64-linux-gnu", "cp313-cp313-manylinux_2_17_x86_64", NOBODY},
		{"cpython-313-aarch64-linux-gnu", "cp313-cp313-manylinux_2_17_x86_64", NOBODY},
		{"cpython-313-darwin", "cp313-cp313-manylinux_2_17_x86_64", NOBODY},
		{"cpython-313", "cp313-cp313-manylinux_2_17_x86_64", NOBODY},
		{"cpython-313-x86_64-linux-musl", "cp313-cp313-manylinux_2_17_x86_64", NOBODY},
		{"cpython-313-x86_64-linux-musl", "cp313-cp313-musllinux_1_2_x86_64", FITS},
		{"cpython-313t-x86_64-linux-gnu", "cp313-cp313-manylinux_2_17_x86_64", NOBODY},
		{"cpython-313t-x86_64-linux-gnu", "cp313-cp313t-manylinux_2_17_x86_64", FITS},
		{"cpython-313-x86_64-linux-gnu", "cp313-cp313t-manylinux_2_17_x86_64", NOBODY},
		{"cpython-313d-x86_64-linux-gnu", "cp313-cp313-manylinux_2_17_x86_64", NOBODY},
		{"cpython-36m-x86_64-linux-gnu", "cp36-cp36m-manylinux_2_17_x86_64", FITS},
		{"cpython-34m", "cp34-cp34m-manylinux1_x86_64", FITS},
		{"cpython-313-x86_64-linux-gnu", "cp312.cp313-cp312.cp313-manylinux_2_17_x86_64",
		 FITS},
		{"cpython-312-x86_64-linux-gnu", "cp312.cp313-cp312.cp313-manylinux_2_17_x86_64",
		 ONE},
		{"cpython-312-x86_64-linux-gnu", "py3-none-manylinux_2_17_x86_64", ONE},
		{"cpython-39-x86_64-linux-gnu", "cp39-abi3-manylinux_2_17_x86_64", ONE},
		{"pypy310-pp73-x86_64-linux-gnu", "pp310-pypy310_pp73-manylinux_2_17_x86_64", FITS},
		{"pypy311-pp73-x86_64-linux-gnu", "pp310-pypy310_pp73-manylinux_2_17_x86_64",
		 NOBODY},
		{"pypy310-pp73-x86_64-linux-gnu", "cp310-cp310-manylinux_2_17_x86_64", NOBODY},
		{"graalpy240-311-native-x86_64-linux-gnu", "cp311-cp311-manylinux_2_17_x86_64",
		 NOBODY},
		{"abi3", "cp39-abi3-manylinux_2_17_x86_64", FITS},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		test_dir();
		library(arena_printf(&arena, "p/c.%s.so", rows[i].suffix), MODULE, "");
		struct verify_report r = judge(arena_printf(&arena, "p-1-%s.whl", rows[i].tags));
		if (rows[i].by == FITS)
			assert_silent(&r);
		else if (rows[i].by == NOBODY)
			assert_only_error(&r, "module", rows[i].suffix,
					  "has a suffix that no Python");
		else
			assert_found(&r, FINDING_WARNING, "module", rows[i].suffix,
				     "by one Python alone");
		library("p/plain.so", MODULE, "");
		r = judge(arena_printf(&arena, "p-1-%s.whl", rows[i].tags));
		assert_int_equal(r.errors, 0);
		assert_int_equal(r.warnings, rows[i].by != FITS);
	}

	test_dir(); /* the other Pythons have one of their own */
	library("p/c.cpython-312-x86_64-linux-gnu.so", MODULE, "");
	library("p/c.abi3.so", MODULE, "");
	test_write(file("p/c.pyd"), "MZ");
	struct verify_report r = judge("p-1-cp39-abi3-manylinux_2_17_x86_64.whl");
	assert_int_equal(r.errors, 0);
	assert_int_equal(r.warnings, 1);
	assert_found(&r, FINDING_WARNING, "module", "p/c.pyd", "has a suffix that no Python");
}

static void the_stable_abi(void **state)
{
	(void)state;
	library("p/c.abi3.so",
		"void PyList_New(long); void PyType_GetQualName(void); void "
		"_PyObject_GetDictPtr(void); void "
		"Py_own(void);\n"
		"void *PyInit_c(void) { PyList_New(1); PyType_GetQualName(); "
		"_PyObject_GetDictPtr(); Py_own(); return "
		"0; }\n"
		"void Py_own(void) {}\n",
		"");
	struct verify_report r = judge("p-1-cp39-abi3-manylinux_2_17_x86_64.whl");
	assert_found(&r, FINDING_WARNING, "abi3", "p/c.abi3.so",
		     "uses _PyObject_GetDictPtr, which the stable ABI");
	assert_only_error(&r, "abi3", "p/c.abi3.so",
			  "uses PyType_GetQualName, which Python 3.11 has first");
	r = judge("p-1-cp311-abi3-manylinux_2_17_x86_64.whl");
	assert_int_equal(r.errors, 0);
	const struct maker m = {.metadata = "Requires-Python: <3.15,>=3.11\n"};
	const char *newer = wheel_by("p-1-cp39-abi3-manylinux_2_17_x86_64.whl", &m);
	r = verify_with((struct verify_request){.wheel = newer, .tables = tables, .code = rules});
	assert_int_equal(r.errors, 0);
	r = judge("p-1-cp311-cp311-manylinux_2_17_x86_64.whl");
	assert_false(says(&r, "[abi3]"));
	shell("cd '%s' && mv c.abi3.so c.cpython-39-x86_64-linux-gnu.so", file("p"));
	r = judge("p-1-cp39-abi3-manylinux_2_17_x86_64.whl");
	assert_false(says(&r, "[abi3]"));
	assert_found(&r, FINDING_WARNING, "module", "p/c.cpython-39", "one Python alone");
}

#ifdef __x86_64__
static void fast_math(void **state)
{
	(void)state;
	shell("mkdir -p '%s' && echo 'int f(void) { return 1; }' > '%s' && f=-ffast-math && "
	      /* GCC 13 and newer */
	      "if cc -mdaz-ftz -fsyntax-only '%s' 2>/dev/null; then f=-mdaz-ftz; fi && "
	      "cc -O2 -s -shared -fPIC $f -o '%s' '%s' && rm '%s'",
	      file("p"), file("p/f.c"), file("p/f.c"), file("p/f.so"), file("p/f.c"),
	      file("p/f.c"));
	struct verify_report r = judge("p-1-py3-none-manylinux_2_41_x86_64.whl");
	assert_found(&r, FINDING_WARNING, "fast-math", "p/f.so", "subnormal numbers off");
	shell("rm '%s'", file("p/f.so"));
	library("p/f.so", F, "-O2");
	r = judge("p-1" LINUX);
	assert_silent(&r);
	/* A program computes as it likes. */
	shell("echo 'int main(void) { return 0; }' > t.c && cc -ffast-math -o '%s' t.c && rm t.c",
	      file("p/tool"));
	r = judge("p-1-py3-none-manylinux_2_41_x86_64.whl");
	assert_silent(&r);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(spellings_of_one_name_and_version),
		TEST(a_stronger_digest_is_compared),
		TEST(files_that_every_start_reads),
		TEST(names_that_many_have_at_the_top),
		TEST(versions_of_metadata),
		TEST(what_installers_fail_on),
		TEST(names_that_windows_changes),
		TEST(search_paths_that_lead_there),
		TEST(search_paths_are_handed_on),
		TEST(a_set_of_tags_in_one_line),
		TEST(symbols_of_required_packages),
		TEST(libraries_of_required_packages),
		TEST(what_a_loader_maps),
		TEST(files_that_are_no_libraries_of_this_machine),
		TEST(programs_and_wheels_for_any_machine),
		TEST(musl_alone),
		TEST(a_driver_by_its_name_without_a_number),
		TEST(suffixes_that_pythons_look_for),
		TEST(the_stable_abi),
#ifdef __x86_64__
		TEST(fast_math),
#endif
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
