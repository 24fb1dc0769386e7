#include "core/code/code.h"

#include <Zydis/Zydis.h>

enum { GROUPS = 16, GROUP_SHIFT = 25 };

struct decoder {
	enum extension_machine machine;
	ZydisDecoder zydis;
	uint64_t set_needs[ZYDIS_ISA_SET_MAX_VALUE + 1];
	uint64_t special_needs[ZYDIS_MNEMONIC_MAX_VALUE + 1]; /* 0: what the set says */
	/* AArch64: the table's rows by bits 25 to 28 of
	 * the word, the main groups of its encoding. */
	const struct extension_encoding **groups[GROUPS];
	size_t groups_count[GROUPS];
};

static const char *set_name(unsigned i)
{
	const char *s = ZydisISASetGetString((ZydisISASet)i);
	return s ? s : "";
}

const struct decoder *decoder_new(const struct extensions *x, enum extension_machine m,
				  struct arena *a)
{
	struct decoder *d = arena_alloc(a, sizeof(*d));

	d->machine = m;
	for (uint32_t g = 0; g < GROUPS; g++) {
		d->groups[g] = arena_array(a, x->encodings_count, sizeof(void *));
		for (size_t i = 0; i < x->encodings_count; i++) {
			const struct extension_encoding *c = &x->encodings[i];
			uint32_t mask = c->mask >> GROUP_SHIFT & (GROUPS - 1),
				 value = c->value >> GROUP_SHIFT & (GROUPS - 1);
			if ((g & mask) == value)
				d->groups[g][d->groups_count[g]++] = c;
		}
	}

	if (!ZYAN_SUCCESS(
		    ZydisDecoderInit(&d->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		abort();
	for (unsigned i = 0; i <= ZYDIS_ISA_SET_MAX_VALUE; i++)
		d->set_needs[i] = i == ZYDIS_ISA_SET_INVALID ? EXTENSION_BASELINE
							     : extensions_of_set(x, set_name(i));
	for (unsigned i = 0; i <= ZYDIS_MNEMONIC_MAX_VALUE; i++) {
		const char *name = ZydisMnemonicGetString((ZydisMnemonic)i);
		for (size_t k = 0; name && k < x->specials_count; k++) {
			if (strcmp(name, x->specials[k].mnemonic) == 0)
				d->special_needs[i] = x->specials[k].needs;
		}
	}

	return d;
}

const char *decoder_id(char ret[32])
{
	uint64_t v = ZydisGetVersion();

	snprintf(ret, 32, "zydis %u.%u.%u", (unsigned)ZYDIS_VERSION_MAJOR(v),
		 (unsigned)ZYDIS_VERSION_MINOR(v), (unsigned)ZYDIS_VERSION_PATCH(v));
	return ret;
}

int decoder_check(const struct extensions *x, const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist missing = {0};
	char id[32];

	for (unsigned i = ZYDIS_ISA_SET_INVALID + 1; i <= ZYDIS_ISA_SET_MAX_VALUE; i++)
		if (!extensions_of_set(x, set_name(i)))
			strlist_ref(&missing, &a, set_name(i));
	if (missing.count == 0)
		return 0;
	err_set(e, ERR_CONFIG, "'%s' has no row for the decoder's set '%s' (%s)", path,
		strlist_join(&missing, &a, "', '"), decoder_id(id));
	return err_hint(e, "this is an error of ptbuild, not of a wheel: the decoder that it was "
			   "built with is newer "
			   "than its tables; add the set to a row there, or to the row 'other' if "
			   "no wheel may use it");
}

/* The first is a certain one if there is any. */
static void note(struct decode_tally *t, uint64_t excess, uint64_t address, const char *name)
{
	bool first = t->unknown ? !t->above && !t->doubtful : !t->above;

	t->count++;
	if (t->unknown)
		t->doubtful |= excess;
	else
		t->above |= excess;
	if (first) {
		t->first = address;
		snprintf(t->mnemonic, sizeof(t->mnemonic), "%s", name ? name : "");
	}
}

enum { WORD = 64, FLOW_WORDS = 64 };

struct flow { /* the code of one function */
	const struct decoder *d;
	const uint8_t *p;
	size_t len;
	uint64_t address, allowed;
	struct decode_tally *t;
	/* a bit a byte: an instruction starts here; it
	 * is a part of one; a direct jump leads here */
	uint64_t *starts, *covered, *targets;
	struct buf todo; /* offsets that jumps lead to */
};

static bool has(const uint64_t *bits, size_t i)
{
	return bits[i / WORD] >> i % WORD & 1;
}

/* `n` bits: 15 at most. */
static void mark(uint64_t *bits, size_t i, size_t n)
{
	uint64_t mask = (1ULL << n) - 1;

	bits[i / WORD] |= mask << i % WORD;
	if (i % WORD + n > WORD)
		bits[i / WORD + 1] |= mask >> (WORD - i % WORD);
}

/* The length of the instruction at an offset, counted; 0: the decoder
 * knows none. *ret_last: the next one is not reached from it. */
static size_t take(struct flow *f, size_t at, bool *ret_last)
{
	const struct decoder *d = f->d;
	ZydisDecodedInstruction in;
	ZydisDecoderContext context;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d->zydis, &context, f->p + at, f->len - at,
							&in)))
		return 0;
	uint64_t needs = d->special_needs[in.mnemonic];
	needs = needs ? needs : d->set_needs[in.meta.isa_set];
	/* A check of the processor itself: nothing else reads XCR0, and OSXSAVE of CPUID
	 * says before whether it can be read (Intel SDM 1, 14.3), often in another function. */
	if (in.mnemonic == ZYDIS_MNEMONIC_XGETBV)
		needs = EXTENSION_BASELINE;
	f->t->instructions++;
	f->t->seen |= needs;
	if (needs & ~f->allowed)
		note(f->t, needs & ~f->allowed, f->address + at,
		     ZydisMnemonicGetString(in.mnemonic));
	mark(f->starts, at, 1);
	mark(f->covered, at, in.length);
	size_t target = at + in.length + (size_t)in.raw.imm[0].value.s;
	if (in.raw.imm[0].is_relative && target < f->len && !has(f->targets, target)) {
		mark(f->targets, target, 1);
		buf_add(&f->todo, &target, sizeof(target));
	}

