/* Libraries of gcc with fat binaries in them, cut for some GPUs and loaded again. */
#include "support.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/sys/fs.h"
#include "compile.h"
#include "core/fatbin/fatbin_look.h"
#include "craft_fatbin.h"

enum { BIG = 300000 };

static struct arena arena;
static struct err err;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

/* Three fat binaries, of which the second has nothing for
 * sm_90: "small" has one page, each of the others more. */
static void make_boxes(void)
{
	static const struct {
		unsigned kind, sm;
		uint64_t flags;
	} images[3][4] = {
		{{2, 80, 0}, {2, 90, 0}, {2, 100, 0}, {1, 100, 0}},
		{{2, 80, 0}, {2, 100, CRAFT_ARCH}, {2, 120, 0}, {0}},
		{{2, 75, 0}, {2, 86, 0}, {2, 90, CRAFT_ARCH}, {2, 120, 0}},
	};

	for (size_t i = 0; i < ARRAY_LEN(images); i++) {
		AUTO_BUF struct buf entries = {0}, AUTO_BUF box = {0};
		for (size_t k = 0; k < 4 && images[i][k].kind; k++) {
			AUTO_BUF struct buf contents = {0};
			craft_cubin(&contents, images[i][k].sm, BIG + i * 8);
			memset(contents.data + 64, (int)(i * 16 + k + 1), contents.len - 64);
			if (images[i][k].kind == 1)
				craft_ptx_entry(&entries, images[i][k].sm);
			else
				craft_entry(&entries, 2, images[i][k].sm, images[i][k].flags,
					    contents.data, contents.len, 0);
		}

		craft_container(&box, &entries);
		assert_ok(fs_write(TRUSTED, test_path("box%zu", i), box.data, box.len, 0644, &err),
			  &err);
	}
}

#define BOXES(section)                                                                             \
	"__asm__(\".section " section                                                              \
	",\\\"a\\\"\\n.balign 8\\nbox0: .incbin \\\"box0\\\"\\n.balign 8\\nbox1: .incbin "         \
	"\\\"box1\\\"\\n.balign 8\\nbox2: .incbin \\\"box2\\\"\\n.text\\n\");\n"
/* The sum of what the first image of each fat binary is filled with; 200: one is not there. */
#define USES                                                                                       \
	"extern const unsigned char box0[], box1[], box2[];\n"                                     \
	"static const unsigned char *volatile table[] = {box0, box1, box2};\n"                     \
	"int use(void) { int sum = 0; for (int i = 0; i < 3; i++) {\n"                             \
	"  const unsigned *p = (const void *)table[i]; if (p[0] != 0xba55ed50) return 200;\n"      \
	"  if (p[2]) sum += table[i][16 + 64 + 100]; } return sum; }\n"
#define SHARED "-shared -fPIC "

static const struct fatbin_gpu hopper[] = {{90, false}};
static const unsigned alone[] = {87, 110};

static struct fatbin_wanted wanted(const struct fatbin_gpu *gpus, size_t count)
{
	return (struct fatbin_wanted){gpus, count, alone, ARRAY_LEN(alone)};
}

/* What the last cut file took of the disk: later
 * reads of a mapped hole may fill it, as tmpfs does. */
static uint64_t disk_bytes;

/* Cuts `from` for sm_90 into the file `to`. */
static int cut(const char *from, const char *to, struct fatbin_cut *ret, uint64_t *ret_size)
{
	AUTO_ELF_MAP struct elf_map before = {0};
	AUTO_ELF_MAP struct elf_map after = {0};
	struct fatbin_wanted w = wanted(hopper, 1);
	struct elf_cut c = {.map = &before, .a = &arena};
	AUTO_FD int fd = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	struct stat st;

	if (elf_map_open(from, &before, &err) < 0 || fatbin_cut_plan(&c, &w, ret, &err) < 0)
		return -1;
	*ret_size = c.size;
	if (elf_cut_write(&c, fd, to, &err) < 0)
		return -1;
	assert_int_equal(fstat(fd, &st), 0);
	disk_bytes = (uint64_t)st.st_blocks * 512;
	if (elf_map_open(to, &after, &err) < 0)
		return -1;
	return fatbin_cut_prove(&before, &after, &w, ret, &err);
}

static uint64_t size_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

