#include "support.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

#include "core/code/code.h"
#include "core/tables/tables.h"
#include "shipped.h"

static struct arena arena;
static struct err err;

static int release(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static const struct extensions *shipped(void)
{
	const struct extensions *x = NULL;
	assert_ok(extensions_new(shipped_tables(&arena), &arena, &x, &err), &err);
	return x;
}

static uint64_t x86(const struct extensions *x, const char *name)
{
	uint64_t bit = extensions_bit(x, EXTENSION_X86_64, name);
	assert_true(bit);
	return bit;
}

/* A new version of the decoder brings new sets: each
 * must have a row before ptbuild can be used with it. */
static void the_decoders_sets_have_rows(void **state)
{
	(void)state;
	assert_ok(decoder_check(shipped(), PROFILES_DIR "/extensions.yaml", &err), &err);
	for (unsigned i = 1; i <= ZYDIS_ISA_SET_MAX_VALUE; i++)
		assert_true(extensions_of_set(shipped(), ZydisISASetGetString((ZydisISASet)i)));
	assert_int_equal(extensions_of_set(shipped(), "NO_SUCH_SET"), 0);
}

/* Debian 12 has the decoder's version 4.0, Debian 13 has
 * 4.1: a table that fits one of them fails on the other. */
static void the_sets_of_both_hosts_have_rows(void **state)
{
	static const char *const newer[] = {
		"AMX_FP16",      "AVX_IFMA", "AVX_NE_CONVERT",  "AVX_VNNI_INT16",
		"AVX_VNNI_INT8", "FCOMI",    "MSRLIST",         "PBNDKB",
		"PCOMMIT",       "RAO_INT",  "ICACHE_PREFETCH", "SHA512",
		"SM3",           "SM4",      "WRMSRNS"};
	const struct extensions *x = shipped();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(newer); i++)
		assert_true(extensions_of_set(x, newer[i]));
	assert_true(extensions_of_set(x, "FCOMI") == EXTENSION_BASELINE);
	assert_true(extensions_of_set(x, "ICACHE_PREFETCH") == EXTENSION_BASELINE);
	assert_true(extensions_of_set(x, "SM4") == x86(x, "other"));
}

static void forms_of_vl_need_both(void **state)
{
	const struct extensions *x = shipped();

	(void)state;
	assert_true(extensions_of_set(x, "AVX512BW_256") ==
		    (x86(x, "avx512bw") | x86(x, "avx512vl")));
	assert_true(extensions_of_set(x, "AVX512BW_512") == x86(x, "avx512bw"));
	assert_true(extensions_of_set(x, "AVX_VNNI") == x86(x, "avx_vnni"));
	assert_true(extensions_of_set(x, "AVX512_VNNI_256") ==
		    (x86(x, "avx512_vnni") | x86(x, "avx512vl")));
	assert_true(extensions_of_set(x, "I86") == EXTENSION_BASELINE);
}

static void implications_are_transitive(void **state)
{
	const struct extensions *x = shipped();
	uint64_t all = extensions_with(x, EXTENSION_X86_64, x86(x, "avx512_vnni"));

	(void)state;
	assert_true(all & x86(x, "avx512f"));
	assert_true(all & x86(x, "fma"));
	assert_true(all & x86(x, "avx2"));
	assert_true(all & x86(x, "ssse3"));
	assert_true(all & EXTENSION_BASELINE);
	assert_false(all & x86(x, "avx512vl"));
	assert_false(all & x86(x, "avx_vnni"));
	assert_true(extensions_with(x, EXTENSION_X86_64, 0) == EXTENSION_BASELINE);
}

