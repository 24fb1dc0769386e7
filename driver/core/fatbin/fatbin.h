/* GPU code in executables, libraries, objects, static archives, bare cubins and bare fat
 * binaries. */
#pragma once
#include "core/elf/elf_map.h"

/* What an entry holds, by NVIDIA's own numbers. */
enum fatbin_kind {
	FATBIN_PTX = 0x1,   /* assembly for a virtual target, compiled by the driver */
	FATBIN_CUBIN = 0x2, /* code for a real target (SASS) */
	FATBIN_LTO = 0x8,   /* intermediate code for link-time optimisation */
	FATBIN_OTHER = 0,   /* an unknown kind */
};

enum fatbin_packing { FATBIN_PLAIN, FATBIN_LZ4, FATBIN_ZSTD };

struct fatbin_entry {
	enum fatbin_kind kind;
	unsigned number; /* the kind as the file has it */
	char target[16]; /* "90", "90a", "100f" */
	enum fatbin_packing packing;
	bool sealed;        /* its contents are encrypted, as nvcc does with intermediate code */
	bool relocatable;   /* not linked yet: from __nv_relfatbin */
	uint64_t from, to;  /* of the whole entry: header, contents and padding */
	uint64_t offset;    /* of the contents, in the whole file */
	uint64_t size;      /* of the contents in the file */
	uint64_t raw_size;  /* of the contents unpacked */
	const char *member; /* of a static archive; "" elsewhere */
	size_t container;   /* index of the fat binary in the file */
};

struct fatbin_entries {
	struct fatbin_entry *items;
	size_t count;
};

/* fatbin_scan: the entries in a file's bytes, in order; a file without GPU code has none.
 * ERR_INTEGRITY "'name': what is wrong at which offset" (NULL: "the file"). */
int fatbin_scan(const struct file_bytes *in, struct arena *a, struct fatbin_entries *ret,
		struct err *e) MUST_CHECK;

/* fatbin_inside: the target that an entry's contents name (flags of a cubin, .target of PTX), "" if
 * none; a newer cubin says "90" for "90a". Only the beginning is unpacked; ERR_INTEGRITY if that
 * fails. */
int fatbin_inside(const struct file_bytes *in, const struct fatbin_entry *entry, char ret[16],
		  struct err *e) MUST_CHECK;

/* fatbin_text: whether a file's bytes are PTX as text, and its target as an entry. */
bool fatbin_text(const void *data, size_t size, struct fatbin_entry *ret);

/* One kind for one target, and how much of it there is. */
struct fatbin_count {
	enum fatbin_kind kind;
	unsigned number; /* the kind as the file has it */
	char target[16];
	size_t entries;
	uint64_t bytes; /* in the file */
};

/* Fat binaries that hold the same kinds for the same targets. Each compiled unit has one. */
struct fatbin_set {
	const char *text;      /* "cubin sm_90, cubin sm_90a" */
	struct strlist cubins; /* targets */
	size_t containers;     /* how many there are */
};

struct fatbin_summary {
	struct fatbin_count *items; /* sorted by target, then kind */
	size_t count;
	struct fatbin_set *sets; /* in the order of their first */
	size_t sets_count;
	size_t containers;
	/* a text for each entry whose contents are for another target than its header says */
	struct strlist wrong;
};

/* fatbin_summarize: what a file's bytes hold, contents compared with headers; errors as
 * fatbin_scan. */
int fatbin_summarize(const struct file_bytes *in, struct arena *a, struct fatbin_summary *ret,
		     struct err *e) MUST_CHECK;
/* fatbin_name: "cubin sm_90a". */
char *fatbin_name(const struct fatbin_count *c, struct arena *a);
/* fatbin_target_cmp: by number, then without letter before "a" before "f". */
int fatbin_target_cmp(const char *a, const char *b);
/* fatbin_kind_name: "cubin", "PTX", "LTO code", "kind 0x40". */
char *fatbin_kind_name(enum fatbin_kind kind, unsigned number, struct arena *a);

/* GPU code for some GPUs alone: which images stay, and a library without the others. */

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

/* The images of one fat binary, and what is chosen of them. */
struct fatbin_choice {
	const struct fatbin_entry *entries;
	size_t count;
	const struct fatbin_wanted *w;
	bool *keep; /* one for each entry */
	bool *runs; /* one for each GPU: something runs on it; may be NULL */
};

/* fatbin_choose: keeps those that the driver would load on one of the GPUs: cubins of its own
 * number, else of the highest lower one of its line ("a" on that chip alone); where no cubin runs,
 * or PTX is wanted, the highest PTX, and intermediate code where neither is. Kinds that are not
 * known stay. */
void fatbin_choose(const struct fatbin_choice *c);

/* fatbin_runs: whether one of the images runs on a GPU: its binary code, or PTX or intermediate
 * code compiled for it. fatbin_runs_ptx: its PTX alone. */
bool fatbin_runs(const struct fatbin_entry *entries, size_t count, const struct fatbin_wanted *w,
		 unsigned gpu);
bool fatbin_runs_ptx(const struct fatbin_entry *entries, size_t count,
		     const struct fatbin_wanted *w, unsigned gpu);

struct fatbin_cut {
	size_t containers, filled; /* filled: those with images */
	size_t moved;
	uint64_t kept_bytes, dropped_bytes;  /* of images */
	struct fatbin_count *kept, *dropped; /* sorted by target, then kind */
	size_t kept_count, dropped_count;
	size_t *runs; /* for each GPU: fat binaries that have code for it */
	bool unread;  /* only other sections have: all of it stays */
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
int fatbin_cut_prove(const struct elf_map *before, const struct elf_map *after,
		     const struct fatbin_wanted *w, const struct fatbin_cut *done,
		     struct err *e) MUST_CHECK;

/* One library with the GPU code of some GPUs alone. */
struct fatbin_file_cut {
	const char *name;       /* in the wheel or environment */
	uint64_t before, after; /* bytes */
	uint64_t blank;         /* of `after`, in pages that became zeros */
	bool changed;
	const struct elf_mark *marks;
	size_t marks_count;
	struct fatbin_cut cut;
};

/* fatbin_file_slim: plans the cut of a library and, if something changes, writes the new one into
 * `fd`, an empty file open for reading and writing, and proves it. With -1 it only plans. The input
 * must not change meanwhile. Errors as fatbin_cut_plan and fatbin_cut_prove. */
int fatbin_file_slim(const struct fs_mapping *file, const char *name, int fd,
		     const struct fatbin_wanted *w, struct arena *a, struct fatbin_file_cut *ret,
		     struct err *e) MUST_CHECK;
/* fatbin_library_name: whether a file may be a library by its name. */
bool fatbin_library_name(const char *name);