	*ret_last = in.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		    in.meta.category == ZYDIS_CATEGORY_RET;
	return in.length;
}

/* One instruction behind the other, but for those that
 * are decoded already. Zeros at the end are filler. */
static void sweep(struct flow *f)
{
	size_t end = f->len;

	while (end && !f->p[end - 1])
		end--;
	for (size_t at = 0; at < f->len;) {
		bool last;
		size_t n = has(f->covered, at) ? 1 : take(f, at, &last);
		f->t->unknown += !n && at < end;
		at += n ? n : 1;
	}
}

/* From the first byte, and from all that direct jumps lead to. */
static void follow(struct flow *f)
{
	size_t at = 0;

	for (bool more = true; more;) {
		bool last = false;
		for (size_t n = 1; n && !last && at < f->len && !has(f->starts, at);)
			at += n = take(f, at, &last);
		more = f->todo.len != 0;
		if (more)
			memcpy(&at, f->todo.data + (f->todo.len -= sizeof(at)), sizeof(at));
	}
}

/* Nearly all code is instructions from end to end. Other code, or code with a jump into the middle
 * of an instruction, holds data: then the jumps show what is code. */
static void run_x86(const struct decoder *d, const struct code_bytes *c, uint64_t allowed,
		    struct decode_tally *t)
{
	const size_t len = c->len;
	AUTO_ARENA struct arena scratch = {0};
	size_t words = len / WORD + 1;
	uint64_t few[3 * FLOW_WORDS], *bits = few;
	const struct decode_tally before = *t;

	if (words > FLOW_WORDS)
		bits = arena_array(&scratch, 3 * words, sizeof(*bits));
	memset(bits, 0, 3 * words * sizeof(*bits));
	struct flow f = {d, c->data, len,          c->address,       allowed,
			 t, bits,    bits + words, bits + 2 * words, {0}};
	sweep(&f);
	bool whole = t->unknown == before.unknown;
	for (size_t i = 0; i < words && whole; i++)
		whole = !(f.targets[i] & ~f.starts[i]);
	if (!whole) {
		*t = before;
		memset(bits, 0, 3 * words * sizeof(*bits));
		f.todo.len = 0;
		follow(&f);
		sweep(&f);
	}

	buf_release(&f.todo);
}

/* "adrp x16; ldrb w16, [x16]; cbz w16": how libgcc's and compiler-rt's outline atomics
 * ask whether the processor has LSE, before the one instruction of it that they have
 * (GCC libgcc/config/aarch64/lse.S, JUMP_IF_NOT_LSE). */
static bool asks_for_lse(const uint8_t *p)
{
	static const uint32_t masks[] = {0x9f00001f, 0xffc003ff, 0xff00001f},
			      values[] = {0x90000010, 0x39400210, 0x34000010};
	uint32_t words[ARRAY_LEN(masks)];

	memcpy(words, p, sizeof(words));
	bool same = true;
	for (size_t i = 0; i < ARRAY_LEN(masks); i++)
		same = same && (words[i] & masks[i]) == values[i];
	return same;
}

/* Every word decodes: what the table does not name is the baseline, data in the code included. */
static void run_arm(const struct decoder *d, const struct code_bytes *code, uint64_t allowed,
		    struct decode_tally *t)
{
	const uint8_t *p = code->data;