static void text_leaves_out_what_is_implied(void **state)
{
	const struct extensions *x = shipped();

	(void)state;
	assert_string_equal(extensions_text(x, EXTENSION_X86_64,
					    x86(x, "avx") | x86(x, "avx2") | x86(x, "bmi2"),
					    &arena),
			    "avx2, bmi2");
	assert_string_equal(extensions_text(x, EXTENSION_X86_64, EXTENSION_BASELINE, &arena), "");
	uint64_t half = extensions_bit(x, EXTENSION_AARCH64, "fphp") |
			extensions_bit(x, EXTENSION_AARCH64, "asimdhp");
	assert_string_equal(extensions_text(x, EXTENSION_AARCH64, half, &arena), "fphp");
}

/* A feature of isa.yaml that no extension is called by would promise nothing. */
static void every_feature_of_the_isa_table_is_an_extension(void **state)
{
	const struct isa_rules *r = shipped_rules(&arena);
	const struct tables *t = shipped_tables(&arena);

	(void)state;
	for (unsigned i = 0; i < t->isas_count; i++) {
		bool arm = strncmp(t->isas[i].platform, "aarch64", 7) == 0;
		for (unsigned k = 0; k < t->isas[i].cpuinfo_count; k++)
			assert_true(extensions_bit(r->extensions,
						   arm ? EXTENSION_AARCH64 : EXTENSION_X86_64,
						   t->isas[i].cpuinfo[k]));
	}
}

static void a_promise_is_of_one_machine(void **state)
{
	const struct isa_rules *r = shipped_rules(&arena);
	const struct tables *t = shipped_tables(&arena);
	uint64_t allowed[EXTENSION_MACHINES];

	(void)state;
	isa_rules_allowed(r, tables_isa(t, "avx512"), allowed);
	assert_true(allowed[EXTENSION_X86_64] & x86(r->extensions, "avx512vl"));
	assert_true(allowed[EXTENSION_AARCH64] == EXTENSION_BASELINE);
	isa_rules_allowed(r, tables_isa(t, "armv9"), allowed);
	assert_true(allowed[EXTENSION_X86_64] == EXTENSION_BASELINE);
	assert_true(allowed[EXTENSION_AARCH64] &
		    extensions_bit(r->extensions, EXTENSION_AARCH64, "asimddp"));
	isa_rules_allowed(r, NULL, allowed);
	assert_true(allowed[EXTENSION_X86_64] == EXTENSION_BASELINE);
}

/* tests/data/aarch64_words.txt: instructions as an assembler encodes them, and what each needs. */
static void words_of_aarch64(void **state)
{
	const struct extensions *x = shipped();
	const struct decoder *d = decoder_new(x, EXTENSION_AARCH64, &arena);
	char *text = test_read(TEST_DATA_DIR "/aarch64_words.txt"), *save = NULL;
	unsigned count = 0;

	(void)state;
	assert_non_null(text);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char names[64];
		unsigned word;
		struct decode_tally t = {0};
		if (*line == '#')
			continue;
		assert_int_equal(sscanf(line, "%63[^|]|%8x|", names, &word), 2);
		uint64_t want = 0;
		for (char *rest = NULL, *name = strtok_r(names, " ", &rest); name;
		     name = strtok_r(NULL, " ", &rest))
			want |= extensions_bit(x, EXTENSION_AARCH64, name);
		uint32_t bytes = word;
		decode_run(d, &(struct code_bytes){(const uint8_t *)&bytes, 4, 0},
			   EXTENSION_BASELINE, &t);
		if ((t.seen ? t.seen : EXTENSION_BASELINE) != want)
			fail_msg("%s: taken for %s", line,
				 extensions_text(x, EXTENSION_AARCH64, t.seen, &arena));
		count++;
	}

	assert_true(count > 200);
	free(text);
}

/* libgcc's: "adrp x16, have; ldrb w16, [x16, #have]; cbz w16, fallback", then the one
 * instruction of LSE. Any other register, or a branch that does not go round, is no question. */
