/* pack_tree TREE VERSION OUT_DIR [LEVEL [THREADS]]: packs an
 * unpacked wheel as the pack step does, for bench_pack.py. */
#include <stdio.h>
#include <stdlib.h>

#include "step/pack/pack.h"

int main(int argc, char **argv)
{
	AUTO_ARENA struct arena a = {0};
	struct log log;
	struct err e = {0};
	struct pack_result r;

	if (argc < 4) {
		fprintf(stderr, "usage: pack_tree TREE VERSION OUT_DIR [LEVEL [THREADS]]\n");
		return 2;
	}

	log_init(&log, 2, LOG_NORMAL);
	const struct run run = {.log = &log, .cancel_fd = -1};
	const struct pack_request q = {
		.run = &run,
		.tree = argv[1],
		.version = argv[2],
		.platform = "linux_x86_64",
		.metadata_rev = 1,
		.input_key = "bench",
		.generator = "ptbuild " PTBUILD_VERSION,
		.epoch = 1700000000,
		.threads = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 0,
		.level = argc > 4 ? (int)strtol(argv[4], NULL, 10) : PACK_LEVEL,
		.out_dir = argv[3]};
	if (pack_wheel(&q, &a, &r, &e) != 0) {
		fprintf(stderr, "%s\n%s\n", e.msg, e.hint);
		return (int)e.kind;
	}

	printf("%s\n", r.path);
	return 0;
}
