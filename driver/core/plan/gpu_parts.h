/* Which parts of a wheel have code for a GPU, and what follows from that. */
#pragma once
#include "core/fatbin/fatbin.h"

struct gpu_part { /* a file with GPU code */
	const char *file;
	const char *group; /* equal for alternatives: a program loads one of them */
	struct fatbin_entry *entries;
	size_t count;
	size_t units;       /* fat binaries */
	const char *driver; /* the lowest for its CUDA: "580"; "": not known */
};

struct gpu_parts {
	struct gpu_part *items;
	size_t count;
	const unsigned *alone; /* systems on a chip: tables_chips */
	size_t alone_count;
	/* bytes: of these files, and of libraries that use a GPU by CUDA's libraries or the driver,
	 * without torch and without code of their own or of these files */
	uint64_t bytes, host_bytes;
	size_t hosts; /* the latter libraries, alternatives once */
};

struct gpu_here {
	const char *capability;
	const char *driver; /* "": not known */
};

enum gpu_reach {
	GPU_RUNS, /* every part has code for it */
	/* leading parts have, and enough of the code: a fifth where all that lead have, else half;
	 * or any part, where no GPU is served by all; or none, where more libraries use GPUs
	 * without code than parts have some, and have a hundredth of the bytes: the code is a
	 * feature then */
	GPU_PARTLY,
	/* less has; or none has, where no GPU is served by all, or where other libraries of the
	 * wheel use GPUs too: a hundredth of the bytes at least */
	GPU_PERHAPS,
	GPU_LACKS, /* none has */
};

/* gpu_parts_reach: alternatives count as one part, of those that the driver runs. *ret_lacking: the
 * files without code for the GPU. A part leads unless another one serves all GPUs that it serves,
 * and a generation more: one for Hopper alone does not, beside one for Ampere to Blackwell. */
enum gpu_reach gpu_parts_reach(const struct gpu_parts *p, const struct gpu_here *here,
			       struct arena *a, struct strlist *ret_lacking);
/* gpu_parts_targets: the targets, "90a" or "120+PTX", of GPUs that every leading part serves, or of
 * any part where there is no such GPU. */
void gpu_parts_targets(const struct gpu_parts *p, struct arena *a, struct strlist *ret);