static void outline_atomics_ask_themselves(void **state)
{
	(void)state;
	const struct extensions *x = shipped();
	const struct decoder *d = decoder_new(x, EXTENSION_AARCH64, &arena);
	enum { CASAL = 0x88e0fc41, RET = 0xd65f03c0 };
	static const struct {
		uint32_t asks[3];
		bool guarded;
	} rows[] = {
		{{0xb0000090, 0x39410210, 0x34000070}, true}, /* another page, offset and target */
		/* cbnz */
		{{0x90000010, 0x39400210, 0x34000070}, true},
		{{0x90000010, 0x39400210, 0x35000070}, false},
		{{0x90000010, 0x39400210, 0x34000071}, false}, /* cbz w17 */
		{{0x90000010, 0x39400230, 0x34000070}, false}, /* ldrb w16, [x17] */
		{{0x10000010, 0x39400210, 0x34000070}, false}, /* adr */
		{{0x90000011, 0x39400210, 0x34000070}, false}, /* adrp x17 */
	};
	uint64_t lse = extensions_bit(x, EXTENSION_AARCH64, "atomics");
	assert_true(lse);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t code[] = {rows[i].asks[0], rows[i].asks[1], rows[i].asks[2], CASAL, RET};
		struct decode_tally t = {0};
		decode_run(d, &(struct code_bytes){(const uint8_t *)code, sizeof(code), 0},
			   EXTENSION_BASELINE, &t);
		if (t.above != (rows[i].guarded ? 0 : lse))
			fail_msg("row %zu: %s", i,
				 extensions_text(x, EXTENSION_AARCH64, t.above, &arena));
		assert_true(t.seen & lse);
		/* The second instruction has nobody that asks for it. */
		code[4] = CASAL;
		t = (struct decode_tally){0};
		decode_run(d, &(struct code_bytes){(const uint8_t *)code, sizeof(code), 0},
			   EXTENSION_BASELINE, &t);
		assert_int_equal(t.count, rows[i].guarded ? 1 : 2);
	}
}

/* Every row of the table is there for some instruction
 * of the list, but for those that stand before another. */
static void every_encoding_is_used(void **state)
{
	const struct extensions *x = shipped();
	char *text = test_read(TEST_DATA_DIR "/aarch64_words.txt");

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < x->encodings_count; i++) {
		bool used = false;
		for (const char *line = strchr(text, '\n'); line && !used;
		     line = strchr(line + 1, '\n')) {
			const char *bar = strchr(line, '|');
			used = bar && ((uint32_t)strtoul(bar + 1, NULL, 16) &
				       x->encodings[i].mask) == x->encodings[i].value;
		}

		if (!used)
			fail_msg("no instruction for '%s'", x->encodings[i].what);
	}

	free(text);
}

static struct decode_tally decode(const char *bytes, size_t len, const char *allowed)
{
	const struct extensions *x = shipped();
	struct decode_tally t = {0};
	uint64_t bits =
		extensions_with(x, EXTENSION_X86_64, extensions_bit(x, EXTENSION_X86_64, allowed));

	decode_run(decoder_new(x, EXTENSION_X86_64, &arena),
		   &(struct code_bytes){(const uint8_t *)bytes, len, 0x1000}, bits, &t);
	return t;
}

#define DECODE(bytes, allowed) decode(bytes, sizeof(bytes) - 1, allowed)
#define VADDPS_ZMM "\x62\xf1\x7c\x48\x58\xc1"
#define VPADDD_YMM "\xc5\xf5\xfe\xc2"
#define INVALID "\x06"

static void the_first_instruction_beyond_is_told(void **state)
{
	(void)state;
	struct decode_tally t = DECODE(VPADDD_YMM VADDPS_ZMM VADDPS_ZMM "\xc3", "avx2");
	assert_int_equal(t.instructions, 4);
	assert_int_equal(t.count, 2);
	assert_int_equal(t.first, 0x1004);
	assert_string_equal(t.mnemonic, "vaddps");
	assert_true(t.above == x86(shipped(), "avx512f"));
	assert_int_equal(t.unknown, 0);
}

