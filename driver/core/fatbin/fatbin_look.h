/* What a library has for GPUs, whichever are asked for later. */
#pragma once
#include "core/fatbin/fatbin.h"

/* Fat binaries that hold the same images. */
struct fatbin_group {
	struct fatbin_entry *entries; /* kind and target of each, once */
	size_t count;
	size_t containers; /* how many there are */
};

struct fatbin_look {
	const char *name;
	bool code; /* it has sections of GPU code */
	bool used; /* slim may change it: that, or a list of targets */
	struct fatbin_group *groups;
	size_t groups_count;
	size_t containers; /* with images */
	/* of fat binaries and cubins in other sections, which are never changed */
	struct fatbin_group *others;
	size_t others_count;
	/* torch's own list of targets: the first one; count 0: none */
	struct fatbin_entry *listed;
	size_t listed_count;
};

/* fatbin_look_data: of a file's bytes, which may go afterwards; one that is not a 64-bit
 * little-endian ELF file has nothing. ERR_INTEGRITY for malformed sections and fat binaries. */
int fatbin_look_data(const struct file_bytes *in, struct arena *a, struct fatbin_look *ret,
		     struct err *e) MUST_CHECK;
/* fatbin_look_runs: how many of its fat binaries have code for a GPU; *ret_others: whether other
 * sections have some; may be NULL. */
size_t fatbin_look_runs(const struct fatbin_look *l, const struct fatbin_wanted *w, unsigned gpu,
			bool *ret_others);

struct fatbin_judging {
	const char *what; /* a wheel or distribution, for messages; NULL: "it" */
	bool torch;       /* libtorch_cuda decides */
	bool whole;       /* and must have code in as many fat binaries as for its own targets */
	bool ptx;         /* what is wanted with PTX must have some */
	const struct fatbin_look *looks;
	size_t count;
	const struct fatbin_wanted *wanted;
	const char *cuda; /* the toolkit that it was built with, "13.2"; NULL: not known */
	const struct tables *tables; /* of its GPUs; NULL where `cuda` is */
};

/* fatbin_is_torch: whether a normalised distribution name is torch's. */
bool fatbin_is_torch(const char *dist);
/* fatbin_judge: whether the libraries can run on each of the GPUs. ERR_POLICY names the GPU, and
 * torch's main library where that lacks it; the hint lists what there is. Libraries without GPU
 * code are judged as able. */
int fatbin_judge(const struct fatbin_judging *j, struct arena *a, struct err *e) MUST_CHECK;
/* fatbin_bare: each library with GPU code and each GPU that none of it runs on, as
 * "NAME (sm90: 0 of 3 fat binaries), ..."; "" if there is none. */
char *fatbin_bare(const struct fatbin_judging *j, struct arena *a);
