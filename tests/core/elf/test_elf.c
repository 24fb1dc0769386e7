#include "support.h"

#include "elf_files.h"

#include "core/elf/elf_map.h"

static uint64_t dyn_offset_of(const char *path, int64_t tag)
{
	struct err e = {0};
	struct elf_map m;
	uint64_t at = 0;

	assert_ok(elf_map_open(path, &m, &e), &e);
	for (size_t i = 0; i < m.dyn_count; i++) {
		if (m.dyn[i].d_tag == tag)
			at = m.dyn_offset + i * sizeof(Elf64_Dyn);
	}

	elf_map_close(&m);
	assert_true(at != 0);
	return at;
}

/* What a search path has for another one in its place. */
static size_t room_of(const char *path)
{
	struct err e = {0};
	struct elf_map m;
	size_t room = 0;
	uint64_t index;

	assert_ok(elf_map_open(path, &m, &e), &e);
	if (elf_map_dyn(&m, DT_RPATH, &index) || elf_map_dyn(&m, DT_RUNPATH, &index))
		assert_ok(elf_map_path_room(&m, index, &room, &e), &e);
	elf_map_close(&m);
	return room;
}

static void set_dyn_value(const char *path, int64_t tag, uint64_t value)
{
	put(path, dyn_offset_of(path, tag) + 8, &value, sizeof(value));
}

static void reads_soname_and_needed(void **state)
{
	(void)state;
	compile("liba.so", ANSWER, SHARED "-Wl,-soname,liba.so.1");
	struct elf_info i = read_info(compile("libb.so",
					      "int puts(const char *); int answer(void); int "
					      "b(void) { puts(\"b\"); return answer(); }",
					      SHARED "liba.so"));
	assert_string_equal(i.soname, "");
	assert_true(strlist_contains(&i.needed, "liba.so.1"));
	assert_true(strlist_contains(&i.needed, "libc.so.6"));
	assert_string_equal(read_info(test_path("liba.so")).soname, "liba.so.1");
}

static void reads_machine_and_type(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile("liba.so", ANSWER, SHARED));
	assert_int_equal(i.machine, EM_X86_64);
	assert_int_equal(i.type, ET_DYN);
	assert_true(i.dynamic);
}

static void other_machine_is_reported(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED);
	uint16_t machine = EM_AARCH64;
	put(path, offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
	assert_int_equal(read_info(path).machine, EM_AARCH64);
}

static void reads_rpath(void **state)
{
	(void)state;
	struct elf_info i = read_info(
		compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath,/one:/two"));
	assert_string_equal(i.rpath, "/one:/two");
	assert_null(i.runpath);
	assert_int_equal(room_of(test_path("liba.so")), strlen("/one:/two"));
}

static void reads_runpath(void **state)
{
	(void)state;
	struct elf_info i =
		read_info(compile("liba.so", ANSWER, SHARED "-Wl,--enable-new-dtags,-rpath,/one"));
	assert_null(i.rpath);
	assert_string_equal(i.runpath, "/one");
	assert_int_equal(room_of(test_path("liba.so")), 4);
}

static void no_path_has_no_room(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile("liba.so", ANSWER, SHARED));
	assert_null(i.rpath);
	assert_null(i.runpath);
	assert_int_equal(room_of(test_path("liba.so")), 0);
}

static void room_ends_where_soname_is_the_tail(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile(
		"liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath,/opt/tail,-soname,tail"));
	assert_string_equal(i.rpath, "/opt/tail");
	assert_int_equal(room_of(test_path("liba.so")), strlen("/opt"));
}

static void room_ends_where_a_symbol_is_the_tail(void **state)
{
	(void)state;
	assert_true(read_info(compile("liba.so", "int tail_of_path(void) { return 1; }",
				      SHARED "-Wl,--disable-new-dtags,-rpath,/opt/tail_of_path"))
			    .dynamic);
	assert_int_equal(room_of(test_path("liba.so")), strlen("/opt"));
}