static void what_is_allowed_is_nothing(void **state)
{
	(void)state;
	struct decode_tally t = DECODE(VPADDD_YMM VADDPS_ZMM, "avx512f");
	assert_int_equal(t.count, 0);
	assert_int_equal(t.above, 0);
	t = DECODE(VPADDD_YMM, "avx");
	assert_int_equal(t.count, 1);
}

static void rep_bsf_is_no_bmi(void **state)
{
	(void)state;
	struct decode_tally t = DECODE("\xf3\x0f\xbc\xc1", "x86_64"); /* tzcnt eax, ecx */
	assert_int_equal(t.count, 0);
	t = DECODE("\xf3\x0f\xbd\xc1", "x86_64"); /* lzcnt eax, ecx: BSR gives something else */
	assert_int_equal(t.count, 1);
	t = DECODE("\xc4\xe2\x78\xf2\xc1", "x86_64"); /* andn */
	assert_int_equal(t.count, 1);
}

/* It is a check of the processor, whichever function asks CPUID before. */
static void test_xgetbv_is_the_baseline(void **state)
{
	(void)state;
	struct decode_tally t = DECODE("\x0f\xa2\x0f\x01\xd0", "x86_64"); /* cpuid, xgetbv */
	assert_int_equal(t.count, 0);
	t = DECODE("\x81\xe3\x00\x00\x00\x08\x0f\x01\xd0", "x86_64"); /* and ebx, 0x8000000 */
	assert_int_equal(t.instructions, 2);
	assert_int_equal(t.count, 0);
	t = DECODE("\x0f\x01\xd0", "x86_64");
	assert_int_equal(t.count, 0);
	t = DECODE("\x0f\xa2\x0f\xae\x27", "x86_64"); /* cpuid, xsave [rdi] */
	assert_int_equal(t.count, 1);
}

/* Zydis 4.1 has a set of its own for it, and a fortran
 * compiler writes it for every comparison of long doubles. */
static void fcomi_is_the_baseline(void **state)
{
	(void)state;
	struct decode_tally t = DECODE("\xdb\xf1\xdf\xe9", "x86_64"); /* fcomi, fucomip */
	assert_int_equal(t.instructions, 2);
	assert_int_equal(t.count, 0);
	t = DECODE("\x0f\x01\xee", "avx512f"); /* rdpkru */
	assert_int_equal(t.count, 1);
	assert_true(t.above == x86(shipped(), "other"));
}

static void behind_what_is_no_instruction_all_is_doubtful(void **state)
{
	(void)state;
	struct decode_tally t = DECODE(INVALID VADDPS_ZMM, "avx2");
	assert_int_equal(t.above, 0);
	assert_true(t.doubtful);
	assert_int_equal(t.unknown, 1);
	t = DECODE(VADDPS_ZMM INVALID VADDPS_ZMM, "avx2");
	assert_true(t.above && t.doubtful);
	assert_int_equal(t.first, 0x1000);
}

static void an_instruction_cut_off_is_none(void **state)
{
	(void)state;
	struct decode_tally t = decode(VADDPS_ZMM, 3, "avx2");
	assert_int_equal(t.above, 0);
	assert_true(t.unknown);
	assert_int_equal(decode("", 0, "avx2").instructions, 0);
}

static void test_start_of_an_instruction(void **state)
{
	/* From libphi.so: two "lea" and a "mov"; the bytes 4c 8d 05 lie in the first of them. */
	static const uint8_t code[] = {0x48, 0x8d, 0x35, 0xfe, 0x4c, 0x8d, 0x05,
				       0x4c, 0x89, 0xe7, 0x48, 0x89, 0xc2};
	uint8_t bytes[300];

	(void)state;
	memset(bytes, 0x90, sizeof(bytes));
	for (size_t from = 0; from < 280; from += 7) {
		memcpy(bytes + from, code, sizeof(code));
		assert_true(decode_may_start(bytes, sizeof(bytes), from));
		assert_false(decode_may_start(bytes, sizeof(bytes), from + 4));
		assert_true(decode_may_start(bytes, sizeof(bytes), from + 7));
		assert_true(decode_may_start(bytes, sizeof(bytes), from + 10));
		memset(bytes, 0x90, sizeof(bytes));
	}

	/* Cut off by the end. */
	memcpy(bytes + 295, code, 5);
	assert_true(decode_may_start(bytes, sizeof(bytes), 295));
}

