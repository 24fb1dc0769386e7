/* scan_code FILE PROFILES [THREADS]: examines the machine code of one library as verify
 * does, against the baseline, for bench_code.py. Prints bytes, instructions and functions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sys/machine.h"
#include "core/code/code.h"

int main(int argc, char **argv)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct log log;
	struct err e = {0};
	const struct tables *t;
	const struct isa_rules *rules;
	struct isa_scan s;
	uint64_t allowed[EXTENSION_MACHINES];

	if (argc < 3) {
		fprintf(stderr, "usage: scan_code FILE PROFILES [THREADS]\n");
		return 2;
	}

	log_init(&log, 2, LOG_NORMAL);
	const struct run run = {.log = &log, .cancel_fd = -1};
	unsigned threads = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : machine_processors();
	struct isa_idle spare = {threads > 1 ? (int)threads - 1 : 0};
	if (tables_load(argv[2], &a, &t, &e) != 0 || isa_rules_new(t, &a, &rules, &e) != 0 ||
	    elf_map_open(argv[1], &m, &e) != 0) {
		fprintf(stderr, "%s\n", e.msg);
		return (int)e.kind;
	}

	isa_rules_allowed(rules, NULL, allowed);
	if (isa_scan_file(&m,
			  &(struct isa_scan_request){rules->decoders, allowed, &spare, &run, &a},
			  &s, &e) != 0) {
		fprintf(stderr, "%s\n", e.msg);
		return (int)e.kind;
	}

	printf("%" PRIu64 " %" PRIu64 " %zu %zu\n", s.bytes, s.instructions, s.functions, s.count);
	return 0;
}