/* Between an even mark and the next the new file is the old one, whatever else changed. */
static void test_marks(void **state)
{
	AUTO_BUF struct buf old = {0}, new = {0};
	struct fatbin_file_cut f;
	struct fatbin_wanted w = wanted(hopper, 1);

	(void)state;
	make_boxes();
	must("head -c 3000000 /dev/urandom > host");
	compile("lib.so",
		BOXES(".nv_fatbin") "__asm__(\".section .other,\\\"aw\\\"\\n.incbin "
				    "\\\"host\\\"\\n.text\\n\");" USES,
		SHARED);
	AUTO_FD int fd = open(test_path("cut.so"), O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	AUTO_MAPPING struct fs_mapping file = {0};
	assert_ok(fs_map(test_path("lib.so"), &file, &err), &err);
	assert_ok(fatbin_file_slim(&file, "lib.so", fd, &w, &arena, &f, &err), &err);
	assert_ok(fs_read(TRUSTED, test_path("lib.so"), 64 << 20, &old, &err), &err);
	assert_ok(fs_read(TRUSTED, test_path("cut.so"), 64 << 20, &new, &err), &err);
	assert_true(new.len < old.len);
	/* Two images that moved, and the host's part. */
	assert_int_equal(f.marks_count, 6);
	for (size_t i = 0; i < f.marks_count; i += 2) {
		const uint64_t len = f.marks[i + 1].at - f.marks[i].at;
		assert_true(f.marks[i + 1].at <= new.len &&f.marks[i + 1].old == UINT64_MAX);
		assert_true(len >= (i < 4 ? BIG : 3000000));
		assert_memory_equal(old.data + f.marks[i].old, new.data + f.marks[i].at, len);
	}
}

/* The library loads, says the same, and takes less of the file. */
static struct fatbin_cut cut_and_use(const char *library, uint64_t slack)
{
	struct fatbin_cut r;
	uint64_t size;
	const char *to = test_path("cut.so");

	assert_int_equal(load(library, "use"), 1 + 17 + 33);
	assert_ok(cut(library, to, &r, &size), &err);
	assert_int_equal(size, size_of(to));
	if (size > size_of(library) - r.dropped_bytes + slack)
		fail_msg("%lu bytes of %lu, of which %lu were dropped: %s", (unsigned long)size,
			 (unsigned long)size_of(library), (unsigned long)r.dropped_bytes, r.left);
	assert_int_equal(load("./cut.so", "use"), 2 + 0 + 35);
	must("readelf -aW cut.so 2>&1 | grep -i '^readelf:' && exit 1; true");
	return r;
}

static void test_the_file_shrinks(void **state)
{
	(void)state;
	make_boxes();
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED);
	struct fatbin_cut r = cut_and_use(test_path("lib.so"), 3 * 4096);
	assert_int_equal(r.containers, 3);
	assert_int_equal(r.runs[0], 2);
	assert_null(r.left);
	/* Its note and hash table moved, and patchelf needs more room than is left there. */
	must("cp cut.so patched.so && patchelf --set-rpath '$ORIGIN/a/b' patched.so");
	assert_int_equal(load("./patched.so", "use"), 37);
	must("patchelf --set-rpath '$ORIGIN/another/way/that/is/longer/than/the/one' patched.so && "
	     "strip patched.so");
	assert_int_equal(load("./patched.so", "use"), 37);
	assert_int_equal(r.kept_count, 2);
	assert_string_equal(r.kept[1].target, "90a");
	must("strip cut.so");
	assert_int_equal(load("./cut.so", "use"), 37);
	/* The headers of official libraries have room: patchelf was there before. */
	must("patchelf --set-rpath '$ORIGIN/a/long/way/to/go/for/so/few' lib.so");
	cut_and_use(test_path("lib.so"), 3 * 4096);
	must("patchelf --set-rpath '$ORIGIN/another/way/that/is/longer/than/the/one/before' cut.so "
	     "&& strip cut.so");
	assert_int_equal(load("./cut.so", "use"), 37);
}

/* Pages of 64 KiB and of 2 MiB, packed relocations, the
 * older table of hashes, code that is not linked yet. */
static void test_other_layouts(void **state)
{
	static const char *const options[] = {SHARED "-Wl,-z,max-page-size=65536",
					      SHARED "-Wl,--hash-style=sysv",
					      SHARED "-Wl,-z,noseparate-code"};

	(void)state;
	make_boxes();
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		compile("lib.so", BOXES(".nv_fatbin") USES, options[i]);
		cut_and_use(test_path("lib.so"), 2 * 65536 + 8192);
	}

	compile("lib.so", BOXES("__nv_relfatbin") USES, SHARED);
	cut_and_use(test_path("lib.so"), 3 * 4096);
	if (shell("ld -z pack-relative-relocs --version && gcc -shared -fPIC "
		  "-Wl,-z,pack-relative-relocs -x c "
		  "/dev/null") == 0) {
		compile("lib.so", BOXES(".nv_fatbin") USES, SHARED "-Wl,-z,pack-relative-relocs");
		cut_and_use(test_path("lib.so"), 3 * 4096);
	}

	/* No dynamic section: nothing tells what points to them. */
	struct fatbin_cut r;
	uint64_t size;
	compile("lib.so", BOXES(".nv_fatbin") "void _start(void) {}\n", "-static -nostdlib");
	assert_ok(cut(test_path("lib.so"), test_path("cut.so"), &r, &size), &err);
	assert_int_equal(r.containers, 3);
	assert_int_equal(r.moved, 0);
	/* More than the file has pages: likewise. */
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED "-Wl,-z,max-page-size=0x4000000");
	cut_and_use(test_path("lib.so"), size_of(test_path("lib.so")));
}