static void expect_bad(const char *from, const char *to, const char *message)
{
	char *text = test_read(PROFILES_DIR "/extensions.yaml"), *at = strstr(text, from);
	const struct extensions *x;
	const struct tables *t;

	assert_non_null(at);
	const char *changed =
		arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	assert_ok(load_changed("extensions.yaml", changed, &arena, &t, &err), &err);
	assert_err(extensions_new(t, &arena, &x, &err), &err, ERR_CONFIG, message);
	assert_contains(err.msg, "extensions.yaml");
	free(text);
}

static void bad_tables(void **state)
{
	(void)state;
	expect_bad("implies: [sse3]", "implies: [sse33]", "no extension 'sse33'");
	expect_bad("name: ssse3, machine", "name: sse3, machine", "two rows of one name 'sse3'");
	expect_bad("machine: x86_64, implies: [sse3]", "machine: sparc, implies: [sse3]",
		   "unknown machine 'sparc'");
	expect_bad("mask: 0x9e000000", "mask: 0x9e0000000", "digits after 0x: '0x9e0000000'");
	expect_bad("mask: 0x9e000000", "mask: 0x00000000", "the mask hides bits of the value");
	expect_bad("sets: [BMI2]", "sets: [BMI1]", "the set 'BMI1' is in two rows");
	expect_bad("needs: [sme]", "needs: [avx]", "no extension 'avx'");
	expect_bad("- {name: crc32, machine: aarch64}",
		   "- {name: crc32, machine: aarch64, sets: [SSE9]}", "only x86_64 has sets");
}

/* A set that no row has says nothing about any wheel: it stops ptbuild, with its name. */
static void a_set_without_a_row_is_an_error(void **state)
{
	char *text = test_read(PROFILES_DIR "/extensions.yaml"), *at = strstr(text, "FCMOV, ");
	const struct isa_rules *r;
	const struct tables *t;

	(void)state;
	assert_non_null(at);
	memmove(at, at + strlen("FCMOV, "), strlen(at + strlen("FCMOV, ")) + 1);
	assert_ok(load_changed("extensions.yaml", text, &arena, &t, &err), &err);
	assert_err(isa_rules_new(t, &arena, &r, &err), &err, ERR_CONFIG,
		   "no row for the decoder's set 'FCMOV' (zydis 4.");
	assert_contains(err.msg, "extensions.yaml");
	assert_contains(err.hint, "newer than its tables");
	free(text);
}

static void bad_families(void **state)
{
	const struct dispatch *d;
	const struct tables *t;

	(void)state;
	const char *unknown = "families:\n  - {library: \"*\", extensions: [avx3], why: x}\n";
	assert_ok(load_changed("dispatch.yaml", unknown, &arena, &t, &err), &err);
	assert_err(dispatch_new(t, shipped(), &arena, &d, &err), &err, ERR_CONFIG,
		   "dispatch.yaml:2: no extension 'avx3'");
	const char *nameless =
		"families:\n  - {library: \"*\", extensions: [any], carries: true, why: x}\n";
	assert_ok(load_changed("dispatch.yaml", nameless, &arena, &t, &err), &err);
	assert_err(dispatch_new(t, shipped(), &arena, &d, &err), &err, ERR_CONFIG, "no 'symbol'");
}