static void room_is_none_where_a_symbol_ends_in_it(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile("liba.so", "int the_tail(void) { return 1; }",
					      SHARED "-Wl,--disable-new-dtags,-rpath,tail"));
	assert_string_equal(i.rpath, "tail");
	assert_int_equal(room_of(test_path("liba.so")), 0);
}

static void room_ends_where_a_version_is_the_tail(void **state)
{
	(void)state;
	test_write(test_path("map"), "VERS_9 { global: answer; local: *; };");
	struct elf_info i = read_info(
		compile("liba.so", ANSWER,
			SHARED "-Wl,--disable-new-dtags,-rpath,/opt/VERS_9,--version-script,map"));
	assert_string_equal(i.rpath, "/opt/VERS_9");
	assert_int_equal(room_of(test_path("liba.so")), strlen("/opt"));
}

static void reads_version_needs(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile(
		"liba.so", "#include <stdio.h>\nint p(void) { return puts(\"x\"); }", SHARED));
	bool found = false;
	for (size_t k = 0; k < i.versions_count; k++)
		found = found || (strcmp(i.versions[k].file, "libc.so.6") == 0 &&
				  strcmp(i.versions[k].version, "GLIBC_2.2.5") == 0);
	assert_true(found);
}

static void symbols_defined_and_undefined(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile("liba.so",
					      "int puts(const char *); int free_one(void); int "
					      "p(void) { return puts(\"x\") + free_one(); }",
					      SHARED));
	assert_true(strlist_contains(&i.defined, "p"));
	assert_false(strlist_contains(&i.defined, "puts"));
	assert_true(strlist_contains(&i.undefined, "puts@GLIBC_2.2.5"));
	assert_true(strlist_contains(&i.undefined, "free_one"));
}

static void weak_undefined_symbols_are_left_out(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile("liba.so",
					      "int maybe(void) __attribute__((weak)); int p(void) "
					      "{ return maybe ? maybe() : 1; }",
					      SHARED));
	for (size_t k = 0; k < i.undefined.count; k++)
		assert_string_not_equal(i.undefined.items[k], "maybe");
	assert_true(strlist_contains(&i.defined, "p"));
}

static void symbols_only_when_asked(void **state)
{
	(void)state;
	struct err e = {0};
	struct elf_info i;
	assert_ok(elf_read(compile("liba.so", ANSWER, SHARED), &arena, &i, &e), &e);
	assert_int_equal(i.defined.count, 0);
	assert_int_equal(i.undefined.count, 0);
}

static void symbols_of_a_file_that_exports_nothing(void **state)
{
	(void)state;
	struct elf_info i =
		read_info(compile("liba.so",
				  "int free_one(void); __attribute__((constructor, "
				  "visibility(\"hidden\"))) void p(void) { free_one(); }",
				  SHARED "-Wl,--hash-style=gnu"));
	assert_int_equal(i.defined.count, 0);
	assert_true(strlist_contains(&i.undefined, "free_one"));
}

static void symbols_through_the_old_hash_table(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile("liba.so", ANSWER, SHARED "-Wl,--hash-style=sysv"));
	assert_true(strlist_contains(&i.defined, "answer"));
}

static void executable_stack_is_seen(void **state)
{
	(void)state;
	assert_true(read_info(compile("liba.so", ANSWER, SHARED "-Wl,-z,execstack")).exec_stack);
	assert_false(read_info(compile("libb.so", ANSWER, SHARED "-Wl,-z,noexecstack")).exec_stack);
}

static void text_relocations_are_seen(void **state)
{
	(void)state;
	const char *code = "__asm__(\".text\\n.globl t\\nt: .quad free_one\\n\");";
	assert_true(read_info(compile("liba.so", code, SHARED "-Wl,-z,notext")).textrel);
	assert_false(read_info(compile("libb.so", ANSWER, SHARED)).textrel);
}

static void packed_relocations_are_seen(void **state)
{
	(void)state;
	const char *code = "static int v; int *const table[] = {&v, &v, &v}; int *get(int i) { "
			   "return table[i]; }";
	assert_true(read_info(compile("liba.so", code, SHARED "-Wl,-z,pack-relative-relocs")).relr);
	assert_false(read_info(compile("libb.so", code, SHARED)).relr);
}

