/* What a package loses besides GPU code: planned file by file, counted by kind, done. */
#pragma once
#include "step/slim/slim_env.h"

/* slim_parts_goes: whether a chosen kind removes file `i`. */
bool slim_parts_goes(const struct slim_env_request *q, struct slim_package *p, size_t i);
/* slim_parts_sections: what of a file could be stripped. What cannot be read as ELF stays. */
void slim_parts_sections(const struct slim_env_request *q, struct slim_package *p, size_t i,
			 const struct fs_mapping *file);
/* slim_parts_same: finds equal files of a directory by their rows, after all other parts. */
void slim_parts_same(const struct slim_env_request *q, struct slim_package *p, struct arena *a);
/* What goes besides GPU code: bytes of the files by their names, and of the disk. */
struct slim_saved {
	uint64_t size, disk;
};

/* slim_parts_count: adds what the package can lose to the kinds, and what it will lose to `sum`. */
void slim_parts_count(const struct slim_env_request *q, const struct slim_package *p,
		      struct slim_saved *sum, struct arena *a);

/* slim_parts_strip: writes `file` without the sections of `what` into `fd`, an empty file open for
 * reading and writing, and proves it; *ret_done false if it has none. */
int slim_parts_strip(const struct fs_mapping *file, const char *name, unsigned what, int fd,
		     bool *ret_done, struct err *e) MUST_CHECK;
/* slim_parts_remove: the file, and the directories that it leaves empty. */
int slim_parts_remove(const struct slim_package *p, size_t i, struct arena *a,
		      struct err *e) MUST_CHECK;
/* slim_parts_link: makes the file another name of the one that it is like, if still equal. */
int slim_parts_link(const struct slim_package *p, size_t i, struct err *e) MUST_CHECK;
/* slim_parts_mark: writes the marker, and its row in `p`; *ret_changed as it was if it says the
 * same already. */
int slim_parts_mark(const struct slim_env_request *q, struct slim_package *p, struct arena *a,
		    bool *ret_changed, struct err *e) MUST_CHECK;
