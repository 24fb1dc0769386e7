/* decode_words PROFILES FILE...: the different words of AArch64 code in ELF files, ascending,
 * each in a line "WORD COUNT NEEDS WHAT", for test_arm_decoder.py. WORD is hexadecimal; NEEDS
 * has extensions of profiles/extensions.yaml with "+" between them, or is "-" for the baseline.
 * FILE "-": the words of standard input. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/code/code.h"

struct words {
	uint32_t *items;
	size_t count, cap;
};

static int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* The words of all that isa_scan decodes: an object between functions is data. */
static int read_file(const char *path, struct arena *a, struct words *w, struct err *e)
{
	AUTO_ELF_MAP struct elf_map m = {0};
	struct code_map map;

	if (elf_map_open(path, &m, e) < 0 || code_map_read(&m, a, &map, e) < 0)
		return -1;
	if (m.header.e_machine != EM_AARCH64)
		return err_set(e, ERR_CONFIG, "'%s' is not for AArch64", path);
	for (size_t i = 0; i < map.count; i++) {
		const struct code_range *r = &map.ranges[i];
		uint64_t offset, room;
		if ((r->flags & CODE_DATA) || !elf_map_find(&m, r->start, &offset, &room))
			continue;
		const uint64_t size = r->end - r->start < room ? r->end - r->start : room;
		for (uint64_t at = 0; at + 4 <= size; at += 4) {
			w->items = arena_room(a, w->items, w->count, &w->cap, 1 << 20,
					      sizeof(*w->items));
			memcpy(&w->items[w->count++], m.data + offset + at, 4);
		}
	}

	return 0;
}

static int read_stdin(struct arena *a, struct words *w)
{
	uint32_t word;

	while (scanf("%" SCNx32, &word) == 1) {
		w->items = arena_room(a, w->items, w->count, &w->cap, 1 << 20, sizeof(*w->items));
		w->items[w->count++] = word;
	}

	return 0;
}

static void print_word(const struct extensions *x, const struct decoder *d, uint32_t word,
		       size_t count)
{
	AUTO_ARENA struct arena a = {0};
	struct decode_tally t = {0};

	decode_run(d, &(struct code_bytes){(const uint8_t *)&word, sizeof(word), 0},
		   EXTENSION_BASELINE, &t);
	struct strlist needs = {0};
	strlist_split(&needs, &a, t.count ? extensions_text(x, EXTENSION_AARCH64, t.seen, &a) : "-",
		      ", ");
	printf("%08" PRIx32 " %zu %s %s\n", word, count, strlist_join(&needs, &a, "+"),
	       t.count ? t.mnemonic : "");
}

static int run(int argc, char **argv, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t;
	const struct extensions *x;
	struct words w = {0};

	if (argc < 3)
		return err_set(e, ERR_USAGE, "usage: decode_words PROFILES FILE...");
	if (tables_load(argv[1], &a, &t, e) < 0 || extensions_new(t, &a, &x, e) < 0)
		return -1;
	const struct decoder *d = decoder_new(x, EXTENSION_AARCH64, &a);
	for (int i = 2; i < argc; i++)
		if ((strcmp(argv[i], "-") == 0 ? read_stdin(&a, &w)
					       : read_file(argv[i], &a, &w, e)) < 0)
			return -1;
	if (w.count)
		qsort(w.items, w.count, sizeof(*w.items), by_value);
	for (size_t i = 0, n; i < w.count; i += n) {
		for (n = 1; i + n < w.count && w.items[i + n] == w.items[i];)
			n++;
		print_word(x, d, w.items[i], n);
	}

	return 0;
}

int main(int argc, char **argv)
{
	struct err e = {0};

	if (run(argc, argv, &e) == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "%s\n", e.msg);
	return EXIT_FAILURE;
}