/* A section of this name gets the type of one whose place something else may name. */
static void retype(const char *library, const char *name)
{
	AUTO_BUF struct buf file = {0};
	Elf64_Ehdr h;
	Elf64_Shdr names, s;

	assert_ok(fs_read(TRUSTED, library, 64 << 20, &file, &err), &err);
	memcpy(&h, file.data, sizeof(h));
	memcpy(&names, file.data + h.e_shoff + h.e_shstrndx * sizeof(names), sizeof(names));
	for (size_t i = 0; i < h.e_shnum; i++) {
		const size_t at = h.e_shoff + i * sizeof(s);
		memcpy(&s, file.data + at, sizeof(s));
		if (strcmp(file.data + names.sh_offset + s.sh_name, name) == 0)
			s.sh_type = SHT_PROGBITS;
		memcpy(file.data + at, &s, sizeof(s));
	}

	assert_ok(fs_write(TRUSTED, library, file.data, file.len, 0755, &err), &err);
}

/* Without notes, and with a hash table that is too small, the table of symbols moves as well. */
static void test_symbols_make_room(void **state)
{
	AUTO_BUF struct buf before = {0}, after = {0};

	(void)state;
	make_boxes();
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED "-Wl,--build-id=none");
	must("nm -D --defined-only lib.so > names && readelf -SW lib.so | grep -w .dynsym > old");
	assert_null(cut_and_use(test_path("lib.so"), 3 * 4096).left);
	must("nm -D --defined-only cut.so | diff names -");
	must("readelf -SW cut.so | grep -w .dynsym > new");
	assert_ok(fs_read(TRUSTED, test_path("old"), 4096, &before, &err), &err);
	assert_ok(fs_read(TRUSTED, test_path("new"), 4096, &after, &err), &err);
	assert_string_not_equal(buf_cstr(&before), buf_cstr(&after));
	must("cp cut.so patched.so && patchelf --set-rpath '$ORIGIN/a/long/way/to/go' patched.so");
	assert_int_equal(load("./patched.so", "use"), 37);
	must("strip patched.so cut.so");
	must("readelf -aW cut.so 2>&1 | grep -i '^readelf:' && exit 1; true");
	assert_int_equal(load("./patched.so", "use"), 37);
	assert_int_equal(load("./cut.so", "use"), 37);
}

/* What moved must have the same bytes. */
static void test_moved_table_must_be_the_same(void **state)
{
	AUTO_BUF struct buf file = {0};
	AUTO_ELF_MAP struct elf_map before = {0};
	AUTO_ELF_MAP struct elf_map after = {0};
	const struct fatbin_wanted w = wanted(hopper, 1);
	uint64_t table, count;

	(void)state;
	make_boxes();
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED "-Wl,--build-id=none");
	struct fatbin_cut r = cut_and_use(test_path("lib.so"), 3 * 4096);
	assert_ok(elf_map_open(test_path("lib.so"), &before, &err), &err);
	assert_ok(elf_map_open(test_path("cut.so"), &after, &err), &err);
	assert_ok(fatbin_cut_prove(&before, &after, &w, &r, &err), &err);
	assert_ok(elf_map_symbols(&after, &table, &count, &err), &err);
	elf_map_close(&after);
	after = (struct elf_map){0};
	assert_ok(fs_read(TRUSTED, test_path("cut.so"), 64 << 20, &file, &err), &err);
	file.data[table + sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_value)] ^= 8;
	assert_ok(elf_map_memory(&(struct file_bytes){file.data, file.len, "cut.so"}, &after, &err),
		  &err);
	assert_err(fatbin_cut_prove(&before, &after, &w, &r, &err), &err, ERR_INTEGRITY,
		   "what is at address");
}