static void stripped_is_seen(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED);
	assert_false(read_info(path).stripped);
	must("strip --strip-unneeded liba.so");
	assert_true(read_info(path).stripped);
}

static void file_without_sections_reads_the_same(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", "int puts(const char *); int p(void) { return puts(\"x\"); }",
			SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN ",-soname,liba.so.1");
	struct elf_info before = read_info(path);
	drop_sections(path);
	struct elf_info after = read_info(path);
	assert_string_equal(after.soname, "liba.so.1");
	assert_int_equal(room_of(path), strlen(TOKEN));
	assert_int_equal(after.versions_count, before.versions_count);
	assert_int_equal(after.defined.count, before.defined.count);
	assert_int_equal(after.undefined.count, before.undefined.count);
	assert_true(after.stripped);
}

static void executable_and_object(void **state)
{
	(void)state;
	struct elf_info i = read_info(compile("prog", "int main(void) { return 0; }", "-no-pie"));
	assert_int_equal(i.type, ET_EXEC);
	assert_true(i.dynamic);
	i = read_info(compile("a.o", ANSWER, "-c"));
	assert_int_equal(i.type, ET_REL);
	assert_false(i.dynamic);
	assert_int_equal(i.needed.count, 0);
}

static void elf_is_by_magic(void **state)
{
	struct err e = {0};
	struct elf_info i;

	(void)state;
	test_dir();
	assert_int_equal(elf_try(compile("liba.so", ANSWER, SHARED), &arena, &i, &e), 1);
	assert_int_equal(i.type, ET_DYN);
	test_write(test_path("text"), "\177EL");
	static const char *const others[] = {"text", "missing", "text/below", "."};
	for (size_t n = 0; n < ARRAY_LEN(others); n++)
		assert_ok(elf_try(test_path("%s", others[n]), &arena, &i, &e), &e);
	assert_int_equal(symlink("loop", test_path("loop")), 0);
	assert_err(elf_try(test_path("loop"), &arena, &i, &e), &e, ERR_SYSTEM, "loop");
}

static void missing_file(void **state)
{
	(void)state;
	struct err e;
	struct elf_info i;
	assert_err(elf_read(test_path("missing.so"), &arena, &i, &e), &e, ERR_SYSTEM, "missing.so");
}

static void empty_and_foreign_files(void **state)
{
	(void)state;
	struct err e;
	struct elf_info i;
	test_write(test_path("empty"), "");
	assert_err(elf_read(test_path("empty"), &arena, &i, &e), &e, ERR_INTEGRITY, "empty");
	test_write(test_path("text"), "this is a text of more than sixty-four bytes, so that the "
				      "header is all there, but nothing like ELF");
	assert_err(elf_read(test_path("text"), &arena, &i, &e), &e, ERR_INTEGRITY,
		   "no ELF magic at offset 0x0");
	test_write(test_path("short"), "\177ELF");
	assert_err(elf_read(test_path("short"), &arena, &i, &e), &e, ERR_INTEGRITY,
		   "ends early at offset 0x4");
}

static void other_classes_are_refused(void **state)
{
	(void)state;
	struct err e;
	struct elf_info i;
	const char *path = compile("liba.so", ANSWER, SHARED);
	put(path, EI_CLASS, (uint8_t[]){ELFCLASS32}, 1);
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY,
		   "not a 64-bit ELF file (class 1) at offset 0x4");
	put(path, EI_CLASS, (uint8_t[]){ELFCLASS64, ELFDATA2MSB}, 2);
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY,
		   "not a little-endian ELF file");
}

static void truncated_files_are_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct elf_info i;
	const char *path = compile("liba.so", ANSWER, SHARED "-s");
	size_t len;
	char *bytes = read_bytes(path, &len);
	uint64_t load_end = 0;
	struct elf_map m;
	assert_ok(elf_map_open(path, &m, &e), &e);
	for (size_t k = 0; k < m.segments_count; k++) {
		if (m.segments[k].p_type == PT_LOAD)
			load_end = m.segments[k].p_offset + m.segments[k].p_filesz;
	}

	elf_map_close(&m);
	for (size_t n = 1; n < load_end; n += 97) {
		assert_int_equal(truncate(path, (off_t)n), 0);
		assert_err(elf_read_all(path, &arena, &i, &e), &e, ERR_INTEGRITY, "liba.so");
		test_write_bytes(path, bytes, len);
	}

	free(bytes);
}

