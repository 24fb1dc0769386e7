/* The record that slim leaves in the dist-info of a distribution that it made smaller. */
#pragma once
#include "base/base.h"

#define SLIM_MARKER "ptbuild-slim.json"

/* {"schema": 1, "gpus": ["9.0"], "release": "2.15.0", "ptbuild": "0.3.0", "dropped": ["debug"]} */
struct slim_marker {
	/* in order: "9.0"; with its PTX "9.0+PTX"; empty: it is for any GPU */
	struct strlist gpus;
	const char *release;    /* version of the distribution that it was made from; "" unknown */
	const char *ptbuild;    /* version of ptbuild; "" unknown */
	struct strlist dropped; /* kinds of other contents that were removed: "debug" */
};

/* slim_marker_gpu: adds compute capability number/10, 90 as "9.0". */
void slim_marker_gpu(struct slim_marker *m, unsigned number, bool ptx, struct arena *a);
/* slim_marker_of_label: of a version label, "cu128.sm90.ptx", as wheels of a ptbuild without
 * markers have it; false: it names no GPU. */
bool slim_marker_of_label(const char *label, struct arena *a, struct slim_marker *ret);
/* slim_marker_names: returns the GPUs as --gpu reads them: "sm80+sm90". slim_marker_same: whether
 * both have the same GPUs, in any order. slim_marker_others: whether `had` is for some GPUs, and
 * these are not the same. slim_marker_adds: whether `dropped` of `more` has a kind that `m` has
 * not. */
char *slim_marker_names(const struct slim_marker *m, struct arena *a);
bool slim_marker_same(const struct slim_marker *left, const struct slim_marker *right);
bool slim_marker_others(const struct slim_marker *had, const struct slim_marker *wanted);
bool slim_marker_adds(const struct slim_marker *m, const struct slim_marker *more);
/* slim_marker_text: the file, one line and its newline. */
char *slim_marker_text(const struct slim_marker *m, struct arena *a);
/* slim_marker_parse: of bytes from anywhere, at most 64 KiB; unknown keys are left out.
 * ERR_INTEGRITY "'what': ...", also for a later schema. */
int slim_marker_parse(const struct file_bytes *in, struct arena *a, struct slim_marker *ret,
		      struct err *e) MUST_CHECK;
/* slim_marker_read: the marker in a .dist-info directory below `top`, as fs_read. *ret_any false:
 * it has none. */
int slim_marker_read(const char *top, const char *dist_info, struct arena *a,
		     struct slim_marker *ret, bool *ret_any, struct err *e) MUST_CHECK;
