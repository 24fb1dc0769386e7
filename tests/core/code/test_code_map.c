/* Which function each byte belongs to, with symbols and without; and the scan that stands on it. */
#include "elf_files.h"

#include "base/buf.h"
#include "core/code/code.h"
#include "core/elf/elf.h"
#include "shipped.h"

#define KERNELS                                                                                    \
	"#include <immintrin.h>\n"                                                                 \
	"#define ADD(n) __attribute__((target(\"avx512f\"), noinline)) static void "               \
	"kernel##n(float *p)\\\n"                                                                  \
	"{ _mm512_storeu_ps(p, _mm512_add_ps(_mm512_loadu_ps(p + n), _mm512_loadu_ps(p + 16))); "  \
	"}\n"                                                                                      \
	"ADD(1) ADD(2) ADD(3)\n"                                                                   \
	"void (*table[])(float *) = {kernel1, kernel2, kernel3};\n"                                \
	"__attribute__((weak, noinline)) int shared(int x) { return x * 5; }\n"                    \
	"static int started;\n"                                                                    \
	"__attribute__((constructor)) static void start(void) { started = 1; }\n"                  \
	"int answer(void) { return shared(started) + 37; }\n"

static int setup(void **state)
{
	(void)state;
	test_dir();
	return 0;
}

static struct code_map read_map(const char *path, struct elf_map *m)
{
	struct err e = {0};
	struct code_map map;

	assert_ok(elf_map_open(path, m, &e), &e);
	assert_ok(code_map_read(m, &arena, &map, &e), &e);
	return map;
}

static const struct code_range *named(const struct code_map *c, const char *name)
{
	for (size_t i = 0; i < c->count; i++) {
		if (c->ranges[i].name && strcmp(c->ranges[i].name, name) == 0)
			return &c->ranges[i];
	}

	return NULL;
}

static void functions_have_names_files_and_kinds(void **state)
{
	AUTO_ELF_MAP struct elf_map m;

	(void)state;
	struct code_map c = read_map(compile("kernels.so", KERNELS, SHARED), &m);
	assert_true(c.full_names);
	const struct code_range *kernel = named(&c, "kernel2"), *shared = named(&c, "shared"),
				*start = named(&c, "start"), *answer = named(&c, "answer");
	assert_non_null(kernel);
	assert_non_null(shared);
	assert_non_null(start);
	assert_non_null(answer);
	assert_string_equal(kernel->unit, "kernels.so.c");
	assert_int_equal(kernel->flags, CODE_DECLARED);
	assert_int_equal(shared->flags, CODE_DECLARED | CODE_WEAK);
	assert_null(shared->unit);
	assert_int_equal(start->flags, CODE_DECLARED | CODE_INIT);
	assert_int_equal(answer->flags, CODE_DECLARED | CODE_STRONG);
	assert_ptr_equal(code_map_at(&c, kernel->end - 1), kernel);
	assert_null(code_map_at(&c, 0));
	assert_null(code_map_at(&c, UINT64_MAX));
}

/* The frame descriptions of a stripped library cut it at the same places. */
static void without_symbols_the_functions_are_the_same(void **state)
{
	AUTO_ELF_MAP struct elf_map full, bare;

	(void)state;
	compile("full.so", KERNELS, SHARED);
	must("strip -o bare.so full.so");
	struct code_map a = read_map(test_path("full.so"), &full),
			b = read_map(test_path("bare.so"), &bare);
	assert_false(b.full_names);
	assert_null(named(&b, "kernel1"));
	assert_non_null(named(&b, "answer"));
	for (size_t i = 0; i < a.count; i++) {
		if (!a.ranges[i].name || !(a.ranges[i].flags & CODE_DECLARED) ||
		    strncmp(a.ranges[i].name, "kernel", 6) != 0)
			continue;
		const struct code_range *r = code_map_at(&b, a.ranges[i].start);
		assert_non_null(r);
		assert_int_equal(r->start, a.ranges[i].start);
		assert_int_equal(r->end, a.ranges[i].end);
		assert_int_equal(r->flags, CODE_DECLARED);
	}

	const struct code_range *start = code_map_at(&b, named(&a, "start")->start);
	assert_true(start->flags & CODE_INIT);
}