/* Code that stays must have the same bytes. */
static void test_changed_code_is_found(void **state)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf file = {0};
	AUTO_ELF_MAP struct elf_map before = {0};
	AUTO_ELF_MAP struct elf_map after = {0};
	const struct fatbin_wanted w = wanted(hopper, 1);
	struct fatbin_entries all;

	(void)state;
	make_boxes();
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED "-Wl,--build-id=none");
	struct fatbin_cut r = cut_and_use(test_path("lib.so"), 3 * 4096);
	assert_ok(elf_map_open(test_path("lib.so"), &before, &err), &err);
	assert_ok(fs_read(TRUSTED, test_path("cut.so"), 64 << 20, &file, &err), &err);
	const struct file_bytes cut = {file.data, file.len, "cut.so"};
	assert_ok(fatbin_scan(&cut, &a, &all, &err), &err);
	assert_true(all.count > 0);
	for (size_t i = 0; i < all.count; i++) {
		file.data[all.items[i].to - 1] ^= 1;
		assert_ok(elf_map_memory(&cut, &after, &err), &err);
		assert_err(fatbin_cut_prove(&before, &after, &w, &r, &err), &err, ERR_INTEGRITY,
			   "is not what it was");
		elf_map_close(&after);
		after = (struct elf_map){0};
		file.data[all.items[i].to - 1] ^= 1;
	}
}

/* Behind the headers nothing that can move: what goes is zero, and the file keeps its size. */
static void test_headers_without_room(void **state)
{
	(void)state;
	make_boxes();
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED "-Wl,--build-id=none");
	retype(test_path("lib.so"), ".gnu.hash");
	assert_non_null(cut_and_use(test_path("lib.so"), 9 * BIG).left);
}

/* As BOLT leaves a library: program headers in a segment of their own, behind all that is cut. */
static void test_headers_far_behind(void **state)
{
	enum { PAGE = 4096 };
	AUTO_BUF struct buf file = {0};
	Elf64_Ehdr h;
	Elf64_Phdr segments[32];
	uint64_t address = 0;

	(void)state;
	make_boxes();
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED);
	assert_ok(fs_read(TRUSTED, test_path("lib.so"), 64 << 20, &file, &err), &err);
	memcpy(&h, file.data, sizeof(h));
	assert_true(h.e_phnum < ARRAY_LEN(segments));
	memcpy(segments, file.data + h.e_phoff, h.e_phnum * sizeof(*segments));
	for (size_t i = 0; i < h.e_phnum; i++)
		if (segments[i].p_type == PT_LOAD)
			address = (segments[i].p_vaddr + segments[i].p_memsz + 2 * PAGE) / PAGE *
				  PAGE;
	while (file.len % PAGE)
		buf_addc(&file, '\0');
	segments[h.e_phnum++] = (Elf64_Phdr){.p_type = PT_LOAD,
					     .p_flags = PF_R,
					     .p_offset = file.len,
					     .p_vaddr = address,
					     .p_paddr = address,
					     .p_filesz = PAGE,
					     .p_memsz = PAGE,
					     .p_align = PAGE};
	h.e_phoff = file.len;
	buf_add(&file, segments, sizeof(segments));
	while (file.len % PAGE)
		buf_addc(&file, '\0');
	memcpy(file.data, &h, sizeof(h));
	assert_ok(fs_write(TRUSTED, test_path("lib.so"), file.data, file.len, 0755, &err), &err);
	assert_null(cut_and_use(test_path("lib.so"), 3 * PAGE).left);
}

/* What no relocation points to, or something points into, keeps its address. */
static void test_what_is_not_plain_stays(void **state)
{
	(void)state;
	make_boxes();
	compile("lib.so",
		BOXES(".nv_fatbin") USES "const unsigned char *inner(void) { static const unsigned "
					 "char *volatile p = box0 + 80; return p; }\n",
		SHARED);
	struct fatbin_cut r;
	uint64_t size;
	assert_ok(cut(test_path("lib.so"), test_path("cut.so"), &r, &size), &err);
	assert_non_null(r.left);
	assert_int_equal(load("./cut.so", "use"), 1 + 0 + 35); /* box0 whole */
	compile("lib.so",
		BOXES(".nv_fatbin") "extern const unsigned char box0[], box1[], box2[];\n"
				    "static const unsigned char *volatile table[] = {box0, box1, "
				    "box2};\n"
				    "int first(void) { return box1[0] == 0x50 && box1[8] == 0 && "
				    "table[0][180] == 2; "
				    "}\n",
		SHARED);
	assert_ok(cut(test_path("lib.so"), test_path("cut.so"), &r, &size), &err);
	assert_non_null(r.left);
	assert_int_equal(load("./cut.so", "first"), 1);
}