	for (size_t at = 0; at + 4 <= code->len; at += 4) {
		uint32_t word;
		memcpy(&word, p + at, sizeof(word));
		uint32_t group = word >> GROUP_SHIFT & (GROUPS - 1);
		t->instructions++;
		for (size_t i = 0; i < d->groups_count[group]; i++) {
			const struct extension_encoding *c = d->groups[group][i];
			if ((word & c->mask) != c->value)
				continue;
			t->seen |= c->needs;
			if ((c->needs & ~allowed) && !(at >= 12 && asks_for_lse(p + at - 12)))
				note(t, c->needs & ~allowed, code->address + at, c->what);
			break;
		}
	}
}

void decode_run(const struct decoder *d, const struct code_bytes *code, uint64_t allowed,
		struct decode_tally *t)
{
	if (d->machine == EXTENSION_X86_64)
		run_x86(d, code, allowed, t);
	else
		run_arm(d, code, allowed, t);
}

enum { FLUSH_TO_ZERO = 0x8000 }; /* of MXCSR: Intel SDM 1, 10.2.3.3 */

static bool fast_math_x86(const struct decoder *d, const uint8_t *p, size_t len)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	bool set = false;

	for (size_t at = 0; at < len; at += in.length) {
		if (!ZYAN_SUCCESS(
			    ZydisDecoderDecodeFull(&d->zydis, p + at, len - at, &in, operands)) ||
		    in.meta.category == ZYDIS_CATEGORY_RET)
			return false;
		if (in.mnemonic == ZYDIS_MNEMONIC_OR &&
		    operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    (operands[1].imm.value.u & FLUSH_TO_ZERO))
			set = true;
		if (set && (in.mnemonic == ZYDIS_MNEMONIC_LDMXCSR ||
			    in.mnemonic == ZYDIS_MNEMONIC_VLDMXCSR))
			return true;
	}

	return false;
}

bool decode_fast_math(const struct decoder *d, const uint8_t *bytes, size_t len)
{
	enum { RET = 0xd65f03c0, MSR_FPCR = 0xd51b4400, WITHOUT_REGISTER = 0xffffffe0 };
	uint32_t word = 0;

	if (d->machine == EXTENSION_X86_64)
		return fast_math_x86(d, bytes, len);
	for (size_t at = 0; at + 4 <= len && word != RET; at += 4) {
		memcpy(&word, bytes + at, sizeof(word));
		if ((word & WITHOUT_REGISTER) == MSR_FPCR)
			return true;
	}

	return false;
}

bool decode_asks_cpuid(const struct decoder *d, const uint8_t *bytes, size_t len)
{
	ZydisDecodedInstruction in;
	ZydisDecoderContext context;

	for (size_t at = 0; at < len && d->machine == EXTENSION_X86_64;) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d->zydis, &context, bytes + at,
								len - at, &in))) {
			at++;
			continue;
		}

		if (in.mnemonic == ZYDIS_MNEMONIC_CPUID)
			return true;
		at += in.length;
	}

	return false;
}

static bool wanted(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operand,
		   bool calls)
{
	if (calls)
		return operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative &&
		       (in->meta.category == ZYDIS_CATEGORY_CALL ||
			in->meta.category == ZYDIS_CATEGORY_UNCOND_BR);
	return in->mnemonic == ZYDIS_MNEMONIC_LEA && operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       operand->mem.base == ZYDIS_REGISTER_RIP;
}

size_t decode_targets(const struct decoder *d, const uint8_t *bytes, size_t len, uint64_t address,
		      bool calls, uint64_t *ret, size_t max)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	size_t n = 0;

	for (size_t at = 0; at < len && n < max && d->machine == EXTENSION_X86_64;) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->zydis, bytes + at, len - at, &in,
							 operands))) {
			at++;
			continue;
		}

		for (unsigned i = 0; i < in.operand_count_visible && n < max; i++) {
			ZyanU64 target;
			if (wanted(&in, &operands[i], calls) &&
			    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&in, &operands[i], address + at,
								  &target)))
				ret[n++] = target;
		}

		at += in.length;
	}

	return n;
}

/* Wherever decoding of x86 code begins, it falls in with the true sequence
 * after a few instructions. One of as many beginnings as an instruction
 * may have bytes is in that sequence from the start. */
bool decode_may_start(const uint8_t *bytes, size_t len, size_t at)
{
	enum { BEFORE = 128 };
	/* The first byte of all begins one. */
	const size_t first = at > BEFORE ? at - BEFORE : 0,
		     last = first ? first + ZYDIS_MAX_INSTRUCTION_LENGTH : 1;
	ZydisDecoder d;
	ZydisDecodedInstruction in;

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		abort();
	for (size_t from = first; from < last; from++) {
		size_t p = from;
		while (p < at) {
			bool valid = ZYAN_SUCCESS(
				ZydisDecoderDecodeInstruction(&d, NULL, bytes + p, len - p, &in));
			p += valid ? in.length : 1;
		}

		if (p == at)
			return true;
	}

	return false;
}