static void string_outside_is_named_with_its_place(void **state)
{
	(void)state;
	struct err e;
	struct elf_info i;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,-soname,liba.so.1");
	set_dyn_value(path, DT_SONAME, 0x99999);
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY,
		   "string index 0x99999 outside");
	assert_contains(e.msg, "liba.so");
	assert_contains(e.msg, "offset 0x");
}

static void string_table_outside(void **state)
{
	(void)state;
	struct err e;
	struct elf_info i;
	const char *path = compile("liba.so", ANSWER, SHARED);
	uint64_t size = 0x7fffffff, address = 0xffffffffffffff00;
	uint64_t size_at = dyn_offset_of(path, DT_STRSZ) + 8,
		 address_at = dyn_offset_of(path, DT_STRTAB) + 8;
	put(path, size_at, &size, sizeof(size));
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY,
		   "string table of 2147483647 bytes leaves its segment");
	put(path, address_at, &address, sizeof(address));
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY, "is in no segment");
}

static void dynamic_entries_without_end(void **state)
{
	(void)state;
	struct err e = {0};
	struct elf_info i;
	struct elf_map m;
	const char *path = compile("liba.so", ANSWER, SHARED);
	assert_ok(elf_map_open(path, &m, &e), &e);
	uint64_t n = m.dyn_count, at = 0, size = n * sizeof(Elf64_Dyn);
	for (size_t k = 0; k < m.segments_count; k++) {
		if (m.segments[k].p_type == PT_DYNAMIC)
			at = m.header.e_phoff + k * sizeof(Elf64_Phdr) +
			     offsetof(Elf64_Phdr, p_filesz);
	}

	elf_map_close(&m);
	put(path, at, &size, sizeof(size));
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY, "without DT_NULL");
}

static void dynamic_segment_that_is_not_loaded(void **state)
{
	(void)state;
	struct err e = {0};
	struct elf_info i;
	struct elf_map m;
	const char *path = compile("liba.so", ANSWER, SHARED);
	uint64_t at = 0, zero = 0;
	assert_ok(elf_map_open(path, &m, &e), &e);
	for (size_t k = 0; k < m.segments_count; k++) {
		if (m.segments[k].p_type == PT_DYNAMIC)
			at = m.header.e_phoff + k * sizeof(Elf64_Phdr) +
			     offsetof(Elf64_Phdr, p_vaddr);
	}

	elf_map_close(&m);
	put(path, at, &zero, sizeof(zero));
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY, "is not what is loaded");
}

/* As patchelf leaves some programs: the first segment
 * ends inside the string table, and the page does not. */
static void the_rest_of_a_page_is_loaded(void **state)
{
	(void)state;
	struct err e = {0};
	struct elf_info i;
	struct elf_map m;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,-soname,liba.so.1");
	assert_ok(elf_map_open(path, &m, &e), &e);
	uint64_t at = 0, end = m.strings + 1, more = end + 1, page = 0;
	for (size_t k = m.segments_count; k-- > 0;) {
		if (m.segments[k].p_type == PT_LOAD)
			at = m.header.e_phoff + k * sizeof(Elf64_Phdr);
		if (m.segments[k].p_type == PT_LOAD && m.segments[k].p_offset)
			page = m.header.e_phoff + k * sizeof(Elf64_Phdr) +
			       offsetof(Elf64_Phdr, p_vaddr);
	}

	elf_map_close(&m);
	put(path, at + offsetof(Elf64_Phdr, p_filesz), &end, sizeof(end));
	put(path, at + offsetof(Elf64_Phdr, p_memsz), &end, sizeof(end));
	assert_string_equal(read_info(path).soname, "liba.so.1");
	put(path, at + offsetof(Elf64_Phdr, p_memsz), &more, sizeof(more)); /* a .bss: zeros */
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY, "leaves its segment");
	put(path, at + offsetof(Elf64_Phdr, p_memsz), &end, sizeof(end));
	put(path, page, &end, sizeof(end)); /* another segment over it */
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY, "leaves its segment");
	/* which goes on in the file, too */
	page -= offsetof(Elf64_Phdr, p_vaddr) - offsetof(Elf64_Phdr, p_offset);
	put(path, page, &end, sizeof(end));
	assert_string_equal(read_info(path).soname, "liba.so.1");
}