/* Bytes of a displacement look like "lea" of an address in a fat binary; in code it is one. */
static void test_lea_is_read_as_an_instruction(void **state)
{
#if defined(__x86_64__)
	static const struct {
		const char *code;
		bool whole;
	} rows[] = {
		{"movabs_: .byte 0x48, 0xb8, 0x48, 0x8d, 0x05\\n.long box0 + 5000 - . - 4\\n.byte "
		 "0\\n",
		 false},
		{"lea box0 + 5000(%rip), %rax\\n", true},
		{".byte 0x48, 0x8d, 0x05\\n.long box0 + 5000 - . - 4\\n", true},
	};
	struct fatbin_cut r;
	uint64_t size;
	(void)state;
	make_boxes();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		compile("lib.so",
			arena_printf(&arena,
				     BOXES(".nv_fatbin") USES
				     "__asm__(\"more: .rept 40\\nnop\\n.endr\\n"
				     "%s.rept 40\\nnop\\n.endr\\nret\\n\");\n",
				     rows[i].code),
			SHARED);
		assert_ok(cut(test_path("lib.so"), test_path("cut.so"), &r, &size), &err);
		assert_int_equal(load("./cut.so", "use"), rows[i].whole ? 1 + 0 + 35 : 2 + 0 + 35);
		assert_int_equal(r.left != NULL, rows[i].whole);
	}
#else
	(void)state;
#endif
}

/* sstrip leaves no section headers: what runs is told, and nothing changes. */
static void test_without_section_headers(void **state)
{
	AUTO_BUF struct buf whole = {0};
	struct fatbin_file_cut f;
	struct fatbin_wanted w = wanted(hopper, 1);
	struct fatbin_look look;

	(void)state;
	make_boxes();
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED);
	assert_ok(fs_read(TRUSTED, test_path("lib.so"), 64 << 20, &whole, &err), &err);
	Elf64_Ehdr *h = (Elf64_Ehdr *)whole.data;
	h->e_shoff = h->e_shnum = h->e_shstrndx = 0;
	test_write_bytes(test_path("bare.so"), whole.data, whole.len);
	AUTO_MAPPING struct fs_mapping file = {0};
	assert_ok(fs_map(test_path("bare.so"), &file, &err), &err);
	assert_ok(fatbin_look_data(&(struct file_bytes){file.data, file.size, "bare.so"}, &arena,
				   &look, &err),
		  &err);
	assert_true(look.code && look.used);
	assert_int_equal(fatbin_look_runs(&look, &w, 90, NULL), 2);
	assert_ok(fatbin_file_slim(&file, "bare.so", -1, &w, &arena, &f, &err), &err);
	assert_false(f.changed);
	assert_int_equal(f.cut.containers, 3);
	assert_int_equal(f.cut.runs[0], 2);
	assert_int_equal(f.cut.dropped_count, 0);
	assert_contains(f.cut.left, "no section headers");
}

/* Bytes of another section, where box1 alone is in the one that is read. */
static const char *elsewhere_source(const char *section, const char *flags, const char *file)
{
	return arena_printf(
		&arena,
		"__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.balign 8\\nbox1: .incbin "
		"\\\"box1\\\"\\n"
		".section %s,\\\"%s\\\"\\n.balign 8\\nbox2: .incbin \\\"%s\\\"\\n.text\\n\");\n"
		"extern const unsigned char box1[];\n"
		"const unsigned char *volatile p = box1;\n",
		section, flags, file);
}

static void cubin_file(const char *name, uint8_t abi, uint32_t flags)
{
	AUTO_BUF struct buf cubin = {0};

	craft_cubin(&cubin, 1, 512);
	Elf64_Ehdr *h = (Elf64_Ehdr *)cubin.data;
	h->e_ident[EI_ABIVERSION] = abi;
	h->e_flags = flags;
	test_write_bytes(test_path("%s", name), cubin.data, cubin.len);
}