static uint64_t excuse(const struct isa_rules *r, const char *library, const char *name,
		       const char *unit, unsigned flags)
{
	const struct code_range range = {.name = name, .unit = unit, .flags = flags};
	const char *why = "";
	uint64_t bits = dispatch_excuses(r->dispatch, EXTENSION_X86_64, library, &range, &why);

	assert_int_equal(bits != 0, *why != '\0');
	return bits;
}

static void families(void **state)
{
	const struct isa_rules *r = shipped_rules(&arena);

	(void)state;
	uint64_t f = x86(r->extensions, "avx512f"), avx2 = x86(r->extensions, "avx2");
	assert_true(excuse(r, "libtorch_cpu.so", "foo", "SoftMaxKernel.cpp.AVX512.cpp", 0) & f);
	assert_true(excuse(r, "libtorch_cpu.so", "foo", "SoftMaxKernel.cpp.AVX2.cpp", 0) & avx2);
	assert_false(excuse(r, "libtorch_cpu.so", "foo", "SoftMaxKernel.cpp.AVX2.cpp", 0) & f);
	assert_false(excuse(r, "libtorch_cpu.so", "foo", "SoftMaxKernel.cpp.DEFAULT.cpp", 0));
	assert_false(excuse(r, "libtorch_cpu.so", NULL, NULL, 0));
	assert_false(excuse(r, "libother.so", "foo", "SoftMaxKernel.cpp.AVX512.cpp", 0));
	/* What the linker kept one copy of may have
	 * come from there, and be called from anywhere. */
	assert_false(excuse(r, "libtorch_cpu.so", "_ZNSt6vectorIiSaIiEE6resizeEm",
			    "SoftMaxKernel.cpp.AVX512.cpp", CODE_WEAK));
	assert_true(excuse(r, "libtorch_cpu.so", "_ZN2at6native6AVX51211copy_kernelEv", NULL,
			   CODE_WEAK) &
		    f);
	assert_true(excuse(r, "libopenblas-12345678.so.0", NULL, NULL, 0) & f);
	assert_false(excuse(r, "libopenblas-12345678.so.0", "inlined", NULL, CODE_WEAK));
	assert_true(excuse(r, "libtorch_cpu.so", "xnn_f32_vadd_ukernel__avx512f_u32", NULL,
			   CODE_STRONG) &
		    f);
	assert_false(
		excuse(r, "libtorch_cpu.so", "xnn_f32_vadd_ukernel__scalar_u4", NULL, CODE_STRONG));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_decoders_sets_have_rows),
		cmocka_unit_test(the_sets_of_both_hosts_have_rows),
		cmocka_unit_test(forms_of_vl_need_both),
		cmocka_unit_test(implications_are_transitive),
		cmocka_unit_test(text_leaves_out_what_is_implied),
		cmocka_unit_test(every_feature_of_the_isa_table_is_an_extension),
		cmocka_unit_test(a_promise_is_of_one_machine),
		cmocka_unit_test(words_of_aarch64),
		cmocka_unit_test(outline_atomics_ask_themselves),
		cmocka_unit_test(every_encoding_is_used),
		cmocka_unit_test(the_first_instruction_beyond_is_told),
		cmocka_unit_test(what_is_allowed_is_nothing),
		cmocka_unit_test(rep_bsf_is_no_bmi),
		cmocka_unit_test(test_xgetbv_is_the_baseline),
		cmocka_unit_test(fcomi_is_the_baseline),
		cmocka_unit_test(behind_what_is_no_instruction_all_is_doubtful),
		cmocka_unit_test(an_instruction_cut_off_is_none),
		cmocka_unit_test(test_start_of_an_instruction),
		cmocka_unit_test_teardown(bad_tables, test_teardown),
		cmocka_unit_test_teardown(a_set_without_a_row_is_an_error, test_teardown),
		cmocka_unit_test_teardown(bad_families, test_teardown),
		cmocka_unit_test(families),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