static void version_needs_that_break_off(void **state)
{
	(void)state;
	struct err e;
	struct elf_info i;
	const char *path = compile(
		"liba.so", "int puts(const char *); int p(void) { return puts(\"x\"); }", SHARED);
	set_dyn_value(path, DT_VERNEEDNUM, 77);
	assert_err(elf_read(path, &arena, &i, &e), &e, ERR_INTEGRITY,
		   "chain of 77 version needs breaks");
}

static void symbols_outside(void **state)
{
	(void)state;
	struct err e;
	struct elf_info i;
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,--hash-style=sysv");
	struct elf_map m;
	uint64_t hash = 0, offset = 0, room = 0;
	err_clear(&e);
	assert_ok(elf_map_open(path, &m, &e), &e);
	assert_true(elf_map_dyn(&m, DT_HASH, &hash) && elf_map_find(&m, hash, &offset, &room));
	elf_map_close(&m);
	uint32_t many = 0x10000000;
	put(path, offset + 4, &many, sizeof(many));
	assert_err(elf_read_all(path, &arena, &i, &e), &e, ERR_INTEGRITY, "symbol table");
}

static void segments_that_cannot_load(void **state)
{
	(void)state;
	struct err e = {0};
	struct elf_map m;
	const char *path = compile("liba.so", ANSWER, SHARED);
	assert_ok(elf_map_open(path, &m, &e), &e);
	assert_ok(elf_map_loadable(&m, &e), &e);
	size_t k = 0;
	while (m.segments[k].p_type != PT_LOAD)
		k++;
	GElf_Phdr good = m.segments[k];
	m.segments[k].p_align = 0x1800;
	assert_err(elf_map_loadable(&m, &e), &e, ERR_INTEGRITY, "not a power of two");
	m.segments[k] = good;
	m.segments[k].p_vaddr += 8;
	assert_err(elf_map_loadable(&m, &e), &e, ERR_INTEGRITY, "does not fit the alignment");
	m.segments[k] = good;
	m.segments[k].p_memsz = 0x100000;
	assert_err(elf_map_loadable(&m, &e), &e, ERR_INTEGRITY, "overlaps");
	m.segments[k].p_memsz = good.p_filesz - 1;
	assert_err(elf_map_loadable(&m, &e), &e, ERR_INTEGRITY, "larger in the file");
	elf_map_close(&m);
}

/* Each of these ends the process that loads the
 * library: glibc takes what the entries say on trust. */