static void without_sections_the_segments_are_looked_at(void **state)
{
	AUTO_ELF_MAP struct elf_map m;

	(void)state;
	const char *path = compile("bare.so", KERNELS, SHARED "-s");
	drop_sections(path);
	struct code_map c = read_map(path, &m);
	const struct code_range *answer = named(&c, "answer");
	assert_non_null(answer);
	assert_true(answer->flags & CODE_DECLARED);
}

static void ranges_are_disjoint_and_complete(void **state)
{
	AUTO_ELF_MAP struct elf_map m;

	(void)state;
	struct code_map c = read_map("/usr/bin/true", &m);
	uint64_t bytes = 0;
	assert_true(c.count > 10);
	for (size_t i = 0; i < c.count; i++) {
		assert_true(c.ranges[i].start < c.ranges[i].end);
		assert_true(i == 0 || c.ranges[i - 1].end <= c.ranges[i].start);
		bytes += c.ranges[i].end - c.ranges[i].start;
	}

	GElf_Shdr h;
	uint64_t text = 0;
	for (Elf_Scn *s = elf_nextscn(m.elf, NULL); s; s = elf_nextscn(m.elf, s)) {
		if (gelf_getshdr(s, &h) && (h.sh_flags & SHF_EXECINSTR))
			text += h.sh_size;
	}

	assert_int_equal(bytes, text);
}

/* Assembler of AArch64 marks the data that it keeps
 * between functions: OpenSSL's has texts there. */
static void marked_data_is_no_code(void **state)
{
	AUTO_ELF_MAP struct elf_map m;

	(void)state;
	const char *path = compile(
		"marks.so",
		"__asm__(\".text\\n.balign 4\\n.globl f\\n.type f, @function\\nf: .long 1\\n\"\n"
		"\"inside: .long 2\\n.long 3\\n.size f, . - f\\n\"\n"
		"\"data: .ascii \\\"Keccak-1600 absorb and squeeze..\\\"\\n\"\n"
		"\"code: .long 4\\n.globl g\\n.type g, @function\\ng: .long 5\\n.size g, . - "
		"g\\n\");\n",
		SHARED);
	must("objcopy --redefine-sym 'inside=$d' --redefine-sym 'data=$d.1' --redefine-sym "
	     "'code=$x' marks.so");
	struct code_map c = read_map(path, &m);
	uint64_t end = named(&c, "f")->end;
	assert_non_null(code_map_at(&c, end)); /* on x86-64 these are names as any other */
	elf_map_close(&m);
	/* EM_AARCH64 */
	must("printf '\\267' | dd of=marks.so bs=1 seek=18 conv=notrunc status=none");
	c = read_map(path, &m);
	const struct code_range *f = named(&c, "f"), *code = code_map_at(&c, end + 32);
	assert_int_equal(f->end - f->start, 12);
	assert_null(code_map_at(&c, end));
	assert_null(code_map_at(&c, end + 31));
	assert_non_null(code);
	assert_null(code->name);
	assert_int_equal(code->flags, 0);
	assert_int_equal(code->end - code->start, 4);
	assert_int_equal(named(&c, "g")->start, code->end);
}

/* BOLT gives the cold part of a function each name of the hot part, and marks are names to it. */
static void a_mark_is_no_name_of_a_function(void **state)
{
	AUTO_ELF_MAP struct elf_map m;

	(void)state;
	const char *path =
		compile("split.so",
			"__asm__(\".text\\n.balign 4\\n.type a, @function\\na: .long 1\\n.size a, "
			". - a\\n\"\n"
			"\".type mark, @function\\nmark: .long 2\\n.size mark, . - mark\\n\"\n"
			"\".type b, @function\\nb: .long 3\\n.size b, . - b\\n\");\n",
			SHARED);
	must("objcopy --redefine-sym 'mark=$x.cold.0' split.so");
	struct code_map c = read_map(path, &m);
	assert_non_null(named(&c, "$x.cold.0")); /* on x86-64 a name as any other */
	elf_map_close(&m);
	must("printf '\\267' | dd of=split.so bs=1 seek=18 conv=notrunc status=none");
	c = read_map(path, &m);
	const struct code_range *part = code_map_at(&c, named(&c, "a")->end);
	assert_non_null(part);
	assert_null(part->name);
	assert_int_equal(part->end - part->start, 4);
	assert_int_equal(named(&c, "b")->start, part->end);
}

