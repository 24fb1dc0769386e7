/* Any bytes as a library whose machine code is examined: symbols, frame
 * descriptions, initialisers, instructions; and its names for people. */
#include <string.h>

#include "core/code/code.h"
#include "core/elf/elf.h"
#include "fuzz.h"

/* What the tables of profiles/ would say matters little
 * here: two extensions, and nothing else is known. */
static struct extensions tables(void)
{
	static struct extension_set sets[] = {
		{"I86", EXTENSION_BASELINE}, {"AVX512F_512", 2}, {"SSE2", 4}};
	static struct extension_encoding encodings[] = {{0x1e000000, 0x04000000, 2, "SVE"}};
	struct extensions x = {
		.sets = sets, .sets_count = 3, .encodings = encodings, .encodings_count = 1};

	for (unsigned m = 0; m < EXTENSION_MACHINES; m++) {
		x.names[m][0] = "baseline";
		x.names[m][1] = "big";
		x.names[m][2] = "other";
		x.count[m] = 3;
	}

	return x;
}

/* Ranges ascend, do not overlap, and lie in the file. */
static void check_map(const struct elf_map *m, const struct code_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct code_range *r = &map->ranges[i];
		uint64_t offset, room;
		if (r->start >= r->end || (i && map->ranges[i - 1].end > r->start))
			abort();
		if (!elf_map_find(m, r->start, &offset, &room) || code_map_at(map, r->start) != r ||
		    code_map_at(map, r->end - 1) != r)
			abort();
	}
}

static void check_found(const struct isa_scan *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct isa_found *f = &s->found[i];
		if (!f->tally.count || f->tally.first < f->range->start ||
		    f->tally.first >= f->range->end)
			abort();
		if (i && s->found[i - 1].range >= f->range)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct log log = {.level = LOG_QUIET, .fd = 2};
	struct run run = {.log = &log, .cancel_fd = -1};
	struct extensions x = tables();
	struct isa_idle spare = {1};
	struct isa_scan s;
	struct err e = {0};
	const uint64_t allowed[EXTENSION_MACHINES] = {EXTENSION_BASELINE, EXTENSION_BASELINE};
	const struct decoder *decoders[EXTENSION_MACHINES];

	for (unsigned i = 0; i < EXTENSION_MACHINES; i++)
		decoders[i] = decoder_new(&x, (enum extension_machine)i, &a);
	if (size > 2 && memchr(data, '\0', size))
		(void)*demangle((const char *)data, &a);
	if (elf_map_memory(&(struct file_bytes){data, size, "input"}, &m, &e) != 0 ||
	    isa_scan_file(&m, &(struct isa_scan_request){decoders, allowed, &spare, &run, &a}, &s,
			  &e) != 0)
		return 0;
	check_map(&m, &s.map);
	check_found(&s);
	for (size_t i = 0; i < s.count; i++) {
		if (s.found[i].range->name)
			(void)*demangle(s.found[i].range->name, &a);
	}

	return 0;
}