static void dynamic_entries_that_the_loader_trusts(void **state)
{
	static const struct {
		int64_t tag;
		const char *says;
	} cases[] = {{DT_RELA, "DT_RELA"},
		     {DT_RELASZ, "DT_RELA"},
		     {DT_RELAENT, "is not the size of its parts"},
		     {DT_RELACOUNT, "more than there are"},
		     {DT_PLTREL, "is not DT_RELA"},
		     {DT_JMPREL, "DT_JMPREL"},
		     {DT_PLTRELSZ, "DT_JMPREL"},
		     {DT_PLTGOT, "DT_PLTGOT"},
		     {DT_INIT, "DT_INIT 0x100000000000 is in no executable segment"},
		     {DT_FINI, "DT_FINI 0x100000000000 is in no executable segment"},
		     {DT_INIT_ARRAY, "DT_INIT_ARRAY"},
		     {DT_INIT_ARRAYSZ, "DT_INIT_ARRAY"},
		     {DT_FINI_ARRAY, "DT_FINI_ARRAY"},
		     {DT_FINI_ARRAYSZ, "DT_FINI_ARRAY"}};
	struct err e = {0};
	AUTO_ELF_MAP struct elf_map m;
	const char *path =
		compile("libr.so", "int puts(const char *);\nint f(void) { return puts(\"x\"); }\n",
			"-shared -fPIC -fcf-protection=none -Wl,-z,lazy");

	(void)state;
	assert_ok(elf_map_open(path, &m, &e), &e);
	assert_ok(elf_map_loadable(&m, &e), &e);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t k = 0;
		while (k < m.dyn_count && m.dyn[k].d_tag != cases[i].tag)
			k++;
		assert_true(k < m.dyn_count);
		uint64_t good = m.dyn[k].d_un.d_val;
		m.dyn[k].d_un.d_val = 1ULL << 44;
		assert_err(elf_map_loadable(&m, &e), &e, ERR_INTEGRITY, cases[i].says);
		m.dyn[k].d_un.d_val = good;
	}

	path = compile("libn.so", ANSWER, SHARED " -Wl,-z,nodlopen");
	AUTO_ELF_MAP struct elf_map closed;
	assert_ok(elf_map_open(path, &closed, &e), &e);
	assert_err(elf_map_loadable(&closed, &e), &e, ERR_INTEGRITY, "forbids dlopen");
}

/* glibc compares each byte of the identification. */
static void headers_that_the_loader_refuses(void **state)
{
	static const struct {
		off_t at;
		char byte;
		const char *says;
	} cases[] = {{EI_ABIVERSION, 9, "is 9, not 0"},
		     {EI_PAD + 2, 1, "is 1, not 0"},
		     {EI_OSABI, ELFOSABI_FREEBSD, "operating system 9"},
		     {offsetof(Elf64_Ehdr, e_version), 2, "version 2"}};
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ELF_MAP struct elf_map m;
		const char *path = compile("libh.so", ANSWER, SHARED);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_true(pwrite(fd, &cases[i].byte, 1, cases[i].at) == 1);
		close(fd);
		assert_ok(elf_map_open(path, &m, &e), &e);
		assert_err(elf_map_loadable(&m, &e), &e, ERR_INTEGRITY, cases[i].says);
	}
}

static void relocations_that_the_loader_trusts(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		const char *says;
	} cases[] = {{offsetof(Elf64_Rela, r_offset), 1ULL << 44, "is in no writable segment"},
		     {offsetof(Elf64_Rela, r_offset), 0, "is in no writable segment"},
		     {offsetof(Elf64_Rela, r_info), ELF64_R_INFO(0, 200), "of the type 200"},
		     {offsetof(Elf64_Rela, r_info), ELF64_R_INFO(0, R_X86_64_64),
		      "that is not relative"},
		     {offsetof(Elf64_Rela, r_info), ELF64_R_INFO(9999, R_X86_64_RELATIVE),
		      "symbol 9999 of"}};
	struct err e = {0};
	uint64_t table, offset, room;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ELF_MAP struct elf_map m = {0}, broken = {0};
		const char *path = compile("libr.so", ANSWER, SHARED);
		assert_ok(elf_map_open(path, &m, &e), &e);
		assert_true(elf_map_dyn(&m, DT_RELA, &table) &&
			    elf_map_find(&m, table, &offset, &room));
		put(path, offset + cases[i].at, &cases[i].value, sizeof(cases[i].value));
		assert_ok(elf_map_open(path, &broken, &e), &e);
		assert_err(elf_map_loadable(&broken, &e), &e, ERR_INTEGRITY, cases[i].says);
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* One changed file: either it reads, or it is refused
 * with its name; the sanitizers watch the rest. */
static int read_changed(const char *bytes, size_t len)
{
	struct err e = {0};
	struct elf_map m;
	size_t room;
	uint64_t table, count;
	struct elf_need *needs;
	size_t needs_count;
	int rc = elf_map_memory(&(struct file_bytes){bytes, len, "changed.so"}, &m, &e);

	if (rc == 0 && m.dyn)
		rc = elf_map_symbols(&m, &table, &count, &e) != 0 ||
		     elf_map_needs(&m, &needs, &needs_count, &e) != 0 ||
		     elf_map_path_room(&m, 1, &room, &e) != 0;
	elf_map_close(&m);
	if (rc != 0)
		assert_contains(e.msg, "'changed.so': ");
	return rc != 0;
}

