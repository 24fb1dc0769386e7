/* An installed environment with the GPU code of some GPUs alone. */
#pragma once
#include "base/sys/fs_place.h"
#include "core/wheel/slim_marker.h"
#include "step/slim/slim_drop.h"

struct fatbin_look; /* core/fatbin/fatbin_look.h */

struct slim_env_request {
	const char *dir; /* a virtual environment, a root, or the directory of the packages */
	const struct fatbin_wanted *wanted;
	const struct tables *tables;
	const struct slim_drops *drops; /* what goes besides GPU code; its kinds are counted */
	bool dry_run;                   /* only report changes */
	const struct run *run;          /* where to log, and how the user stops it */
};

/* A file of a package, by its row of RECORD. */
struct slim_file {
	const struct fatbin_file_cut *cut; /* of a library with GPU code; NULL */
	const struct drop_row *row;        /* that removes it; NULL */
	uint64_t bytes, size;              /* on disk; of the file, where a row removes it */
	uint64_t debug, symbols;           /* bytes of its sections */
	size_t like;                       /* 1 + the row that has its contents; 0 */
	bool gone, strip;                  /* what is done */
};

struct slim_package {
	const char *info;             /* "torch-2.11.0.dist-info" */
	const struct fs_place *place; /* of the packages; only its path is known afterwards */
	struct fatbin_file_cut *files;
	struct fatbin_look *looks; /* of each file: what it has for any GPU */
	size_t count;
	uint64_t before, after;        /* bytes of these files */
	uint64_t blank;                /* of `after`, as in fatbin_file_cut */
	const char *left;              /* why it stays as it was; NULL */
	struct wheel_record_row *rows; /* with room for one more */
	size_t rows_count;
	struct slim_file *parts; /* one a row */
	bool changes;            /* something but GPU code goes */
};

struct slim_env_result {
	struct slim_package *packages; /* that have GPU code, or lose something else */
	size_t count;
	/* After a dry run `after` is what the run would give, to some blocks of the file system. */
	uint64_t before, after;           /* bytes of all files at the places, each name counted */
	uint64_t disk_before, disk_after; /* what they take of the disk: hard links count once */
};

/* slim_env: writes each library next to the old one, proves, syncs and renames it, so that other
 * names of the old file (a cache's hard links) and programs that have it open keep it, and a kill
 * leaves the old or the new one; then updates RECORD. Each changed package gets a marker first; one
 * with a marker for other GPUs is refused (ERR_POLICY) before anything is changed. Running it again
 * completes a RECORD that a kill left. A package in which nothing runs on one of the GPUs stays as
 * it is; ERR_POLICY, before anything is changed, if that is torch. ERR_USAGE if no package is
 * found.
 *
 * Others may write there, and replace anything at any time: directories are held by descriptor,
 * links are followed inside `dir` alone (ERR_POLICY), and written files get owner and permission
 * bits of the file that was read, never setuid or setgid. */
int slim_env(const struct slim_env_request *q, struct arena *a, struct slim_env_result *ret,
	     struct err *e) MUST_CHECK;

/* A distribution that slim_env changed, by its marker. */
struct slim_marked {
	const char *info;
	struct slim_marker marker;
};

/* slim_env_marked: lists the slimmed distributions of an environment, which is named as for
 * slim_env. ERR_INTEGRITY for a marker that cannot be read; ERR_USAGE if no package is found. */
int slim_env_marked(const char *dir, const struct run *run, struct arena *a,
		    struct slim_marked **ret, size_t *ret_count, struct err *e) MUST_CHECK;
