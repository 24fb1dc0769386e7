/* The torch that torchvision and torchaudio are built against: the root's own, or a wheel, always
 * by digest. */
#pragma once
#include "core/root/sandbox.h"

struct torch_source {
	/* "root" (the root's fingerprint covers it) or "sha256:<digest of the wheel>" */
	const char *identity;
	const char *version; /* full: "2.6.0+cpu.avx2" */
	const char *wheel;   /* host path, NULL for the root's */
	const char *lib_dir; /* the root's torch/lib as a path inside the root; NULL for a wheel */
};

/* torch_recall: what torch_from_root was told of a world of the store before (`answers`: where
 * sandbox_capture keeps it; NULL: nowhere). */
bool torch_recall(const struct root *root, enum sandbox_kind kind, const char *answers, struct arena *a,
		  struct torch_source *ret);
/* torch_from_root: ERR_POLICY if the root's Python has no torch. */
int torch_from_root(const struct root *root, enum sandbox_kind kind, const char *answers, const struct run *run,
		    struct arena *a, struct torch_source *ret, struct err *e) MUST_CHECK;
/* torch_from_wheel: checks that it is a torch wheel for this Python. */
int torch_from_wheel(const char *path, const char *python, struct arena *a, struct torch_source *ret,
		     struct err *e) MUST_CHECK;
/* torch_unpack: a wheel's files below `dir` (made once, kept by a marker); *ret is NULL for the
 * root's torch. */
int torch_unpack(const struct torch_source *t, const char *dir, const struct run *run, struct arena *a,
		 const char **ret, struct err *e) MUST_CHECK;
/* torch_check_cuda: whether a wheel's torch, unpacked there, is for this CUDA ("12.4"; NULL: any
 * will do), by its torch/version.py: ERR_POLICY. One that does not say, and the root's, pass. */
int torch_check_cuda(const struct torch_source *t, const char *unpacked, const char *cuda, struct arena *a,
		     struct err *e) MUST_CHECK;
/* torch_provides: the NEEDED names that torch's own libraries answer to, and their paths.
 * `unpacked`: from torch_unpack. */
int torch_provides(const struct torch_source *t, const struct root *root, const char *unpacked, struct arena *a,
		   struct strlist *ret, struct strlist *ret_files, struct err *e) MUST_CHECK;