static void flipped_bytes_never_crash(void **state)
{
	(void)state;
	size_t len;
	char *bytes = read_bytes(
		compile("liba.so", "int puts(const char *); int p(void) { return puts(\"x\"); }",
			SHARED "-s -Wl,--disable-new-dtags,-rpath,/one/two"),
		&len);
	uint32_t seed = 20260101;
	int refused = 0;
	for (int round = 0; round < 6000; round++) {
		char *copy = malloc(len);
		memcpy(copy, bytes, len);
		/* Half of the rounds hit the header and the
		 * program headers, where a byte matters most. */
		size_t span = round % 2 ? len : 0x400;
		for (int k = 0; k < 1 + round % 4; k++)
			copy[next_random(&seed) % span] = (char)next_random(&seed);
		refused += read_changed(copy, len);
		free(copy);
	}

	free(bytes);
	assert_in_range(refused, 100, 5999);
}

static void wild_dynamic_values_never_crash(void **state)
{
	(void)state;
	static const uint64_t wild[] = {0,
					1,
					7,
					0xfff,
					0x1000,
					0x3ff8,
					0x7fffffff,
					0xffffffff,
					0x7fffffffffffffff,
					0xfffffffffffffff8,
					~0ULL};
	struct err e = {0};
	struct elf_map m;
	size_t len;
	const char *path =
		compile("liba.so", "int puts(const char *); int p(void) { return puts(\"x\"); }",
			SHARED "-Wl,--hash-style=both");
	char *bytes = read_bytes(path, &len);
	assert_ok(elf_map_open(path, &m, &e), &e);
	size_t count = m.dyn_count, at = m.dyn_offset;
	elf_map_close(&m);
	int refused = 0;
	for (size_t i = 0; i < count; i++) {
		for (size_t w = 0; w < ARRAY_LEN(wild); w++) {
			char *copy = malloc(len);
			memcpy(copy, bytes, len);
			memcpy(copy + at + i * sizeof(Elf64_Dyn) + 8, &wild[w], 8);
			refused += read_changed(copy, len);
			free(copy);
		}
	}

	free(bytes);
	assert_true(refused > 20);
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(reads_soname_and_needed),
		T(reads_machine_and_type),
		T(other_machine_is_reported),
		T(reads_rpath),
		T(reads_runpath),
		T(no_path_has_no_room),
		T(room_ends_where_soname_is_the_tail),
		T(room_ends_where_a_symbol_is_the_tail),
		T(room_is_none_where_a_symbol_ends_in_it),
		T(room_ends_where_a_version_is_the_tail),
		T(reads_version_needs),
		T(symbols_defined_and_undefined),
		T(weak_undefined_symbols_are_left_out),
		T(symbols_only_when_asked),
		T(symbols_of_a_file_that_exports_nothing),
		T(symbols_through_the_old_hash_table),
		T(executable_stack_is_seen),
		T(text_relocations_are_seen),
		T(packed_relocations_are_seen),
		T(stripped_is_seen),
		T(file_without_sections_reads_the_same),
		T(executable_and_object),
		T(elf_is_by_magic),
		T(missing_file),
		T(empty_and_foreign_files),
		T(other_classes_are_refused),
		T(truncated_files_are_refused),
		T(string_outside_is_named_with_its_place),
		T(string_table_outside),
		T(dynamic_entries_without_end),
		T(dynamic_segment_that_is_not_loaded),
		T(the_rest_of_a_page_is_loaded),
		T(version_needs_that_break_off),
		T(symbols_outside),
		T(segments_that_cannot_load),
		T(dynamic_entries_that_the_loader_trusts),
		T(headers_that_the_loader_refuses),
		T(relocations_that_the_loader_trusts),
		T(flipped_bytes_never_crash),
		T(wild_dynamic_values_never_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