/* torch 2.15.0 has cubins for sm_90 and sm_100 in .lrodata, which count for these GPUs alone. */
static void test_code_in_another_section(void **state)
{
	static const struct {
		const char *section, *flags, *file;
		bool runs;
	} rows[] = {
		{"data", "aw", "host", false},     {".my", "aw", "box2", true},
		{".lrodata", "a", "box2", true},   {".lrodata", "a", "box1", false},
		{".lrodata", "a", "old", true},    {".lrodata", "a", "new", true},
		{".lrodata", "a", "older", false}, {".lrodata", "a", "bad", false},
		{".lrodata", "a", "short", false}, {".lrodata", "a", "newer", false},
	};
	struct fatbin_look look;
	struct fatbin_cut r;
	uint64_t size;
	bool others;

	(void)state;
	make_boxes();
	test_write(test_path("host"), "not a fat binary");
	/* As nvcc 12.8 (sm_90, sm_80) and 13.2 (sm_90, sm_100) write them. */
	cubin_file("old", 7, 0x5a055a);
	cubin_file("older", 7, 0x500550);
	cubin_file("new", 8, 0x6005a04);
	cubin_file("newer", 8, 0x6006402);
	cubin_file("bad", 8, 0);
	test_write_bytes(test_path("short"),
			 "\x7f"
			 "ELF\x02\x01\x01\x41\x08",
			 9);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct fatbin_wanted w = wanted(hopper, 1);
		compile("lib.so", elsewhere_source(rows[i].section, rows[i].flags, rows[i].file),
			SHARED);
		assert_ok(cut(test_path("lib.so"), test_path("cut.so"), &r, &size), &err);
		assert_int_equal(r.unread, rows[i].runs);
		assert_int_equal(r.runs[0], 0);
		assert_int_equal(r.dropped_count, rows[i].runs ? 0 : 3);
		if (rows[i].runs)
			assert_int_equal(size, size_of(test_path("lib.so")));
		AUTO_MAPPING struct fs_mapping file = {0};
		assert_ok(fs_map(test_path("lib.so"), &file, &err), &err);
		assert_ok(fatbin_look_data(&(struct file_bytes){file.data, file.size, "lib.so"},
					   &arena, &look, &err),
			  &err);
		assert_int_equal(fatbin_look_runs(&look, &w, 90, &others), 0);
		assert_int_equal(others, rows[i].runs);
	}
}

/* NVIDIA's libraries have fat binaries among other data, which must stay where it is. */
static void test_among_other_data(void **state)
{
	static const char *const gap =
		"\\n.balign 8\\ngap%d: .ascii \\\"behind\\\"\\n.zero 10000, %d\\n.balign 8\\n";
	AUTO_BUF struct buf source = {0};
	struct fatbin_cut r;
	uint64_t size;

	(void)state;
	make_boxes();
	buf_addstr(&source, "__asm__(\".section .cask_resource,\\\"a\\\"\\n.balign 8\\n");
	for (int i = 0; i < 3; i++) {
		buf_printf(&source, "box%d: .incbin \\\"box%d\\\"", i, i);
		buf_printf(&source, gap, i, i + 7);
	}

	/* What only looks like one: nothing points to it. */
	buf_addstr(
		&source,
		"odd: .long 0xba55ed50, 0x100001, 0, 0\\n.text\\n\");\n" USES
		"extern const unsigned char gap0[], gap2[];\n"
		"int gaps(void) { return gap0[0] == 'b' && gap0[7000] == 7 && gap2[7000] == 9 && "
		"gap0 - box0 > 600000; }\n");
	compile("lib.so", buf_cstr(&source), SHARED);
	assert_ok(cut(test_path("lib.so"), test_path("cut.so"), &r, &size), &err);
	assert_int_equal(size, size_of(test_path("lib.so")));
	assert_int_equal(r.containers, 4);
	assert_int_equal(r.runs[0], 2);
	assert_int_equal(load("./cut.so", "use"), 2 + 0 + 35);
	assert_int_equal(load("./cut.so", "gaps"), 1);
	assert_true(disk_bytes < size - r.dropped_bytes + 8 * 4096);
}

#ifdef __x86_64__
#define LARGE(n) "box" #n ": .incbin \\\"box" #n "\\\"\\n.balign 8\\n"
/* A function that gives the address of a fat binary, as the medium code model has it. */
#define NAMES(n)                                                                                   \
	"const unsigned char *at" #n "(void);\n__asm__(\"at" #n                                    \
	": lea _GLOBAL_OFFSET_TABLE_(%rip), "                                                      \
	"%rax\\nmovabs $box" #n "@GOTOFF, %rcx\\nadd %rcx, %rax\\nret\\n\");\n"
