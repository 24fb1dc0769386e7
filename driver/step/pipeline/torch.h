/* The torch that torchvision and torchaudio are built against: the root's own, or a wheel, always
 * by digest. */
#pragma once
#include "core/plan/plan.h"
#include "core/wheel/wheel.h"
#include "step/fetch/fetch.h"

struct torch_source {
	/* "root" (the root's fingerprint covers it) or "sha256:<digest of the wheel>" */
	const char *identity;
	const char *version; /* full: "2.6.0+cpu.avx2" */
	/* host path; NULL for the root's, and for an official one that was not fetched */
	const char *wheel;
	/* the root's torch/lib as a path inside the root; NULL for a wheel */
	const char *lib_dir;
	const struct official_wheel *official; /* NULL: it is not pinned */
};

/* torch_official: whether a word of --torch is "official", or "official==2.11.0": then its version,
 * NULL without one. */
bool torch_official(const char *word, const char **ret_version);
struct torch_official {
	const char *profiles, *version, *python, *platform;
	const char *cuda; /* NULL: any */
};
/* torch_from_official: the pinned wheel, which need not be there yet. Errors of official_find.
 * torch_fetch: that wheel into the store. */
int torch_from_official(const struct torch_official *q, struct arena *a, struct torch_source *ret,
			struct err *e) MUST_CHECK;
int torch_fetch(struct torch_source *t, struct store *store, const struct fetch_options *o, const struct run *run,
		struct arena *a, struct err *e) MUST_CHECK;

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
/* torch_provides: the NEEDED names that torch's own libraries answer to, and their paths.
 * `unpacked`: from torch_unpack. */
int torch_provides(const struct torch_source *t, const struct root *root, const char *unpacked, struct arena *a,
		   struct strlist *ret, struct strlist *ret_files, struct err *e) MUST_CHECK;
