/* GPU code in executables, libraries, objects, static archives, bare cubins and bare fat
 * binaries. */
#pragma once

#include "base/base.h"

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

typedef int (*fatbin_fn)(const struct fatbin_entry *entry, void *user, struct err *e);

/* fatbin_scan: calls `fn` for each entry in a file's bytes, in order; a file without GPU code has
 * none. ERR_INTEGRITY "'name': what is wrong at which offset". A non-zero return of `fn` stops and
 * is returned. */
int fatbin_scan(const void *data, size_t size, const char *name, fatbin_fn fn, void *user, struct err *e) MUST_CHECK;

/* fatbin_inside: the target that an entry's contents name (flags of a cubin, .target of PTX), "" if
 * none; a newer cubin says "90" for "90a". Only the beginning is unpacked; ERR_INTEGRITY if that
 * fails. */
int fatbin_inside(const void *data, size_t size, const char *name, const struct fatbin_entry *entry, char ret[16],
		  struct err *e) MUST_CHECK;

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
int fatbin_summarize(const void *data, size_t size, const char *name, struct arena *a, struct fatbin_summary *ret,
		     struct err *e) MUST_CHECK;
/* fatbin_name: "cubin sm_90a". */
char *fatbin_name(const struct fatbin_count *c, struct arena *a);
/* fatbin_target_cmp: by number, then without letter before "a" before "f". */
int fatbin_target_cmp(const char *a, const char *b);
/* fatbin_kind_name: "cubin", "PTX", "LTO code", "kind 0x40". */
char *fatbin_kind_name(enum fatbin_kind kind, unsigned number, struct arena *a);
