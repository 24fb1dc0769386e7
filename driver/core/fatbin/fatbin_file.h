/* One library with the GPU code of some GPUs alone. */
#pragma once
#include "core/fatbin/fatbin_cut.h"

struct fatbin_file_cut {
	const char *name;       /* in the wheel or environment */
	uint64_t before, after; /* bytes */
	uint64_t blank;         /* of `after`, in pages that became zeros */
	bool changed;
	const uint64_t *marks; /* as elf_cut_marks */
	size_t marks_count;
	struct fatbin_cut cut;
};

/* fatbin_file_slim: reads the file at `path` and, if something changes, writes the new one into
 * the empty file `fd` (`to`, for messages and to read it again) and proves it. `to` must be
 * readable by its name. With -1 it only tells. The input is not touched. Errors as
 * fatbin_cut_plan and fatbin_cut_prove. */
int fatbin_file_slim(const char *path, const char *name, int fd, const char *to, const struct fatbin_wanted *w,
		     struct arena *a, struct fatbin_file_cut *ret, struct err *e) MUST_CHECK;
/* fatbin_file_has: whether a file is a library with sections of GPU code, and whether
 * fatbin_file_slim may change it, as it may have a list of targets. `name` is as there. */
int fatbin_file_has(const char *path, const char *name, bool *ret_code, bool *ret_used, struct err *e) MUST_CHECK;