/* As in cuFFT, where each has one image. box2, which nothing names, stays whole. */
static void test_large_data_that_code_names(void **state)
{
	static const char source[] =
		"__asm__(\".section .ldata,\\\"aw\\\"\\n.byte 1\\n.balign 8\\n" LARGE(0) LARGE(
			1) LARGE(2) ".text\\n\");\n" NAMES(0)
			NAMES(1) "int first(void) { return at0()[16 + 64 + 100]; }\n"
				 "int empty(void) { return ((const unsigned *)at1())[2] == 0; }\n";
	struct fatbin_cut r;
	uint64_t size;

	(void)state;
	make_boxes();
	compile("lib.so", source, SHARED);
	assert_int_equal(load(test_path("lib.so"), "first"), 1);
	assert_ok(cut(test_path("lib.so"), test_path("cut.so"), &r, &size), &err);
	assert_int_equal(size, size_of(test_path("lib.so")));
	assert_int_equal(r.containers, 3);
	assert_int_equal(r.runs[0], 2);
	assert_int_equal(load("./cut.so", "first"), 2);
	assert_int_equal(load("./cut.so", "empty"), 1);
	assert_true(r.dropped_bytes > 4 * BIG && r.dropped_bytes < 6 * BIG);
	assert_true(disk_bytes < size - r.dropped_bytes + 8 * 4096);
}
#endif

/* The list that torch shows, at the end of another string, as compilers lay them out. */
static void test_list_of_targets(void **state)
{
	struct fatbin_cut r;
	uint64_t size;

	(void)state;
	compile("libtorch_python.so",
		"__asm__(\".section .rodata\\n.ascii \\\"ipc_h\\\"\\nlist: .asciz \\\"sm_80 sm_86 "
		"sm_90 sm_120 "
		"compute_120\\\"\\n.asciz \\\"sm_80 and others\\\"\\n.text\");\n"
		"extern const char list[] __attribute__((visibility(\"hidden\")));\n"
		"int use(void) { const char *p = list; return __builtin_strcmp(p, \"sm_90\") == 0 "
		"? 1 : 2; }\n",
		SHARED "-fno-builtin");
	assert_int_equal(load("./libtorch_python.so", "use"), 2);
	assert_ok(cut(test_path("libtorch_python.so"), test_path("libtorch_cut.so"), &r, &size),
		  &err);
	assert_string_equal(r.archs, "sm_90");
	assert_int_equal(load("./libtorch_cut.so", "use"), 1);
}

/* Where damage is done: the ELF header and the first program headers, the
 * first fat binary, its second image, the section header of the fat binaries. */
enum place { HEAD, BOX, NEXT, SECTION };

/* What is changed (by exclusive or) and what is said of it; NULL: odd, but cut and proved. */
static const struct {
	enum place place;
	size_t at;
	uint8_t mask;
	const char *text;
} damage[] = {
	{HEAD, 0, 0x5a, "no ELF magic at offset 0x0"},
	{HEAD, 4, 0x5a, "not a 64-bit ELF file (class 88) at offset 0x4"},
	{HEAD, 5, 0x5a, "not a little-endian ELF file (data encoding 91) at offset 0x5"},
	{HEAD, 16, 0x5a, NULL},
	{HEAD, 18, 0x5a, NULL},
	{HEAD, 32, 0x5a, "section of GPU code is not loaded as it is in the file at offset"},
	{HEAD, 33, 0x5a, "section of GPU code is not loaded as it is in the file at offset"},
	{HEAD, 39, 0x5a, "program headers"},
	{HEAD, 40, 0x5a, "section 0 leaves the file at offset"},
	{HEAD, 43, 0x5a, "section headers leave the file at offset"},
	{HEAD, 54, 0x5a, "program headers of 98 bytes at offset 0x36"},
	{HEAD, 56, 0x5a, "two parts of the file lie over each other at offset"},
	{HEAD, 57, 0x5a, "two parts of the file lie over each other at offset"},
	{HEAD, 58, 0x5a, "section headers leave the file at offset"},
	{HEAD, 60, 0x5a, "section headers leave the file at offset"},
	{HEAD, 62, 0x5a, NULL},
	{HEAD, 64, 0x5a, "of the string table is in no segment, used at offset"},
	{HEAD, 72, 0x5a, "leave its segment at offset"},
	{HEAD, 79, 0x5a, "leaves the file at offset"},
	{HEAD, 80, 0x5a, "leave its segment at offset"},
	{HEAD, 96, 0x5a, "leaves its segment at offset"},
	{HEAD, 104, 0x5a, "segment 0 is larger in the file than in memory at offset 0x0"},
	{HEAD, 112, 0x5a, "not a power of two, at offset 0x0"},
	{BOX, 0, 0x5a, "not a fat binary where one must be at offset 0x"},
	{BOX, 4, 0x5a, "a fat binary of version 91 with a header of 16 bytes at offset 0x"},
	{BOX, 6, 0x5a, "a GPU code entry has a header of"},
	{BOX, 6, 0x10, "a fat binary of version 1 with a header of 0 bytes at offset 0x"},
	{BOX, 8, 0x5a, "a GPU code entry ends within its header at offset 0x"},
	{BOX, 10, 0x5a, "leaves its section at offset 0x"},
	{BOX, 15, 0x5a, "leaves its section at offset 0x"},
	{BOX, 16, 0x5a, NULL},
	{BOX, 20, 0x5a, "a GPU code entry has a header of 26 bytes at offset 0x"},
	{BOX, 23, 0x5a, "a GPU code entry has a header of 1509949504 bytes at offset 0x"},
	{BOX, 24, 0x5a, "a GPU code entry has a header of"},
	{BOX, 27, 0x5a, "leaves its container at offset 0x"},
	{BOX, 35, 0x5a, "a GPU code entry of 1509949440 bytes has room for"},
	{BOX, 44, 0x5a, NULL},
	{BOX, 47, 0x5a, "a GPU code entry for target 1509949520 at offset 0x"},
	{BOX, 57, 0xa0, "a GPU code entry that is compressed in two ways at offset 0x"},
	{NEXT, 4, 0x5a, "a GPU code entry has a header of 26 bytes at offset 0x"},
	{NEXT, 12, 0x5a, "leaves its container at offset 0x"},
	{SECTION, offsetof(Elf64_Shdr, sh_addr), 0x08,
	 "not loaded as it is in the file at offset 0x"},
	{SECTION, offsetof(Elf64_Shdr, sh_offset) + 7, 0x5a, "leaves the file at offset 0x"},
	{SECTION, offsetof(Elf64_Shdr, sh_size), 0x08,
	 "not a fat binary where one must be at offset 0x"},
	{SECTION, offsetof(Elf64_Shdr, sh_size) + 4, 0x5a, "leaves the file at offset 0x"},
};

