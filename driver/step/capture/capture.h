/* Capture: the torch that is installed in the root, as the files of a wheel. */
#pragma once
#include "core/root/sandbox.h"

struct capture_file {
	const char *name;   /* in the wheel: "torch/lib/libc10.so" */
	const char *source; /* path of the host, links resolved */
	char sha256[65];
};

struct captured {
	const char *package;        /* whose files they are: "python3-torch=2.6.0+dfsg-7" */
	const char *version;        /* full: "2.6.0+debian" */
	const char *python;         /* "3.13" */
	const char *tag;            /* of a wheel for that Python: "cp313-cp313-linux_x86_64" */
	const char *platform;       /* "x86_64-linux" */
	const char *info;           /* its .dist-info or .egg-info, a path inside the root */
	struct capture_file *files; /* sorted by name; without those of an .egg-info */
	size_t count;
	uint64_t epoch;
	char digest[65]; /* of the files: names, bytes, which may be executed */
};

/* capture_find: asks the root's Python and the list of its installer: RECORD, else dpkg's. Leaves
 * out test programs, and headers that are not installed. ERR_POLICY for a root without a torch that
 * can be captured, ERR_INTEGRITY for one that lacks files of its list. */
int capture_find(const struct root *root, enum sandbox_kind kind, const struct run *run,
		 struct arena *a, struct captured *ret, struct err *e) MUST_CHECK;
/* capture_write: the files below `tree`, which must not exist; with an .egg-info a .dist-info made
 * of it, and in it "captured-from" with the notes. `log`: a file of digests, names, sources. */
int capture_write(const struct captured *t, const struct root *root, const struct strlist *notes,
		  const char *tree, const char *log, const struct run *run, struct arena *a,
		  struct err *e) MUST_CHECK;