static struct isa_scan scan(struct elf_map *m, struct isa_idle *spare,
			    const struct isa_rules *rules)
{
	struct err e = {0};
	struct isa_scan s;
	uint64_t allowed[EXTENSION_MACHINES];

	isa_rules_allowed(rules, NULL, allowed);
	assert_ok(isa_scan_file(m,
				&(struct isa_scan_request){rules->decoders, allowed, spare,
							   test_run(), &arena},
				&s, &e),
		  &e);
	return s;
}

/* Enough code for several blocks; each third function uses AVX512F. */
static void threads_change_nothing(void **state)
{
	AUTO_BUF struct buf text = {0};
	AUTO_ELF_MAP struct elf_map one, many;
	struct err e = {0};
	const struct isa_rules *rules = NULL;
	struct isa_idle spare = {7};

	(void)state;
	rules = shipped_rules(&arena);
	buf_addstr(&text, "#define F(n) .globl f##n; .type f##n,@function; f##n: .rept 2000; addl "
			  "$1, %eax; .endr; .if "
			  "n % 3 == 0; vaddps %zmm1, "
			  "%zmm2, %zmm3; .endif; ret; .size f##n, .-f##n\n.text\n");
	for (int i = 0; i < 300; i++)
		buf_printf(&text, "F(%d)\n", i);
	test_write(test_path("many.S"), buf_cstr(&text));
	must("gcc -shared -nostdlib -o many.so many.S");
	assert_ok(elf_map_open(test_path("many.so"), &one, &e), &e);
	assert_ok(elf_map_open(test_path("many.so"), &many, &e), &e);
	struct isa_scan a = scan(&one, NULL, rules), b = scan(&many, &spare, rules);
	assert_int_equal(a.count, 100);
	assert_int_equal(a.functions, 300);
	assert_int_equal(a.instructions, 300 * 2001 + 100);
	assert_int_equal(b.count, a.count);
	assert_int_equal(b.instructions, a.instructions);
	assert_int_equal(b.bytes, a.bytes);
	for (size_t i = 0; i < a.count; i++) {
		assert_string_equal(a.found[i].range->name, b.found[i].range->name);
		assert_memory_equal(&a.found[i].tally, &b.found[i].tally, sizeof(a.found[i].tally));
	}

	assert_int_equal(atomic_load(&spare.processors), 7);
}

static void an_interrupted_scan_ends(void **state)
{
	AUTO_ELF_MAP struct elf_map m;
	struct err e = {0};
	const struct isa_rules *rules = NULL;
	struct isa_scan s;
	uint64_t allowed[EXTENSION_MACHINES];
	int ends[2];

	(void)state;
	rules = shipped_rules(&arena);
	isa_rules_allowed(rules, NULL, allowed);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	const struct run run = {.log = test_run()->log, .cancel_fd = ends[0]};
	assert_ok(elf_map_open("/usr/bin/true", &m, &e), &e);
	assert_err(isa_scan_file(
			   &m,
			   &(struct isa_scan_request){rules->decoders, allowed, NULL, &run, &arena},
			   &s, &e),
		   &e, ERR_INTERRUPTED, "interrupted");
	close(ends[0]);
	close(ends[1]);
}

static void names_for_people(void **state)
{
	AUTO_BUF struct buf grows = {0};

	(void)state;
	assert_string_equal(demangle("_ZN2at6native3fooEi", &arena), "at::native::foo(int)");
	assert_string_equal(demangle("memcpy", &arena), "memcpy");
	assert_string_equal(demangle("_Znonsense", &arena), "_Znonsense");
	/* Each level doubles what the one before it stands for. */
	buf_addstr(&grows, "_Z1fI1aIiiE");
	for (int i = 0; i < 30; i++)
		buf_printf(&grows, "1aIS%c_S%c_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
			   "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
	buf_addstr(&grows, "EvT_");
	assert_true(strlen(demangle(buf_cstr(&grows), &arena)) <= 410);
	assert_true(strlen(demangle(arena_printf(&arena, "%01000d", 7), &arena)) <= 410);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(functions_have_names_files_and_kinds),
		T(without_symbols_the_functions_are_the_same),
		T(without_sections_the_segments_are_looked_at),
		T(marked_data_is_no_code),
		T(a_mark_is_no_name_of_a_function),
		T(ranges_are_disjoint_and_complete),
		T(threads_change_nothing),
		T(an_interrupted_scan_ends),
		T(names_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