static void assert_refused(const void *data, size_t len, const char *text)
{
	AUTO_BUF struct buf after = {0};
	struct err why = {0};
	struct fatbin_cut r;
	uint64_t size;

	test_write_bytes(test_path("bad.so"), data, len);
	err_clear(&err);
	int rc = cut(test_path("bad.so"), test_path("cut.so"), &r, &size);
	assert_ok(fs_read(TRUSTED, test_path("bad.so"), 64 << 20, &after, &why), &why);
	assert_int_equal(after.len, len);
	assert_memory_equal(after.data, data, len);
	if (!text) {
		assert_ok(rc, &err);
		return;
	}

	assert_int_equal(rc, -1);
	assert_int_equal(err.kind, ERR_INTEGRITY);
	assert_contains(err.msg, text);
	assert_contains(err.msg, "/bad.so': ");
	assert_contains(err.msg, " at offset 0x");
}

/* Each is refused with the file's name and the place,
 * or cut and proved, and the file is what it was. */
static void test_damage_is_refused(void **state)
{
	AUTO_BUF struct buf whole = {0};
	size_t refused = 0, section = 0;

	(void)state;
	make_boxes();
	compile("lib.so", BOXES(".nv_fatbin") USES, SHARED);
	assert_ok(fs_read(TRUSTED, test_path("lib.so"), 64 << 20, &whole, &err), &err);
	const char *first = memmem(whole.data, whole.len, "\x50\xed\x55\xba\x01\0\x10", 8);
	const size_t box = (size_t)(first - whole.data);
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)whole.data;
	for (size_t i = 0; i < h->e_shnum; i++) {
		Elf64_Shdr s;
		memcpy(&s, whole.data + h->e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_offset == box)
			section = h->e_shoff + i * sizeof(s);
	}

	assert_int_not_equal(section, 0);
	const size_t from[] = {[BOX] = box, [NEXT] = box + 16 + 64 + BIG, [SECTION] = section};
	for (size_t i = 0; i < ARRAY_LEN(damage); i++) {
		char *byte = whole.data + from[damage[i].place] + damage[i].at, was = *byte;
		*byte = (char)(was ^ damage[i].mask);
		assert_refused(whole.data, whole.len, damage[i].text);
		*byte = was;
		refused += damage[i].text != NULL;
	}

	assert_true(refused >= 40);
	for (size_t len = 1; len < whole.len; len += whole.len / 6)
		assert_refused(whole.data, len, " at offset 0x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_file_shrinks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_layouts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_symbols_make_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved_table_must_be_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changed_code_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headers_without_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headers_far_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_not_plain_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lea_is_read_as_an_instruction, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_marks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_section_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_among_other_data, setup, teardown),
		cmocka_unit_test_setup_teardown(test_code_in_another_section, setup, teardown),
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(test_large_data_that_code_names, setup, teardown),
#endif
		cmocka_unit_test_setup_teardown(test_list_of_targets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
