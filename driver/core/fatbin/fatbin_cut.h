/* GPU code for some GPUs alone: which images stay, and a library without the others. */
#pragma once
#include "core/elf/elf_cut.h"
#include "core/fatbin/fatbin.h"

struct fatbin_gpu {
	unsigned number; /* 90: compute capability 9.0 */
	bool ptx;        /* its PTX stays as well */
};

struct fatbin_wanted {
	const struct fatbin_gpu *gpus;
	size_t count;
	/* numbers of systems on a chip, whose code runs on them alone */
	const unsigned *alone;
	size_t alone_count;
};

/* fatbin_choose: of the images of one fat binary those that the driver would load on one of the
 * GPUs: cubins of its own number, else of the highest lower one of its line ("a" on that chip
 * alone); where no cubin runs, or PTX is wanted, the highest PTX, and intermediate code where
 * neither is. Kinds that are not known stay. runs[g]: something runs on GPU g; may be NULL. */
void fatbin_choose(const struct fatbin_entry *entries, size_t count, const struct fatbin_wanted *w, bool *keep,
		   bool *runs);

struct fatbin_cut {
	size_t containers;
	size_t moved;
	uint64_t kept_bytes, dropped_bytes;  /* of images */
	struct fatbin_count *kept, *dropped; /* sorted by target, then kind */
	size_t kept_count, dropped_count;
	size_t *runs; /* for each GPU: fat binaries that have code for it */
	/* why something stays as it was, or pages stay in the file; NULL */
	const char *left;
	/* the build's list of targets as it is now: "sm_90"; NULL: none is in the file */
	const char *archs;
	uint64_t archs_at, archs_len; /* where it is */
};

/* fatbin_cut_plan: what changes in a library so that only chosen images stay: kept ones move
 * together, and the relocations that point to them follow. What something else points into, or
 * nothing, stays at its place. `cut` has map and arena set. A file without GPU code gives an
 * empty plan. ERR_INTEGRITY for fat binaries, sections and relocations that are malformed. */
int fatbin_cut_plan(struct elf_cut *cut, const struct fatbin_wanted *w, struct fatbin_cut *ret,
		    struct err *e) MUST_CHECK;
/* fatbin_cut_prove: reads both files, of which one is the other after `done`: every chosen
 * image is there with the same bytes and nothing else is in its fat binary, and each address
 * holds what it held. ERR_INTEGRITY says what is not so. */
int fatbin_cut_prove(const struct elf_map *before, const struct elf_map *after, const struct fatbin_wanted *w,
		     const struct fatbin_cut *done, struct err *e) MUST_CHECK;
